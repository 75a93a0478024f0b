"""How many words have the right head, and the right label of the arc to it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data.heads import Heads, read_heads

__all__ = ["Attached", "attached"]


class Attached(NamedTuple):
    """Counts of words: all that are scored, those with the right head, and those with the right label as well."""

    n_words: int
    n_heads: int
    n_labelled: int
    has_labels: bool


def attached(y_true: Any, y_pred: Any, *, exact: bool = True, scored: NDArray[np.bool_] | None = None) -> Attached:
    """Compare trees word by word.

    Parameters
    ----------
    y_true, y_pred : list
        For each sentence heads, pairs (head, label), or a :class:`~dualfield.data.DependencySentence`. Words whose true
        head is None are not scored.
    exact : bool, default=True
        Whether labels must be equal as a whole, or only in what is before a colon.
    scored : bool array of shape (n_words,), default=None
        Which words are scored; None: all.

    Returns
    -------
    Attached
        Numbers of words.

    Examples
    --------
    >>> from dualfield.data.dependency_scores import attached
    >>> attached([[(2, "nsubj"), (0, "root")]], [[(2, "obj"), (0, "root")]])
    Attached(n_words=2, n_heads=2, n_labelled=1, has_labels=True)
    """
    y_true, y_pred = list(y_true), list(y_pred)
    lengths = [len(one) for one in y_true]
    if len(y_pred) != len(y_true):
        raise ValueError(f"y_pred must have {len(y_true)} sentences, as y_true. Got {len(y_pred)} instead.")
    true, found = read_heads(y_true, lengths, "y_true"), read_heads(y_pred, lengths, "y_pred")
    counted = true.heads >= 0 if scored is None else (true.heads >= 0) & scored
    right = counted & (true.heads == found.heads)
    same = _labels(true, exact) == _labels(found, exact)
    has_labels = true.labels is not None and found.labels is not None
    return Attached(int(counted.sum()), int(right.sum()), int((right & same).sum()) if has_labels else 0, has_labels)


def _labels(read: Heads, exact: bool) -> NDArray[np.object_]:
    given = [None] * len(read.heads) if read.labels is None else read.labels
    found = np.empty(len(given), dtype=object)
    found[:] = given if exact else [None if label is None else label.partition(":")[0] for label in given]
    return found
