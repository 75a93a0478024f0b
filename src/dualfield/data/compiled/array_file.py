"""Files of flat arrays that can be mapped: the arrays, a table of them, and a footer that says that they are complete.

A file is the bytes of its arrays, each from a multiple of 64 on; then the table, JSON that gives type, shape, place and
digest of each array and small values besides; then 20 bytes: the length of the table, its CRC-32 (little-endian numbers
of 8 and 4 bytes) and the mark ``DFARRAYS``. Numbers are little-endian. Files are written beside their place and
renamed, so that one that is there is complete.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native

ALIGNMENT = 64
FOOTER_BYTES = 20
MARK = b"DFARRAYS"
_FOOTER = struct.Struct("<QI8s")
_TYPES = ("uint8", "int32", "int64", "uint64", "float64")


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


def write_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    values: Mapping[str, Any] | None = None,
    *,
    durable: bool = False,
) -> None:
    """Write a file of arrays, and small values; it appears when it is complete.

    Where it is `durable` it is on the disk then, and survives a failure of the machine.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    table: dict[str, Any] = {}
    try:
        with temporary.open("wb") as file:
            at = 0
            for name, array in arrays.items():
                assert array.dtype.name in _TYPES
                data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
                file.write(b"\0" * (-at % ALIGNMENT))
                at += -at % ALIGNMENT
                entry = {"type": array.dtype.name, "shape": list(array.shape), "at": at}
                table[name] = {**entry, "digest": f"{_native.digest(data):016x}"}
                file.write(data.data)
                at += data.size
            text = json.dumps({"arrays": table, "values": dict(values or {})}, sort_keys=True).encode("ascii")
            file.write(text)
            file.write(_FOOTER.pack(len(text), zlib.crc32(text), MARK))
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        error.filename = error.filename or os.fspath(target)
        raise
    finally:
        temporary.unlink(missing_ok=True)


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
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._memory = np.frombuffer(self._map, np.uint8)
        length, table_digest, mark = _FOOTER.unpack(self._memory[-_FOOTER.size :].tobytes())
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
        self._digests: dict[str, str] = {}
        for name, entry in read["arrays"].items():
            dtype, shape, at = np.dtype(entry["type"]), tuple(entry["shape"]), int(entry["at"])
            if entry["type"] not in _TYPES or min(shape) < 0 or not 0 <= at <= self.data_bytes - _nbytes(dtype, shape):
                raise CorpusFileError(f"{self.path} is altered: its array {name!r} lies outside of the file.")
            self.table[name] = dtype, shape, at
            self._digests[name] = entry["digest"]

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
        """Compare the arrays with their digests, and leave their pages to others."""
        for name, (dtype, shape, at) in self.table.items():
            found = _native.digest(self._memory[at : at + _nbytes(dtype, shape)])
            if f"{found:016x}" != self._digests[name]:
                raise CorpusFileError(f"{self.path} is altered: the bytes of {name!r} do not agree with their digest.")
            if hasattr(mmap, "MADV_DONTNEED"):
                self._map.madvise(mmap.MADV_DONTNEED)


def _nbytes(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    count = dtype.itemsize
    for n in shape:
        count *= n
    return count
