"""Grammars: where rules come from, that trees have one derivation, and answers beyond what all structures are asked."""

import pickle

import numpy as np
import pytest

from dualfield import CRF, CRFCV, DiscriminativePCFG
from dualfield.data import ParseTree, PartialTree
from dualfield.data.records import Record
from dualfield.estimators import ImpossibleWarning
from dualfield.structures import Grammar, Scores
from tests.reference.parts import Grammars

TREES = [
    "(S (NP (DT a) (JJ b) (JJ b) (NN c)) (VP (VBZ d) (NP (NN c)) (PP (IN e) (NP (NN c)))))",
    "(S (NP (NP (NN c)) (PP (IN e) (NP (DT a) (NN c)))) (VP (VBZ d) (NP (NN c) (NN c))))",
    "(S (VP (VBZ d) (S (VP (VBZ d)))))",
    "(NP (NN c))",
]


def zeros(grammar, sentences):
    shape = grammar.shape(sentences)
    return Scores(np.zeros((shape.n_nodes, grammar.n_labels)), None, np.zeros(grammar.n_cliques), shape=shape)


@pytest.mark.parametrize("binarise", ["right", "left"])
@pytest.mark.parametrize("horizontal", [0, 1, 2, None])
@pytest.mark.parametrize("vertical", [1, 2, 3])
@pytest.mark.parametrize("tags", ["given", "predicted"])
def test_trees_have_one_derivation_by_the_rules_read_off_them(binarise, horizontal, vertical, tags):
    grammar = Grammar.from_treebank(TREES, binarise=binarise, horizontal=horizontal, vertical=vertical, tags=tags)
    shape = grammar.shape([ParseTree.of(tree).tokens() for tree in TREES])
    codes = shape.read_labels(TREES).codes
    parts = grammar.parts_of(codes, shape)
    n_words = shape.n_words
    assert (np.diff(parts.begins) == 2 * n_words).all()  # n - 1 binary rules, n lexical rules, a root
    assert set(parts.shared.tolist()) == set(range(grammar.n_cliques))
    scores = zeros(grammar, shape.tokens)
    assert np.isfinite(grammar.score(scores, codes)).all()
    assert [str(tree) for tree in shape.decode(shape.read_labels(TREES).labels, codes)] == TREES
    from dualfield.structures.parse_trees.ambiguity import check_one_derivation

    check_one_derivation(grammar.rules)


def test_vertical_memory_tells_symbols_apart_but_not_labels():
    plain, annotated = (Grammar.from_treebank(TREES, vertical=vertical) for vertical in (1, 2))
    assert plain.labels == annotated.labels
    assert {"NP^S", "NP^VP", "NP^PP"} <= set(annotated.rules.symbols)
    assert "NP" in plain.rules.symbols


def test_horizontal_memory():
    rules = Grammar.from_treebank(TREES[:1], horizontal=0).rule_names
    assert "@NP -> JJ @NP" in rules
    rules = Grammar.from_treebank(TREES[:1], horizontal=None).rule_names
    assert "@NP|DT,JJ -> JJ NN" in rules
    rules = Grammar.from_treebank(TREES[:1], binarise="left").rule_names
    assert "@NP|JJ -> DT JJ" in rules


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_every_tree_of_any_bracketing(words):
    """Catalan numbers: all binary trees of one symbol; log-partitions to 1e-12."""
    grammar = Grammar.from_rules(["S -> S S | 'a'"])
    catalan = [1, 1, 2, 5, 14, 42][words - 1 if words > 1 else 0]
    assert grammar.log_partition(zeros(grammar, [["a"] * words]))[0] == pytest.approx(np.log(catalan), abs=1e-12)


