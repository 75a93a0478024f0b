"""Values as records: what a frozen value consists of, in a form that files hold and that is read without trust.

A record is a dict of JSON values, arrays, sparse matrices, other records and lists of these. ``value.record()`` makes
one, ``Class.from_record(Record(...))`` checks one and makes the value again. What stands in a file is checked here, in
one place; whoever opens files gives the :class:`Source`, which says whose fault it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

Fields = dict[str, Any]
When = Literal["now", "later", "elsewhere"]
FLOATS = (np.float32, np.float64)

_NOTHING = object()
_CSR = {"csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}


class StoredArray(Protocol):
    """An array in a file: what it must be is known, what is in it is read when it is needed."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def values(self) -> NDArray[Any]:
        """The array, where it lies."""

    def verify(self) -> None:
        """Compare it with its digest, or raise an error."""


class Source:
    """Where records come from: memory, or a file, which is at fault for all that is wrong with them."""

    is_mapped = False  # whether arrays stay in a file, and are checked when they are first used
    most_entries = 2**20  # of what is made from a few numbers: no record may ask for more

    def __init__(self) -> None:
        self._pending: list[Callable[[], None]] = []

    def fault(self, what: str) -> Exception:
        """Return the error to raise."""
        return ValueError(f"The record is altered: {what}")

    def later(self, check: Callable[[], None]) -> None:
        """Check something now, or in a mapped file at the first use of what was made of it."""
        if self.is_mapped:
            self._pending.append(check)
        else:
            check()

    def at_fault(self) -> AbstractContextManager[None]:
        """Blame the source for what is raised while a value is made of a record."""
        return nullcontext()

    def finish(self) -> None:
        """Check all that was left for later; done twice, by two threads, it does no harm."""
        for check in self._pending:
            check()
        self._pending = []


