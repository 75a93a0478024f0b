"""Scores of spans as a table, in the manner of seqeval and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualfield.metrics.span_metrics import SpanScore, span_scores


def span_report(y_true: Any, y_pred: Any, *, digits: int = 2, output_dict: bool = False) -> Any:
    """Return precision, recall and F1 of the spans of each type, with micro, macro and weighted averages.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        True and predicted labels, such as ``B-PER``, ``I-PER``, ``O``.
    digits : int, default=2
        Decimals of the text.
    output_dict : bool, default=False
        Return numbers instead of text: for each row "precision", "recall", "f1-score" and "support".

    Returns
    -------
    str or dict
        The table.

    Examples
    --------
    >>> from dualfield.metrics import span_report
    >>> print(span_report([["B-PER", "O", "B-LOC"]], [["B-PER", "O", "O"]]))
                  precision    recall  f1-score   support
    <BLANKLINE>
             LOC       0.00      0.00      0.00         1
             PER       1.00      1.00      1.00         1
    <BLANKLINE>
       micro avg       1.00      0.50      0.67         2
       macro avg       0.50      0.50      0.50         2
    weighted avg       0.50      0.50      0.50         2
    """
    scores = span_scores(y_true, y_pred)
    rows = {kind: _row(score) for kind, score in scores.types.items()}
    table = np.array([list(row.values())[:3] for row in rows.values()]).reshape(-1, 3)
    support = np.array([row["support"] for row in rows.values()], dtype=np.float64)
    total = int(support.sum())
    means = table.mean(axis=0) if len(table) else np.zeros(3)
    weighted = support @ table / max(total, 1) if len(table) else np.zeros(3)
    names = ("precision", "recall", "f1-score")
    averages = {
        "micro avg": _row(scores.overall),
        "macro avg": {**dict(zip(names, means.tolist(), strict=True)), "support": total},
        "weighted avg": {**dict(zip(names, weighted.tolist(), strict=True)), "support": total},
    }
    if output_dict:
        return {**rows, **averages}
    width = max([len(name) for name in (*rows, *averages)] + [digits])
    head = f"{'':>{width}} " + "".join(f"{name:>10}" for name in (*names, "support"))
    lines = [[_line(name, row, width, digits) for name, row in part.items()] for part in (rows, averages)]
    return "\n".join([head, "", *lines[0], "", *lines[1]])


def _row(score: SpanScore) -> dict[str, Any]:
    return {"precision": score.precision, "recall": score.recall, "f1-score": score.f1, "support": score.support}


def _line(name: str, row: dict[str, Any], width: int, digits: int) -> str:
    numbers = "".join(f"{row[key]:>10.{digits}f}" for key in ("precision", "recall", "f1-score"))
    return f"{name:>{width}} {numbers}{row['support']:>10}"
