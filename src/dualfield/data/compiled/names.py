"""Names of columns: those of pieces become one vocabulary, numbered as attributes first occur in the shuffled corpus.

A piece knows where each of its attributes first occurs: the key of the sentence and the place in it. The smallest of
these over all pieces orders the vocabulary, before any partition is gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.attributes import Vocabulary
from dualfield.data.compiled.array_file import ArrayFile, write_arrays
from dualfield.data.compiled.counts import FeatureCounts
from dualfield.data.compiled.partition import renamed_pair_counts, sum_transitions
from dualfield.data.compiled.pieces import Piece


def number_columns(pieces: Sequence[Piece], prefix: str, names: Path, final: Path) -> None:
    """Write the vocabulary of all pieces, and what the columns of each piece are called in it."""
    merged, firsts = Vocabulary(), _Firsts()
    n_before = 0
    for at, piece in enumerate(pieces):
        columns = np.zeros(0, np.int32)
        if f"{prefix}arena" in piece.file:
            buffers = piece.file.array(f"{prefix}arena"), piece.file.array(f"{prefix}words")
            columns = merged._native.insert_buffers(*buffers)
            firsts.take(columns, len(merged), piece, prefix, n_before)
        n_before += piece.size("n_examples")
        write_arrays(_names_file(names, prefix, at), {"names": columns})
    order = firsts.order()
    ordered = Vocabulary()
    ordered._native = merged._native.taken(order)
    del merged
    write_arrays(final / f"{prefix}vocabulary.bin", ordered.record(), durable=True)
    del ordered
    number = np.empty(order.size, np.int32)
    number[order] = np.arange(order.size, dtype=np.int32)
    for at in range(len(pieces)):
        columns = read_names(names, prefix, at)
        write_arrays(
            _names_file(names, prefix, at), {"names": number[columns] if columns.size else columns}, durable=True
        )


class _Firsts:
    """Where each attribute first occurs: key and number of the sentence, and the place in it."""

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.uint64)
        self._numbers = np.zeros(0, np.int64)
        self._places = np.zeros(0, np.int64)

    def take(self, columns: NDArray[np.int32], n_columns: int, piece: Piece, prefix: str, n_before: int) -> None:
        """Take note of a piece, whose attributes have some columns of all, and of the sentences before it."""
        sentence = piece.file.array(f"{prefix}first_sentence")
        keys = piece.file.array("keys")[sentence]
        numbers = piece.file.array("numbers")[sentence] + n_before
        if n_columns > self._keys.size:
            more = n_columns - self._keys.size
            self._keys = np.concatenate([self._keys, np.full(more, np.iinfo(np.uint64).max)])
            self._numbers = np.concatenate([self._numbers, np.full(more, np.iinfo(np.int64).max)])
            self._places = np.concatenate([self._places, np.zeros(more, np.int64)])
        known, known_numbers = self._keys[columns], self._numbers[columns]
        earlier = (keys < known) | ((keys == known) & (numbers < known_numbers))
        found = columns[earlier]
        self._keys[found], self._numbers[found] = keys[earlier], numbers[earlier]
        self._places[found] = piece.file.array(f"{prefix}first_place")[earlier]

    def order(self) -> NDArray[np.int32]:
        """Return the attributes as they first occur."""
        return np.lexsort((self._places, self._numbers, self._keys)).astype(np.int32)


def read_names(folder: Path, prefix: str, piece: int) -> NDArray[np.int32]:
    """Return what the columns of a piece are called."""
    return ArrayFile(_names_file(folder, prefix, piece)).array("names")


def _names_file(folder: Path, prefix: str, piece: int) -> Path:
    return folder / f"{prefix or 'node_'}names-{piece:06d}.bin"


def write_counts(
    pieces: Sequence[Piece],
    prefix: str,
    names: Path,
    final: Path,
    of_labels: Sequence[NDArray[np.int32]],
    n_labels: int,
) -> int:
    """Write the counts of all pieces; return the number of columns."""
    n_columns = ArrayFile(final / f"{prefix}vocabulary.bin").table["offsets"][1][0] - 1
    counts, maps = [], []
    for at, (piece, labels) in enumerate(zip(pieces, of_labels, strict=True)):
        if f"{prefix}arena" not in piece.file:
            continue
        one = piece.counts(prefix)
        if prefix:
            one = renamed_pair_counts(one, labels, n_labels)
        else:
            one = replace(one, outputs=labels[one.outputs], n_outputs=n_labels)
        counts.append(one)
        maps.append(read_names(names, prefix, at))
    total = FeatureCounts.sum(counts, maps, n_columns)
    arrays: dict[str, NDArray[Any]] = {"indptr": total.indptr, "outputs": total.outputs, "counts": total.counts}
    write_arrays(final / f"{prefix}counts.bin", arrays, durable=True)
    return n_columns


def write_transitions(
    pieces: Sequence[Piece], final: Path, of_labels: Sequence[NDArray[np.int32]], n_labels: int
) -> None:
    """Write which pairs of labels follow each other, and how often."""
    pairs, counts = sum_transitions(
        [piece.file.array("transitions") for piece in pieces],
        [piece.file.array("transition_counts") for piece in pieces],
        of_labels,
        n_labels,
    )
    write_arrays(final / "transitions.bin", {"pairs": pairs, "counts": counts}, durable=True)
