"""CRFs on graphs that are too wide: the relaxed optimum, gaps that hold, bounds of predictions, and what is refused."""

import cvxpy as cp
import numpy as np
import pytest

import dualfield
from dualfield import CRF, LatentCRF, LatentStructuredSVM, StructuredSVM, _native
from dualfield.losses import Loss
from dualfield.models.training_data import read_training_data
from dualfield.objectives import Objective
from dualfield.objectives.latent_states import LatentChain
from dualfield.solvers import LBFGS, BlockDual, StopRule
from dualfield.structures import Graph
from tests.structures.test_graph import grid
from tests.structures.test_relaxed_graph import attached

K = 2


class Coarse(Graph):
    """Ends after one sweep: upper bounds and beliefs are far from each other."""

    def native(self, shape, *, with_edges=False, with_ends=False):
        return _native.RelaxedGraphStructure(**self._native_arguments(shape, with_edges), tolerance=0.0, most_sweeps=1)

    def _like(self, n_labels, n_types, allowed):
        return Coarse(n_labels, n_types, allowed, inference="trw")


def drawn(n_examples, height, width, seed=0):
    """Pictures with some structure, labelled 0 or 1."""
    rng = np.random.default_rng(seed)
    edges, X, y = grid(height, width), [], []
    for _ in range(n_examples):
        truth = np.repeat(np.arange(width) >= rng.integers(1, width), height).reshape(width, height).T.ravel()
        truth = (truth ^ (rng.random(height * width) < 0.15)).astype(int)
        x = truth + rng.normal(size=height * width)
        X.append((np.column_stack([x, np.ones(height * width)]), edges))
        y.append(truth)
    return X, y


def objective_of(model, X, y, structure=None):
    """The objective that a model minimises, with its structure or another one."""
    settings = CRF(**{**model.get_params(), **({} if structure is None else {"structure": structure})})
    data = read_training_data(settings, X, y, None, None, hinge=False)
    return Objective(data.score_map, data.examples, Loss(float(model.temperature)))


def relaxed_optimum(X, y, C):
    """The dual, by a solver for cones; its entropy is that of two forests, node by node given its neighbours before.

    sum_v H_v - (1/2) sum_e I_e = sum_v (1 - n_v / 2) H_v + (1/2) sum_e H(t | s), where n_v edges lead to v.
    """
    value, node_weights, pair_weights = 0.0, 0.0, 0.0
    constraints = []
    for (nodes, edges), truth in zip(X, y, strict=True):
        mu = cp.Variable((len(nodes), K), nonneg=True)
        pairs = [cp.Variable((K, K), nonneg=True) for _ in edges]
        constraints.append(cp.sum(mu, axis=1) == 1)
        into = np.bincount(edges[:, 1], minlength=len(nodes))
        entropy = cp.sum(cp.multiply((1.0 - into / 2.0)[:, None], cp.entr(mu)))
        seen = np.zeros((K, K))
        for (s, t), pair in zip(edges.tolist(), pairs, strict=True):
            constraints += [cp.sum(pair, axis=1) == mu[s], cp.sum(pair, axis=0) == mu[t]]
            before = cp.reshape(mu[s], (K, 1), order="C") @ np.ones((1, K))
            entropy -= 0.5 * cp.sum(cp.rel_entr(pair, before))
            seen[truth[s], truth[t]] += 1.0
        value += C * entropy
        node_weights += C * ((np.eye(K)[truth] - mu).T @ nodes)
        pair_weights += C * (seen - sum(pairs))
    penalty = 0.5 * (cp.sum_squares(node_weights) + cp.sum_squares(pair_weights))
    problem = cp.Problem(cp.Maximize(value - penalty), constraints)
    return problem.solve(solver=cp.CLARABEL)


