"""Training of conditional graphical models: each type of clique is the multiclass problem that it should be."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import ConditionalGraphicalModel, KernelLogisticRegression
from tests.reference.structured_svm import TIGHT


def words(seed: int = 0, n: int = 8) -> tuple[list[np.ndarray], list[list[str]]]:
    rng = np.random.default_rng(seed)
    y = [rng.integers(0, 3, size=rng.integers(2, 5)) for _ in range(n)]
    X = [np.eye(3)[codes] + 0.7 * rng.normal(size=(len(codes), 3)) for codes in y]
    return X, [["abc"[code] for code in codes] for codes in y]


def windows(X: list[np.ndarray], y: list[list[str]], size: int) -> tuple[np.ndarray, list[tuple[str, ...]]]:
    """Inputs and label tuples of all windows."""
    places = [(i, start) for i, row in enumerate(X) for start in range(len(row) - size + 1)]
    inputs = np.array([X[i][start : start + size].ravel() for i, start in places])
    return inputs, [tuple(y[i][start : start + size]) for i, start in places]


def crammer_singer(features: np.ndarray, truth: np.ndarray, C: np.ndarray) -> float:
    """The minimum of ½ ‖w‖² + Σ C_i max_o [1(o ≠ o_i) + <w, features_i,o − features_i,o_i>]; features (n, q, p)."""
    n, q, p = features.shape
    w, slack = cvxpy.Variable(p), cvxpy.Variable(n)
    constraints = []
    for i in range(n):
        cost = 1.0 - np.eye(q)[truth[i]]
        constraints.append(slack[i] >= cost + (features[i] - features[i, truth[i]]) @ w)
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + C @ slack), constraints)
    return float(problem.solve(**TIGHT))


def root(kernel: np.ndarray) -> np.ndarray:
    """Features whose inner products are the kernel values."""
    values, vectors = np.linalg.eigh(kernel)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def coded(tuples: list[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], np.ndarray]:
    seen = sorted(set(tuples))
    return seen, np.array([seen.index(one) for one in tuples])


@pytest.mark.parametrize("order", [0, 1])
def test_log_loss_is_kernel_logistic_regression_of_tuples(order: int) -> None:
    X, y = words()
    model = ConditionalGraphicalModel(order, loss="log", C=4.0, unseen="-inf", tol=1e-8).fit(X, y)
    inputs, tuples = windows(X, y, order + 1)
    one = model.clique_models_[order + 1, "shared"]
    peer = KernelLogisticRegression(gamma=8.0 / inputs.shape[1], C=4.0, fit_intercept=False, tol=1e-8)
    peer.fit(inputs, ["".join(t) for t in tuples])
    assert model.objective_ == pytest.approx(peer.objective_, rel=1e-7)
    assert 0 <= model.dual_gap_ <= 1e-8 * model.objective_
    table = model.clique_scores(X)[order]
    np.testing.assert_allclose(table.scores, peer.predict_log_proba(inputs), atol=1e-4)
    names = ["".join(model.classes_[t]) for t in table.tuples]
    assert names == peer.classes_.tolist()
    assert one.n_cliques == len(inputs)


def test_two_tuples_are_a_softmax_too() -> None:
    X, y = words()
    y = [["a" if label == "a" else "b" for label in row] for row in y]
    model = ConditionalGraphicalModel(0, loss="log", C=2.0, unseen="-inf", tol=1e-8).fit(X, y)
    inputs, tuples = windows(X, y, 1)
    peer = KernelLogisticRegression(gamma=8.0 / 3, C=4.0, fit_intercept=False, tol=1e-8).fit(inputs, np.ravel(tuples))
    assert model.objective_ == pytest.approx(0.5 * peer.objective_, rel=1e-6)
    np.testing.assert_allclose(np.concatenate(model.predict_proba(X)), peer.predict_proba(inputs), atol=1e-4)


def test_squared_loss_is_kernel_ridge() -> None:
    X, y = words()
    model = ConditionalGraphicalModel(1, loss="squared", C=3.0, unseen=-1.0).fit(X, y)
    inputs, tuples = windows(X, y, 2)
    seen, truth = coded(tuples)
    peer = KernelRidge(alpha=1 / 3.0, kernel="rbf", gamma=8.0 / 6).fit(inputs, np.eye(len(seen))[truth])
    np.testing.assert_allclose(model.clique_scores(X)[1].scores, peer.predict(inputs), atol=1e-9)
    residual = np.eye(len(seen))[truth] - peer.predict(inputs)
    value = 0.5 * np.vdot(peer.dual_coef_, peer.predict(inputs)) + 1.5 * np.square(residual).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.dual_gap_ <= 1e-9 * value


@pytest.mark.parametrize("order", [0, 1])
def test_hinge_is_that_of_crammer_and_singer(order: int) -> None:
    X, y = words(n=5)
    weights = np.array([1.0, 0.5, 2.0, 0.0, 1.0])
    model = ConditionalGraphicalModel(order, C=2.0, unseen="-inf", tol=1e-6).fit(X, y, weights)
    kept = np.flatnonzero(weights)
    X, y = [X[i] for i in kept], [y[i] for i in kept]
    inputs, tuples = windows(X, y, order + 1)
    seen, truth = coded(tuples)
    half, q = root(rbf_kernel(inputs, gamma=8.0 / inputs.shape[1])), len(seen)
    features = np.einsum("ip,oc->iocp", half, np.eye(q)).reshape(len(half), q, -1)
    each = np.concatenate([np.full(len(row) - order, 2.0 * weights[i]) for i, row in zip(kept, X, strict=True)])
    best = crammer_singer(features, truth, each)
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    assert model.objective_ - model.dual_gap_ <= best * (1 + 1e-7)


def test_tied_features_are_trained_over_the_seen_tuples() -> None:
    X, y = words(n=5)
    model = ConditionalGraphicalModel(1, C=2.0, features="tied", unseen="-inf", tol=1e-6).fit(X, y)
    rows = np.concatenate(X)
    half = root(rbf_kernel(rows, gamma=8.0 / 3))
    first = np.concatenate([[0], np.cumsum([len(row) for row in X])])
    places = [(first[i] + t, first[i] + t + 1) for i, row in enumerate(X) for t in range(len(row) - 1)]
    _, tuples = windows(X, y, 2)
    seen, truth = coded(tuples)
    features = np.zeros((len(places), len(seen), 2, 3, half.shape[1]))
    for i, place in enumerate(places):
        for o, labels in enumerate(seen):
            for slot in range(2):
                features[i, o, slot, "abc".index(labels[slot])] = half[place[slot]]
    best = crammer_singer(features.reshape(len(places), len(seen), -1), truth, np.full(len(places), 2.0))
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    # Scores are sums over the two nodes: every swap of a label costs the same whatever the other label is.
    one = model.clique_models_[2, "shared"]
    scores = model.clique_scores(X)[1].scores
    expected = np.zeros_like(scores)
    for slot in range(2):
        inputs = rows[[place[slot] for place in places]]
        each = rbf_kernel(inputs, one.points, 8.0 / 3) @ one.coefficients[:, 3 * slot : 3 * slot + 3]
        expected += each[:, one.tuples[:, slot]]
    np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_types_are_independent_problems() -> None:
    X, y = words(n=12)
    model = ConditionalGraphicalModel(0, loss="squared", tying="position", unseen=0.0).fit(X, y)
    assert model.objective_ == pytest.approx(sum(one.objective for one in model.clique_models_.values()))
    for position in range(3):
        alone = [row[position : position + 1] for row in X if len(row) > position]
        labels = [row[position : position + 1] for row in y if len(row) > position]
        peer = ConditionalGraphicalModel(0, loss="squared", unseen=0.0).fit(alone, labels)
        one = model.clique_models_[1, position]
        assert one.n_cliques == len(alone)
        assert one.objective == pytest.approx(peer.objective_)
        np.testing.assert_allclose(one.coefficients, peer.clique_models_[1, "shared"].coefficients)


@pytest.mark.parametrize(("gamma", "value"), [("clique", 8 / 6), ("auto", 1 / 6), ("scale", None), (0.3, 0.3)])
def test_gamma(gamma: float | str, value: float | None) -> None:
    X, y = words()
    inputs, _ = windows(X, y, 2)
    kernel = (
        ConditionalGraphicalModel(1, loss="squared", unseen=0.0, gamma=gamma)
        .fit(X, y)
        .clique_models_[2, "shared"]
        .kernel
    )
    assert kernel.gamma == pytest.approx(1 / (6 * inputs.var()) if value is None else value)


def test_a_type_with_one_tuple_needs_no_training() -> None:
    X, y = [np.eye(2)[:, :1], np.eye(2)[::-1, :1]], [["a", "b"], ["a", "b"]]
    model = ConditionalGraphicalModel(1, loss="log", unseen="-inf").fit(X, y)
    assert model.objective_ == 0.0
    assert model.predict([np.zeros((2, 1))]) == [["a", "b"]]
