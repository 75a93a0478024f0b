"""Scores of predicted dependency trees against true ones, as text and as a record for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualfield.data import DependencySentence
    from dualfield.metrics import AttachmentScores


@dataclass(frozen=True)
class AttachmentEvaluation:
    """Attachment scores of all words, and of those that are no punctuation.

    Attributes
    ----------
    n_sentences : int
        How many sentences there are.
    every, words : AttachmentScores
        Of all words with labels up to a colon, as in CoNLL-2018; and without punctuation, with whole labels, as in
        CoNLL-2006.
    """

    n_sentences: int
    every: AttachmentScores
    words: AttachmentScores

    @classmethod
    def of(cls, y_true: list[DependencySentence], y_pred: list[DependencySentence]) -> AttachmentEvaluation:
        """Score trees."""
        from dualfield.metrics import attachment_scores

        words = attachment_scores(y_true, y_pred, exact=True, punctuation=False)
        return cls(len(y_true), attachment_scores(y_true, y_pred), words)

    def __str__(self) -> str:
        every, words = self.every, self.words
        whole = f"{every.exact_match:.2%}, {every.n_right_trees} of {every.n_trees}"
        return "\n".join(
            [
                f"{self.n_sentences:,} sentences, {every.n_words:,} words with a head",
                f"{'all words':>21}: {_scores(every)}",
                f"{'without punctuation':>21}: {_scores(words)}{' of whole labels' * (words.las is not None)}",
                f"{'sentences right':>21}: {whole}",
            ]
        )

    def record(self) -> dict[str, Any]:
        """Return all numbers by name, shares between 0 and 1."""
        return {
            "sentences": self.n_sentences,
            "words": self.every.n_words,
            "uas": self.every.uas,
            "las": self.every.las,
            "words_without_punctuation": self.words.n_words,
            "uas_without_punctuation": self.words.uas,
            "las_without_punctuation": self.words.las,
            "sentence_accuracy": self.every.exact_match,
        }


def _scores(found: AttachmentScores) -> str:
    labelled = "" if found.las is None else f", LAS {found.las:.2%}"
    return f"UAS {found.uas:.2%}{labelled}"
