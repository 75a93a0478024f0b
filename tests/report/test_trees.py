"""Reports of models that predict trees: scores, errors, and sentences drawn with probabilities."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dualfield import CRF, StructuredSVM
from dualfield.data import ParseTree
from dualfield.metrics import attachment_scores, parse_scores
from dualfield.plotting import ArcDisplay, TreeDisplay
from dualfield.plotting.parse_trees.parsed import is_parser, parsed
from dualfield.report import DevData, training_page
from dualfield.structures import Dependency, Grammar

RULES = {"S": (("NP", "VP"),), "NP": (("DT", "NN"), ("NP", "PP")), "VP": (("VB", "NP"), ("VB",)), "PP": (("IN", "NP"),)}
WORDS = {"DT": ("the", "a"), "NN": ("dog", "cat", "park"), "VB": ("sees", "likes"), "IN": ("in", "with")}


def drawn(rng, symbol="S", depth=0):
    """Draw a tree in brackets."""
    if symbol in WORDS:
        return f"({symbol} {rng.choice(WORDS[symbol])})"
    rules = RULES[symbol]
    parts = rules[0 if depth > 3 else rng.integers(len(rules))]
    return f"({symbol} {' '.join(drawn(rng, part, depth + 1) for part in parts)})"


def tokens(tree):
    return [(word, tag) for tag, word in re.findall(r"\((\w+) (\w+)\)", tree)]


@pytest.fixture(scope="module")
def treebank():
    rng = np.random.default_rng(0)
    trees = [drawn(rng) for _ in range(60)]
    return [tokens(tree) for tree in trees], trees


@pytest.fixture(scope="module")
def heads(treebank):
    """The word before is the head, or the one behind for articles; the first other word hangs from the root."""
    X = treebank[0]
    y = []
    for sentence in X:
        found = [at + 2 if tag == "DT" else max(at, 0) for at, (_, tag) in enumerate(sentence)]
        first = next(at for at, (_, tag) in enumerate(sentence) if tag != "DT")
        found = [0 if at == first else head for at, head in enumerate(found)]
        found = [head if head != at + 1 and head >= 0 else 0 for at, head in enumerate(found)]
        found = [
            head - 1 if head and sentence[head - 1][1] == "DT" and sentence[at][1] != "DT" else head
            for at, head in enumerate(found)
        ]
        y.append([(head, "det" if tag == "DT" else "dep") for head, (_, tag) in zip(found, sentence, strict=True)])
    return X, y


def test_brackets(treebank):
    X, y = treebank
    model = CRF("spans", C=1.0, tol=1e-3).fit(X[:30], y[:30])
    assert is_parser(model)
    wrong = [y[40].replace("NP", "XP", 1), *y[41:60]]
    page = training_page(model, title="Trees", dev=DevData(X[40:60], wrong))
    scores = parse_scores(wrong, model.predict(X[40:60]))
    assert f"{100 * scores.overall.f1:.2f} %" in page
    assert f"{100 * scores.complete_match:.2f} %" in page
    assert "counted as evalb does" in page
    assert ">true: XP<" in page
    found = parsed(model, X[40:60], wrong)
    for at, (rows, brackets) in enumerate(zip(model.predict_proba(X[40:60]), found.predicted, strict=True)):
        n = len(X[40 + at])
        codes = {name: code for code, name in enumerate(model.classes_)}
        chances = [rows[i * n - i * (i - 1) // 2 + j - i - 1, codes[label]] for label, i, j in brackets]
        np.testing.assert_allclose(found.chances[at], chances)
    display = TreeDisplay.from_estimator(model, X[40], wrong[0])
    assert sum(display.wrong) >= 1
    assert display.words == [word for word, _ in X[40]]
    assert display.tags == [tag for _, tag in X[40]]
    with pytest.raises(ValueError, match="ArcDisplay shows heads"):
        ArcDisplay.from_estimator(model, X[40])


def test_arcs(heads):
    X, y = heads
    model = CRF(Dependency(root="any"), C=1.0).fit(X[:30], y[:30])
    wrong = [[(0, "det"), *y[40][1:]], *y[41:60]]
    page = training_page(model, title="Trees", dev=DevData(X[40:60], wrong))
    scores = attachment_scores(wrong, model.predict(X[40:60]))
    assert f"{100 * scores.uas:.2f} %" in page
    assert f"{100 * scores.las:.2f} %" in page
    assert "from the root" in page
    assert "<code>%x[head]/%x[child]/%d</code>" in page
    assert "true: det ← ROOT" in page or "true: ROOT → " in page
    found = parsed(model, X[40:60], wrong)
    codes = {name: code for code, name in enumerate(model.classes_)}
    for at, (rows, arcs) in enumerate(zip(model.predict_proba(X[40:60]), found.predicted, strict=True)):
        n = len(X[40 + at])
        chances = [rows[c * n + (h if h <= c else h - 1), codes[label]] for c, (h, label) in enumerate(arcs)]
        np.testing.assert_allclose(found.chances[at], chances)
    with pytest.raises(ValueError, match="TreeDisplay shows brackets"):
        TreeDisplay.from_estimator(model, X[40])


@pytest.mark.parametrize("tags", ["given", "predicted"])
def test_grammars(treebank, tags):
    X, y = treebank
    X = X if tags == "given" else [[word for word, _ in sentence] for sentence in X]
    model = CRF(Grammar(tags=tags), C=1.0, tol=1e-3).fit(X[:30], y[:30])
    page = training_page(model, title="Trees", dev=DevData(X[40:60], y[40:60]))
    scores = parse_scores(y[40:60], model.predict(X[40:60]))
    assert f"{100 * scores.overall.f1:.2f} %" in page
    assert ("tagging" in page) == (scores.n_right_tags < scores.n_words)
    display = TreeDisplay.from_estimator(model, X[40], y[40])
    assert display.tags == ParseTree.from_brackets(model.predict(X[40:41])[0]).tags()


def test_sentences_without_a_tree_are_told_and_count(treebank):
    X, y = treebank
    model = CRF("grammar", C=1.0, tol=1e-3).fit(X[:30], y[:30])
    bad = [(word, "SYM") for word, _ in X[40]]
    page = training_page(model, title="Trees", dev=DevData([bad, *X[41:50]], y[40:50]))
    assert "1 of 10 examples has no allowed labelling. Sentence 1: no rule of the grammar has &#x27;SYM&#x27;" in page
    scores = parse_scores(y[40:50], [None, *model.predict(X[41:50])])
    assert f"{100 * scores.overall.f1:.2f} %" in page
    assert f"of {scores.overall.support:,} true brackets" in page
    drawn = re.findall(r"Sentence (\d+): (?:all right|[\d,]+ of)", page)
    assert drawn
    assert set(map(int, drawn)) <= set(range(2, 11))  # numbers of what was passed


def test_models_without_probabilities_and_truth_that_is_not_known(heads, treebank):
    X, y = heads
    bare = [[head for head, _ in tree] for tree in y]
    model = StructuredSVM(Dependency(root="any")).fit(X[:20], bare[:20])
    page = training_page(model, title="Trees", dev=DevData(X[20:30], [None, [None] * len(X[21]), *bare[22:30]]))
    assert "8 sentences" in page
    assert "The model has no probabilities" in page
    assert "right heads" in page
    page = training_page(model, title="Trees", dev=DevData(X[20:22], [None, None]))
    assert "nothing to score" in page
    X, y = treebank
    spans = CRF("spans").fit(X[:10], y[:10])
    assert "1 sentence " in training_page(spans, title="Trees", dev=DevData(X[10:12], [None, y[11]]))
    texts = [["w"] * len(one) for one in X[10:12]]
    assert ">w</text>" in training_page(spans, title="Trees", dev=DevData(X[10:12], y[10:12], texts))
    with pytest.raises(ValueError, match=r"tokens\[0\] has 1 entries; X\[0\] has"):
        training_page(spans, title="Trees", dev=DevData(X[10:12], y[10:12], [["w"], ["w"]]))


def test_rows_of_numbers(treebank):
    X, _ = treebank
    rng = np.random.default_rng(1)
    rows = [rng.normal(size=(len(one) * (len(one) + 1) // 2, 3)) for one in X[:6]]
    brackets = [[(0, len(one), "S")] for one in X[:6]]
    model = CRF("spans").fit(rows, brackets)
    display = TreeDisplay.from_estimator(model, rows[0], brackets[0])
    assert display.words[:2] == ["1", "2"]
    assert display.missed == []
