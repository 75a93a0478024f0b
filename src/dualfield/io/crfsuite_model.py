"""CRFsuite's model files, read without CRFsuite.

A file is not trusted: every place and count in it is compared with the size of the file before it is used, and what the
file says twice must agree. The layout is in ``crfsuite_format``.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.io.crfsuite_format import (
    BYTE_ORDER,
    CHUNK,
    DICTIONARY,
    FEATURE,
    HEADER,
    KIND,
    LIMIT,
    MARK,
    STATE,
    TABLES_SIZE,
    TRANSITION,
    VERSION,
    WORD,
)


class StateWeights(NamedTuple):
    """The weights of attributes for labels, one entry of each array for each weight.

    Attributes
    ----------
    attribute, label : array of int32
        Numbers of attributes and labels.
    weight : array of float64
        Their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.io import StateWeights
    >>> attribute, label, weight = StateWeights(np.array([0]), np.array([1]), np.array([0.5]))
    >>> weight
    array([0.5])
    """

    attribute: NDArray[np.int32]
    label: NDArray[np.int32]
    weight: NDArray[np.float64]


class TransitionWeights(NamedTuple):
    """The weights of pairs of neighbouring labels, one entry of each array for each weight.

    Attributes
    ----------
    source, target : array of int32
        Numbers of the labels: `target` comes right after `source`.
    weight : array of float64
        Their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.io import TransitionWeights
    >>> TransitionWeights(np.array([0]), np.array([1]), np.array([0.5])).target
    array([1])
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrfsuiteModel:
    """What a model file of CRFsuite says; made by :func:`read_crfsuite_model`.

    Attributes
    ----------
    labels : list of str
        The labels, in the order of CRFsuite's numbers.
    attributes : list of str
        The attributes that have a weight, in the order of CRFsuite's numbers.
    state : StateWeights
        Weights of attributes for labels.
    transitions : TransitionWeights
        Weights of pairs of neighbouring labels. Weights that are in neither list are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.io import CrfsuiteModel, StateWeights, TransitionWeights
    >>> one, two = np.array([0]), np.array([0.5])
    >>> model = CrfsuiteModel(["O"], ["w=a"], StateWeights(one, one, two), TransitionWeights(one, one, two))
    >>> model.attributes[model.state.attribute[0]]
    'w=a'
    """

    labels: list[str]
    attributes: list[str]
    state: StateWeights
    transitions: TransitionWeights


def read_crfsuite_model(path: str | os.PathLike[str]) -> CrfsuiteModel:
    """Read a linear-chain model that CRFsuite, python-crfsuite or sklearn-crfsuite has written.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    CrfsuiteModel
        Labels, attributes and weights, exactly as they are in the file.

    Raises
    ------
    ValueError
        If the file is not such a model, or is cut off or altered. The message names the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualfield.io import read_crfsuite_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "notes.txt")
    ...     _ = path.write_text("not a model")
    ...     read_crfsuite_model(path)
    Traceback (most recent call last):
        ...
    ValueError: ...notes.txt is not a model of CRFsuite: it does not begin with b'lCRF'.
    """
    file = Path(path)
    name = os.fspath(path)
    if file.exists() and not file.is_file():
        raise ValueError(f"{name} is not a regular file.")
    if file.stat().st_size >= LIMIT:
        raise ValueError(f"{name} is not a model of CRFsuite: it is larger than 4 GiB, which no such file can be.")
    try:
        return parse_model(memoryview(file.read_bytes()))
    except _FaultError as fault:
        raise ValueError(f"{name} {fault}") from None


class _FaultError(ValueError):
    """What is wrong with a file: the end of a sentence that begins with its name."""


def parse_model(data: memoryview) -> CrfsuiteModel:
    """Read a model from the bytes of its file; a ValueError is the end of a sentence that begins with the file."""
    if bytes(data[:4]) != MARK:
        raise _FaultError("is not a model of CRFsuite: it does not begin with b'lCRF'.")
    if len(data) < HEADER.size:
        raise _FaultError(f"is cut off: it has {len(data)} bytes, fewer than the header of a model.")
    _, size, kind, version, _, n_labels, n_attributes, features_at, *places = HEADER.unpack_from(data)
    labels_at, attributes_at, label_lists_at, attribute_lists_at = places
    if kind != KIND or version != VERSION:
        raise _FaultError(
            f"must be a linear-chain model, b'FOMC' of version 100. Got {kind!r} of version {version} instead."
        )
    if size != len(data):
        raise _FaultError(f"is cut off or altered: its header says {size} bytes. It has {len(data)}.")
    labels = _read_names(data, labels_at, n_labels, "label")
    attributes = _read_names(data, attributes_at, n_attributes, "attribute")
    features = _read_features(data, features_at)
    _check_features(features, n_labels, n_attributes)
    _check_lists(data, label_lists_at, b"LFRF", n_labels, features, TRANSITION)
    _check_lists(data, attribute_lists_at, b"AFRF", n_attributes, features, STATE)
    state, transitions = _columns(features, STATE), _columns(features, TRANSITION)
    return CrfsuiteModel(labels, attributes, StateWeights(*state), TransitionWeights(*transitions))


