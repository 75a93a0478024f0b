"""Distinct values of any type that NumPy has, such as classes, as records, and the names of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.records import Fields, Record, packed

# By the kind of a NumPy type, what an entry of a list is in JSON.
_ENTRIES: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "U": str}
_INTEGERS = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
_TYPES = ("bool", "U", "O", "float32", "float64", *_INTEGERS)


def values_record(values: NDArray[Any], *, mixed: bool = False) -> Fields:
    """Return the record of distinct values; objects are str, or also numbers if types are `mixed`."""
    kind, listed = values.dtype.kind, values.tolist()
    wanted = _types(kind, mixed)
    if not wanted or not all(type(value) in wanted for value in listed):
        raise ValueError(f"The model cannot be saved: its values must be numbers or str. Got {listed!r:.200}.")
    record = {"kind": kind if kind in "UO" else values.dtype.name, "names": listed}
    try:
        read_values(Record(record), mixed=mixed)  # as load will
    except ValueError as error:
        raise ValueError(f"The model cannot be saved, since its values could not be read again: {error}") from None
    return record


def read_values(record: Record, *, mixed: bool = False) -> NDArray[Any]:
    """Return distinct values, checked."""
    kind, names = record.text("kind"), record.items("names")
    if kind not in _TYPES:
        raise record.fault(f"its classes are of an unknown type, {kind!r:.100}.")
    dtype = np.dtype(kind)
    wanted = _types(dtype.kind, mixed)
    if not all(type(name) in wanted for name in names):
        raise record.fault(f"its classes must all be of type {' or '.join(one.__name__ for one in wanted)}.")
    try:
        values = np.array(names, dtype=dtype)
    except OverflowError:
        raise record.fault(f"its classes do not fit into {dtype}.") from None
    if values.shape != (len(names),) or values.tolist() != names:
        what = "must not end in a zero character" if dtype.kind == "U" else f"are not what {dtype} can hold"
        raise record.fault(f"its classes {what}.")
    if not names or len(set(names)) < len(names):
        raise record.fault("its classes must be distinct, and at least one.")
    return values


def read_classes(record: Record, least: int = 1) -> NDArray[Any]:
    """Return distinct values in order, at least `least` of them."""
    values = read_values(record)
    names = values.tolist()
    if names != sorted(names) or len(names) < least:
        raise record.fault(f"its classes must be distinct, in order, and at least {least}.")
    return values


def _types(kind: str, mixed: bool) -> tuple[type, ...]:
    if kind == "O":
        return tuple(dict.fromkeys(_ENTRIES.values())) if mixed else (str,)
    return (_ENTRIES[kind],) if kind in _ENTRIES else ()


def names_record(names: Any) -> NDArray[np.uint8] | None:
    """Return the names of columns as an array, if there are any: they may be too many for a header."""
    return None if names is None else packed(list(map(str, names)))


def read_names(record: Record, name: str, n_names: int) -> NDArray[Any] | None:
    """Return the names of columns, checked; None if there are none."""
    if not record.has(name):
        return None
    names = record.unpacked(name)
    if not isinstance(names, list) or len(names) != n_names or not all(type(one) is str for one in names):
        raise record.fault(f"it must have names of {n_names} features.")
    return np.array(names, dtype=object)
