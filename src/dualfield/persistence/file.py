"""Model files and checkpoints: one safetensors file with JSON metadata, read without trust.

A file is the length of its header in eight bytes, the header, and the arrays one after another. Nothing in it can
change unnoticed, and there is one way only to write a model down: see ``model_header.py``. Numbers are little-endian.
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
from numpy.typing import DTypeLike, NDArray
from safetensors import safe_open

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


class ModelFile:
    """An open model file: its metadata, and its arrays by name, which share the memory of the file."""

    def __init__(
        self,
        path: str,
        metadata: dict[str, Any],
        tensors: dict[str, Tensor],
        memory: NDArray[np.uint8],
        is_mapped: bool = False,
    ) -> None:
        self.path, self.metadata, self.is_mapped = path, metadata, is_mapped
        self._tensors, self._memory = tensors, memory
        self._verified: set[str] = set()
        self._unread = set(tensors)

    def fault(self, what: str) -> ModelFileError:
        """Return the error whose sentence begins with the name of the file."""
        return ModelFileError(f"{self.path} {what}")

    @contextlib.contextmanager
    def at_fault(self) -> Iterator[None]:
        """Blame the file for what is raised while a model is made of it: whoever saves a model has checked it."""
        try:
            yield
        except ModelFileError:
            raise
        except MemoryError:
            raise self.fault("does not fit into memory.") from None
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            raise self.fault(f"is altered: {' '.join(str(error).split())}") from error

    def has(self, name: str) -> bool:
        """Return whether there is an array of this name."""
        return name in self._tensors

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an array, which must be there; the array itself is not touched."""
        if name not in self._tensors:
            raise self.fault(f"is altered: it has no array {name!r:.100}.")
        return self._tensors[name].shape

    def array(
        self,
        name: str,
        dtype: DTypeLike | None = None,
        shape: tuple[int | None, ...] | None = None,
        *,
        verify: bool = True,
    ) -> NDArray[Any]:
        """Return an array after a look at its type, its shape (None: any) and its digest.

        Without `verify`, an array in a mapped file is not touched: it must be checked wherever it is used.
        """
        if shape is not None and not _fits(self.shape(name), shape):
            expected = ", ".join("any" if n is None else str(n) for n in shape)
            raise self.fault(f"is altered: array {name!r} must have shape ({expected}). Got {self.shape(name)}.")
        self.shape(name)
        self._unread.discard(name)
        found = self._tensors[name]
        if dtype is not None and found.dtype != np.dtype(dtype):
            raise self.fault(f"is altered: array {name!r} must be of type {np.dtype(dtype)}. Got {found.dtype}.")
        data = self._memory[found.start : found.stop]
        if verify and name not in self._verified:
            if digest_of(data) != found.digest:
                raise self.fault(f"is altered: the bytes of array {name!r} do not agree with their digest.")
            if found.dtype == np.bool_ and data.size and data.max() > 1:
                raise self.fault(f"is altered: array {name!r} must have bytes 0 and 1. Got {data.max()}.")
            self._verified.add(name)
        return data.view(found.dtype).reshape(found.shape)

    def verify(self) -> None:
        """Check all arrays against their digests."""
        unread = set(self._unread)
        for name in self._tensors:
            self.array(name)
        self._unread = unread

    def check_all_read(self) -> None:
        """Check that there is no array that nobody has asked for."""
        if self._unread:
            raise self.fault(f"is altered: it has an array {min(self._unread)!r:.100}, no part of such a model.")


def write_model(
    path: str | os.PathLike[str],
    metadata: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    kind: FileKind = MODEL,
) -> None:
    """Write metadata, of what JSON has, and arrays of numbers or bools to a file, aside first."""
    _check_byte_order(path)
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
        If it is not a model file, cut off, altered, or written by a newer version.
    """
    name = os.fspath(path)
    _check_byte_order(name)
    try:
        return _opened(name, mmap, kind)
    except FaultError as error:
        raise ModelFileError(f"{name} {error}") from None
    except MemoryError:
        raise ModelFileError(f"{name} does not fit into memory; mmap=True reads only what is needed.") from None


def read_model_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says about itself, without its arrays.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict
        ``format``, ``format_version``, ``dualfield_version``, ``estimator``, ``parameters``, ``labels``, ``training``
        and what else the model consists of; ``tensors`` has type, shape and digest of the arrays.

    Raises
    ------
    ModelFileError
        If it is not a model file, cut off, altered, or written by a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualfield import CRF
    >>> from dualfield.persistence import read_model_header
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tagger.model")
    ...     CRF().fit([[["a"], ["b"]]], [["x", "y"]]).save(path)
    ...     header = read_model_header(path)
    >>> header["estimator"], header["labels"]["names"], header["training"]["status"]
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


def _fits(found: tuple[int, ...], expected: tuple[int | None, ...]) -> bool:
    return len(found) == len(expected) and all(n in (None, m) for n, m in zip(expected, found, strict=True))


def _check_byte_order(path: str | os.PathLike[str]) -> None:
    if sys.byteorder != "little":
        raise ModelFileError(f"{os.fspath(path)} is little-endian, as all model files are; this machine is not.")
