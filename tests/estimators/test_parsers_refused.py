"""Sentences and trees that parsers cannot take: messages name the argument, what is expected and what came."""

import re

import numpy as np
import pytest

from dualfield import CRF
from dualfield.structures import Dependency, SemiMarkov, Spans

WORDS, TREES, HEADS = [("a", "A"), ("b", "B")], ["(S (A a) (B b))"], [[2, 0]]
PARSERS = [("dependency", HEADS), ("spans", TREES), ("grammar", TREES)]

SENTENCES = [
    (["ab"], TypeError, "X[0] must be a list of tokens. Got str instead: is a level of lists missing?"),
    ([None], TypeError, "X[0] must be a list of tokens. Got NoneType instead."),
    ([["a", 1]], TypeError, "X[0][1] must be a str, or a list or tuple of str. Got 1 instead."),
    ([["a", ()]], TypeError, "X[0][1] must be a str, or a list or tuple of str. Got () instead."),
    ([["a", ("b", "B")]], ValueError, "X[0][1] has 2 columns; expected 1, as in X[0][0]."),
    ([[], [("a", "A"), "b"]], ValueError, "X[1][1] has 1 column; expected 2, as in X[1][0]."),
]


@pytest.mark.parametrize(("X", "kind", "message"), SENTENCES)
@pytest.mark.parametrize(("structure", "y"), PARSERS)
def test_sentences(structure, y, X, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        CRF(structure).fit(X, y * len(X))
    model = CRF(structure).fit([WORDS], y)
    with pytest.raises(kind, match=re.escape(message)):
        model.predict(X)


@pytest.mark.parametrize(("structure", "what"), [("dependency", "the heads of"), ("spans", "a tree for")])
def test_trees_that_are_missing(structure, what):
    with pytest.raises(TypeError, match=f"y must be a list with {what} each sentence. Got None."):
        CRF(structure).fit([WORDS])


@pytest.mark.parametrize("structure", ["spans", "grammar"])
def test_a_tree_that_is_no_list(structure):
    with pytest.raises(TypeError, match="y must be a list with a tree for each sentence"):
        CRF(structure).fit([WORDS], TREES[0])


@pytest.mark.parametrize("X", [None, 3, "a b"])
@pytest.mark.parametrize(("structure", "y"), PARSERS)
def test_sentences_that_are_no_list(structure, y, X):
    model = CRF(structure).fit([WORDS], y)
    for ask in (model.predict, lambda X: CRF(structure).fit(X, y)):
        with pytest.raises(TypeError, match=f"X must be a list of sentences. Got {type(X).__name__} instead."):
            ask(X)


@pytest.mark.parametrize(("structure", "y"), PARSERS)
def test_sentences_in_an_array_of_objects(structure, y):
    X = np.empty(2, dtype=object)
    X[:] = [WORDS, WORDS]
    assert CRF(structure).fit(X, y * 2).predict(X) == CRF(structure).fit(list(X), y * 2).predict(list(X))


@pytest.mark.parametrize(("structure", "y"), PARSERS)
def test_templates(structure, y):
    with pytest.raises(ValueError, match=r"template must be None: a \w+ has texts with macros of its own"):
        CRF(structure, template="default").fit([WORDS], y)


@pytest.mark.parametrize("known", [[2, 1, None], [0, 0, None], [{2}, {1}, None]])
def test_arcs_that_no_tree_has(known):
    model = CRF("dependency").fit([WORDS], HEADS)
    reason = (
        "known[0]: no projective tree with one word below the root has the arcs that are known, or only arcs that are "
        "not forbidden."
    )
    with pytest.raises(ValueError, match=re.escape(reason)):
        model.predict([[*WORDS, ("c", "C")]], known=[known])


MADE = {
    "The 'arc_features' parameter of Dependency": (lambda made: Dependency(arc_features=made), [[2, 0]]),
    "The 'span_features' parameter of Spans": (lambda made: Spans(span_features=made), [[(0, 2, "x")]]),
    "The 'segment_features' parameter of SemiMarkov": (
        lambda made: SemiMarkov(max_length=2, segment_features=made),
        [[(0, 2, "x")]],
    ),
}
WRONG = [
    (lambda *_: 3, " must return a dict, .* Got 3 for the places -?[01] and [01] of "),
    (lambda *_: None, " must return a dict, .* Got None for the places"),
    (lambda *_: "far", " must return a dict, .* Got 'far' for the places"),
    (lambda *_: [("far", 1.0)], r" returns for \w+\[0\]\[0\] has an attribute of type tuple; expected str"),
]


@pytest.mark.parametrize(("function", "message"), WRONG)
@pytest.mark.parametrize("argument", list(MADE))
def test_what_functions_return_is_refused_in_the_name_of_their_argument(argument, function, message):
    structure, y = MADE[argument]
    X = [[["a"], ["b"]]] if "Semi" in argument else [["a", "b"]]
    named = "(What t|T)" + re.escape(argument[1:])
    with pytest.raises(TypeError, match=named + message):
        CRF(structure(function)).fit(X, y)
