"""Scores of predicted labels against true ones, as text in conlleval's layout and as a record for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dualfield.metrics import SpanScore, SpanScores

OUTSIDE = "O"

Sentences = list[list[str]]


def token_by_token(sentences: Sentences) -> Sentences:
    """Return labels in which each token that is not outside is a span of its own, as ``conlleval -r`` reads them."""
    return [[label if label == OUTSIDE else f"B-{label}" for label in sentence] for sentence in sentences]


@dataclass(frozen=True)
class Calibration:
    """What the probabilities of a model are worth.

    Attributes
    ----------
    log_loss : float
        Mean of -log p(true label) over the tokens whose label the model knows; in nats.
    error : float
        Expected calibration error of the most probable label.
    n_unknown : int
        Tokens whose true label the model has never seen.
    """

    log_loss: float
    error: float
    n_unknown: int


def calibration_of(y_true: Sentences, marginals: Sequence[Any], classes: Sequence[Any]) -> Calibration:
    """Measure probabilities, one array of shape (T_i, n_classes) for each sentence."""
    from dualfield.metrics import calibration_error

    names = [str(name) for name in classes]
    codes = {name: code for code, name in enumerate(names)}
    flat = np.array([codes.get(label, -1) for labels in y_true for label in labels])
    rows = np.concatenate([np.asarray(one) for one in marginals])
    known = np.flatnonzero(flat >= 0)
    given = rows[known, flat[known]]
    loss = float(-np.log(np.maximum(given, np.finfo(np.float64).tiny)).mean()) if len(known) else math.nan
    return Calibration(loss, calibration_error(y_true, marginals, names), len(flat) - len(known))


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """Scores of spans, of tokens without O, of whole sentences and of probabilities.

    Attributes
    ----------
    spans : SpanScores
        What conlleval counts.
    tokens : SpanScore
        Labels other than O, one by one.
    n_sentences, n_right : int
        Sentences, and those in which every label is right.
    calibration : Calibration or None
        None if only labels are known.
    unit : str
        What a label belongs to: a token, a node of a graph, or an example that stands alone.
    """

    spans: SpanScores
    tokens: SpanScore
    n_sentences: int
    n_right: int
    calibration: Calibration | None = None
    unit: str = "token"

    @classmethod
    def of(
        cls,
        y_true: Sentences,
        y_pred: Sentences,
        *,
        raw: bool = False,
        calibration: Calibration | None = None,
        unit: str = "token",
    ) -> Evaluation:
        """Count; with raw each token is a span of its own, and at nodes of graphs O is a label as others are."""
        from dualfield.metrics import SpanScore, span_scores

        pairs = [(one, other) for t, p in zip(y_true, y_pred, strict=True) for one, other in zip(t, p, strict=True)]
        tokens = SpanScore(
            correct=sum(one == other != OUTSIDE for one, other in pairs),
            found=sum(other != OUTSIDE for _, other in pairs),
            support=sum(one != OUTSIDE for one, _ in pairs),
        )
        n_right = sum(one == other for one, other in zip(y_true, y_pred, strict=True))
        if unit == "node":
            scores = span_scores(*([[f"B-{label}" for label in one] for one in y] for y in (y_true, y_pred)))
        else:
            scores = span_scores(*map(token_by_token, (y_true, y_pred))) if raw else span_scores(y_true, y_pred)
        return cls(
            spans=scores,
            tokens=tokens,
            n_sentences=len(y_true),
            n_right=n_right,
            calibration=calibration,
            unit=unit,
        )

    @classmethod
    def sum_of(cls, parts: Sequence[Evaluation]) -> Evaluation:
        """Add up the counts of parts of the data; probabilities are left out."""
        from dualfield.metrics import SpanScore, SpanScores

        def total(scores: Iterable[SpanScore]) -> SpanScore:
            listed = list(scores)
            return SpanScore(*(sum(getattr(one, name) for one in listed) for name in ("correct", "found", "support")))

        spans = [part.spans for part in parts]
        kinds = sorted({kind for one in spans for kind in one.types})
        n_tokens = sum(one.n_tokens for one in spans)
        n_right = sum(round(one.accuracy * one.n_tokens) for one in spans)
        return cls(
            spans=SpanScores(
                total(one.overall for one in spans),
                {kind: total(one.types[kind] for one in spans if kind in one.types) for kind in kinds},
                n_right / n_tokens if n_tokens else 0.0,
                n_tokens,
            ),
            tokens=total(part.tokens for part in parts),
            n_sentences=sum(part.n_sentences for part in parts),
            n_right=sum(part.n_right for part in parts),
        )

    @property
    def sentence_accuracy(self) -> float:
        """Share of sentences in which every label is right."""
        return self.n_right / self.n_sentences if self.n_sentences else 0.0

    def __str__(self) -> str:
        lines, counted = [], str(self.spans)
        if self.unit == "example":
            head = f"{self.n_sentences} examples, {self.n_right} right"
            counted = "\n".join([head, *counted.splitlines()[1:]])
        elif self.unit == "node":
            head = f"{self.n_sentences:,} graphs with {self.spans.n_tokens:,} nodes, accuracy {self.spans.accuracy:.2%}"
            counted = "\n".join([head, *counted.splitlines()[2:]])
            lines.append(f"{'graphs right':>17}: {self.sentence_accuracy:7.2%}, {self.n_right} of {self.n_sentences}")
        elif self.n_sentences:
            lines.append(f"{'tokens but O':>17}: {self.tokens}  {self.tokens.found}")
            share = 100 * self.n_right / self.n_sentences
            lines.append(f"{'sentences right':>17}: {share:6.2f}%, {self.n_right} of {self.n_sentences}")
        if self.calibration is not None:
            found = self.calibration
            parts = [f"{found.log_loss:.4f} nats per {self.unit}", f"calibration error: {found.error:.4f}"]
            if found.n_unknown:
                parts.append(f"{found.n_unknown} {self.unit}s have labels that the model does not know")
            lines.append(f"{'log-loss':>17}: {'; '.join(parts)}")
        return "\n".join([counted, *([""] if lines else []), *lines])

    def record(self) -> dict[str, Any]:
        """Return all numbers by name, shares between 0 and 1."""
        if self.unit == "node":
            found: dict[str, Any] = {
                "nodes": self.spans.n_tokens,
                "accuracy": self.spans.accuracy,
                "labels": {kind: _numbers(score) for kind, score in self.spans.types.items()},
                "graphs": self.n_sentences,
                "graph_accuracy": self.sentence_accuracy,
            }
        else:
            found = {
                "tokens": self.spans.n_tokens,
                "accuracy": self.spans.accuracy,
                "spans": _numbers(self.spans.overall),
                "types": {kind: _numbers(score) for kind, score in self.spans.types.items()},
                "tokens_without_O": _numbers(self.tokens),
                "sentences": self.n_sentences,
                "sentence_accuracy": self.sentence_accuracy,
            }
        if self.calibration is not None:
            loss = self.calibration.log_loss
            found["log_loss"] = None if math.isnan(loss) else loss
            found["calibration_error"] = self.calibration.error
            found[f"{self.unit if self.unit == 'node' else 'token'}s_with_unknown_label"] = self.calibration.n_unknown
        return found


def _numbers(score: SpanScore) -> dict[str, float]:
    counts = {"correct": score.correct, "found": score.found, "true": score.support}
    return counts | {"precision": score.precision, "recall": score.recall, "f1": score.f1}
