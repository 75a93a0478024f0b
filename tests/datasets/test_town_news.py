"""The built-in corpus: valid labels, decided by the seed, test names unseen, difficulty that is real."""

from __future__ import annotations

import itertools
import re

import pytest

from dualfield import CRF
from dualfield.datasets import load_town_news
from dualfield.datasets.town_news_grammar import NAMES, PHRASES, SENTENCES
from dualfield.features import Template
from dualfield.metrics import neg_calibration_error_scorer, neg_log_loss_scorer, span_f1_scorer, spans
from dualfield.structures import span_constraints

TYPES = {"PER", "LOC", "ORG", "DATE"}
PARTS = ("X_train", "y_train", "X_test", "y_test")


@pytest.fixture(scope="module")
def news():
    return load_town_news()


def names_of(X, y):
    """Return the text and type of every span."""
    return [
        (" ".join(x[begin:end]), kind) for x, labels in zip(X, y, strict=True) for kind, begin, end in spans(labels)
    ]


def test_labels_are_valid_bio(news):
    assert [len(getattr(news, part)) for part in PARTS] == [400, 400, 200, 200]
    for X, y in ((news.X_train, news.y_train), (news.X_test, news.y_test)):
        assert [len(tokens) for tokens in X] == [len(labels) for labels in y]
        known = sorted({label for labels in y for label in labels})
        assert {label[2:] for label in known if label != "O"} == TYPES
        allowed = span_constraints(known)
        for labels in y:
            codes = [known.index(label) for label in labels]
            assert allowed["allowed_start"][codes[0]]
            assert all(allowed["allowed"][pair] for pair in itertools.pairwise(codes))


def test_nothing_of_the_grammar_is_left_in_the_text(news):
    for tokens in news.X_train + news.X_test:
        assert not re.search(r"[<>\[\]{}|]", "".join(tokens))
        assert all(tokens)
        assert not tokens[0][0].islower()


def test_every_symbol_is_defined_and_used():
    texts = [SENTENCES, *PHRASES.values()]
    used = {symbol for text in texts for symbol in re.findall(r"\{(\w+)\}", text)}
    assert used == NAMES.keys() | PHRASES.keys()
    for text in texts:
        assert set(re.findall(r"<(\w+) ", text)) <= TYPES
        assert text.count("<") == text.count(">")


def test_the_seed_decides(news):
    again, other = load_town_news(random_state=0), load_town_news(random_state=1)
    for part in PARTS:
        assert getattr(news, part) == getattr(again, part)
        assert getattr(news, part) != getattr(other, part)


def test_no_sentence_occurs_twice(news):
    sentences = [tuple(tokens) for tokens in news.X_train + news.X_test]
    assert len(set(sentences)) == len(sentences) == 600


def test_many_test_names_are_unseen(news):
    known = set(names_of(news.X_train, news.y_train))
    found = names_of(news.X_test, news.y_test)
    assert sum(name not in known for name in found) > 0.5 * len(found)
    words = {token for tokens in news.X_train for token in tokens}
    # Single words, too: the third of each list that training does not use.
    assert {"Kingsmoor", "Dunmere", "Calloway", "Hugo"}.isdisjoint(words)
    assert {"Kingsmoor", "Dunmere", "Calloway", "Hugo"} <= {token for tokens in news.X_test for token in tokens}


@pytest.mark.parametrize(
    ("word", "expected"),
    [("May", {"PER", "DATE"}), ("Ashby", {"PER", "LOC", "ORG"}), ("Hope", {"PER", "LOC", "O"}), ("Will", {"PER", "O"})],
)
def test_names_are_ambiguous(word, expected):
    news = load_town_news(2000, 1)
    pairs = zip(itertools.chain(*news.X_train), itertools.chain(*news.y_train), strict=True)
    assert expected <= {label[2:] or "O" for token, label in pairs if token == word}


def test_it_is_hard_but_not_hopeless_and_the_chain_helps(news):
    """A model of independent labels, with the same attributes, is clearly behind; probabilities are calibrated."""
    chain = CRF(C=10.0, template="default", constraints="BIO", random_state=0).fit(news.X_train, news.y_train)
    F1 = span_f1_scorer(chain, news.X_test, news.y_test)
    assert 0.8 < F1 < 0.95
    assert -neg_calibration_error_scorer(chain, news.X_test, news.y_test) < 0.03
    text = "\n".join(line for line in Template.default().text.splitlines() if line != "b")
    alone = CRF(C=10.0, template=Template(text), random_state=0).fit(news.X_train, news.y_train)
    assert alone.transition_features_ == {}
    assert span_f1_scorer(alone, news.X_test, news.y_test) < F1 - 0.05
    losses = [-neg_log_loss_scorer(model, news.X_test, news.y_test) for model in (chain, alone)]
    assert losses[0] < 0.95 * losses[1]


@pytest.mark.parametrize("name", ["n_train", "n_test"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, "ten"])
def test_wrong_sizes_are_named(name, value):
    expected = f"The '{name}' parameter of load_town_news must be an int in [1, inf). Got {value!r} instead."
    with pytest.raises(ValueError, match=re.escape(expected)):
        load_town_news(**{name: value})