@pytest.fixture(scope="module")
def known():
    X, y = drawn(3, 4, 4)
    return X, y, relaxed_optimum(X, y, 1.0)


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "auto"])
def test_reaches_the_relaxed_optimum(known, solver):
    X, y, optimum = known
    model = CRF(Graph(inference="trw"), features="all", solver=solver, tol=1e-7).fit(X, y)
    assert model.relaxation_ == "trw"
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    assert model.dual_gap_ <= 1.01e-7 * model.objective_
    assert model.objective_ - model.dual_gap_ <= optimum * (1.0 + 1e-6)
    exact = objective_of(model, X, y, Graph(inference="exact")).value(model.parameters_)
    assert exact < model.objective_
    assert exact >= CRF(Graph(inference="exact"), features="all", tol=1e-7).fit(X, y).objective_ * (1.0 - 1e-6)


def test_gaps_hold_at_any_weights_and_accuracy(known):
    """The entropy is that of the beliefs: with that of the bound above them the gap would be too small."""
    X, y, optimum = known
    exact = objective_of(CRF(Graph(inference="exact"), features="all"), X, y)
    for structure in (Graph(inference="trw"), Coarse(inference="trw")):
        objective = objective_of(CRF(structure, features="all"), X, y)
        found = LBFGS().solve(objective, StopRule(1e-6, max_passes=200.0)).parameters
        rng = np.random.default_rng(0)
        for scale in (0.0, 0.1, 1.0, 5.0):
            w = found + scale * rng.normal(size=found.size)
            value, gap = objective.certify(w)
            assert value - gap <= optimum * (1.0 + 1e-6) <= value * (1.0 + 2e-6)
            assert exact.value(w) <= value * (1.0 + 1e-12)
    loss, gradient, magnitude, slack = objective.evaluate(found)
    assert slack > 1e-3
    value, gap = objective.gap(found, loss, gradient, magnitude)  # as if there were no slack
    assert value - gap > optimum * (1.0 + 1e-5)


@pytest.mark.parametrize("solver", [BlockDual(), LBFGS()])
def test_coarse_inference_is_told_by_the_gap(known, solver):
    X, y, optimum = known
    objective = objective_of(CRF(Coarse(inference="trw"), features="all"), X, y)
    found = solver.solve(objective, StopRule(1e-9, max_passes=1000.0))
    assert found.objective >= optimum * (1.0 - 1e-6)
    assert found.objective - found.gap <= optimum * (1.0 + 1e-6)
    assert found.gap >= found.objective - optimum - 1e-6


def test_trees_are_trained_exactly():
    rng = np.random.default_rng(0)
    edges = np.array([(0, t) for t in range(1, 6)] + [(3, 6), (6, 7)])
    X = [(rng.normal(size=(8, 3)), edges) for _ in range(6)]
    y = [rng.integers(3, size=8) for _ in X]
    for settings in ({}, {"l1_ratio": 0.3}, {"cost": "hamming", "temperature": 0.5}, {"kernel": "rbf"}):
        exact, relaxed = (CRF(Graph(inference=how), tol=1e-8, **settings).fit(X, y) for how in ("exact", "trw"))
        assert relaxed.relaxation_ == "trw"
        assert exact.relaxation_ is None
        assert relaxed.objective_ == pytest.approx(exact.objective_, rel=1e-7)


def test_the_start_is_sure_of_nodes_only():
    """Sure of every part, entropies vanish, tiny steps are taken, and passes are many."""
    rng = np.random.default_rng(0)
    edges = np.array([(a, b) for a in range(6) for b in range(a)])
    taste = rng.normal(size=(4, 2))
    nodes = [rng.normal(size=(6, 4)) for _ in range(60)]
    y = [np.argmax(x @ taste + rng.gumbel(size=(6, 2)), axis=1) for x in nodes]
    model = CRF(Graph(inference="trw"), C=0.1, solver="block_dual", tol=1e-5, max_iter=30)
    model.fit([(x, edges) for x in nodes], y)
    assert model.dual_gap_ <= 1e-5 * model.objective_


