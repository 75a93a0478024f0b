"""Attachment scores on cases that were counted by hand."""

import pytest

from dualfield.data import DependencySentence
from dualfield.metrics import attachment_scores

# He was seen by us . -- the agent is attached wrong, one label is a subtype, one label is wrong, one mark is wrong.
TOKENS = ["He", "was", "seen", "by", "us", "."]
TRUE = [(3, "nsubj:pass"), (3, "aux:pass"), (0, "root"), (5, "case"), (3, "obl:agent"), (3, "punct")]
FOUND = [(3, "nsubj"), (3, "cop"), (0, "root"), (5, "case"), (2, "obl:agent"), (5, "punct")]


def test_as_in_2018():
    """All words count; labels are compared up to the colon."""
    scores = attachment_scores([TRUE], [FOUND])
    assert (scores.n_words, scores.n_heads, scores.n_labels) == (6, 4, 3)
    assert scores.uas == pytest.approx(4 / 6)
    assert scores.las == pytest.approx(3 / 6)


def test_as_in_2006():
    """Words of punctuation marks do not count; labels are compared as a whole."""
    scores = attachment_scores([TRUE], [FOUND], exact=True, punctuation=False, tokens=[TOKENS])
    assert (scores.n_words, scores.n_heads, scores.n_labels) == (5, 4, 2)
    sentence = DependencySentence.from_tokens(TOKENS, *zip(*TRUE, strict=True))
    assert attachment_scores([sentence], [FOUND], exact=True, punctuation=False) == scores
    found = DependencySentence.from_tokens(TOKENS, *zip(*FOUND, strict=True))
    assert attachment_scores([sentence], [found], exact=True, punctuation=False) == scores


def test_tags_of_words_that_do_not_count():
    tokens = [[("He", "PRP"), ("ran", "VBD"), ("``", "``"), (".", ".")]]
    scores = attachment_scores([[2, 0, 2, 2]], [[2, 0, 4, 1]], punctuation={"``", "."}, tokens=tokens)
    assert (scores.n_words, scores.uas, scores.las, scores.exact_match) == (2, 1.0, None, 1.0)


def test_punctuation_is_what_unicode_says():
    tokens = [["...", "«", "$", "a.", "—", "``"]]
    heads = [[2, 0, 2, 2, 2, 2]]
    assert attachment_scores(heads, heads, punctuation=False, tokens=tokens).n_words == 3  # $ and ` are symbols


def test_words_without_a_true_head_do_not_count():
    scores = attachment_scores([[None, 0, 2], [0]], [[2, 0, 1], [0]])
    assert (scores.n_words, scores.n_heads, scores.n_trees, scores.n_right_trees) == (3, 2, 2, 1)


def test_refused_input():
    with pytest.raises(ValueError, match="tokens must be given where punctuation is left out"):
        attachment_scores([[0]], [[0]], punctuation=False)
    with pytest.raises(ValueError, match=r"y_pred must have 1 sentences, as y_true. Got 2"):
        attachment_scores([[0]], [[0], [0]])
    with pytest.raises(ValueError, match=r"y_pred\[0\] must have 1 heads"):
        attachment_scores([[0]], [[0, 1]])
    with pytest.raises(ValueError, match=r"tokens\[0\] must have 1 words"):
        attachment_scores([[0]], [[0]], punctuation=False, tokens=[["a", "b"]])
