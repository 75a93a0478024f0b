"""Swaps of mass between labellings: the hinge on chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.objectives import ChainLoss
from dualfield.solvers.base import Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.trace import Trace

__all__ = ["FlowSwap"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FlowSwap:
    """Dual ascent for the hinge on chains: mass moves from bad labellings to good ones, segment by segment.

    The dual point of an example is kept as the masses of the few label pairs that have any. Most of the work is done
    among labels that have mass already; all labels are looked at only where a certificate has shown that this is
    needed. Needs chains of order 1 or single nodes, T = 0, examples with all their labels, no penalty on absolute
    values, no features of label pairs. Memory: about 32 bytes for each node and 12 for each feature of a label that
    competes. The ascent runs on one thread, so that it does not depend on their number; certificates use all of them.

    Examples
    --------
    >>> from dualfield.solvers import FlowSwap
    >>> FlowSwap()
    FlowSwap()
    """

    def missing(self, objective: ChainLoss) -> str | None:
        """Say what an objective has that this solver cannot take.

        Parameters
        ----------
        objective : ChainLoss
            What is to be minimised.

        Returns
        -------
        str or None
            A sentence; None if nothing is missing.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.solvers import FlowSwap
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> data = score_map.bind(Batch.build([np.ones((1, 1))]), labels=np.zeros(1, np.int32), weights=np.ones(1))
        >>> FlowSwap().missing(ChainLoss(score_map, data))
        'It has a temperature above zero: it is not the hinge.'
        """
        if objective.data.temperature > 0.0:
            return "It has a temperature above zero: it is not the hinge."
        if objective.l1_ratio > 0:
            return "It penalises absolute values (l1_ratio > 0)."
        if not objective.convex:
            return "Some examples are labelled only in part."
        if objective.score_map.pair is not None:
            return "Features score pairs of labels (pair_features)."
        if objective.score_map.chain.order != 1:
            return f"The chain has order {objective.score_map.chain.order}."
        return None

    def solve(
        self,
        objective: ChainLoss,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
        flow: dict[str, NDArray[Any]] | None = None,
    ) -> Solution[Floats]:
        """Solve an objective.

        Parameters
        ----------
        objective : ChainLoss
            What to minimise, with T = 0.
        rule : StopRule
            When to stop.
        start : array of shape (n_parameters,), default=None
            Weights that the result must not be worse than.
        callbacks : Callbacks or callable, default=None
            Called after each pass with objective, dual, gap, passes and seconds.
        random_state : int, default=None
            Seed of the order of the examples.
        flow : dict, default=None
            The ``dual`` of an earlier solution for the same inputs, whatever the labels were: where to begin. None: at
            the true labellings.

        Returns
        -------
        Solution[Floats]
            The point, its gap, the course, and the flow as ``dual``.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.solvers import FlowSwap, StopRule
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> batch, cost = Batch.build([np.ones((1, 1))]), 1.0 - np.eye(2)
        >>> data = score_map.bind(batch, None, np.zeros(1, np.int32), np.ones(1), cost, temperature=0.0)
        >>> solution = FlowSwap().solve(ChainLoss(score_map, data), StopRule(1e-6))
        >>> solution.status.value, round(solution.objective, 6)
        ('converged', 0.25)
        """
        reason = self.missing(objective)
        if reason is not None:
            raise ValueError(f"solver='flow_swap' cannot take this problem. {reason}")
        result: Any = _native.solve_flow_swap(
            objective.data,
            start,
            None if flow is None else dict[str, object](flow),
            rule.tol,
            rule.max_passes,
            random_state or 0,
            objective.n_threads,
            Callbacks.of(callbacks),
        )
        (parameters, value, gap, outcome, n_iter, rows), dual = result
        return Solution(
            parameters=parameters,
            objective=value,
            gap=gap,
            status=Status(outcome),
            n_iter=n_iter,
            trace=Trace.from_rows(rows),
            solver="flow_swap",
            dual=dual,
        )
