"""Sequences whose labels are known only in part: None, or a set of labels, at a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data.labels import Labels

_SETS = (set, frozenset)


class PartialLabels(NamedTuple):
    """Codes of nodes whose label is known, -1 elsewhere; what every node may have; which examples are left out."""

    labels: Labels
    codes: NDArray[np.int32]
    allowed: NDArray[np.bool_] | None
    left_out: NDArray[np.bool_] | None = None


def read_labels(y: Any, offsets: NDArray[np.int64], known: Labels | None = None, *, name: str = "y") -> PartialLabels:
    """Read labels that may be None or sets of labels.

    Parameters
    ----------
    y : list of lists or arrays
        One labelling for each sequence.
    offsets : int64 array of shape (n_examples + 1,)
        Where each sequence starts.
    known : Labels, default=None
        Labels of an earlier fit; None: those that occur.
    name : str, default="y"
        What errors call `y`.

    Returns
    -------
    PartialLabels
        ``allowed`` is None where all labels are known.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data.partial_labels import read_labels
    >>> read_labels([["x", None, {"x", "y"}]], np.array([0, 3])).allowed
    array([[ True, False],
           [ True,  True],
           [ True,  True]])
    """
    if isinstance(y, Iterator):
        y = list(y)
    partial = isinstance(y, (list, tuple)) and any(
        isinstance(row, (list, tuple)) and any(label is None or isinstance(label, _SETS) for label in row) for row in y
    )
    if not partial:
        labels = Labels.fit(y, offsets, name=name) if known is None else known
        return PartialLabels(labels, labels.encode(y, offsets, name=name), None)
    lengths = [len(row) for row in y]
    if lengths != np.diff(offsets).tolist():
        # The plain reader knows how to say which one differs.
        Labels.fit([[0] * n for n in lengths], offsets, name=name)
    flat = [label for row in y for label in row]
    places = [(i, t) for i, row in enumerate(y) for t in range(len(row))]
    for (i, t), label in zip(places, flat, strict=True):
        if isinstance(label, _SETS) and not label:
            raise ValueError(
                f"{name}[{i}][{t}] is an empty set: no label is allowed there. Use None if it is not known."
            )
    mentioned = [label for one in flat for label in (one if isinstance(one, _SETS) else (one,)) if label is not None]
    labels = Labels.fit(mentioned, name=name) if known is None else known
    code = {label: at for at, label in enumerate(labels.classes.tolist())}
    codes = np.full(len(flat), -1, dtype=np.int32)
    allowed = np.ones((len(flat), len(labels)), dtype=bool)
    for at, label in enumerate(flat):
        if label is None:
            continue
        named = label if isinstance(label, _SETS) else (label,)
        unknown = [one for one in named if one not in code]
        if unknown:
            i, t = places[at]
            raise ValueError(f"{name}[{i}][{t}] is {unknown[0]!r}, a label not seen in training.")
        choices = [code[one] for one in named]
        allowed[at] = False
        allowed[at, choices] = True
        if len(choices) == 1:
            codes[at] = choices[0]
    return PartialLabels(labels, codes, allowed)