def drawn(seed, scale, sentences=("NVNPN", "NNNN", "VNN", "N")):
    from tests.reference.parts import _grammar_of_trees

    grammar = _grammar_of_trees()
    shape = grammar.shape([[("-", tag) for tag in tags] for tags in sentences])
    rng = np.random.default_rng(seed)
    node, rules = rng.normal(0, scale, (shape.n_nodes, grammar.n_labels)), rng.normal(0, scale, grammar.n_cliques)
    return Grammars(grammar, shape, grammar.n_labels), Scores(node, None, rules, shape=shape)


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 300.0, 3000.0])
def test_sums_and_maxima_to_the_last_digits(scale):
    """Products, and logarithms where scores are too far apart for products, are equally exact."""
    for seed in range(4):
        table, scores = drawn(seed, scale)
        grammar, shape = table.structure, table.shape
        answer = grammar.marginals(scores, cliques="sum")
        for i in range(shape.n_examples):
            rows = slice(*shape.offsets[i : i + 2])
            every = table.labellings(i)
            values = np.array(
                [
                    sum(scores.node[rows][t, label] for t, label in enumerate(labels))
                    + sum(scores.transition[part] for part in table.shared(i, labels))
                    for labels in every
                ]
            )
            top = values.max()
            total = top + np.log(np.exp(values - top).sum())
            assert answer.log_partition[i] == pytest.approx(total, rel=1e-13, abs=1e-12)
            counts = np.zeros(grammar.n_cliques)
            for share, labels in zip(np.exp(values - total), every, strict=True):
                np.add.at(counts, table.shared(i, labels), share)
            np.testing.assert_allclose(answer.clique[i], counts, atol=1e-12 * max(scale, 1.0))
        maxima = grammar.log_partition(scores, temperature=0.0)
        np.testing.assert_allclose(grammar.score(scores, grammar.argmax(scores)), maxima, rtol=1e-13, atol=1e-12)


def test_required_and_forbidden_brackets():
    table, scores = drawn(1, 1.0)
    grammar, shape = table.structure, table.shape
    node = scores.node.copy()
    row = int(shape.rows(1, [1], [3])[0])
    node[row, 0] = -np.inf  # of NNNN there must be a bracket around the two in the middle
    must = Scores(node, None, scores.transition, shape=shape)
    every = [labels for labels in table.labellings(1) if labels[row - shape.offsets[1]]]
    assert 0 < len(every) < len(table.labellings(1))
    assert grammar.argmax(must)[row] > 0
    marginals = grammar.marginals(must).node
    assert marginals[row, 0] == 0.0
    assert marginals[row].sum() == pytest.approx(1.0, abs=1e-12)
    found = grammar.k_best(must, len(every) + 1)
    assert np.isfinite(found.scores[1]).sum() == len(every)
    node[int(shape.rows(1, [0], [2])[0]), 0] = -np.inf  # two that cross
    assert not grammar.is_possible(Scores(node, None, scores.transition, shape=shape))[1]


def test_the_first_of_the_best_is_the_argmax_where_many_are_equal():
    grammar = Grammar.from_rules(["S -> S S | 'a'"])
    scores = zeros(grammar, [["a"] * 6])
    best = grammar.k_best(scores, 50)
    assert (best.scores[0, :42] == 0.0).all()
    assert (best.scores[0, 42:] == -np.inf).all()
    np.testing.assert_array_equal(best.labels[0], grammar.argmax(scores))
    assert len({tuple(row) for row in best.labels[:42].tolist()}) == 42
    # From the top the shortest left part: right-branching.
    tree = grammar.trees(scores.shape, grammar.argmax(scores))[0]
    assert str(tree).startswith("(S (S a) (S (S a) (S (S a)")


def test_denormal_numbers_do_not_slow_down_or_hide_a_parse():
    """The only parse uses a symbol that is e^-800 times less likely than others in its cell."""
    rules = ["S -> A B", "A -> 'a' | 'b'", "B -> 'a' | 'b' | A A", "C -> 'b' | C C"]
    grammar = Grammar.from_rules(rules)
    names = grammar.rule_names
    scores = zeros(grammar, [["a", "b", "b"]])
    transition = np.zeros(grammar.n_cliques)
    transition[names.index("C -> C C")] = 800.0
    transition[names.index("C -> 'b'")] = 800.0
    answer = grammar.log_partition(Scores(scores.node, None, transition, shape=scores.shape))
    assert answer[0] == pytest.approx(0.0, abs=1e-12)


def test_a_sentence_without_a_parse_is_told():
    grammar = Grammar.from_treebank(TREES)
    with pytest.raises(
        ValueError, match=r"Example 1 has no allowed labelling: no rule .* has 'XX', the terminal of word 1"
    ):
        grammar.argmax(zeros(grammar, [[("c", "NN")], [("c", "NN"), ("?", "XX")]]))
    with pytest.raises(ValueError, match="Example 0 has no allowed labelling: the grammar has no parse of its 2 words"):
        grammar.log_partition(zeros(grammar, [[("e", "IN"), ("e", "IN")]]))


