"""Scores of dependency trees: attachment with and without labels."""

from __future__ import annotations

import unicodedata
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.parse_trees.dependency_scores import attached
from dualfield.data.parse_trees.dependency_sentence import DependencySentence

__all__ = ["AttachmentScores", "attachment_scores"]


@dataclass(frozen=True)
class AttachmentScores:
    """How many words of trees are attached right.

    Parameters
    ----------
    n_words : int
        Words that are scored.
    n_heads : int
        Those with the right head.
    n_labels : int or None
        Those with the right head and label; None where trees have no labels.
    n_trees, n_right_trees : int
        Sentences with a word that is scored, and those whose scored words all have the right head.

    Examples
    --------
    >>> from dualfield.metrics import AttachmentScores
    >>> AttachmentScores(10, 9, 8, 2, 1).las
    0.8
    """

    n_words: int
    n_heads: int
    n_labels: int | None
    n_trees: int
    n_right_trees: int

    @property
    def uas(self) -> float:
        """Unlabelled attachment score: the share of words with the right head."""
        return self.n_heads / max(self.n_words, 1)

    @property
    def las(self) -> float | None:
        """Labelled attachment score: the share of words with the right head and label; None without labels."""
        return None if self.n_labels is None else self.n_labels / max(self.n_words, 1)

    @property
    def exact_match(self) -> float:
        """The share of sentences whose heads are all right."""
        return self.n_right_trees / max(self.n_trees, 1)


def attachment_scores(
    y_true: Any,
    y_pred: Any,
    *,
    exact: bool = False,
    punctuation: bool | AbstractSet[str] = True,
    tokens: Any = None,
) -> AttachmentScores:
    """Score dependency trees as the shared tasks do.

    The scores are those of CoNLL-2018 on given words: every word counts, and labels are compared without what is behind
    a colon. With ``exact=True, punctuation=False`` they are those of CoNLL-2006 and 2007.

    Parameters
    ----------
    y_true, y_pred : list
        For each sentence heads, pairs (head, label), or a :class:`~dualfield.data.DependencySentence`. Words whose true
        head is None are not scored.
    exact : bool, default=False
        Whether labels must be equal as a whole: ``nsubj`` and ``nsubj:pass`` are different then.
    punctuation : bool or set of str, default=True
        Whether words that consist of punctuation marks are scored; or the tags, in column 1 of tokens, of words that
        are not.
    tokens : list of sentences, default=None
        The tokens, str or tuples, where `y_true` has none and punctuation is left out.

    Returns
    -------
    AttachmentScores
        The scores.

    Examples
    --------
    >>> from dualfield.metrics import attachment_scores
    >>> true, found = [[(2, "nsubj:pass"), (0, "root"), (2, "punct")]], [[(2, "nsubj"), (0, "root"), (1, "punct")]]
    >>> scores = attachment_scores(true, found)
    >>> round(scores.uas, 3), round(scores.las, 3)
    (0.667, 0.667)
    >>> attachment_scores(true, found, exact=True, punctuation=False, tokens=[["It", "works", "."]]).las
    0.5
    """
    y_true = list(y_true)
    found = attached(y_true, y_pred, exact=exact)
    scored = found.is_known
    if punctuation is not True:
        scored = scored & ~_punctuation(y_true, tokens, punctuation)
    cuts = found.offsets
    n_scored = _by_sentence(scored, cuts)
    n_right = _by_sentence(scored & found.right_head, cuts)
    labels = found.right_label
    return AttachmentScores(
        n_words=int(scored.sum()),
        n_heads=int(n_right.sum()),
        n_labels=None if labels is None else int((scored & labels).sum()),
        n_trees=int((n_scored > 0).sum()),
        n_right_trees=int(((n_scored > 0) & (n_scored == n_right)).sum()),
    )


def _by_sentence(flags: NDArray[np.bool_], cuts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.diff(np.concatenate([[0], np.cumsum(flags)])[cuts])


def _punctuation(y_true: list[Any], tokens: Any, kind: bool | AbstractSet[str]) -> NDArray[np.bool_]:
    """Return which words are punctuation, by their marks or by their tags."""
    sentences = y_true if tokens is None else list(tokens)
    if len(sentences) != len(y_true):
        raise ValueError(f"tokens must have {len(y_true)} sentences, as y_true. Got {len(sentences)} instead.")
    found = []
    for i, (one, true) in enumerate(zip(sentences, y_true, strict=True)):
        if tokens is None and not isinstance(one, DependencySentence):
            raise ValueError("tokens must be given where punctuation is left out and y_true has heads only.")
        words = one.tokens if isinstance(one, DependencySentence) else one
        if len(words) != len(true):
            raise ValueError(f"tokens[{i}] must have {len(true)} words, as y_true[{i}]. Got {len(words)} instead.")
        found += [_is_punctuation(word, kind) for word in words]
    return np.array(found, dtype=bool)


def _is_punctuation(token: Any, kind: bool | AbstractSet[str]) -> bool:
    if isinstance(kind, bool):
        form = token if isinstance(token, str) else token[0]
        return bool(form) and all(unicodedata.category(mark).startswith("P") for mark in form)
    return not isinstance(token, str) and token[1] in kind
