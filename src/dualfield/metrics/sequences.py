"""Two lists of label sequences, laid side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from dualfield.data.input_forms import unwrapped
from dualfield.data.labels import in_a_row


def paired(y_true: Any, y_pred: Any) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return both as lists of lists of Python values, after checking that their lengths agree."""
    true, pred = as_lists(y_true, "y_true"), as_lists(y_pred, "y_pred")
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} sequences; y_pred has {len(pred)}.")
    for i, (one, other) in enumerate(zip(true, pred, strict=True)):
        if len(one) != len(other):
            raise ValueError(f"y_true[{i}] has {len(one)} labels; y_pred[{i}] has {len(other)}.")
    return true, pred


def labels_for(model: Any, y: Any, answers: Any) -> Any:
    """Return y as labels, one for each row of the answers of a model, where its structure takes other forms too."""
    structure = getattr(model, "structure_", None)
    if getattr(structure, "is_flat", True):
        return y
    return structure.as_labels(y, [len(one) for one in answers])  # type: ignore[union-attr]


def as_lists(y: Any, name: str) -> list[list[Any]]:
    """Return label sequences as lists of lists of Python values."""
    y = unwrapped(y)
    if isinstance(y, str | bytes | dict) or not isinstance(y, Iterable):
        raise TypeError(f"{name} must be a list of label sequences. Got {type(y).__name__} instead.")
    result = []
    for i, sequence in enumerate(in_a_row(unwrapped(one)) for one in y):
        if not isinstance(sequence, list | tuple | np.ndarray):
            found = type(sequence).__name__
            raise TypeError(f"{name}[{i}] must be a list, tuple or array of labels. Got {found} instead.")
        # Labels of an image are those of its pixels, row by row.
        result.append(sequence.ravel().tolist() if isinstance(sequence, np.ndarray) else list(sequence))
    return result


def flat(sequences: list[list[Any]]) -> list[Any]:
    """Return the labels of all sequences in a row."""
    return list(itertools.chain.from_iterable(sequences))
