"""CRFsuite's model files, written without CRFsuite; the layout is in ``crfsuite_format``."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.io.atomic import atomic_write
from dualfield.io.crfsuite_format import (
    BYTE_ORDER,
    CHUNK,
    DICTIONARY,
    FEATURE,
    HEADER,
    KIND,
    LIMIT,
    MARK,
    N_TABLES,
    STATE,
    TABLES_SIZE,
    TRANSITION,
    VERSION,
    WORD,
)
from dualfield.io.crfsuite_model import CrfsuiteModel

_BLOCK = 12  # bytes that the hash function takes in at once
_HEADS = 2**13  # bytes, more than those of the header and the heads of all chunks


def write_crfsuite_model(model: CrfsuiteModel, path: str | os.PathLike[str]) -> None:
    """Write a linear-chain model as a file that CRFsuite, python-crfsuite and sklearn-crfsuite can tag with.

    Parameters
    ----------
    model : CrfsuiteModel
        Labels, attributes and weights, which the file holds exactly as they are.
    path : str or path-like
        The file; one that exists is replaced when the new one is complete.

    Raises
    ------
    TypeError
        If a label or an attribute is not a str.
    ValueError
        If a name has a zero character, is there twice or is no Unicode text, a weight is not finite or names a label or
        attribute that does not exist, or the file would have 4 GiB or more.

    See Also
    --------
    read_crfsuite_model : The way back.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from dualfield.io import CrfsuiteModel, StateWeights, TransitionWeights
    >>> from dualfield.io import read_crfsuite_model, write_crfsuite_model
    >>> one, two = np.array([0]), np.array([0.5])
    >>> model = CrfsuiteModel(["O"], ["w=a"], StateWeights(one, one, two), TransitionWeights(one, one, two))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "one.crfsuite")
    ...     write_crfsuite_model(model, path)
    ...     read_crfsuite_model(path).attributes
    ['w=a']
    """
    content = model_bytes(model)
    with atomic_write(path) as file:
        file.write(content)


def model_bytes(model: CrfsuiteModel) -> bytes:
    """Return what the file of a model holds, in CRFsuite's order of chunks."""
    labels, attributes = _encoded(model.labels, "label"), _encoded(model.attributes, "attribute")
    features = _features(model)
    # A feature is in the list of all and in one other; a name has a record, two buckets and three places.
    size = _HEADS + 24 * len(features) + sum(36 + len(name) for names in (labels, attributes) for name in names)
    if size >= LIMIT:
        raise ValueError(f"CRFsuite's models must have less than 4 GiB. This one would have {size} bytes.")
    content = bytearray(HEADER.size)
    places = []
    for chunk in (
        CHUNK.pack(b"FEAT", CHUNK.size + features.nbytes, len(features)) + features.tobytes(),
        _dictionary(labels),
        _dictionary(attributes),
    ):
        places.append(len(content))
        content += chunk
    # CRFsuite has two more lists of labels, for the ends of sequences, which have no features.
    for mark, kind, n_lists, n_places in (
        (b"LFRF", TRANSITION, len(labels), len(labels) + 2),
        (b"AFRF", STATE, len(attributes), len(attributes)),
    ):
        content += bytes(-len(content) % WORD.itemsize)
        places.append(len(content))
        content += _lists(mark, features, kind, n_lists, n_places, len(content))
    HEADER.pack_into(content, 0, MARK, len(content), KIND, VERSION, 0, len(labels), len(attributes), *places)
    return bytes(content)


