"""The header of a model file or a checkpoint: which arrays there are and where they lie, and a text about them.

The text pins everything else. It is JSON, has a digest, and lists type, shape and digest of every array; the header
follows from it, and is compared byte by byte with the one that was read.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LENGTH = struct.Struct("<Q")
LONGEST_HEADER = 2**24  # many times what labels, parameters and templates take

_ALIGNMENT = 64
_SIGNED = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1"}
_UNSIGNED = {"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1"}
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1"} | _SIGNED | _UNSIGNED
_NAMES = {np.dtype(numpy): name for name, numpy in _DTYPES.items()}
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class FaultError(Exception):
    """What is wrong with a file, without its name."""


@dataclass(frozen=True)
class FileKind:
    """What a file is for: the name and version of its format, and what errors call it."""

    format: str
    version: int
    noun: str


MODEL = FileKind("dualfield-model", 2, "a model file")
CHECKPOINT = FileKind("dualfield-checkpoint", 2, "a checkpoint")


@dataclass(frozen=True)
class Tensor:
    """Where an array lies, counted in bytes from the first one, and what it must be."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    digest: str
    start: int
    stop: int


def digest_of(data: bytes | NDArray[Any]) -> str:
    """Return the digest of bytes, or of those of a contiguous array."""
    plain = data if isinstance(data, bytes) else data.reshape(-1).view(np.uint8).data
    return hashlib.blake2b(plain, digest_size=32).hexdigest()


def compose_header(
    metadata: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], kind: FileKind = MODEL
) -> tuple[bytes, list[str]]:
    """Return the header of a file, and the order in which its arrays follow: large items first, so all are aligned."""
    listed = {
        name: {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "digest": digest_of(array)}
        for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    }
    content = {"format": kind.format, "format_version": kind.version, **metadata, "tensors": listed}
    text = json.dumps(_without_special(content), allow_nan=False, separators=(",", ":"))
    return _header(text, _read_tensors(listed)), list(listed)


def read_header(
    read: Callable[[int], bytes], size: int, kind: FileKind = MODEL
) -> tuple[int, dict[str, Any], dict[str, Tensor]]:
    """Return where the arrays of a file begin, its metadata, and the places of its arrays; or raise a FaultError.

    Everything is checked, also the size of the file, but not the arrays.
    """
    head = read(LENGTH.size)
    if size < LENGTH.size or len(head) < LENGTH.size:
        raise FaultError(f"is cut off: it has {size} bytes, fewer than the {LENGTH.size} that begin {kind.noun}.")
    (length,) = LENGTH.unpack(head)
    if length > LONGEST_HEADER:
        raise FaultError(
            f"is not {kind.noun} of dualfield: its first 8 bytes, {head!r}, are not the length of a header, "
            f"which is at most {LONGEST_HEADER}."
        )
    if length > size - LENGTH.size:
        raise FaultError(f"is cut off: it has {size} bytes, and its header alone {length}.")
    header = read(length)
    text, metadata = _read_metadata(header, kind)
    tensors = _read_tensors(metadata["tensors"])
    if header != _header(text, tensors):
        raise FaultError("is altered: its header does not agree with its metadata.")
    start = LENGTH.size + length
    expected = start + max((tensor.stop for tensor in tensors.values()), default=0)
    if size != expected:
        state = "is cut off" if size < expected else "is altered"
        raise FaultError(f"{state}: it has {size} bytes; its header describes {expected}.")
    return start, metadata, tensors