def test_sentences_without_a_parse_are_left_out_on_demand():
    y = ["(S (NP (N dogs)) (VP (V bark)))", "(S (NP (N cats)) (VP (V see) (NP (N dogs))))"]
    X = [ParseTree.from_brackets(text).tokens() for text in y]
    odd = [("dogs", "N"), ("?", "SYM")]
    short = [("dogs", "N")]
    for model in (CRF("grammar").fit(X, y), DiscriminativePCFG(eta=0.0).fit(X, y)):
        with pytest.raises(ValueError, match="Example 1 has no allowed labelling: no rule of the grammar has 'SYM'"):
            model.k_best([X[0], odd], 2)
        said = (
            r"2 of 4 examples have no allowed labelling\. Example 1: no rule of the grammar has 'SYM', the terminal of "
            r"word 1\. Example 2: the grammar has no parse of its 1 word"
        )
        with pytest.warns(ImpossibleWarning, match=said):
            assert model.predict([X[0], odd, short, X[1]], impossible="none") == [y[0], None, None, y[1]]
        assert model.predict(X, impossible="none") == y
        with pytest.warns(ImpossibleWarning, match="1 of 1"):
            assert model.predict(X[:1], known=[[(0, 2, "NP")]], impossible="none") == [None]
        with pytest.warns(ImpossibleWarning, match="1 of 3 examples has"):
            score = model.score([*X, odd], [*y, "(S (N dogs) (SYM ?))"])
        assert score == pytest.approx(2 * 7 / (7 + 8))
        for arguments in ({"lengths": [2]}, {"return_bound": True}):
            with pytest.raises(ValueError, match="impossible='none' is for lists of examples"):
                model.predict(X, impossible="none", **arguments)
        with pytest.raises(ValueError, match="'impossible' parameter of predict must be"):
            model.predict(X, impossible="skip")


def test_chosen_on_folds_whose_rules_do_not_parse_all():
    y = [
        "(S (NP (N dogs)) (VP (V see) (NP (N cats))))",
        "(S (NP (N dogs)) (VP (V see) (NP (N cats)) (PP (P at) (NP (N night)))))",
    ]
    trees = [y[0], y[0], y[1], y[0]]
    X = [ParseTree.from_brackets(text).tokens() for text in trees]
    with pytest.warns(ImpossibleWarning, match="no rule of the grammar has 'P', the terminal of word 3"):
        found = CRFCV(CRF("grammar"), Cs=[0.1, 1.0], cv=2).fit(X, trees)
    assert np.isfinite(found.best_score_)
    assert found.best_score_ < 1.0


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("(S (NP (NN c)) (NP (NN c)))", r"the grammar has no rule S -> NP NP, which the span \(0, 2\) needs"),
        ("(S (NP (DT a)) (VP (VBZ d)))", "the grammar has no rule NP -> DT, which word 0 needs"),
        ("(VP (VBZ d) (NP (NN c)) (PP (IN e) (NP (NN c))))", "'VP' is not a symbol of whole sentences"),
    ],
)
def test_refusals_name_the_rule(tree, message):
    from dualfield import CRF

    parsed = ParseTree.of(tree)
    shape = (grammar := Grammar.from_treebank(TREES)).shape([parsed.tokens()])
    codes = shape.read_labels([tree], None)
    known = {label: at for at, label in enumerate(grammar.labels)}
    mine = np.array([known[codes.labels.classes[code]] for code in codes.codes], dtype=np.int32)
    assert grammar.score(zeros(grammar, shape.tokens), mine)[0] == -np.inf
    X = [ParseTree.of(one).tokens() for one in TREES]
    with pytest.raises(ValueError, match=message):
        CRF(grammar).fit([*X, parsed.tokens()], [*TREES, tree])