class Record:
    """A record that is read: each entry is checked as it is taken, and faults name its path.

    Parameters
    ----------
    fields : mapping
        The entries.
    source : Source, default=None
        Where they come from; None: memory.
    path : str, default=""
        Where the record stands in a larger one.

    Examples
    --------
    >>> from dualfield.data.records import Record
    >>> from dualfield.kernels import Kernel
    >>> written = Kernel("rbf", gamma=0.5).record()
    >>> written
    {'function': 'rbf', 'gamma': 0.5, 'coef0': 0.0, 'degree': 3.0}
    >>> Kernel.from_record(Record(written)).gamma
    0.5
    >>> Kernel.from_record(Record(written | {"gamma": -1.0}))
    Traceback (most recent call last):
        ...
    ValueError: The record is altered: its 'gamma' must be in (0, inf). Got -1.0.
    """

    def __init__(self, fields: Mapping[str, Any], source: Source | None = None, path: str = "") -> None:
        self.source = Source() if source is None else source
        self._fields, self.path = fields, path
        self._unread = set(fields)
        self._children: dict[str, Record] = {}

    def place(self, name: str) -> str:
        """Return the path of an entry."""
        return f"{self.path}.{name}" if self.path else name

    def fault(self, what: str) -> Exception:
        """Return the error that says what is wrong."""
        return self.source.fault(what)

    def check(self, good: bool, what: str) -> None:
        """Raise an error unless something holds."""
        if not good:
            raise self.fault(what)

    def check_all_read(self) -> None:
        """Raise an error if there is an entry that nobody has asked for."""
        if self._unread:
            name = self.place(min(self._unread))
            raise self.fault(f"it has an entry {name!r:.100}, no part of such a model.")
        for child in self._children.values():
            child.check_all_read()

    def has(self, name: str) -> bool:
        """Return whether an entry, which must be there, is not None."""
        if name not in self._fields:
            raise self.fault(f"it has no entry {self.place(name)!r:.100}.")
        if self._fields[name] is None:
            self._unread.discard(name)
        return self._fields[name] is not None

    def integer(self, name: str, low: float = -math.inf, high: float = math.inf) -> int:
        """Return an int in [low, high]."""
        return int(self._number(name, int, low, high))

    def number(self, name: str, low: float = -math.inf, *, finite: bool = False, above: float | None = None) -> float:
        """Return a float of at least `low`, or `above` a number; any, NaN included, if none of these is given."""
        value = float(self._number(name, float, low, math.inf))
        if (finite or above is not None) and not (math.isfinite(value) and (above is None or value > above)):
            bounds = "finite" if above is None else f"in ({above:g}, inf)"
            raise self.fault(f"its {self.place(name)!r} must be {bounds}. Got {value!r}.")
        return value

    def _number(self, name: str, kind: type, low: float, high: float) -> Any:
        value = self._typed(name, kind)
        if value < low or value > high:
            raise self.fault(f"its {self.place(name)!r} must be in [{low}, {high}]. Got {value!r:.100}.")
        return value

    def flag(self, name: str) -> bool:
        """Return a bool."""
        return bool(self._typed(name, bool))

    def text(self, name: str, one_of: Sequence[str] | None = None) -> str:
        """Return a str, which must be one of those given."""
        value = self._typed(name, str)
        if one_of is not None and value not in one_of:
            raise self.fault(f"its {self.place(name)!r} must be one of {list(one_of)!r:.300}. Got {value!r:.100}.")
        return str(value)

    def items(self, name: str, kind: type | None = None, size: int | None = None) -> list[Any]:
        """Return a list of JSON values, all of one type."""
        values: list[Any] = self._typed(name, list)
        if kind is not None and not all(type(value) is kind for value in values):
            raise self.fault(f"its {self.place(name)!r} must have entries of type {kind.__name__}.")
        if size is not None and len(values) != size:
            raise self.fault(f"its {self.place(name)!r} must have {size} entries. Got {len(values)}.")
        return values

    def json(self, name: str) -> Any:
        """Return any value, unchecked."""
        return self._taken(name)

    def names(self) -> list[str]:
        """Return the names of all entries."""
        return list(self._fields)

    def child(self, name: str) -> Record:
        """Return a record in this one."""
        return self._record(name, self._typed(name, dict))

    def children(self, name: str) -> list[Record]:
        """Return a list of records."""
        listed = self.items(name, dict)
        return [self._record(f"{name}.{at}", fields) for at, fields in enumerate(listed)]

    def _record(self, name: str, fields: Fields) -> Record:
        return self._children.setdefault(name, Record(fields, self.source, self.place(name)))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, which must be there."""
        return self._stored(name).shape

    def array(
        self,
        name: str,
        dtype: DTypeLike | tuple[DTypeLike, ...] | None = None,
        shape: tuple[int | None, ...] | None = None,
        *,
        finite: bool = False,
        check: When = "now",
    ) -> NDArray[Any]:
        """Return an array of a type, or of one of several, and of a shape, in which None is any size.

        Its content is checked now; in a mapped file "later", when the value is first used; or "elsewhere", by whoever
        looks at a part of it. It may lie in a file, and must not be written to.
        """
        stored = self._stored(name)
        what = f"array {self.place(name)!r}"
        kinds = [np.dtype(one) for one in (dtype if isinstance(dtype, tuple) else (dtype,)) if one is not None]
        if shape is not None and not _fits(stored.shape, shape):
            expected = ", ".join("any" if n is None else str(n) for n in shape)
            raise self.fault(f"{what} must have shape ({expected}). Got {stored.shape}.")
        if kinds and stored.dtype not in kinds:
            raise self.fault(f"{what} must be of type {' or '.join(map(str, kinds))}. Got {stored.dtype}.")

        def content() -> None:
            stored.verify()
            self.check(not finite or bool(np.isfinite(stored.values).all()), f"{what} must have finite numbers.")

        self._check(content, check)
        return stored.values

    def matrix(
        self,
        name: str,
        shape: tuple[int | None, int | None],
        dtype: DTypeLike | tuple[DTypeLike, ...] | None = None,
        *,
        finite: bool = False,
        ordered: bool = False,
        check: When = "now",
    ) -> Any:
        """Return a matrix, dense or sparse; the columns of each sparse row are `ordered` if that is asked for."""
        if not isinstance(self._fields.get(name), dict):
            return self.array(name, dtype, shape, finite=finite, check=check)
        return self.child(name).compressed_rows(shape, dtype, finite=finite, ordered=ordered, check=check)

    def compressed_rows(
        self,
        shape: tuple[int | None, int | None],
        dtype: DTypeLike | tuple[DTypeLike, ...] | None = None,
        *,
        finite: bool = False,
        ordered: bool = False,
        check: When = "now",
    ) -> Any:
        """Return the sparse matrix that this record is."""
        made = _CSR[self.text("kind", tuple(_CSR))]
        sizes = self.items("shape", int, 2)
        what = f"the matrix {self.path!r}"
        if not all(0 <= n < 2**31 for n in sizes) or not _fits(tuple(sizes), shape):
            raise self.fault(f"{what} must have shape {shape}. Got {sizes!r:.100}.")
        data = self.array("data", dtype, (None,), finite=finite, check=check)
        indices = self.array("indices", (np.int32, np.int64), data.shape, check=check)
        indptr = self.array("indptr", (np.int32, np.int64), (sizes[0] + 1,), check=check)
        # SciPy knows no numbers in half precision.
        if data.dtype.kind not in "biuf" or data.dtype == np.float16 or indices.dtype != indptr.dtype:
            raise self.fault(f"{what} must have numbers, and ints that index them.")
        matrix = made(tuple(sizes), dtype=data.dtype)
        matrix.data, matrix.indices, matrix.indptr = data, indices, indptr  # the constructor would copy parts of a file

        def content() -> None:
            if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
                raise self.fault(f"the rows of {what[4:]} must follow each other.")
            if len(indices) and not (indices.min() >= 0 and indices.max() < sizes[1]):
                raise self.fault(f"{what} must have columns in [0, {sizes[1]}).")
            if ordered and not matrix.has_canonical_format:  # SciPy would put it in order, in the file
                raise self.fault(f"the rows of {what[4:]} must have their columns in order.")

        self._check(content, check)
        return matrix

    def unpacked(self, name: str) -> Any:
        """Return what :func:`packed` has made an array of; None if it cannot be read."""
        try:
            return json.loads(self.array(name, np.uint8, (None,)).tobytes().decode("ascii"))
        except (UnicodeError, json.JSONDecodeError, RecursionError):
            return None

    def _check(self, content: Callable[[], None], when: When) -> None:
        if when == "now":
            content()
        elif when == "later":
            self.source.later(content)

    def _taken(self, name: str) -> Any:
        self._unread.discard(name)
        return self._fields.get(name, _NOTHING)

    def _typed(self, name: str, kind: type) -> Any:
        value = self._taken(name)
        if type(value) is not kind:
            found = "nothing" if value is _NOTHING else f"{value!r:.100}"
            raise self.fault(f"its {self.place(name)!r} must be of type {kind.__name__}. Got {found}.")
        return value

    def _stored(self, name: str) -> StoredArray:
        value = self._taken(name)
        if isinstance(value, np.ndarray):
            return _InMemory(value)
        if value is None or value is _NOTHING or isinstance(value, (bool, int, float, str, list, dict)):
            raise self.fault(f"it has no array {self.place(name)!r:.100}.")
        stored: StoredArray = value
        return stored


class _InMemory:
    """An array of a record that was never in a file."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values, self.dtype, self.shape = values, values.dtype, values.shape

    def verify(self) -> None:
        pass


def matrix_record(matrix: Any) -> NDArray[Any] | Fields:
    """Return the record of a matrix: itself if it is dense, else compressed rows."""
    if not bool(sparse.issparse(matrix)):
        return np.asarray(matrix)
    rows = matrix.tocsr()
    kind = "csr_array" if isinstance(rows, sparse.csr_array) else "csr_matrix"
    return {"kind": kind, "shape": list(rows.shape), "data": rows.data, "indices": rows.indices, "indptr": rows.indptr}


def packed(value: Any) -> NDArray[np.uint8]:
    """Return JSON as an array, for what may be too long for the header of a file."""
    return np.frombuffer(json.dumps(value).encode("ascii"), np.uint8)


def _fits(found: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(found) == len(expected) and all(n in (None, m) for n, m in zip(expected, found, strict=True))