def _read_metadata(header: bytes, kind: FileKind) -> tuple[str, dict[str, Any]]:
    """Return the text of a header and what it says, checked against its digest, format and version."""
    parts = _parsed(header.decode("ascii", "replace"), "header", kind).get("__metadata__")
    if not isinstance(parts, dict) or not isinstance(parts.get("dualfield"), str):
        raise FaultError(f"is not {kind.noun} of dualfield: its header has no entry for it.")
    text = parts["dualfield"]
    if parts.get("digest") != digest_of(text.encode("utf-8", "surrogatepass")):
        raise FaultError("is altered: its metadata do not agree with their digest.")
    metadata = _parsed(text, "metadata", kind)
    if metadata.get("format") != kind.format:
        raise FaultError(f"is not {kind.noun} of dualfield: its format is {metadata.get('format')!r:.100}.")
    version = metadata.get("format_version")
    if type(version) is not int or version < 1:
        raise FaultError(f"is altered: its format_version must be an int of at least 1. Got {version!r:.100}.")
    if version > kind.version:
        raise FaultError(
            f"was written by a newer dualfield, {metadata.get('dualfield_version')!r:.100}, in format {version}. "
            f"This one reads format {kind.version}: upgrade dualfield."
        )
    if version < kind.version:
        raise FaultError(
            f"was written by an older dualfield, {metadata.get('dualfield_version')!r:.100}, in format {version}, "
            "which this one does not read: fit the model again, and save it with this version."
        )
    if not isinstance(metadata.get("tensors"), dict):
        raise FaultError("is altered: its metadata do not list its arrays.")
    return text, metadata


def _parsed(text: str, what: str, kind: FileKind) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise FaultError(f"is not {kind.noun} of dualfield, or altered: its {what} cannot be read: {reason}.") from None
    if not isinstance(found, dict):
        raise FaultError(f"is not {kind.noun} of dualfield: its {what} is no JSON object.")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    if len(pairs) == 1 and pairs[0][0] == "float":
        if pairs[0][1] not in _SPECIAL:
            raise ValueError(f"{pairs[0][1]!r:.100} is no number")
        return _SPECIAL[pairs[0][1]]
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _without_special(value: Any) -> Any:
    """Spell the floats that JSON does not have as ``{"float": "nan"}``."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, dict):
        return {key: _without_special(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_special(inner) for inner in value]
    return value


def _read_tensors(listed: dict[str, Any]) -> dict[str, Tensor]:
    tensors, at = {}, 0
    for name, entry in listed.items():
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "digest"}:
            raise FaultError(f"is altered: array {name!r:.100} must have dtype, shape and digest.")
        dtype, shape, digest = entry["dtype"], entry["shape"], entry["digest"]
        if not isinstance(dtype, str) or dtype not in _DTYPES or not isinstance(digest, str):
            raise FaultError(
                f"is altered: array {name!r:.100} has type {dtype!r:.100}; known are {', '.join(_DTYPES)}."
            )
        if not isinstance(shape, list) or len(shape) > 8 or not all(type(n) is int and 0 <= n < 2**62 for n in shape):
            raise FaultError(f"is altered: array {name!r:.100} must have a shape of sizes. Got {shape!r:.100}.")
        numpy = np.dtype(_DTYPES[dtype])
        if 0 in shape and math.prod(n or 1 for n in shape) >= 2**59:  # no bytes, and sides that NumPy refuses
            raise FaultError(f"is altered: array {name!r:.100} is too large. Its shape is {shape!r:.100}.")
        if at % numpy.itemsize:
            raise FaultError(f"is altered: array {name!r:.100} does not lie where its type must.")
        tensors[name] = Tensor(numpy, tuple(shape), digest, at, at + math.prod(shape) * numpy.itemsize)
        at = tensors[name].stop
    return tensors


def _header(text: str, tensors: Mapping[str, Tensor]) -> bytes:
    """Return the one header that a text and its arrays have."""
    outer: dict[str, Any] = {
        "__metadata__": {"dualfield": text, "digest": digest_of(text.encode("utf-8", "surrogatepass"))}
    }
    for name, tensor in tensors.items():
        place = [tensor.start, tensor.stop]
        outer[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": place}
    header = json.dumps(outer, separators=(",", ":")).encode("ascii")
    return header + b" " * (-(LENGTH.size + len(header)) % _ALIGNMENT)
