"""Which words have the right head, and the right label of the arc to it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data.parse_trees.heads import Heads, read_heads

__all__ = ["Attached", "attached"]


class Attached(NamedTuple):
    """Trees compared word by word.

    Attributes
    ----------
    offsets : int64 array of shape (n_sentences + 1,)
        Where the words of each sentence begin.
    is_known : bool array of shape (n_words,)
        Whether the true head is known.
    right_head, right_label : bool array of shape (n_words,)
        Whether the head is right, and whether the label is right as well; the latter is None where there are no labels.

    Examples
    --------
    >>> from dualfield.data.parse_trees.dependency_scores import attached
    >>> attached([[2, 0], [None]], [[2, 0], [0]]).is_known
    array([ True,  True, False])
    """

    offsets: NDArray[np.int64]
    is_known: NDArray[np.bool_]
    right_head: NDArray[np.bool_]
    right_label: NDArray[np.bool_] | None


def attached(y_true: Any, y_pred: Any, *, exact: bool = True) -> Attached:
    """Compare trees word by word.

    Parameters
    ----------
    y_true, y_pred : list
        For each sentence heads, pairs (head, label), or a :class:`~dualfield.data.DependencySentence`.
    exact : bool, default=True
        Whether labels must be equal as a whole, or only in what is before a colon.

    Returns
    -------
    Attached
        What is right.

    Examples
    --------
    >>> from dualfield.data.parse_trees.dependency_scores import attached
    >>> attached([[(2, "nsubj"), (0, "root")]], [[(2, "obj"), (0, "root")]]).right_label
    array([False,  True])
    """
    y_true, y_pred = list(y_true), list(y_pred)
    lengths = [len(one) for one in y_true]
    if len(y_pred) != len(y_true):
        raise ValueError(f"y_pred must have {len(y_true)} sentences, as y_true. Got {len(y_pred)} instead.")
    true, found = read_heads(y_true, lengths, "y_true"), read_heads(y_pred, lengths, "y_pred")
    is_known = true.heads >= 0
    right = is_known & (true.heads == found.heads)
    if true.labels is None or found.labels is None:
        return Attached(true.offsets, is_known, right, None)
    return Attached(true.offsets, is_known, right, right & (_labels(true, exact) == _labels(found, exact)))


def _labels(read: Heads, exact: bool) -> NDArray[np.object_]:
    assert read.labels is not None
    found = np.empty(len(read.labels), dtype=object)
    found[:] = read.labels if exact else [label and label.partition(":")[0] for label in read.labels]
    return found
