"""From pieces to the folder of a compiled corpus."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.attributes import Vocabulary
from dualfield.data.compiled.array_file import ArrayFile, write_arrays
from dualfield.data.compiled.counts import FeatureCounts
from dualfield.data.compiled.header import FORMAT, HEADER, CorpusOrigin
from dualfield.data.compiled.partition import label_map, merge_labels, sum_transitions
from dualfield.data.compiled.parts import (
    CorpusSizes,
    PieceNames,
    block_bounds,
    part_counts,
    write_part,
    write_raw_part,
)
from dualfield.data.compiled.pieces import Piece

BLOCK_BYTES = 768 * 1024
LEAST_BLOCKS = 512  # that a small corpus is cut into: a sweep over few large blocks needs more passes

Run = Callable[[str, Callable[..., Any], Sequence[tuple[Any, ...]]], list[Any]]


def part_name(part: int) -> str:
    """Return the file of a partition."""
    return f"part-{part:05d}.bin"


def one_after_another(title: str, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Call a function in this process."""
    return [function(*arguments) for arguments in calls]


class FolderBuilder:
    """Make a compiled corpus of pieces, in steps that can be repeated: what is finished is not done again.

    Parameters
    ----------
    work : Path
        A working folder.
    n_parts : int
        How many partitions there are to be.
    origin : CorpusOrigin
        Where the pieces come from.
    run : callable
        ``run(title, function, calls)`` calls a function, of arguments that can be sent to other processes, and returns
        what it returns, in order.
    """

    def __init__(self, work: Path, n_parts: int, origin: CorpusOrigin, run: Run = one_after_another) -> None:
        self._work, self._n_parts, self._origin, self._run = work, n_parts, origin, run
        self._names, self._raw = work / "names", work / "raw"

    @property
    def _merged(self) -> Path:
        return self._names / "merged.bin"

    @property
    def is_gathered(self) -> bool:
        """Whether pieces are not needed any more."""
        return self._merged.exists() and not self._missing()

    def _missing(self) -> list[int]:
        return [at for at in range(self._n_parts) if not (self._raw / part_name(at)).exists()]

    def gather(self, pieces: Sequence[Path]) -> None:
        """Gather partitions from pieces, which are in the order of the input."""
        opened = [Piece(path) for path in pieces]
        self._names.mkdir(exist_ok=True)
        self._raw.mkdir(exist_ok=True)
        if not self._merged.exists():
            _merge_pieces(opened, self._names)
        sizes = _read_sizes(ArrayFile(self._merged))
        firsts = [0, *itertools.accumulate(one.size("n_examples") for one in opened)][:-1]
        calls = [
            (self._raw / part_name(at), list(pieces), firsts, self._names, sizes, at, self._n_parts)
            for at in self._missing()
        ]
        self._run("gathering", _raw_part, calls)

    def finish(self) -> Path:
        """Write the partitions in their final columns; return the folder that is to be renamed."""
        final = self._work / "final"
        shutil.rmtree(final, ignore_errors=True)
        final.mkdir()
        merged = ArrayFile(self._merged)
        sizes, files = _read_sizes(merged), [ArrayFile(self._raw / part_name(at)) for at in range(self._n_parts)]
        renames = _number_parts(final, "", merged, files, sizes.n_labels)
        pair_renames: Sequence[NDArray[np.int32] | None] = [None] * self._n_parts
        if sizes.n_pair_names is not None:
            pair_renames = _number_parts(final, "pair_", merged, files, sizes.n_labels**2)
        _write_transitions(final, files)
        del files
        calls = [
            (self._raw / part_name(at), final / part_name(at), renames[at], pair_renames[at])
            for at in range(self._n_parts)
        ]
        self._run("writing", _final_part, calls)
        _write_blocks(final, self._n_parts)
        _write_header(final, self._n_parts, sizes, merged.values["kind"], merged.values["labels"], self._origin)
        return final


def _merge_pieces(pieces: Sequence[Piece], folder: Path) -> None:
    """Merge names and labels of pieces; write what those of each piece are called, and last those of all."""
    labels = merge_labels([one.labels for one in pieces])
    for at, one in enumerate(pieces):
        write_arrays(folder / f"labels-{at:06d}.bin", {"names": label_map(one.labels, labels)})
    arrays, sizes = {}, {}
    for prefix in ("", "pair_") if any(one.has_pairs for one in pieces) else ("",):
        merged = _merge_names(pieces, prefix, folder)
        arrays |= {f"{prefix}arena": merged.arena(), f"{prefix}words": merged.offsets()}
        sizes[prefix] = len(merged)
        del merged
    values = {
        "sizes": [
            sizes[""],
            sizes.get("pair_"),
            labels.n_classes,
            any(one.is_weighted for one in pieces),
        ],
        "kind": labels.kind,
        "labels": labels.classes.tolist(),
    }
    write_arrays(folder / "merged.bin", arrays, values)


def _read_sizes(merged: ArrayFile) -> CorpusSizes:
    return CorpusSizes(*merged.values["sizes"])


