"""Which features a model has: those seen in training or all, and the columns that also score pairs of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch
from dualfield.scores.feature_table import FeatureTable
from dualfield.scores.kernel import Expansion
from dualfield.scores.linear import LinearScores
from dualfield.structures import Structure


def pair_columns(pair_features: Any, nodes: Batch, owner: str) -> NDArray[np.bool_] | None:
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
    kernel_on: str | None = None,
) -> LinearScores:
    """Decide which features there are; scores that come from a kernel are columns that score their own label.

    Where a kernel is on pairs alone, the columns of nodes score nothing.
    """
    n_rows = max(nodes.n_nodes, len(structure.edge_rows(nodes.shape))) if pairs is None else pairs.n_nodes
    edges, shared = _known_parts(structure, codes, nodes, n_rows)
    sets = structure.part_sets(nodes.shape) if everything else None
    if kernel_on == "pairs":
        node = FeatureTable.none(nodes.n_columns, structure.n_labels)
    elif kernel_on is not None:
        node = Expansion.table(structure.n_labels)
    elif sets is not None:
        node = _possible(nodes, sets.set_of_node, sets.nodes)
    elif everything:
        node = FeatureTable.all(nodes.n_columns, structure.n_labels, without=structure.empty_label)
    else:
        outputs = codes if structure.empty_label is None else np.where(codes == structure.empty_label, -1, codes)
        node = FeatureTable.observed(nodes, outputs.astype(np.int32, copy=False), structure.n_labels, min_freq)
    pair = None
    if kernel_on in ("pairs", "both"):
        pair = Expansion.table(structure.edge_width)
    elif pairs is not None:
        if sets is not None:
            pair = _possible(pairs, sets.set_of_edge, sets.edges)
        elif everything:
            pair = FeatureTable.all(pairs.n_columns, structure.edge_width)
        else:
            pair = FeatureTable.observed(pairs, edges, structure.edge_width, min_freq)
        if chosen is not None and not chosen.all():
            pair = _only(pair, chosen)
    mask = np.ones(structure.n_cliques, dtype=bool) if sets is None else sets.cliques
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
    structure: Structure, codes: NDArray[np.int32], nodes: Batch, n_rows: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the part of each edge by its row, -1 for none, and all cliques; parts with known labels."""
    parts, at = structure.parts_of(np.maximum(codes, 0), nodes.shape), structure.edge_rows(nodes.shape)
    edges = np.full(n_rows, -1, dtype=np.int32)
    edges[at] = parts.edges
    if (codes >= 0).all():
        return edges, np.unique(parts.shared[(parts.shared >= 0) & (parts.shared < structure.n_cliques)])
    if not structure.has_same_parts:
        # Those of sequences whose labels are all known.
        unknown = np.add.reduceat(np.append(codes < 0, False), nodes.offsets[:-1]) > 0
        unknown &= np.diff(nodes.offsets) > 0
        owner = np.repeat(np.arange(nodes.n_examples), np.diff(structure.edge_offsets(nodes.shape)))
        edges[at[unknown[owner]]] = -1
        return edges, np.unique(parts.shared[~unknown[parts.owner] & (parts.shared < structure.n_cliques)])
    # With another label in the place of those that are not known, parts that depend on them differ.
    others = np.where(codes < 0, structure.n_labels - 1, codes).astype(np.int32)
    again = structure.parts_of(others, nodes.shape)
    edges[at[again.edges != parts.edges]] = -1
    known = (again.shared == parts.shared) & (parts.shared >= 0) & (parts.shared < structure.n_cliques)
    return edges, np.unique(parts.shared[known])


def _possible(batch: Batch, set_of: NDArray[Any], sets: NDArray[np.bool_]) -> FeatureTable:
    """Give a column a weight for the outputs that its rows may have; each row has one of the sets of outputs."""
    rows = batch.to_csr()
    seen = np.zeros((len(sets), batch.n_columns), dtype=bool)
    seen[np.repeat(set_of, np.diff(rows.indptr)), rows.indices] = True
    flags = np.zeros((batch.n_columns, sets.shape[1]), dtype=bool)
    for columns, outputs in zip(seen, sets, strict=True):
        flags[columns] |= outputs
    columns, outputs = np.nonzero(flags)
    counts = np.bincount(columns, minlength=batch.n_columns)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return FeatureTable(indptr, outputs.astype(np.int32), sets.shape[1])


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
