"""From what users pass to a CRF or a structural SVM to what its objective is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Batch, Labels
from dualfield.data.checks import check_column_names
from dualfield.scores import Expansion, FeatureTable, LinearScores
from dualfield.structures import Structure

if TYPE_CHECKING:
    from dualfield.estimators.tagger import SequenceTagger

Floats = NDArray[np.float64]


class TrainingData(NamedTuple):
    """Everything that a fit needs, checked."""

    nodes: Batch
    pairs: Batch | None
    labels: Labels
    codes: NDArray[np.int32]
    allowed: NDArray[np.bool_] | None
    structure: Structure
    score_map: LinearScores
    weights: Floats
    cost: Floats | None


def pair_columns(pair_features: Any, nodes: Batch, owner: str = "CRF") -> NDArray[np.bool_] | None:
    """Return which columns also score pairs of labels; None if none do."""
    if pair_features is False or pair_features is None:
        return None
    if pair_features is True:
        return np.ones(nodes.n_columns, dtype=bool)
    if not isinstance(pair_features, (str, list, tuple, np.ndarray)):
        raise ValueError(
            f"The 'pair_features' parameter of {owner} must be a bool, or a list of str or of columns. "
            f"Got {pair_features!r} instead."
        )
    chosen = [pair_features] if isinstance(pair_features, str) else list(pair_features)
    if nodes.vocabulary is not None and all(isinstance(name, str) for name in chosen):
        begins = tuple(chosen)
        return np.array([name.startswith(begins) for name in nodes.vocabulary], dtype=bool)
    flags = np.zeros(nodes.n_columns, dtype=bool)
    if nodes.vocabulary is not None or not all(isinstance(at, (int, np.integer)) for at in chosen):
        kind = "columns" if nodes.vocabulary is None else "beginnings of attributes"
        raise ValueError(
            f"The 'pair_features' parameter of {owner} must be a bool or a list of {kind}. "
            f"Got {pair_features!r} instead."
        )
    columns = np.array(chosen, dtype=np.int64)
    if columns.size and not (columns.min() >= 0 and columns.max() < nodes.n_columns):
        raise ValueError(f"The 'pair_features' parameter of {owner} must list columns in [0, {nodes.n_columns}).")
    flags[columns] = True
    return flags


def build_score_map(
    structure: Structure,
    nodes: Batch,
    pairs: Batch | None,
    codes: NDArray[np.int32],
    *,
    everything: bool,
    min_freq: int,
    chosen: NDArray[np.bool_] | None,
    with_ends: bool,
    with_transitions: bool,
    old: LinearScores | None,
    has_kernel: bool = False,
) -> LinearScores:
    """Decide which features there are; node scores that come from a kernel are columns that score their own label."""
    edges, shared = _known_parts(structure, codes, nodes)
    if has_kernel:
        node = Expansion.table(structure.n_labels)
    elif everything:
        node = FeatureTable.all(nodes.n_columns, structure.n_labels)
    else:
        node = FeatureTable.observed(nodes, codes, structure.n_labels, min_freq)
    pair = None
    if pairs is not None:
        pair = (
            FeatureTable.all(pairs.n_columns, structure.edge_width)
            if everything
            else FeatureTable.observed(pairs, edges, structure.edge_width, min_freq)
        )
        if chosen is not None and not chosen.all():
            pair = _only(pair, chosen)
    mask = np.ones(structure.n_cliques, dtype=bool)
    if not everything:
        mask = np.zeros(structure.n_cliques, dtype=bool)
        mask[shared] = True
    if not with_transitions:
        mask = np.zeros(structure.n_cliques, dtype=bool)
    if old is not None:
        node, mask = _union(node, old.node), mask | (old.clique_mask > 0)
        pair = pair if pair is None or old.pair is None else _union(pair, old.pair)
    return LinearScores(structure, node, pair, mask, with_ends)


def _known_parts(
    structure: Structure, codes: NDArray[np.int32], nodes: Batch
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the part of the edge that leads to each node, -1 for none, and all cliques; parts with known labels."""
    parts, at = structure.parts_of(np.maximum(codes, 0), nodes.shape), structure.edge_nodes(nodes.shape)
    edges = np.full(nodes.n_nodes, -1, dtype=np.int32)
    edges[at] = parts.edges
    if (codes >= 0).all():
        return edges, np.unique(parts.shared[(parts.shared >= 0) & (parts.shared < structure.n_cliques)])
    # With another label in the place of those that are not known, parts that depend on them differ.
    others = np.where(codes < 0, structure.n_labels - 1, codes).astype(np.int32)
    again = structure.parts_of(others, nodes.shape)
    edges[at[again.edges != parts.edges]] = -1
    known = (again.shared == parts.shared) & (parts.shared >= 0) & (parts.shared < structure.n_cliques)
    return edges, np.unique(parts.shared[known])


def _only(table: FeatureTable, chosen: NDArray[np.bool_]) -> FeatureTable:
    keep = np.repeat(chosen, np.diff(table.indptr))
    sizes = np.where(chosen, np.diff(table.indptr), 0)
    return FeatureTable(np.concatenate([[0], np.cumsum(sizes)]), table.outputs[keep], table.n_outputs)


