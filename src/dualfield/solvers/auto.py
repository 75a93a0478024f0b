"""The choice of a solver, by the problem and by counted work, never by the clock: the same data give the same model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.objectives import ChainLoss, KernelSoftmax
from dualfield.solvers.base import KernelPoint, Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.dual.block_dual import BlockDual
from dualfield.solvers.kernel.newton import NewtonCG
from dualfield.solvers.kernel.tasks import SMALL
from dualfield.solvers.kernel.working_set import WorkingSet
from dualfield.solvers.primal.lbfgs import LBFGS
from dualfield.solvers.primal.relay import ChainSolver, solve_in_turn

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
        start: KernelPoint | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[KernelPoint]:
        """Solve an objective; see :meth:`WorkingSet.solve`.

        Parameters
        ----------
        objective, rule, start, callbacks, random_state
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
            return NewtonCG().solve(objective, rule, start, callbacks)
        # Recomputed rows make every product of Newton's method as dear as the whole matrix.
        patience = (100.0 if rule.tol >= 1e-4 else 300.0) if fits else np.inf
        first = WorkingSet(patience=patience).solve(objective, rule, start, callbacks)
        if first.status is not Status.TOO_SLOW and (first.status is not Status.STALLED or not fits):
            return first
        end = first.trace.end
        later = Callbacks.of(callbacks).later(end.passes, end.seconds)
        return NewtonCG().solve(objective, rule.after(first.trace), first.parameters, later).after(first)


def takes_newton(objective: KernelSoftmax) -> bool:
    """Return whether :class:`Auto` solves a problem by Newton's method from the beginning."""
    return objective.label_kernel is not None or (objective.size <= SMALL and objective.fits(12))


@dataclass(frozen=True)
class AutoLinear:
    """Block dual ascent where it can take the problem; L-BFGS where it cannot, stalls or would take hundreds of passes.

    A start that is worse than weights of zero is dropped, and where a fit from a start does not converge, another one
    begins without it: the result is never worse than that of a fit without a start, nor than weights of zero.

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
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective.

        Parameters
        ----------
        objective, rule, start, callbacks, random_state
            As for :meth:`BlockDual.solve`.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
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
        turns: list[ChainSolver] = [LBFGS()]
        if block_dual.missing(objective, rule.tol) is None:
            turns.insert(0, block_dual)
        return solve_in_turn(turns, objective, rule, start, callbacks, random_state)
