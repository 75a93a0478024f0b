"""Mixtures of labellings: the hinge on any structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.objectives import Objective
from dualfield.solvers.base import Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.dual.native_solution import native_solution
from dualfield.solvers.needs import Need, all_labels, free_signs, native_losses, squared_norm, zero_temperature
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["PathBlocks"]


@register
@dataclass(frozen=True)
class PathBlocks(Solver):
    """Dual ascent for the hinge, example by example, on any structure that can name its best labelling.

    The dual point of an example is a mixture of labellings that the structure has returned. A visit asks for the best
    one and moves mass to it from the worst one that has some, then goes on among those it has (pairwise Frank-Wolfe
    steps). Needs T = 0, examples with all their labels, no penalty on absolute values. Memory: 4 bytes for each node of
    each labelling that has mass. For chains of order 1, trees
    and graphs :class:`FlowSwap` is much faster. The ascent runs on one thread; certificates use all of them.

    Examples
    --------
    >>> from dualfield.solvers import PathBlocks
    >>> PathBlocks()
    PathBlocks()
    """

    name: ClassVar[str] = "path_blocks"
    needs: ClassVar[tuple[Need, ...]] = (native_losses, zero_temperature, squared_norm, free_signs, all_labels)

    def solve(
        self,
        objective: Objective,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective.

        Parameters
        ----------
        objective : Objective
            What to minimise, with T = 0.
        rule : StopRule
            When to stop.
        start : array of shape (n_parameters,), default=None
            Weights that the result must not be worse than; mixtures begin at the true labellings.
        callbacks : Callbacks or callable, default=None
            Called after each pass with objective, dual, gap, passes and seconds.
        random_state : int, default=None
            Seed of the order of the examples.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.

        Examples
        --------
        >>> from dualfield.solvers import PathBlocks, StopRule, prototypes
        >>> solution = PathBlocks().solve(prototypes.objective(temperature=0.0), StopRule(1e-6))
        >>> solution.status.value, round(solution.objective, 6)
        ('converged', 0.25)
        """
        suited(self, objective)
        result: Any = _native.solve_path_blocks(
            objective.native,
            start,
            rule.tol,
            rule.max_passes,
            random_state or 0,
            objective.n_threads,
            Callbacks.of(callbacks),
        )
        return native_solution(result, self.name)
