"""Warm starts: the weights of an earlier model at the features of a new one, matched by attribute and label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch
from dualfield.data.arrays import Floats
from dualfield.data.checks import check_column_names
from dualfield.models.structured import StructuredModel
from dualfield.models.training_data import TrainingData
from dualfield.scores import FeatureTable


def carry_over(old: StructuredModel, data: TrainingData) -> Floats | None:
    """Return the weights of an earlier fit where the new features have the same attribute and labels.

    None after a fit with a kernel, which has no weights of columns.
    """
    if old.has_kernel:
        return None
    _check_same_columns(old, data.nodes)
    weights, before, now = old.score_map.unpack(old.parameters), old.score_map, data.score_map
    codes = {name: code for code, name in enumerate(old.classes.tolist())}
    label = np.array([codes.get(name, -1) for name in data.labels.classes.tolist()])
    node = _matched(now.node, before.node, weights.node, _columns(data.nodes, old.vocabulary), label)
    clique = data.structure.matched_cliques(before.structure, label)
    cliques = np.where(clique >= 0, weights.cliques[np.maximum(clique, 0)] if len(weights.cliques) else 0.0, 0.0)
    start, stop = (np.where(label >= 0, end[np.maximum(label, 0)], 0.0) for end in (weights.start, weights.stop))
    pair = None
    if now.pair is not None and before.pair is not None and data.pairs is not None:
        columns = _columns(data.pairs, old.pair_vocabulary)
        parts = data.structure.matched_edges(before.structure, label)
        pair = _matched(now.pair, before.pair, weights.pair, columns, parts)
    return now.pack(node, cliques, start, stop, pair)


def _check_same_columns(old: StructuredModel, nodes: Batch) -> None:
    """Refuse input whose columns do not stand for what those of an earlier fit stood for."""
    remedy = "Set warm_start=False to begin anew."
    numeric = old.vocabulary is None
    if numeric != (nodes.vocabulary is None):
        kinds = ("numbers", "attributes") if numeric else ("attributes", "numbers")
        raise ValueError(
            f"With warm_start=True X must have {kinds[0]}, as in the fit before. Got {kinds[1]} instead. {remedy}"
        )
    if numeric and nodes.n_columns != old.weights.n_columns:
        width = old.weights.n_columns
        raise ValueError(
            f"With warm_start=True X must have {width} columns, as in the fit before. Got {nodes.n_columns}. {remedy}"
        )
    check_column_names(old.column_names, nodes, "as in the fit that warm_start=True goes on from")


def _columns(batch: Batch, vocabulary: Any) -> NDArray[Any]:
    """Return the old column of each new one; -1 where there is none."""
    if batch.vocabulary is None or vocabulary is None:
        return np.arange(batch.n_columns)
    if batch.vocabulary is vocabulary:
        return np.arange(batch.n_columns)
    return np.asarray(vocabulary.columns(batch.vocabulary))


def _matched(
    table: FeatureTable, old: FeatureTable, weights: Floats, columns: NDArray[Any], outputs: NDArray[Any]
) -> Floats:
    """Look up the weights of the features of a table in those of an old one."""
    column, output = columns[table.columns], outputs[table.outputs]
    keys = old.columns * old.n_outputs + old.outputs  # rising: columns do, and outputs within them
    wanted = column * old.n_outputs + output
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    found = (column >= 0) & (output >= 0) & (len(keys) > 0)
    found[found] = keys[at[found]] == wanted[found]
    return np.where(found, weights[at] if len(keys) else 0.0, 0.0)
