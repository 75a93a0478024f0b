"""Labels in folds: which there are, and which have no training example where they are held out."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualfield.data.user_warnings import warn_user
from dualfield.tuning.grid import Splits

__all__ = ["check_labels", "distinct_labels"]

_OF_PROBABILITIES = ("neg_log_loss", "neg_brier", "neg_calibration_error")


def distinct_labels(y: Any) -> set[Any]:
    """Return the labels in sequences or of single nodes; nothing where outputs are other objects.

    Parameters
    ----------
    y : sequence
        Labels, or lists of labels.

    Returns
    -------
    set
        The distinct ones.

    Examples
    --------
    >>> from dualfield.tuning.folds import distinct_labels
    >>> sorted(distinct_labels([["O", "B-x"], ["O"]]))
    ['B-x', 'O']
    """
    return {label for one in _parts(y) for label in one}


def check_labels(y: Any, splits: Splits, y_dev: Any, scoring: str) -> None:
    """Warn of labels without a training example in a fold, which are got wrong; raise where probabilities are scored.

    Parameters
    ----------
    y : sequence
        Labels of all examples.
    splits : Splits
        The folds.
    y_dev : sequence or None
        Labels of separate held-out data.
    scoring : str
        Name of the score.

    Raises
    ------
    ValueError
        If probabilities are scored: such a label has none.

    Examples
    --------
    >>> from dualfield.tuning import Splits
    >>> from dualfield.tuning.folds import check_labels
    >>> check_labels([["x"], ["y"]], Splits.of(2, [0, 1], None), None, "neg_log_loss")
    Traceback (most recent call last):
        ...
    ValueError: Fold 0 has no training example with the label 'x', which is held out there. ...
    """
    own = _parts(y)
    for at, (train, test) in enumerate(splits.folds):
        known = {label for one in train for label in own[one]}
        held_out = [own[one] for one in test] if y_dev is None else _parts(y_dev)
        missing = sorted({label for one in held_out for label in one} - known, key=str)
        if not missing:
            continue
        names = ", ".join(map(repr, missing[:3])) + ", ..." * (len(missing) > 3)
        which = f"the label{'s' * (len(missing) > 1)} {names}, which {'are' if len(missing) > 1 else 'is'} held out"
        said = f"Fold {at} has no training example with {which} there." if y_dev is None else ""
        said = said or f"The training data have no example with {which} in y_dev."
        remedy = "Use fewer or shuffled folds, or other held-out data."
        if scoring in _OF_PROBABILITIES:
            raise ValueError(f"{said} There is no probability of it, so {scoring} cannot be computed. {remedy}")
        warn_user(f"{said} Predictions there count as wrong. {remedy}")


def _parts(y: Any) -> list[list[Any]]:
    """Return the labels of each example; empty lists for outputs that are no labels."""
    values = y.tolist() if isinstance(y, np.ndarray) else list(y)
    return [_labels(one) for one in values]


def _labels(one: Any) -> list[Any]:
    if isinstance(one, (str, bytes, int, float, bool, np.generic)):
        return [one]
    if isinstance(one, (list, tuple, np.ndarray)):
        found = one.tolist() if isinstance(one, np.ndarray) else list(one)
        return [label for label in found if isinstance(label, (str, bytes, int, float, bool, np.generic))]
    return []
