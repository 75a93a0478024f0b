"""Constructor parameters as records, and back."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualfield.data.records import Fields, Record, matrix_record
from dualfield.features import Template
from dualfield.persistence import ModelFileError
from dualfield.solvers import solver_classes
from dualfield.structures.registry import structure_classes

# Objects that a parameter may be: those that make records, and those that are made from settings, by their names.
Parts = Mapping[str, type[Any]]
_RECORDED: Parts = {**structure_classes(), "template": Template}


def encoded(owner: str, name: str, value: Any, parts: Parts) -> Any:
    """Return the record of a parameter, or raise an error that names it.

    `parts` are the classes, beside solvers, whose objects the parameters of this estimator may be.
    """
    # What a fit drew from a generator is spent; its state would not make the next fit the same.
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if type(value) in parts.values():
        settings = {key: encoded(owner, f"{name}__{key}", one, parts) for key, one in _settings(value).items()}
        return {"kind": type(value).__name__, "settings": settings}
    try:
        return _encoded(value)
    except TypeError as error:
        raise ValueError(
            f"The {name!r} parameter of {owner} cannot be saved: a model file holds numbers, text, arrays, "
            f"lists, dicts and settings of this library, and no code. Got {error} instead."
        ) from None


def _encoded(value: Any) -> Any:
    if value is None or isinstance(value, (bool, np.bool_)):
        return None if value is None else bool(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, list):
        return list(map(_encoded, value))
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": list(map(_encoded, value))}
    if isinstance(value, Mapping):
        return {"kind": "dict", "items": [[_encoded(key), _encoded(item)] for key, item in value.items()]}
    if type(value) in _RECORDED.values():
        return value.record()
    if type(value) in solver_classes().values():
        settings = {key: _encoded(setting) for key, setting in _settings(value).items()}
        return {"kind": value.name, "settings": settings}
    if sparse.issparse(value):
        return matrix_record(value)
    if hasattr(value, "__array__"):
        return _encoded_array(np.asarray(value))
    raise TypeError(repr(value))


def _encoded_array(array: NDArray[Any]) -> Fields:
    if array.dtype.kind in "biuf" and array.itemsize <= 8:
        return {"kind": "array", "values": array}
    if array.dtype.kind in "OU":
        return {"kind": "objects", "items": _encoded(array.tolist())}
    raise TypeError(f"an array of {array.dtype}")


def decoded(record: Record, name: str, parts: Parts) -> Any:
    """Return a parameter, or raise an error that names it. Nothing that a file says is taken on trust."""
    try:
        return _decoded(record, name, record.json(name), parts)
    except ModelFileError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise record.fault(f"its {name!r} cannot be read: {error}.") from None


def _decoded(outer: Record, name: str, value: Any, made_of: Parts) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [_decoded(outer, f"{name}.{at}", item, made_of) for at, item in enumerate(value)]
    if not isinstance(value, dict):
        raise ValueError("an array must have a kind")
    record = Record(value, outer.source, outer.place(name))
    found = _of_kind(record, made_of)
    record.check_all_read()
    return found


def _of_kind(record: Record, made_of: Parts) -> Any:
    def inner(name: str, one: Any) -> Any:
        return _decoded(record, name, one, made_of)

    kind = record.text("kind")
    if kind == "tuple":
        return tuple(inner("items", record.items("items")))
    if kind == "dict":
        return {inner("items", key): inner(f"items.{at}.1", one) for at, (key, one) in enumerate(record.items("items"))}
    if kind == "array":
        return np.array(record.array("values"))
    if kind == "objects":
        return np.array(inner("items", record.items("items")))
    if kind in ("csr_array", "csr_matrix"):
        return record.compressed_rows((None, None))
    if kind in _RECORDED:
        return _RECORDED[kind].from_record(record)
    known = {**solver_classes(), **made_of}
    if kind in known:
        settings = record.child("settings")
        return known[kind](**{key: inner(f"settings.{key}", settings.json(key)) for key in settings.names()})
    raise ValueError(f"unknown kind {kind!r:.100}")


def _settings(part: Any) -> dict[str, Any]:
    """Return what an estimator or a record of settings was made with."""
    if hasattr(part, "get_params"):
        return dict(part.get_params(deep=False))
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
