"""Trees: brackets in and out, constituents, the clean-up of treebanks, trees of NLTK."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.data import ParseTree, clean_tree, join_unaries, split_unaries

TREE = "(S (NP (DT a) (NN dog)) (VP (VBZ barks) (ADVP (RB loudly))) (. .))"
names = st.text(st.sampled_from("ABN-=|'"), min_size=1, max_size=3)
leaves = st.builds(lambda tag, word: ParseTree(tag, (), word), names, names)


def nodes(parts: st.SearchStrategy[ParseTree]) -> st.SearchStrategy[ParseTree]:
    return st.builds(ParseTree, names, st.lists(parts, min_size=1, max_size=3))


trees = st.recursive(leaves, nodes, max_leaves=8)


class NltkTree(list):
    """What NLTK's trees look like from outside."""

    def __init__(self, label, children):
        super().__init__(children)
        self._label = label

    def label(self):
        return self._label


@given(trees)
def test_brackets_and_back(tree):
    assert ParseTree.from_brackets(tree.to_brackets()) == tree
    assert hash(ParseTree.from_brackets(str(tree))) == hash(tree)
    assert ParseTree.of(tree.to_nltk(NltkTree)) == tree


@given(trees)
def test_constituents_and_back(tree):
    if tree.is_leaf:
        assert tree.constituents() == []
        return
    found = ParseTree.from_constituents(tree.constituents(), tree.words(), tree.tags())
    assert found == tree


@given(trees)
def test_unary_chains_and_back(tree):
    joined = join_unaries(tree)
    spans = [(start, stop) for _, start, stop in joined.constituents()]
    assert len(set(spans)) == len(spans)
    assert split_unaries(joined) == tree


def test_constituents():
    found = [tuple(one) for one in ParseTree.from_brackets(TREE).constituents()]
    assert found == [("S", 0, 5), ("NP", 0, 2), ("VP", 2, 4), ("ADVP", 3, 4)]


def test_words_without_tags():
    tree = ParseTree.from_brackets("(S (NP the dog) (VP barks))")
    assert tree.tokens() == [("the", ""), ("dog", ""), ("barks", "VP")]
    assert str(tree) == "(S (NP the dog) (VP barks))"


def test_deep_trees_need_no_recursion():
    depth = 20_000
    text = "(A " * depth + "(N n)" + ")" * depth
    tree = ParseTree.from_brackets(text)
    assert str(tree) == text
    assert len(tree.constituents()) == depth
    assert join_unaries(tree).constituents()[0].label == "+".join("A" * depth)
    assert clean_tree(tree) == ParseTree.from_brackets("(A (N n))")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a)", r"'\(S' that opens in line 1 is not closed"),
        ("(S (NN a)))", "closed that was not opened"),
        ("(S\n(NP)\n(NN a))", r"line 2: the bracket '\(NP' that opens in line 2 has neither words nor parts"),
        ("word", "'word' stands outside of all brackets"),
        ("(S (NN a)) b", "'b' stands outside"),
        ("(S (NN a)) (S (NN b))", "must be one tree"),
        ("(())", "must be one tree"),
        ("", "must be one tree"),
        ("(() (NN a))", "neither words nor parts"),
        ("(S ())", "neither words nor parts"),
    ],
)
def test_what_is_no_tree(text, message):
    with pytest.raises(ValueError, match=message):
        ParseTree.from_brackets(text)


def test_what_cannot_be_written():
    with pytest.raises(ValueError, match="word 'a b' is empty or has blanks"):
        str(ParseTree("NN", word="a b"))
    with pytest.raises(ValueError, match=r"label 'N\(' has blanks"):
        str(ParseTree("N(", word="a"))
    assert str(ParseTree("(".replace("(", "-LRB-"), word="(")) == "(-LRB- -LRB-)"
    with pytest.raises(ValueError, match="children, or is a leaf"):
        ParseTree("NP")
    with pytest.raises(ValueError, match="children, or is a leaf"):
        ParseTree("NP", [ParseTree("NN", word="a")], "b")
    with pytest.raises(TypeError, match="must be a ParseTree, brackets, or a tree of NLTK"):
        ParseTree.of(3)


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([("S", 0, 3), ("A", 0, 2), ("B", 1, 3)], r"'A' \(0, 2\) and 'B' \(1, 3\) cross"),
        ([("S", 0, 3), ("A", 2, 4)], "lie within 3 words"),
        ([("A", 0, 2)], "No bracket has all 3"),
        ([], "No bracket has all"),
    ],
)
def test_constituents_that_are_no_tree(spans, message):
    with pytest.raises(ValueError, match=message):
        ParseTree.from_constituents(spans, list("abc"), list("XYZ"))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("((S (NP-SBJ-1 (NN a)) (VP=2 (VB b))))", "(S (NP (NN a)) (VP (VB b)))"),
        ("(ROOT (S (NP (-NONE- *T*-1)) (VP (VB b))))", "(S (VP (VB b)))"),
        ("(TOP (S (S-TPC (VP (VB b)))))", "(S (VP (VB b)))"),
        ("((NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-)))", "(NP (-LRB- -LRB-) (NN a) (-RRB- -RRB-))"),
        ("((PRT|ADVP (RP|RB up)))", "(PRT (RP up))"),
        ("((NP (NN a)) (NP (NN b)))", "(TOP (NP (NN a)) (NP (NN b)))"),
        ("((NN a))", "(TOP (NN a))"),
        ("(NN a)", "(TOP (NN a))"),
        ("((NP (NN-X a)))", "(NP (NN-X a))"),
        ("((S (-NONE- *)))", None),
    ],
)
def test_clean(text, clean):
    found = clean_tree(ParseTree.from_brackets(text))
    assert found == (None if clean is None else ParseTree.from_brackets(clean))


def test_clean_keeps_what_is_asked_for():
    text = "(TOP (S (S-TPC (NP-SBJ (-NONE- *)) (ADVP|PRT (RB b)))))"
    tree = ParseTree.from_brackets(text)
    assert str(clean_tree(tree, functions=True, empty=None, alternatives=True, repeated=True, tops=())) == text


def test_a_label_that_joins_already():
    with pytest.raises(ValueError, match=r"'S\+VP' has a '\+'"):
        join_unaries(ParseTree.from_brackets("(S+VP (VB go))"))


def test_real_trees_of_nltk():
    nltk = pytest.importorskip("nltk")
    tree = nltk.Tree.fromstring(TREE)
    assert ParseTree.of(tree).to_brackets() == TREE
    assert ParseTree.of(tree).to_nltk() == tree


def test_every_tree_of_the_treebank_is_read_as_it_stands():
    folder = os.environ.get("DUALFIELD_DATA")
    if not folder or not (Path(folder) / "treebank_trees.txt.gz").exists():
        pytest.skip("DUALFIELD_DATA has no treebank_trees.txt.gz")
    with gzip.open(Path(folder) / "treebank_trees.txt.gz", "rt", encoding="utf-8") as lines:
        count = 0
        for line in lines:
            tree = ParseTree.from_brackets(line)
            assert tree.to_brackets() == line.strip()
            cleaned = clean_tree(tree)
            assert cleaned is not None
            joined = join_unaries(cleaned)
            again = ParseTree.from_constituents(joined.constituents(), joined.words(), joined.tags())
            assert split_unaries(again) == cleaned
            count += 1
    assert count == 3914
