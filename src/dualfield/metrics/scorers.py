"""Scores of a fitted model, in the form that GridSearchCV and cross_val_score take as ``scoring``."""

from __future__ import annotations

from typing import Any

from dualfield.metrics.calibration import calibration_error
from dualfield.metrics.probabilities import token_brier_score, token_log_loss
from dualfield.metrics.sequences import labels_for
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
    predicted = estimator.predict(X)
    return span_f1_score(labels_for(estimator, y, predicted), predicted)


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
    predicted = estimator.predict(X)
    return token_f1_score(labels_for(estimator, y, predicted), predicted)


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
    predicted = estimator.predict(X)
    return sequence_accuracy_score(labels_for(estimator, y, predicted), predicted)


def neg_log_loss_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return minus the log-loss of the probabilities of a model, so that higher is better.

    Parameters
    ----------
    estimator : fitted estimator
        Its ``predict_proba(X)`` is called.
    X : list of sequences
        What to predict from.
    y : list of label sequences
        The true labels.

    Returns
    -------
    float
        Minus :func:`token_log_loss`.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.metrics import neg_log_loss_scorer
    >>> X, y = [[["a"], ["b"]]] * 6, [["x", "y"]] * 6
    >>> neg_log_loss_scorer(CRF(C=10.0).fit(X, y), X, y) > neg_log_loss_scorer(CRF(C=0.01).fit(X, y), X, y)
    True
    """
    chances = estimator.predict_proba(X)
    return -token_log_loss(labels_for(estimator, y, chances), chances, estimator.classes_)


def neg_brier_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return minus the Brier score of the probabilities of a model.

    Parameters
    ----------
    estimator, X, y
        As in :func:`neg_log_loss_scorer`.

    Returns
    -------
    float
        Minus :func:`token_brier_score`.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.metrics import neg_brier_scorer
    >>> X, y = [[["a"], ["b"]]] * 6, [["x", "y"]] * 6
    >>> neg_brier_scorer(CRF(C=10.0).fit(X, y), X, y) > -0.1
    True
    """
    chances = estimator.predict_proba(X)
    return -token_brier_score(labels_for(estimator, y, chances), chances, estimator.classes_)


def neg_calibration_error_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Return minus the expected calibration error of a model.

    Parameters
    ----------
    estimator, X, y
        As in :func:`neg_log_loss_scorer`.

    Returns
    -------
    float
        Minus :func:`calibration_error`.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.metrics import neg_calibration_error_scorer
    >>> X, y = [[["a"], ["b"]]] * 6, [["x", "y"]] * 6
    >>> -1.0 <= neg_calibration_error_scorer(CRF().fit(X, y), X, y) <= 0.0
    True
    """
    chances = estimator.predict_proba(X)
    return -calibration_error(labels_for(estimator, y, chances), chances, estimator.classes_)
