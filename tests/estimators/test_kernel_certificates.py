"""Objective and gap are those of the returned model: held against extended precision, on data that ask for it."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import linear_kernel

from dualfield import KernelLogisticRegression
from dualfield.solvers import Status
from tests.estimators.problems import SOLVERS, clouds
from tests.reference import kernel_logistic as reference

Long = np.longdouble
OFFSETS = [10.0, 100.0, 1e4, 1e6]


def own_objective(model, X, y, c) -> float:
    """The formula at the model's own scores, coefficients and bias, in extended precision."""
    scores = model.decision_function(X).astype(Long)
    scores = scores[:, None] if scores.ndim == 1 else scores
    without_bias = scores - model.intercept_.astype(Long)
    square = (model.dual_coef_.T.astype(Long) * without_bias).sum()
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(y), Long), scores])
    top = scores.max(axis=1)
    loss = top + np.log(np.exp(scores - top[:, None]).sum(axis=1)) - scores[np.arange(len(y)), y]
    return float(0.5 * square + (np.broadcast_to(c, len(y)) * loss).sum())


def fit(*arguments, data, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that stop early; what they claim is tested all the same
        return KernelLogisticRegression(*arguments, random_state=0, **parameters).fit(*data)


def check(model, X, y, c, known):
    """The claims of a model against its own scores and against a value that is known to be reached."""
    assert model.objective_ == pytest.approx(own_objective(model, X, y, c), rel=1e-6)
    assert model.dual_gap_ > 0.0
    assert model.objective_ - model.dual_gap_ <= known * (1 + 1e-9)


def ten_classes():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 16))
    y = np.arange(2600) % 10
    X = centres[y] + 0.9 * rng.normal(size=(2600, 16))
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("C", [1e4, 1e6])
def test_a_default_fit_in_single_precision_with_large_c(C):
    X, y = ten_classes()
    model = fit(C=C, data=(X, y))
    known = own_objective(fit(C=C, solver="newton", tol=1e-4, data=(X, y)), X, y, C)
    check(model, X, y, C, known)
    assert model.status_ is Status.CONVERGED
    assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize("solver", ["smo", "newton", "online"])
def test_other_solvers_in_single_precision(solver):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2600, 3))
    y = (X[:, 0] + rng.normal(size=2600) > 0).astype(int)
    budget = {"newton": 5 * 2600**2, "online": 1e7}.get(solver, 4e9)
    model = fit(C=10.0, gamma=0.05, solver=solver, cache_size=budget, max_iter=300, data=(X, y))
    known = own_objective(fit(C=10.0, gamma=0.05, solver="newton", data=(X, y)), X, y, 10.0)
    check(model, X, y, 10.0, known)


def test_two_features_and_a_linear_kernel_are_not_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2600, 2))
    y = (X[:, 0] + rng.normal(size=2600) > 0).astype(int)
    model = fit("linear", C=1000.0, data=(X, y))
    assert model.status_ is Status.CONVERGED
    check(model, X, y, 1000.0, own_objective(fit("linear", C=1000.0, solver="newton", data=(X, y)), X, y, 1000.0))


@pytest.mark.parametrize("offset", [10.0, 1e4])
def test_a_default_fit_on_many_points_far_from_zero(offset):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2600, 3))
    y = (Z[:, 0] + rng.normal(size=2600) > 0).astype(int)
    known = own_objective(fit("linear", solver="newton", tol=1e-6, data=(Z, y)), Z, y, 1.0)
    model = fit("linear", data=(Z + offset, y))
    assert model.status_ is Status.CONVERGED
    check(model, Z + offset, y, 1.0, known * (1 + 1e-6))
    assert known <= model.objective_ * (1 + 1e-6)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_features_far_from_zero_with_a_linear_kernel(n_classes, solver, offset):
    problem = clouds(n_classes)
    X, C = problem.X + offset, 10.0
    Z = X.astype(Long) - X.astype(Long).mean(axis=0)
    best = reference.solve(linear_kernel(Z.astype(float)), problem.y, C, True)
    model = fit("linear", C=C, solver=solver, tol=1e-5, data=(X, problem.y))
    assert model.status_ is Status.CONVERGED
    check(model, X, problem.y, C, best.objective)
    assert best.objective <= model.objective_ * (1 + 1e-9)
    np.testing.assert_allclose(model.predict_proba(X), best.proba, atol=2e-2)


