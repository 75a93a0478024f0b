"""Whether probabilities are what they say."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.metrics.sequences import as_lists

_ROUNDING = 1e-6  # by how much a probability may miss [0, 1], single precision included


def calibration_error(y_true: Any, marginals: Any, classes: Any, n_bins: int = 10) -> float:
    r"""Return the expected calibration error of the most probable label.

    Among tokens whose most probable label has a probability around 0.8, that label should be right in 80 of 100 cases.
    The tokens are put into bins of equal width by that probability, and

    .. math:: \sum_b \frac{n_b}{N} \, | \mathrm{accuracy}_b - \mathrm{confidence}_b |

    adds up how far the share of right labels in each bin is from the mean probability there.

    Parameters
    ----------
    y_true : list of label sequences
        The true labels. One that is not among the classes was never predicted, so the token counts as wrong.
    marginals : list of arrays of shape (T_i, n_classes)
        The probability of each label at each token.
    classes : sequence of length n_classes
        The labels of the columns.
    n_bins : int, default=10
        Bin b holds probabilities above b / n_bins and up to (b + 1) / n_bins.

    Returns
    -------
    float
        The error, between 0 and 1.

    Raises
    ------
    ValueError
        If shapes do not agree, or `marginals` are not probabilities. The message names the sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.metrics import calibration_error
    >>> marginals = [np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.6, 0.4]])]
    >>> round(calibration_error([["a", "b"], ["b"]], marginals, classes=["a", "b"]), 3)
    0.3
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, numbers.Integral) or n_bins < 1:
        raise ValueError(f"The 'n_bins' parameter of calibration_error must be an int in [1, inf). Got {n_bins!r}.")
    true = as_lists(y_true, "y_true")
    names = list(np.asarray(classes).tolist())
    if len(true) != len(marginals):
        raise ValueError(f"y_true has {len(true)} sequences; marginals has {len(marginals)}.")
    confidence: list[NDArray[np.float64]] = []
    right: list[NDArray[np.bool_]] = []
    for i, labels in enumerate(true):
        rows = _checked(marginals[i], labels, len(names), i)
        best = rows.argmax(axis=1) if len(labels) else np.zeros(0, dtype=np.intp)
        confidence.append(rows[np.arange(len(labels)), best])
        right.append(np.array([names[at] == label for at, label in zip(best, labels, strict=True)], dtype=bool))
    n_tokens = sum(map(len, true))
    if not n_tokens:
        raise ValueError("y_true must have at least one label. Got none.")
    return _binned_error(np.concatenate(confidence), np.concatenate(right), int(n_bins)) / n_tokens


def _binned_error(confidence: NDArray[np.float64], right: NDArray[np.bool_], n_bins: int) -> float:
    """Return the sum over bins of |number of right tokens - sum of their probabilities|."""
    edges = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    bins = np.searchsorted(edges, confidence, side="left")
    difference = np.bincount(bins, weights=right - confidence, minlength=n_bins)
    return float(np.abs(difference).sum())


def _checked(marginals: Any, labels: Sequence[Any], n_classes: int, i: int) -> NDArray[np.float64]:
    rows = np.asarray(marginals, dtype=np.float64)
    if not len(labels) and not rows.size:
        return np.zeros((0, n_classes))
    if rows.shape != (len(labels), n_classes):
        raise ValueError(
            f"marginals[{i}] must have shape ({len(labels)}, {n_classes}): a row for each label of y_true[{i}], "
            f"a column for each class. Got {rows.shape} instead."
        )
    if not (rows.min() >= -_ROUNDING and rows.max() <= 1 + _ROUNDING):
        raise ValueError(f"marginals[{i}] must be probabilities in [0, 1]. Got {rows.min()} to {rows.max()} instead.")
    return rows
