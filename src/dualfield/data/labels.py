"""Labels of users, and their codes 0, 1, 2, ..."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data.input_forms import unwrapped
from dualfield.data.records import Fields, Record
from dualfield.data.value_records import read_classes, values_record

__all__ = ["Labels"]

Kind = Literal["str", "int", "bool"]

_SHOWN = 10
# What the labels of each kind of array count as; numbers of any type are told apart by their classes.
_KINDS: dict[str, Kind] = {"U": "str", "O": "str", "b": "bool"}
# Integers in a range of this size, or of a few times their number, are looked up in a table; others by bisection.
_SMALL_RANGE, _TIMES = 2**16, 4


class _Flat(NamedTuple):
    """Labels of all examples one after another; `bounds` is None if they came without a cut."""

    labels: list[Any]
    bounds: NDArray[np.int64] | None
    arrays: bool


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """One-to-one map between labels and codes, which number them in sorted order from 0.

    Labels are all str, all int, or all bool; NumPy's scalars count as the Python type they stand for. Decoding gives
    back what came in: lists of Python values for lists, arrays for arrays.

    Parameters
    ----------
    classes : array, shape (n_classes,)
        The distinct labels, sorted.
    kind : {"str", "int", "bool"}
        The type of all labels.
    arrays : bool
        Whether labels came as arrays, and are decoded to arrays.

    See Also
    --------
    dualfield.data.Batch : The same service for the examples.

    Examples
    --------
    >>> from dualfield.data.labels import Labels
    >>> y = [["B", "I", "O"], [], ["O"]]
    >>> labels = Labels.fit(y)
    >>> labels.classes
    array(['B', 'I', 'O'], dtype='<U1')
    >>> codes = labels.encode(y, offsets=[0, 3, 3, 4])
    >>> codes
    array([0, 1, 2, 2], dtype=int32)
    >>> labels.decode(codes, offsets=[0, 3, 3, 4])
    [['B', 'I', 'O'], [], ['O']]
    """

    classes: NDArray[Any]
    kind: Kind
    arrays: bool = False
    _codes: dict[Any, int] = field(init=False)
    _objects: NDArray[Any] = field(init=False)  # the labels as Python objects, made once and not for every node

    def __post_init__(self) -> None:
        names = self.classes.tolist()
        objects = np.empty(len(names), dtype=object)
        objects[:] = names
        object.__setattr__(self, "_codes", {label: code for code, label in enumerate(names)})
        object.__setattr__(self, "_objects", objects)

    @classmethod
    def fit(cls, y: Any, offsets: Sequence[int] | NDArray[np.int64] | None = None, *, name: str = "y") -> Labels:
        """Collect the labels that occur.

        Parameters
        ----------
        y : list of lists or arrays, or flat list or array
            The labels: one list or array per example, or all of them in a row.
        offsets : array of int64, shape (n_examples + 1,), or None
            Where each example starts; checked against `y`, and used by errors to name the place in a flat `y`.
        name : str
            What errors call `y`.

        Returns
        -------
        Labels
            The map between the labels in `y` and their codes.

        Raises
        ------
        TypeError
            If a label is not str, int or bool, or labels are of more than one of these kinds.
        ValueError
            If there is no label, or `y` does not have one label for each node.

        Examples
        --------
        >>> Labels.fit([[3, 1], [3]]).classes
        array([1, 3])
        """
        if _is_plain_array(y, offsets):
            return cls(distinct_integers(y)[0], "int", True)
        flat = _flattened(y, offsets, name)
        kind = _kind_of(flat, None, name)
        if kind is None:
            raise ValueError(f"{name} must have at least one label. Got none.")
        distinct = sorted(set(flat.labels))
        try:
            classes = np.array(distinct, dtype=np.int64 if kind == "int" else kind)
        except OverflowError as error:
            raise ValueError(f"Labels in {name} must fit in 64 bits. Got {distinct[0]} to {distinct[-1]}.") from error
        if kind == "str" and classes.tolist() != distinct:  # the one thing that NumPy's strings cannot hold
            at = next(i for i, label in enumerate(flat.labels) if label.endswith("\0"))
            raise ValueError(f"{_place(flat, at, name)} must not end in a zero character. Got {flat.labels[at]!r}.")
        return cls(classes, kind, flat.arrays)

    @property
    def n_classes(self) -> int:
        """Number of distinct labels."""
        return int(self.classes.size)

    def encode(
        self, y: Any, offsets: Sequence[int] | NDArray[np.int64] | None = None, *, name: str = "y"
    ) -> NDArray[np.int32]:
        """Turn labels into codes.

        Parameters
        ----------
        y : list of lists or arrays, or flat list or array
            The labels, as for :meth:`fit`.
        offsets : array of int64, shape (n_examples + 1,), or None
            Where each example starts; `y` must have one label for each node.
        name : str
            What errors call `y`.

        Returns
        -------
        array of int32, shape (N,)
            The codes of all labels, examples one after another.

        Raises
        ------
        TypeError
            If a label is of another kind than those fitted.
        ValueError
            If a label was not seen in fitting, or `y` does not have one label for each node.

        Examples
        --------
        >>> Labels.fit(["a", "b"]).encode([["b"], ["a", "b"]])
        array([1, 0, 1], dtype=int32)
        """
        if self.kind == "int" and _is_plain_array(y, offsets):
            codes = integer_places(self.classes, y)
            if codes.min(initial=0) >= 0:
                return codes.astype(np.int32)  # else the slow way finds the label that is not known
        flat = _flattened(y, offsets, name)
        _kind_of(flat, self.kind, name)
        try:
            return np.fromiter(map(self._codes.__getitem__, flat.labels), np.int32, len(flat.labels))
        except KeyError:
            at = next(i for i, label in enumerate(flat.labels) if label not in self._codes)
        label = flat.labels[at : at + 1]
        raise ValueError(f"{_place(flat, at, name)} is {_shown(label)}, a label not seen in training: {self._known()}.")

    def decode(self, codes: NDArray[Any], offsets: Sequence[int] | NDArray[np.int64] | None = None) -> Any:
        """Turn codes back into labels.

        Parameters
        ----------
        codes : array of int, shape (N,)
            Codes in [0, n_classes).
        offsets : array of int64, shape (n_examples + 1,), or None
            Where each example starts. If None, the labels are returned in a row.

        Returns
        -------
        list of n_examples lists or arrays; without `offsets`, one list or array
            Lists of str, int or bool if :meth:`fit` saw lists; arrays if it saw arrays.

        Examples
        --------
        >>> import numpy as np
        >>> labels = Labels.fit([np.array([False, True]), np.array([True])])
        >>> labels.decode(np.array([1, 1, 0]), offsets=[0, 1, 3])
        [array([ True]), array([ True, False])]
        """
        codes = np.asarray(codes)
        if codes.size and not (codes.min() >= 0 and codes.max() < self.n_classes):
            raise ValueError(f"'codes' must be in [0, {self.n_classes}). Got {codes.min()} to {codes.max()} instead.")
        flat = self.classes[codes] if self.arrays else self._objects[codes].tolist()
        if offsets is None:
            return flat
        bounds = np.asarray(offsets).tolist()
        if bounds[-1] != len(flat):
            raise ValueError(f"'codes' must have {bounds[-1]} entries, one per node. Got {len(flat)} instead.")
        return [flat[start:stop] for start, stop in itertools.pairwise(bounds)]

    def record(self) -> Fields:
        """Return the record of the labels."""
        return {**values_record(self.classes), "arrays": bool(self.arrays)}

    @classmethod
    def from_record(cls, record: Record) -> Labels:
        """Build labels from their record, which is checked."""
        classes = read_classes(record)
        kind = _KINDS.get(classes.dtype.kind, "int")
        return cls(classes, kind, record.flag("arrays"))

    def __len__(self) -> int:
        return self.n_classes

    def __repr__(self) -> str:
        return f"<Labels of {self.n_classes} classes: {_shown(self.classes.tolist())}>"

    def _known(self) -> str:
        return f"the {self.n_classes} known are {_shown(self.classes.tolist())}"


def in_a_row(labels: Any) -> Any:
    """Return the labels of one example in a row: those of an image by rows, those of node types by the sorted types."""
    if isinstance(labels, dict):
        return [label for kind in sorted(labels, key=str) for label in labels[kind]]
    return labels.ravel() if isinstance(labels, np.ndarray) and labels.ndim == 2 else labels


def distinct_integers(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct ones of some integers, sorted, and how often each occurs."""
    values = values.astype(np.int64, copy=False)  # room for differences
    if not values.size or not _is_small(values.min(), values.max(), values.size):
        return np.unique(values, return_counts=True)
    low = values.min()
    counts = np.bincount(values - low)
    seen = np.flatnonzero(counts)
    return seen + low, counts[seen].astype(np.int64)


