"""Labels as displays take, order, choose and write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.input_forms import unwrapped
from dualfield.data.labels import in_a_row
from dualfield.metrics.sequences import flat, paired
from dualfield.plotting.markup import shortened

_LONGEST = 24  # characters of a label in a picture


def label_list(labels: Any) -> list[Any]:
    """Return labels as a list of Python values."""
    labels = unwrapped(labels)
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def one_for_each(name: str, values: Any, n: int, what: str = "word") -> Any:
    """Return values after checking that there is one for each word, token or node."""
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} entries; expected {n}, one for each {what}.")
    return values


def as_sequences(y: Any) -> list[list[Any]]:
    """Return labels as a list of sequences; labels that come one for each example are a single sequence.

    Those of images, of shape (height, width), are taken row by row.
    """
    labels = list(y) if isinstance(y, np.ndarray) and y.ndim > 1 else [in_a_row(one) for one in label_list(y)]
    nested = [isinstance(one, list | tuple | np.ndarray) or hasattr(one, "iloc") for one in labels]
    if not any(nested):
        return [labels] if labels else []
    return [label_list(one.ravel() if isinstance(one, np.ndarray) else one) for one in labels]


def flat_pair(y_true: Any, y_pred: Any) -> tuple[list[Any], list[Any]]:
    """Return the labels of all examples in a row, after checking that there are as many of both."""
    true, pred = paired(as_sequences(y_true), as_sequences(y_pred))
    return flat(true), flat(pred)


def in_order(labels: Iterable[Any]) -> list[Any]:
    """Return the distinct labels, sorted; labels of several types by type."""
    return sorted(set(labels), key=lambda label: (type(label).__name__, label))


def most_of(values: ArrayLike, most: int) -> NDArray[np.intp]:
    """Return the places of the largest values, at most so many, in the order in which they stand."""
    if most < 1:
        raise ValueError(f"The 'max_labels' parameter must be an int in [1, inf). Got {most!r} instead.")
    return np.sort(np.argsort(-np.asarray(values, dtype=np.float64), kind="stable")[:most])


def shown_note(shown: int, total: int, what: str) -> str:
    """Say that only some are shown; nothing if all are."""
    return "" if shown == total else f"{shown} of {total} {what}"


def short_labels(labels: Sequence[object]) -> list[str]:
    """Return labels as they are written in a picture."""
    return [shortened(label, _LONGEST) for label in labels]
