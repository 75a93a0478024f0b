"""Tables of nodes and edges that agree in the end: the hinge on the local polytope of wide graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.objectives import Objective
from dualfield.solvers.base import Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.dual.native_solution import native_solution
from dualfield.solvers.needs import (
    Need,
    all_labels,
    free_signs,
    native_losses,
    relaxed_graph,
    squared_norm,
    zero_temperature,
)
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["LocalBlocks"]


@register
@dataclass(frozen=True)
class LocalBlocks(Solver):
    """Dual ascent for the hinge on graphs that are too wide, node by node and edge by edge.

    Where the structure is a relaxation, the loss of an example is a maximum over the local polytope L: tables of edges
    that sum up to those of their nodes. The dual point has such tables, each a point of its own simplex, and
    multipliers for what edges and nodes do not agree on (an augmented Lagrangian, Meshi et al. 2010, Martins et al.
    2015). A visit moves mass within each table of an example, then its multipliers; nothing is inferred to the end. The
    certificate rounds the tables into L, and bounds each loss by sweeps of TRW-S that begin at the multipliers, or at
    nothing, whichever is lower: its gap is valid at any time.

    Needs T = 0, examples with all their labels, no penalty on absolute values. Large C with few features makes it slow.
    Memory: 8 bytes for each label of a node and pair of labels of an edge, and 32 for each edge and label; within
    `memory`. The ascent runs on one thread, so that it does not depend on their number; certificates use all of them.

    Parameters
    ----------
    memory : float, default=4e9
        Bytes that its state may take.

    Examples
    --------
    >>> from dualfield import StructuredSVM
    >>> from dualfield.solvers import LocalBlocks
    >>> StructuredSVM("graph", solver=LocalBlocks(memory=1e9)).solver.memory
    1000000000.0
    """

    name: ClassVar[str] = "local_blocks"
    needs: ClassVar[tuple[Need, ...]] = (
        native_losses,
        zero_temperature,
        squared_norm,
        free_signs,
        all_labels,
        relaxed_graph,
    )

    memory: float = 4e9

    def missing(self, objective: Any) -> str | None:
        """Say what an objective has that this solver cannot take.

        Parameters
        ----------
        objective : Objective
            What is to be minimised.

        Returns
        -------
        str or None
            A sentence; None if nothing is missing.

        Examples
        --------
        >>> from dualfield.solvers import LocalBlocks, prototypes
        >>> LocalBlocks().missing(prototypes.objective(temperature=0.0))
        "Its structure is a Chain, which has exact answers: this solver is for graphs with inference='trw'."
        """
        reason = super().missing(objective)
        if reason is not None:
            return reason
        needed = _native.local_blocks_bytes(objective.native)
        if needed > self.memory:
            return f"The tables of the dual take {needed / 1e9:.1f} GB, more than the {self.memory / 1e9:.1f} allowed."
        return None

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
            What to minimise, with T = 0, on a relaxation.
        rule : StopRule
            When to stop.
        start : array of shape (n_parameters,), default=None
            Weights that the result must not be worse than; tables begin at the true labellings.
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
        >>> from dualfield.solvers import LocalBlocks, StopRule, prototypes
        >>> solution = LocalBlocks().solve(prototypes.relaxed_hinge(), StopRule(1e-6))
        >>> solution.status.value, round(solution.objective, 4)
        ('converged', 0.2)
        """
        suited(self, objective)
        result: Any = _native.solve_local_blocks(
            objective.native,
            start,
            rule.tol,
            rule.max_passes,
            random_state or 0,
            objective.n_threads,
            Callbacks.of(callbacks),
        )
        return native_solution(result, self.name)