def test_rules_of_users():
    text = """
    # a comment
    S -> NP VP [1.0]
    NP -> Det N [0.6] | 'I' [0.4]
    VP -> V NP [0.7] | V NP PP [0.3]
    PP -> P NP [1.0]
    Det -> 'the' [1.0]
    N -> 'man' [0.5] | "dog" [0.5]
    V -> 'saw' [1.0]
    P -> 'with' [1.0]
    """
    grammar = Grammar.from_rules(text)
    probability = dict(zip(grammar.rule_names, np.exp(grammar.log_probabilities), strict=True))
    assert probability["NP -> Det N"] == pytest.approx(0.6)
    assert probability["VP -> V @NP,PP"] == pytest.approx(0.3)
    assert probability["@NP,PP -> NP PP"] == pytest.approx(1.0)
    shape = grammar.shape([["I", "saw", "the", "dog", "with", "the", "man"]])
    scores = Scores(np.zeros((shape.n_nodes, grammar.n_labels)), None, grammar.log_probabilities, shape=shape)
    (tree,) = grammar.trees(shape, grammar.argmax(scores))
    want = "(S (NP I) (VP (V saw) (NP (Det the) (N dog)) (PP (P with) (NP (Det the) (N man)))))"
    assert str(tree) == want
    assert grammar.log_partition(scores)[0] == pytest.approx(np.log(0.4 * 0.3 * (0.6 * 0.5) ** 2))
    codes = shape.read_labels([want], None)
    assert sorted(set(codes.labels.classes)) == ["", "Det", "N", "NP", "P", "PP", "S", "V", "VP"]


def test_unary_rules_are_chains():
    grammar = Grammar.from_rules(
        [("S", ["A"], 0.5), ("S", ["A", "A"], 0.5), ("A", ["B"], 0.25), ("A", ["'a'"], 0.75), ("B", ["'a'"])]
    )
    shape = grammar.shape([["a"]])
    scores = Scores(np.zeros((shape.n_nodes, grammar.n_labels)), None, grammar.log_probabilities, shape=shape)
    found = grammar.k_best(scores, 3)
    assert [grammar.labels[code] for code in found.labels[:2, 0]] == ["S+A", "S+A+B"]
    np.testing.assert_allclose(np.exp(found.scores[0]), [0.375, 0.125, 0.0])


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            ["S -> A @X", "@X -> A A", "S -> @Y A", "@Y -> A A", "A -> 'a'"],
            "two derivations, by 'S -> @Y A' and by 'S -> A @X'",
        ),
        (
            ["S -> A @X", "S -> A @Y", "@X -> A A", "@Y -> A A", "A -> 'a'"],
            "two derivations, by 'S -> A @X' and by 'S -> A @Y'",
        ),
        (["S -> A A", "S -> A A", "A -> 'a'"], "'S -> A A' is listed twice"),
        (["S ->"], "must be a text such as"),
        ([("S", "AB")], "must be a text or a tuple"),
        (["S -> A [2.0]", "A -> 'a'"], r"probability of rules\[0\] must be in \(0, 1\]. Got '2.0'"),
        (["S+A -> B", "B -> 'b'"], "has a '\\+'"),
        ([], "at least one rule"),
        (["@S -> B", "B -> 'b'"], "makes a symbol without a label"),
    ],
)
def test_bad_rules(rules, message):
    with pytest.raises(ValueError, match=message):
        Grammar.from_rules(rules)


def test_symbols_without_a_label_may_be_given_where_they_leave_one_derivation():
    grammar = Grammar.from_rules(["S -> A @X", "@X -> B A | B @X", "A -> 'a'", "B -> 'b'"])
    assert grammar.labels == ["", "A", "B", "S"]
    assert np.exp(grammar.log_partition(zeros(grammar, [list("abba")])))[0] == pytest.approx(1.0)


class Symbol:
    def __init__(self, name):
        self.name = name

    def symbol(self):
        return self.name

    def __str__(self):
        return self.name


class Production:
    def __init__(self, lhs, rhs, prob):
        self._parts = Symbol(lhs), [Symbol(one) if one.isupper() else one for one in rhs], prob

    def lhs(self):
        return self._parts[0]

    def rhs(self):
        return self._parts[1]

    def prob(self):
        return self._parts[2]


class LikeNLTK:
    def start(self):
        return Symbol("S")

    def productions(self):
        return [Production("S", "AA", 1.0), Production("A", "a", 0.5), Production("A", "AA", 0.5)]


def test_grammars_of_nltk_by_their_methods():
    grammar = Grammar.from_nltk(LikeNLTK())
    shape = grammar.shape([["a"] * 3])
    scores = Scores(np.zeros((shape.n_nodes, grammar.n_labels)), None, grammar.log_probabilities, shape=shape)
    assert grammar.log_partition(scores)[0] == pytest.approx(np.log(2 * 0.5**4))
    with pytest.raises(TypeError, match=r"must have the methods productions\(\) and start\(\)"):
        Grammar.from_nltk("S -> A A")


