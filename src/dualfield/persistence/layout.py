"""From records to the metadata and the named arrays of a file, and back.

The path of an array in its record, with dots, is its name in the file. Nothing else says where it belongs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.records import Fields, StoredArray
from dualfield.persistence.header import FaultError


def flattened(record: Mapping[str, Any]) -> tuple[Fields, dict[str, NDArray[Any]]]:
    """Return the JSON part of a record, and its arrays by their paths."""
    arrays: dict[str, NDArray[Any]] = {}
    return _without_arrays(record, "", arrays), arrays


def _without_arrays(value: Any, path: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if isinstance(value, Mapping):
        kept = {}
        for name, inner in value.items():
            place = f"{path}.{name}" if path else name
            if isinstance(inner, np.ndarray):
                arrays[place] = inner
            else:
                kept[name] = _without_arrays(inner, place, arrays)
        return kept
    if isinstance(value, list):
        return [_without_arrays(inner, f"{path}.{at}", arrays) for at, inner in enumerate(value)]
    return value


def nested(metadata: Mapping[str, Any], arrays: Mapping[str, StoredArray]) -> Fields:
    """Return the record that metadata and arrays were flattened from, or raise a FaultError."""
    record: Fields = _copied(metadata)
    for name, array in arrays.items():
        *path, last = name.split(".")
        inner = record
        for part in path:
            inner = _inner(inner, part)
            if inner is None:
                break
        if not isinstance(inner, dict) or last in inner:
            raise FaultError(f"is altered: it has an array {name!r:.100}, no part of such a model.")
        inner[last] = array
    return record


def _inner(outer: Any, part: str) -> Any:
    if isinstance(outer, dict):
        return outer.get(part)
    if isinstance(outer, list) and part.isascii() and part.isdigit() and len(part) < 10 and int(part) < len(outer):
        return outer[int(part)]
    return None


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value
