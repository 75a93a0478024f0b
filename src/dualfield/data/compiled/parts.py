"""Partitions on disk: gathered from pieces, first in columns of their own, then in those of the whole corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.compiled.array_file import ArrayFile, write_arrays
from dualfield.data.compiled.counts import FeatureCounts, count_pairs, pair_codes
from dualfield.data.compiled.pieces import Piece, key_range


class PieceNames(NamedTuple):
    """A piece, the number of its first sentence, and what its columns and labels are called."""

    piece: Piece
    first_number: int
    nodes: NDArray[np.int32]
    pairs: NDArray[np.int32] | None
    labels: NDArray[np.int32]


class _Rows(NamedTuple):
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64] | None


class CorpusSizes(NamedTuple):
    """What all parts must agree on."""

    n_names: int
    n_pair_names: int | None
    n_labels: int
    is_weighted: bool


def write_raw_part(path: Path, pieces: Sequence[PieceNames], sizes: CorpusSizes, part: int, n_parts: int) -> None:
    """Gather the sentences of a partition; its columns are numbered as they first occur in it."""
    low, high = key_range(part, n_parts)
    found = [(one, *one.piece.between(low, high)) for one in pieces]
    chosen = [(one, start, stop) for one, start, stop in found if stop > start]
    keys = _joined([one.piece.file.array("keys")[start:stop] for one, start, stop in chosen], np.uint64)
    order = np.argsort(keys, kind="stable")
    which = np.repeat(np.arange(len(chosen), dtype=np.int32), [stop - start for _, start, stop in chosen])[order]
    sentences = _joined([np.arange(start, stop) for _, start, stop in chosen])[order]
    numbers = _joined([one.piece.file.array("numbers")[start:stop] + one.first_number for one, start, stop in chosen])
    opened = [one for one, _, _ in chosen]
    offsets, codes = _gathered_codes(opened, which, sentences)
    arrays: dict[str, NDArray[Any]] = {"numbers": numbers[order], "offsets": offsets, "codes": codes}
    nodes = _gathered("", opened, which, sentences, sizes.is_weighted)
    arrays |= _numbered("", nodes, sizes.n_names, codes, sizes.n_labels)
    follow = pair_codes(codes, offsets, sizes.n_labels)
    arrays["transitions"], arrays["transition_counts"] = count_pairs(follow, sizes.n_labels)
    if sizes.n_pair_names is not None:
        pairs = _gathered("pair_", opened, which, sentences, False)
        arrays |= _numbered("pair_", pairs, sizes.n_pair_names, follow, sizes.n_labels**2)
    write_arrays(path, arrays)


def write_part(raw: ArrayFile, path: Path, nodes: NDArray[np.int32], pairs: NDArray[np.int32] | None) -> None:
    """Write a partition in the columns of the whole corpus, which names say of each of its own."""
    names = ["offsets", "indptr", "codes", "indices", "values", "pair_indptr", "pair_indices", "numbers"]
    columns = {"indices": nodes, "pair_indices": pairs}
    arrays = {}
    for name in names:
        if name in raw:
            arrays[name] = raw.array(name)
        if name in raw and (new := columns.get(name)) is not None:
            arrays[name] = new[arrays[name]] if arrays[name].size else arrays[name]
    write_arrays(path, arrays)


def block_bounds(part: ArrayFile, target: float) -> NDArray[np.int64]:
    """Cut a partition into blocks of about `target` bytes: where they begin, and the end of the last.

    A row for each bound: examples, nodes, entries and entries of pairs before it.
    """
    offsets, indptr = part.array("offsets"), part.array("indptr")
    entries = indptr[offsets]
    pair_entries = part.array("pair_indptr")[offsets] if "pair_indptr" in part else np.zeros_like(offsets)
    at = 8.0 * np.arange(offsets.size) + 12.0 * offsets + (12.0 if "values" in part else 4.0) * entries
    if "pair_indptr" in part:
        at += 8.0 * offsets + 4.0 * pair_entries
    if offsets.size == 1:
        return np.zeros((1, 4), np.int64)
    # A sentence belongs to the block in which its middle lies: blocks are close to the target on both sides.
    block = np.floor((at[:-1] + at[1:]) / 2 / max(target, 1.0)).astype(np.int64)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(block)) + 1, [offsets.size - 1]])
    return np.stack([starts, offsets[starts], entries[starts], pair_entries[starts]], axis=1).astype(np.int64)


def part_counts(raw: ArrayFile, prefix: str, n_outputs: int) -> FeatureCounts:
    """Return the counts of a partition, in its own columns."""
    arrays = (raw.array(f"{prefix}count_{name}") for name in ("indptr", "outputs", "numbers"))
    return FeatureCounts(*arrays, n_outputs)


def _gathered_codes(
    pieces: list[PieceNames], which: NDArray[np.int32], sentences: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return offsets and labels of sentences of several pieces: labels are rows of one entry."""
    sources = []
    for one in pieces:
        codes = one.piece.file.array("codes")
        ends = np.arange(codes.size + 1, dtype=np.int64)
        sources.append((one.piece.file.array("offsets"), ends, codes, None, one.labels))
    offsets, _, codes, _ = _native.gather_rows(sources, which, sentences, False)
    return offsets, codes


def _gathered(
    prefix: str, pieces: list[PieceNames], which: NDArray[np.int32], sentences: NDArray[np.int64], is_weighted: bool
) -> _Rows:
    """Return rows of sentences of several pieces, in the columns of all of them."""
    sources = []
    for one in pieces:
        file = one.piece.file
        values = file.array("values") if is_weighted and "values" in file else None
        rows = file.array(f"{prefix}indptr"), file.array(f"{prefix}indices")
        sources.append((file.array("offsets"), *rows, values, one.pairs if prefix else one.nodes))
    _, *found = _native.gather_rows(sources, which, sentences, is_weighted)
    return _Rows(*found)


def _numbered(
    prefix: str, rows: _Rows, n_names: int, outputs: NDArray[np.int32], n_outputs: int
) -> dict[str, NDArray[Any]]:
    """Return rows with columns numbered as they first occur, which those are, and their counts."""
    firsts = _native.number_by_first(rows.indices, n_names)
    counts = _native.count_outputs(*rows, outputs, firsts.size, n_outputs)
    arrays = {f"{prefix}indptr": rows.indptr, f"{prefix}indices": rows.indices, f"{prefix}firsts": firsts}
    if rows.values is not None:
        arrays["values"] = rows.values
    names = ("indptr", "outputs", "numbers")
    return arrays | {f"{prefix}count_{name}": array for name, array in zip(names, counts, strict=True)}


def _joined(arrays: list[NDArray[Any]], dtype: Any = np.int64) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)
