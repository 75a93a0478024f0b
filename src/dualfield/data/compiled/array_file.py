"""Files of flat arrays that can be mapped: the arrays, a table of them, and a footer that says that they are complete.

A file is the bytes of its arrays, each from a multiple of 64 on; then the table, JSON that gives type, shape and place
of each array and small values besides; then 24 bytes: the length of the table, its CRC-32, that of everything before
it (three little-endian numbers of 8, 4 and 4 bytes) and the mark ``DFARRAYS``. Numbers are little-endian. Files are
written beside their place and renamed, so that one that is there is complete.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIGNMENT = 64
MARK = b"DFARRAYS"
_FOOTER = struct.Struct("<QII8s")
_TYPES = ("uint8", "int32", "int64", "uint64", "float64")
_CHUNK = 1 << 22  # bytes that are read at a time to compare them with their digest


class CorpusFileError(ValueError):
    """A file of a compiled corpus that cannot be used; the message begins with its name and says what is wrong.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualfield.data import CompiledCorpus
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     CompiledCorpus(folder)
    Traceback (most recent call last):
        ...
    dualfield.data.compiled.array_file.CorpusFileError: ... is not a compiled corpus: it has no file corpus.json. ...
    """


class ArrayWriter:
    """Write arrays into a file one after another, in pieces where they are long; it appears when it is complete.

    Used as a context: leaving it by an error removes what was written.

    Parameters
    ----------
    path : path-like
        Where the file goes.
    values : mapping from str to JSON values
        Small values that are kept with the arrays.
    """

    def __init__(self, path: str | os.PathLike[str], values: Mapping[str, Any] | None = None) -> None:
        self._target = Path(path)
        self._temporary = self._target.with_name(f".{self._target.name}.{os.getpid()}.part")
        self._values = dict(values or {})
        self._table: dict[str, Any] = {}
        self._at = self._digest = 0

    def __enter__(self) -> ArrayWriter:
        self._file = self._temporary.open("wb")
        return self

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Write a whole array."""
        self.add_pieces(name, array.dtype, [array], array.shape[1:])

    def add_pieces(
        self, name: str, dtype: DTypeLike, pieces: Iterable[NDArray[Any]], row_shape: tuple[int, ...] = ()
    ) -> None:
        """Write an array whose rows come in pieces."""
        kind = np.dtype(dtype)
        assert kind.name in _TYPES
        self._write(b"\0" * (-self._at % ALIGNMENT))
        start, n_rows = self._at, 0
        for piece in pieces:
            n_rows += len(piece)
            rows = np.ascontiguousarray(piece, dtype=kind.newbyteorder("<"))
            if rows.size:
                self._write(rows.reshape(-1).view(np.uint8).data)
        self._table[name] = {"type": kind.name, "shape": [n_rows, *row_shape], "at": start}

    def set_value(self, name: str, value: Any) -> None:
        """Keep a small value."""
        self._values[name] = value

    def _write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._digest = zlib.crc32(data, self._digest)
        self._at += len(data)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                table = json.dumps({"arrays": self._table, "values": self._values}, sort_keys=True).encode("ascii")
                self._file.write(table)
                self._file.write(_FOOTER.pack(len(table), zlib.crc32(table), self._digest, MARK))
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._temporary.replace(self._target)
        except OSError as failure:
            failure.filename = failure.filename or os.fspath(self._target)
            raise
        finally:
            self._file.close()
            self._temporary.unlink(missing_ok=True)


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any] | None = None
) -> None:
    """Write a file of whole arrays."""
    with ArrayWriter(path, values) as file:
        for name, array in arrays.items():
            file.add(name, array)


class ArrayFile:
    """An open file of arrays, which are mapped; its footer and table are checked, its content by :meth:`verify`.

    Parameters
    ----------
    path : path-like
        The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            raise CorpusFileError(f"{self.path} is missing.") from None
        if size < _FOOTER.size:
            raise CorpusFileError(f"{self.path} is cut off: it has {size} bytes, fewer than its footer.")
        with self.path.open("rb") as file:
            self._memory = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        length, table_digest, self._digest, mark = _FOOTER.unpack(self._memory[-_FOOTER.size :].tobytes())
        if mark != MARK:
            raise CorpusFileError(f"{self.path} is cut off or altered: it does not end as a file of arrays does.")
        stop = size - _FOOTER.size
        table = self._memory[stop - length : stop].tobytes() if length <= stop else b""
        if zlib.crc32(table) != table_digest or not table:
            raise CorpusFileError(f"{self.path} is altered: its table does not agree with its digest.")
        self.data_bytes = stop - length
        read = json.loads(table)
        self.values: dict[str, Any] = read["values"]
        self.table: dict[str, tuple[np.dtype[Any], tuple[int, ...], int]] = {}
        for name, entry in read["arrays"].items():
            dtype, shape, at = np.dtype(entry["type"]), tuple(entry["shape"]), int(entry["at"])
            if entry["type"] not in _TYPES or min(shape) < 0 or not 0 <= at <= self.data_bytes - _nbytes(dtype, shape):
                raise CorpusFileError(f"{self.path} is altered: its array {name!r} lies outside of the file.")
            self.table[name] = dtype, shape, at

    def __contains__(self, name: str) -> bool:
        return name in self.table

    def array(self, name: str) -> NDArray[Any]:
        """Return an array, where it lies."""
        if name not in self.table:
            raise CorpusFileError(f"{self.path} is altered: it has no array {name!r}.")
        dtype, shape, at = self.table[name]
        return self._memory[at : at + _nbytes(dtype, shape)].view(dtype.newbyteorder("<")).reshape(shape)

    def place(self, name: str) -> int:
        """Return at which byte of the file an array begins."""
        return self.table[name][2]

    def verify(self) -> None:
        """Compare the content with its digest."""
        digest = 0
        for start in range(0, self.data_bytes, _CHUNK):
            digest = zlib.crc32(self._memory[start : min(start + _CHUNK, self.data_bytes)].data, digest)
        if digest != self._digest:
            raise CorpusFileError(f"{self.path} is altered: its bytes do not agree with their digest.")


def _nbytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    count = dtype.itemsize
    for n in shape:
        count *= n
    return count
