"""Scores of a fitted model, in the form that GridSearchCV and cross_val_score take as ``scoring``."""

from __future__ import annotations

from typing import Any

from dualfield.metrics.span_metrics import span_f1_score
from dualfield.metrics.token_metrics import sequence_accuracy_score, token_f1_score


def span_f1_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return the F1 score of the spans that a model predicts.

    Parameters
    ----------
    estimator : fitted estimator
        Its ``predict(X)`` is called.
    X : list of sequences
        What to predict from.
    y : list of label sequences
        The true labels.

    Returns
    -------
    float
        :func:`span_f1_score` of the prediction.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from dualfield.metrics import span_f1_scorer
    >>> copies = SimpleNamespace(predict=lambda X: X)  # any model will do
    >>> span_f1_scorer(copies, [["B-NP", "O"]], [["B-NP", "B-VP"]])
    0.666...
    """
    return span_f1_score(y, estimator.predict(X))


def token_f1_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return the F1 score of the labels other than ``"O"`` that a model predicts.

    Parameters
    ----------
    estimator : fitted estimator
        Its ``predict(X)`` is called.
    X : list of sequences
        What to predict from.
    y : list of label sequences
        The true labels.

    Returns
    -------
    float
        :func:`token_f1_score` of the prediction.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from dualfield.metrics import token_f1_scorer
    >>> copies = SimpleNamespace(predict=lambda X: X)
    >>> token_f1_scorer(copies, [["B-NP", "O"]], [["B-NP", "B-VP"]])
    0.666...
    """
    return token_f1_score(y, estimator.predict(X))


def sequence_accuracy_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return the share of sequences that a model predicts without a mistake.

    Parameters
    ----------
    estimator : fitted estimator
        Its ``predict(X)`` is called.
    X : list of sequences
        What to predict from.
    y : list of label sequences
        The true labels.

    Returns
    -------
    float
        :func:`sequence_accuracy_score` of the prediction.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from dualfield.metrics import sequence_accuracy_scorer
    >>> copies = SimpleNamespace(predict=lambda X: X)
    >>> sequence_accuracy_scorer(copies, [["O", "O"], ["O"]], [["O", "B-VP"], ["O"]])
    0.5
    """
    return sequence_accuracy_score(y, estimator.predict(X))
