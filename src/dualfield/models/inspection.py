"""A look inside a model: which weights it has, and which matter most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.data.tables import Columns, Tabular
from dualfield.models.explanation import column_name, written_key
from dualfield.models.structured import StructuredModel

__all__ = ["TopFeatures"]

Ranked = list[tuple[Any, float]]


@dataclass(frozen=True, repr=False)
class TopFeatures(Tabular):
    """The weights that matter most; made by ``top_features`` of a model.

    Attributes
    ----------
    positive, negative : list of ((attribute, label), weight)
        Attributes that speak most for a label, and most against one.
    likely, unlikely : list of ((label, label), weight)
        Transitions with the largest and the lowest weights. Where edges have several types, (type, label, label).

    Examples
    --------
    >>> from dualfield.models.inspection import TopFeatures
    >>> print(TopFeatures([(("word:Rex", "name"), 1.5)], [], [(("name", "other"), 0.25)], []))
    Attributes for a label
        +1.500  word:Rex -> name
    Transitions, likely
        +0.250  name -> other
    """

    positive: Ranked
    negative: Ranked
    likely: Ranked
    unlikely: Ranked

    def __str__(self) -> str:
        titles = (
            "Attributes for a label",
            "Attributes against a label",
            "Transitions, likely",
            "Transitions, unlikely",
        )
        lines = []
        for title, ranked in zip(titles, (self.positive, self.negative, self.likely, self.unlikely), strict=True):
            lines += [title] if ranked else []
            lines += [f"    {weight:+.3f}  {written_key(key)}" for key, weight in ranked]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _columns(self) -> Columns:
        kinds = ("attribute", self.positive), ("attribute", self.negative), ("transition", self.likely)
        rows = [
            (kind, written_key(key[:-1]), key[-1], weight)
            for kind, ranked in (*kinds, ("transition", self.unlikely))
            for key, weight in ranked
        ]
        names = ("kind", "from", "label", "weight")
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def state_features(model: StructuredModel) -> dict[tuple[str, Any], float]:
    """Return the weights of attributes that are not zero, by (attribute, label)."""
    model.need_columns("state_features_")
    table, weights = model.score_map.node, model.score_map.unpack(model.parameters).node
    kept = np.flatnonzero(weights)
    columns, labels = table.columns[kept].tolist(), model.classes[table.outputs[kept]].tolist()
    names = [f"x[{at}]" for at in range(table.n_columns)] if model.vocabulary is None else list(model.vocabulary)
    keys = zip((names[column] for column in columns), labels, strict=True)
    return dict(zip(keys, weights[kept].tolist(), strict=True))


def transition_features(model: StructuredModel) -> dict[tuple[Any, ...], float]:
    """Return the weights of transitions that are not zero, by edge type, if there are several, and labels."""
    weights, names = model.score_map.unpack(model.parameters).cliques, model.names
    kept = np.flatnonzero(weights)
    windows = model.structure.clique_names(names)
    return {windows[at]: float(weights[at]) for at in kept.tolist()}


def top_features(model: StructuredModel, n: int, label: Any = None) -> TopFeatures:
    """Return the attributes and transitions with the largest weights; with a label, only those that it has part in."""
    weights, table, names = model.score_map.unpack(model.parameters), model.score_map.node, model.names
    cliques, here, among = model.structure.cliques, slice(None), slice(None)
    if label is not None:
        if label not in names:
            raise ValueError(f"The 'label' parameter of top_features must be a label of the model. Got {label!r}.")
        here, among = table.outputs == names.index(label), (cliques == names.index(label)).any(axis=1)
    n_features = len(weights.node) if model.expansion is None else 0  # a kernel gives columns no weights
    features, windows = np.arange(len(weights.node))[here][:n_features], np.arange(len(cliques))[among]
    found: list[Ranked] = []
    called = model.structure.clique_names(names)
    for sign in (1.0, -1.0):
        ranked = features[_largest(sign * weights.node[features], n)].tolist()
        columns = (np.searchsorted(table.indptr, ranked, side="right") - 1).tolist()
        keys = [
            (column_name(model.vocabulary, column), names[table.outputs[at]])
            for column, at in zip(columns, ranked, strict=True)
        ]
        found.append(list(zip(keys, weights.node[ranked].tolist(), strict=True)))
    for sign in (1.0, -1.0):
        ranked = windows[_largest(sign * weights.cliques[windows], n)].tolist()
        found.append([(called[at], float(weights.cliques[at])) for at in ranked])
    return TopFeatures(*found)


def _largest(values: Floats, n: int) -> NDArray[np.int64]:
    """Return the places of the n largest values above zero, the largest first."""
    chosen = np.arange(len(values)) if n >= len(values) else np.argpartition(-values, n - 1)[:n]
    chosen = chosen[values[chosen] > 0.0]
    return chosen[np.lexsort((chosen, -values[chosen]))]
