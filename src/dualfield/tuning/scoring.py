"""Scores by name, and the one that suits the labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualfield.data.span_labels import marks_spans
from dualfield.metrics import (
    neg_brier_scorer,
    neg_calibration_error_scorer,
    neg_log_loss_scorer,
    sequence_accuracy_scorer,
    span_f1_scorer,
    token_f1_scorer,
)

__all__ = ["pick_scorer"]

Scorer = Callable[[Any, Any, Any], float]


def _accuracy(estimator: Any, X: Any, y: Any) -> float:
    """Return the score of the estimator: the share of right labels."""
    return float(estimator.score(X, y))


EVIDENCE = "evidence"  # of the training data themselves: no scorer, and no folds


def _no_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Refuse: the evidence is that of the data of the fit."""
    raise ValueError("scoring='evidence' is the probability of the training data, which other data do not have.")


SCORERS: dict[str, Scorer] = {
    "accuracy": _accuracy,
    "span_f1": span_f1_scorer,
    "token_f1": token_f1_scorer,
    "sequence_accuracy": sequence_accuracy_scorer,
    "neg_log_loss": neg_log_loss_scorer,
    "neg_brier": neg_brier_scorer,
    "neg_calibration_error": neg_calibration_error_scorer,
}
_OF_TREES = ("accuracy", EVIDENCE)  # the others compare labels of nodes


def pick_scorer(
    owner: str, scoring: Any, labels: set[Any], *, margins: bool = False, trees: bool = False
) -> tuple[str, Scorer]:
    """Return the name of a score and the function; higher is better.

    Parameters
    ----------
    owner : str
        The estimator, for error messages.
    scoring : str, callable or None
        One of ``SCORERS``, "evidence", ``scorer(estimator, X, y)``, or None: span F1 where all labels mark spans, else
        accuracy.
    labels : set
        All labels of the training data.
    margins : bool, default=False
        Whether the model has margins, and no probabilities that could be scored.
    trees : bool, default=False
        Whether outputs are trees, and not labels of nodes.

    Returns
    -------
    (str, callable)
        The name, "score" for a callable without one.

    Examples
    --------
    >>> from dualfield.tuning import pick_scorer
    >>> pick_scorer("CRFCV", None, {"B-NP", "I-NP", "O"})[0], pick_scorer("CRFCV", None, {"NN", "VB"})[0]
    ('span_f1', 'accuracy')
    """
    if scoring is None:
        is_text = not trees and all(isinstance(label, str) for label in labels)
        scoring = "span_f1" if is_text and marks_spans(sorted(labels)) else "accuracy"
    if scoring == EVIDENCE and not margins:
        return EVIDENCE, _no_scorer
    if callable(scoring):
        return str(getattr(scoring, "__name__", "score")), scoring
    if not isinstance(scoring, str) or scoring not in SCORERS:
        raise ValueError(
            f"The 'scoring' parameter of {owner} must be a callable, None or one of "
            f"{sorted(SCORERS if margins else [*SCORERS, EVIDENCE])}. "
            f"Got {scoring!r} instead."
        )
    if margins and scoring in ("neg_log_loss", "neg_brier", "neg_calibration_error"):
        raise ValueError(f"scoring={scoring!r} needs probabilities; {owner} has margins. Use CRFCV, or another score.")
    if trees and scoring not in _OF_TREES:
        raise ValueError(
            f"scoring={scoring!r} compares labels of nodes, and y has trees. Use scoring='accuracy', which is the F1 "
            "of labelled brackets, or the share of words with the right head and label; or a function."
        )
    return scoring, SCORERS[scoring]
