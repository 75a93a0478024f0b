"""Inner solvers of the concave-convex procedure that see no more than the first term of its objective."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Protocol

import numpy as np
import scipy.sparse

from dualfield.data.arrays import Floats
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.objectives.latent import Completion
from dualfield.solvers.base import Solution, Status, StopRule
from dualfield.solvers.planes.simplex_master import SimplexMaster
from dualfield.solvers.primal.quasi_newton import LimitedMemory
from dualfield.solvers.trace import Trace, relative_gap

__all__ = ["FirstTerm", "InnerCuts", "InnerDescent"]

_MOST_CUTS = 200  # without a share that are kept
_MASTER = 0.1  # of the tolerance is left to the master problem
_ROUNDING = 1e-13  # of the value: more the master problem cannot give


class FirstTerm(Protocol):
    """The convex first term of an objective with latent variables.

    Examples
    --------
    >>> from dualfield.solvers.latent.cuts import FirstTerm
    >>> FirstTerm.__name__
    'FirstTerm'
    """

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Length of w."""

    @abstractmethod
    def loss_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        r"""Return :math:`\sum_i c_i \max_{y, h} [\langle w, \Phi(x_i, y, h) \rangle + \Delta_i]` and a subgradient.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Weights.

        Returns
        -------
        loss : float
            The value.
        gradient : array of shape (n_parameters,)
            A subgradient, the gradient where there is one.
        """


class InnerCuts:
    r"""Cutting planes with one slack variable, kept from one step of the procedure to the next.

    A cut is a plane below the first term, :math:`L_r + \langle P_r, w \rangle`. In the problem of a completion its
    slope is :math:`P_r` less the features of the completed truth: only this shift changes between steps, so all cuts
    stay valid without a new pass over the data.

    Parameters
    ----------
    problem : FirstTerm
        What the cuts are of.
    reuse : bool, default=True
        Whether cuts are kept from step to step.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import StopRule
    >>> from dualfield.solvers.latent.cuts import InnerCuts
    >>> from dualfield.objectives.latent import Completion
    >>> class Hinge:
    ...     n_parameters = 1
    ...     def loss_and_gradient(self, w):
    ...         return max(1.0, w[0]), np.array([float(w[0] > 1.0)])
    >>> completed = Completion(np.zeros(1, int), np.ones(1))          # ½w² + max(1, w) - w
    >>> InnerCuts(Hinge()).minimise(completed, None, StopRule(1e-9), 0).parameters.round(6)
    array([1.])
    """

    def __init__(self, problem: FirstTerm, reuse: bool = True) -> None:
        self._problem, self._reuse = problem, reuse
        self._slopes, self._heights = np.zeros((0, problem.n_parameters)), np.zeros(0)

    def minimise(self, completion: Completion, start: Floats | None, rule: StopRule, seed: int) -> Solution[Floats]:
        """Minimise ½|w|² + loss(w) - ⟨w, features⟩.

        Parameters
        ----------
        completion, start, rule, seed
            As for :meth:`dualfield.solvers.latent.records.InnerSolver.minimise`.

        Returns
        -------
        Solution[Floats]
            The best point met, `start` among them, and its gap.
        """
        with one_blas_thread():
            return self._minimise(completion, start, rule)

    def _minimise(self, completion: Completion, start: Floats | None, rule: StopRule) -> Solution[Floats]:
        if not self._reuse:
            self._slopes, self._heights = self._slopes[:0], self._heights[:0]
        master = SimplexMaster(self._problem.n_parameters)
        self._add(master, self._slopes - completion.features, self._heights)
        best, best_value, dual, began = np.zeros(0), np.inf, -np.inf, time.perf_counter()
        rows: list[tuple[float, ...]] = []
        status: Status | None = None
        w = np.zeros(self._problem.n_parameters) if start is None else start
        while status is None:
            try:
                loss, slope = self._problem.loss_and_gradient(w)
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
                break
            value = 0.5 * float(w @ w) + loss - float(w @ completion.features)
            if value < best_value:
                best, best_value = w, value
            height = loss - float(w @ slope)
            self._slopes, self._heights = np.vstack([self._slopes, slope]), np.append(self._heights, height)
            self._add(master, (slope - completion.features)[None], np.array([height]))
            master.solve(max(_MASTER * rule.tol, _ROUNDING) * abs(best_value))
            last, dual = dual, max(dual, master.dual)
            gap = max(best_value - dual, 0.0)
            rows.append((best_value, dual, gap, float(len(rows) + 1), time.perf_counter() - began))
            if relative_gap(best_value, gap) <= rule.tol:
                status = Status.CONVERGED
            elif len(rows) >= rule.max_passes:
                status = Status.ITERATION_LIMIT
            elif dual <= last and np.array_equal(w, master.w):
                status = Status.STALLED
            w = master.w
        self._forget(master)
        if not rows:  # interrupted at once
            best, best_value = w, np.inf
            rows.append((np.inf, -np.inf, np.inf, 0.0, 0.0))
        return Solution(
            parameters=best,
            objective=best_value,
            gap=rows[-1][2],
            status=status,
            n_iter=len(rows),
            trace=Trace.from_rows(np.array(rows)),
            solver="inner_cuts",
        )

    def _add(self, master: SimplexMaster, slopes: Floats, heights: Floats) -> None:
        if len(heights):
            master.add(scipy.sparse.csr_array(slopes), heights, np.zeros(len(heights), dtype=np.int64))

    def _forget(self, master: SimplexMaster) -> None:
        """Keep the cuts that carry the solution, and the latest of the others."""
        idle = np.flatnonzero(master.shares <= 0.0)
        kept = np.ones(len(self._heights), dtype=bool)
        kept[idle[: max(len(idle) - _MOST_CUTS, 0)]] = False
        self._slopes, self._heights = self._slopes[kept], self._heights[kept]


