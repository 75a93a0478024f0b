"""Model files and checkpoints: one safetensors file with JSON metadata, read without trust.

A file is the length of its header in eight bytes, the header, and the arrays one after another. Nothing in it can
change unnoticed, and there is one way only to write a model down: see ``header.py``. Numbers are little-endian.
Sizes are compared with that of the file before anything is allocated, and nothing is ever executed.
"""

from __future__ import annotations

import contextlib
import mmap as memory_map
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from dualfield.data.records import Record, Source
from dualfield.io.atomic import atomic_write
from dualfield.persistence.header import (
    LENGTH,
    LONGEST_HEADER,
    MODEL,
    FaultError,
    FileKind,
    Tensor,
    compose_header,
    digest_of,
    read_header,
)
from dualfield.persistence.layout import flattened, nested

__all__ = ["ModelFileError", "read_model_header"]


class ModelFileError(ValueError):
    """A model file that cannot be used; the message begins with its name and says what is wrong.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualfield.persistence import read_model_header
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "half.model")
    ...     _ = path.write_bytes(b"half")
    ...     read_model_header(path)
    Traceback (most recent call last):
        ...
    dualfield.persistence.file.ModelFileError: ...half.model is cut off: it has 4 bytes, ...
    """


class ModelFile(Source):
    """An open model file: its metadata, its arrays by name, which share the memory of the file, and its record."""

    def __init__(
        self,
        path: str,
        metadata: dict[str, Any],
        tensors: dict[str, Tensor],
        memory: NDArray[np.uint8],
        is_mapped: bool = False,
    ) -> None:
        super().__init__()
        self.path, self.metadata, self.is_mapped = path, metadata, is_mapped
        self.most_entries = max(Source.most_entries, memory.size // 8)
        self.arrays = {name: FileArray(path, name, tensor, memory) for name, tensor in tensors.items()}
        content = {
            name: value for name, value in metadata.items() if name not in ("format", "format_version", "tensors")
        }
        self._content = nested(content, self.arrays)

    @property
    def record(self) -> Record:
        """The record, of which nothing has been read yet."""
        # Not kept: a file that refers to itself would stay in memory when nobody needs it any more.
        return Record(self._content, self)

    def fault(self, what: str) -> ModelFileError:
        """Return the error whose sentence begins with the name of the file."""
        return _altered(self.path, what)

    @contextlib.contextmanager
    def at_fault(self) -> Iterator[None]:
        """Blame the file for what is raised while a model is made of it: whoever saves a model has checked it."""
        try:
            yield
        except ModelFileError:
            raise
        except MemoryError:
            raise ModelFileError(f"{self.path} does not fit into memory.") from None
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            raise self.fault(" ".join(str(error).split())) from error

    def verify(self) -> None:
        """Check all arrays against their digests."""
        for array in self.arrays.values():
            array.verify()

    def finish(self) -> None:
        """Check all that was left for later."""
        with self.at_fault():
            super().finish()


class FileArray:
    """An array in a model file."""

    def __init__(self, path: str, name: str, tensor: Tensor, memory: NDArray[np.uint8]) -> None:
        self.dtype, self.shape = tensor.dtype, tensor.shape
        self._path, self._name, self._digest = path, name, tensor.digest
        self._bytes = memory[tensor.start : tensor.stop]
        self._is_verified = False

    @property
    def values(self) -> NDArray[Any]:
        """The array, in the memory of the file."""
        return self._bytes.view(self.dtype).reshape(self.shape)

    def verify(self) -> None:
        """Compare it with its digest, once."""
        if self._is_verified:
            return
        data, name = self._bytes, self._name
        if digest_of(data) != self._digest:
            raise _altered(self._path, f"the bytes of array {name!r} do not agree with their digest.")
        if self.dtype == np.bool_ and data.size and data.max() > 1:
            raise _altered(self._path, f"array {name!r} must have bytes 0 and 1. Got {data.max()}.")
        self._is_verified = True


def _altered(path: str, what: str) -> ModelFileError:
    return ModelFileError(f"{path} is altered: {what}")


def write_model(path: str | os.PathLike[str], record: Mapping[str, Any], kind: FileKind = MODEL) -> None:
    """Write a record to a file, atomically."""
    _check_byte_order(path)
    metadata, arrays = flattened(record)
    ready = {name: np.asarray(array, array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
    header, order = compose_header(metadata, ready, kind)
    if len(header) > LONGEST_HEADER:
        raise ValueError(
            f"The model cannot be saved: its parameters and labels take {len(header)} bytes as text, "
            f"more than {LONGEST_HEADER}."
        )
    with atomic_write(path) as file:
        file.write(LENGTH.pack(len(header)) + header)
        for name in order:
            file.write(ready[name].reshape(-1).view(np.uint8).data)
        file.flush()
        with safe_open(file.name, framework="numpy"):  # what other readers of the format will say
            pass


def open_model(path: str | os.PathLike[str], *, mmap: bool = False, kind: FileKind = MODEL) -> ModelFile:
    """Open a model file and check all of it; with `mmap` all but its arrays, which are left where they are.

    Raises
    ------
    ModelFileError
        If it is not a model file, cut off, altered, or written by another version.
    """
    name = os.fspath(path)
    _check_byte_order(name)
    try:
        return _opened(name, mmap, kind)
    except FaultError as error:
        raise ModelFileError(f"{name} {error}") from None
    except RecursionError:
        raise ModelFileError(f"{name} is altered: its metadata are nested too deep.") from None
    except MemoryError:
        raise ModelFileError(f"{name} does not fit into memory; mmap=True reads only what is needed.") from None


def read_model_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the metadata of a model file, without its arrays.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict
        ``format``, ``format_version``, ``dualfield_version``, ``estimator``, ``parameters``, ``training`` and
        ``model``, what it consists of; ``tensors`` has type, shape and digest of the arrays.

    Raises
    ------
    ModelFileError
        If it is not a model file, cut off, altered, or written by another version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualfield import CRF
    >>> from dualfield.persistence import read_model_header
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tagger.model")
    ...     CRF().fit([[["a"], ["b"]]], [["x", "y"]]).save(path)
    ...     header = read_model_header(path)
    >>> header["estimator"], header["model"]["labels"]["names"], header["training"]["status"]
    ('CRF', ['x', 'y'], 'converged')
    """
    return open_model(path, mmap=True).metadata


def _opened(name: str, mmap: bool, kind: FileKind) -> ModelFile:
    path = Path(name)
    if path.exists() and not path.is_file():
        raise FaultError("is not a regular file.")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start, metadata, tensors = read_header(file.read, size, kind)
        if mmap:
            mapped = np.frombuffer(memory_map.mmap(file.fileno(), 0, access=memory_map.ACCESS_READ), np.uint8)
            if mapped.size != size:
                raise FaultError("has changed while it was read.")
            return ModelFile(name, metadata, tensors, mapped[start:], True)
        memory = np.empty(size - start, np.uint8)
        if file.readinto(memory.data) != memory.size:
            raise FaultError("has changed while it was read.")
    model = ModelFile(name, metadata, tensors, memory)
    model.verify()
    return model


def _check_byte_order(path: str | os.PathLike[str]) -> None:
    if sys.byteorder != "little":
        raise ModelFileError(f"{os.fspath(path)} is little-endian, as all model files are; this machine is not.")
