"""Structural SVMs trained by maximum flow: to the optimum of the linear programme, exact where pairs attract."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.structures import Graph, grid_edges, max_flow
from tests.estimators.test_relaxed_crf import drawn
from tests.structures.test_relaxed_graph import irregular, local_polytope

FLOW = Graph(inference="max_flow")


def frustrated(n_examples, seed=0):
    """Dense graphs whose neighbours differ more often than not, which not all pairs of a triangle can."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_examples):
        edges, truth = irregular(rng, 6, 0.8), rng.permutation(6) % 2
        X.append((np.column_stack([truth + rng.normal(size=6), np.ones(6)]), edges))
        y.append(truth)
    return X, y


def relaxed_optimum(X, y, C):
    """Minimise the hinge over the local polytope, whose maximum is written as the minimum of its dual.

    max over A mu = b, mu >= 0 of <theta, mu> is the min over free lambda of <b, lambda> with A' lambda >= theta.
    """
    node_weights, pair_weights = cp.Variable((2, 2)), cp.Variable((2, 2))
    losses, constraints = 0.0, []
    for (nodes, edges), truth in zip(X, y, strict=True):
        n = len(nodes)
        matrix, right = local_polytope(edges, n, 2)
        multipliers = cp.Variable(len(right))
        scores, wrong = nodes @ node_weights.T, 1.0 - np.eye(2)[truth]
        constraints.append(matrix.T.tocsr()[: 2 * n] @ multipliers >= cp.vec(scores + wrong, order="C"))
        for e in range(len(edges)):
            rows = matrix.T.tocsr()[2 * n + 4 * e : 2 * n + 4 * e + 4]
            constraints.append(rows @ multipliers >= cp.vec(pair_weights, order="C"))
        seen = np.zeros((2, 2))
        np.add.at(seen, (truth[edges[:, 0]], truth[edges[:, 1]]), 1.0)
        true = cp.sum(cp.multiply(scores, np.eye(2)[truth])) + cp.sum(cp.multiply(pair_weights, seen))
        losses += C * (right @ multipliers - true)
    penalty = 0.5 * (cp.sum_squares(node_weights) + cp.sum_squares(pair_weights))
    return cp.Problem(cp.Minimize(penalty + losses), constraints).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("solver", ["auto", "frank_wolfe", "labelling_set", "simplicial"])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_the_gap_holds_for_the_linear_programme(C, solver):
    X, y = frustrated(4)
    best = relaxed_optimum(X, y, C)
    tol = {"frank_wolfe": 5e-2, "labelling_set": 1e-3}.get(solver, 1e-6)
    model = StructuredSVM(FLOW, features="all", C=C, tol=tol, solver=solver).fit(X, y)
    assert model.relaxation_ == "max_flow"
    assert best <= model.objective_ + 1e-6 * best
    assert model.objective_ - model.dual_gap_ <= best + 1e-6 * best
    assert model.dual_gap_ <= tol * model.objective_
    exact = StructuredSVM(Graph(inference="exact"), features="all", C=C, tol=1e-6).fit(X, y)
    assert exact.objective_ < 0.999 * best


@pytest.mark.parametrize("data", [frustrated, lambda n: drawn(n, 3, 3)])
def test_the_gap_holds_where_integers_are_coarse(data, monkeypatch):
    """What rounding takes from the flow is slack: the bound is above the loss, and the gap knows."""
    monkeypatch.setattr(max_flow, "_BITS", 7)
    monkeypatch.setattr(max_flow, "_MOST_ROUNDS", 1)
    X, y = data(3)
    best = relaxed_optimum(X, y, 1.0)
    with pytest.warns(ConvergenceWarning):
        model = StructuredSVM(FLOW, features="all", tol=1e-6, max_iter=50).fit(X, y)
    assert model.relaxation_ == "max_flow"
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-7)
    assert best <= model.objective_
    assert 1e-6 * best < model.dual_gap_ < 0.1 * best


@pytest.mark.parametrize("C", [0.03, 1.0])
def test_pairs_that_attract_are_trained_exactly(C):
    X, y = drawn(5, 5, 6)
    flow, exact = (
        StructuredSVM(Graph(inference=name), C=C, tol=1e-7, solver="cutting_plane").fit(X, y)
        for name in ("max_flow", "exact")
    )
    assert (flow.relaxation_, exact.relaxation_) == (None, None)
    assert flow.objective_ == pytest.approx(exact.objective_, rel=2e-7)
    np.testing.assert_allclose(flow.parameters_, exact.parameters_, atol=1e-3)
    labels, bounds = flow.predict(X, return_bound=True)
    assert bounds.exact.all()
    assert [one.tolist() for one in labels] == [one.tolist() for one in flow.predict(X)]
    assert sum((a == b).sum() for a, b in zip(labels, exact.predict(X), strict=True)) >= 148  # of 150


def test_features_of_edges():
    """Own scores of edges, and images with two types of them."""
    rng = np.random.default_rng(0)
    edges, types = grid_edges(4, 5)
    X, y = [], []
    for _ in range(6):
        truth = (np.arange(20) % 5 >= rng.integers(1, 5)).astype(int)
        light = truth + rng.normal(scale=0.5, size=20)
        contrast = np.abs(light[edges[:, 0]] - light[edges[:, 1]])[:, None]
        X.append((np.column_stack([light, np.ones(20)]), edges, types, contrast))
        y.append(truth)
    flow, exact = (StructuredSVM(Graph(inference=name), tol=1e-6).fit(X, y) for name in ("max_flow", "exact"))
    assert flow.objective_ == pytest.approx(exact.objective_, rel=2e-6)
    assert flow.score(X, y) == pytest.approx(exact.score(X, y), abs=0.01)


def test_models_are_kept_in_files(tmp_path):
    X, y = frustrated(3)
    model = StructuredSVM(FLOW).fit(X, y)
    model.save(tmp_path / "model")
    loaded = dualfield.load(tmp_path / "model")
    assert (loaded.relaxation_, loaded.structure_.inference) == (model.relaxation_, "max_flow")
    assert [one.tolist() for one in loaded.predict(X)] == [one.tolist() for one in model.predict(X)]


def test_what_flows_cannot_do_is_refused():
    X, y = frustrated(3)
    model = StructuredSVM(FLOW).fit(X, y)
    three = [np.arange(6) % 3 for _ in y]
    for ask, message in (
        (lambda: CRF(FLOW).fit(X, y), "CRF needs sums over labellings: inference='max_flow' finds best labellings"),
        (lambda: StructuredSVM(FLOW, kernel="rbf").fit(X, y), "StructuredSVM needs exact inference: with a kernel"),
        (lambda: StructuredSVM(FLOW).fit(X, three), "best points for two labels only. Got 3. Train with"),
        (lambda: StructuredSVM(FLOW, solver="sgd").fit(X, y), "are not found by native code"),
        (lambda: model.calibrate(X, y), "knows no sums over labellings. Use inference='exact'"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
