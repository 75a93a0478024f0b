r"""The concave-convex procedure for objectives with latent variables, with a certificate for every step.

An objective with latent variables is a difference of convex functions, R(w) = f(w) - g(w), where g scores the truth
completed by its best latent variables. Replacing g by its tangent at the current weights gives a convex upper bound U
that touches R there; minimising it cannot make R rise (Yu and Joachims 2009).
"""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.objectives.latent import Completion, LatentProblem
from dualfield.solvers.base import Progress, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.latent.records import InnerSolver, LatentSolution, LatentStatus, LatentTrace
from dualfield.solvers.trace import relative_gap

__all__ = ["CCCP"]

_FEW_CHANGES = 0.01  # share of latent variables; below it the inner problems are solved to their final tolerance
_LOOSE = 5.0  # times that tolerance before
_ANNEALED_STEPS, _COLDEST = 5, 0.05


@dataclass(frozen=True)
class CCCP:
    r"""Complete the latent variables, minimise the convex bound that they give, and again.

    .. math::
        U_t(w) = \tfrac{1}{2} \|w\|^2 + \sum_i c_i \max_{y, h} [\langle w, \Phi(x_i, y, h) \rangle + \Delta_i(y, h)]
        - \sum_i c_i \langle w, \Phi(x_i, y_i, h_i^t) \rangle

    with :math:`h^t` the best latent variables of the truth at :math:`w^t`. Then :math:`R(w^{t+1}) \le U_t(w^{t+1}) \le
    U_t(w^t) = R(w^t)`, whatever the inner solver does: the best of its answer and :math:`w^t` is kept. The numbers are
    in the trace.

    Parameters
    ----------
    max_iter : int, default=50
        Most steps.
    tol : float, default=1e-4
        Stop when a step lowers R by at most this times R after the first step.
    inner_tol : float, default=1e-3
        On relative duality gaps of inner problems; five times that while many latent variables still change.
    max_passes : float, default=inf
        Limit on the passes of each inner problem.
    temperature : float, default=0.0
        T of the completion: 0 completes with the best latent variables, 1 with their expectation (hidden-state CRF).
    anneal : bool, default=False
        Whether the first five steps complete softly, with T falling from 1 to 0.05. R is monotone at a fixed T only.

    Examples
    --------
    R(w) = ½w² + max(2w, -w, 1) - |w|: two hidden states score the truth as w and as -w.

    >>> import numpy as np
    >>> from dualfield.solvers import Solution, Status, Trace
    >>> from dualfield.solvers.latent.cccp import CCCP
    >>> from dualfield.objectives.latent import Completion
    >>> class Toy:
    ...     n_parameters = 1
    ...     def loss(self, w):
    ...         return max(2.0 * w[0], -w[0], 1.0)
    ...     def complete(self, w, temperature=0.0):
    ...         side = 1.0 if w[0] >= 0.0 else -1.0
    ...         return Completion(np.array([int(side > 0)]), np.array([side]))
    >>> class OnGrid:
    ...     def minimise(self, completion, start, rule, seed):
    ...         grid = np.linspace(-2.0, 2.0, 4001)
    ...         values = [0.5 * w * w + Toy().loss([w]) - w * completion.features[0] for w in grid]
    ...         best = int(np.argmin(values))
    ...         course = Trace.from_rows(np.array([[values[best], values[best], 0.0, 1.0, 0.0]]))
    ...         return Solution(
    ...             parameters=grid[[best]],
    ...             objective=values[best],
    ...             gap=0.0,
    ...             status=Status.CONVERGED,
    ...             n_iter=1,
    ...             trace=course,
    ...             solver="grid",
    ...         )
    >>> end = CCCP().solve(Toy(), OnGrid(), np.array([-0.1]))
    >>> end.parameters.round(3), round(float(end.objective), 3), end.status.value
    (array([-1.]), 0.5, 'settled')
    """

    max_iter: int = 50
    tol: float = 1e-4
    inner_tol: float = 1e-3
    _: KW_ONLY
    max_passes: float = np.inf
    temperature: float = 0.0
    anneal: bool = False

    def solve(
        self,
        problem: LatentProblem,
        inner: InnerSolver,
        start: Completion | Floats,
        callbacks: Progress | None = None,
        seed: int = 0,
    ) -> LatentSolution:
        """Run from latent variables or from weights to where neither changes.

        Parameters
        ----------
        problem : LatentProblem
            What to minimise.
        inner : InnerSolver
            Minimises the bounds.
        start : Completion or array of shape (n_parameters,)
            Latent variables of the truth, or weights that complete it.
        callbacks : Callbacks or callable, default=None
            Called after each step with the objective, the same less the inner gap, that gap, steps and seconds.
        seed : int, default=0
            For inner solvers that draw examples.

        Returns
        -------
        LatentSolution
            Weights, latent variables and the certificate.

        Examples
        --------
        See :class:`CCCP`.

        >>> from dualfield.solvers.latent.cccp import CCCP
        >>> CCCP(max_iter=3).max_iter
        3
        """
        return _Run(self, problem, inner, start, callbacks, seed).to_the_end()


