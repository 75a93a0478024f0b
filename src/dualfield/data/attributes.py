"""Attribute strings and the columns they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.records import Fields, Record

__all__ = ["Vocabulary"]


class AttributeRows(NamedTuple):
    """Items as the rows of a sparse matrix; `values` is None where all weights are 1."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64] | None
    offsets: NDArray[np.int64]
    n_unknown: int


class Vocabulary:
    """One-to-one map between attribute strings and columns, numbered from 0.

    A vocabulary is built by :meth:`Batch.build <dualfield.data.Batch.build>` from the attributes of the input, numbered
    in order of first appearance, or by :meth:`from_attributes`. It is immutable, so it can be shared freely. Saved and
    loaded, or built again from the same input in another process, it gives the same columns.

    See Also
    --------
    dualfield.data.Batch : Where vocabularies are made and used.

    Examples
    --------
    >>> from dualfield.data.attributes import Vocabulary
    >>> vocabulary = Vocabulary.from_attributes(["w:dog", "len", "cap"])
    >>> len(vocabulary), "len" in vocabulary, vocabulary.column("len"), vocabulary.attribute(0)
    (3, True, 1, 'w:dog')
    >>> vocabulary.columns(["cap", "w:cat"])
    array([ 2, -1], dtype=int32)
    """

    __slots__ = ("_native",)

    def __init__(self) -> None:
        self._native = _native.Vocabulary()

    @classmethod
    def from_attributes(cls, attributes: Iterable[str]) -> Vocabulary:
        """Give the strings columns in order of first appearance.

        Parameters
        ----------
        attributes : iterable of str
            Repeated strings count once.

        Returns
        -------
        Vocabulary
            The vocabulary of the distinct strings.

        Examples
        --------
        >>> list(Vocabulary.from_attributes(["b", "a", "b"]))
        ['b', 'a']
        """
        if isinstance(attributes, (str, bytes)):
            raise TypeError(f"'attributes' must be an iterable of str. Got {type(attributes).__name__} instead.")
        result = cls()
        result._native.insert_all(attributes)
        return result

    @classmethod
    def from_buffers(cls, arena: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Vocabulary:
        """Restore a vocabulary from what :meth:`arena` and :meth:`offsets` gave.

        Parameters
        ----------
        arena : array of uint8, shape (n_bytes,)
            The attributes in UTF-8, one after another, in column order.
        offsets : array of int64, shape (n_columns + 1,)
            Attribute ``c`` is ``arena[offsets[c]:offsets[c + 1]]``.

        Returns
        -------
        Vocabulary
            The vocabulary that the buffers describe.

        Raises
        ------
        ValueError
            If the offsets do not cut the arena into distinct strings of valid UTF-8.

        Examples
        --------
        >>> vocabulary = Vocabulary.from_attributes(["w:dog", "len"])
        >>> Vocabulary.from_buffers(vocabulary.arena(), vocabulary.offsets()) == vocabulary
        True
        """
        result = cls()
        result._native = _native.Vocabulary.from_buffers(
            np.ascontiguousarray(_vector(arena, "arena", np.uint8)),
            np.ascontiguousarray(_vector(offsets, "offsets", np.int64)),
        )
        return result

    def column(self, attribute: str) -> int | None:
        """Return the column of an attribute.

        Parameters
        ----------
        attribute : str
            The attribute to look up.

        Returns
        -------
        int or None
            Its column; None if the vocabulary does not hold it.

        Examples
        --------
        >>> Vocabulary.from_attributes(["w:dog"]).column("w:cat") is None
        True
        """
        column = int(self._native.find_all([attribute])[0])
        return None if column < 0 else column

    def columns(self, attributes: Iterable[str]) -> NDArray[np.int32]:
        """Return the columns of many attributes at once.

        Parameters
        ----------
        attributes : iterable of str
            The attributes to look up.

        Returns
        -------
        array of int32, shape (n_attributes,)
            Their columns; -1 for an attribute that the vocabulary does not hold.

        Examples
        --------
        >>> Vocabulary.from_attributes(["a", "b"]).columns(["b", "c", "a"])
        array([ 1, -1,  0], dtype=int32)
        """
        if isinstance(attributes, (str, bytes)):
            raise TypeError(f"'attributes' must be an iterable of str. Got {type(attributes).__name__} instead.")
        return self._native.find_all(attributes)

    def attribute(self, column: int) -> str:
        """Return the attribute of a column.

        Parameters
        ----------
        column : int
            A column in [0, len(vocabulary)).

        Returns
        -------
        str
            The attribute.

        Examples
        --------
        >>> Vocabulary.from_attributes(["a", "b"]).attribute(1)
        'b'
        """
        if not 0 <= column < len(self):
            raise IndexError(f"'column' must be an int in [0, {len(self)}). Got {column!r} instead.")
        return self._native.attribute(int(column))

    def arena(self) -> NDArray[np.uint8]:
        """Return the attributes in UTF-8, one after another, in column order.

        Returns
        -------
        array of uint8, shape (n_bytes,)
            A copy; :meth:`offsets` says where each attribute starts.

        Examples
        --------
        >>> Vocabulary.from_attributes(["ab", "c"]).arena().tobytes()
        b'abc'
        """
        return self._native.arena()

    def offsets(self) -> NDArray[np.int64]:
        """Return where each attribute starts in the arena, and where the last one ends.

        Returns
        -------
        array of int64, shape (n_columns + 1,)
            A copy.

        Examples
        --------
        >>> Vocabulary.from_attributes(["ab", "c"]).offsets().tolist()
        [0, 2, 3]
        """
        return self._native.offsets()

    def record(self) -> Fields:
        """Return the record of the vocabulary: its buffers, and the hash table for lookup in mapped files."""
        return {"arena": self.arena(), "offsets": self.offsets(), "slots": self._native.slots()}

    @classmethod
    def from_record(cls, record: Record) -> Vocabulary:
        """Build a vocabulary from its record, all of which is read and checked."""
        arena, offsets = record.array("arena", np.uint8, (None,)), record.array("offsets", np.int64, (None,))
        slots = record.array("slots", np.uint64, (None,))
        try:
            vocabulary = Vocabulary.from_buffers(arena, offsets)
        except ValueError as error:
            raise record.fault(f"its {record.path} is not sound: {error}") from None
        agree = np.array_equal(vocabulary._native.slots(), slots)
        record.check(agree, f"the slots of its {record.path} do not agree with the attributes.")
        return vocabulary

    def copy(self) -> Vocabulary:
        """Return an equal vocabulary that shares no memory with this one.

        Returns
        -------
        Vocabulary
            The copy.

        Examples
        --------
        >>> vocabulary = Vocabulary.from_attributes(["a"])
        >>> vocabulary.copy() == vocabulary
        True
        """
        result = type(self)()
        result._native = self._native.copy()
        return result

    def __len__(self) -> int:
        return len(self._native)

    def __contains__(self, attribute: object) -> bool:
        return isinstance(attribute, str) and self.column(attribute) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._native.attributes())

    def __eq__(self, other: object) -> bool:
        return self._native.equals(other._native) if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash((len(self), self.attribute(0) if len(self) else ""))

    def __reduce__(self) -> tuple[object, tuple[NDArray[np.uint8], NDArray[np.int64]]]:
        return type(self).from_buffers, (self.arena(), self.offsets())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} attributes>"

    def _read_sequences(self, sequences: Iterable[object], grow: bool, name: str) -> AttributeRows:
        """Read sequences of items; only a vocabulary under construction may grow."""
        return AttributeRows(*self._native.read_sequences(sequences, grow=grow, name=name))

    def _read_items(self, items: Iterable[object], grow: bool, name: str) -> AttributeRows:
        """Read one flat list of items as one example."""
        return AttributeRows(*self._native.read_items(items, grow=grow, name=name))


def _vector(array: object, name: str, dtype: type[np.generic]) -> NDArray[np.generic]:
    if isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype == dtype:
        return array
    found = f"{array.ndim}-d array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
    raise TypeError(f"{name!r} must be a 1-d array of {np.dtype(dtype)}. Got {found} instead.")