def _union(table: FeatureTable, old: FeatureTable) -> FeatureTable:
    """Features of either table; the old one may have fewer columns."""
    keys = np.union1d(table.columns * table.n_outputs + table.outputs, old.columns * old.n_outputs + old.outputs)
    counts = np.bincount(keys // table.n_outputs, minlength=table.n_columns)
    outputs = (keys % table.n_outputs).astype(np.int32)
    return FeatureTable(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), outputs, table.n_outputs)


def example_weights(
    nodes: Batch,
    labels: Labels,
    codes: NDArray[np.int32],
    sample_weight: ArrayLike | None,
    class_weight: Mapping[Any, float] | str | None,
    owner: str = "CRF",
) -> Floats:
    """Return the weight of each sequence: its own times the mean weight of its labels."""
    weights = np.ones(nodes.n_examples)
    if sample_weight is not None:
        weights = np.array(sample_weight, dtype=np.float64)
        if weights.shape != (nodes.n_examples,):
            raise ValueError(
                f"sample_weight must have shape ({nodes.n_examples},), one for each sequence. Got {weights.shape}."
            )
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError("sample_weight must be finite numbers of at least 0.")
    if class_weight is None:
        return weights
    names = labels.classes.tolist()
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"The 'class_weight' parameter of {owner} must be None, 'balanced' or a dict. "
                f"Got {class_weight!r} instead."
            )
        counts = np.bincount(codes[codes >= 0], minlength=len(names))
        factors = counts.sum() / (len(names) * np.maximum(counts, 1))
    else:
        unknown = sorted(set(class_weight) - set(names), key=str)
        if unknown:
            raise ValueError(f"The 'class_weight' parameter of {owner} has labels that y does not have: {unknown}.")
        factors = np.array([float(class_weight.get(name, 1.0)) for name in names])
        if not (np.isfinite(factors) & (factors >= 0)).all():
            raise ValueError(f"The 'class_weight' parameter of {owner} must be weights of at least 0.")
    each = np.where(codes >= 0, factors[np.maximum(codes, 0)], 1.0)
    sums = np.add.reduceat(np.append(each, 0.0), nodes.offsets[:-1]) * (nodes.lengths > 0)
    return np.asarray(weights * np.where(nodes.lengths > 0, sums / np.maximum(nodes.lengths, 1), 1.0))


def check_cost(cost: Any, n_labels: int, owner: str = "CRF") -> Floats | None:
    """Return the cost of each label by true label; None if wrong labels cost nothing."""
    if cost is None:
        return None
    if isinstance(cost, str):
        if cost != "hamming":
            raise ValueError(
                f"The 'cost' parameter of {owner} must be None, 'hamming' or an array. Got {cost!r} instead."
            )
        return 1.0 - np.eye(n_labels)
    table = np.ascontiguousarray(cost, dtype=np.float64)
    if table.shape != (n_labels, n_labels) or not np.isfinite(table).all() or np.diag(table).any():
        raise ValueError(
            f"The 'cost' parameter of {owner} must be finite numbers of shape {(n_labels, n_labels)} with zeros on the "
            f"diagonal. Got shape {table.shape}."
        )
    return table


def _check_same_columns(old: SequenceTagger, nodes: Batch) -> None:
    """Refuse input whose columns do not stand for what those of an earlier fit stood for."""
    remedy = "Set warm_start=False to begin anew."
    numeric = old.vocabulary_ is None
    if numeric != (nodes.vocabulary is None):
        kinds = ("numbers", "attributes") if numeric else ("attributes", "numbers")
        raise ValueError(
            f"With warm_start=True X must have {kinds[0]}, as in the fit before. Got {kinds[1]} instead. {remedy}"
        )
    if numeric and nodes.n_columns != old.score_map_.node.n_columns:
        width = old.score_map_.node.n_columns
        raise ValueError(
            f"With warm_start=True X must have {width} columns, as in the fit before. Got {nodes.n_columns}. {remedy}"
        )
    check_column_names(old, nodes, "as in the fit that warm_start=True goes on from")


def carry_over(old: SequenceTagger, data: TrainingData) -> Floats | None:
    """Return the weights of an earlier fit where the new features have the same attribute and labels.

    None after a fit with a kernel, which has no weights of columns.
    """
    if old.expansion_ is not None:
        return None
    _check_same_columns(old, data.nodes)
    weights, before, now = old.score_map_.unpack(old.parameters_), old.score_map_, data.score_map
    codes = {name: code for code, name in enumerate(old.classes_.tolist())}
    label = np.array([codes.get(name, -1) for name in data.labels.classes.tolist()])
    node = _matched(now.node, before.node, weights.node, _columns(data.nodes, old.vocabulary_), label)
    clique = data.structure.matched_cliques(before.structure, label)
    cliques = np.where(clique >= 0, weights.cliques[np.maximum(clique, 0)] if len(weights.cliques) else 0.0, 0.0)
    start, stop = (np.where(label >= 0, end[np.maximum(label, 0)], 0.0) for end in (weights.start, weights.stop))
    pair = None
    if now.pair is not None and before.pair is not None and data.pairs is not None:
        columns = _columns(data.pairs, old.pair_vocabulary_)
        parts = data.structure.matched_edges(before.structure, label)
        pair = _matched(now.pair, before.pair, weights.pair, columns, parts)
    return now.pack(node, cliques, start, stop, pair)


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
