"""L-BFGS on the parameters of an objective."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dualfield.objectives import ChainLoss, KernelSoftmax
from dualfield.solvers.base import LinearSolution, Progress, Solution, Start, Status, StopRule, Trace, relative_gap
from dualfield.solvers.quasi_newton import LimitedMemory
from dualfield.solvers.representer import solve_representer

__all__ = ["LBFGS"]

Floats = NDArray[np.float64]
_NOTHING = 1e-14  # a gap of rounding alone, where there is nothing to lose


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS on the primal; OWL-QN where absolute values are penalised.

    For chains: every objective, partly labelled examples and features of label pairs included; gradients use all
    threads. Memory: 2 ``memory`` + 6 vectors of parameters. For kernel machines (Keerthi et al. 2005, eq. 1.5) it is
    badly conditioned for large C, and here to compare with; memory 8 n² bytes. The duality gap is exact in both cases.

    Parameters
    ----------
    memory : int, default=10
        Pairs of vectors kept.

    Examples
    --------
    >>> from dualfield.solvers import LBFGS
    >>> LBFGS(memory=20).memory
    20
    """

    memory: int = 10

    @overload
    def solve(
        self,
        objective: ChainLoss,
        rule: StopRule,
        start: Floats | None = None,
        told: Progress | None = None,
        random_state: Any = None,
    ) -> LinearSolution: ...
    @overload
    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: Start | None = None,
        told: Progress | None = None,
        random_state: Any = None,
    ) -> Solution: ...
    def solve(
        self,
        objective: Any,
        rule: StopRule,
        start: Any = None,
        told: Progress | None = None,
        random_state: Any = None,
    ) -> Any:
        """Solve an objective.

        Parameters
        ----------
        objective : ChainLoss or KernelSoftmax
            What to minimise.
        rule : StopRule
            When to stop.
        start : array or Start, default=None
            Where to begin.
        told : callable, default=None
            Told of the course.
        random_state : None
            Not used.

        Returns
        -------
        LinearSolution or Solution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> from dualfield.solvers import LBFGS, StopRule
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(Kernel(), np.eye(4), y, np.ones(4), 2, True, True)
        >>> LBFGS().solve(problem, StopRule(1e-6)).status.value
        'converged'
        """
        if isinstance(objective, KernelSoftmax):
            return solve_representer(objective, rule, start, told, self.memory)
        # Long inner products on many BLAS threads gain little, lose much on a busy machine, and differ in the last bit.
        with threadpool_limits(1, user_api="blas"):
            return _solve_chain(objective, rule, start, told, self.memory)


def _solve_chain(
    objective: ChainLoss, rule: StopRule, start: Floats | None, told: Progress | None, memory: int
) -> LinearSolution:
    ridge, began, rows = 1.0 - objective.l1_ratio, time.perf_counter(), []
    certificates: dict[int, float] = {}

    def evaluate(w: Floats) -> tuple[float, Floats]:
        loss, gradient = objective.loss_and_gradient(w)
        value, gap = objective.gap(w, loss, gradient)
        gradient += ridge * w
        certificates.clear()
        certificates[id(gradient)] = gap
        return value, gradient

    def gap_at(run: LimitedMemory) -> float:
        # The last evaluation is nearly always that of the point; a search that fell back gives another.
        known = certificates.get(id(run.point.gradient))
        return objective.certify(run.point.x)[1] if known is None else known

    first = np.zeros(objective.n_parameters) if start is None else start
    run = LimitedMemory(evaluate, first, memory, objective.l1_ratio)
    n_iter, best, dual, gap = 0, run.point, -np.inf, np.inf
    status: Status | None = None
    while status is None:
        try:
            if run.point.value <= best.value:
                best = run.point
            # Every point has a dual one, and each of them bounds the minimum: the best of both sides counts.
            found = run.point.value - gap_at(run)
            dual = max(dual, found) if objective.convex else float("nan")
            gap = max(best.value - dual, 0.0) if objective.convex else float("nan")
            rows.append((best.value, dual, gap, float(run.n_evaluations), time.perf_counter() - began))
            if told is not None:
                told(*rows[-1])
            # Without a gap, where the problem is not convex, the gradient must vanish beside the value.
            small = (
                relative_gap(best.value, gap) <= rule.tol or gap <= _NOTHING
                if objective.convex
                else float(np.linalg.norm(run.point.gradient)) <= rule.tol * max(1.0, abs(run.point.value))
            )
            if small:
                status = Status.CONVERGED
            elif run.n_evaluations >= rule.max_passes:
                status = Status.ITERATION_LIMIT
            elif run.step():
                n_iter += 1
            else:
                status = Status.STALLED
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
    if not rows:  # interrupted at once
        rows.append((best.value, dual, gap, float(run.n_evaluations), time.perf_counter() - began))
    return LinearSolution(best.x, best.value, gap, status, max(1, n_iter), Trace.from_rows(np.array(rows)), "lbfgs")
