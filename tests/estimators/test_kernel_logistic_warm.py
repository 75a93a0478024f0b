"""A warm start never leads to a worse model than none, whatever has changed since the last fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dualfield import KernelLogisticRegression
from dualfield.solvers import Status

SOLVERS = ("auto", "newton", "working_set", "smo", "online", "lbfgs")


def noisy(n, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    cuts = np.linspace(-0.5, 0.5, n_classes - 1)
    return X, np.digitize(X[:, 0] + rng.normal(size=n), cuts)


def fitted(model, X, y, **weights):
    """Fit, whether it converges or not; everything must be a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, **weights)
    assert np.isfinite([model.objective_, model.dual_gap_]).all()
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.dual_coef_).all()
    return model


def value_of(model, X, y):
    """The primal value of a model with two classes, from what it predicts, in extended precision."""
    scores = model.decision_function(X).astype(np.longdouble)
    coefficients = model.dual_coef_[0].astype(np.longdouble)
    square = coefficients @ (scores - model.intercept_[0])
    return 0.5 * square + model.C * np.logaddexp(0, -np.where(y == 1, scores, -scores)).sum()


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_intercept_is_not_carried_over_to_a_model_without_one(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] + 1.5 + rng.normal(size=40) > 0).astype(int)
    cold = KernelLogisticRegression("linear", C=0.01, fit_intercept=False, tol=1e-6).fit(X, y)
    model = KernelLogisticRegression("linear", C=0.01, warm_start=True, solver=solver, tol=1e-6).fit(X, y)
    assert model.intercept_[0] != 0.0
    model.set_params(fit_intercept=False).fit(X, y)
    assert model.intercept_ == 0.0
    assert model.objective_ == pytest.approx(float(value_of(model, X, y)), rel=1e-9)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-5)


@pytest.mark.parametrize("order", ["up", "down"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_long_steps_of_c_are_never_worse_than_no_start(solver, kernel, order):
    Cs = [1e-3, 1.0, 1e3, 1e6]
    for n, n_classes in ((10, 2), (60, 2), (20, 3)):
        X, y = noisy(n, n, n_classes)
        warm = KernelLogisticRegression(kernel, gamma=0.5, solver=solver, max_iter=60, random_state=0, warm_start=True)
        for C in Cs if order == "up" else Cs[::-1]:
            cold = KernelLogisticRegression(kernel, gamma=0.5, solver=solver, max_iter=60, random_state=0, C=C)
            try:
                fitted(cold, X, y)
            except ValueError:  # without a start it is refused as well
                continue
            fitted(warm.set_params(C=C), X, y)
            if cold.status_ is Status.CONVERGED:
                assert warm.status_ is Status.CONVERGED
                assert warm.objective_ - warm.dual_gap_ <= cold.objective_ * (1 + 1e-7)
            else:
                assert warm.objective_ <= cold.objective_ * (1 + 1e-7) or warm.status_ is Status.CONVERGED


@pytest.mark.parametrize("solver", ["working_set", "online"])
@pytest.mark.parametrize(("seed", "C"), [(65, 1e-3), (248, 100.0), (350, 10.0)])
def test_a_start_far_out_of_scale_does_not_end_in_nan(solver, seed, C):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    X, y = rng.normal(size=(n, 2)), np.r_[0, 1, rng.integers(0, 2, n - 2)]
    model = KernelLogisticRegression(gamma=0.5, C=C, warm_start=True, solver=solver).fit(X, y)
    model.set_params(C=1e6).fit(X, y)
    cold = KernelLogisticRegression(gamma=0.5, C=1e6, solver=solver).fit(X, y)
    assert np.isfinite(model.intercept_).all()
    assert model.status_ is Status.CONVERGED
    assert model.objective_ == pytest.approx(cold.objective_, rel=2e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_changed_weights_kernels_and_data_are_no_trap(solver):
    X, y = noisy(40, 3, 3)
    rng = np.random.default_rng(1)
    model = KernelLogisticRegression(solver=solver, warm_start=True, max_iter=300, random_state=0).fit(X, y)
    changes = [
        ({}, X, y, rng.choice([0.0, 1e-6, 1.0, 1e3], 40) + (np.arange(40) < 20)),
        ({"kernel": "linear"}, X, y, None),
        ({"kernel": "rbf", "gamma": 50.0}, X, y, None),
        ({}, X[::-1] * 3.0, rng.permutation(y), None),
        ({"fit_intercept": False}, X, y, None),
        ({"fit_intercept": True, "label_kernel": np.eye(3) + 0.5}, X, y, None),
    ]
    for change, points, labels, weights in changes:
        if "label_kernel" in change and solver in ("working_set", "online"):
            continue
        model.set_params(**change)
        fitted(model, points, labels, sample_weight=weights)
        cold = KernelLogisticRegression(**model.get_params())
        fitted(cold.set_params(warm_start=False), points, labels, sample_weight=weights)
        assert model.objective_ <= cold.objective_ * (1 + 1e-3)
        assert model.status_ is Status.CONVERGED or cold.status_ is not Status.CONVERGED


def test_a_fit_that_ran_out_of_passes_goes_on():
    """Where nothing has changed, the passes of a second fit add to those of the first; it does not begin anew."""
    X, y = noisy(200, 5, 3)
    model = KernelLogisticRegression(solver="working_set", C=10.0, tol=1e-6, max_iter=4, warm_start=True)
    first = fitted(model, X, y).objective_
    for _ in range(3):
        fitted(model, X, y)
        assert model.trace_.passes[-1] < 8.0
    assert model.objective_ < first
