"""Vocabularies in model files: read as a whole, or looked up where they lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data import Vocabulary
from dualfield.persistence.file import ModelFile


def vocabulary_arrays(name: str, vocabulary: Vocabulary) -> dict[str, NDArray[Any]]:
    """Return the arrays by which a file holds a vocabulary."""
    return {
        f"{name}.arena": vocabulary.arena(),
        f"{name}.offsets": vocabulary.offsets(),
        f"{name}.slots": vocabulary._native.slots(),
    }


def read_vocabulary(file: ModelFile, name: str, n_columns: int) -> Vocabulary:
    """Return a vocabulary, all of it checked and in memory."""
    arena, offsets, slots = _arrays(file, name, n_columns, verify=True)
    try:
        vocabulary = Vocabulary.from_buffers(arena, offsets)
    except ValueError as error:
        raise _fault(file, name, error) from None
    if not np.array_equal(vocabulary._native.slots(), slots):
        raise file.fault(f"is altered: the slots of its {name} do not agree with the attributes.")
    return vocabulary


class MappedVocabulary(Vocabulary):
    """A vocabulary whose attributes and columns are looked up where they lie in a file.

    Nothing is read before it is asked for, and everything is checked that is read. What needs the vocabulary as a whole
    reads all of it, once; from then on it is like any other.
    """

    __slots__ = ("_file", "_name", "_view", "_whole")

    def __init__(self, file: ModelFile, name: str, n_columns: int) -> None:
        self._file, self._name = file, name
        self._whole: _native.Vocabulary | None = None
        try:
            self._view = _native.MappedVocabulary(*_arrays(file, name, n_columns, verify=False))
        except ValueError as error:
            raise _fault(file, name, error) from None

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
            raise _fault(self._file, self._name, error) from None

    def attribute(self, column: int) -> str:
        """Return the attribute of a column."""
        if self._whole is not None or not 0 <= column < len(self):
            return super().attribute(column)
        try:
            return self._view.attribute(int(column))
        except ValueError as error:
            raise _fault(self._file, self._name, error) from None

    def copy(self) -> Vocabulary:
        """Return an equal vocabulary in memory."""
        if self._whole is None:
            return read_vocabulary(self._file, self._name, len(self))
        return Vocabulary.from_buffers(self.arena(), self.offsets())

    def __len__(self) -> int:
        return len(self._view if self._whole is None else self._whole)

    def __reduce__(self) -> tuple[Any, tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        return Vocabulary.from_buffers, (self.arena(), self.offsets())


def _arrays(file: ModelFile, name: str, n_columns: int, *, verify: bool) -> list[NDArray[Any]]:
    return [
        file.array(f"{name}.arena", np.uint8, (None,), verify=verify),
        file.array(f"{name}.offsets", np.int64, (n_columns + 1,), verify=verify),
        file.array(f"{name}.slots", np.uint64, (None,), verify=verify),
    ]


def _fault(file: ModelFile, name: str, error: ValueError) -> ValueError:
    return file.fault(f"is altered: its {name} is not sound: {error}")
