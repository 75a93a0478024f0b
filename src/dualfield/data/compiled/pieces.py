"""Pieces: what a part of an input file becomes first, sorted so that each partition finds its sentences side by side.

Sentences are shuffled by a key, a hash of the seed, of their file and of the line in which they begin. The corpus is
the sentences in the order of their keys, and a partition a range of keys: no process needs to know how many sentences
others have.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.batch import Batch
from dualfield.data.compiled.array_file import ArrayFile, write_arrays
from dualfield.data.compiled.counts import FeatureCounts
from dualfield.data.compiled.partition import Partition
from dualfield.data.labels import Labels
from dualfield.data.shapes import rows_of_examples

_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def shuffle_keys(seed: int, file: int, lines: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the keys of sentences that begin in some lines of an input file; they do not depend on any other."""
    with np.errstate(over="ignore"):
        start = _mixed(_mixed(np.array([seed], np.uint64) + _STEP) + np.uint64(file + 1) * _STEP)
        return _mixed(start + (lines.astype(np.uint64) + np.uint64(1)) * _STEP)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each number; the finaliser of SplitMix64, a bijection."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return np.asarray(values ^ (values >> np.uint64(31)))


def key_range(part: int, n_parts: int) -> tuple[int, int]:
    """Return the keys of a partition: from the first to the one behind the last."""
    return (part << 64) // n_parts, ((part + 1) << 64) // n_parts


def write_piece(path: Path, partition: Partition, seed: int, file: int, lines: NDArray[np.int64]) -> None:
    """Write sentences of an input file, sorted by their keys; `lines` says where in the file each begins."""
    keys = shuffle_keys(seed, file, lines)
    order = np.argsort(keys, kind="stable")
    summary = partition.summary
    _, rows = rows_of_examples(partition.nodes.offsets, order)
    arrays: dict[str, NDArray[Any]] = {"keys": keys[order], "numbers": order.astype(np.int64)}
    arrays |= _row_arrays("", partition.nodes, order)
    arrays |= {"codes": partition.codes[rows], **_count_arrays("", summary.counts)}
    if partition.pairs is not None and summary.pair_counts is not None:
        arrays |= {**_row_arrays("pair_", partition.pairs, order), **_count_arrays("pair_", summary.pair_counts)}
    arrays["transitions"], arrays["transition_counts"] = summary.transitions
    labels = partition.labels
    values = {
        "labels": [] if labels is None else labels.classes.tolist(),
        "kind": None if labels is None else labels.kind,
        "n_examples": partition.nodes.n_examples,
        "n_nodes": partition.nodes.n_nodes,
    }
    write_arrays(path, arrays, values)


class Piece:
    """A piece on disk.

    Parameters
    ----------
    path : Path
        Its file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = ArrayFile(path)

    @property
    def labels(self) -> Labels | None:
        """Labels that occur; None if there are none."""
        names, kind = self.file.values["labels"], self.file.values["kind"]
        return Labels(np.array(names), kind) if names else None

    @property
    def has_pairs(self) -> bool:
        """Whether there are attributes of pairs."""
        return "pair_indptr" in self.file

    @property
    def is_weighted(self) -> bool:
        """Whether attributes have weights."""
        return "values" in self.file

    def size(self, name: str) -> int:
        """Return a number of examples, nodes or entries."""
        return int(self.file.values[name] or 0)

    def counts(self, prefix: str = "") -> FeatureCounts:
        """Return how often attributes occur with the labels of this piece, or those of pairs with pairs of labels."""
        indptr, outputs, counts = (self.file.array(f"{prefix}count_{one}") for one in ("indptr", "outputs", "numbers"))
        return FeatureCounts(indptr, outputs, counts, len(self.file.values["labels"]) ** (2 if prefix else 1))

    def between(self, low: int, high: int) -> tuple[int, int]:
        """Return which sentences have keys in a range."""
        keys = self.file.array("keys")
        start = int(np.searchsorted(keys, np.uint64(low)))
        stop = keys.size if high >= 1 << 64 else int(np.searchsorted(keys, np.uint64(high)))
        return start, stop


def _row_arrays(prefix: str, rows: Batch, order: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
    """Return rows of examples in another order, their vocabulary, and where each of its attributes first occurs."""
    assert rows.vocabulary is not None
    assert rows.indptr is not None
    assert rows.indices is not None
    source = (rows.offsets, rows.indptr, rows.indices, rows.values, None)
    which = np.zeros(order.size, np.int32)
    offsets, indptr, indices, values = _native.gather_rows(
        [source], which, order.astype(np.int64), rows.values is not None
    )
    first = _native.first_entries(indices, rows.n_columns)
    starts = indptr[offsets]
    sentence = np.searchsorted(starts, first, side="right") - 1
    arrays: dict[str, NDArray[Any]] = {
        f"{prefix}indptr": indptr,
        f"{prefix}indices": indices,
        f"{prefix}arena": rows.vocabulary.arena(),
        f"{prefix}words": rows.vocabulary.offsets(),
        f"{prefix}first_sentence": sentence.astype(np.int64),
        f"{prefix}first_place": first - starts[sentence],
    }
    if values is not None:
        arrays[f"{prefix}values"] = values
    return arrays if prefix else {"offsets": offsets, **arrays}


def _count_arrays(prefix: str, counts: FeatureCounts) -> dict[str, NDArray[Any]]:
    named: dict[str, NDArray[Any]] = {"indptr": counts.indptr, "outputs": counts.outputs, "numbers": counts.counts}
    return {f"{prefix}count_{name}": array for name, array in named.items()}
