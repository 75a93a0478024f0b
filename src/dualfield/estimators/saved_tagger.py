"""Models of sequences in model files: labels, chain, vocabularies and weights, in no particular layout of memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch, Vocabulary
from dualfield.estimators.saved import field
from dualfield.estimators.saved_expansion import expansion_record
from dualfield.estimators.saved_labels import label_record, restored_labels
from dualfield.persistence.file import ModelFile
from dualfield.persistence.mapped_vocabulary import MappedVocabulary, read_vocabulary, vocabulary_arrays
from dualfield.persistence.parameters import CLIQUES, ParameterReader, ParameterWriter
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import Chain

Floats = NDArray[np.float64]


def saved_parts(model: Any, writer: ParameterWriter) -> dict[str, Any]:
    """Return what a fitted model of sequences consists of; arrays go to the writer."""
    return {"labels": label_record(model.labels_), **saved_weights(model, writer)}


def saved_weights(model: Any, writer: ParameterWriter) -> dict[str, Any]:
    """Return the part without the labels: chain, vocabularies and weights."""
    score_map, arrays = model.score_map_, writer.arrays
    weights = score_map.unpack(model.parameters_)
    for part in (weights.node, weights.cliques, weights.start, weights.stop, weights.pair):
        if not np.isfinite(part).all():
            raise ValueError("The model cannot be saved: it has weights that are not finite.")
    arrays[CLIQUES], arrays["cliques.mask"] = weights.cliques, score_map.clique_mask > 0
    if score_map.with_ends:
        arrays["ends.weights"] = np.stack([weights.start, weights.stop])
    _save_table(arrays, "node", score_map.node, weights.node)
    if model.vocabulary_ is not None:
        arrays |= vocabulary_arrays("vocabulary", model.vocabulary_)
    if score_map.pair is not None:
        _save_table(arrays, "pair", score_map.pair, weights.pair)
    names, pair_names = model.vocabulary_, model.pair_vocabulary_
    kind = "none" if pair_names is None else "shared" if pair_names is names else "own"
    if pair_names is not None and kind == "own":
        arrays |= vocabulary_arrays("pair_vocabulary", pair_names)
    return {
        "structure": writer.chain("structure_", model.structure_),
        "features": {
            "n_columns": score_map.node.n_columns,
            "n_features": int(score_map.n_features),
            "attributes": names is not None,
            "pair_columns": None if score_map.pair is None else score_map.pair.n_columns,
            "pair_attributes": kind,
            "n_pair_attributes": None if pair_names is None else len(pair_names),
            "ends": bool(score_map.with_ends),
        },
    }


def restored_parts(file: ModelFile) -> dict[str, Any]:
    """Return the fitted attributes in a file but the weights, all of them checked."""
    labels, kernel = restored_labels(file), expansion_record(file)
    n_inputs = None if kernel is None else field(file, "n_columns", int, kernel)
    return {"labels_": labels, "classes_": labels.classes, **restored_columns(file, len(labels), n_inputs)}


def restored_columns(file: ModelFile, n_labels: int, n_inputs: int | None = None) -> dict[str, Any]:
    """Return the chain over so many labels and the vocabularies, checked.

    A kernel stands between so many columns of the input and those that score labels.
    """
    features = field(file, "features", dict)
    n_columns = field(file, "n_columns", int, features)
    n_pairs = field(file, "pair_columns", (int, type(None)), features)
    vocabulary = pair_vocabulary = None
    if field(file, "attributes", bool, features):
        vocabulary = restored_vocabulary(file, "vocabulary", n_columns if n_inputs is None else n_inputs)
    kind = field(file, "pair_attributes", str, features)
    if kind == "shared" and n_pairs in (n_columns, None):
        pair_vocabulary = vocabulary
    elif kind == "own":
        size = field(file, "n_pair_attributes", int, features)
        if n_pairs not in (size, None):
            raise file.fault(f"is altered: it has {size} attributes for {n_pairs} columns of pairs.")
        pair_vocabulary = restored_vocabulary(file, "pair_vocabulary", size)
    elif kind != "none":
        raise file.fault(f"is altered: its attributes of pairs must be 'shared', 'own' or 'none'. Got {kind!r:.100}.")
    return {
        "structure_": _restored_chain(file, n_labels),
        "vocabulary_": vocabulary,
        "pair_vocabulary_": pair_vocabulary,
        "n_features_": field(file, "n_features", int, features),
    }


class Scored(NamedTuple):
    """Input that has been read, and the weights that score it."""

    score_map: LinearScores
    parameters: Floats
    nodes: Batch
    pairs: Batch | None


class StoredWeights:
    """The weights of a model of sequences, in its file."""

    names = ("score_map_", "parameters_")

    def __init__(self, file: ModelFile, chain: Chain) -> None:
        self.file, self.chain = file, chain
        features = field(file, "features", dict)
        self.with_ends = field(file, "ends", bool, features)
        self.n_features = field(file, "n_features", int, features)
        self.cliques = _finite(file, CLIQUES, (chain.n_cliques,))
        self.mask = file.array("cliques.mask", np.bool_, (chain.n_cliques,))
        self.ends = _finite(file, "ends.weights", (2, chain.n_labels)) if self.with_ends else (None, None)
        self.node = _StoredTable(file, "node", field(file, "n_columns", int, features), chain.n_labels)
        n_pairs = field(file, "pair_columns", (int, type(None)), features)
        self.pair = None if n_pairs is None else _StoredTable(file, "pair", n_pairs, chain.n_cliques)

    def whole(self) -> dict[str, Any]:
        """Return the score map and all weights, checked against their digests."""
        with self.file.at_fault():
            score_map, parameters = self._packed(self.node.whole(), None if self.pair is None else self.pair.whole())
        if score_map.n_features != self.n_features:
            raise self.file.fault(f"is altered: it has {score_map.n_features} features, not {self.n_features}.")
        return {"score_map_": score_map, "parameters_": parameters}

    def scored(
        self, nodes: Batch, pairs: Batch | None, vocabulary: Vocabulary, pair_vocabulary: Vocabulary | None
    ) -> Scored:
        """Look up the weights that batches with vocabularies of their own need, and no others."""
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
        score_map = LinearScores(self.chain, node[0], table, self.mask, self.with_ends)
        try:
            return score_map, score_map.pack(node[1], self.cliques, self.ends[0], self.ends[1], weights)
        except ValueError as error:  # the native twins of the tables refuse what is not sound
            raise self.file.fault(f"is altered: its features are not sound: {error}.") from None


class _StoredTable:
    """A table of features in a file."""

    def __init__(self, file: ModelFile, name: str, n_columns: int, n_outputs: int) -> None:
        self.file, self.name, self.n_columns, self.n_outputs = file, name, n_columns, n_outputs
        self._arrays(verify=False)  # sizes and types; the arrays are left alone

    def _arrays(self, *, verify: bool) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats]:
        outputs = self.file.array(f"{self.name}.outputs", np.int32, (None,), verify=verify)
        return (
            self.file.array(f"{self.name}.indptr", np.int64, (self.n_columns + 1,), verify=verify),
            outputs,
            self.file.array(f"{self.name}.weights", np.float64, outputs.shape, verify=verify),
        )

    def whole(self) -> tuple[FeatureTable, Floats]:
        indptr, outputs, weights = self._arrays(verify=True)
        return FeatureTable(indptr.copy(), outputs.copy(), self.n_outputs), self._finite(weights)

    def part(self, columns: NDArray[np.int64]) -> tuple[FeatureTable, Floats]:
        """Return the features of some columns, numbered anew. No number that is read is trusted."""
        indptr, outputs, weights = self._arrays(verify=False)
        starts, stops = indptr[columns], indptr[columns + 1]
        if not ((starts >= 0) & (stops >= starts) & (stops <= len(outputs)) & (stops - starts <= self.n_outputs)).all():
            raise self.file.fault(f"is altered: array '{self.name}.indptr' must rise within the features.")
        bounds = np.concatenate([[0], np.cumsum(stops - starts)])
        places = np.repeat(starts - bounds[:-1], stops - starts) + np.arange(bounds[-1])
        return FeatureTable(bounds, outputs[places], self.n_outputs), self._finite(weights[places])

    def _finite(self, weights: Floats) -> Floats:
        if not np.isfinite(weights).all():
            raise self.file.fault(f"is altered: array '{self.name}.weights' must have finite numbers.")
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
    return Batch(batch.offsets, len(columns), None, indptr, indices[kept], values), columns


def _save_table(arrays: dict[str, NDArray[Any]], name: str, table: FeatureTable, weights: Floats) -> None:
    arrays |= {f"{name}.indptr": table.indptr, f"{name}.outputs": table.outputs, f"{name}.weights": weights}


def _restored_chain(file: ModelFile, n_labels: int) -> Chain:
    chain = ParameterReader(file).decoded("structure", field(file, "structure", dict))
    if not isinstance(chain, Chain) or chain.n_labels != n_labels:
        raise file.fault(f"is altered: its structure must be a chain of {n_labels} labels. Got {chain!r:.100}.")
    return chain


def restored_vocabulary(file: ModelFile, name: str, n_columns: int) -> Vocabulary:
    """Return a vocabulary: one that is checked, or one that is looked up in a mapped file."""
    return MappedVocabulary(file, name, n_columns) if file.is_mapped else read_vocabulary(file, name, n_columns)


def _finite(file: ModelFile, name: str, shape: tuple[int, ...]) -> Floats:
    values = file.array(name, np.float64, shape)
    if not np.isfinite(values).all():
        raise file.fault(f"is altered: array {name!r} must have finite numbers.")
    return values
