"""Data that must just work: duplicates, contradictions, rare classes, tiny and huge C, two points."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import KernelLogisticRegression
from dualfield.solvers import Status
from tests.estimators.problems import GAMMA, SOLVERS, clouds, rounding
from tests.reference import kernel_logistic as reference


def certify(model, best, tol):
    """The optimum is where the model says, and near enough."""
    slack = rounding(tol) * best.objective
    assert model.dual_gap_ <= tol * (model.objective_ - model.dual_gap_)
    assert model.objective_ - model.dual_gap_ <= best.objective + slack
    assert best.objective <= model.objective_ + slack


def solve(X, y, C):
    return reference.solve(rbf_kernel(X, gamma=GAMMA), y, C, True)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("bias", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_c_over_eight_decades(n_classes, C, bias, tol):
    problem = clouds(n_classes)
    model = KernelLogisticRegression(gamma=GAMMA, C=C, fit_intercept=bias, tol=tol).fit(problem.X, problem.y)
    certify(model, problem.optimum(C, bias), tol)
    assert model.status_ == Status.CONVERGED


# Not here: "smo" on many classes and "lbfgs" at large C, where they are known to be slow.
@pytest.mark.parametrize(
    ("solver", "n_classes", "C"),
    [(solver, k, C) for solver in ("working_set", "newton", "online") for k in (2, 3) for C in (1e-4, 1e4)]
    + [("smo", 2, 1e-4), ("smo", 2, 1e4), ("smo", 3, 1e-4), ("lbfgs", 2, 1e-4), ("lbfgs", 3, 1e-4)],
)
def test_extreme_c_with_each_solver(solver, n_classes, C):
    problem = clouds(n_classes)
    model = KernelLogisticRegression(gamma=GAMMA, C=C, solver=solver).fit(problem.X, problem.y)
    certify(model, problem.optimum(C, True), 1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"lbfgs"}))  # large C again
def test_points_given_many_times_with_contradicting_labels(solver, n_classes):
    problem = clouds(n_classes, n=12)
    X = np.repeat(problem.X, 5, axis=0)
    y = np.arange(60) % n_classes
    model = KernelLogisticRegression(gamma=GAMMA, C=100.0, solver=solver, tol=1e-6, random_state=0).fit(X, y)
    certify(model, solve(X, y, 100.0), 1e-6)
    # A point that was seen equally often with every label says nothing.
    if n_classes == 2:
        one = KernelLogisticRegression(gamma=GAMMA, C=100.0, solver=solver, tol=1e-6, random_state=0)
        proba = one.fit(np.repeat(problem.X, 2, axis=0), np.arange(24) % 2).predict_proba(problem.X)
        np.testing.assert_allclose(proba, 0.5, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_class_with_one_member(solver, n_classes):
    problem = clouds(n_classes)
    keep = np.flatnonzero((problem.y != 0) | (np.arange(problem.n) == 0))
    X, y = problem.X[keep], problem.y[keep]
    model = KernelLogisticRegression(gamma=GAMMA, solver=solver, tol=1e-6, random_state=0).fit(X, y)
    best = solve(X, y, 1.0)
    certify(model, best, 1e-6)
    np.testing.assert_allclose(model.predict_proba(X), best.proba, atol=5e-3)


@pytest.mark.parametrize("bias", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_as_many_points_as_classes(n_classes, solver, bias):
    X, y = np.arange(n_classes, dtype=float)[:, None], np.arange(n_classes)
    model = KernelLogisticRegression(gamma=1.0, solver=solver, fit_intercept=bias, tol=1e-6, random_state=0).fit(X, y)
    certify(model, reference.solve(rbf_kernel(X, gamma=1.0), y, 1.0, bias), 1e-6)
    assert model.predict(X).tolist() == y.tolist()


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_one_feature_and_a_constant_one(kernel):
    problem = clouds(3)
    for X in (problem.X[:, :1], np.column_stack([problem.X, np.full(problem.n, 3.0)])):
        model = KernelLogisticRegression(kernel).fit(X, problem.y)
        assert model.dual_gap_ <= 1e-3 * (model.objective_ - model.dual_gap_)
        assert model.score(X, problem.y) > 0.4


@pytest.mark.parametrize("solver", SOLVERS)
def test_only_constant_features(solver):
    """Nothing can be told apart: the intercept learns how frequent the classes are, and gamma='scale' is defined."""
    X, y = np.full((30, 2), 1.5), np.array([0] * 15 + [1] * 10 + [2] * 5)
    model = KernelLogisticRegression(solver=solver, tol=1e-6, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:1]), [[1 / 2, 1 / 3, 1 / 6]], atol=2e-3)


def test_a_kernel_of_zeros():
    y = np.array([0] * 15 + [1] * 5)
    model = KernelLogisticRegression("precomputed", tol=1e-6).fit(np.zeros((20, 20)), y)
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 20))), [[3 / 4, 1 / 4]], atol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_features_of_any_scale(n_classes, scale):
    """gamma='scale' takes the units out of the features."""
    problem = clouds(n_classes)
    one = KernelLogisticRegression(tol=1e-6).fit(problem.X, problem.y)
    other = KernelLogisticRegression(tol=1e-6).fit(scale * problem.X, problem.y)
    assert one.objective_ == pytest.approx(other.objective_, rel=3e-6)


def test_points_far_from_the_origin():
    """Years, say. Squared distances from products of large numbers would lose their digits."""
    problem = clouds(2)
    one = KernelLogisticRegression(gamma=GAMMA, tol=1e-6).fit(problem.X, problem.y)
    far = KernelLogisticRegression(gamma=GAMMA, tol=1e-6).fit(problem.X + 1e3, problem.y)
    assert one.objective_ == pytest.approx(far.objective_, rel=1e-5)
    np.testing.assert_allclose(one.predict_proba(problem.X), far.predict_proba(problem.X + 1e3), atol=1e-3)


def test_very_unequal_weights():
    problem = clouds(3)
    weight = np.logspace(-6, 4, problem.n)
    model = KernelLogisticRegression(gamma=GAMMA, tol=1e-6)
    model.fit(problem.X, problem.y, sample_weight=weight)
    certify(model, problem.optimum(weight, True), 1e-6)


def test_many_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 100
    model = KernelLogisticRegression(gamma=0.5, C=10.0).fit(X, y)
    objective, gap = reference.gap(rbf_kernel(X, gamma=0.5), y, 10.0, model.dual_coef_, model.intercept_, True)
    assert objective == pytest.approx(model.objective_, rel=1e-6)
    assert gap <= 1.05e-3 * (objective - gap)
