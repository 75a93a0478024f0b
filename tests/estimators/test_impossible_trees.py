"""What is said of sentences that have no tree with what is known of them: which, and which word or bracket it is."""

import numpy as np
import pytest

from dualfield import CRF, DiscriminativePCFG, LatentChain, LatentStructuredSVM, StructuredSVM
from dualfield.data import ParseTree, PartialTree
from dualfield.estimators import ImpossibleWarning
from dualfield.structures import Grammar, Scores

y = [
    "(S (NP (NNS dogs)) (VP (VBP bark)))",
    "(S (NP (DT a) (NN dog)) (VP (VBZ sees) (NP (DT the) (NN cat))))",
    "(S (NP (NP (NNS dogs)) (PP (IN with) (NP (NNS cats)))) (VP (VBP see) (NP (DT a) (NN dog))))",
]
X = [ParseTree.from_brackets(tree).tokens() for tree in y]
WORDS = [[word for word, _ in sentence] for sentence in X]

REASONS = [
    (X[1], PartialTree([(0, 3, "NP")]), r"no tree has the required bracket NP \(0, 3\) around 'a dog sees'\."),
    (X[1], PartialTree([(1, 3, None)]), r"no tree has the required bracket \(1, 3\) around 'dog sees'\."),
    (
        X[2],
        PartialTree([(0, 6, None), (0, 3, "NP"), (4, 5, None)]),
        r"no tree has the required bracket \(4, 5\) around 'a'\.",
    ),
    (
        X[1],
        PartialTree([], forbidden=[(0, 5, None)]),
        r"every tree has the forbidden bracket \(0, 5\) around 'a dog sees the cat'\.",
    ),
    (
        X[2],
        PartialTree([(0, 6, None)], forbidden=[(0, 6, "S")]),
        r"no tree has the required bracket NP or PP or VP \(0, 6\) around 'dogs with cats see a \.\.\.'\.",
    ),
    (
        [("dogs", "NNS"), ("xyz", "FW")],
        PartialTree([(0, 2, None)]),
        "no rule of the grammar has 'FW', the terminal of word 1",
    ),
    ([("dogs", "NNS"), ("dogs", "NNS")], PartialTree([(0, 1, "NP")]), "the grammar has no parse of its 2 words"),
]


@pytest.mark.parametrize(("sentence", "known", "reason"), REASONS)
def test_training_and_questions_name_sentence_and_bracket(sentence, known, reason):
    in_y = r"1 of 4 examples has no allowed labelling\. y\[3\]: " + reason
    for model in (
        CRF("grammar"),
        DiscriminativePCFG(eta=0.0),
        LatentStructuredSVM(StructuredSVM("grammar"), LatentChain(1)),
    ):
        with pytest.raises(ValueError, match=in_y):
            model.fit([*X, sentence], [*y, known])
    model = CRF("grammar").fit(X, y)
    in_known = r"1 of 2 examples has no allowed labelling\. known\[1\]: " + reason
    for ask in (model.predict, model.predict_proba):
        with pytest.raises(ValueError, match=in_known):
            ask([X[0], sentence], known=[None, known])
    with pytest.raises(ValueError, match=in_known):
        model.k_best([X[0], sentence], 2, known=[None, known])
    with pytest.warns(ImpossibleWarning, match="Example 1: " + reason):
        found = model.predict([X[0], sentence], known=[None, known], impossible="none")
    assert found == [y[0], None]


def test_brackets_that_are_possible_alone_but_not_together():
    rules = Grammar.from_rules(["S -> A B | B A", "A -> 'a' | A 'a'", "B -> 'a' | 'a' B"])
    sentence = ["a"] * 3
    shape = rules.shape([sentence])
    labels = rules.labels
    node = np.zeros((shape.n_nodes, rules.n_labels))
    for start, stop, label in ((0, 2, "A"), (0, 1, "B")):
        row = int(shape.rows(0, [start], [stop])[0])
        node[row] = -np.inf
        node[row, labels.index(label)] = 0.0
    reason = rules.why_impossible(Scores(node, shape=shape))[0]
    assert reason.endswith("together with what else is known.")
    assert "no tree has the required bracket" in reason


def test_spans_without_a_grammar():
    known = PartialTree([(1, 3, None)], forbidden=[(0, 5, None)])
    with pytest.raises(ValueError, match=r"y\[3\]: every tree has the forbidden bracket \(0, 5\)"):
        CRF("spans").fit([*X, X[1]], [*y, known])
    model = CRF("spans").fit(X, y)
    with pytest.raises(ValueError, match=r"known\[0\]: every tree has the forbidden bracket \(0, 5\)"):
        model.predict([X[1]], known=[known])


def test_words_without_tags_name_the_remedy():
    with pytest.raises(
        ValueError, match=r"X\[0\] has the word 'dogs' without a tag, for which y\[0\] has 'NNS'.*tags='predicted'"
    ):
        CRF("grammar").fit(WORDS, y)
    model = CRF("grammar").fit(X, y)
    remedy = r"pass \(word, tag\), or use Grammar\(tags='predicted'\) for words alone"
    for ask in (model.predict, model.predict_proba):
        with pytest.raises(ValueError, match=remedy):
            ask(WORDS[:1])
    with pytest.warns(ImpossibleWarning, match=remedy):
        assert model.predict(WORDS[:1], impossible="none") == [None]
    with pytest.raises(ValueError, match=r"the terminal of word 0\."):  # nothing is wrong with the form of these
        model.predict([[("xyz", "FW")]])
    assert CRF(Grammar(tags="predicted", word_features="default"), C=10.0).fit(WORDS, y).predict(WORDS) == y


def test_tags_alone_are_sentences_too():
    tags = [[tag for _, tag in sentence] for sentence in X]
    trees = [str(ParseTree.from_constituents(*_with_tags_as_words(tree))) for tree in y]
    model = CRF("grammar").fit(tags, trees)
    assert model.score(tags, trees) == 1.0


def _with_tags_as_words(text):
    tree = ParseTree.from_brackets(text)
    return [tuple(one) for one in tree.constituents()], tree.tags(), tree.tags()
