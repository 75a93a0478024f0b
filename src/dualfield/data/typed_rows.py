"""Rows of several types, each with features of its own: they never share a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.attributes import Vocabulary
from dualfield.data.batch import Batch
from dualfield.data.input_forms import form_of_example, form_of_examples
from dualfield.data.shapes import rows_of_examples

__all__ = ["TypedRows"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TypedRows:
    """Features of nodes or edges of several types.

    An attribute of a type is called ``type:attribute``, the columns of numbers ``type:x[0]``, ``type:x[1]`` and so on,
    or by their names. So one type may have numbers and another attributes.

    Parameters
    ----------
    rows : dict of (rows, lengths)
        For each type all its rows, as :meth:`Batch.build` takes them.
    types : list of str
        The type of each row, in the order that the batch has.
    offsets : int64 array of shape (n_examples + 1,)
        Where the rows of each example begin.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data.typed_rows import TypedRows
    >>> rows = {"word": ([[["the"], ["dog"]]], None), "text": ([np.array([[2.0]])], None)}
    >>> batch = TypedRows(rows=rows, types=["word", "text", "word"], offsets=np.array([0, 3])).build()
    >>> list(batch.vocabulary), batch.to_csr().toarray().tolist()
    (['text:x[0]', 'word:the', 'word:dog'], [[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    """

    rows: Mapping[str, tuple[Any, ArrayLike | None]]
    types: NDArray[Any] | list[str]
    offsets: NDArray[np.int64]

    def build(self, *, vocabulary: Vocabulary | None = None, grow: bool = False, name: str = "nodes") -> Batch:
        """Lay out the rows.

        Parameters
        ----------
        vocabulary, grow
            As of :meth:`Batch.build`.
        name : str, default="nodes"
            What errors call the rows.

        Returns
        -------
        Batch
            Sparse, with attributes.
        """
        grow = grow or vocabulary is None
        words = Vocabulary() if vocabulary is None else vocabulary
        types, n_unknown = np.asarray(self.types, dtype=object), 0
        # Rows of one type after those of another, and where each of them belongs; those of no type are empty.
        sizes, indices, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0)]
        places, rest = [np.zeros(0, np.int64)], np.ones(len(types), dtype=bool)
        for kind in sorted(self.rows):
            at, piece = np.flatnonzero(types == kind), _read(kind, *self.rows[kind], words, grow, f"{kind} {name}")
            if piece.n_nodes != len(at):
                raise ValueError(f"There are {piece.n_nodes} rows of {kind} {name} for {len(at)} of them.")
            begins, columns, weights = _entries(piece)
            sizes.append(np.diff(begins))
            indices.append(columns)
            values.append(weights)
            places.append(at)
            rest[at] = False
            n_unknown += piece.n_unknown
        places.append(np.flatnonzero(rest))
        sizes.append(np.zeros(len(places[-1]), np.int64))
        order = np.empty(len(types), dtype=np.int64)
        order[np.concatenate(places)] = np.arange(len(types))
        begins = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        indptr, entries = rows_of_examples(begins, order)
        weights = np.concatenate(values)[entries]
        return Batch(
            self.offsets,
            len(words),
            indptr=indptr,
            indices=np.concatenate(indices)[entries],
            values=None if (weights == 1.0).all() else weights,
            vocabulary=words,
            n_unknown=n_unknown,
        )


def _entries(rows: Batch) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    assert rows.indptr is not None
    assert rows.indices is not None
    return rows.indptr, rows.indices, np.ones(len(rows.indices)) if rows.values is None else rows.values


def _read(kind: str, rows: Any, lengths: ArrayLike | None, words: Vocabulary, grow: bool, name: str) -> Batch:
    """Read the rows of one type, whose columns are attributes that begin with its name."""
    form = form_of_examples(list(rows))[0] if lengths is None else form_of_example(rows)
    if form != "numbers":
        if form is not None and not grow and f"{kind}:x[0]" in words:
            raise TypeError(f"{name} must be numbers, as in training. Got attributes instead.")
        items = [_prefixed(kind, one) for one in rows] if lengths is not None else [_items(kind, one) for one in rows]
        return Batch.build(items, lengths=lengths, vocabulary=words, grow=grow, name=name)
    found = Batch.build(rows, lengths=lengths, name=name)
    given = found.column_names or [f"x[{at}]" for at in range(found.n_columns)]
    columns = [f"{kind}:{column}" for column in given]
    if grow:
        Batch.build([[columns]], vocabulary=words, grow=True)
    at = words.columns(columns)
    unknown = np.flatnonzero(at < 0)
    if unknown.size:
        raise ValueError(f"{name} have the column {columns[unknown[0]]!r}, which the training data did not have.")
    missing = f"{kind}:x[{len(columns)}]"
    if found.column_names is None and columns and missing in words:
        raise ValueError(f"{name} have {len(columns)} columns; the training data had more.")
    matrix = found.to_csr()
    matrix.eliminate_zeros()
    return Batch(
        found.offsets,
        len(words),
        indptr=matrix.indptr.astype(np.int64),
        indices=at[matrix.indices].astype(np.int32),
        values=np.ascontiguousarray(matrix.data, dtype=np.float64),
        vocabulary=words,
    )


def _items(kind: str, items: Any) -> list[Any]:
    return [_prefixed(kind, item) for item in items]


def _prefixed(kind: str, item: Any) -> Any:
    """Return an item whose attributes begin with a type; what is no item is left for the reader to refuse."""
    if isinstance(item, dict):
        return {f"{kind}:{name}" if isinstance(name, str) else name: value for name, value in item.items()}
    if isinstance(item, (list, tuple, set, frozenset)):
        return [f"{kind}:{name}" if isinstance(name, str) else name for name in item]
    return item
