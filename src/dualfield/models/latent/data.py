"""From what users pass to a model with sub-states to its problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Labels
from dualfield.data.arrays import Floats
from dualfield.data.input_forms import unwrapped
from dualfield.models.latent.model import SubstateModel, one_node_each, state_names
from dualfield.models.structured import StructuredModel
from dualfield.models.training_data import TrainingData, read_training_data
from dualfield.objectives.latent_chain import StateProblem
from dualfield.objectives.latent_states import LatentChain, LatentMulticlass, StateSpace
from dualfield.scores import FeatureTable, LinearScores
from dualfield.scores.stored import LinearWeights
from dualfield.structures.registry import structure_of


@dataclass(frozen=True, eq=False)
class StateData:
    """Training data of labels, and the states behind them."""

    data: TrainingData
    space: StateSpace
    score_map: LinearScores
    single: bool
    arrays: bool

    @classmethod
    def read(
        cls,
        base: Any,
        latent: LatentChain | LatentMulticlass,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        lengths: ArrayLike | None,
        *,
        hinge: bool,
    ) -> StateData:
        """Read and check everything with the reader of the base model, and lay out the states."""
        single, arrays = isinstance(latent, LatentMulticlass), isinstance(y, np.ndarray)
        if single:
            structure = structure_of(type(base).__name__, base.structure)
            if structure.name not in ("chain", "single"):
                raise ValueError(
                    "LatentMulticlass labels rows of a matrix: the base model must have the structure 'chain' or "
                    f"'single'. Got {structure!r:.200}."
                )
            X, lengths = one_node_each(X, lengths)
            flat = unwrapped(y)
            y = [[label] for label in (flat.tolist() if isinstance(flat, np.ndarray) else flat)]
        data = read_training_data(base, X, y, sample_weight, lengths, hinge=hinge, is_latent=True)
        data.need_exact(type(latent).__name__, "its loss is a difference of maxima or sums over sub-states")
        if single:  # all columns have weights for all classes, as in the model without components
            n = len(data.labels)
            table, none = FeatureTable.all(data.nodes.n_columns, n), np.zeros(n * n, dtype=bool)
            data = replace(data, score_map=LinearScores(data.structure, table, None, none))
        name = "n_components" if single else "n_substates"
        counts, empty = getattr(latent, name), data.structure.empty_label
        space = StateSpace.of(type(latent).__name__, name, counts, data.labels, empty)
        return cls(data, space, space.score_map(data.score_map), single, arrays)

    def as_hidden(self, states: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return sub-states; where labels are not all known, the states themselves."""
        return self.space.substates(states) if self.data.allowed is None else states.astype(np.int64)

    def problem(self, temperature: float, threads: int, *, plain: bool = False) -> StateProblem:
        """Return the objective; plain: without sub-states."""
        data, label = self.data, self.space.label
        allowed = data.allowed
        if allowed is None:
            allowed = np.zeros((len(data.codes), len(data.labels)), dtype=bool)
            allowed[np.arange(len(data.codes)), data.codes] = True
        cost, score_map = data.cost, data.score_map
        if not plain:
            allowed, score_map = np.ascontiguousarray(allowed[:, label]), self.score_map
            cost = None if cost is None else np.ascontiguousarray(cost[np.ix_(label, label)])
        return StateProblem(
            data.nodes,
            data.pairs,
            score_map,
            allowed=allowed,
            weights=data.weights,
            cost=cost,
            is_open=data.allowed is not None,
            temperature=temperature,
            n_threads=threads,
        )

    def model(self, parameters: Floats) -> SubstateModel:
        """Return the model with given weights."""
        data, space, structure = self.data, self.space, self.score_map.structure
        states = StructuredModel(
            labels=Labels(np.array(state_names(data.labels, space, structure)), "str"),
            structure=structure,
            vocabulary=data.nodes.vocabulary,
            pair_vocabulary=None if data.pairs is None else data.pairs.vocabulary,
            weights=LinearWeights(self.score_map, parameters),
            template=data.template,
            has_edge_features=data.has_edge_features,
        )
        return SubstateModel(states, data.labels, space, self.single, self.arrays)
