"""Scores that count labels one by one, and sequences that are right as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dualfield.metrics.sequences import flat, paired


def flat_accuracy_score(y_true: Any, y_pred: Any, **kwargs: Any) -> float:
    """Return the share of labels that are right.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels.
    **kwargs
        Passed on to :func:`sklearn.metrics.accuracy_score`. `sample_weight` has an entry for each label.

    Returns
    -------
    float
        The accuracy.

    Examples
    --------
    >>> from dualfield.metrics import flat_accuracy_score
    >>> flat_accuracy_score([["B", "I", "O"], ["O"]], [["B", "O", "O"], ["O"]])
    0.75
    """
    return float(_of_sklearn("accuracy_score")(*_flat_pair(y_true, y_pred), **kwargs))


def flat_precision_score(y_true: Any, y_pred: Any, **kwargs: Any) -> Any:
    """Return the precision over all labels.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels.
    **kwargs
        Passed on to :func:`sklearn.metrics.precision_score`: `average`, which several labels need, `labels`,
        `zero_division`, ...

    Returns
    -------
    float, or array of float where ``average=None``
        The precision.

    Examples
    --------
    >>> from dualfield.metrics import flat_precision_score
    >>> flat_precision_score([["B", "I", "O"], ["O"]], [["B", "O", "O"], ["O"]], average="micro", labels=["B", "O"])
    0.75
    """
    return _of_sklearn("precision_score")(*_flat_pair(y_true, y_pred), **kwargs)


def flat_recall_score(y_true: Any, y_pred: Any, **kwargs: Any) -> Any:
    """Return the recall over all labels.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels.
    **kwargs
        Passed on to :func:`sklearn.metrics.recall_score`: `average`, which several labels need, `labels`, ...

    Returns
    -------
    float, or array of float where ``average=None``
        The recall.

    Examples
    --------
    >>> from dualfield.metrics import flat_recall_score
    >>> flat_recall_score([["B", "I", "O"], ["O"]], [["B", "O", "O"], ["O"]], average="micro", labels=["B", "I"])
    0.5
    """
    return _of_sklearn("recall_score")(*_flat_pair(y_true, y_pred), **kwargs)


def flat_f1_score(y_true: Any, y_pred: Any, **kwargs: Any) -> Any:
    """Return the F1 score over all labels.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels.
    **kwargs
        Passed on to :func:`sklearn.metrics.f1_score`: `average`, which several labels need, `labels`, ...

    Returns
    -------
    float, or array of float where ``average=None``
        The harmonic mean of precision and recall.

    See Also
    --------
    token_f1_score : Without the labels that mark nothing.
    span_f1_score : Counts whole spans.

    Examples
    --------
    >>> from dualfield.metrics import flat_f1_score
    >>> flat_f1_score([["B", "I", "O"], ["O"]], [["B", "O", "O"], ["O"]], average="weighted")
    0.65
    """
    return _of_sklearn("f1_score")(*_flat_pair(y_true, y_pred), **kwargs)


def flat_classification_report(y_true: Any, y_pred: Any, **kwargs: Any) -> Any:
    """Return precision, recall and F1 score of each label as a text table.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels.
    **kwargs
        Passed on to :func:`sklearn.metrics.classification_report`: `labels`, `digits`, `output_dict`, ...

    Returns
    -------
    str, or dict where ``output_dict=True``
        The report.

    Examples
    --------
    >>> from dualfield.metrics import flat_classification_report
    >>> y_true, y_pred = [["B", "I", "O"], ["O"]], [["B", "O", "O"], ["O"]]
    >>> print(flat_classification_report(y_true, y_pred, labels=["B", "O"], digits=2))
                  precision    recall  f1-score   support
    <BLANKLINE>
               B       1.00      1.00      1.00         1
               O       0.67      1.00      0.80         2
    <BLANKLINE>
       micro avg       0.75      1.00      0.86         3
       macro avg       0.83      1.00      0.90         3
    weighted avg       0.78      1.00      0.87         3
    <BLANKLINE>
    """
    return _of_sklearn("classification_report")(*_flat_pair(y_true, y_pred), **kwargs)


def token_f1_score(y_true: Any, y_pred: Any, ignore: Iterable[Any] = ("O",)) -> float:
    """Return the F1 score over the labels that mark something, counted together.

    A label that is neither ignored nor right counts against precision where it is predicted and against recall where
    it is true. This is the micro average over all labels but the ignored ones.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels.
    ignore : iterable of labels, default=("O",)
        The labels that do not count.

    Returns
    -------
    float
        The F1 score; 0 if there is nothing that counts.

    See Also
    --------
    flat_f1_score : With the choice of labels and averages.

    Examples
    --------
    >>> from dualfield.metrics import token_f1_score
    >>> token_f1_score([["B", "I", "O"], ["O"]], [["B", "O", "O"], ["O"]])
    0.666...
    """
    left_out = frozenset([ignore] if isinstance(ignore, str) else ignore)
    true, pred = _flat_pair(y_true, y_pred)
    right = sum(one == other and one not in left_out for one, other in zip(true, pred, strict=True))
    marked = sum(label not in left_out for label in true) + sum(label not in left_out for label in pred)
    return 2 * right / marked if marked else 0.0


def sequence_accuracy_score(y_true: Any, y_pred: Any) -> float:
    """Return the share of sequences in which every label is right.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels.

    Returns
    -------
    float
        The accuracy. A sequence without labels is right.

    Examples
    --------
    >>> from dualfield.metrics import sequence_accuracy_score
    >>> sequence_accuracy_score([["B", "I", "O"], ["O"]], [["B", "O", "O"], ["O"]])
    0.5
    """
    true, pred = paired(y_true, y_pred)
    if not true:
        raise ValueError("y_true must have at least one sequence. Got none.")
    return sum(one == other for one, other in zip(true, pred, strict=True)) / len(true)


def _of_sklearn(name: str) -> Any:
    """Return a function of scikit-learn's metrics, imported when first used: predictions need spans, but not these."""
    import sklearn.metrics

    return getattr(sklearn.metrics, name)


def _flat_pair(y_true: Any, y_pred: Any) -> tuple[list[Any], list[Any]]:
    true, pred = paired(y_true, y_pred)
    return flat(true), flat(pred)