def integer_places(distinct: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each integer among distinct ones that are sorted; -1 where it is not one."""
    if not distinct.size or not values.size:
        return np.full(len(values), -1, dtype=np.int64)
    values, low, high = values.astype(np.int64, copy=False), distinct[0], distinct[-1]
    if not _is_small(low, high, values.size):
        places = np.minimum(np.searchsorted(distinct, values), distinct.size - 1).astype(np.int64)
        return np.where(distinct[places] == values, places, -1)
    table = np.full(int(high) - int(low) + 1, -1, dtype=np.int64)
    table[distinct - low] = np.arange(distinct.size)
    if values.min() >= low and values.max() <= high:
        return np.asarray(table[values - low])
    inside = (values >= low) & (values <= high)
    return np.where(inside, table[np.where(inside, values, low) - low], -1)


def _is_small(low: Any, high: Any, size: int) -> bool:
    """Whether a table of all integers in a range is faster than sorting or bisection."""
    return int(high) - int(low) < max(_TIMES * size, _SMALL_RANGE)


def _is_plain_array(y: Any, offsets: Any) -> bool:
    """Whether labels are one flat array of integers, one for each node: millions of them need no Python objects."""
    return (
        isinstance(y, np.ndarray)
        and y.ndim == 1
        and y.size > 0
        and y.dtype.kind in "iu"
        and y.dtype != np.uint64
        and (offsets is None or y.size == np.asarray(offsets)[-1])
    )


def _shown(labels: list[Any]) -> str:
    return ", ".join(map(repr, labels[:_SHOWN])) + (", ..." if len(labels) > _SHOWN else "")


def _place(flat: _Flat, at: int, name: str) -> str:
    if flat.bounds is None:
        return f"{name}[{at}]"
    example = int(np.searchsorted(flat.bounds, at, side="right")) - 1
    return f"{name}[{example}][{at - flat.bounds[example]}]"


def _flattened(y: Any, offsets: Any, name: str) -> _Flat:
    y = unwrapped(y)
    if isinstance(y, (str, bytes, dict, set, frozenset)) or not isinstance(y, Iterable):
        raise TypeError(f"{name} must have a list of labels per example. Got {type(y).__name__} instead.")
    expected = None if offsets is None else np.asarray(offsets, dtype=np.int64)
    if isinstance(y, np.ndarray) and y.ndim == 1:
        return _check_total(_Flat(y.tolist(), expected, True), expected, name)
    examples = [unwrapped(example) for example in y]
    nested = [isinstance(example, (list, tuple, np.ndarray)) for example in examples]
    if not any(nested):
        # A flat list of labels, or of something that will be refused by its type.
        return _check_total(_Flat(examples, expected, False), expected, name)
    if not all(nested):
        bad = nested.index(False)
        found = type(examples[bad]).__name__
        raise TypeError(f"{name}[{bad}] must be a list or array of labels, as other examples are. Got {found} instead.")
    arrays = any(isinstance(example, np.ndarray) for example in y)
    lists = [example.tolist() if isinstance(example, np.ndarray) else example for example in examples]
    bounds = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(example) for example in lists], out=bounds[1:])
    if expected is not None:
        _check_lengths(bounds, expected, name)
    return _Flat(list(itertools.chain.from_iterable(lists)), bounds, arrays)


def _check_total(flat: _Flat, expected: NDArray[np.int64] | None, name: str) -> _Flat:
    if expected is not None and len(flat.labels) != expected[-1]:
        raise ValueError(
            f"{name} must have a list of labels per example, or {expected[-1]} labels in a row, one per node. "
            f"Got {len(flat.labels)} in a row instead."
        )
    return flat


def _check_lengths(bounds: NDArray[np.int64], expected: NDArray[np.int64], name: str) -> None:
    if bounds.size != expected.size:
        raise ValueError(f"{name} has {bounds.size - 1} examples; X has {expected.size - 1}.")
    differs = np.diff(bounds) != np.diff(expected)
    if differs.any():
        i = int(np.argmax(differs))
        raise ValueError(
            f"{name}[{i}] has {bounds[i + 1] - bounds[i]} labels; X[{i}] has {expected[i + 1] - expected[i]} nodes."
        )


def _kind_of_type(kind: type) -> Kind | None:
    # Subclasses of str and int, such as enumerations, may hash and compare in their own way.
    if kind in (str, np.str_):
        return "str"
    if kind in (bool, np.bool_):
        return "bool"
    return "int" if kind is int or issubclass(kind, np.integer) else None


def _kind_of(flat: _Flat, expected: Kind | None, name: str) -> Kind | None:
    """Find the one kind of all labels, which must be the expected one if there is one."""
    kinds = {kind: _kind_of_type(kind) for kind in set(map(type, flat.labels))}
    if expected is None and flat.labels:
        expected = kinds[type(flat.labels[0])]
    for kind, label_kind in kinds.items():
        if label_kind is None or label_kind != expected:
            at = next(i for i, label in enumerate(flat.labels) if type(label) is kind)
            wanted = "a str, an int or a bool" if expected is None else f"of type {expected}, as other labels are"
            raise TypeError(f"{_place(flat, at, name)} must be {wanted}. Got {kind.__name__} instead.")
    return expected
