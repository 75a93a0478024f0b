"""Changes of model files: blind ones of their bytes, and those of one who knows the format and mends the digests."""

from __future__ import annotations

import copy
import random
import struct

import numpy as np

from dualfield.persistence.file import open_model
from dualfield.persistence.header import LENGTH, MODEL, compose_header

# Values that have broken readers of files before.
STRANGE = (
    *(None, True, False, 0, -1, 1, 2, 2**31, 2**63, 2**64, 10**30, 0.5, -0.0),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "O", "\0", "\ud800", "n" * 300),
    *("CRF", "chain", "precomputed", "lbfgs", "U", "object", "U0:%x[0,0]\nB", "%x["),
    *([], [[]], [None], ["O"], [0, 1, 2], [1e300] * 5, {}, {"kind": "dict", "items": [[[], 1]]}, {"kind": "tuple"}),
    *({"kind": "chain", "n_labels": 3, "order": 10**9}, {"kind": "array", "values": [1.0]}, {"kind": "array"}),
    {"kind": "chain", "n_labels": 10**6, "order": 1, "allowed": None, "allowed_start": None, "allowed_stop": None},
    {"kind": "chain", "n_labels": None, "order": 63, "allowed": None, "allowed_start": None, "allowed_stop": None},
    {"kind": "lbfgs", "settings": {"memory": -1}},
    {"kind": "Status", "settings": {}},
    {"kind": "template", "text": "U:%x[0,7]", "syntax": "auto"},
    {"kind": "csr_matrix", "shape": [10**9, 10**9]},
    {"kind": "objects", "items": [["a"], "b"]},
    *("StructuredSVM", "single", "LatentChain", "float64", "states", "bags"),
    {"kind": "LatentPosition", "settings": {"background": 7}},
    {"kind": "StructuredSVM", "settings": {"C": -1.0}},
    {"kind": "CRF", "settings": {"structure": {"kind": "array", "values": None}}},
)  # fmt: skip


def blind(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, insert, repeat, swap, or edit the text of the header without a change of its length."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at = rng.randrange(len(out) + 1)
        size = min(rng.choice((1, 1, 4, 8, 64)), len(out) - at)
        kind = rng.randrange(8)
        if kind == 0:
            out[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del out[at : at + rng.choice((size, len(out)))]
        elif kind == 3:
            out[at:at] = rng.randbytes(rng.choice((1, 8, 64)))
        elif kind == 4:
            out[at : at + size] = rng.choice((b"\0", b"\xff", b"9", b"[", b'"')) * size
        elif kind == 5:
            other = rng.randrange(len(out) + 1)
            out[at : at + size], out[other : other + size] = out[other : other + size], out[at : at + size]
        elif kind == 6 and len(out) >= 8:
            out[:8] = struct.pack("<Q", rng.choice((0, 1, len(out), 2**24, 2**32, 2**63, rng.randrange(4 * len(out)))))
        else:
            digits = [i for i in range(min(len(out), 8000)) if 48 <= out[i] <= 57]
            if digits:
                out[rng.choice(digits)] = 48 + rng.randrange(10)
    return bytes(out)


class Forger:
    """Changes a model file or a checkpoint as one who knows the format would; the digests agree with the changes."""

    def __init__(self, path, kind=MODEL) -> None:
        file = open_model(path, kind=kind)
        self.metadata = {name: value for name, value in file.metadata.items() if name != "tensors"}
        self.arrays = {name: array.values.copy() for name, array in file.arrays.items()}

    def forged(self, rng: random.Random, share: float = 0.5) -> bytes:
        """Return a changed file; a share of the changes are of its metadata, the rest of its arrays."""
        metadata, arrays = copy.deepcopy(self.metadata), dict(self.arrays)
        for _ in range(rng.choice((1, 1, 2, 4))):
            if rng.random() < share:
                change_json(metadata, rng)
            else:
                name = rng.choice(sorted(arrays))
                arrays[name] = changed_array(arrays[name], rng)
                if rng.random() < 0.03:
                    arrays[rng.choice(("extra", *arrays))] = arrays[name] if rng.random() < 0.5 else np.zeros(3)
                elif rng.random() < 0.03:
                    del arrays[name]
        return self.bytes_of(metadata, arrays)

    @staticmethod
    def bytes_of(metadata, arrays) -> bytes:
        header, order = compose_header(metadata, arrays)
        return LENGTH.pack(len(header)) + header + b"".join(arrays[name].tobytes() for name in order)


def change_json(content, rng: random.Random) -> None:
    """Change an entry somewhere in nested dicts and lists."""
    while True:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = content[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.8:
            content = inner
            continue
        kind = rng.randrange(6)
        if kind == 0:
            del content[key]
        elif kind == 1 and isinstance(content, dict):
            content[rng.choice(("kind", "names", "x", "n_labels"))] = rng.choice(STRANGE)
        elif kind == 1:
            content.insert(key, copy.deepcopy(rng.choice(content)))
        elif kind == 2 and type(inner) is int:
            content[key] = inner + rng.choice((-1, 1, 2**32))
        elif kind == 3 and isinstance(inner, list):
            rng.shuffle(inner)
        else:
            content[key] = copy.deepcopy(rng.choice(STRANGE))
        return


def changed_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """Change numbers, sizes, types or shapes."""
    out = array.copy()
    kind = rng.randrange(7)
    if kind < 3 and out.size:
        at, bits = rng.randrange(out.size), out.reshape(-1).view(np.uint8)
        if kind == 0:
            bits[rng.randrange(bits.size)] ^= 1 << rng.randrange(8)
        elif out.dtype.kind == "f":
            with np.errstate(over="ignore"):  # in single precision
                out.flat[at] = rng.choice((np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0))
        elif out.dtype.kind in "iu":
            limits = np.iinfo(out.dtype)
            other = int(out.flat[rng.randrange(out.size)])
            out.flat[at] = rng.choice((limits.min, limits.max, 0, 1, limits.max // 2, other))
        if out.dtype == np.bool_:
            out = bits.view(np.bool_).reshape(out.shape) & True
        return out
    if kind == 3:
        return out[: rng.randrange(len(out) + 1)] if out.ndim else out
    if kind == 4 and out.ndim:
        return np.concatenate([out, out[: rng.randrange(len(out) + 1)]])
    if kind == 5:
        return out.reshape(rng.choice(((-1,), (1, -1), (-1, 1)))) if out.size else out
    with np.errstate(invalid="ignore", over="ignore"):
        return out.astype(rng.choice((np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_)))
