"""From a chunk of input to a partition with names of its own."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch, Labels, Partition, Vocabulary
from dualfield.features import Template
from dualfield.io.compiling.plan import Plan
from dualfield.io.compiling.text_chunks import Chunk
from dualfield.io.crfsuite_items import read_crfsuite_items


class ReadChunk(NamedTuple):
    """Sentences, and the line in which each begins."""

    partition: Partition
    lines: NDArray[np.int64]


def read_chunk(plan: Plan, chunk: Chunk, first_row: int) -> ReadChunk:
    """Read a chunk of text; `first_row` is the line of the first row of the file, for errors, which name the place."""
    path = plan.files[chunk.file].path
    if plan.form == "crfsuite":
        return _read_items(path, chunk)
    template = plan.read_template()
    assert template is not None
    return read_columns(plan, template, path, chunk, first_row)


def read_columns(plan: Plan, template: Template, path: str, chunk: Chunk, first_row: int) -> ReadChunk:
    """Read a chunk of text in columns, without a Python object for any token."""
    assert plan.columns is not None
    names, nodes = Vocabulary(), Vocabulary()
    pairs = Vocabulary() if template.has_pairs else None
    try:
        offsets, lines, codes, node_rows, pair_rows = template._compiled.read_columns(
            chunk.text,
            plan.separator or "",
            list(plan.columns.features),
            plan.columns.label,
            plan.columns.n_columns,
            first_row,
            chunk.first_line,
            names._native,
            nodes._native,
            None if pairs is None else pairs._native,
        )
    except ValueError as error:
        raise ValueError(f"{path}, {error}") from None
    labels, codes = _sorted_labels(path, names, codes)
    return ReadChunk(
        Partition(
            _batch(offsets, node_rows, nodes),
            None if pairs is None or pair_rows is None else _batch(offsets, pair_rows, pairs),
            labels,
            codes,
        ),
        lines,
    )


def _sorted_labels(path: str, names: Vocabulary, codes: NDArray[np.int32]) -> tuple[Labels | None, NDArray[np.int32]]:
    """Return labels in order, and the codes of labels that are numbered as they first occur."""
    if not len(names):
        return None, codes
    try:
        labels = Labels.fit(list(names))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return labels, labels.encode(list(names))[codes]


def _batch(
    offsets: NDArray[np.int64], rows: tuple[NDArray[np.int64], NDArray[np.int32], int], words: Vocabulary
) -> Batch:
    return Batch(offsets, len(words), indptr=rows[0], indices=rows[1], vocabulary=words)


def _read_items(path: str, chunk: Chunk) -> ReadChunk:
    """Read a chunk of CRFsuite's items."""
    text = chunk.text.decode().split("\n")
    try:
        X, y = read_crfsuite_items(text)
    except ValueError as error:
        raise ValueError(_placed(str(error), path, chunk.first_line)) from None
    full = np.array([bool(line) for line in text])
    begins = np.flatnonzero(full & ~np.concatenate([[False], full[:-1]]))
    return ReadChunk(Partition.build(X, y), begins + chunk.first_line)


def _placed(text: str, path: str, first_line: int) -> str:
    """Let an error of a reader that got lines from the middle of a file name file and line."""
    place = re.match(r"lines, line (\d+): ", text)
    return (
        f"{path}: {text}" if place is None else f"{path}, line {first_line + int(place[1]) - 1}: {text[place.end() :]}"
    )
