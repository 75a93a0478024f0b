"""Models on inducing points: their labels, and what their gap proves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning

from dualfield import KernelLogisticRegression


def exact(model, X, y):
    """Value and gap of a model with a linear kernel, in the space of the features and in extended precision."""
    X, points = X.astype(np.longdouble), model.points_.astype(np.longdouble)
    w = points.T @ model.dual_coef_.T.astype(np.longdouble)
    scores = X @ w + model.intercept_
    log_p = log_softmax(scores, axis=1)
    value = 0.5 * (w**2).sum() - model.C * log_p[np.arange(len(y)), y].sum()
    dual_point = model.C * (np.eye(scores.shape[1])[y] - np.exp(log_p))
    return float(value), float(0.5 * ((w - X.T @ dual_point) ** 2).sum())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e5])
def test_gap_and_value_are_those_of_the_model_that_predicts(scale):
    """Kernel values up to 1e11: the gap is a small difference of large numbers, and never below what it is."""
    for seed in (0, 1, 63):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 1)) * scale
        y = np.r_[0, 1, 2, rng.integers(0, 3, 17)]
        C = 10.0 ** rng.uniform(0, 3)
        model = KernelLogisticRegression("linear", C=C, kernel_approx=5, random_state=0).fit(X, y)
        value, gap = exact(model, X, y)
        assert model.objective_ == pytest.approx(value, rel=1e-6)
        assert model.dual_gap_ >= gap * (1 - 1e-12)
        assert model.dual_gap_ >= 0.0


@pytest.mark.parametrize("label_kernel", [None, np.eye(3) + 0.5])
def test_gap_is_that_to_the_full_problem(label_kernel):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=80), [-0.5, 0.5])
    full = KernelLogisticRegression(C=10.0, label_kernel=label_kernel, tol=1e-6).fit(X, y)
    for kernel_approx in (3, 20, X):
        model = KernelLogisticRegression(
            C=10.0, label_kernel=label_kernel, kernel_approx=kernel_approx, tol=1e-6, random_state=0
        ).fit(X, y)
        assert model.dual_gap_ >= model.objective_ - full.objective_
        assert model.objective_ >= (full.objective_ - full.dual_gap_) * (1 - 1e-9)
    assert model.dual_gap_ <= 1e-4 * model.objective_  # all points: as good as the full model


@pytest.mark.parametrize("label_kernel", [None, np.eye(3) + 0.5])
def test_a_class_without_weight_keeps_its_place(label_kernel):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 30)
    X = rng.normal(size=(90, 2)) + 6.0 * np.repeat([[0, 0], [1, 0], [0, 1]], 30, axis=0)
    for left_out in "abc":
        weights = (y != left_out).astype(float)
        full = KernelLogisticRegression(label_kernel=label_kernel).fit(X, y, weights)
        model = KernelLogisticRegression(label_kernel=label_kernel, kernel_approx=20, random_state=0).fit(X, y, weights)
        rest = y != left_out
        assert model.score(X[rest], y[rest]) >= 0.95
        assert model.dual_coef_.shape == (3, 20)
        assert np.isneginf(model.intercept_).tolist() == [label == left_out for label in "abc"]
        probabilities = model.predict_proba(X)
        assert probabilities.shape == (90, 3)
        np.testing.assert_array_equal(probabilities[:, "abc".index(left_out)], 0.0)
        np.testing.assert_array_equal(model.predict(X[rest]), full.predict(X[rest]))


def test_running_out_of_passes_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    with pytest.warns(ConvergenceWarning, match="limit"):
        model = KernelLogisticRegression(C=1e4, kernel_approx=30, max_iter=2, random_state=0).fit(X, X[:, 0] > 0.1)
    assert model.dual_gap_ >= 0.0
