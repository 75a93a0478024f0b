"""Constructor parameters as JSON and arrays, and back."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualfield.features import Template
from dualfield.persistence import ModelFileError
from dualfield.persistence.file import ModelFile
from dualfield.solvers import solver_classes
from dualfield.structures import Chain

_CHAIN_ARRAYS = ("allowed", "allowed_start", "allowed_stop")
_HIGHEST_ORDER = 63
# How many windows of labels a model scores: no chain in its file may have more.
CLIQUES = "cliques.weights"
# Where no weights depend on a chain, it may have so many.
FREE_WINDOWS = 2**20
# Settings that a model takes as objects: the classes that its file can name, by their names.
Parts = Mapping[str, type[Any]]


class ParameterWriter:
    """Turns values into JSON; arrays among them are set aside under names of their own."""

    def __init__(self, owner: str, arrays: dict[str, NDArray[Any]], parts: Parts | None = None) -> None:
        self.owner, self.arrays, self.parts = owner, arrays, parts or {}

    def encoded(self, name: str, value: Any) -> Any:
        """Return the JSON form of a parameter, or raise an error that names it."""
        # What a fit drew from a generator is spent; its state would not make the next fit the same.
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return None
        try:
            return self._encoded(name, value)
        except TypeError as error:
            raise ValueError(
                f"The {name!r} parameter of {self.owner} cannot be saved: a model file holds numbers, text, arrays, "
                f"lists, dicts and settings of this library, and no code. Got {error} instead."
            ) from None

    def _encoded(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, (bool, np.bool_)):
            return None if value is None else bool(value)
        if isinstance(value, str):
            return str(value)
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(value)
        if isinstance(value, list):
            return [self._encoded(name, item) for item in value]
        if isinstance(value, tuple):
            return {"type": "tuple", "items": [self._encoded(name, item) for item in value]}
        if isinstance(value, Mapping):
            items = [[self._encoded(name, key), self._encoded(name, item)] for key, item in value.items()]
            return {"type": "dict", "items": items}
        if isinstance(value, Template):
            return {"type": "template", "text": value.text, "syntax": value.syntax}
        if isinstance(value, Chain):
            return self.chain(name, value)
        if type(value) in solver_classes().values():
            kept = {key: self._encoded(f"{name}.{key}", setting) for key, setting in _settings(value).items()}
            return {"type": "solver", "name": value.name, "settings": kept}
        if type(value) in self.parts.values():
            kept = {key: self.encoded(f"{name}__{key}", setting) for key, setting in _settings(value).items()}
            return {"type": "part", "name": type(value).__name__, "settings": kept}
        if sparse.issparse(value):
            return self._sparse(name, value)
        if hasattr(value, "__array__"):
            return self._array(name, np.asarray(value))
        raise TypeError(repr(value))

    def chain(self, name: str, chain: Chain) -> dict[str, Any]:
        """Return the JSON form of a chain."""
        flags = {key: self._encoded(f"{name}.{key}", getattr(chain, key)) for key in _CHAIN_ARRAYS}
        return {"type": "chain", "n_labels": chain.n_labels or None, "order": chain.order, **flags}

    def _array(self, name: str, array: NDArray[Any]) -> dict[str, Any]:
        if array.dtype.kind in "biuf" and array.itemsize <= 8:
            place = self._place(name)
            self.arrays[place] = array
            return {"type": "array", "name": place}
        if array.dtype.kind in "OU":
            return {"type": "objects", "items": self._encoded(name, array.tolist())}
        raise TypeError(f"an array of {array.dtype}")

    def _sparse(self, name: str, matrix: Any) -> dict[str, Any]:
        place = self._place(name)
        return {"type": self.csr(place, matrix), "name": place, "shape": list(matrix.shape)}

    def csr(self, place: str, matrix: Any) -> str:
        """Set a sparse matrix aside, and return its type."""
        rows = matrix.tocsr()
        self.arrays |= {f"{place}.{part}": getattr(rows, part) for part in ("data", "indices", "indptr")}
        return "csr_array" if isinstance(rows, sparse.csr_array) else "csr_matrix"

    def _place(self, name: str) -> str:
        """Return a name that no other array has: a parameter may hold several."""
        return f"parameters.{name}.{len(self.arrays)}"


class ParameterReader:
    """Turns what :class:`ParameterWriter` wrote back into values; nothing that a file says is taken on trust."""

    def __init__(self, file: ModelFile, parts: Parts | None = None) -> None:
        self.file, self.parts = file, parts or {}

    def decoded(self, name: str, value: Any) -> Any:
        """Return the value of a parameter, or raise a ModelFileError that names it."""
        try:
            return self._decoded(value)
        except ModelFileError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise self.file.fault(f"is altered: its {name!r} cannot be read: {error}.") from None

    def _decoded(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self._decoded(item) for item in value]
        kind = value.get("type")
        if kind == "tuple":
            return tuple(self._decoded(item) for item in _fields(value, items=list)[0])
        if kind == "dict":
            (items,) = _fields(value, items=list)
            return {self._decoded(key): self._decoded(item) for key, item in items}
        if kind == "array":
            return np.array(self.file.array(*_fields(value, name=str)))
        if kind == "objects":
            return np.array(self._decoded(_fields(value, items=list)[0]))
        if kind in ("csr_array", "csr_matrix"):
            return read_csr(self.file, kind, *_fields(value, name=str, shape=list))
        if kind == "template":
            return Template(*_fields(value, text=str, syntax=str))
        if kind == "chain":
            return self.chain(value)
        if kind == "solver":
            name, settings = _fields(value, name=str, settings=dict)
            return solver_classes()[name](**{key: self._decoded(setting) for key, setting in settings.items()})
        if kind == "part":
            name, settings = _fields(value, name=str, settings=dict)
            return self.parts[name](**{key: self._decoded(setting) for key, setting in settings.items()})
        raise ValueError(f"unknown type {kind!r:.100}")

    def chain(self, value: dict[str, Any]) -> Chain:
        """Return a chain, whose windows of labels must be among those that the file has weights for."""
        parts = {key: self._decoded(value.get(key)) for key in ("n_labels", "order", *_CHAIN_ARRAYS)}
        if value.keys() != {"type", *parts} or value["type"] != "chain":
            raise ValueError("a chain has other settings")
        n_labels, order = parts["n_labels"], parts["order"]
        if type(order) is not int or not 1 <= order <= _HIGHEST_ORDER:
            raise ValueError(f"a chain must have an order in [1, {_HIGHEST_ORDER}]. Got {order!r:.100}")
        if n_labels is not None and (type(n_labels) is not int or n_labels < 1):
            raise ValueError(f"a chain must have an int of labels. Got {n_labels!r:.100}")
        allowed, most = parts["allowed"], self.file.shape(CLIQUES)[0] if self.file.has(CLIQUES) else FREE_WINDOWS
        listed = isinstance(allowed, np.ndarray) and allowed.dtype != np.bool_ and order > 1
        if n_labels is not None and (len(allowed) if listed else n_labels ** (order + 1)) > most:
            raise ValueError(f"a chain has more windows of labels than the {most} weights of the file")
        return Chain(n_labels, order, *(parts[key] for key in _CHAIN_ARRAYS))


def read_csr(file: ModelFile, kind: str, name: str, shape: list[Any]) -> Any:
    """Return a sparse matrix, every index of which has been checked."""
    if len(shape) != 2 or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise file.fault(f"is altered: the matrix {name!r} must have two sizes. Got {shape!r:.100}.")
    data = file.array(f"{name}.data", None, (None,))
    indices = file.array(f"{name}.indices", None, data.shape)
    indptr = file.array(f"{name}.indptr", None, (shape[0] + 1,))
    # SciPy knows no numbers in half precision.
    if (
        data.dtype.kind not in "biuf"
        or data.dtype == np.float16
        or indices.dtype != indptr.dtype
        or indptr.dtype not in (np.int32, np.int64)
    ):
        raise file.fault(f"is altered: the matrix {name!r} must have numbers, and ints that index them.")
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise file.fault(f"is altered: the rows of matrix {name!r} must follow each other.")
    if len(indices) and not (indices.min() >= 0 and indices.max() < shape[1]):
        raise file.fault(f"is altered: the matrix {name!r} must have columns in [0, {shape[1]}).")
    with file.at_fault():
        matrix = (sparse.csr_array if kind == "csr_array" else sparse.csr_matrix)(tuple(shape), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr  # the constructor would copy parts of a file
    return matrix


def _settings(part: Any) -> dict[str, Any]:
    """Return what a model without its hidden parts, or what describes these, was made with."""
    if hasattr(part, "get_params"):
        return dict(part.get_params(deep=False))
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}


def _fields(value: dict[str, Any], **kinds: type) -> list[Any]:
    """Return the entries of a record, which must have just these, of these types."""
    if value.keys() != {"type", *kinds} or not all(isinstance(value[key], kind) for key, kind in kinds.items()):
        raise ValueError(f"a record of type {value['type']!r} must have {', '.join(kinds)}")
    return [value[key] for key in kinds]