def test_records():
    for grammar in (
        Grammar(),
        Grammar(vertical=2, horizontal=None, binarise="left", span_features=["%n"], output="brackets"),
        Grammar.from_treebank(TREES, tags="predicted", lexicon="seen", word_features="default"),
        Grammar.from_nltk(LikeNLTK()),
    ):
        again = Grammar.from_record(Record(grammar.record()))
        assert again == grammar
        assert hash(again) == hash(grammar)
        assert repr(again) == repr(grammar)
    with pytest.raises(ValueError, match="cannot be saved: a model file holds no code"):
        Grammar(word_features=lambda sentence, start, stop: []).record()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"binary": np.array([0, 1, 99], dtype=np.int32)}, "binary of its grammar are no codes"),
        ({"roots": np.array([-1], dtype=np.int32)}, "roots of its grammar are no codes"),
        ({"lexical": np.array([0, 0], dtype=np.int32)}, "must have three entries each"),
        ({"symbol_labels": np.zeros(1, dtype=np.int32)}, "a label for each symbol"),
        ({"scores": np.ones(1)}, "must have shape"),
    ],
)
def test_altered_records(change, message):
    record = Grammar.from_treebank(TREES).record()
    record["rules"] |= change
    with pytest.raises(ValueError, match=message):
        Grammar.from_record(Record(record))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"binarise": "up"}, r"'binarise' parameter of Grammar must be one of \['right', 'left'\]"),
        ({"horizontal": -1}, "'horizontal' parameter of Grammar must be an int"),
        ({"vertical": 0}, "'vertical' parameter of Grammar must be an int"),
        ({"tags": "none"}, "'tags' parameter of Grammar must be one of"),
        ({"output": "tex"}, "'output' parameter of Grammar must be None or one of"),
        ({"span_features": ["%y"]}, "'span_features' parameter of Grammar"),
        ({"rules": ["S -> A"]}, "'rules' parameter of Grammar must be what"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        Grammar(**settings)


def test_unknown_words_are_known_by_their_class():
    trees = ["(S (NP (NNP Tom)) (VP (VBZ sees) (NP (NNP Tom))))", "(S (NP (NNP Rex)) (VP (VBZ sees) (NP (NNS cats))))"]
    grammar = Grammar.from_treebank(trees, tags="predicted", lexicon="seen")
    assert {"Tom", "sees", "<Capital>", "<-s>"} == set(grammar.rules.terminals)
    scores = zeros(grammar, [["Kim", "sees", "dogs"]])
    (tree,) = grammar.trees(scores.shape, grammar.argmax(scores))
    assert str(tree) == "(S (NP (NNP Kim)) (VP (VBZ sees) (NP (NNS dogs))))"


def test_partial_trees_are_read():
    grammar = Grammar.from_treebank(TREES)
    shape = grammar.shape([[("c", "NN"), ("c", "NN"), ("d", "VBZ")]])
    codes = shape.read_labels([PartialTree([(0, 2, "NP")])], None)
    assert codes.allowed is not None
    assert (codes.codes == -1).any()


def test_shapes_can_be_copied_after_questions():
    grammar = Grammar.from_treebank(TREES)
    scores = zeros(grammar, [ParseTree.of(TREES[0]).tokens()])
    before = grammar.log_partition(scores)
    again = pickle.loads(pickle.dumps(scores.shape))
    assert grammar.log_partition(Scores(scores.node, None, scores.transition, shape=again)) == before


@pytest.mark.parametrize(
    "more", [{"word_features": ["%x[first]"]}, {"word_features": "default"}, {"span_features": "default"}]
)
def test_dual_ascent_leaves_the_true_trees_where_others_differ_in_many_spans(more):
    """With half a step from a start that is sure of each span, no other tree has any mass."""
    y = [
        "(S (NP (DT the) (JJ old) (NN house)) (VP (VB saw) (NP (NP (DT every) (JJ big) (NN saw)) (PP (IN in) (NP (DT "
        "no) (JJ green) (NN river))))) (. .))",
        "(S (VP (VB saw) (NP (DT the) (NN saw))) (. .))",
    ]
    X = [ParseTree.from_brackets(text).words() for text in y]
    settings = {"C": 0.3, "tol": 1e-4, "random_state": 0}
    model = CRF(Grammar(tags="predicted", **more), solver="block_dual", **settings).fit(X, y)
    other = CRF(Grammar(tags="predicted", **more), solver="lbfgs", **settings | {"tol": 1e-7}).fit(X, y)
    assert model.status_.value == "converged"
    assert model.objective_ == pytest.approx(other.objective_, rel=2e-4)
