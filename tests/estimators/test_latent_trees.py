"""Latent variables of parse trees, brackets that are not known and sub-states of labels, against all trees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from dualfield import CRF, LatentChain, LatentCRF, LatentStructuredSVM, StructuredSVM, load
from dualfield.data import ParseTree, PartialTree
from dualfield.models.latent.data import StateData
from dualfield.objectives.latent import Completion
from dualfield.solvers import StopRule
from dualfield.solvers.latent.cccp import CCCP
from dualfield.solvers.latent.cuts import InnerCuts
from dualfield.structures import Chain, Grammar
from dualfield.structures.parse_trees.ambiguity import check_one_derivation
from tests.reference.latent import best_bound, latent_objective
from tests.reference.latent_trees import rule_counts, state_trees

TREES = [
    "(S (NP (N a)) (VP (V b) (NP (NP (N a)) (PP (P c) (NP (N a))))))",
    "(S (NP (N a)) (VP (VP (V b) (NP (N a))) (PP (P c) (NP (N a)))))",
    "(S (NP (N a)) (VP (V b) (NP (N a))))",
]
AMBIGUOUS = ParseTree.from_brackets(TREES[0]).tokens()
X = [ParseTree.from_brackets(tree).tokens() for tree in TREES] + [AMBIGUOUS] * 3
# Of the last ones: nothing is known, a bracket, and one that may not be.
y = [*TREES, None, PartialTree([(2, 5, "NP")]), PartialTree([], forbidden=[(1, 3, "VP")])]
SPLITS = [{}, {"NP": 2}, {"NP": 2, "VP": 3}]


def wrong_spans(labels, truth):
    """How many labels of spans do not agree with what is known."""
    if isinstance(truth, str):
        true = {(one.start, one.stop): one.label for one in ParseTree.from_brackets(truth).constituents()}
        return sum(labels.get(span, "") != true.get(span, "") for span in labels.keys() | true.keys())
    required, forbidden = (truth.brackets, truth.forbidden) if truth is not None else ((), ())
    wrong = [labels.get((a, b), "") != label for a, b, label in required]
    return sum(wrong) + sum(labels.get((a, b), "") == label for a, b, label in forbidden)


def problem_of(sizes, C=1.0):
    base = StructuredSVM("grammar", C=C)
    return StateData.read(base, LatentChain(sizes or 1), X, y, None, None, hinge=True)


def enumerated(data, sizes):
    """For each example the features of all trees, their losses, and the features of those that agree with y."""
    plain, names, listed = data.data.structure, data.score_map.structure.rule_names, []
    for x, truth in zip(X, y, strict=True):
        trees = state_trees(plain, [tag for _, tag in x], sizes)
        features = np.array([rule_counts(tree, names) for tree in trees])
        losses = np.array([float(wrong_spans(tree.labels, truth)) for tree in trees])
        listed.append((features, losses, features[losses == 0.0]))
    return listed


@pytest.mark.parametrize("sizes", SPLITS)
def test_loss_and_completion_agree_with_all_trees(sizes):
    data = problem_of(sizes)
    listed, problem = enumerated(data, sizes), data.problem(0.0, 1)
    if not sizes:
        assert [len(own) for *_, own in listed] == [1, 1, 1, 2, 1, 1]
    for seed in range(3):
        flat = np.random.default_rng(seed).normal(size=listed[0][0].shape[1])
        w = data.score_map.pack(np.zeros(0), flat)
        loss, slope = problem.loss_and_gradient(w)
        assert loss == pytest.approx(sum((every @ flat + losses).max() for every, losses, _ in listed), abs=1e-11)
        worst = np.sum([every[(every @ flat + losses).argmax()] for every, losses, _ in listed], axis=0)
        np.testing.assert_allclose(data.score_map.unpack(slope).cliques, worst, atol=1e-12)
        completion = problem.complete(w)
        assert completion.at(w) == pytest.approx(sum((own @ flat).max() for *_, own in listed), abs=1e-11)
        soft = problem.complete(w, 0.7)
        assert soft.at(w) == pytest.approx(sum(0.7 * logsumexp(own @ flat / 0.7) for *_, own in listed), abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", SPLITS[:2])
def test_runs_never_rise_and_end_where_their_bound_is_least(sizes, seed):
    data = problem_of(sizes, C=2.0)
    listed, problem = enumerated(data, sizes), data.problem(0.0, 1)
    states = problem.start(np.random.RandomState(seed))
    end = CCCP(inner_tol=1e-7).solve(problem, InnerCuts(problem), Completion(states, problem.features(states)))
    assert end.trace.certified()
    assert np.diff(end.trace.objective).max(initial=0.0) <= 1e-9 * end.objective
    flat = data.score_map.unpack(end.parameters).cliques
    assert end.objective == pytest.approx(latent_objective(flat, 2.0, listed), rel=1e-9)
    rows = [own[(own @ flat).argmax()] for *_, own in listed]
    best, _ = best_bound(2.0, [(f, losses, row) for (f, losses, _), row in zip(listed, rows, strict=True)])
    assert best >= end.objective - end.gap - 1e-6 * abs(best)
    assert end.gap <= 1e-6 * end.objective


def test_the_first_convex_problem_against_cvxpy():
    data = problem_of({}, C=0.7)
    problem, names = data.problem(0.0, 1), data.score_map.structure.rule_names
    completion = problem.complete(np.zeros(problem.n_parameters))
    found = InnerCuts(problem).minimise(completion, None, StopRule(1e-9, 10_000), 0)
    parts = data.score_map.structure.parts_of(completion.states, data.data.nodes.shape)
    rows = [np.bincount(parts.shared[parts.owner == i], minlength=len(names)) for i in range(len(X))]
    listed = enumerated(data, {})
    best, _ = best_bound(0.7, [(f, losses, row) for (f, losses, _), row in zip(listed, rows, strict=True)])
    assert found.objective == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("sizes", SPLITS)
@pytest.mark.parametrize("solver", ["lbfgs", "em"])
@pytest.mark.filterwarnings("ignore:The latent variables do not improve")
def test_the_likelihood_and_probabilities_agree_with_all_trees(sizes, solver):
    base = CRF("grammar", C=2.0, tol=1e-4 if solver == "lbfgs" else 1e-2)
    model = LatentCRF(base, LatentChain(sizes or 1), n_restarts=1, random_state=0, solver=solver).fit(X, y)
    data = StateData.read(base, LatentChain(sizes or 1), X, y, None, None, hinge=False)
    flat = data.score_map.unpack(model.parameters_).cliques
    value = 0.5 * flat @ flat
    for features, _, own in enumerated(data, sizes):
        value += 2.0 * (logsumexp(features @ flat) - logsumexp(own @ flat))
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    if solver == "em":
        assert model.trace_.certified()
    trees = state_trees(data.data.structure, [tag for _, tag in AMBIGUOUS], sizes)
    scores = np.array([rule_counts(tree, data.score_map.structure.rule_names) @ flat for tree in trees])
    shares, labels = np.exp(scores - logsumexp(scores)), model.classes_.tolist()
    rows, at = np.zeros((15, len(labels))), {}
    for start in range(5):
        for stop in range(start + 1, 6):
            at[start, stop] = len(at)
    for share, tree in zip(shares, trees, strict=True):
        for span, row in at.items():
            rows[row, labels.index(tree.labels.get(span, ""))] += share
    (found,) = model.predict_proba([AMBIGUOUS])
    np.testing.assert_allclose(found, rows, atol=1e-9)
    # Predicted is the tree with the largest expected number of right labels.
    expected = [sum(rows[row, labels.index(tree.labels.get(span, ""))] for span, row in at.items()) for tree in trees]
    predicted = ParseTree.of(model.predict([AMBIGUOUS])[0])
    assert sum(
        rows[row, labels.index({(one.start, one.stop): one.label for one in predicted.constituents()}.get(span, ""))]
        for span, row in at.items()
    ) == pytest.approx(max(expected), abs=1e-9)


def test_without_substates_it_is_the_crf_of_partly_known_trees():
    base = CRF("grammar", C=2.0, tol=1e-9)
    latent = LatentCRF(base, LatentChain(1), n_restarts=1, random_state=0).fit(X, y)
    plain = CRF("grammar", C=2.0, tol=1e-9).fit(X, y)
    assert latent.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert latent.plain_objective_ is None
    np.testing.assert_allclose(latent.predict_proba(X)[0], plain.predict_proba(X)[0], atol=1e-3)


def test_trees_that_are_known_are_the_structural_svm():
    latent = LatentStructuredSVM(StructuredSVM("grammar", tol=1e-6), LatentChain(1), n_restarts=1, random_state=0)
    trees = [TREES[0], *TREES]  # more of one than of the other: otherwise weights are zero
    plain = StructuredSVM("grammar", tol=1e-6).fit([X[0], *X[:3]], trees)
    assert latent.fit([X[0], *X[:3]], trees).objective_ == pytest.approx(plain.objective_, rel=1e-5)


def in_pairs(n, seed):
    """A preposition phrase goes to the verb phrase, those behind it to the phrase before: rules alone cannot say so."""

    def noun(k):
        return "(NP (N a))" if not k else f"(NP (NP (N a)) (PP (P c) {noun(k - 1)}))"

    rng, trees = np.random.default_rng(seed), []
    for k in rng.integers(4, size=n):
        whole = "(VP (V b) (NP (N a)))"
        trees.append(f"(S {noun(0)} {whole if not k else f'(VP {whole} (PP (P c) {noun(k - 1)}))'})")
    return [ParseTree.from_brackets(tree).tokens() for tree in trees], trees


def test_substates_learn_what_rules_alone_cannot(tmp_path):
    (A, truth), (B, test) = in_pairs(30, 0), in_pairs(20, 1)
    assert CRF("grammar", C=10.0).fit(A, truth).predict(B) != test
    soft = LatentCRF(CRF("grammar", C=10.0), LatentChain({"NP": 2}), n_restarts=2, random_state=0).fit(A, truth)
    assert soft.predict(B) == test
    assert soft.score(B, test) == 1.0
    assert soft.objective_ < 0.2 * soft.plain_objective_
    hard = LatentStructuredSVM(StructuredSVM("grammar", C=10.0), LatentChain({"NP": 2}), init=soft.parameters_)
    assert hard.fit(A, truth).predict(B) == test
    # Of a tree the sub-states are shown behind the labels: a phrase behind a preposition has another one.
    hidden = ParseTree.of(hard.predict_latent(B)[int(np.argmax([len(x) for x in B]))])
    assert {one.label for one in hidden.constituents()} == {"S", "VP", "PP", "NP/0", "NP/1"}
    assert hard.predict_latent(B, test) == hard.predict_latent(B)
    assert hard.states_.predict(B) == hard.predict_latent(B)
    for model in (soft, hard):
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.predict(B) == test
        assert again.predict_latent(B) == model.predict_latent(B)


def test_completed_trees_agree_with_what_is_known(tmp_path):
    model = LatentStructuredSVM(StructuredSVM("grammar"), LatentChain(1), n_restarts=2, random_state=0).fit(X, y)
    completed = model.predict_latent(X, y)
    assert completed[:3] == TREES
    assert completed[4] == TREES[0]  # the only one with this bracket
    assert completed[5] == TREES[0]
    shape = model.states_.structure_.shape(X)
    codes = shape.read_labels(completed, model.states_.labels_).codes
    np.testing.assert_array_equal(np.concatenate(model.hidden_), codes)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(np.concatenate(load(tmp_path / "model").hidden_), codes)
    again = LatentStructuredSVM(StructuredSVM("grammar"), LatentChain(1), init=model.hidden_).fit(X, y)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-2)
    wrong = [row.copy() for row in model.hidden_]
    wrong[0][0] = 0
    with pytest.raises(ValueError, match="must have states that agree with y"):
        LatentStructuredSVM(StructuredSVM("grammar"), LatentChain(1), init=wrong).fit(X, y)
    none = [row.copy() for row in model.hidden_]
    none[3][:] = 0
    with pytest.raises(ValueError, match=r"must have labellings that are allowed\. Example 3 is not"):
        LatentStructuredSVM(StructuredSVM("grammar"), LatentChain(1), init=none).fit(X, y)


def test_brackets_without_a_grammar_are_hidden_too():
    base = StructuredSVM("spans", C=0.1, tol=1e-2)
    model = LatentStructuredSVM(base, LatentChain(1), n_restarts=1, random_state=0).fit(X, y)
    assert model.trace_.certified()
    (completed,) = model.predict_latent([AMBIGUOUS], [y[4]])
    assert (2, 5, "NP") in [(one.start, one.stop, one.label) for one in ParseTree.of(completed).constituents()]


@pytest.mark.parametrize("order", [1, 2])
def test_partly_labelled_chains(order):
    X = [[["a"], ["b"], ["a"]], [["b"], ["c"]], [["a"], ["c"]]]
    y = [["x", "y", "x"], [None, "z"], ["x", {"y", "z"}]]
    base = StructuredSVM(Chain(order=order), features="all", C=3.0)
    model = LatentStructuredSVM(base, LatentChain(1), n_restarts=2, random_state=0).fit(X, y)
    assert model.trace_.certified()
    assert model.predict(X)[2][0] == "x"
    data = StateData.read(base, LatentChain(1), X, y, None, None, hinge=True)
    problem, names, value = data.problem(0.0, 1), ["x", "y", "z"], 0.5 * model.parameters_ @ model.parameters_
    scores = data.score_map.scores(model.parameters_, data.data.nodes)
    for i, truth in enumerate(y):
        allowed = [{one} if isinstance(one, str) else set(names) if one is None else one for one in truth]
        every = np.stack(np.meshgrid(*[range(3)] * len(truth), indexing="ij"), axis=-1).reshape(-1, len(truth))
        costs = np.array([sum(names[k] not in one for k, one in zip(row, allowed, strict=True)) for row in every])
        mine = data.data.structure.score  # of one labelling after another, the others as they are
        found = []
        for row in every:
            codes = np.zeros(scores.n_nodes, dtype=np.int32)
            codes[scores.offsets[i] : scores.offsets[i + 1]] = row
            found.append(mine(scores, codes)[i])
        values = np.array(found)
        value += 3.0 * ((values + costs).max() - values[costs == 0].max())
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert problem.is_open


@pytest.mark.parametrize("tags", ["given", "predicted"])
@pytest.mark.parametrize("vertical", [1, 2])
def test_states_determine_the_derivation(tags, vertical):
    trees = [*TREES, "(NP (N a))"]
    grammar = Grammar.from_treebank(trees, tags=tags, vertical=vertical)
    label = np.repeat(np.arange(grammar.n_labels), [1] + [2] * (grammar.n_labels - 1))
    over = grammar.over_states(label)
    check_one_derivation(over.rules)
    origin = over.matched_cliques(grammar, label)
    assert set(origin.tolist()) == set(range(grammar.n_cliques))
    for name, at in zip(over.rule_names, origin.tolist(), strict=True):
        assert name.replace("/0", "").replace("/1", "") == grammar.rule_names[at]


@pytest.mark.parametrize(
    ("base", "latent", "message"),
    [
        (StructuredSVM("spans"), LatentChain(2), "n_substates=1 nothing is hidden but what y leaves open"),
        (StructuredSVM("grammar"), LatentChain({"": 2}), "must have 1 for the empty label"),
        (StructuredSVM("grammar", solver="flow_swap"), LatentChain(1), "where y is known only in part"),
        (StructuredSVM("grammar"), LatentChain({"QP": 2}), "has labels that y does not have"),
        (
            StructuredSVM(Grammar(tags="predicted")),
            LatentChain({"NP": 2}),
            "must have as many sub-states as the symbol",
        ),
        (StructuredSVM("grammar"), LatentChain(200), "million"),
    ],
)
def test_refused(base, latent, message):
    message = "rules of states, at most" if message == "million" else message
    with pytest.raises(ValueError, match=message):
        LatentStructuredSVM(base, latent, random_state=0).fit(X, y)


def test_em_starts_need_neighbours():
    with pytest.raises(ValueError, match="init='em' needs edges; a Grammar has none"):
        LatentStructuredSVM(StructuredSVM("grammar"), LatentChain(2), init="em").fit(X[:3], TREES)


def test_svm_says_what_takes_partly_known_trees():
    with pytest.raises(ValueError, match="Use LatentStructuredSVM"):
        StructuredSVM("grammar").fit(X, y)
