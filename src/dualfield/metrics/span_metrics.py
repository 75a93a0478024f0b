"""Precision and recall of spans, as conlleval computes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dualfield.data.span_labels import found_spans
from dualfield.data.tables import Columns, Tabular
from dualfield.metrics.sequences import flat, paired


@dataclass(frozen=True)
class SpanScore:
    """Counts of spans, and the scores that follow from them.

    Attributes
    ----------
    correct : int
        Spans that were found with the right type, beginning and end.
    found : int
        Spans in the predicted labels.
    support : int
        Spans in the true labels.

    Examples
    --------
    >>> from dualfield.metrics import SpanScore
    >>> score = SpanScore(correct=2, found=4, support=3)
    >>> score.precision
    0.5
    >>> round(score.recall, 3), round(score.f1, 3)
    (0.667, 0.571)
    """

    correct: int
    found: int
    support: int

    @property
    def precision(self) -> float:
        """Share of the found spans that are correct; 0 if none was found."""
        return self.correct / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of the true spans that were found; 0 if there is none."""
        return self.correct / self.support if self.support else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if nothing is correct."""
        return 2 * self.correct / (self.found + self.support) if self.correct else 0.0

    def __str__(self) -> str:
        # In conlleval's order of operations, which decides the last digit where the next one would be a 5.
        precision = 100 * self.correct / self.found if self.found else 0.0
        recall = 100 * self.correct / self.support if self.support else 0.0
        f1 = 2 * precision * recall / (precision + recall) if self.correct else 0.0
        return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


@dataclass(frozen=True, repr=False)
class SpanScores(Tabular):
    """Scores of all spans together and of each type; made by :func:`span_scores`, printed as conlleval prints them.

    Attributes
    ----------
    overall : SpanScore
        All spans counted together, which is the micro average.
    types : dict from str to SpanScore
        The spans of each type that is true or predicted somewhere, sorted by type.
    accuracy : float
        Share of labels that are right.
    n_tokens : int
        Number of labels.

    Examples
    --------
    >>> from dualfield.metrics import span_scores
    >>> scores = span_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "O"]])
    >>> scores.overall.recall, scores.types["NP"].recall
    (0.5, 1.0)
    """

    overall: SpanScore
    types: Mapping[str, SpanScore]
    accuracy: float
    n_tokens: int

    def __repr__(self) -> str:
        return str(self)

    def _columns(self) -> Columns:
        rows = {"all": self.overall, **self.types}
        names = ("precision", "recall", "f1", "found", "support")
        return {"type": list(rows)} | {name: [getattr(one, name) for one in rows.values()] for name in names}

    def __str__(self) -> str:
        total = self.overall
        right = round(self.accuracy * self.n_tokens)
        accuracy = 100 * right / self.n_tokens if self.n_tokens else 0.0
        lines = [
            f"processed {self.n_tokens} tokens with {total.support} phrases; "
            f"found: {total.found} phrases; correct: {total.correct}.",
            f"accuracy: {accuracy:6.2f}%; {total}",
        ]
        return "\n".join(lines + [f"{kind:>17}: {score}  {score.found}" for kind, score in self.types.items()])


def span_scores(y_true: Any, y_pred: Any) -> SpanScores:
    """Score the spans that labels mark: a span is correct if type, beginning and end are those of a true one.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels, as :func:`spans` reads them.

    Returns
    -------
    SpanScores
        Scores of all spans together and of each type, and the share of right labels.

    Examples
    --------
    >>> from dualfield.metrics import span_scores
    >>> y_true = [["B-NP", "I-NP", "B-VP", "O"], ["B-NP"]]
    >>> y_pred = [["B-NP", "I-NP", "B-NP", "O"], ["B-NP"]]
    >>> print(span_scores(y_true, y_pred))
    processed 5 tokens with 3 phrases; found: 3 phrases; correct: 2.
    accuracy:  80.00%; precision:  66.67%; recall:  66.67%; FB1:  66.67
                   NP: precision:  66.67%; recall: 100.00%; FB1:  80.00  3
                   VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
    """
    true, pred = paired(y_true, y_pred)
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    support: Counter[str] = Counter()
    for i, (one, other) in enumerate(zip(true, pred, strict=True)):
        expected, predicted = found_spans(one, f"y_true[{i}]"), found_spans(other, f"y_pred[{i}]")
        support.update(kind for kind, _, _ in expected)
        found.update(kind for kind, _, _ in predicted)
        correct.update(kind for kind, _, _ in set(expected).intersection(predicted))
    types = {kind: SpanScore(correct[kind], found[kind], support[kind]) for kind in sorted(support | found)}
    n_tokens = sum(map(len, true))
    right = sum(one == other for one, other in zip(flat(true), flat(pred), strict=True))
    overall = SpanScore(correct.total(), found.total(), support.total())
    return SpanScores(overall, types, right / n_tokens if n_tokens else 0.0, n_tokens)


def span_f1_score(y_true: Any, y_pred: Any) -> float:
    """Return the F1 score of all spans together: ``span_scores(y_true, y_pred).overall.f1``.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels, as :func:`spans` reads them.

    Returns
    -------
    float
        The F1 score, between 0 and 1.

    See Also
    --------
    span_scores : Precision, recall and each type.
    span_f1_scorer : The same score of a fitted model.

    Examples
    --------
    >>> from dualfield.metrics import span_f1_score
    >>> span_f1_score([["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "O"]])
    0.666...
    """
    return span_scores(y_true, y_pred).overall.f1