def _encoded(names: list[str], what: str) -> list[bytes]:
    """Return names as they are in the file, with a closing zero."""
    if not all(isinstance(name, str) for name in names):
        wrong = next(name for name in names if not isinstance(name, str))
        raise TypeError(f"CRFsuite's models have {what}s of type str. Got {wrong!r:.100} instead.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"The {what}s of a model must differ. Got {repeated[0]!r:.100} twice.")
    closed = [name for name in names if "\0" in name]
    if closed:
        raise ValueError(f"CRFsuite's models cannot have the {what} {closed[0]!r:.100}: it has a zero character.")
    try:
        return [name.encode() + b"\0" for name in names]
    except UnicodeEncodeError as error:
        raise ValueError(f"CRFsuite's models cannot have the {what} {error.object!r:.100}: {error.reason}.") from None


def _features(model: CrfsuiteModel) -> NDArray[Any]:
    n_labels, parts = len(model.labels), []
    for name, kind, columns, n_sources in (
        ("state", STATE, model.state, len(model.attributes)),
        ("transitions", TRANSITION, model.transitions, n_labels),
    ):
        arrays: list[Any] = [np.asarray(column) for column in columns]
        source, target, weight = arrays
        if not source.shape == target.shape == weight.shape == (source.size,):
            raise ValueError(
                f"The arrays in {name!r} of a model must have one length. "
                f"Got shapes {source.shape}, {target.shape} and {weight.shape}."
            )
        for numbers, n_names in ((source, n_sources), (target, n_labels)):
            if numbers.size and not 0 <= numbers.min() <= numbers.max() < n_names:
                wrong = numbers[(numbers < 0) | (numbers >= n_names)][0]
                raise ValueError(f"The numbers in {name!r} of a model must be in [0, {n_names}). Got {wrong}.")
        if not np.isfinite(weight).all():
            raise ValueError(
                f"The weights in {name!r} of a model must be finite. Got {weight[~np.isfinite(weight)][0]}."
            )
        part = np.empty(source.size, FEATURE)
        part["kind"], part["source"], part["target"], part["weight"] = kind, source, target, weight
        parts.append(part)
    return np.concatenate(parts)


def _lists(mark: bytes, features: NDArray[Any], kind: int, n_lists: int, n_places: int, at: int) -> bytes:
    """Return the chunk, for byte `at` of the file, that lists the features of each label or attribute."""
    members = np.flatnonzero(features["kind"] == kind)
    sources = features["source"][members]
    lengths = np.bincount(sources, minlength=n_lists)
    heads = np.arange(n_lists) + np.cumsum(lengths) - lengths
    body = np.empty(n_lists + members.size, WORD)
    is_head = np.zeros(body.size, dtype=bool)
    is_head[heads] = True
    body[is_head], body[~is_head] = lengths, members[np.argsort(sources, kind="stable")]
    places = np.zeros(n_places, np.int64)
    places[:n_lists] = at + CHUNK.size + (n_places + heads) * WORD.itemsize
    size = CHUNK.size + places.size * WORD.itemsize + body.nbytes
    return CHUNK.pack(mark, size, n_places) + places.astype(WORD).tobytes() + body.tobytes()


def _dictionary(names: list[bytes]) -> bytes:
    """Return the chunk that leads from names to numbers, by 256 hash tables, and back, by an array of records."""
    lengths = np.array([len(name) for name in names], dtype=np.int64)
    first = DICTIONARY.size + TABLES_SIZE
    records = first + np.cumsum(8 + lengths) - (8 + lengths)
    heads = np.stack([np.arange(len(names)), lengths], axis=1).astype(WORD).tobytes()
    written = b"".join(heads[8 * at : 8 * at + 8] + name for at, name in enumerate(names))
    tables_at = first + len(written)
    sizes, buckets = _hash_tables(_hashes(names, lengths), records)
    starts = tables_at + 8 * (np.cumsum(sizes) - sizes)
    references = np.stack([np.where(sizes > 0, starts, 0), sizes], axis=1)
    array_at = tables_at + buckets.nbytes if names else 0
    size = tables_at + buckets.nbytes + len(names) * WORD.itemsize
    return b"".join(
        (
            DICTIONARY.pack(b"CQDB", size, 0, BYTE_ORDER, len(names), array_at),
            references.astype(WORD).tobytes(),
            written,
            buckets.tobytes(),
            records.astype(WORD).tobytes(),
        )
    )


def _hash_tables(hashes: NDArray[np.uint32], records: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the sizes of the tables, and their buckets (hash, place of the record) one after another.

    A table is twice as large as what it holds. A name whose bucket is taken goes to the next that is free.
    """
    table = (hashes % N_TABLES).astype(np.int64)
    sizes = 2 * np.bincount(table, minlength=N_TABLES)
    ends = np.cumsum(sizes)
    starts = (ends - sizes)[table]
    homes = starts + (hashes >> 8) % np.maximum(sizes[table], 1)
    is_taken, chosen = bytearray(int(ends[-1])), []
    for home, start, end in zip(homes.tolist(), starts.tolist(), ends[table].tolist(), strict=True):
        at = home
        while is_taken[at]:
            at = at + 1 if at + 1 < end else start
        is_taken[at] = 1
        chosen.append(at)
    buckets = np.zeros((int(ends[-1]), 2), WORD)
    buckets[chosen] = np.stack([hashes, records], axis=1)
    return sizes, buckets


def _hashes(names: list[bytes], lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the hash of each name: Bob Jenkins' lookup3, ``hashlittle`` with the seed 0.

    All names at once, block by block; a name leaves when its blocks are used up.
    """
    n_blocks = -(-lengths // _BLOCK)
    padded = b"".join(name.ljust(size, b"\0") for name, size in zip(names, (n_blocks * _BLOCK).tolist(), strict=True))
    words = np.frombuffer(padded, WORD).astype(np.uint32).reshape(-1, 3)
    first = np.cumsum(n_blocks) - n_blocks
    state = np.repeat((0xDEADBEEF + lengths)[None, :], 3, axis=0).astype(np.uint32)
    out = np.empty(len(names), np.uint32)
    here, block = np.arange(len(names)), 0
    while here.size:
        state += words[first[here] + block].T
        block += 1
        is_last = n_blocks[here] == block
        out[here[is_last]] = _finished(*state[:, is_last])
        here, state = here[~is_last], np.stack(_mixed(*state[:, ~is_last]))
    return out


def _rotated(word: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    return (word << np.uint32(by)) | (word >> np.uint32(32 - by))


def _mixed(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """Mix the state between two blocks; unsigned numbers wrap around, and the three parts take turns."""
    for by in (4, 6, 8, 16, 19, 4):
        a, b, c = b, c + b, (a - c) ^ _rotated(c, by)
    return a, b, c


def _finished(a: Any, b: Any, c: Any) -> Any:
    """Return the hash of the state behind the last block."""
    for by in (14, 11, 25, 16, 4, 14, 24):
        a, b, c = b, (c ^ b) - _rotated(b, by), a
    return b
