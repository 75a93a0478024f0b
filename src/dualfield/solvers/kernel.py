"""Native solvers for softmax problems with a kernel: working sets, Newton-CG, SMO, rows on demand, and a choice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, xlogy

from dualfield import _native
from dualfield.objectives import KernelSoftmax
from dualfield.solvers.base import Progress, Solution, Start, Status, StopRule, Trace

__all__ = ["SMO", "Auto", "NewtonCG", "Online", "WorkingSet"]

# Up to here the kernel matrix is small, and Newton's method has the best worst case.
_SMALL = 2500
# And up to here a copy in single precision does not pay.
_TINY = 500
# Gaps that were computed in single precision were within a few percent down to here, and far off at 1e-6 with large C.
_TRUSTED = 1e-4
# How often the rounding errors of the scores are corrected before the matrix is computed in double precision.
_REFINEMENTS = 3
Floats = NDArray[np.float64]


def _task(
    objective: KernelSoftmax,
    rule: StopRule,
    start: Start | None,
    told: Progress | None,
    spent: Trace | None = None,
    rough: _native.KernelMatrix | None = None,
    correction: Floats | None = None,
) -> _native.KernelTask:
    return _native.KernelTask(
        labels=objective.labels,
        weights=np.ascontiguousarray(objective.weights),
        n_classes=objective.n_classes,
        pinned=objective.pinned,
        with_bias=objective.with_bias,
        label_kernel=objective.label_kernel,
        start=None if start is None else np.ascontiguousarray(start.coefficients),
        start_bias=None if start is None else np.ascontiguousarray(start.bias),
        tolerance=rule.tol,
        most_passes=rule.max_passes,
        start_passes=float(spent.kernel_passes[-1]) if spent else 0.0,
        start_seconds=float(spent.seconds[-1]) if spent else 0.0,
        n_threads=objective.n_threads,
        told=told,
        interval=getattr(told, "interval", 0.05),
        rough=rough,
        correction=correction,
    )


def _solution(result: Any, solver: str, before: Solution | None = None) -> Solution:
    coefficients, bias, value, gap, outcome, n_iter, rows = result
    if before is not None:
        rows = np.concatenate([before.trace.rows(), rows])
        n_iter += before.n_iter
    return Solution(coefficients, bias, value, gap, Status(outcome), max(1, n_iter), Trace.from_rows(rows), solver)


def _check_exactly(objective: KernelSoftmax, solution: Solution, rule: StopRule) -> tuple[Solution, Floats]:
    """Compute gap and objective of a point of the dual again in double precision, kernel values included.

    The kernel matrix is streamed. The gap is Σ_i c_i KL(p_i ‖ softmax(F_i + b)); where it is above the tolerance after
    all, the status says so. Also returns the scores F.
    """
    points, weights = objective.points, objective.weights[:, None]
    scores = objective.kernel.scores(points, points, solution.coefficients, objective.n_threads)
    bias = objective.fit_bias(scores, solution.bias)
    full, coefficients = scores + bias, solution.coefficients
    if objective.pinned:
        full = np.column_stack([np.zeros(objective.size), full])
        coefficients = np.column_stack([-coefficients, coefficients])
    p = np.clip((np.arange(objective.n_classes) == objective.labels[:, None]) - coefficients / weights, 0.0, 1.0)
    log_q = log_softmax(full, axis=1)
    entropy = float(-(weights * xlogy(p, p)).sum())
    gap = float((weights * (xlogy(p, p) - p * log_q)).sum())
    dual = entropy - 0.5 * float(np.vdot(solution.coefficients, scores))
    status = Status.CONVERGED if dual > 0 and gap <= rule.tol * dual else Status.STALLED
    last = solution.trace.rows()[-1]
    rows = np.vstack([solution.trace.rows(), [dual + gap, dual, gap, last[3] + 1.0, last[4]]])
    exact = replace(solution, bias=bias, objective=dual + gap, gap=gap, status=status, trace=Trace.from_rows(rows))
    return exact, scores


def _refuse_label_kernel(objective: KernelSoftmax, solver: str) -> None:
    if objective.label_kernel is not None:
        raise ValueError(
            f"solver={solver!r} moves whole points and needs classes that do not share strength: it cannot use a "
            "label_kernel. Use solver='auto', 'newton', 'smo' or 'lbfgs'."
        )


@dataclass(frozen=True)
class WorkingSet:
    """Dual ascent on greedy working sets: the points that own most of the gap, solved together.

    Needs a kernel matrix within the budget, or else computes rows again. Single precision for more than 2500 points:
    4 n² bytes, at most the budget, plus a constant times n; double precision below.

    Parameters
    ----------
    size : int, default=256
        Points in a set.
    keep : float, default=0.5
        Share of a set that stays in the next one.
    inner_passes : int, default=30
        Most passes over a set.
    inner_tol : float, default=0.02
        A set is left when a pass gains less than this share of the first.
    set_tol : float, default=0.2
        With a bias a set is solved by Newton's method until its gap is this share of what was gained.
    patience : float, default=inf
        Give up where more passes over the kernel matrix than this are expected.

    Examples
    --------
    >>> from dualfield import KernelLogisticRegression
    >>> from dualfield.solvers import WorkingSet
    >>> KernelLogisticRegression(solver=WorkingSet(size=128)).solver.size
    128
    """

    size: int = 256
    keep: float = 0.5
    inner_passes: int = 30
    inner_tol: float = 0.02
    set_tol: float = 0.2
    patience: float = np.inf

    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: Start | None = None,
        told: Progress | None = None,
        random_state: Any = None,
        stored: bool | None = None,
    ) -> Solution:
        """Solve an objective.

        Parameters
        ----------
        objective : KernelSoftmax
            What to minimise.
        rule : StopRule
            When to stop.
        start : Start, default=None
            Where to begin.
        told : callable, default=None
            Told of progress now and then.
        random_state : None
            Not used: nothing is random.
        stored : bool, default=None
            False: rows on demand, whatever the budget.

        Returns
        -------
        Solution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> from dualfield.solvers import StopRule, WorkingSet
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(Kernel(), np.eye(4), y, np.ones(4), 2, True, True)
        >>> WorkingSet().solve(problem, StopRule(1e-3)).status.value
        'converged'
        """
        _refuse_label_kernel(objective, "working_set" if stored is None else "online")
        single = objective.size > _SMALL and rule.tol > 1e-8
        solution = self._run(objective, objective.matrix(single=single, stored=stored), rule, start, told)
        # Single precision is not to be trusted with so small a gap: it is computed again, in double precision. Where it
        # is too large after all, the rounding errors of the scores are corrected and the solver goes on.
        for _ in range(_REFINEMENTS if single and rule.tol < _TRUSTED else 0):
            if solution.status is not Status.CONVERGED:
                break
            solution, scores = _check_exactly(objective, solution, rule)
            if solution.status is Status.CONVERGED:
                return solution
            correction = scores - objective.product(solution.coefficients, single=True)
            matrix = objective.matrix(single=True, stored=stored)
            begin = Start(solution.coefficients, solution.bias)
            solution = self._run(objective, matrix, rule, begin, told, solution, correction)
        if single and rule.tol < _TRUSTED and solution.status is Status.CONVERGED:
            solution, _ = _check_exactly(objective, solution, rule)
        if not single or solution.status is not Status.STALLED or not objective.fits(8) or stored is False:
            return solution
        matrix = objective.matrix(single=False)
        return self._run(objective, matrix, rule, Start(solution.coefficients, solution.bias), told, solution)

    def _run(
        self,
        objective: KernelSoftmax,
        matrix: _native.KernelMatrix,
        rule: StopRule,
        start: Start | None,
        told: Progress | None,
        before: Solution | None = None,
        correction: Floats | None = None,
    ) -> Solution:
        result = _native.solve_working_set(
            matrix,
            _task(objective, rule, start, told, before.trace if before else None, correction=correction),
            self.size,
            self.keep,
            self.inner_passes,
            self.inner_tol,
            self.set_tol,
            min(self.patience, 1e300),
        )
        return _solution(result, "working_set", before)


@dataclass(frozen=True)
class Online:
    """The working-set method with rows of the kernel matrix computed when they are needed: no matrix is ever kept.

    Memory is linear in the number of points: what the row cache may use (``cache_size``, at least ``size`` rows).

    Parameters
    ----------
    size : int, default=128
        Points in a set.
    keep : float, default=0.5
        Share of a set that stays in the next one.

    Examples
    --------
    >>> from dualfield.solvers import Online
    >>> Online().size
    128
    """

    size: int = 128
    keep: float = 0.5

    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: Start | None = None,
        told: Progress | None = None,
        random_state: Any = None,
    ) -> Solution:
        """Solve an objective; see :meth:`WorkingSet.solve`.

        Parameters
        ----------
        objective, rule, start, told, random_state
            As for :meth:`WorkingSet.solve`.

        Returns
        -------
        Solution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> from dualfield.solvers import Online, StopRule
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(Kernel(), np.eye(4), y, np.ones(4), 2, True, True)
        >>> Online().solve(problem, StopRule(1e-3)).status.value
        'converged'
        """
        inner = WorkingSet(size=self.size, keep=self.keep)
        return replace(inner.solve(objective, rule, start, told, stored=False), solver="online")


@dataclass(frozen=True)
class NewtonCG:
    """Truncated Newton: conjugate gradients in the space of the weights, bias eliminated.

    The most robust solver: large C, wide kernels, label kernels. Scores and gap are in double precision where both
    matrices fit the budget (12 n² bytes), else everything is in single precision (4 n² bytes).

    Parameters
    ----------
    forcing : float, default=0.5
        Conjugate gradients reduce the residual at least by this factor in each Newton step.

    Examples
    --------
    >>> from dualfield.solvers import NewtonCG
    >>> NewtonCG().forcing
    0.5
    """

    forcing: float = 0.5

    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: Start | None = None,
        told: Progress | None = None,
        random_state: Any = None,
        before: Solution | None = None,
    ) -> Solution:
        """Solve an objective.

        Parameters
        ----------
        objective, rule, start, told, random_state
            As for :meth:`WorkingSet.solve`.
        before : Solution, default=None
            What another solver did before; its course and work are counted in.

        Returns
        -------
        Solution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> from dualfield.solvers import NewtonCG, StopRule
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(Kernel(), np.eye(4), y, np.ones(4), 2, True, True)
        >>> NewtonCG().solve(problem, StopRule(1e-9)).relative_gap < 1e-9
        True
        """
        both = objective.fits(12)
        matrix = objective.matrix(single=not both)
        rough = objective.matrix(single=True) if both and rule.tol > 1e-10 and objective.size > _TINY else None
        task = _task(objective, rule, start, told, before.trace if before else None, rough)
        return _solution(_native.solve_newton(matrix, task, self.forcing), "newton", before)


@dataclass(frozen=True)
class SMO:
    """Sequential minimal optimisation as the papers describe it, stopped by the duality gap.

    Two classes (Keerthi et al. 2005): the maximal violating pair, an exact step in one variable, a closed box near the
    boundary. More classes (Memisevic 2006, Algorithm 1, corrected): at each point of a random sweep the pair of classes
    that violates the optimality conditions most. Fast for C up to about 100, slow for larger C and wide kernels.

    Parameters
    ----------
    partner : {"auto", "first_order", "second_order"}, default="auto"
        How the second point of a pair is chosen (two classes). "auto" is first order up to C = 100, the best of three
        candidates beyond.
    tau : float, default=0.0
        Stop also when the optimality conditions hold to this tolerance (two classes with a bias); 0: by the gap only.
    repeats : int, default=1
        Pair steps in a row at one point (more classes).

    Examples
    --------
    >>> from dualfield.solvers import SMO
    >>> SMO(partner="second_order").tau
    0.0
    """

    partner: Literal["auto", "first_order", "second_order"] = "auto"
    tau: float = 0.0
    repeats: int = 1

    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: Start | None = None,
        told: Progress | None = None,
        random_state: Any = None,
    ) -> Solution:
        """Solve an objective.

        Parameters
        ----------
        objective, rule, start, told
            As for :meth:`WorkingSet.solve`.
        random_state : int, default=None
            Seed of the sweeps.

        Returns
        -------
        Solution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> from dualfield.solvers import SMO, StopRule
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(Kernel(), np.eye(4), y, np.ones(4), 2, True, True)
        >>> SMO().solve(problem, StopRule(1e-3)).status.value
        'converged'
        """
        second = self.partner == "second_order" or (self.partner == "auto" and float(objective.weights.max()) > 100.0)
        matrix = objective.matrix(single=objective.size > _SMALL and rule.tol > 1e-8)
        task = _task(objective, rule, start, told)
        return _solution(_native.solve_smo(matrix, task, second, self.tau, int(random_state or 0), self.repeats), "smo")


@dataclass(frozen=True)
class Auto:
    """Newton's method on small problems; on larger ones working sets, and Newton's method where they are slow.

    The choice depends on the problem and on counted work, never on the clock: the same data give the same model.

    Examples
    --------
    >>> from dualfield.solvers import Auto
    >>> Auto()
    Auto()
    """

    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: Start | None = None,
        told: Progress | None = None,
        random_state: Any = None,
    ) -> Solution:
        """Solve an objective; see :meth:`WorkingSet.solve`.

        Parameters
        ----------
        objective, rule, start, told, random_state
            As for :meth:`WorkingSet.solve`.

        Returns
        -------
        Solution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> from dualfield.solvers import Auto, StopRule
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(Kernel(), np.eye(4), y, np.ones(4), 2, True, True)
        >>> Auto().solve(problem, StopRule(1e-3)).solver
        'newton'
        """
        fits = objective.fits(4)
        if objective.label_kernel is not None or (objective.size <= _SMALL and objective.fits(12)):
            return NewtonCG().solve(objective, rule, start, told)
        # Recomputed rows make every product of Newton's method as dear as the whole matrix.
        patience = (100.0 if rule.tol >= 1e-4 else 300.0) if fits else np.inf
        first = WorkingSet(patience=patience).solve(objective, rule, start, told)
        if first.status is not Status.TOO_SLOW:
            return first
        return NewtonCG().solve(objective, rule, Start(first.coefficients, first.bias), told, before=first)
