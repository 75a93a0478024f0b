"""Sequences of observations as users pass them: one symbol or several at a time, in lists or arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.arrays import Ints
from dualfield.data.batch import Batch
from dualfield.data.input_forms import opened, unwrapped
from dualfield.data.matrices import offsets_from_lengths
from dualfield.data.symbols import Rare, SymbolTable

_ROWS = (tuple, list, np.ndarray)
_INTEGERS = (int, bool, np.integer, np.bool_)


class Streams(NamedTuple):
    """The symbols of all sequences one after another, by stream: int64 arrays, or lists of str."""

    values: list[Ints | list[str]]
    offsets: Ints

    def place(self, at: int) -> str:
        """Say which symbol a node has, as the user knows it."""
        return _place(at, self.offsets)


def read_streams(X: Any, lengths: ArrayLike | None = None) -> Streams:
    """Recognise the form of observations, check them and lay them out.

    Parameters
    ----------
    X : list of sequences, or flat list or array with `lengths`
        A sequence is a list or array of symbols, str or int; or of tuples of these, or an array of shape
        (T, n_streams).
    lengths : array of int, default=None
        How many items of a flat `X` each sequence has.

    Returns
    -------
    Streams
        The symbols.

    Examples
    --------
    >>> from dualfield.data.observations import read_streams
    >>> read_streams([[("the", 3), ("dog", 3)], [("Rex", 0)]]).values
    [['the', 'dog', 'Rex'], array([3, 3, 0])]
    """
    if isinstance(X, np.ndarray) and X.ndim == 2 and lengths is None:
        raise ValueError(f"X is one array of shape {X.shape}: give lengths, or a list of sequences.")
    X = unwrapped(X)
    if isinstance(X, (str, bytes, dict, set, frozenset, Batch)) or not isinstance(X, Iterable):
        raise TypeError(f"X must be a list of sequences of symbols. Got {type(X).__name__} instead.")
    if isinstance(X, np.ndarray) and X.dtype.kind != "O":
        return _read_array(X, lengths)
    if lengths is not None:
        items = list(X)
        return _read_items(items, offsets_from_lengths(lengths, len(items), "X"))
    sequences = [opened(one) for one in X]
    arrays = [one for one in sequences if isinstance(one, np.ndarray) and one.dtype.kind in "iub"]
    shapes = {one.shape[1:] for one in arrays}
    lists: list[Any] = []
    for i, one in enumerate(sequences):
        if not isinstance(one, _ROWS) or (isinstance(one, np.ndarray) and one.ndim not in (1, 2)):
            found = f"an array of shape {one.shape}" if isinstance(one, np.ndarray) else type(one).__name__
            raise TypeError(f"X[{i}] must be a list or array of symbols. Got {found} instead.")
        lists.append(one)
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists], dtype=np.int64)]).astype(np.int64)
    _check_not_empty(offsets)
    if len(arrays) == len(lists) and len(shapes) == 1:
        return _read_array(np.concatenate(arrays), np.diff(offsets))
    flat = itertools.chain.from_iterable(one.tolist() if isinstance(one, np.ndarray) else one for one in lists)
    return _read_items(list(flat), offsets)


def _read_array(X: NDArray[Any], lengths: ArrayLike | None) -> Streams:
    """Read one array, in which no symbol is a Python object."""
    if X.dtype.kind not in "iub":
        raise TypeError(
            f"X must have symbols that are int or str. Got an array of {X.dtype} instead.{_advice(X.dtype)}"
        )
    if X.ndim == 3 and lengths is None:
        lengths = np.full(X.shape[0], X.shape[1])
        X = X.reshape(-1, X.shape[2])
    if lengths is None or X.ndim not in (1, 2):
        raise ValueError(f"X is one array of shape {X.shape}: give lengths, or a list of sequences.")
    if X.dtype == np.uint64 and X.size and X.max() > np.iinfo(np.int64).max:
        raise ValueError(f"Symbols in X must fit in 64 bits with a sign. Got {X.max()}.")
    offsets = offsets_from_lengths(lengths, len(X), "X")
    _check_not_empty(offsets)
    columns = X[:, None] if X.ndim == 1 else X
    if columns.shape[1] == 0:
        raise ValueError("X must have at least one stream of symbols. Got an array without columns.")
    return Streams([columns[:, k].astype(np.int64, copy=False) for k in range(columns.shape[1])], offsets)


def _read_items(items: list[Any], offsets: Ints) -> Streams:
    """Read Python objects: symbols, or tuples of them."""
    _check_not_empty(offsets)
    kinds = set(map(type, items))
    if not any(issubclass(kind, _ROWS) for kind in kinds):
        return Streams([_column(items, offsets, "")], offsets)
    if not all(issubclass(kind, _ROWS) for kind in kinds):
        at = next(at for at, item in enumerate(items) if not isinstance(item, _ROWS))
        raise TypeError(
            f"{_place(at, offsets)} must be a tuple of symbols, one for each stream, as other items are. "
            f"Got {items[at]!r:.100} instead."
        )
    width = len(items[0])
    if not width or len(set(map(len, items))) > 1:
        at = next((at for at, item in enumerate(items) if len(item) != width), 0)
        raise ValueError(f"{_place(at, offsets)} has {len(items[at])} symbols; expected {width or 1}, as in X[0][0].")
    return Streams([_column(list(one), offsets, f"[{k}]") for k, one in enumerate(zip(*items, strict=True))], offsets)


def _column(values: list[Any], offsets: Ints, behind: str) -> Ints | list[str]:
    """Check the symbols of one stream, which are all str or all int."""
    kinds = set(map(type, values))
    if all(issubclass(kind, str) for kind in kinds):
        return values
    if all(issubclass(kind, _INTEGERS) for kind in kinds):
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            raise ValueError("Symbols in X must fit in 64 bits.") from None
    first = str if isinstance(values[0], str) else _INTEGERS if isinstance(values[0], _INTEGERS) else ()
    at = next((at for at, value in enumerate(values) if not isinstance(value, first)), 0)
    wanted = f"of type {'str' if first is str else 'int'}, as the symbols before it" if first else "a str or an int"
    found = repr(values[at]) if isinstance(values[at], float) else type(values[at]).__name__
    advice = _advice(np.dtype(float)) if isinstance(values[at], float) else ""
    raise TypeError(f"{_place(at, offsets)}{behind} must be {wanted}. Got {found} instead.{advice}")


def _advice(dtype: np.dtype[Any]) -> str:
    return " Cut numbers into bins first, as KBinsDiscretizer(encode='ordinal') does." if dtype.kind == "f" else ""


def _check_not_empty(offsets: Ints) -> None:
    if len(offsets) == 1:
        raise ValueError("X must have at least one sequence. Got none.")
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if empty.size:
        raise ValueError(f"X[{empty[0]}] is empty: a sequence must have at least one symbol. Leave it out.")


def _place(at: int, offsets: Ints) -> str:
    sequence = int(np.searchsorted(offsets, at, side="right")) - 1
    return f"X[{sequence}][{at - offsets[sequence]}]"


class Observations:
    """The symbols of all streams, and how new observations become rows of a batch.

    A row has one entry for each stream, but none for a symbol that is unknown and to be skipped.

    Parameters
    ----------
    tables : list of SymbolTable
        One for each stream. Each has its columns in the batch, and behind them one for unknown symbols.

    Examples
    --------
    >>> from dualfield.data.observations import Observations, read_streams
    >>> streams = read_streams([["a", "b"], ["a"]])
    >>> observations = Observations.fit(streams, min_count=1, rare=None)
    >>> observations.batch(read_streams([["b", "c"]]), unknown="mass").indices
    array([1, 2], dtype=int32)
    """

    def __init__(self, tables: list[SymbolTable]) -> None:
        self.tables = tables
        sizes = [table.unknown + 1 for table in tables]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @classmethod
    def fit(cls, streams: Streams, min_count: int, rare: Rare) -> Observations:
        """Find the symbols that occur."""
        return cls([SymbolTable.fit(values, min_count, rare) for values in streams.values])

    def batch(self, streams: Streams, unknown: str = "error") -> Batch:
        """Return the rows of observations; unknown symbols are skipped, get a column, or are refused."""
        if len(streams.values) != len(self.tables):
            raise ValueError(
                f"X has {len(streams.values)} streams of symbols; the model was trained on {len(self.tables)}."
            )
        n_nodes, width = int(streams.offsets[-1]), len(self.tables)
        columns, known = np.empty((n_nodes, width), dtype=np.int32), np.ones((n_nodes, width), dtype=bool)
        for k, (table, values) in enumerate(zip(self.tables, streams.values, strict=True)):
            if isinstance(values, list) != table.is_text:
                kinds = ("str", "int") if table.is_text else ("int", "str")
                of = f"stream {k} of X" if width > 1 else "X"
                raise TypeError(f"Symbols in {of} must be of type {kinds[0]}, as in training. Got {kinds[1]} instead.")
            codes = table.encode(values)
            np.not_equal(codes, table.unknown, out=known[:, k])
            columns[:, k] = codes + self.starts[k]
        if unknown == "mass" or known.all():
            indptr = width * np.arange(n_nodes + 1, dtype=np.int64)
            return Batch(streams.offsets, int(self.starts[-1]), indptr=indptr, indices=columns.ravel())
        if unknown == "error":
            at, k = np.argwhere(~known)[0].tolist()
            symbol = np.asarray(streams.values[k][at]).item()
            raise ValueError(f"{streams.place(at)} is {symbol!r}, a symbol not seen in training.")
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int64)
        return Batch(streams.offsets, int(self.starts[-1]), indptr=indptr, indices=columns[known])

    def decode(self, streams: list[Ints], offsets: Ints) -> list[Any]:
        """Return sequences of the symbols in columns, in the form that they are read in."""
        tables = self.tables
        if all(not table.is_text and not table.classes for table in tables):
            columns = np.stack([table.symbols[codes] for table, codes in zip(tables, streams, strict=True)], axis=1)
            rows: Any = columns[:, 0] if len(tables) == 1 else columns
        else:
            names = [table.names for table in tables]
            lists = [[known[code] for code in codes.tolist()] for known, codes in zip(names, streams, strict=True)]
            rows = lists[0] if len(tables) == 1 else list(zip(*lists, strict=True))
        return [rows[a:b] for a, b in itertools.pairwise(offsets.tolist())]

    @property
    def sizes(self) -> list[int]:
        """How many columns the emission table of each stream has."""
        return [table.unknown for table in self.tables]

    def attributes(self) -> list[str]:
        """Name all columns of the batch, each differently."""
        streams = [[*map(str, table.names), "<unknown>"] for table in self.tables]
        if len(streams) > 1:
            streams = [[f"{k}:{name}" for name in names] for k, names in enumerate(streams)]
        every = list(itertools.chain.from_iterable(streams))
        if len(set(every)) == len(every):
            return every
        taken: dict[str, None] = {}
        for name in every:
            text = name
            while text in taken:  # a symbol that looks like a class
                text = f"<{text}>"
            taken[text] = None
        return list(taken)
