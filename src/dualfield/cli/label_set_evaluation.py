"""Scores of predicted label sets against true ones, as text and as a record for JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LabelSetEvaluation:
    """Scores of rows with several labels each.

    Attributes
    ----------
    names : list of str
        The labels.
    truth, predicted : bool array of shape (n_examples, n_labels)
        Which labels each row has.
    chances : array of shape (n_examples, n_labels), or None
        The probability that a row has a label.
    n_unknown : int
        True labels that the model has never seen, all of them missed.
    """

    names: list[str]
    truth: NDArray[np.bool_]
    predicted: NDArray[np.bool_]
    chances: NDArray[np.float64] | None
    n_unknown: int

    @property
    def hamming_loss(self) -> float:
        """Share of label and row pairs that are wrong."""
        return float(np.mean(self.truth != self.predicted))

    @property
    def subset_accuracy(self) -> float:
        """Share of rows all of whose labels are right."""
        return float(np.mean((self.truth == self.predicted).all(axis=1)))

    @property
    def log_loss(self) -> float:
        """Mean of -log p over label and row pairs, in nats; NaN without probabilities."""
        if self.chances is None:
            return math.nan
        given = np.where(self.truth, self.chances, 1.0 - self.chances)
        return float(-np.log(np.maximum(given, np.finfo(np.float64).tiny)).mean())

    def scores(self) -> dict[str, dict[str, float]]:
        """Return counts, precision, recall and F1 of all labels together, under an empty name, and of each."""
        right, found, true = (flags.sum(axis=0) for flags in (self.truth & self.predicted, self.predicted, self.truth))
        counts = [(right.sum(), found.sum(), true.sum()), *zip(right, found, true, strict=True)]
        return dict(zip(["", *self.names], (_shares(*map(int, one)) for one in counts), strict=True))

    def __str__(self) -> str:
        n, n_labels = self.truth.shape
        scores = self.scores()
        whole, each = scores.pop(""), list(scores.values())
        macro = sum(one["f1"] for one in each) / n_labels
        lines = [
            f"{n:,} examples, {n_labels} labels",
            f"Hamming loss: {self.hamming_loss:.4f}; all labels right: {100 * self.subset_accuracy:.2f}%; "
            f"micro F1: {100 * whole['f1']:.2f}; macro F1: {100 * macro:.2f}",
        ]
        for name, one in scores.items():
            shares = [f"{key}: {100 * one[key]:6.2f}%" for key in ("precision", "recall")]
            lines.append(f"{name:>17}: {'; '.join(shares)}; F1: {100 * one['f1']:6.2f}  {one['found']}")
        if self.chances is not None:
            lines += ["", f"{'log-loss':>17}: {self.log_loss:.4f} nats per label"]
        if self.n_unknown:
            lines.append(f"{self.n_unknown} labels are none that the model knows; they are not counted above.")
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """Return all numbers by name, shares between 0 and 1."""
        scores = self.scores()
        found: dict[str, Any] = {
            "examples": len(self.truth),
            "hamming_loss": self.hamming_loss,
            "subset_accuracy": self.subset_accuracy,
            "micro": scores.pop(""),
            "labels": scores,
            "unknown_labels": self.n_unknown,
        }
        return found if self.chances is None else found | {"log_loss": self.log_loss}


def _shares(right: int, found: int, true: int) -> dict[str, float]:
    precision, recall = right / max(found, 1), right / max(true, 1)
    f1 = 2 * right / max(found + true, 1)
    return {"correct": right, "found": found, "true": true, "precision": precision, "recall": recall, "f1": f1}
