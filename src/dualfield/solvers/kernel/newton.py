"""Truncated Newton for kernel machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualfield import _native
from dualfield.objectives import KernelSoftmax
from dualfield.solvers.base import KernelPoint, Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.kernel.tasks import Stage, kernel_solution, kernel_task, solve_certified
from dualfield.solvers.needs import Need, kernel_machine
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["NewtonCG"]

# Up to here a copy of the matrix in single precision does not pay.
_TINY = 500


@register
@dataclass(frozen=True)
class NewtonCG(Solver):
    """Truncated Newton: conjugate gradients in the space of the weights, bias eliminated.

    The most robust solver: large C, wide kernels, label kernels. Scores and gap are in double precision where both
    matrices fit the budget (12 n² bytes), else everything is in single precision (4 n² bytes) until that is not enough.

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

    name: ClassVar[str] = "newton"
    needs: ClassVar[tuple[Need, ...]] = (kernel_machine,)

    forcing: float = 0.5

    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: KernelPoint | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[KernelPoint]:
        """Solve an objective.

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
        >>> from dualfield.solvers import NewtonCG, StopRule
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(
        ...     Kernel(), np.eye(4), y, weights=np.ones(4), n_classes=2, with_bias=True, pinned=True
        ... )
        >>> NewtonCG().solve(problem, StopRule(1e-9)).relative_gap < 1e-9
        True
        """
        suited(self, objective)

        def run(single: bool, stage: Stage) -> Solution[KernelPoint]:
            both = not single and objective.fits(12) and rule.tol > 1e-10 and objective.size > _TINY
            rough = objective.matrix(single=True) if both else None
            task = kernel_task(objective, stage, rough)
            return kernel_solution(_native.solve_newton(objective.matrix(single=single), task, self.forcing), self.name)

        first = Stage(start, rule, Callbacks.of(callbacks))
        return solve_certified(objective, run, first, single=not objective.fits(12))
