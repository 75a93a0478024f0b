"""Block dual ascent for linear scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.objectives import Objective, StreamedObjective
from dualfield.solvers.base import Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.dual.native_solution import native_solution
from dualfield.solvers.dual.streamed import solve_streamed
from dualfield.solvers.needs import Need, all_labels, elastic_net, native_losses, positive_temperature
from dualfield.solvers.registry import refusal, register
from dualfield.solvers.solver import Solver

__all__ = ["BlockDual"]


@register
@dataclass(frozen=True)
class BlockDual(Solver):
    """Dual ascent example by example, with exponentiated gradients.

    Needs the log-loss (any temperature above zero, any cost) and examples with all their labels. With a penalty on
    absolute values the weights are those of the dual, shrunk, with exact zeros; where the penalty on squares is weak, a
    proximal term helps, whose centre follows the weights. For absolute values alone (``l1_ratio=1``) the bound is less
    sharp, and a small gap takes several times the passes. Memory: 8 bytes for each node and label and for each example
    and label pair, also for each edge and label pair where pairs have features; 16 for tolerances below 2e-6 and with a
    proximal term; within `memory`. The ascent runs on one thread, so that it does not depend on their number;
    certificates use all of them. On a compiled corpus blocks of sentences are visited in a new random order at every
    pass, within the memory of the fit; the state is in a file.

    Parameters
    ----------
    memory : float, default=4e9
        Bytes that its state may take; for a compiled corpus the fit says it.
    patience : float, default=inf
        Give up where more passes than this are expected.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.solvers import BlockDual
    >>> CRF(solver=BlockDual(memory=1e9)).solver.memory
    1000000000.0
    """

    name: ClassVar[str] = "block_dual"
    needs: ClassVar[tuple[Need, ...]] = (
        native_losses,
        positive_temperature,
        elastic_net,
        all_labels,
    )

    memory: float = 4e9
    patience: float = np.inf

    def missing(self, objective: Objective | StreamedObjective, tol: float = 1e-4) -> str | None:
        """Say what an objective has that this solver cannot take.

        Parameters
        ----------
        objective : Objective or StreamedObjective
            What is to be minimised.
        tol : float, default=1e-4
            How far: below 2e-6 the state takes twice the memory.

        Returns
        -------
        str or None
            A sentence; None if nothing is missing.

        Examples
        --------
        >>> from dualfield.solvers import BlockDual, prototypes
        >>> BlockDual().missing(prototypes.objective(temperature=0.0))
        'Its temperature is zero: it is the hinge.'
        """
        if isinstance(objective, StreamedObjective):
            return positive_temperature(objective) or elastic_net(objective)
        reason = super().missing(objective)
        if reason is not None:
            return reason
        needed = _native.block_dual_bytes(objective.native, tol, objective.regulariser.l1_ratio or 0.0)
        if needed > self.memory:
            return f"The state of the dual takes {needed / 1e9:.1f} GB, more than the {self.memory / 1e9:.1f} allowed."
        return None

    def solve(
        self,
        objective: Objective | StreamedObjective,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective.

        Parameters
        ----------
        objective : Objective or StreamedObjective
            What to minimise.
        rule : StopRule
            When to stop.
        start : array of shape (n_parameters,), default=None
            Begin with the labellings that these parameters make likely; None: with the true ones.
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
        >>> from dualfield.solvers import BlockDual, StopRule, prototypes
        >>> BlockDual().solve(prototypes.objective(temperature=1.0), StopRule(1e-6)).status.value
        'converged'
        """
        reason = self.missing(objective, rule.tol)
        if reason is not None:
            raise refusal(self, reason, objective)
        if isinstance(objective, StreamedObjective):
            return solve_streamed(objective, rule, start, Callbacks.of(callbacks), random_state or 0, self)
        result: Any = _native.solve_block_dual(
            objective.native,
            start,
            rule.tol,
            rule.max_passes,
            random_state or 0,
            objective.n_threads,
            min(self.patience, 1e300),
            objective.regulariser.l1_ratio or 0.0,
            Callbacks.of(callbacks),
        )
        return native_solution(result, self.name)
