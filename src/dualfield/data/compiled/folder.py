"""From pieces to the folder of a compiled corpus."""

from __future__ import annotations

import itertools
import json
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualfield.data.compiled.array_file import FOOTER_BYTES, ArrayFile, write_arrays
from dualfield.data.compiled.header import FORMAT, HEADER, CorpusOrigin
from dualfield.data.compiled.names import number_columns, read_names, write_counts, write_transitions
from dualfield.data.compiled.partition import label_map, merge_labels
from dualfield.data.compiled.parts import PieceNames, block_bounds, write_part
from dualfield.data.compiled.pieces import Piece

BLOCK_BYTES = 768 * 1024
LEAST_BLOCKS = 512  # that a small corpus is cut into: a sweep over few large blocks needs more passes

_MERGED = "merged.bin"

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
    pieces : sequence of Path
        Files of pieces, in the order of the input.
    run : callable
        ``run(title, function, calls)`` calls a function, of arguments that can be sent to other processes, and returns
        what it returns, in order.
    """

    def __init__(self, work: Path, pieces: Sequence[Path], run: Run = one_after_another) -> None:
        self._paths, self._run = list(pieces), run
        self._names, self._final = work / "names", work / "final"

    def build(self, n_parts: int, origin: CorpusOrigin) -> Path:
        """Return the folder of a corpus of so many partitions, which is to be renamed."""
        pieces = [Piece(path) for path in self._paths]
        self._names.mkdir(exist_ok=True)
        self._final.mkdir(exist_ok=True)
        header = self._final / HEADER
        header.unlink(missing_ok=True)
        if not (self._names / _MERGED).exists():
            _merge_pieces(pieces, self._names, self._final)
        merged = ArrayFile(self._names / _MERGED).values
        firsts = [0, *itertools.accumulate(one.size("n_examples") for one in pieces)][:-1]
        del pieces
        kinds = merged["is_weighted"], merged["n_pair_columns"] is not None
        paths = [self._final / part_name(at) for at in range(n_parts)]
        calls = [
            (path, self._paths, firsts, self._names, at, n_parts, *kinds)
            for at, path in enumerate(paths)
            if not path.exists()
        ]
        self._run("gathering", _part, calls)
        _write_blocks(self._final, n_parts)
        _write_header(self._final, n_parts, merged, origin)
        return self._final


def _merge_pieces(pieces: Sequence[Piece], names: Path, final: Path) -> None:
    """Merge names, labels and counts of pieces; write what those of each piece are called, and what all are."""
    labels = merge_labels([one.labels for one in pieces])
    of_labels = [label_map(one.labels, labels) for one in pieces]
    for at, one in enumerate(of_labels):
        write_arrays(names / f"labels-{at:06d}.bin", {"names": one}, durable=True)
    sizes: dict[str, int] = {}
    for prefix in ("", "pair_") if any(one.has_pairs for one in pieces) else ("",):
        number_columns(pieces, prefix, names, final)
        sizes[prefix] = write_counts(pieces, prefix, names, final, of_labels, labels.n_classes)
    write_transitions(pieces, final, of_labels, labels.n_classes)
    values = {
        "n_columns": sizes[""],
        "n_pair_columns": sizes.get("pair_"),
        "is_weighted": any(one.is_weighted for one in pieces),
        "label_kind": labels.kind,
        "labels": labels.classes.tolist(),
    }
    write_arrays(names / _MERGED, {}, values, durable=True)


def _part(
    path: Path, pieces: list[Path], firsts: list[int], names: Path, part: int, n_parts: int, weighted: bool, pairs: bool
) -> None:
    opened = [
        PieceNames(
            Piece(piece),
            first,
            read_names(names, "", at),
            read_names(names, "pair_", at) if pairs else None,
            ArrayFile(names / f"labels-{at:06d}.bin").array("names"),
        )
        for at, (piece, first) in enumerate(zip(pieces, firsts, strict=True))
    ]
    write_part(path, opened, part, n_parts, is_weighted=weighted, has_pairs=pairs)


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
    write_arrays(folder / "blocks.bin", arrays, durable=True)


def _write_header(folder: Path, n_parts: int, merged: dict[str, Any], origin: CorpusOrigin) -> None:
    """Write what is in the folder, last of all."""
    parts = [ArrayFile(folder / part_name(at)) for at in range(n_parts)]
    files = {path.name: [path.stat().st_size, _footer_digest(path)] for path in sorted(folder.glob("*.bin"))}
    content = {
        "format": "dualfield compiled corpus",
        "format_version": FORMAT,
        "n_examples": sum(part.table["numbers"][1][0] for part in parts),
        "n_nodes": sum(part.table["codes"][1][0] for part in parts),
        "n_entries": sum(part.table["indices"][1][0] for part in parts),
        "n_parts": n_parts,
        "n_blocks": ArrayFile(folder / "blocks.bin").table["bounds"][1][0],
        **merged,
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
        file.seek(-FOOTER_BYTES, os.SEEK_END)
        return zlib.crc32(file.read())
