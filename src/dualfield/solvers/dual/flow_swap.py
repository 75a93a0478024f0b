"""Swaps of mass between labellings: the hinge on chains, trees and graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.objectives import Objective, StreamedObjective
from dualfield.solvers.base import Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.dual.native_solution import native_solution
from dualfield.solvers.dual.streamed import solve_streamed
from dualfield.solvers.needs import (
    Need,
    all_labels,
    first_order,
    free_signs,
    native_losses,
    no_pair_features,
    squared_norm,
    swappable,
    zero_temperature,
)
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["FlowSwap"]


@register
@dataclass(frozen=True)
class FlowSwap(Solver):
    """Dual ascent for the hinge: mass moves from bad labellings to good ones, segment by segment.

    The dual point of an example is kept as the masses of the few label pairs that have any; on trees and graphs of the
    few labellings of each clique of its junction tree, and segments are nodes that hang together there. Most of the
    work is done among labels that have mass already; all labels are looked at only where a certificate has shown that
    this is needed. Needs chains of order 1 without features of label pairs, single nodes, or trees or graphs with exact
    answers; T = 0, examples with all their labels, no penalty on absolute values. Memory: about 32 bytes for each node,
    twice that on trees and graphs, and 12 for each feature of a label that competes. The ascent runs on one thread, so
    that it does not depend on their number; certificates use all of them. On a compiled corpus blocks of sentences are
    visited in a new random order at every pass, and the flows are in a file.

    Examples
    --------
    >>> from dualfield.solvers import FlowSwap
    >>> FlowSwap()
    FlowSwap()
    """

    name: ClassVar[str] = "flow_swap"
    needs: ClassVar[tuple[Need, ...]] = (
        native_losses,
        zero_temperature,
        squared_norm,
        free_signs,
        all_labels,
        swappable,
    )

    def missing(self, objective: Any) -> str | None:
        """Say what an objective has that this solver cannot take.

        Parameters
        ----------
        objective : Objective or StreamedObjective
            What is to be minimised.

        Returns
        -------
        str or None
            A sentence; None if nothing is missing.

        Examples
        --------
        >>> from dualfield.solvers import FlowSwap, prototypes
        >>> FlowSwap().missing(prototypes.objective(temperature=1.0))
        'It has a temperature above zero: it is not the hinge.'
        """
        if isinstance(objective, StreamedObjective):
            of_chains = (zero_temperature, squared_norm, free_signs, no_pair_features, first_order)
            return next((reason for need in of_chains if (reason := need(objective)) is not None), None)
        return super().missing(objective)

    def solve(
        self,
        objective: Objective | StreamedObjective,
        rule: StopRule,
        start: Floats | Solution[Floats] | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective.

        Parameters
        ----------
        objective : Objective or StreamedObjective
            What to minimise, with T = 0.
        rule : StopRule
            When to stop.
        start : array of shape (n_parameters,) or Solution, default=None
            Weights that the result must not be worse than. A solution for the same inputs, whatever the labels were,
            also has the flow to begin with, its ``dual``; otherwise flows begin at the true labellings.
        callbacks : Callbacks or callable, default=None
            Called after each pass with objective, dual, gap, passes and seconds.
        random_state : int, default=None
            Seed of the order of the examples.

        Returns
        -------
        Solution[Floats]
            The point, its gap, the course, and the flow as ``dual``.

        Examples
        --------
        >>> from dualfield.solvers import FlowSwap, StopRule, prototypes
        >>> solution = FlowSwap().solve(prototypes.objective(temperature=0.0), StopRule(1e-6))
        >>> solution.status.value, round(solution.objective, 6)
        ('converged', 0.25)
        """
        suited(self, objective)
        if isinstance(objective, StreamedObjective):
            begin = start.parameters if isinstance(start, Solution) else start
            return solve_streamed(objective, rule, begin, Callbacks.of(callbacks), random_state or 0, self)
        flow = start.dual if isinstance(start, Solution) else None
        result: Any = _native.solve_flow_swap(
            objective.native,
            start.parameters if isinstance(start, Solution) else start,
            None if flow is None else dict[str, object](flow),
            rule.tol,
            rule.max_passes,
            random_state or 0,
            objective.n_threads,
            Callbacks.of(callbacks),
        )
        point, dual = result
        return native_solution(point, self.name, dual)
