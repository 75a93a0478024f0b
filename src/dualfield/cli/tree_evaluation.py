"""Scores of predicted trees against true ones, as evalb's table and as a record for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualfield.metrics import ParseScores, SpanScore


@dataclass(frozen=True)
class TreeEvaluation:
    """Scores of trees.

    Attributes
    ----------
    scores : ParseScores
        What evalb counts.
    """

    scores: ParseScores

    def __str__(self) -> str:
        lines = [str(self.scores), ""]
        return "\n".join(
            lines + [f"{label:>17}: {score}  {score.found}" for label, score in self.scores.labels.items()]
        )

    def record(self) -> dict[str, Any]:
        """Return all numbers by name, shares between 0 and 1."""
        found = _record(self.scores)
        if self.scores.short is not None:
            found[f"up_to_{self.scores.cutoff}_words"] = _record(self.scores.short)
        return found


def _record(scores: ParseScores) -> dict[str, Any]:
    return {
        "sentences": scores.n_sentences,
        "unparsed": scores.n_unparsed,
        "brackets": _numbers(scores.overall),
        "labels": {label: _numbers(score) for label, score in scores.labels.items()},
        "complete_match": scores.complete_match,
        "average_crossing": scores.average_crossing,
        "tagging_accuracy": scores.tagging_accuracy,
    }


def _numbers(score: SpanScore) -> dict[str, float]:
    counts = {"correct": score.correct, "found": score.found, "true": score.support}
    return counts | {"precision": score.precision, "recall": score.recall, "f1": score.f1}
