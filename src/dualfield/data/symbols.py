"""The symbols of one stream of observations and their columns: rare ones share classes, unseen ones have a policy."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Ints
from dualfield.data.labels import distinct_integers, integer_places
from dualfield.data.records import Fields, Record, packed
from dualfield.data.word_shapes import word_shape

Rare = str | Callable[[Any], Any] | None
RARE = "rare"


@dataclass(frozen=True, eq=False)
class SymbolTable:
    """One-to-one map between symbols and columns of an emission table.

    Columns are the symbols in sorted order, then the classes of rare ones in sorted order. One more column stands for
    everything else: ``unknown``.

    Parameters
    ----------
    symbols : array
        The symbols that have columns of their own, sorted: int64, or objects that are str.
    classes : tuple of str
        The classes of rare symbols.
    rare : None, "shape" or callable
        What gives a symbol its class.

    Examples
    --------
    >>> from dualfield.data.symbols import SymbolTable
    >>> table = SymbolTable.fit(["the", "dog", "the", "Rex"], 2, "shape")
    >>> table.symbols.tolist(), table.classes
    (['the'], ('Capital', 'small'))
    >>> table.encode(["the", "Fido", "1984"])
    array([0, 1, 3])
    """

    symbols: NDArray[Any]
    classes: tuple[str, ...] = ()
    rare: Rare = None

    @classmethod
    def fit(cls, values: Ints | list[str], min_count: int, rare: Rare) -> SymbolTable:
        """Find the symbols that occur at least so often, and the classes of the others."""
        return cls.of_counts(*_counted(values), min_count, rare)

    @classmethod
    def of_counts(cls, symbols: NDArray[Any], counts: Ints, min_count: int, rare: Rare) -> SymbolTable:
        """Make the table of distinct symbols, sorted, given how often each occurs."""
        kept = counts >= min_count
        found = cls(symbols[kept], (), rare)
        names = {found.class_of(symbol) for symbol in symbols[~kept].tolist()}
        return cls(symbols[kept], tuple(sorted(names)), rare)

    def record(self) -> Fields:
        """Return what the table consists of, but the function that gives symbols their classes."""
        # There may be too many words for a header.
        symbols = packed(self.symbols.tolist()) if self.is_text else self.symbols
        return {"is_text": self.is_text, "symbols": symbols, "classes": list(self.classes)}

    @classmethod
    def from_record(cls, record: Record, rare: Rare) -> SymbolTable:
        """Build a table from its record, which is checked."""
        classes, what = record.items("classes", str), f"array {record.place('symbols')!r}"
        record.check(classes == sorted(set(classes)), "the classes of symbols must be distinct str, in order.")
        if not record.flag("is_text"):
            numbers = np.array(record.array("symbols", np.int64, (None,)))
            record.check(not (numbers[1:] <= numbers[:-1]).any(), f"{what} must have distinct numbers, in order.")
            return cls(numbers, tuple(classes), rare)
        words = record.unpacked("symbols")
        good = isinstance(words, list) and all(type(word) is str for word in words) and words == sorted(set(words))
        record.check(good, f"{what} must have distinct str, in order.")
        symbols = np.empty(len(words), dtype=object)
        symbols[:] = words
        return cls(symbols, tuple(classes), rare)

    @property
    def is_text(self) -> bool:
        """Whether symbols are str."""
        return bool(self.symbols.dtype == object)

    @property
    def unknown(self) -> int:
        """The column of everything that has none: how many columns the emission table has."""
        return len(self.symbols) + len(self.classes)

    @property
    def names(self) -> list[Any]:
        """What the columns stand for, the class of rare symbols ``small`` written as ``<small>``."""
        return [*self.symbols.tolist(), *(f"<{name}>" for name in self.classes)]

    def class_of(self, symbol: Any) -> str:
        """Return the class that a symbol has if it is rare."""
        if callable(self.rare):
            return str(self.rare(symbol))
        return word_shape(symbol) if self.rare == "shape" and isinstance(symbol, str) else RARE

    def encode(self, values: Ints | list[str]) -> Ints:
        """Return the column of each symbol."""
        if isinstance(values, list):
            columns = np.fromiter(map(self._columns.get, values, itertools.repeat(-1)), np.int64, len(values))
        else:
            columns = integer_places(self.symbols, values)
        missing = np.flatnonzero(columns < 0)
        if not missing.size:
            return columns
        if not self.classes:
            columns[missing] = self.unknown
            return columns
        rest = [values[at] for at in missing.tolist()] if isinstance(values, list) else values[missing].tolist()
        classes = {name: len(self.symbols) + at for at, name in enumerate(self.classes)}
        column = {symbol: classes.get(self.class_of(symbol), self.unknown) for symbol in set(rest)}
        columns[missing] = [column[symbol] for symbol in rest]
        return columns

    @cached_property
    def _columns(self) -> dict[Any, int]:
        # Symbols come after classes, so that a word that looks like a class keeps its own column.
        names = self.names
        turned = {name: at for at, name in enumerate(names[len(self.symbols) :], len(self.symbols))}
        return turned | {name: at for at, name in enumerate(names[: len(self.symbols)])}


def _counted(values: Ints | list[str]) -> tuple[NDArray[Any], Ints]:
    """Return the distinct symbols, sorted, and how often each occurs."""
    if isinstance(values, list):
        counter = Counter(values)
        distinct = sorted(counter)
        symbols = np.empty(len(distinct), dtype=object)
        symbols[:] = distinct
        return symbols, np.array([counter[name] for name in distinct], dtype=np.int64)
    return distinct_integers(values)
