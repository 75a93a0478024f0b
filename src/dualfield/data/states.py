"""States of sequences, of which some may not be known, and which of them are to be predicted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.input_forms import unwrapped
from dualfield.data.labels import Labels
from dualfield.data.partial_labels import PartialLabels, read_labels


def read_states(y: Any, offsets: NDArray[np.int64], known: Labels | None = None, *, name: str = "y") -> PartialLabels:
    """Read states; None, or a set of states, where they are not known. Errors call them by the name."""
    y = list(y) if isinstance(y, Iterator) else unwrapped(y)
    if isinstance(y, (list, tuple)) and len(y):
        rows = [unwrapped(one) for one in y]
        arrays = [one for one in rows if isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind in "iu"]
        if len(arrays) == len(rows) and [len(one) for one in arrays] == np.diff(offsets).tolist():
            return read_labels(np.concatenate(arrays), offsets, known, name=name)  # no state becomes a Python object
        flat = not any(isinstance(one, (list, tuple, np.ndarray)) for one in rows)
        if flat and len(rows) == offsets[-1]:
            y = rows = [rows[a:b] for a, b in itertools.pairwise(offsets.tolist())]
        if any(isinstance(one, (list, tuple)) and None in one for one in rows):
            y = [one.tolist() if isinstance(one, np.ndarray) else one for one in rows]
            if known is None and all(label is None for one in y for label in one):
                raise ValueError("y must have at least one state that is known. Got None everywhere.")
    return read_labels(y, offsets, known, name=name)


def allowed_states(known: Any, offsets: NDArray[np.int64], labels: Labels, *, name: str) -> NDArray[np.bool_]:
    """Return which states nodes may have, given states, sets of states, and None where nothing is known."""
    if isinstance(known, (list, tuple)):  # arrays of objects may hold sets and None
        known = [one.tolist() if isinstance(one, np.ndarray) and one.dtype == object else one for one in known]
    found = read_states(known, offsets, labels, name=name)
    return found.codes[:, None] == np.arange(len(labels)) if found.allowed is None else found.allowed


def read_hidden(hidden: Any, offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which states are to be predicted."""
    rows = [np.asarray(one) for one in hidden]
    lengths = np.diff(offsets).tolist()
    if rows and rows[0].ndim == 0 and len(rows) == offsets[-1]:  # all sequences in a row
        flat = np.asarray(hidden)
        rows = [flat[a:b] for a, b in itertools.pairwise(offsets.tolist())]
    if len(rows) != len(lengths):
        raise ValueError(f"hidden has {len(rows)} sequences; X has {len(lengths)}.")
    for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if row.shape != (length,) or row.dtype != np.bool_:
            raise ValueError(
                f"hidden[{i}] must be {length} bool, one for each symbol of X[{i}]. Got shape {row.shape} and dtype "
                f"{row.dtype} instead."
            )
    return np.concatenate(rows)
