"""Every solver reaches the optimum of the reference, and its certificate is true."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import KernelLogisticRegression
from tests.estimators.problems import GAMMA, LABEL_KERNEL_SOLVERS, SOLVERS, clouds, label_kernel, rounding
from tests.reference import kernel_logistic as reference

WEIGHTS = np.random.default_rng(5).uniform(0.2, 3.0, 44)
TOL = 1e-8
# L-BFGS works on the coefficients themselves, where the problem is badly conditioned: it is asked for less.
TOLS = dict.fromkeys([*SOLVERS, "joint_online"], TOL) | {"lbfgs": 1e-5}


def fit(problem, sample_weight=None, **parameters):
    tol = TOLS[parameters.get("solver", "auto")]
    settings = {"gamma": GAMMA, "tol": tol, "random_state": 0} | parameters
    return KernelLogisticRegression(**settings).fit(problem.X, problem.y, sample_weight=sample_weight)


def check_certificate(model, problem, best, c, bias, T=None):
    """What the model says about itself, against the optimum and against a computation from its coefficients."""
    tol, slack = model.tol, rounding(model.tol) * best.objective
    assert model.dual_gap_ >= 0.0
    assert model.objective_ - best.objective >= -slack
    assert model.objective_ - best.objective <= model.dual_gap_ + slack
    assert model.dual_gap_ <= tol * (model.objective_ - model.dual_gap_) + slack
    recomputed, gap = reference.gap(problem.K, problem.y, c, model.dual_coef_, model.intercept_, bias, T)
    assert model.objective_ == pytest.approx(recomputed, rel=max(1e-7, min(0.2 * tol, 1e-6)))
    assert gap <= 1.05 * tol * best.objective + slack


@pytest.mark.parametrize("bias", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("solver", SOLVERS)
def test_reaches_the_optimum(solver, n_classes, bias):
    problem = clouds(n_classes)
    best = problem.optimum(3.0, bias)
    model = fit(problem, C=3.0, fit_intercept=bias, solver=solver)
    assert model.objective_ == pytest.approx(best.objective, rel=max(1e-6, model.tol))
    check_certificate(model, problem, best, 3.0, bias)
    np.testing.assert_allclose(model.predict_proba(problem.X), best.proba, atol=5e-3 if solver == "lbfgs" else 1e-3)


@pytest.mark.parametrize("C", [1e-2, 1e2])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_reaches_the_optimum_where_c_is_small_or_large(solver, n_classes, C):
    problem = clouds(n_classes)
    best = problem.optimum(C, True)
    tol = 1e-3 if solver == "lbfgs" else 1e-6
    model = fit(problem, C=C, solver=solver, tol=tol)
    assert model.objective_ == pytest.approx(best.objective, rel=2 * tol)
    check_certificate(model, problem, best, C, True)


@pytest.mark.parametrize("bias", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_weights(solver, n_classes, bias):
    """Weights of points and of classes multiply."""
    problem = clouds(n_classes)
    class_weight = {0: 2.5, 1: 0.5} | ({2: 1.0} if n_classes == 3 else {})
    c = 2.0 * WEIGHTS * np.array([class_weight[code] for code in problem.y])
    best = problem.optimum(c, bias)
    model = fit(problem, WEIGHTS, C=2.0, class_weight=class_weight, fit_intercept=bias, solver=solver)
    assert model.objective_ == pytest.approx(best.objective, rel=max(1e-6, model.tol))
    check_certificate(model, problem, best, c, bias)


def test_balanced_classes():
    problem = clouds(3)
    keep = np.flatnonzero((problem.y != 2) | (np.arange(problem.n) % 2 == 0))
    X, y = problem.X[keep], problem.y[keep]
    balanced = len(y) / (3 * np.bincount(y))
    best = reference.solve(rbf_kernel(X, gamma=GAMMA), y, balanced[y], True)
    model = KernelLogisticRegression(gamma=GAMMA, tol=TOL, class_weight="balanced").fit(X, y)
    assert model.objective_ == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weight_of_two_is_a_point_given_twice_and_zero_is_none(n_classes):
    problem = clouds(n_classes)
    weight = np.arange(problem.n) // n_classes % 3.0
    rows = np.repeat(np.arange(problem.n), weight.astype(int))
    weighted = fit(problem, weight)
    repeated = KernelLogisticRegression(gamma=GAMMA, tol=TOL).fit(problem.X[rows], problem.y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(problem.X), repeated.predict_proba(problem.X), atol=1e-3)


@pytest.mark.parametrize("rank", [None, 2], ids=["regular", "singular"])
@pytest.mark.parametrize("bias", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("solver", LABEL_KERNEL_SOLVERS)
def test_label_kernel(solver, bias, rank):
    problem, T = clouds(4), label_kernel(4, rank)
    best = problem.optimum(WEIGHTS, bias, T)
    model = fit(problem, WEIGHTS, label_kernel=T, fit_intercept=bias, solver=solver)
    assert model.objective_ == pytest.approx(best.objective, rel=max(1e-6, model.tol))
    check_certificate(model, problem, best, WEIGHTS, bias, T)
    new = np.random.default_rng(1).normal(size=(7, 2))
    scores = rbf_kernel(new, problem.X, gamma=GAMMA) @ model.dual_coef_.T @ T + model.intercept_
    np.testing.assert_allclose(model.decision_function(new), scores, rtol=1e-4, atol=1e-5)


def test_label_kernel_of_the_identity_changes_nothing():
    problem = clouds(3)
    one, other = fit(problem), fit(problem, label_kernel=np.eye(3))
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
    np.testing.assert_allclose(one.predict_proba(problem.X), other.predict_proba(problem.X), atol=1e-3)


@pytest.mark.parametrize("bias", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("solver", LABEL_KERNEL_SOLVERS)
def test_label_kernel_of_two_classes(solver, bias):
    """Then there are two functions, and a row of coefficients for each."""
    problem, T = clouds(2), label_kernel(2)
    best = problem.optimum(1.0, bias, T)
    model = fit(problem, label_kernel=T, fit_intercept=bias, solver=solver)
    assert model.objective_ == pytest.approx(best.objective, rel=max(1e-6, model.tol))
    check_certificate(model, problem, best, 1.0, bias, T)
    difference = best.scores[:, 1] - best.scores[:, 0]
    np.testing.assert_allclose(model.decision_function(problem.X), difference, atol=0.05 if solver == "lbfgs" else 5e-3)


@pytest.mark.parametrize("solver", ["working_set", "online"])
def test_solvers_that_cannot_couple_labels_say_so(solver):
    with pytest.raises(ValueError, match=rf"(?s)(?=.*{solver})(?=.*label_kernel)"):
        fit(clouds(3), label_kernel=label_kernel(3), solver=solver)


def test_joint_kernel_of_points_and_labels():
    """A callable label kernel is the whole kernel; here the one that the other solvers have built in."""
    problem = clouds(3, n=15)

    def joint(a, b):
        return float(np.exp(-GAMMA * ((a[0] - b[0]) ** 2).sum())) if a[1] == b[1] else 0.0

    best = problem.optimum(1.0, False)
    model = fit(problem, label_kernel=joint, solver="joint_online", fit_intercept=False, tol=1e-6)
    assert model.objective_ == pytest.approx(best.objective, rel=2e-6)
    np.testing.assert_allclose(model.predict_proba(problem.X), best.proba, atol=5e-3)
    with pytest.raises(ValueError, match=r"(?s)(?=.*label_kernel)(?=.*fit_intercept)"):
        fit(problem, label_kernel=joint, solver="joint_online")
    for solver in ("working_set", "newton", "smo", "lbfgs"):
        with pytest.raises(ValueError, match=rf"(?s)(?=.*{solver})(?=.*label_kernel)"):
            fit(problem, label_kernel=joint, solver=solver)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("solver", SOLVERS)
def test_conditions_of_the_optimum(solver, n_classes):
    """dual_coef_ = C v (D - P), and with an intercept it sums to zero over the points."""
    problem = clouds(n_classes)
    c = 1.3 * WEIGHTS
    model = fit(problem, WEIGHTS, C=1.3, solver=solver)
    P = model.predict_proba(problem.X)
    residual = (c[:, None] * (np.eye(n_classes)[problem.y] - P)).T
    expected = residual if n_classes > 2 else residual[1:]
    assert model.dual_coef_.shape == expected.shape
    if solver == "lbfgs":  # it sees coefficients through K only, and K hides some of their directions
        np.testing.assert_allclose(problem.K @ (model.dual_coef_ - expected).T, 0.0, atol=0.02)
    else:
        np.testing.assert_allclose(model.dual_coef_, expected, atol=2e-3)
        assert np.abs(model.dual_coef_.sum(axis=1)).max() <= 1e-6 * c.sum()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_gap_bounds_every_score(solver, n_classes):
    """The objective is strongly convex in w: ½ ‖w - w*‖² ≤ gap, so no score is off by more than √(2 gap k(x, x))."""
    problem = clouds(n_classes)
    best = problem.optimum(10.0, False)
    model = fit(problem, C=10.0, fit_intercept=False, solver=solver, tol=1e-2)
    off = np.abs(model.decision_function(problem.X) - best.scores).max()
    assert off <= np.sqrt(2 * model.dual_gap_) * 1.001 + 1e-5


@pytest.mark.parametrize("bias", [False, True], ids=["origin", "intercept"])
def test_softmax_at_c_is_the_binary_model_at_twice_the_c(bias):
    problem = clouds(2)
    softmax = reference.multiclass(problem.K, problem.y, 1.5, bias)
    model = fit(problem, C=3.0, fit_intercept=bias)
    np.testing.assert_allclose(model.predict_proba(problem.X), softmax.proba, atol=1e-3)
    assert model.objective_ == pytest.approx(2 * softmax.objective, rel=1e-6)