class InnerDescent:
    """L-BFGS, for first terms that are smooth: the convex problems of the hidden-state CRF.

    Parameters
    ----------
    problem : FirstTerm
        With a gradient everywhere.
    memory : int, default=10
        Pairs of vectors kept.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import StopRule
    >>> from dualfield.solvers.latent.cuts import InnerDescent
    >>> from dualfield.objectives.latent import Completion
    >>> class Soft:
    ...     n_parameters = 1
    ...     def loss_and_gradient(self, w):
    ...         return float(np.logaddexp(0.0, w[0])), 1.0 / (1.0 + np.exp(-w))
    >>> found = InnerDescent(Soft()).minimise(Completion(np.zeros(1, int), np.ones(1)), None, StopRule(1e-9), 0)
    >>> found.parameters.round(4)                                       # ½w² + log(1 + exp(w)) - w
    array([0.4011])
    """

    def __init__(self, problem: FirstTerm, memory: int = 10) -> None:
        self._problem, self._memory = problem, memory

    def minimise(self, completion: Completion, start: Floats | None, rule: StopRule, seed: int) -> Solution[Floats]:
        """Minimise ½|w|² + loss(w) - ⟨w, features⟩; the gap is half the squared gradient.

        Parameters
        ----------
        completion, start, rule, seed
            As for :meth:`dualfield.solvers.latent.records.InnerSolver.minimise`.

        Returns
        -------
        Solution[Floats]
            The point and its gap.
        """

        def evaluate(w: Floats) -> tuple[float, Floats]:
            loss, gradient = self._problem.loss_and_gradient(w)
            return 0.5 * float(w @ w) + loss - float(w @ completion.features), w + gradient - completion.features

        began, status, n_iter = time.perf_counter(), Status.ITERATION_LIMIT, 0
        with one_blas_thread():
            run = LimitedMemory(
                evaluate, np.zeros(self._problem.n_parameters) if start is None else start, self._memory
            )
            while run.n_evaluations < rule.max_passes:
                # the first term is convex, ½|w|² is its own conjugate
                gap = 0.5 * float(run.point.gradient @ run.point.gradient)
                if relative_gap(run.point.value, gap) <= rule.tol:
                    status = Status.CONVERGED
                    break
                try:
                    if not run.step():
                        status = Status.STALLED
                        break
                except KeyboardInterrupt:
                    status = Status.INTERRUPTED
                    break
                n_iter += 1
        value, gap = run.point.value, 0.5 * float(run.point.gradient @ run.point.gradient)
        row = (value, value - gap, gap, float(run.n_evaluations), time.perf_counter() - began)
        return Solution(
            parameters=run.point.x,
            objective=value,
            gap=gap,
            status=status,
            n_iter=n_iter,
            trace=Trace.from_rows(np.array([row])),
            solver="inner_descent",
        )
