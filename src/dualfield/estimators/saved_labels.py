"""Labels in model files, of any type that NumPy can sort, and the names of columns."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Labels
from dualfield.estimators.saved import field
from dualfield.persistence.file import ModelFile

# By the kind of a NumPy type, what an entry of a list is in JSON.
_ENTRIES = {"b": bool, "i": int, "u": int, "f": float, "U": str, "O": str}
_INTEGERS = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
_TYPES = ("bool", "U", "O", "float32", "float64", *_INTEGERS)
# Labels of sequences are one of these; single nodes have what the user's array had.
_KINDS: dict[str, type] = {"str": str, "int": int, "bool": bool}
_PLAIN = {"str": "U", "int": "int64", "bool": "bool"}
_NAMES = "feature_names"


def class_record(classes: NDArray[Any]) -> dict[str, Any]:
    """Return the metadata of classes that are a sorted array."""
    names = classes.tolist()
    if classes.dtype.kind not in _ENTRIES or not all(type(name) is _ENTRIES[classes.dtype.kind] for name in names):
        raise ValueError(f"The model cannot be saved: its classes must be numbers or str. Got {names!r:.200}.")
    return {"kind": classes.dtype.kind if classes.dtype.kind in "UO" else classes.dtype.name, "names": names}


def restored_classes(file: ModelFile) -> NDArray[Any]:
    """Return such classes, checked."""
    record = field(file, "labels", dict)
    kind, names = field(file, "kind", str, record), field(file, "names", list, record)
    if kind not in _TYPES:
        raise file.fault(f"is altered: its classes are of an unknown type, {kind!r:.100}.")
    dtype = np.dtype(kind)
    if not all(type(name) is _ENTRIES[dtype.kind] for name in names):
        raise file.fault(f"is altered: its classes must all be of type {_ENTRIES[dtype.kind].__name__}.")
    if len(names) < 2 or names != sorted(set(names)):
        raise file.fault("is altered: its classes must be distinct, in order, and at least two.")
    try:
        classes = np.array(names, dtype=dtype)
    except OverflowError:
        raise file.fault(f"is altered: its classes do not fit into {dtype}.") from None
    if classes.tolist() != names:
        raise file.fault(f"is altered: its classes are not what {dtype} can hold.")
    return classes


def label_record(labels: Labels) -> dict[str, Any]:
    """Return the metadata of labels."""
    record = class_record(labels.classes)
    kind = labels.kind if record["kind"] == _PLAIN[labels.kind] else record["kind"]
    return {"kind": kind, "arrays": bool(labels.arrays), "names": record["names"]}


def restored_labels(file: ModelFile) -> Labels:
    """Return labels, checked."""
    record = field(file, "labels", dict)
    kind, names = field(file, "kind", str, record), field(file, "names", list, record)
    if kind in _TYPES and kind not in _KINDS:
        classes = restored_classes(file)
        known: Any = {"U": "str", "O": "str"}.get(classes.dtype.kind, "int")
        return Labels(classes, known, field(file, "arrays", bool, record))
    if kind not in _KINDS or not all(type(name) is _KINDS[kind] for name in names):
        raise file.fault(f"is altered: its labels must be all of one type, str, int or bool. Got {kind!r:.100}.")
    if not names or names != sorted(set(names)):
        raise file.fault("is altered: its labels must be distinct, in order, and at least one.")
    try:
        classes = np.array(names, dtype=np.int64 if kind == "int" else kind)
    except OverflowError:
        raise file.fault("is altered: its labels must fit in 64 bits.") from None
    if classes.tolist() != names:
        raise file.fault("is altered: a label must not end in a zero character.")
    return Labels(classes, kind, field(file, "arrays", bool, record))


def save_feature_names(model: Any, arrays: dict[str, NDArray[Any]]) -> bool:
    """Set the names of columns aside, if there are any; return whether there are."""
    if not hasattr(model, "feature_names_in_"):
        return False
    text = json.dumps(list(map(str, model.feature_names_in_)))  # too many for the header, perhaps
    arrays[_NAMES] = np.frombuffer(text.encode("ascii"), np.uint8)
    return True


def restored_feature_names(file: ModelFile, n_features: int) -> NDArray[Any]:
    """Return the names of columns, checked."""
    try:
        names = json.loads(file.array(_NAMES, np.uint8, (None,)).tobytes().decode("ascii"))
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or len(names) != n_features or not all(type(name) is str for name in names):
        raise file.fault(f"is altered: it must have names of {n_features} features.")
    return np.array(names, dtype=object)
