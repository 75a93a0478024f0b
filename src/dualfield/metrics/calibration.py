"""Calibration of probabilities."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.labels import in_a_row
from dualfield.data.tables import Columns, Tabular, text_table
from dualfield.metrics.sequences import as_lists

_ROUNDING = 1e-6  # by how much a probability may miss [0, 1], single precision included


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CalibrationBins(Tabular):
    """Accuracy of predictions of about the same confidence; see :func:`calibration_bins`.

    Attributes
    ----------
    confidence : ndarray of shape (n_bins,)
        Mean confidence in each bin that is not empty.
    accuracy : ndarray of shape (n_bins,)
        Share of right predictions in it.
    count : ndarray of shape (n_bins,)
        Number of predictions in it.

    Examples
    --------
    >>> from dualfield.metrics import calibration_bins
    >>> calibration_bins([0.8, 0.8, 0.8, 0.8], [1, 1, 1, 0]).count
    array([4])
    """

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    count: NDArray[np.int64]

    def _columns(self) -> Columns:
        return {name: getattr(self, name).tolist() for name in ("confidence", "accuracy", "count")}

    def __repr__(self) -> str:
        return text_table(self._columns())

    @property
    def error(self) -> float:
        """Expected calibration error: mean of ``|accuracy - confidence|``, bins weighted by their count."""
        return float(np.average(np.abs(self.accuracy - self.confidence), weights=self.count))


def calibration_bins(confidence: ArrayLike, correct: ArrayLike, *, n_bins: int = 10) -> CalibrationBins:
    """Sort predictions by confidence into bins of equal width and count how many were right.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Probability that was given to the prediction, in [0, 1].
    correct : array-like of shape (n,)
        Whether the prediction was right.
    n_bins : int, default=10
        Bin b holds probabilities above b / n_bins and up to (b + 1) / n_bins; empty ones are left out.

    Returns
    -------
    CalibrationBins
        One entry per bin that is not empty.

    Examples
    --------
    >>> from dualfield.metrics import calibration_bins
    >>> bins = calibration_bins([0.9, 0.9, 0.6, 0.6], [True, True, True, False])
    >>> bins.accuracy.tolist(), round(bins.error, 3)
    ([0.5, 1.0], 0.1)
    """
    _check_bins("calibration_bins", n_bins)
    sure, right = _numbers("confidence", confidence), _numbers("correct", correct)
    if sure.ndim != 1 or sure.shape != right.shape or len(sure) == 0:
        raise ValueError(
            f"confidence and correct must be non-empty 1D arrays of the same length. Got shapes {sure.shape} "
            f"and {right.shape} instead."
        )
    _check_all("confidence", sure, (sure >= -_ROUNDING) & (sure <= 1.0 + _ROUNDING), "be a probability in [0, 1]")
    _check_all("correct", right, (right == 0.0) | (right == 1.0), "say whether a prediction was right, True or False")
    edges = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    place = np.searchsorted(edges, sure, side="left")
    count = np.bincount(place, minlength=n_bins)
    used = count > 0
    mean_sure = np.bincount(place, weights=sure, minlength=n_bins)[used] / count[used]
    mean_right = np.bincount(place, weights=right, minlength=n_bins)[used] / count[used]
    return CalibrationBins(mean_sure, mean_right, count[used])


def calibration_error(y_true: Any, marginals: Any, classes: Any, n_bins: int = 10) -> float:
    r"""Return the expected calibration error of the most probable label.

    Among tokens whose most probable label has a probability around 0.8, that label should be right in 80 % of cases.
    The tokens are binned by that probability, in bins of equal width, and

    .. math:: \sum_b \frac{n_b}{N} \, | \mathrm{accuracy}_b - \mathrm{confidence}_b |

    is the mean distance between accuracy and mean probability in each bin.

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
    _check_bins("calibration_error", n_bins)
    confidence, right = confidences(y_true, marginals, classes)
    if not len(right):
        raise ValueError("y_true must have at least one label. Got none.")
    return calibration_bins(confidence, right, n_bins=int(n_bins)).error


def confidences(y_true: Any, marginals: Any, classes: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return, for all tokens in a row, the probability of the most probable label and whether it is right.

    Parameters
    ----------
    y_true, marginals, classes
        As in :func:`calibration_error`.

    Returns
    -------
    ndarray of shape (n_tokens,)
        Probabilities.
    bool ndarray of shape (n_tokens,)
        Whether the label is the true one.
    """
    true = as_lists(y_true, "y_true")
    names = list(np.asarray(classes).tolist())
    if len(true) != len(marginals):
        raise ValueError(f"y_true has {len(true)} sequences; marginals has {len(marginals)}.")
    confidence, right = [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for i, labels in enumerate(true):
        rows = checked_marginals(marginals[i], labels, len(names), i)
        best = rows.argmax(axis=1) if len(labels) else np.zeros(0, dtype=np.intp)
        confidence.append(rows[np.arange(len(labels)), best])
        right.append(np.array([names[at] == label for at, label in zip(best, labels, strict=True)], dtype=bool))
    return np.concatenate(confidence), np.concatenate(right)


def _check_bins(owner: str, n_bins: Any) -> None:
    if isinstance(n_bins, bool) or not isinstance(n_bins, numbers.Integral) or n_bins < 1:
        raise ValueError(f"The 'n_bins' parameter of {owner} must be an int in [1, inf). Got {n_bins!r}.")


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers. Got {values!r:.100}: {error}") from None


def _check_all(name: str, values: NDArray[np.float64], good: NDArray[np.bool_], what: str) -> None:
    if not good.all():
        at = int(good.argmin())
        raise ValueError(f"{name} must {what}. Got {name}[{at}] = {values[at]} instead.")


def checked_marginals(marginals: Any, labels: Sequence[Any], n_classes: int, i: int) -> NDArray[np.float64]:
    """Return the probabilities of one sequence, a row for each of its labels, or raise an error that names it."""
    rows = np.asarray(in_a_row(marginals) if isinstance(marginals, dict) else marginals, dtype=np.float64)
    if rows.ndim == 3:  # an image, whose labels are taken row by row
        rows = rows.reshape(-1, rows.shape[2])
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
