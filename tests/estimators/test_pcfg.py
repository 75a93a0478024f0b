"""Probabilistic grammars: counts, margins to the optimum that cvxpy finds, partly known trees, files."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone

import dualfield
from dualfield import CRF, DiscriminativePCFG
from dualfield.data import ParseTree, PartialTree
from dualfield.solvers import Simplicial, Status
from dualfield.structures import Chain, Grammar
from tests.reference.parts import Grammars

TREES = [
    "(S (NP (N b)) (VP (V c) (NP (NP (N b)) (PP (P d) (N b)))))",
    "(S (NP (N b)) (VP (V c) (NP (N b)) (PP (P d) (N b))))",
    "(S (NP (N b)) (VP (V c) (NP (N b) (N b)) (PP (P d) (N b))))",
    "(S (NP (N b) (N b)) (VP (V c) (NP (N b))))",
    "(S (NP (NP (N b)) (NP (N b))) (VP (V c) (NP (N b) (NP (N b) (N b)))))",
    "(NP (N b))",
]
X = [ParseTree.of(tree).tokens() for tree in TREES]


def rows_of(model):
    """Rules by parent."""
    rules = model.structure_.rules
    return [np.flatnonzero(rules.parents == parent) for parent in np.unique(rules.parents)]


def counted():
    return DiscriminativePCFG(eta=0.0).fit(X, TREES)


def test_counts_are_relative_frequencies():
    model = counted()
    probability = model.probabilities_
    n_np = sum(str(tree).count("(NP") for tree in TREES)
    assert probability["NP -> 'N'"] == pytest.approx(sum(tree.count("(NP (N b))") for tree in TREES) / n_np)
    assert probability["-> S"] == pytest.approx(5 / 6)
    theta = model.model_.parameters
    for row in rows_of(model):
        assert np.exp(theta[row]).sum() == pytest.approx(1.0)
    assert model.solver_ == "counting"
    assert model.dual_gap_ == 0.0
    assert not any(model.missing_mass_.values()) or max(model.missing_mass_.values()) < 1e-12


def test_probabilities_of_sentences_are_sums_over_trees():
    model = counted()
    shape = model.structure_.shape(X)
    table = Grammars(model.structure_, shape, model.structure_.n_labels)
    theta = model.model_.parameters
    want = [np.log(sum(np.exp(theta[table.shared(i, y)].sum()) for y in table.labellings(i))) for i in range(len(X))]
    np.testing.assert_allclose(model.score_samples(X), want, atol=1e-12)
    np.testing.assert_allclose(
        model.score_samples(X, TREES), [theta[table.shared(i, tuple(y))].sum() for i, y in enumerate(codes(model))]
    )
    brackets = [PartialTree([(0, 1, "NP")])] + [None] * 5
    some = model.score_samples(X, brackets)
    assert model.score_samples(X, TREES)[0] <= some[0] <= model.score_samples(X)[0] + 1e-12
    np.testing.assert_allclose(some[1:], model.score_samples(X)[1:])


def codes(model):
    shape = model.structure_.shape(X)
    found = shape.read_labels(TREES).codes
    return [found[a:b].tolist() for a, b in zip(shape.offsets[:-1], shape.offsets[1:], strict=True)]


def optimum(model, prior, eta, weights):
    """Minimise the enumerated objective over tables of logarithms."""
    grammar = model.structure_
    shape = grammar.shape(X)
    table = Grammars(grammar, shape, grammar.n_labels)
    n = grammar.n_cliques
    counts = np.zeros(n)
    truth = [tuple(y) for y in codes(model)]
    for i, y in enumerate(truth):
        np.add.at(counts, table.shared(i, y), weights[i])
    reference = counts.copy()
    if prior == "prob":
        for row in rows_of(model):
            reference[row] = counts[row] / counts[row].sum()
    theta = cp.Variable(n)
    # The divergence is 0 at the reference.
    start = sum(reference[row] @ np.log(reference[row] / reference[row].sum()) for row in rows_of(model))
    terms = [start - reference @ theta]
    for i, y in enumerate(truth):
        every, slopes, costs = table.labellings(i), [], []
        for labels in every:
            slope = np.zeros(n)
            np.add.at(slope, table.shared(i, labels), 1.0)
            np.add.at(slope, table.shared(i, y), -1.0)
            slopes.append(slope)
            costs.append(sum(a != b for a, b in zip(labels, y, strict=True)))
        terms.append(eta * weights[i] * cp.max(np.array(slopes) @ theta + np.array(costs, dtype=float)))
    rules = [cp.log_sum_exp(theta[row]) <= 0.0 for row in rows_of(model)]
    problem = cp.Problem(cp.Minimize(sum(terms)), [*rules, theta >= np.log(1e-11)])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@pytest.mark.parametrize("prior", ["prob", "count"])
@pytest.mark.parametrize("eta", [0.01, 0.3, 2.0])
def test_margins_reach_the_optimum(prior, eta):
    weights = np.array([1.0, 2.0, 1.0, 1.0, 0.5, 1.0])
    model = DiscriminativePCFG(eta=eta, prior=prior, tol=1e-7).fit(X, TREES, sample_weight=weights)
    best = optimum(model, prior, eta, weights)
    assert model.status_ is Status.CONVERGED
    assert model.objective_ >= best - 1e-5 * max(1.0, abs(best))
    assert model.objective_ - best <= model.dual_gap_ + 1e-5 * max(1.0, abs(best))
    assert model.dual_gap_ <= 2e-7 * max(abs(model.objective_), 1.0)
    theta = model.model_.parameters
    for row in rows_of(model):
        assert np.exp(theta[row]).sum() <= 1.0 + 1e-9


def hinge(model):
    """The sum of the margins that other trees lack to the true ones."""
    grammar, theta = model.structure_, model.model_.parameters
    table = Grammars(grammar, grammar.shape(X), grammar.n_labels)
    total = 0.0
    for i, y in enumerate(codes(model)):
        true = theta[table.shared(i, y)].sum()
        total += max(
            theta[table.shared(i, labels)].sum() - true + sum(a != b for a, b in zip(labels, y, strict=True))
            for labels in table.labellings(i)
        )
    return total


def test_margins_trade_likelihood_for_mistakes():
    losses = [hinge(DiscriminativePCFG(eta=eta, tol=1e-6).fit(X, TREES)) for eta in (0.0, 0.1, 1.0)]
    assert (np.diff(losses) < 1e-9).all()
    assert losses[-1] < 0.97 * losses[0]
    likelihood = [DiscriminativePCFG(eta=eta).fit(X, TREES).score_samples(X, TREES).sum() for eta in (0.0, 1.0)]
    assert likelihood[1] < likelihood[0]


def test_weights_are_repetitions():
    weights = np.array([2, 1, 3, 1, 1, 2])
    weighted = DiscriminativePCFG(eta=0.3, tol=1e-8).fit(X, TREES, sample_weight=weights)
    times = np.repeat(np.arange(len(X)), weights)
    repeated = DiscriminativePCFG(eta=0.3, tol=1e-8).fit([X[i] for i in times], [TREES[i] for i in times])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(weighted.model_.parameters, repeated.model_.parameters, atol=1e-3)


def test_files_and_warm_start(tmp_path):
    model = DiscriminativePCFG(eta=0.3, tol=1e-6).fit(X, TREES)
    model.save(tmp_path / "model")
    for mmap in (False, True):
        again = dualfield.load(tmp_path / "model", mmap=mmap)
        assert again.predict(X) == model.predict(X)
        assert again.probabilities_ == model.probabilities_
        assert again.structure_ == model.structure_
        assert again.n_completions_ == 0
    first = model.n_iter_
    model.set_params(warm_start=True).fit(X, TREES)
    assert model.n_iter_ <= first
    assert clone(model).get_params() == model.get_params()


def test_partly_known_trees():
    partly = [TREES[0], None, PartialTree([(2, 4, "NP")]), *TREES[3:]]
    model = DiscriminativePCFG(eta=0.0, smoothing=0.05).fit(X, partly)
    assert model.predict(X)[0] in TREES
    for row in rows_of(model):
        assert np.exp(model.model_.parameters[row]).sum() == pytest.approx(1.0)
    margins = DiscriminativePCFG(eta=0.1, smoothing=0.05).fit(X, partly)
    assert margins.n_completions_ >= 1
    # A CRF sums over what is not known.
    field = CRF(Grammar(output="brackets")).fit(X, partly)
    assert np.isnan(field.dual_gap_)
    assert len(field.predict(X)) == len(X)


def test_known_brackets():
    model = counted()
    free = model.predict(X[:1])[0]
    must = model.predict(X[:1], known=[[(2, 5, "NP")]])[0]
    must_not = model.predict(X[:1], known=[PartialTree([], forbidden=[(2, 5, None)])])[0]
    assert must == TREES[0]
    assert must_not == TREES[1]
    assert free in (must, must_not)
    p = model.predict_proba(X[:1])[0]
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    best = model.k_best(X[:1], 3)[0]
    assert best[0][0] == free
    assert sum(share for _, share in best) == pytest.approx(1.0)


def test_nltk_finds_the_same_probabilities():
    nltk = pytest.importorskip("nltk")
    model = counted()
    rules = model.structure_.rules
    names = [nltk.grammar.Nonterminal(name) for name in (*rules.symbols, "ROOT")]
    productions = []
    parts = zip(np.exp(model.model_.parameters), rules.parents.tolist(), strict=True)
    children = [
        *((names[b], names[c]) for _, b, c in rules.binary.T.tolist()),
        *((rules.terminals[t],) for t, _, _ in rules.lexical.T.tolist()),
        *((names[a],) for a in rules.roots.tolist()),
    ]
    for (probability, parent), right in zip(parts, children, strict=True):
        productions.append(nltk.grammar.ProbabilisticProduction(names[parent], right, prob=probability))
    parser = nltk.parse.ViterbiParser(nltk.grammar.PCFG(names[-1], productions))
    found = [next(iter(parser.parse([tag for _, tag in sentence]))).logprob() * np.log(2.0) for sentence in X]
    np.testing.assert_allclose(found, model.score_samples(X, model.predict(X)), rtol=1e-9)


def test_words_alone():
    model = DiscriminativePCFG(eta=0.0, structure=Grammar(tags="predicted", lexicon="seen")).fit(
        [[word for word, _ in sentence] for sentence in X], TREES
    )
    assert model.probabilities_["V -> 'c'"] == 1.0
    assert model.predict([["b", "c", "b"]]) == ["(S (NP (N b)) (VP (V c) (NP (N b))))"]
    words = CRF(Grammar(tags="predicted", word_features="default")).fit([[w for w, _ in one] for one in X], TREES)
    assert words.predict([["b", "c", "b"]]) == ["(S (NP (N b)) (VP (V c) (NP (N b))))"]
    assert words.score([[w for w, _ in one] for one in X], TREES) > 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior": "none"}, "'prior' parameter of DiscriminativePCFG must be one of"),
        ({"smoothing": -1.0}, "'smoothing' parameter of DiscriminativePCFG"),
        ({"eta": -1.0}, "'eta' parameter of DiscriminativePCFG"),
        ({"structure": "chain"}, "'structure' parameter of DiscriminativePCFG must be 'grammar' or a Grammar"),
        ({"structure": Chain(2)}, "'structure' parameter of DiscriminativePCFG must be 'grammar' or a Grammar"),
        ({"structure": Grammar(span_features="default")}, "must have no features"),
        ({"loss": "f1"}, "'loss' parameter of DiscriminativePCFG"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        DiscriminativePCFG(**settings).fit(X, TREES)


def test_rules_without_a_count_need_smoothing():
    grammar = Grammar.from_treebank(TREES)
    some = TREES[:4]
    labels = {label for tree in some for label in grammar.labels if f"({label} " in tree or not label}
    assert labels == set(grammar.labels)
    with pytest.raises(ValueError, match=r"every rule must have a count, .* 'NP -> .*' has none"):
        DiscriminativePCFG(eta=0.1, structure=grammar).fit(X[:4], some)
    model = DiscriminativePCFG(eta=0.1, structure=grammar, smoothing=0.1, solver=Simplicial()).fit(X[:4], some)
    assert min(model.probabilities_.values()) > 0.0


def test_an_unparseable_sentence_is_told():
    with pytest.raises(ValueError, match="no rule of the grammar has 'Q', the terminal of word 1"):
        counted().predict([[("b", "N"), ("?", "Q")]])
    with pytest.raises(ValueError, match="the grammar has no parse of its 2 words"):
        CRF("grammar").fit(X, TREES).predict([[("c", "V"), ("c", "V")]])