def _columns(features: NDArray[Any], kind: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    chosen = features[features["kind"] == kind]
    return chosen["source"].astype(np.int32), chosen["target"].astype(np.int32), chosen["weight"].astype(np.float64)


def _chunk(data: memoryview, at: int, mark: bytes, head: struct.Struct) -> tuple[tuple[Any, ...], memoryview]:
    """Return the head of a chunk after the mark and the size, and the whole chunk, which lies inside the file."""
    if at + head.size > len(data):
        raise _FaultError(f"is altered: the chunk {mark!r} begins at byte {at}, behind the end of the file.")
    found, size, *rest = head.unpack_from(data, at)
    if found != mark:
        raise _FaultError(f"is altered: at byte {at} must be the mark {mark!r}. Got {found!r} instead.")
    if not head.size <= size <= len(data) - at:
        raise _FaultError(f"is altered: the chunk {mark!r} at byte {at} must lie in the file. It has {size} bytes.")
    return tuple(rest), data[at : at + size]


def _read_features(data: memoryview, at: int) -> NDArray[Any]:
    (n_features,), chunk = _chunk(data, at, b"FEAT", CHUNK)
    if len(chunk) != CHUNK.size + n_features * FEATURE.itemsize:
        raise _FaultError(f"is altered: {n_features} features do not fit the {len(chunk)} bytes of their chunk.")
    return np.frombuffer(chunk, FEATURE, count=n_features, offset=CHUNK.size)


def _check_features(features: NDArray[Any], n_labels: int, n_attributes: int) -> None:
    kind, source, target = features["kind"], features["source"], features["target"]
    if (kind > TRANSITION).any():
        raise _FaultError(f"is altered: a feature must be of kind 0 or 1. Got {kind.max()} instead.")
    if (source >= np.where(kind == STATE, n_attributes, n_labels)).any() or (target >= n_labels).any():
        raise _FaultError("is altered: a feature names an attribute or label that does not exist.")
    if not np.isfinite(features["weight"]).all():
        raise _FaultError("must have finite weights: a weight is infinite or not a number.")


def _read_names(data: memoryview, at: int, n_names: int, what: str) -> list[str]:
    """Return the names in a dictionary, by the array in it that leads from numbers to records."""
    (_, order, _, array_at), chunk = _chunk(data, at, b"CQDB", DICTIONARY)
    if order != BYTE_ORDER:
        raise _FaultError(f"is altered, or has another byte order: so says its dictionary of {what}s.")
    if n_names == 0:
        return []
    first = DICTIONARY.size + TABLES_SIZE
    room = min((array_at - first) // 9, (len(chunk) - array_at) // WORD.itemsize)  # the shortest record has 9 bytes
    if n_names > room:
        raise _FaultError(f"is altered: its dictionary cannot hold {n_names} {what}s.")
    records = np.frombuffer(chunk, WORD, count=n_names, offset=array_at).astype(np.int64)
    if records.min() < first or records.max() > len(chunk) - 8:
        raise _FaultError(f"is altered: a {what} lies outside its dictionary.")
    # A record is a number, the length of the name with its closing zero, and the name; records are not aligned.
    heads = np.frombuffer(chunk, np.uint8)[records[:, None] + np.arange(8)].view(WORD)
    starts, lengths = records + 8, heads[:, 1].astype(np.int64)
    if (heads[:, 0] != np.arange(n_names)).any():
        raise _FaultError(f"is altered: the numbers in its dictionary of {what}s do not agree.")
    # The sum, too: records that overlap could else be copied out to many times the size of the file.
    if lengths.min() < 1 or (starts + lengths).max() > len(chunk) or lengths.sum() > len(chunk):
        raise _FaultError(f"is altered: a {what} is longer than its dictionary.")
    try:
        names = [str(chunk[s : s + n], "utf-8") for s, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
    except UnicodeDecodeError as error:
        raise _FaultError(f"has a {what} that is not UTF-8: {error}.") from None
    if any(name.find("\0") != len(name) - 1 for name in names):
        raise _FaultError(f"is altered: a {what} does not end where its record ends.")
    if len(set(names)) != n_names:
        raise _FaultError(f"is altered: a {what} has two numbers.")
    return [name[:-1] for name in names]


def _check_lists(data: memoryview, at: int, mark: bytes, n_lists: int, features: NDArray[Any], kind: int) -> None:
    """Check that each feature of a kind is in the list of its label or attribute once, and nothing else is.

    CRFsuite writes the lists one after another, each as its length and the numbers of its features.
    """
    fault = _FaultError(f"is altered: the lists {mark!r} do not agree with the features.")
    (n_places,), chunk = _chunk(data, at, mark, CHUNK)
    if n_places < n_lists or CHUNK.size + n_places * WORD.itemsize > len(chunk):
        raise fault
    body_at = CHUNK.size + n_places * WORD.itemsize
    body = np.frombuffer(chunk, WORD, count=(len(chunk) - body_at) // WORD.itemsize, offset=body_at)
    places = np.frombuffer(chunk, WORD, count=n_lists, offset=CHUNK.size).astype(np.int64) - (at + body_at)
    members = np.flatnonzero(features["kind"] == kind)
    if n_lists == 0:
        if members.size:
            raise fault
        return
    heads = places // WORD.itemsize
    if (places % WORD.itemsize).any() or heads.min() < 0 or heads.max() >= body.size:
        raise fault
    lengths = body[heads].astype(np.int64)
    ends = heads + 1 + lengths
    if heads[0] != 0 or (heads[1:] != ends[:-1]).any() or ends[-1] > body.size:
        raise fault
    entries = np.delete(body[: ends[-1]], heads).astype(np.int64)
    if not np.array_equal(np.sort(entries), members):
        raise fault
    if (features["source"][entries] != np.repeat(np.arange(n_lists), lengths)).any():
        raise fault
