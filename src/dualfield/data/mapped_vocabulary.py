"""Vocabularies of records: read as a whole, or looked up in a mapped file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.attributes import Vocabulary
from dualfield.data.records import Record


def read_vocabulary(record: Record, n_columns: int) -> Vocabulary:
    """Return a vocabulary of `n_columns` attributes: checked as a whole, or looked up in a mapped file."""
    record.array("offsets", np.int64, (n_columns + 1,), check="elsewhere")
    return MappedVocabulary(record) if record.source.is_mapped else Vocabulary.from_record(record)


class MappedVocabulary(Vocabulary):
    """A vocabulary whose attributes and columns are looked up in a mapped file.

    It is read on demand, and everything that is read is checked. Operations on the whole vocabulary read all of it,
    once; from then on it is like any other.
    """

    __slots__ = ("_record", "_view", "_whole")

    def __init__(self, record: Record) -> None:
        self._record = record
        self._whole: _native.Vocabulary | None = None
        types = {"arena": np.uint8, "offsets": np.int64, "slots": np.uint64}
        arrays = [record.array(name, dtype, (None,), check="elsewhere") for name, dtype in types.items()]
        try:
            self._view = _native.MappedVocabulary(*arrays)
        except ValueError as error:
            raise self._fault(error) from None

    @property
    def _native(self) -> _native.Vocabulary:  # type: ignore[override]
        if self._whole is None:
            self._whole = self.copy()._native
        return self._whole

    def column(self, attribute: str) -> int | None:
        """Return the column of an attribute."""
        column = int(self.columns([attribute])[0])
        return None if column < 0 else column

    def columns(self, attributes: Iterable[str]) -> NDArray[np.int32]:
        """Return the columns of many attributes at once, also of those of another vocabulary."""
        if self._whole is not None or isinstance(attributes, (str, bytes)):
            return super().columns(attributes)
        try:
            if isinstance(attributes, Vocabulary):
                return self._view.find_each(attributes._native)
            return self._view.find_all(attributes)
        except ValueError as error:
            raise self._fault(error) from None

    def attribute(self, column: int) -> str:
        """Return the attribute of a column."""
        if self._whole is not None or not 0 <= column < len(self):
            return super().attribute(column)
        try:
            return self._view.attribute(int(column))
        except ValueError as error:
            raise self._fault(error) from None

    def copy(self) -> Vocabulary:
        """Return an equal vocabulary in memory."""
        if self._whole is None:
            return Vocabulary.from_record(self._record)
        return Vocabulary.from_buffers(self.arena(), self.offsets())

    def __len__(self) -> int:
        return len(self._view if self._whole is None else self._whole)

    def __reduce__(self) -> tuple[Any, tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        return Vocabulary.from_buffers, (self.arena(), self.offsets())

    def _fault(self, error: ValueError) -> Exception:
        return self._record.fault(f"its {self._record.path} is not sound: {error}")
