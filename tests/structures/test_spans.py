"""Labelled bracketings: enumerations, long sentences, brackets that must or must not be there, trees of users."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.data import ParseTree, PartialTree
from dualfield.structures import Scores, Spans, SpanShape
from tests.data.test_trees import NltkTree
from tests.reference.parts import Bracketings

X = [
    [("dogs", "NNS"), ("bark", "VBP")],
    [("a", "DT"), ("dog", "NN"), ("barks", "VBZ")],
    [("go", "VB")],
    [("the", "DT"), ("cat", "NN"), ("sees", "VBZ"), ("a", "DT"), ("dog", "NN")],
]
Y = [
    "(S (NP (NNS dogs)) (VP (VBP bark)))",
    "(S (NP (DT a) (NN dog)) (VP (VBZ barks)))",
    "(S (VP (VB go)))",
    "(S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (NN dog))))",
]


def spans_of(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n + 1)]


def reference(own, n, *, rooted, required=()):
    """The log-partition in logarithms, another way: the last part first, and brackets that must be there by exclusion.

    Every tree without some of them is subtracted and added again, so there may only be a few.
    """
    row = {span: at for at, span in enumerate(spans_of(n))}
    total, signs = [], []
    for subset in range(2 ** len(required)):
        without = {one for at, one in enumerate(required) if subset >> at & 1}
        one, seq = {}, {}
        for width in range(1, n + 1):
            for i in range(n - width + 1):
                j = i + width
                scores = own[row[i, j]]
                empty = 0.0 if (i, j) in required else scores[0]
                label = -np.inf if (i, j) in without else logsumexp(scores[1:] - empty)
                must = rooted and width == n
                if width == 1:
                    one[i, j] = seq[i, j] = np.logaddexp(label, -np.inf if must else 0.0)
                    continue
                two = logsumexp([seq[i, k] + one[k, j] for k in range(i + 1, j)])
                one[i, j] = label + two
                seq[i, j] = one[i, j] if must else np.logaddexp(one[i, j], two)
        total.append(seq[0, n])
        signs.append((-1) ** len(without))
    base = sum(own[row[span], 0] for span in row if span not in required)
    return base + logsumexp(total, b=signs)


@pytest.mark.parametrize(
    ("n", "n_labels", "root"), [(4, 3, "labelled"), (5, 2, "labelled"), (5, 2, "any"), (4, 3, "any")]
)
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_every_bracketing(n, n_labels, root, scale):
    names = ["", "a", "b"][:n_labels]
    structure, shape = Spans(names, root=root), SpanShape.of_words([n])
    every = np.array(list(Bracketings(structure, shape, n_labels).labellings(0)))
    rng = np.random.default_rng(n * n_labels)
    answered = 0
    for share in (0.0, 0.0, 0.05, 0.2, 0.3):
        own = rng.normal(0, scale, (shape.n_nodes, n_labels))
        own[rng.random(own.shape) < share] = -np.inf  # also label 0: brackets that must be there
        values = own[np.arange(shape.n_nodes), every].sum(axis=1)
        if not (values > -np.inf).any():
            assert not structure.is_possible(Scores(own))[0]
            continue
        answered += 1
        found = structure.marginals(own)
        p = np.exp(values - logsumexp(values))
        node = np.stack([(every == label).T @ p for label in range(n_labels)], axis=1)
        assert found.log_partition[0] == pytest.approx(logsumexp(values), abs=1e-9 * scale)
        np.testing.assert_allclose(found.node, node, atol=1e-10)
        np.testing.assert_allclose(structure.entropy(own)[0], -(p[p > 0] * np.log(p[p > 0])).sum(), atol=1e-9)
        most = np.stack([np.where(every == label, values[:, None], -np.inf).max(axis=0) for label in range(n_labels)])
        np.testing.assert_allclose(structure.max_marginals(own), most.T, atol=1e-9 * scale)
        best = structure.k_best(own, 40)
        want = np.sort(values[values > -np.inf])[::-1][:40]
        np.testing.assert_allclose(best.scores[0][: len(want)], want, atol=1e-9 * scale)
        assert len({tuple(one) for one in best.labels[: len(want)].tolist()}) == len(want)
        np.testing.assert_array_equal(best.labels[0], structure.argmax(own))
    assert answered >= 3


@pytest.mark.parametrize("n", [17, 40])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 300.0])
def test_long_sentences_in_products_and_in_logarithms(n, scale):
    rng = np.random.default_rng(n)
    own = rng.normal(0, scale, (n * (n + 1) // 2, 5))
    row = {span: at for at, span in enumerate(spans_of(n))}
    for root in ("labelled", "any"):
        want = reference(own, n, rooted=root == "labelled")
        found = Spans(["", *"abcd"], root=root).marginals(own)
        assert found.log_partition[0] == pytest.approx(want, rel=1e-11)
        np.testing.assert_allclose(found.node.sum(axis=1), 1.0, atol=1e-12)
    required = [(0, 5), (2, 4), (8, 9)]
    own[[row[span] for span in required], 0] = -np.inf
    found = Spans(["", *"abcd"]).marginals(own)
    if scale <= 1.0:  # larger ones cancel in the reference
        assert found.log_partition[0] == pytest.approx(reference(own, n, rooted=True, required=required), rel=1e-9)
    assert (found.node[[row[span] for span in required], 0] == 0.0).all()
    crossing = [row[span] for span in ((1, 6), (3, 5), (4, 7))[:1]]
    np.testing.assert_array_equal(found.node[crossing, 0], 1.0)


def test_marginals_are_the_gradient():
    rng = np.random.default_rng(0)
    own = rng.normal(0, 1, (21, 3))
    structure = Spans(["", "a", "b"])
    found = structure.marginals(own).node
    for at in [(0, 0), (3, 1), (5, 2), (20, 1), (11, 0)]:
        step = np.zeros_like(own)
        step[at] = 1e-5
        slope = (structure.log_partition(own + step) - structure.log_partition(own - step))[0] / 2e-5
        assert slope == pytest.approx(found[at], abs=1e-8)


def test_one_huge_score_among_small_ones():
    """What is far above the scale of its column, or far below, is as exact as the rest."""
    n = 8
    own = np.zeros((36, 2))
    row = {span: at for at, span in enumerate(spans_of(n))}
    for value in (650.0, 2000.0, -650.0, -2000.0):
        own[row[2, 5], 1] = value
        found = Spans(["", "a"]).marginals(own)
        assert found.log_partition[0] == pytest.approx(reference(own, n, rooted=True), rel=1e-12)
        assert found.node[row[2, 5], 1] == pytest.approx(float(value > 0), abs=1e-12)
        if value > 0:
            assert found.node[row[1, 3], 1] < 1e-250


def test_ties():
    """No bracket before a bracket, the lower label, the shortest first part."""
    labels = Spans(["", "a", "b"]).argmax(np.zeros((6, 3)))
    assert dict(zip(spans_of(3), labels.tolist(), strict=True)) == dict.fromkeys(spans_of(3), 0) | {(0, 3): 1}
    own = np.zeros((6, 3))
    own[[1, 4], 2] = 1.0  # either (0, 2) or (1, 3)
    labels = dict(zip(spans_of(3), Spans(["", "a", "b"]).argmax(own).tolist(), strict=True))
    assert (labels[0, 2], labels[1, 3]) == (0, 2)


def test_what_is_no_tree_is_refused():
    structure = Spans(["", "a"])
    with pytest.raises(ValueError, match=r"X\[0\] has 4 rows; expected n \(n \+ 1\) / 2"):
        structure.argmax(np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"brackets \(0, 2\) and \(1, 3\) cross"):
        CRF("spans").fit([np.eye(6)], [["", "a", "a", "", "a", ""]])
    with pytest.raises(ValueError, match="the whole sentence has no label"):
        CRF("spans").fit([np.eye(6)], [["", "a", "", "", "", ""]])
    with pytest.raises(ValueError, match="'root' parameter of Spans must be one of"):
        Spans(root="none")
    with pytest.raises(ValueError, match="the first of them ''"):
        Spans(["a", "b"])
    with pytest.raises(ValueError, match="'span_features' parameter of Spans must be texts with macros"):
        Spans(span_features=["%x[head]"])
    with pytest.raises(ValueError, match="'span_features' parameter of Spans must be 'default'"):
        Spans(span_features=None)
    with pytest.raises(ValueError, match="'constraints' parameter of CRF must be None"):
        CRF("spans", constraints="BIO").fit(X, Y)
    with pytest.raises(ValueError, match="pairwise needs pairs of labels"):
        CRF("spans").fit(X, Y).predict_proba(X, pairwise=True)
    with pytest.raises(ValueError, match="template must be None"):
        CRF("spans", template="U:%x[0,0]").fit(X, Y)
    with pytest.raises(ValueError, match=r"X\[0\] has 3 tokens and features for the spans of 2"):
        CRF("spans").fit([(list("abc"), np.eye(3))], [[(0, 2, "S")]])


@pytest.mark.parametrize("estimator", [CRF, StructuredSVM])
def test_trees_come_back_in_the_form_that_came_in(estimator):
    trees = [ParseTree.from_brackets(text) for text in Y]
    spans = [[(start, stop, label) for label, start, stop in tree.constituents()] for tree in trees]
    made = {}
    for name, y in (("brackets", Y), ("tree", trees), ("spans", spans)):
        made[name] = estimator("spans", C=10.0).fit(X, y)
        assert made[name].predict(X) == y
        assert made[name].score(X, y) == 1.0
        assert made[name].score(X, Y) == 1.0
        assert made[name].structure_.output == name
        np.testing.assert_array_equal(made[name].parameters_, made["brackets"].parameters_)
    assert made["tree"].classes_.tolist() == ["", "NP", "S", "S+VP", "VP"]
    asked = estimator(Spans(output="tree"), C=10.0).fit(X, Y)
    assert asked.predict(X) == trees
    nltk_like = [tree.to_nltk(NltkTree) for tree in trees]
    assert estimator("spans", C=10.0).fit(X, nltk_like).structure_.output == "nltk"
    assert made["brackets"].score(X[:2], ["(S (NNS dogs) (VP (VBP bark)))", Y[1]]) == pytest.approx(2 * 5 / 11)


def test_words_alone_arrays_and_functions():
    words = [[word for word, _ in sentence] for sentence in X]
    model = CRF("spans", C=10.0).fit(words, Y)
    assert str(model.predict(words)[1]) == "(S (NP (XX a) (XX dog)) (VP (XX barks)))"
    assert model.score(words, Y) == 1.0
    with pytest.raises(ValueError, match="X has tokens of 2 columns; the features were made for tokens of 1"):
        model.predict(X)
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(len(one) * (len(one) + 1) // 2, 30)) for one in X]
    arrays = CRF("spans", C=100.0, features="all").fit(rows, Y)
    assert arrays.predict(rows)[0] == [(0, 2, "S"), (0, 1, "NP"), (1, 2, "VP")]
    both = list(zip(X, rows, strict=True))
    assert CRF("spans", C=100.0, features="all").fit(both, Y).predict(both) == Y
    flat = CRF("spans", C=100.0, features="all").fit(np.vstack(rows), Y, lengths=[len(one) for one in rows])
    np.testing.assert_allclose(flat.parameters_, arrays.parameters_)

    def function(sentence, start, stop):
        return [f"S0:{sentence[start][1]}/{sentence[stop - 1][1]}", f"S1:{stop - start}"]

    texts = CRF(Spans(span_features=["%x[first,1]/%x[last,1]", "%n"]), tol=1e-9).fit(X, Y)
    called = CRF(Spans(span_features=function), tol=1e-9).fit(X, Y)
    assert texts.objective_ == pytest.approx(called.objective_, rel=1e-12)
    assert called.predict(X) == texts.predict(X)
    with pytest.raises(ValueError, match="a model file holds no code"):
        called.save("nowhere")


def test_only_attributes_of_brackets_have_columns():
    model = CRF(Spans(span_features=["%x[first]/%x[last]"])).fit(X, Y)
    assert "S0:dogs/bark" in model.model_.vocabulary
    assert "S0:dog/barks" not in model.model_.vocabulary  # no bracket


@pytest.mark.parametrize("settings", [{}, {"span_features": ["%x[first,1]", "%x[last,1]/%n"], "root": "any"}])
def test_files(settings, tmp_path):
    model = CRF(Spans(**settings), C=5.0).fit(X, Y)
    model.save(tmp_path / "model")
    for mmap in (False, True):
        again = dualfield.load(tmp_path / "model", mmap=mmap)
        assert again.structure_ == model.structure_
        assert repr(again.structure_) == repr(model.structure_)
        assert again.predict(X) == model.predict(X)
        for one, two in zip(again.predict_proba(X), model.predict_proba(X), strict=True):
            np.testing.assert_array_equal(one, two)
    if not settings:
        with pytest.raises(ValueError, match="X has tokens of 1 columns"):
            again.predict([["a", "b"]])


def test_a_model_without_brackets_to_learn_from_says_so():
    with pytest.raises(ValueError, match="at least one tree or bracket"):
        CRF("spans").fit(X, [None] * 4)


def test_questions_of_a_fitted_model():
    model = CRF("spans", C=2.0).fit(X, Y)
    every = model.k_best(X[1:2], 10_000)[0]
    assert sum(p for _, p in every) == pytest.approx(1.0, abs=1e-6)
    assert every[0][0] == model.predict(X[1:2])[0]
    node = model.predict_proba(X[1:2])[0]
    brackets = {tree: ParseTree.from_brackets(tree).constituents() for tree, _ in every}
    np_at = model.classes_.tolist().index("NP")
    mass = sum(p for tree, p in every if ("NP", 0, 2) in brackets[tree] and ("S", 0, 2) not in brackets[tree])
    assert node[1, np_at] == pytest.approx(mass, abs=1e-6)
    assert model.score_sequences(X[1:2], [Y[1]])[0] == pytest.approx(np.log(dict(every)[Y[1]]), abs=1e-8)
    assert all(tree in brackets for tree in model.sample(X[1:2], 5, random_state=0)[0])
    explained = model.explain(X[1])
    assert [token.token for token in explained.tokens] == ["a", "a dog", "a dog barks", "dog", "dog barks", "barks"]
    assert "1 (a dog): NP with probability" in str(explained)
    assert "not ''" in str(explained)
    for token in explained.tokens:
        assert sum(value for _, value in token.contributions) == pytest.approx(token.difference)


def test_known_brackets():
    model = CRF("spans", C=10.0).fit(X, Y)
    sentence = X[3]
    assert model.predict([sentence], known=[None]) == [Y[3]]
    assert model.predict([sentence], known=[Y[3]]) == [Y[3]]
    wanted = ParseTree.from_brackets(model.predict([sentence], known=[[(0, 3, "NP")]])[0])
    assert ("NP", 0, 3) in wanted.constituents()
    anything = ParseTree.from_brackets(model.predict([sentence], known=[[(1, 4, None)]])[0])
    assert any((start, stop) == (1, 4) for _, start, stop in anything.constituents())
    without = model.predict([sentence], known=[PartialTree([], forbidden=[(2, 5, None), (0, 2, "NP")])])[0]
    left = ParseTree.from_brackets(without).constituents()
    assert all((start, stop) != (2, 5) for _, start, stop in left)
    assert ("NP", 0, 2) not in left
    chain = ParseTree.from_brackets(model.predict([X[2]], known=[[(0, 1, "VP")]])[0])
    assert ("VP", 0, 1) in chain.constituents()  # as part of S+VP
    with pytest.raises(ValueError, match=r"known\[0\]: The brackets None \(0, 2\) and None \(1, 3\) cross"):
        model.predict([sentence], known=[[(0, 2, None), (1, 3, None)]])


def test_a_sentence_without_a_tree_is_told():
    model = CRF("spans", C=10.0).fit(X, Y)
    nothing = PartialTree([], forbidden=[(0, 3, None)])
    with pytest.raises(ValueError, match=r"known\[1\]: every tree has the forbidden bracket \(0, 3\)"):
        model.predict(X[:2], known=[None, nothing])


@pytest.mark.parametrize("solver", ["lbfgs", "auto"])
def test_partly_bracketed_training(solver):
    """The likelihood of what is known is that of all trees that agree with it."""
    partly = [Y[0], PartialTree([(0, 2, "NP")], forbidden=[(1, 3, None)]), Y[2], None, Y[3]]
    model = CRF("spans", C=1.0, solver=solver).fit([*X, X[3]], partly)
    structure, labels = model.structure_, model.classes_.tolist()
    loss = 0.0
    for sentence, given in zip([*X, X[3]], partly, strict=True):
        scores = model.model_.scores([sentence])
        known = model.model_.scores([sentence], known=[given])
        loss += float((structure.log_partition(scores) - structure.log_partition(known))[0])
    assert labels[0] == ""
    assert model.objective_ == pytest.approx(0.5 * (model.parameters_**2).sum() + loss, rel=1e-9)
    assert ("NP", 0, 2) in ParseTree.from_brackets(model.predict(X[1:2])[0]).constituents()


def test_warm_start_with_new_labels():
    model = CRF("spans", C=1.0, warm_start=True).fit(X[:2], Y[:2])
    before = model.classes_.tolist()
    model.set_params(max_iter=500).fit(X, Y)
    assert set(before) < set(model.classes_.tolist())
    again = CRF("spans", C=1.0).fit(X, Y)
    assert model.objective_ == pytest.approx(again.objective_, rel=1e-3)


@pytest.mark.parametrize("solver", ["perceptron", "passive_aggressive", "arow"])
def test_online_solvers_learn_the_trees(solver):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert CRF("spans", solver=solver).fit(X, Y).score(X, Y) > 0.8


def test_threads_give_the_same_bits():
    one, two = (CRF("spans", n_jobs=n_jobs, solver="lbfgs").fit(X, Y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.parameters_, two.parameters_)


def test_empty_sentences_go_along():
    model = CRF("spans", C=10.0).fit([[], *X], [None, *Y])
    assert model.predict([[], *X]) == [None, *Y]
