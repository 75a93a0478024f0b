"""Kernels on pairs of point and label, against the same problem with a matrix of labels."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import KernelLogisticRegression
from dualfield.solvers import Status

TABLE = np.eye(3) + 0.3


def pairs(a, b):
    return TABLE[a[1], b[1]] * np.exp(-((a[0] - b[0]) ** 2).sum())


def points(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(8, 2)), np.r_[0, 1, 2, rng.integers(0, 3, 5)]


def exact(model, X, y):
    """Value and gap from what the model predicts, in extended precision."""
    scores = model.decision_function(X).astype(np.longdouble)
    shifted = scores - scores.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    coefficients = model.dual_coef_.T.astype(np.longdouble)
    value = 0.5 * (coefficients * scores).sum() - model.C * log_p[np.arange(len(y)), y].sum()
    rest = coefficients - model.C * (np.eye(3)[y] - np.exp(log_p))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    return float(value), float(0.5 * (rest * (K @ rest @ TABLE)).sum())


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e5, 1e7])
def test_any_c(C):
    """Probabilities of wrong labels underflow from C = 1e3 on."""
    for seed in (0, 1, 3):
        X, y = points(seed)
        model = KernelLogisticRegression(label_kernel=pairs, fit_intercept=False, C=C).fit(X, y)
        same = KernelLogisticRegression("rbf", gamma=1.0, label_kernel=TABLE, fit_intercept=False, C=C, tol=1e-6)
        same.fit(X, y)
        assert model.status_ is Status.CONVERGED
        assert 0.0 <= model.dual_gap_ <= 1e-3 * model.objective_
        assert model.objective_ - model.dual_gap_ <= same.objective_ * (1 + 1e-9)
        assert same.objective_ - same.dual_gap_ <= model.objective_ * (1 + 1e-9)
        value, _ = exact(model, X, y)
        assert model.objective_ == pytest.approx(value, rel=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_a_few_passes_at_a_large_c(max_iter):
    X, y = points(0)
    best = KernelLogisticRegression("rbf", gamma=1.0, label_kernel=TABLE, fit_intercept=False, C=1e4, tol=1e-6)
    best.fit(X, y)
    model = KernelLogisticRegression(label_kernel=pairs, fit_intercept=False, C=1e4, max_iter=max_iter).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.objective_ == pytest.approx(exact(model, X, y)[0], rel=1e-6)
    assert model.dual_gap_ >= model.objective_ - best.objective_
    assert model.trace_.gap[-1] == model.dual_gap_


def test_a_class_without_weight_has_no_part_in_it():
    X, y = points(1)
    weights = (y != 1).astype(float)
    model = KernelLogisticRegression(label_kernel=pairs, fit_intercept=False, tol=1e-6).fit(X, y, weights)
    same = KernelLogisticRegression(label_kernel=pairs, fit_intercept=False, tol=1e-6).fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], 0.0)
    np.testing.assert_allclose(model.predict_proba(X)[:, [0, 2]], same.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1j, None, "1", np.ones(2)])
def test_values_that_are_no_numbers_are_refused(value):
    X, y = points(0)
    with pytest.raises(ValueError, match="'label_kernel' function must return a finite number"):
        KernelLogisticRegression(label_kernel=lambda a, b: value, fit_intercept=False).fit(X, y)


def test_an_interrupt_keeps_the_best_point_so_far():
    X, y = points(2)
    calls = 0

    def stubborn(a, b):
        nonlocal calls
        calls += 1
        if calls == 1500:  # 8 points and 3 labels have 576 values: in the third sweep
            raise KeyboardInterrupt
        return pairs(a, b)

    model = KernelLogisticRegression(label_kernel=stubborn, fit_intercept=False, C=1e3, cache_size=0)
    with pytest.warns(UserWarning, match="interrupted"):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert model.objective_ == pytest.approx(exact(model, X, y)[0], rel=1e-6)
