"""The objective of labels with sub-states, as the concave-convex procedure sees it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch
from dualfield.data.arrays import Floats
from dualfield.losses import Loss
from dualfield.objectives.examples import Examples
from dualfield.objectives.latent import Completion
from dualfield.objectives.objective import Objective
from dualfield.objectives.part_features import PartFeatures
from dualfield.scores import LinearScores
from dualfield.structures import Scores

States = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class StateProblem:
    r"""Labellings by states z of which training knows the labels: sets of allowed states.

    .. math::
        R(w) = \tfrac{1}{2} \|w\|^2 + \sum_i c_i [ M_T(A_i w + \Delta_i) - M_{T'}(A_i w \mid \mathrm{allowed}) ]

    with T = T' = 0 for the latent structural SVM and 1 for the hidden-state CRF. The cost of a state is that of its
    label, so the states of the true label cost nothing. Where a node has several allowed labels, it is the least over
    them: the cost must not depend on the completion, which R would not be a difference of convex functions with.

    Parameters
    ----------
    nodes, pairs : Batch
        Features of nodes, and those of pairs of labels if there are any.
    score_map : LinearScores
        Over states.
    allowed : bool array of shape (n_nodes, n_states)
        The states of the true labels.
    weights : array of shape (n_examples,)
        c_i.
    cost : array of shape (n_states, n_states), default=None
        Cost of a state (column) where another is true (row).
    is_open : bool, default=False
        Whether nodes have several allowed labels.
    temperature : float, default=0.0
        T of the first term.
    n_threads : int, default=1
        Number of threads.
    """

    nodes: Batch
    pairs: Batch | None
    score_map: LinearScores
    _: KW_ONLY
    allowed: NDArray[np.bool_]
    weights: Floats
    cost: Floats | None = None
    is_open: bool = False
    temperature: float = 0.0
    n_threads: int = 1

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self.score_map.n_parameters

    def objective(
        self, states: States, *, allowed: bool = False, temperature: float | None = None, cost: bool = True
    ) -> Objective:
        """Return the losses with completed truth, or with the allowed states in its place."""
        heat = self.temperature if temperature is None else temperature
        examples = Examples(
            nodes=self.nodes,
            pairs=self.pairs,
            labels=np.ascontiguousarray(states, dtype=np.int32),
            weights=self.weights,
            allowed=self.allowed if allowed else None,
        )
        return Objective(self.score_map, examples, Loss(heat, self.cost if cost else None), n_threads=self.n_threads)

    def loss_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return the first term and a subgradient."""
        if self.is_open and self.cost is not None:
            return self._open_loss(w)
        # The native losses subtract a truth. Any allowed labelling will do, if its score is added again.
        objective, features = self._reference
        loss, gradient = objective.loss_and_gradient(w)
        return loss + float(w @ features), gradient + features

    def _open_loss(self, w: Floats) -> tuple[float, Floats]:
        """Return the same where costs are those of sets of labels, which native losses do not know."""
        structure, costs = self.score_map.structure, self._least_costs
        scores = self.score_map.scores(w, self.nodes, self.pairs, self.n_threads)
        worst = structure.argmax(scores, cost=costs, n_jobs=self.n_threads)
        values = structure.score(scores, worst, cost=costs, n_jobs=self.n_threads)
        return float(self.weights @ values), self.features(worst)

    @cached_property
    def _least_costs(self) -> Floats:
        """The cost of each state at each node: the least over what is allowed there."""
        assert self.cost is not None
        sets, of_node = np.unique(self.allowed, axis=0, return_inverse=True)
        table = np.array([self.cost[one].min(axis=0) for one in sets])
        return np.ascontiguousarray(table[of_node.ravel()])

    def loss(self, w: Floats) -> float:
        """Return the first term."""
        return self.loss_and_gradient(w)[0]

    def complete(self, w: Floats, temperature: float = 0.0) -> Completion:
        """Return the best allowed states, and their features or at T > 0 the expected ones."""
        scores = self._allowed_scores(w)
        states = self.score_map.structure.argmax(scores, n_jobs=self.n_threads)
        features = self.features(states)
        if temperature == 0.0:
            return Completion(states, features)
        # The gradients of both differ by the expectation over allowed states less the features of these states.
        fixed = self.objective(states, temperature=temperature, cost=False).loss_and_gradient(w)[1]
        summed = self.objective(states, allowed=True, temperature=temperature, cost=False).loss_and_gradient(w)[1]
        expected = features + fixed - summed
        values = self.score_map.structure.log_partition(scores, temperature=temperature, n_jobs=self.n_threads)
        value = float(self.weights @ values)
        return Completion(states, expected, value - float(w @ expected), temperature)

    def start(self, random_state: Any) -> States:
        """Draw allowed states, all labellings of an example with the same probability."""
        nothing = self._allowed_scores(np.zeros(self.n_parameters))
        return np.asarray(self.score_map.structure.sample(nothing, 1, random_state=random_state)[0], dtype=np.int32)

    def features(self, states: NDArray[Any]) -> Floats:
        """Return Σ c_i Φ(x_i, z_i)."""
        return self._parts.total(states.astype(np.int32), self.weights)

    def _allowed_scores(self, w: Floats) -> Scores:
        scores = self.score_map.scores(w, self.nodes, self.pairs, self.n_threads)
        return scores.only(self.allowed)

    @cached_property
    def _reference(self) -> tuple[Objective, Floats]:
        states = self.score_map.structure.argmax(self._allowed_scores(np.zeros(self.n_parameters)))
        return self.objective(states), self.features(states)

    @cached_property
    def _parts(self) -> PartFeatures:
        return PartFeatures(self.score_map, self.nodes, self.pairs)