@pytest.mark.parametrize("offset", [100.0, 1e6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_features_far_from_zero_without_a_bias(solver, offset):
    """Nothing can be centred here: what a solver reaches may be little, what it says about it holds."""
    problem = clouds(3)
    model = fit("linear", C=1e3, fit_intercept=False, solver=solver, max_iter=100, data=(problem.X + offset, problem.y))
    known = own_objective(
        fit("linear", C=1e3, fit_intercept=False, data=(problem.X + offset, problem.y)),
        problem.X + offset,
        problem.y,
        1e3,
    )
    check(model, problem.X + offset, problem.y, 1e3, known * (1 + 1e-7))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_polynomial_of_features_far_from_zero(n_classes, solver):
    problem = clouds(n_classes)
    for offset in (10.0, 100.0, 1e4):  # the last is beyond double precision
        data = (problem.X + offset, problem.y)
        model = fit("poly", solver=solver, max_iter=200, data=data)
        check(model, *data, 1.0, own_objective(fit("poly", data=data), *data, 1.0))
        nothing = -sum(np.bincount(problem.y) * np.log(np.bincount(problem.y) / problem.n))
        assert model.objective_ <= nothing * (1 + 1e-9)  # the bias alone


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", SOLVERS)
def test_gram_matrices_are_never_refused(solver, dtype):
    rng = np.random.default_rng(3)
    for seed in range(6):
        features = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-3, 3) + 10.0 ** rng.integers(0, 3)
        gram = (features @ features.T).astype(dtype)
        y = np.arange(40) % (2 + seed % 2)
        for C in (1.0, 1e4):
            model = fit("precomputed", C=C, solver=solver, max_iter=50, data=(gram, y))
            assert np.isfinite(model.objective_)
            assert model.dual_gap_ > 0.0


def test_wide_bells_are_centred():
    """exp(−γ d²) with a tiny γ is 1 less very little: what matters is in the last digits of single precision."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2600, 2))
    y = (X[:, 0] + rng.normal(size=2600) > 0).astype(int)
    wide = fit(gamma=1e-7, C=1e7, tol=1e-4, data=(X, y))
    line = fit(
        "linear", C=2.0, tol=1e-4, data=(X, y)
    )  # 1 − γ |x|² − γ |z|² + 2 γ ⟨x, z⟩, of which the bias leaves the last
    assert wide.status_ is Status.CONVERGED
    assert wide.objective_ == pytest.approx(line.objective_ / 2.0 * 1e7, rel=3e-3)
    np.testing.assert_allclose(wide.predict_proba(X), line.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("solver", SOLVERS)
def test_gaps_are_no_smaller_than_rounding(solver):
    problem = clouds(3)
    model = fit(C=100.0, solver=solver, tol=1e-300, max_iter=200, data=(problem.X, problem.y))
    reach = np.abs(model.dual_coef_).sum(axis=1)
    assert model.dual_gap_ >= np.finfo(float).eps * float(reach @ reach)
    assert model.status_ is not Status.CONVERGED


@pytest.mark.parametrize("bias", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("C", [1e-13, 1e-30, 1e-250])
@pytest.mark.parametrize("solver", SOLVERS)
def test_tiny_objectives_are_not_taken_for_zero(solver, C, bias):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), np.array([0] * 25 + [1] * 10 + [2] * 5)
    model = fit(C=C, solver=solver, fit_intercept=bias, tol=1e-6, data=(X, y))
    share = np.bincount(y) / 40 if bias else np.full(3, 1 / 3)
    assert model.objective_ / C == pytest.approx(-np.log(share[y]).sum(), rel=2e-6)
    assert model.status_ is Status.CONVERGED


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("unit", [1e-14, 1e14])
def test_units_of_features_and_c_do_not_matter_together(solver, unit):
    problem = clouds(2)
    best = problem_of_units().objective_
    model = fit("linear", C=unit**-2, solver=solver, tol=1e-6, data=(problem.X * unit, problem.y))
    assert model.status_ is Status.CONVERGED
    assert model.objective_ * unit**2 == pytest.approx(best, rel=3e-6)


def problem_of_units():
    return fit("linear", tol=1e-9, data=(clouds(2).X, clouds(2).y))


def test_working_sets_with_a_very_large_c():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = fit(C=1e6, solver="working_set", max_iter=1000, data=(X, y))
    assert model.status_ is Status.CONVERGED
    check(model, X, y, 1e6, fit(C=1e6, data=(X, y)).objective_)


def far_and_sparse():
    """A column of 1e7 ± 1 beside hundreds that are nearly empty: compressed rows, and the same points near zero."""
    rng = np.random.default_rng(0)
    near = np.zeros((60, 400))
    near[:, 0] = rng.normal(size=60)
    near[np.arange(60), 1 + rng.integers(0, 399, 60)] = rng.normal(size=60)
    far = near.copy()
    far[:, 0] += 1e7
    near[:, 0] = far[:, 0] - 1e7  # as rounded
    return sparse.csr_array(far), near, (near[:, 0] > 0).astype(int)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_features_far_from_zero(kernel):
    far, near, y = far_and_sparse()
    one, other = (fit(kernel, gamma=0.5, tol=1e-8, data=(X, y)) for X in (far, near))
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-7)
    np.testing.assert_allclose(one.predict_proba(far), other.predict_proba(near), atol=1e-6)
    check(one, far, y, 1.0, other.objective_)


def test_the_width_of_sparse_features_far_from_zero():
    far, _, y = far_and_sparse()
    data = sparse.csr_array(far[:, :1])
    X = data.toarray()
    np.testing.assert_allclose(
        fit(data=(data, y)).decision_function(data), fit(data=(X, y)).decision_function(X), rtol=1e-6
    )


@pytest.mark.parametrize("unit", [1e150, 1e-150])
def test_gamma_of_very_large_and_very_small_features(unit):
    problem = clouds(2)
    one, other = (fit(data=(X, problem.y)) for X in (problem.X, problem.X * unit))
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)


@pytest.mark.parametrize("unit", [1e160, 1e300, 1e-170])
def test_gamma_that_is_no_number(unit):
    problem = clouds(2)
    with pytest.raises(ValueError, match=r"(?s)gamma='scale'.*StandardScaler"):
        KernelLogisticRegression().fit(problem.X * unit, problem.y)


def test_a_fit_of_the_bias_alone_where_nothing_else_can_be_computed():
    """Kernel values of 1e36: double precision has no step that helps, and says so."""
    X, y = clouds(2).X * 1e-6 + 1.0, clouds(2).y
    for solver in SOLVERS:
        model = fit("poly", C=100.0, solver=solver, max_iter=50, data=(X, y))
        assert model.status_ is not Status.CONVERGED
        assert model.objective_ <= 100.0 * len(y) * math.log(2.0) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_claims_on_hostile_problems(seed):
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 5))
    n, d = int(rng.integers(10, 40)), int(rng.integers(1, 5))
    kernel = ["linear", "rbf", "poly", "laplacian"][seed % 4]
    X = (rng.normal(size=(n, d)) + rng.choice([0.0, 10.0, 1e4])) * rng.choice([1e-3, 1.0, 1e3])
    if seed % 3 == 0:
        X = X[rng.integers(0, n // 2, n)]
    y = np.arange(n) % n_classes if seed % 2 else np.minimum(np.arange(n), n_classes - 1)[::-1] % n_classes
    C, bias, c = 10.0 ** rng.uniform(-6, 6), bool(seed % 5), rng.exponential(size=n)
    models = {
        solver: KernelLogisticRegression(kernel, C=C, fit_intercept=bias, solver=solver, max_iter=100, random_state=0)
        for solver in SOLVERS
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in models.values():
            model.fit(X, y, sample_weight=c)
    # Where kernel values are beyond double precision, what a model has reached is not known so well.
    reached = [model for model in models.values() if kernel != "poly" or model.status_ is Status.CONVERGED]
    known = min((own_objective(model, X, y, C * c) for model in reached), default=np.inf)
    for model in models.values():
        check(model, X, y, C * c, known)


def test_scores_of_a_linear_kernel_keep_their_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) + 1e6
    y = np.arange(50) % 3
    model = fit("linear", data=(X, y))
    B, Z = model.dual_coef_.astype(Long), X.astype(Long)
    mean = Z.mean(axis=0)
    sums = np.array([Long(math.fsum(row)) for row in model.dual_coef_.tolist()])
    w = B @ (Z - mean)
    exact = (Z - mean) @ w.T + mean @ w.T + np.outer((Z - mean) @ mean + mean @ mean, sums)
    np.testing.assert_allclose(model.decision_function(X), (exact + model.intercept_).astype(float), atol=1e-6)