class _Run:
    """The state of one run."""

    def __init__(
        self,
        settings: CCCP,
        problem: LatentProblem,
        inner: InnerSolver,
        start: Completion | Floats,
        callbacks: Progress | None,
        seed: int,
    ) -> None:
        self._settings, self._problem, self._inner, self._seed = settings, problem, inner, seed
        self._callbacks = Callbacks.of(callbacks)
        self._began, self._passes, self._tight = time.perf_counter(), 0.0, False
        self._w: Floats | None = None
        self._convex, self._reference = np.nan, np.nan
        self._rows: list[tuple[Any, ...]] = []
        if isinstance(start, Completion):
            self._completion = start
        else:
            self._w = np.array(start, dtype=np.float64)
            self._convex = self._first_terms(self._w)
            self._completion = problem.complete(self._w, self._heat(0))

    def to_the_end(self) -> LatentSolution:
        status: LatentStatus | None = None
        while status is None:
            status = self._step(len(self._rows))
        assert self._w is not None
        last, trace = self._rows[-1], LatentTrace.from_rows(self._rows)
        return LatentSolution(
            self._w,
            last[2],
            last[3],
            reached=last[4],
            status=status,
            n_iter=len(self._rows),
            states=self._completion.states,
            trace=trace,
        )

    def _step(self, t: int) -> LatentStatus | None:
        """Make one step from the completion at hand; return how it ended, if it did."""
        heat, now = self._heat(t), self._completion
        if self._w is not None and now.temperature != heat:
            now = self._problem.complete(self._w, heat)
        before = np.nan if self._w is None else self._convex - now.at(self._w)
        rule = StopRule(self._settings.inner_tol * (1.0 if self._tight else _LOOSE), self._settings.max_passes)
        solution = self._inner.minimise(now, self._w, rule, self._seed)
        w, convex = solution.parameters, self._first_terms(solution.parameters)
        if self._w is not None and not convex - now.at(w) < before:  # an inexact answer must not make R rise
            w, convex = self._w, self._convex
        after = convex - now.at(w)
        gap = max(after + now.offset - (solution.objective - solution.gap), 0.0)
        reached = solution.status is Status.CONVERGED or relative_gap(after + now.offset, gap) <= rule.tol
        then = self._problem.complete(w, heat)  # for a start from latent variables R is below that tangent, too
        objective, changed = convex - then.at(w), int(np.count_nonzero(then.states != now.states))
        self._passes += float(solution.trace.passes[-1])
        row = (before, after, objective, gap, reached, changed, heat, self._passes, self._seconds())
        self._rows.append(row)
        self._callbacks(objective, objective - gap, gap, float(t + 1), self._seconds())
        self._w, self._convex, self._completion = w, convex, then
        if solution.status is Status.INTERRUPTED:
            return LatentStatus.INTERRUPTED
        return self._end(t, changed)

    def _end(self, t: int, changed: int) -> LatentStatus | None:
        """Decide whether to stop; never before an inner problem was solved to its final tolerance."""
        before, _, objective, *_ = self._rows[-1]
        was_tight, self._tight = self._tight, self._tight or changed <= _FEW_CHANGES * self._completion.states.size
        if np.isnan(self._reference):
            self._reference = objective
        status: LatentStatus | None = None
        if self._heat(t) == self._heat(t + 1) == self._settings.temperature:
            # At T > 0 the expectations may move while the best latent variables stay.
            if changed == 0 and self._settings.temperature == 0.0:
                status = LatentStatus.SETTLED
            elif before - objective <= self._settings.tol * abs(self._reference):  # never where before is NaN
                status = LatentStatus.SMALL_STEP
        if status is not None and not was_tight:
            self._tight, status = True, None
        if status is None and t + 1 >= self._settings.max_iter:
            return LatentStatus.ITERATION_LIMIT
        return status

    def _heat(self, t: int) -> float:
        """Return the temperature of a step."""
        if not self._settings.anneal or t >= _ANNEALED_STEPS:
            return self._settings.temperature
        return float(_COLDEST ** (t / (_ANNEALED_STEPS - 1)))

    def _first_terms(self, w: Floats) -> float:
        return 0.5 * float(w @ w) + self._problem.loss(w)

    def _seconds(self) -> float:
        return time.perf_counter() - self._began
