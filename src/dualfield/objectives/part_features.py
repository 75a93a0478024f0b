"""Features of parts of labellings, as sparse rows over the parameters."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data import Batch
from dualfield.data.arrays import Floats, Ints
from dualfield.data.shapes import rows_of_examples
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import BestPoints


class Entries(NamedTuple):
    """Some entries of a sparse matrix: rows, columns and values."""

    rows: Ints
    places: Ints
    values: Floats


class PartFeatures:
    """Says which parameters, and how often, the parts of labellings use: the transposed score map.

    Parameters
    ----------
    score_map : LinearScores
        The score map.
    batch : Batch
        Features of nodes.
    pair_batch : Batch or None
        Features of label pairs.
    """

    def __init__(self, score_map: LinearScores, batch: Batch, pair_batch: Batch | None) -> None:
        self._score_map, self._mask, self._batch = score_map, score_map.shared_mask, batch
        self._nodes = _Table(score_map.node, batch, 0)
        self._pairs = None
        if score_map.pair is not None and pair_batch is not None:
            self._pairs = _Table(score_map.pair, pair_batch, score_map.pair_begin)

    def labels(self, nodes: Ints, labels: NDArray[Any], factors: Floats, rows: Ints) -> Entries:
        """Return the features of labels at nodes, times factors, as entries of the given rows."""
        return self._nodes.entries(nodes, labels, factors, rows)

    def edges(self, edges: Ints, parts: NDArray[Any], factors: Floats, rows: Ints) -> Entries:
        """Return the features of parts of edges, counted over all examples."""
        if self._pairs is None:
            return Entries(rows[:0], rows[:0], factors[:0])
        return self._pairs.entries(self._edge_rows[edges], parts, factors, rows)

    @cached_property
    def _edge_rows(self) -> Ints:
        return self._score_map.structure.edge_rows(self._batch.shape)

    @cached_property
    def _edge_offsets(self) -> Ints:
        return self._score_map.structure.edge_offsets(self._batch.shape)

    def shared(self, parts: NDArray[Any], factors: Floats, rows: Ints) -> Entries:
        """Return the weights of shared parts, as far as they have one."""
        size = len(self._mask)
        weighted = np.flatnonzero((parts < size) & (self._mask[np.minimum(parts, size - 1)] > 0) if size else parts < 0)
        return Entries(rows[weighted], self._score_map.shared_begin + parts[weighted], factors[weighted])

    def differences(
        self, labels: NDArray[np.int32], truth: NDArray[np.int32], examples: Ints, scale: Floats
    ) -> scipy.sparse.csr_array:
        """Return the features of labellings less those of others, a row for each example times its scale."""
        offsets, nodes = rows_of_examples(self._batch.offsets, examples)
        owner = np.repeat(np.arange(len(examples)), np.diff(offsets))
        differs = np.flatnonzero(labels != truth)
        entries = [
            self.labels(nodes[differs], codes[differs], sign * scale[owner[differs]], owner[differs])
            for codes, sign in ((labels, 1.0), (truth, -1.0))
        ]
        structure, shape = self._score_map.structure, self._batch.shape.take(examples)
        found, true = (structure.parts_of(codes, shape) for codes in (labels, truth))
        begins, edges = rows_of_examples(self._edge_offsets, examples)
        owner_of_edge = np.repeat(np.arange(len(examples)), np.diff(begins))
        # Where both have as many shared parts, those at the same place are most often the same ones.
        aligned = np.array_equal(found.begins, true.begins)
        moved = np.flatnonzero(found.shared != true.shared) if aligned else slice(None)
        for parts, sign in ((found, 1.0), (true, -1.0)):
            of = parts.owner[moved]
            entries.append(self.shared(parts.shared[moved], sign * scale[of], of))
            some = np.flatnonzero((found.edges != true.edges) & (parts.edges >= 0))
            of = owner_of_edge[some]
            entries.append(self.edges(edges[some], parts.edges[some], sign * scale[of], of))
        return self.matrix(entries, len(examples))

    def expected_differences(
        self, points: BestPoints, truth: NDArray[np.int32], examples: Ints
    ) -> scipy.sparse.csr_array:
        """Return the expected features of points less the features of the truth, a row for each example."""
        offsets, nodes = rows_of_examples(self._batch.offsets, examples)
        owner = np.repeat(np.arange(len(examples)), np.diff(offsets))
        moved = points.node.copy()
        moved[np.arange(len(nodes)), truth] -= 1.0
        rows, outputs = np.nonzero(moved)
        entries = [self.labels(nodes[rows], outputs, moved[rows, outputs], owner[rows])]
        true = self._score_map.structure.parts_of(truth, self._batch.shape.take(examples))
        moved = points.shared.copy()
        scored = true.shared < moved.shape[1]  # ends that have no scores are not among them
        np.subtract.at(moved, (true.owner[scored], true.shared[scored]), 1.0)
        rows, outputs = np.nonzero(moved)
        entries.append(self.shared(outputs, moved[rows, outputs], rows))
        if len(points.edge):
            begins, edges = rows_of_examples(self._edge_offsets, examples)
            owner = np.repeat(np.arange(len(examples)), np.diff(begins))
            moved = points.edge.copy()
            some = np.flatnonzero(true.edges >= 0)
            moved[some, true.edges[some]] -= 1.0
            rows, outputs = np.nonzero(moved)
            entries.append(self.edges(edges[rows], outputs, moved[rows, outputs], owner[rows]))
        return self.matrix(entries, len(examples))

    def total(self, labels: NDArray[np.int32], weights: Floats) -> Floats:
        """Return the features of a labelling of all examples, summed with the weights of the examples."""
        structure, shape = self._score_map.structure, self._batch.shape
        own, at = np.repeat(weights, self._batch.lengths), np.arange(len(labels))
        found, edge_weights = structure.parts_of(labels, shape), np.repeat(weights, np.diff(self._edge_offsets))
        some = np.flatnonzero(found.edges >= 0)
        row = np.zeros(max(len(labels), len(found.shared)), dtype=np.int64)
        parts = [
            self.labels(at, labels, own, row[: len(at)]),
            self.edges(some, found.edges[some], edge_weights[some], row[: len(some)]),
            self.shared(found.shared, weights[found.owner], row[: len(found.shared)]),
        ]
        return np.asarray(self.matrix(parts, 1).toarray()[0])

    def matrix(self, parts: list[Entries], n_rows: int) -> scipy.sparse.csr_array:
        """Add up entries to a sparse matrix; what cancels is not stored."""
        rows, places, values = _together(parts)
        summed = scipy.sparse.coo_array((values, (rows, places)), shape=(n_rows, self._score_map.n_parameters)).tocsr()
        summed.eliminate_zeros()
        return summed


class _Table:
    """Rows of features, and where each of their columns has its weights."""

    def __init__(self, table: FeatureTable, batch: Batch, begin: int) -> None:
        self._table, self._batch, self._begin = table, batch, begin

    @cached_property
    def _rows(self) -> scipy.sparse.csr_array:
        return self._batch.to_csr()

    @cached_property
    def _keys(self) -> Ints:
        return np.asarray(self._table.columns * self._table.n_outputs + self._table.outputs, dtype=np.int64)

    @cached_property
    def _places(self) -> Ints:
        return np.asarray(self._begin + self._table._native_map.feature_places(), dtype=np.int64)

    def entries(self, nodes: Ints, outputs: NDArray[Any], factors: Floats, rows: Ints) -> Entries:
        indptr = self._rows.indptr.astype(np.int64)
        counts = indptr[nodes + 1] - indptr[nodes]
        ends = np.cumsum(counts)
        at = np.repeat(indptr[nodes] - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)
        wanted = self._rows.indices[at].astype(np.int64) * self._table.n_outputs + np.repeat(outputs, counts)
        owner = np.repeat(np.arange(len(nodes)), counts)
        if self._keys.size == self._table.n_columns * self._table.n_outputs:
            feature, found = wanted, slice(None)  # every column has every output: no search
        else:
            feature = np.minimum(np.searchsorted(self._keys, wanted), max(self._keys.size - 1, 0))
            known = self._keys[feature] == wanted if self._keys.size else np.zeros(len(wanted), dtype=bool)
            found = np.flatnonzero(known)  # type: ignore[assignment]
        owner = owner[found]
        values = self._rows.data[at][found] * factors[owner]
        return Entries(rows[owner], self._places[feature[found]], values)


def _together(parts: list[Entries]) -> Entries:
    rows, places, values = zip(*parts, strict=True)
    return Entries(np.concatenate(rows), np.concatenate(places), np.concatenate(values))
