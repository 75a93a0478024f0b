"""Linear scores with their weights: in memory, or in a mapped file, looked up where they lie as a batch needs them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch, Vocabulary
from dualfield.data.arrays import Floats
from dualfield.data.records import Fields, Record, When
from dualfield.scores.feature_table import FeatureTable
from dualfield.scores.linear import LinearScores
from dualfield.structures import Structure


@dataclass(frozen=True, eq=False)
class LinearWeights:
    """A score map and its weights, in memory.

    Parameters
    ----------
    score_map : LinearScores
        Which features there are.
    parameters : array of shape (n_parameters,)
        Their weights.
    """

    score_map: LinearScores
    parameters: Floats

    @property
    def n_features(self) -> int:
        """Number of weights."""
        return self.score_map.n_features

    @property
    def n_columns(self) -> int:
        """Columns that score labels."""
        return self.score_map.node.n_columns

    @property
    def has_pairs(self) -> bool:
        """Whether columns score pairs of labels, too."""
        return self.score_map.pair is not None

    def record(self) -> Fields:
        """Return a score map and its weights, in no particular layout of memory."""
        return _weights_record(self.score_map, self.parameters)


def _weights_record(score_map: LinearScores, parameters: Floats) -> Fields:
    weights = score_map.unpack(parameters)
    for part in (weights.node, weights.cliques, weights.start, weights.stop, weights.pair):
        if not np.isfinite(part).all():
            raise ValueError("The model cannot be saved: it has weights that are not finite.")
    return {
        "n_features": int(score_map.n_features),
        "node": _table_record(score_map.node, weights.node),
        "pair": None if score_map.pair is None else _table_record(score_map.pair, weights.pair),
        "cliques": weights.cliques,
        "clique_mask": score_map.clique_mask > 0,
        "ends": np.stack([weights.start, weights.stop])[: score_map.structure.n_ends] if score_map.with_ends else None,
    }


def _table_record(table: FeatureTable, weights: Floats) -> Fields:
    return {"n_columns": table.n_columns, "indptr": table.indptr, "outputs": table.outputs, "weights": weights}


class Scored(NamedTuple):
    """Input that has been read, and the weights that score it."""

    score_map: LinearScores
    parameters: Floats
    nodes: Batch
    pairs: Batch | None


class StoredWeights:
    """A score map and its weights, in a record: read as a whole when they are asked for, or looked up for a batch."""

    def __init__(self, record: Record, structure: Structure) -> None:
        self._record, self._structure = record, structure
        n_cliques, n_labels = structure.n_cliques, structure.n_labels
        self.n_features, self.with_ends = record.integer("n_features", 0), record.has("ends")
        self.cliques = record.array("cliques", np.float64, (n_cliques,), finite=True)
        self.mask = record.array("clique_mask", np.bool_, (n_cliques,))
        self.ends: list[Floats | None] = [None, None]
        if self.with_ends:
            record.check(structure.n_ends > 0, "its structure has no ends.")
            ends = record.array("ends", np.float64, (structure.n_ends, n_labels), finite=True)
            self.ends = [*ends, None][:2]
        self.node = _StoredTable(record.child("node"), n_labels)
        self.pair = _StoredTable(record.child("pair"), structure.edge_width) if record.has("pair") else None

    @property
    def n_columns(self) -> int:
        """Columns that score labels."""
        return self.node.n_columns

    @property
    def has_pairs(self) -> bool:
        """Whether columns score pairs of labels, too."""
        return self.pair is not None

    @property
    def score_map(self) -> LinearScores:
        """Which features there are."""
        return self.whole.score_map

    @property
    def parameters(self) -> Floats:
        """All weights."""
        return self.whole.parameters

    @property
    def is_read(self) -> bool:
        """Whether all weights are in memory by now."""
        return "whole" in vars(self)

    def record(self) -> Fields:
        """Return what was read."""
        return self.whole.record()

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearWeights, (self.score_map, self.parameters)

    @cached_property
    def whole(self) -> LinearWeights:
        """The score map and all weights, checked against their digests."""
        with self._record.source.at_fault():
            score_map, parameters = self._packed(self.node.whole(), None if self.pair is None else self.pair.whole())
        n = score_map.n_features
        self._record.check(n == self.n_features, f"it has {n} features, not {self.n_features}.")
        return LinearWeights(score_map, parameters)

    def scored(
        self, nodes: Batch, pairs: Batch | None, vocabulary: Vocabulary, pair_vocabulary: Vocabulary | None
    ) -> Scored:
        """Look up only the weights that batches need, whatever their vocabularies."""
        own_nodes, columns = _in_columns_of(nodes, vocabulary)
        node, pair, own_pairs = self.node.part(columns), None, None
        if self.pair is not None and pairs is not None and pair_vocabulary is not None:
            own_pairs, columns = (own_nodes, columns) if pairs is nodes else _in_columns_of(pairs, pair_vocabulary)
            pair = self.pair.part(columns)
        return Scored(*self._packed(node, pair), own_nodes, own_pairs)

    def _packed(
        self, node: tuple[FeatureTable, Floats], pair: tuple[FeatureTable, Floats] | None
    ) -> tuple[LinearScores, Floats]:
        table, weights = (None, None) if pair is None else pair
        score_map = LinearScores(self._structure, node[0], table, self.mask, self.with_ends)
        try:
            return score_map, score_map.pack(node[1], self.cliques, self.ends[0], self.ends[1], weights)
        except ValueError as error:  # the native twins of the tables refuse what is not sound
            raise self._record.fault(f"its features are not sound: {error}.") from None


class _StoredTable:
    """A table of features and their weights in its record."""

    def __init__(self, record: Record, n_outputs: int) -> None:
        self.record, self.n_columns, self.n_outputs = record, record.integer("n_columns", 0), n_outputs
        self._arrays("elsewhere")  # sizes and types; the arrays are left alone

    def _arrays(self, check: When) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats]:
        record = self.record
        outputs = record.array("outputs", np.int32, (None,), check=check)
        indptr = record.array("indptr", np.int64, (self.n_columns + 1,), check=check)
        return indptr, outputs, record.array("weights", np.float64, outputs.shape, check=check)

    def whole(self) -> tuple[FeatureTable, Floats]:
        indptr, outputs, weights = self._arrays("now")
        return FeatureTable(indptr.copy(), outputs.copy(), self.n_outputs), self._finite(weights)

    def part(self, columns: NDArray[np.int64]) -> tuple[FeatureTable, Floats]:
        """Return the features of some columns, numbered anew. No number that is read is trusted."""
        indptr, outputs, weights = self._arrays("elsewhere")
        starts, stops = indptr[columns], indptr[columns + 1]
        good = (starts >= 0) & (stops >= starts) & (stops <= len(outputs)) & (stops - starts <= self.n_outputs)
        self.record.check(bool(good.all()), f"array {self.record.place('indptr')!r} must rise within the features.")
        bounds = np.concatenate([[0], np.cumsum(stops - starts)])
        places = np.repeat(starts - bounds[:-1], stops - starts) + np.arange(bounds[-1])
        return FeatureTable(bounds, outputs[places], self.n_outputs), self._finite(weights[places])

    def _finite(self, weights: Floats) -> Floats:
        what = f"array {self.record.place('weights')!r} must have finite numbers."
        self.record.check(bool(np.isfinite(weights).all()), what)
        return weights


def _in_columns_of(batch: Batch, vocabulary: Vocabulary) -> tuple[Batch, NDArray[np.int64]]:
    """Return a batch without the attributes that a vocabulary does not hold, and the columns there of the others."""
    assert batch.vocabulary is not None
    assert batch.indptr is not None
    assert batch.indices is not None
    found = vocabulary.columns(batch.vocabulary).astype(np.int64)
    columns = np.sort(found[found >= 0])
    places = np.where(found >= 0, np.searchsorted(columns, found), -1).astype(np.int32)
    indices = places[batch.indices]
    kept = indices >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[batch.indptr]
    values = None if batch.values is None else batch.values[kept]
    kept_rows = Batch(
        batch.offsets, len(columns), indptr=indptr, indices=indices[kept], values=values, connected=batch.connected
    )
    return kept_rows, columns