def _merge_names(pieces: Sequence[Piece], prefix: str, folder: Path) -> Vocabulary:
    """Merge the vocabularies of pieces, and write what the columns of each are called."""
    merged = Vocabulary()
    for at, piece in enumerate(pieces):
        has = f"{prefix}arena" in piece.file
        names = merged._native.insert_each((piece.vocabulary(prefix) if has else Vocabulary())._native)
        write_arrays(folder / f"{prefix}nodes-{at:06d}.bin", {"names": names})
    return merged


def _raw_part(
    path: Path, pieces: list[Path], firsts: list[int], names: Path, sizes: CorpusSizes, part: int, n_parts: int
) -> None:
    opened = [
        PieceNames(
            Piece(piece),
            first,
            ArrayFile(names / f"nodes-{at:06d}.bin").array("names"),
            ArrayFile(names / f"pair_nodes-{at:06d}.bin").array("names") if sizes.n_pair_names is not None else None,
            ArrayFile(names / f"labels-{at:06d}.bin").array("names"),
        )
        for at, (piece, first) in enumerate(zip(pieces, firsts, strict=True))
    ]
    write_raw_part(path, opened, sizes, part, n_parts)


def _number_parts(
    folder: Path, prefix: str, merged: ArrayFile, files: Sequence[ArrayFile], n_outputs: int
) -> list[NDArray[np.int32]]:
    """Write vocabulary and counts, columns numbered as they first occur, part by part; return the numbers."""
    words = Vocabulary.from_buffers(merged.array(f"{prefix}arena"), merged.array(f"{prefix}words"))
    number = np.full(len(words), -1, np.int32)
    order, n_numbered = [], 0
    for file in files:
        firsts = file.array(f"{prefix}firsts")
        new = firsts[number[firsts] < 0]
        number[new] = np.arange(n_numbered, n_numbered + new.size, dtype=np.int32)
        n_numbered += new.size
        order.append(new)
    final = Vocabulary()
    final._native = words._native.taken(np.concatenate(order).astype(np.int32))
    write_arrays(folder / f"{prefix}vocabulary.bin", final.record())
    n_columns = len(final)
    del final, words
    renames = [number[file.array(f"{prefix}firsts")] for file in files]
    counts = FeatureCounts.sum([part_counts(file, prefix, n_outputs) for file in files], renames, n_columns)
    arrays = {"indptr": counts.indptr, "outputs": counts.outputs, "counts": counts.counts}
    write_arrays(folder / f"{prefix}counts.bin", arrays)
    return renames


def _write_transitions(folder: Path, files: Sequence[ArrayFile]) -> None:
    pairs, counts = sum_transitions(
        np.concatenate([file.array("transitions") for file in files]),
        np.concatenate([file.array("transition_counts") for file in files]),
    )
    write_arrays(folder / "transitions.bin", {"pairs": pairs, "counts": counts})


def _final_part(raw: Path, path: Path, nodes: NDArray[np.int32], pairs: NDArray[np.int32] | None) -> None:
    write_part(ArrayFile(raw), path, nodes, pairs)


def _write_blocks(folder: Path, n_parts: int) -> None:
    """Cut the partitions into blocks: of the usual size, or so that there are many."""
    files = [ArrayFile(folder / part_name(at)) for at in range(n_parts)]
    target = min(BLOCK_BYTES, sum(file.data_bytes for file in files) / LEAST_BLOCKS)
    bounds = [block_bounds(file, target) for file in files]
    sizes = np.array([0, *(len(rows) - 1 for rows in bounds)])
    blocks = [np.stack([rows[:-1], rows[1:]], axis=1) for rows in bounds]
    arrays = {
        "part_starts": np.cumsum(sizes).astype(np.int64),
        "bounds": np.concatenate(blocks).reshape(-1, 2, 4).astype(np.int64),
    }
    write_arrays(folder / "blocks.bin", arrays)


def _write_header(
    folder: Path, n_parts: int, sizes: CorpusSizes, kind: str, labels: list[Any], origin: CorpusOrigin
) -> None:
    """Write what is in the folder, last of all."""
    parts = [ArrayFile(folder / part_name(at)) for at in range(n_parts)]
    files = {path.name: [path.stat().st_size, _footer_digest(path)] for path in sorted(folder.iterdir())}
    content = {
        "format": "dualfield compiled corpus",
        "format_version": FORMAT,
        "n_examples": sum(part.table["numbers"][1][0] for part in parts),
        "n_nodes": sum(part.table["codes"][1][0] for part in parts),
        "n_entries": sum(part.table["indices"][1][0] for part in parts),
        "n_columns": sizes.n_names,
        "n_pair_columns": sizes.n_pair_names,
        "n_parts": n_parts,
        "n_blocks": ArrayFile(folder / "blocks.bin").table["bounds"][1][0],
        "is_weighted": sizes.is_weighted,
        "labels": labels,
        "label_kind": kind,
        **origin.fields(),
        "files": files,
    }
    text = json.dumps(content, indent=1, sort_keys=True)
    digest = zlib.crc32(text.encode("ascii"))
    with (folder / HEADER).open("w", encoding="ascii") as file:
        file.write(f"{text}\n{digest:08x}\n")
        file.flush()
        os.fsync(file.fileno())


def _footer_digest(path: Path) -> int:
    """Return the digest of the last bytes of a file, in which those of all others stand."""
    with path.open("rb") as file:
        file.seek(-24, os.SEEK_END)
        return zlib.crc32(file.read())
