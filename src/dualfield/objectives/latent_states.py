"""Labels with sub-states: labellings of which training knows the labels, all or some, and no sub-state."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Labels
from dualfield.scores import FeatureTable, LinearScores

__all__ = ["LatentChain", "LatentMulticlass"]

SubStates = int | Sequence[int] | Mapping[Any, int]


@dataclass(frozen=True)
class LatentChain:
    """Every label has hidden sub-states, with weights and transitions of their own.

    A node with label y is in one of the states z = (y, 1), ..., (y, n_y); training knows y and not z. Features,
    transitions and the weights of the ends are those of the model without sub-states, once for each state of the label.
    Completion is the best labelling by states with the true labels. Where these are known only in part, as those of
    sentences that are bracketed in part, the rest of them is hidden, too.

    Chains of order 1, trees and graphs can have sub-states, and the labels of brackets with ``structure="grammar"``:
    every rule is split into those of all states of its symbols; symbols that join parts of long rules are not split. A
    unary chain is a label of its own, ``"S+VP"``.

    Parameters
    ----------
    n_substates : int, list of int or dict, default=2
        Sub-states of each label: of all of them, in the order of the sorted labels, or by label (others have one). The
        empty label, for no bracket, always has one. With 1 every exact structure will do, and nothing is hidden but
        what y leaves open.

    Examples
    --------
    >>> from dualfield.objectives.latent_states import LatentChain
    >>> LatentChain(n_substates={"NP": 3})
    LatentChain(n_substates={'NP': 3})
    """

    n_substates: SubStates = 2


@dataclass(frozen=True)
class LatentMulticlass:
    """Every class is a mixture of linear models; which of them speaks for an example is hidden.

    The score of class y is the maximum over its components h of ⟨w_{y,h}, x⟩. X is a matrix, y has one label for each
    row.

    Parameters
    ----------
    n_components : int, list of int or dict, default=2
        Components of each class: of all of them, in the order of the sorted classes, or by class (others have one).

    Examples
    --------
    >>> from dualfield.objectives.latent_states import LatentMulticlass
    >>> LatentMulticlass(3)
    LatentMulticlass(n_components=3)
    """

    n_components: SubStates = 2


@dataclass(frozen=True, eq=False)
class StateSpace:
    """States (label, sub-state) in one row: those of the first label, those of the second, and so on."""

    sizes: NDArray[np.int64]  # [labels]

    @classmethod
    def of(cls, owner: str, name: str, counts: Any, labels: Labels, empty_label: int | None = None) -> StateSpace:
        """Make the states that a model asks for, or raise an error that names its parameter.

        The empty label is that of candidates that are no part of the output: it has no sub-states.
        """
        names = labels.classes.tolist()
        if isinstance(counts, Mapping):
            unknown = sorted(set(counts) - set(names), key=str)
            if unknown:
                raise ValueError(f"The {name!r} parameter of {owner} has labels that y does not have: {unknown}.")
            each = [counts.get(label, 1) for label in names]
        elif isinstance(counts, numbers.Integral):
            each = [1 if code == empty_label else counts for code in range(len(names))]
        else:
            each = list(counts) if isinstance(counts, (Sequence, np.ndarray)) and not isinstance(counts, str) else []
            if len(each) != len(names):
                raise ValueError(
                    f"The {name!r} parameter of {owner} must be an int, a dict, or a list with an int for each of the "
                    f"{len(names)} labels. Got {counts!r} instead."
                )
        for count in each:
            if not isinstance(count, numbers.Integral) or isinstance(count, bool) or count < 1:
                raise ValueError(
                    f"The {name!r} parameter of {owner} must have ints in [1, inf). Got {count!r} instead."
                )
        if empty_label is not None and each[empty_label] != 1:
            raise ValueError(
                f"The {name!r} parameter of {owner} must have 1 for the empty label, no bracket. Got "
                f"{each[empty_label]!r} instead."
            )
        return cls(np.array(each, dtype=np.int64))

    @property
    def label(self) -> NDArray[np.int64]:
        """The label of each state."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def first(self) -> NDArray[np.int64]:
        """The first state of each label."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def n_states(self) -> int:
        """How many there are."""
        return int(self.sizes.sum())

    @property
    def is_split(self) -> bool:
        """Whether a label has several states."""
        return bool((self.sizes > 1).any())

    def states(self, codes: NDArray[Any], substates: NDArray[Any] | int) -> NDArray[np.int32]:
        """Return the states of labels with given sub-states."""
        return np.asarray(self.first[codes] + substates, dtype=np.int32)

    def substates(self, states: NDArray[Any]) -> NDArray[np.int64]:
        """Return the sub-states of states."""
        return np.asarray(states - self.first[self.label[states]])

    def score_map(self, labels: LinearScores) -> LinearScores:
        """Return the score map over states: the features of a label, once for each of its states.

        What is allowed for labels is allowed for their states.
        """
        if not self.is_split:
            return labels
        over, label, n = labels.structure.over_states(self.label), self.label, len(self.sizes)
        pair = None
        if labels.pair is not None:
            part = over.matched_edges(labels.structure, label)
            pair = _spread(labels.pair, [np.flatnonzero(part == at) for at in range(labels.pair.n_outputs)], len(part))
        mask = labels.clique_mask[over.matched_cliques(labels.structure, label)] > 0
        node = _spread(labels.node, [np.flatnonzero(label == at) for at in range(n)], self.n_states)
        return LinearScores(over, node, pair, mask, labels.with_ends)


def _spread(table: FeatureTable, groups: list[NDArray[np.int64]], n_outputs: int) -> FeatureTable:
    """Replace each output of a table by a group of outputs."""
    sizes = np.array([len(group) for group in groups])
    counts = sizes[table.outputs]
    rows = np.repeat(table.columns, counts)
    outputs = np.concatenate([groups[at] for at in table.outputs.tolist()]) if table.outputs.size else rows
    order = np.lexsort((outputs, rows))  # outputs rise within a column
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=table.n_columns))]).astype(np.int64)
    return FeatureTable(indptr, outputs[order].astype(np.int32), n_outputs)
