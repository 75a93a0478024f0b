"""The choice of a solver, by the problem and by counted work, never by the clock: the same data give the same model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.objectives import ChainLoss, KernelSoftmax
from dualfield.solvers.base import LinearSolution, Progress, Solution, Start, Status, StopRule, Trace
from dualfield.solvers.block_dual import BlockDual
from dualfield.solvers.course import PassEnd, State
from dualfield.solvers.kept_state import kept_count, kept_rows
from dualfield.solvers.kernel_tasks import SMALL
from dualfield.solvers.lbfgs import LBFGS
from dualfield.solvers.newton import NewtonCG
from dualfield.solvers.working_set import WorkingSet

__all__ = ["Auto", "AutoLinear"]

Floats = NDArray[np.float64]
_PATIENCE = 400.0  # passes of the block dual; L-BFGS, whose gap is coarser, seldom needs more


@dataclass(frozen=True)
class Auto:
    """Newton's method on small problems; on larger ones working sets, and Newton's method where they are slow or stall.

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
        if takes_newton(objective):
            return NewtonCG().solve(objective, rule, start, told)
        # Recomputed rows make every product of Newton's method as dear as the whole matrix.
        patience = (100.0 if rule.tol >= 1e-4 else 300.0) if fits else np.inf
        first = WorkingSet(patience=patience).solve(objective, rule, start, told)
        if first.status is not Status.TOO_SLOW and (first.status is not Status.STALLED or not fits):
            return first
        return NewtonCG().solve(objective, rule, Start(first.coefficients, first.bias), told, before=first)


def takes_newton(objective: KernelSoftmax) -> bool:
    """Return whether :class:`Auto` solves a problem by Newton's method from the beginning."""
    return objective.label_kernel is not None or (objective.size <= SMALL and objective.fits(12))


@dataclass(frozen=True)
class AutoLinear:
    """Block dual ascent where it can take the problem, L-BFGS where it cannot or would take hundreds of passes.

    Examples
    --------
    >>> from dualfield.solvers import AutoLinear
    >>> AutoLinear()
    AutoLinear()
    """

    def solve(
        self,
        objective: ChainLoss,
        rule: StopRule,
        start: Floats | None = None,
        told: Progress | None = None,
        random_state: Any = None,
    ) -> LinearSolution:
        """Solve an objective.

        Parameters
        ----------
        objective, rule, start, told, random_state
            As for :meth:`BlockDual.solve`.

        Returns
        -------
        LinearSolution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.batch import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.solvers import AutoLinear, StopRule
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> data = score_map.bind(Batch.build([np.ones((1, 1))]), labels=np.zeros(1, np.int32), weights=np.ones(1))
        >>> AutoLinear().solve(ChainLoss(score_map, data, l1_ratio=0.5), StopRule(1e-6)).solver
        'lbfgs'
        """
        block_dual = BlockDual(patience=_PATIENCE)
        if block_dual.missing(objective, rule.tol) is not None:
            return LBFGS().solve(objective, rule, start, told)
        resume: State | None = getattr(told, "resume", None)
        if resume is not None and "rows_before" in resume:
            before = _Before(kept_rows(resume, "rows_before"), kept_count(resume, "n_iter_before"))
        else:
            first = block_dual.solve(objective, rule, start, told, random_state)
            if first.status is not Status.TOO_SLOW:
                return first
            before, start, resume = _Before(first.trace.rows(), first.n_iter), first.parameters, None
        rest = StopRule(rule.tol, max(rule.max_passes - before.rows[-1][3], 1.0))
        second = LBFGS().solve(objective, rest, start, _SecondStage(told, before, resume))
        course = Trace.from_rows(np.concatenate([before.rows, second.trace.rows() + before.shift]))
        return replace(second, n_iter=before.n_iter + second.n_iter, trace=course)


class _Before(NamedTuple):
    """The course of the solver that gave up."""

    rows: Floats
    n_iter: int

    @property
    def shift(self) -> Floats:
        """What is to be added to rows of the next solver."""
        return np.array([0.0, 0.0, 0.0, self.rows[-1][3], self.rows[-1][4]])


class _SecondStage:
    """Tells of the second solver as if both were one."""

    def __init__(self, told: Progress | None, before: _Before, resume: State | None) -> None:
        self._told, self._before, self.resume = told, before, resume
        self._pass_end = getattr(told, "pass_end", None)
        self.pass_end = None if self._pass_end is None else self._tell_pass_end

    def __call__(self, *row: float) -> None:
        if self._told is not None:
            self._told(*(np.array(row) + self._before.shift).tolist())

    def _tell_pass_end(self, end: PassEnd) -> bool:
        assert self._pass_end is not None
        return bool(self._pass_end(_LaterPassEnd(end, self._before)))


class _LaterPassEnd:
    def __init__(self, end: PassEnd, before: _Before) -> None:
        self._end, self._before = end, before

    def progress(self) -> tuple[float, float, float, float, float]:
        objective, dual, gap, passes, seconds = (np.array(self._end.progress()) + self._before.shift).tolist()
        return objective, dual, gap, passes, seconds

    def parameters(self) -> Floats:
        return self._end.parameters()

    def state(self) -> State:
        n_iter = np.array([self._before.n_iter], dtype=np.uint64)
        return {**self._end.state(), "rows_before": self._before.rows, "n_iter_before": n_iter}