def test_hubs_and_costs():
    rng = np.random.default_rng(2)
    edges = attached(rng, 14, 2)
    X = [(rng.normal(size=(14, 3)), edges) for _ in range(8)]
    y = [rng.integers(3, size=14) for _ in X]
    fits = [
        CRF(Graph(inference="trw"), solver=name, tol=1e-6, cost="hamming").fit(X, y) for name in ("block_dual", "lbfgs")
    ]
    low, high = sorted(one.objective_ for one in fits)
    assert high - low <= 2e-6 * high
    assert fits[0].objective_ >= CRF(Graph(inference="exact"), tol=1e-6, cost="hamming").fit(X, y).objective_


def test_predictions_have_bounds(tmp_path):
    X, y = drawn(8, 5, 6)
    model = CRF(Graph(inference="trw")).fit(X, y)
    labels, bounds = model.predict(X, return_bound=True)
    assert bounds.score.shape == bounds.bound.shape == bounds.exact.shape == (8,)
    assert (bounds.score <= bounds.bound).all()
    assert bounds.exact.any()
    exact = CRF(Graph(inference="exact")).fit(X, y)
    _, same = exact.predict(X, return_bound=True)
    assert same.exact.all()
    # The best labelling under the weights of the relaxation is not above the bound.
    scores = model.decision_scores(X)
    top = Graph(K, inference="exact").log_partition(scores, temperature=0.0)
    assert (top <= bounds.bound + 1e-9).all()
    np.testing.assert_allclose(top[bounds.exact], bounds.score[bounds.exact], rtol=1e-9)
    assert [one.tolist() for one in model.predict(X)] == [one.tolist() for one in labels]
    model.save(tmp_path / "model")
    loaded = dualfield.load(tmp_path / "model")
    assert loaded.relaxation_ == "trw"
    assert loaded.structure_.inference == "trw"
    assert [one.tolist() for one in loaded.predict(X)] == [one.tolist() for one in labels]
    np.testing.assert_array_equal(np.concatenate(loaded.beliefs(X)), np.concatenate(model.beliefs(X)))


def test_auto_trains_exactly_what_it_can_and_asks_exactly_what_it_may():
    X, y = drawn(6, 5, 5)
    wide = CRF(Graph(budget=500), tol=1e-6).fit(X, y)
    narrow = CRF(Graph(), tol=1e-6).fit(X, y)
    assert (wide.relaxation_, narrow.relaxation_) == ("trw", None)
    assert wide.objective_ == CRF(Graph(inference="trw"), tol=1e-6).fit(X, y).objective_
    small = [(X[0][0][:2], np.array([(0, 1)]))]
    np.testing.assert_allclose(wide.predict_proba(small)[0].sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="predict_proba needs exact answers: the beliefs of inference='trw' are not"):
        wide.predict_proba(X)


def test_what_a_relaxation_cannot_do_is_refused():
    X, y = drawn(4, 4, 4)
    model = CRF(Graph(inference="trw")).fit(X, y)
    for ask, message in (
        (lambda: model.predict_proba(X), "predict_proba needs exact answers"),
        (lambda: model.predict_marginals(X), "predict_proba needs exact answers"),
        (lambda: model.score_sequences(X, y), "score_sequences needs exact answers"),
        (lambda: model.k_best(X, 2), "k_best needs exact answers"),
        (lambda: model.sample(X), "sample needs exact answers"),
        (lambda: model.explain(X[0]), "needs exact answers"),
        (
            lambda: StructuredSVM(Graph(inference="trw"), rescaling="slack").fit(X, y),
            "StructuredSVM needs exact inference: rescaling='slack'",
        ),
        (
            lambda: StructuredSVM(Graph(inference="trw"), kernel="rbf").fit(X, y),
            "StructuredSVM needs exact inference: with a kernel",
        ),
        (
            lambda: CRF(Graph(inference="trw")).fit(X, [[None, *one[1:].tolist()] for one in y]),
            "CRF needs exact inference: the likelihood of partly labelled y",
        ),
        (
            lambda: LatentStructuredSVM(StructuredSVM(Graph(inference="trw")), LatentChain(2)).fit(X, y),
            "needs exact inference",
        ),
        (
            lambda: LatentCRF(CRF(Graph(inference="trw")), LatentChain(2)).fit(X, y),
            "LatentChain needs exact inference",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
