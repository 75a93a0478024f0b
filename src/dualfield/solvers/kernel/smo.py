"""Sequential minimal optimisation for kernel machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from dualfield import _native
from dualfield.objectives import KernelSoftmax
from dualfield.solvers.base import KernelPoint, Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.kernel.tasks import SMALL, TRUSTED, Stage, kernel_solution, kernel_task, solve_certified
from dualfield.solvers.needs import Need, kernel_machine
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["SMO"]


@register
@dataclass(frozen=True)
class SMO(Solver):
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

    name: ClassVar[str] = "smo"
    needs: ClassVar[tuple[Need, ...]] = (kernel_machine,)

    partner: Literal["auto", "first_order", "second_order"] = "auto"
    tau: float = 0.0
    repeats: int = 1

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
        objective, rule, start, callbacks
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
        >>> problem = KernelSoftmax(
        ...     Kernel(), np.eye(4), y, weights=np.ones(4), n_classes=2, with_bias=True, pinned=True
        ... )
        >>> SMO().solve(problem, StopRule(1e-3)).status.value
        'converged'
        """
        suited(self, objective)
        second = self.partner == "second_order" or (self.partner == "auto" and float(objective.weights.max()) > 100.0)
        seed = int(random_state or 0)

        def run(single: bool, stage: Stage) -> Solution[KernelPoint]:
            matrix, task = objective.matrix(single=single), kernel_task(objective, stage)
            return kernel_solution(_native.solve_smo(matrix, task, second, self.tau, seed, self.repeats), self.name)

        first = Stage(start, rule, Callbacks.of(callbacks))
        single = objective.size > SMALL and rule.tol >= TRUSTED
        return solve_certified(objective, run, first, single=single, is_enough=self.tau > 0.0)
