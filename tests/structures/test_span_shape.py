"""Rows of spans: trees in every form become labels of rows and trees again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from dualfield.data import Labels, ParseTree, PartialTree
from dualfield.structures import Grammar, SpanShape
from tests.data.test_trees import NltkTree, trees

TEXT = "(S (NP (DT a) (NN dog)) (VP (VBZ barks)))"
TOKENS = [("a", "DT"), ("dog", "NN"), ("barks", "VBZ")]
SPANS = [(0, 3, "S"), (0, 2, "NP"), (2, 3, "VP")]


def one(tokens=TOKENS, output=None):
    return SpanShape.of_words([len(tokens)], [tokens], output)


def test_a_tag_alone_comes_back_as_it_was():
    X, y = [[("yes", "UH")], [("no", "UH")]], ["(UH yes)", "(S (UH no))"]
    for shape in (SpanShape.of_words([1, 1], X, "brackets"), Grammar(output="brackets").shape(X)):
        read = shape.read_labels(y)
        assert shape.decode(read.labels, read.codes) == y


def test_rows_are_in_the_agreed_order():
    shape = SpanShape.of_words([3, 1, 0, 2])
    assert shape.offsets.tolist() == [0, 6, 7, 7, 10]
    assert shape.n_words.tolist() == [3, 1, 0, 2]
    assert shape.spans[:6].tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    for i, n in enumerate([3, 1, 0, 2]):
        for start in range(n):
            for stop in range(start + 1, n + 1):
                row = int(shape.rows(i, start, stop))
                assert row == shape.offsets[i] + start * n - start * (start - 1) // 2 + stop - start - 1
                assert shape.spans[row].tolist() == [start, stop]
    assert shape.place(8) == "[3] at (0, 2)"


def test_numbers_of_rows_that_no_sentence_has():
    with pytest.raises(ValueError, match=r"X\[1\] has 5 rows; expected n \(n \+ 1\) / 2"):
        _ = SpanShape(np.array([0, 3, 8])).n_words


@pytest.mark.parametrize(
    ("y", "output"),
    [
        (ParseTree.from_brackets(TEXT), "tree"),
        (TEXT, "brackets"),
        (SPANS, "spans"),
        (["", "NP", "S", "", "", "VP"], "labels"),
    ],
)
def test_what_comes_in_comes_out(y, output):
    shape = one()
    read = shape.read_labels([y])
    assert read.labels.classes.tolist() == ["", "NP", "S", "VP"]
    assert read.codes.tolist() == [0, 1, 2, 0, 0, 3]
    assert read.allowed is None
    assert shape.forms == [output]
    assert one(output=output).decode(read.labels, read.codes) == [y]


def test_trees_of_nltk():
    shape = one()
    tree = ParseTree.from_brackets(TEXT).to_nltk(NltkTree)
    assert shape.read_labels([tree]).codes.tolist() == [0, 1, 2, 0, 0, 3]
    assert shape.forms == ["nltk"]


@given(trees)
def test_any_tree(tree):
    if tree.is_leaf:
        tree = ParseTree("S", (tree,))
    shape = one(tree.tokens())
    read = shape.read_labels([tree])
    assert shape.decode(read.labels, read.codes) == [tree]
    spans = SpanShape.of_words([len(tree.words())])
    again = spans.read_labels([[(start, stop, label) for label, start, stop in tree.constituents()]])
    assert again.codes.tolist() == read.codes.tolist()
    assert spans.decode(again.labels, again.codes) == [
        [(start, stop, label) for label, start, stop in tree.constituents()]
    ]


def test_words_without_tags_get_one():
    shape = one(["dogs", "bark"])
    read = shape.read_labels(["(S (NP (NNS dogs)) (VBP bark))"])
    assert str(shape.decode(read.labels, read.codes)[0]) == "(S (NP (XX dogs)) (XX bark))"


def test_a_tree_without_a_root_label():
    shape = one(["dogs", "bark"])
    labels = Labels.fit(["", "NP"])
    assert str(shape.decode(labels, np.array([1, 0, 0]))[0]) == "((NP (XX dogs)) (XX bark))"


def test_sentences_without_words():
    shape = SpanShape.of_words([0, 1], [[], ["a"]])
    read = shape.read_labels([[], [(0, 1, "S")]])
    assert read.codes.tolist() == [1]
    assert [str(tree) for tree in shape.decode(read.labels, read.codes)] == ["None", "(S (XX a))"]


def test_unknown_trees_are_open():
    shape = SpanShape.of_words([3, 2], [TOKENS, ["x", "y"]])
    read = shape.read_labels([TEXT, None])
    assert read.codes.tolist() == [0, 1, 2, 0, 0, 3, -1, -1, -1]
    assert read.allowed[6:].all()
    assert read.allowed[:6].sum() == 6
    with pytest.raises(ValueError, match="at least one tree or bracket"):
        shape.read_labels([None, None])


def test_partial_trees():
    shape = SpanShape.of_words([3, 2])
    partial = PartialTree([(0, 2, "NP"), (2, 3, None)], forbidden=[(0, 1, None), (1, 2, "VP")])
    read = shape.read_labels([partial, [(0, 2, "S"), (0, 1, "S"), (0, 1, "VP"), (1, 2, "NP")]])
    names = read.labels.classes.tolist()
    assert names == ["", "NP", "S", "S+VP"]
    allowed = {
        tuple(span): {names[k] for k in np.flatnonzero(row)}
        for span, row in zip(shape.spans[:6].tolist(), read.allowed, strict=False)
    }
    assert allowed[0, 2] == {"NP"}
    assert allowed[2, 3] == {"NP", "S", "S+VP"}
    assert allowed[0, 1] == {""}
    assert allowed[1, 2] == {"", "NP", "S"}  # no chain with VP
    assert allowed[0, 3] == set(names)


def test_known_brackets():
    shape, labels = one(), Labels.fit(["", "NP", "S", "S+VP", "VP"])
    allowed = shape.read_known([[(0, 2, "VP"), (0, 3, None)]], labels)
    assert allowed[1].tolist() == [False, False, False, True, True]
    assert allowed[2].tolist() == [False, True, True, True, True]
    assert allowed[[0, 3, 4, 5]].all()
    assert shape.read_known([TEXT], labels).sum() == 6  # a whole tree leaves nothing open
    assert shape.read_known([None], labels).all()
    assert shape.read_known([[None, {"NP", "VP"}, "S", None, "", None]], labels).sum(axis=1).tolist() == [
        5,
        2,
        1,
        5,
        1,
        5,
    ]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([], r"y has 0 entries; X has 1 sentences"),
        (["(S (DT a) (NN cat) (VBZ barks))"], r"y\[0\] has the word 'cat' at 1; X\[0\] has 'dog' there"),
        (["(S (DT a) (NN dog))"], r"y\[0\] has 2 words; X\[0\] has 3"),
        ([[(0, 2, "A"), (1, 3, "B")]], r"y\[0\]: The brackets 'A' \(0, 2\) and 'B' \(1, 3\) cross"),
        ([[(0, 4, "A")]], r"y\[0\] has a bracket at \(0, 4\); its sentence has 3 words"),
        ([[(1, 1, "A")]], r"y\[0\] has a bracket at \(1, 1\)"),
        ([[(0, 2)]], r"y\[0\]\[0\] must be a bracket \(start, stop, label\)"),
        ([[(0, 2, "")]], r"y\[0\]\[0\] must be a bracket"),
        (["((S (DT a) (NN dog) (VBZ barks)))"], r"y\[0\] has a bracket without a label at \(0, 3\)"),
        (["(S (DT a)"], r"y\[0\] must be a tree. text, line 1: the bracket"),
        ([3], r"y\[0\] must be a tree. tree must be a ParseTree"),
        (
            [PartialTree([(0, 2, "A")], forbidden=[(0, 2, None)])],
            r"y\[0\] has a bracket at \(0, 2\) that it also forbids",
        ),
        ([PartialTree([(0, 2, "A"), (0, 2, None)])], r"y\[0\] has two brackets at \(0, 2\)"),
    ],
)
def test_what_does_not_fit(y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        one().read_labels(y)


def test_labels_that_were_not_seen():
    labels = Labels.fit(["", "S"])
    with pytest.raises(ValueError, match=r"y\[0\] has 'NP' at \(0, 2\), a label not seen in training"):
        one().read_labels([TEXT], labels)
    with pytest.raises(ValueError, match=r"known\[0\] has 'NP' at \(0, 2\), a label not seen"):
        one().read_known([[(0, 2, "NP")]], labels)


def test_taking_some_sentences():
    shape = SpanShape.of_words([3, 1], [TOKENS, ["x"]], "brackets")
    taken = shape.take(np.array([1, 0]))
    assert taken.n_words.tolist() == [1, 3]
    assert taken.tokens == [["x"], TOKENS]
    assert taken.output == "brackets"
