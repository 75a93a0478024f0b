"""Parquet: tables with a row for each token, read in chunks of whole sentences, without a Python object for any token.

Columns are ``sentence_id``, whose value is the same in neighbouring rows of a sentence and another one in the next
sentence, ``label``, and ``attributes``, a list of str.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch, Labels, Partition, Vocabulary
from dualfield.io.compiling.text_chunks import Chunk

COLUMNS = ["sentence_id", "label", "attributes"]
_ROWS = 1 << 18  # tokens that are worked on at a time


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet is read by pyarrow, which is not installed: pip install pyarrow.") from error
    return pyarrow


def table_chunks(file: int, path: str, rows: int = _ROWS) -> Iterator[Chunk]:
    """Yield a file in chunks of whole sentences; lines are rows, counted from 1."""
    arrow = _arrow()
    try:
        source = arrow.parquet.ParquetFile(path)
    except (arrow.ArrowInvalid, arrow.ArrowException) as error:
        raise ValueError(f"{path}: is not a sound Parquet file: {error}") from None
    with source:
        missing = [name for name in COLUMNS if name not in source.schema_arrow.names]
        if missing:
            raise ValueError(f"{path}: has no column {missing[0]!r}; expected {', '.join(COLUMNS)}.")
        kind = source.schema_arrow.field("attributes").type
        if not (arrow.types.is_list(kind) or arrow.types.is_large_list(kind)):
            raise ValueError(f"{path}: the column 'attributes' must be lists of str. Got {kind} instead.")
        number, first, rest = 0, 1, None
        total, nbytes = max(source.metadata.num_rows, 1), _size(path)
        for batch in source.iter_batches(rows, columns=COLUMNS):
            table = arrow.Table.from_batches([batch]).select(COLUMNS)
            table = table if rest is None else arrow.concat_tables([rest, table])
            starts = sentence_starts(table["sentence_id"])
            cut = int(starts[-1]) if starts.size else 0
            if cut:
                yield Chunk(file, number, first, _packed(arrow, table.slice(0, cut)), first * nbytes // total)
                number, first = number + 1, first + cut
            rest = table.slice(cut)
        if rest is not None and rest.num_rows:
            yield Chunk(file, number, first, _packed(arrow, rest), nbytes)


def _size(path: str) -> int:
    from pathlib import Path

    return Path(path).stat().st_size


def sentence_starts(ids: Any) -> NDArray[np.int64]:
    """Return the rows at which sentences begin."""
    arrow = _arrow()
    if len(ids) == 0:
        return np.zeros(0, np.int64)
    changes = arrow.compute.not_equal(ids.slice(1), ids.slice(0, len(ids) - 1))
    flags = arrow.compute.fill_null(changes, True).to_numpy()
    return np.concatenate([[0], np.flatnonzero(flags) + 1]).astype(np.int64)


def _packed(arrow: Any, table: Any) -> bytes:
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_table(path: str, chunk: Chunk) -> tuple[Partition, NDArray[np.int64]]:
    """Return the sentences of a chunk, and the row in which each begins."""
    arrow = _arrow()
    table = arrow.ipc.open_stream(chunk.text).read_all().combine_chunks()
    for name in COLUMNS:
        if table[name].null_count:
            row = int(np.flatnonzero(arrow.compute.is_null(table[name]).to_numpy())[0])
            raise ValueError(f"{path}, row {chunk.first_line + row}: has no {name}.")
    starts = sentence_starts(table["sentence_id"])
    offsets = np.append(starts, table.num_rows).astype(np.int64)
    lists = table["attributes"].combine_chunks()
    indptr = np.concatenate([[0], np.cumsum(arrow.compute.list_value_length(lists).to_numpy())]).astype(np.int64)
    indices, words = _encoded(arrow, lists.flatten(), path, "attributes")
    codes, names = _encoded(arrow, table["label"].combine_chunks(), path, "label")
    labels = Labels.fit(list(names)) if len(names) else None
    if labels is not None:
        codes = labels.encode(list(names))[codes]
    nodes = Batch(offsets, len(words), indptr=indptr, indices=indices, vocabulary=words)
    return Partition(nodes, None, labels, codes), starts + chunk.first_line


def _encoded(arrow: Any, values: Any, path: str, name: str) -> tuple[NDArray[np.int32], Vocabulary]:
    """Return the numbers of strings, in the order in which they first occur, and the vocabulary of these."""
    kind = values.type.value_type if arrow.types.is_dictionary(values.type) else values.type
    if not (arrow.types.is_string(kind) or arrow.types.is_large_string(kind)):
        raise ValueError(f"{path}: the column {name!r} must hold str. Got {kind} instead.")
    if values.null_count:
        raise ValueError(f"{path}: the column {name!r} must hold str. Got null in it.")
    values = values.cast(kind) if arrow.types.is_dictionary(values.type) else values
    encoded = arrow.compute.dictionary_encode(values)
    distinct = encoded.dictionary.cast(arrow.large_string())
    _, bounds, data = distinct.buffers()
    offsets = np.frombuffer(bounds, np.int64)[distinct.offset : distinct.offset + len(distinct) + 1]
    if not len(distinct):
        return np.zeros(0, np.int32), Vocabulary()
    arena = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    return encoded.indices.to_numpy().astype(np.int32), Vocabulary.from_buffers(arena, offsets - offsets[0])
