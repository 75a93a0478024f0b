"""Models of scikit-learn that are the same problem under another name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression

from dualfield import KernelLogisticRegression
from tests.estimators.problems import SOLVERS, clouds

WEIGHTS = np.random.default_rng(5).uniform(0.2, 3.0, 44)


# L-BFGS is not among them: scores are as exact as the root of the gap, and it comes to 1e-9 at best.
@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"lbfgs"}))
def test_mode_of_the_gaussian_process_posterior(solver):
    """C = 1 without an intercept is the Laplace approximation's mode, for the same fixed kernel."""
    problem = clouds(2)
    process = GaussianProcessClassifier(RBF(0.8), optimizer=None).fit(problem.X, problem.y)
    mode = process.base_estimator_.f_cached
    model = KernelLogisticRegression(gamma=0.5 / 0.8**2, fit_intercept=False, solver=solver, tol=1e-13, random_state=0)
    model.fit(problem.X, problem.y)
    np.testing.assert_allclose(model.decision_function(problem.X), mode, atol=1e-6)


def test_c_is_the_variance_of_the_process():
    problem = clouds(2)
    process = GaussianProcessClassifier(ConstantKernel(4.0) * RBF(0.8), optimizer=None).fit(problem.X, problem.y)
    mode = process.base_estimator_.f_cached
    # ½ fᵀ(v K)⁻¹f + Σ loss is 1/v times ½ fᵀK⁻¹f + v Σ loss: the kernel v k at C = 1 is the kernel k at C = v.
    model = KernelLogisticRegression(
        lambda X, Y: 4.0 * RBF(0.8)(X, Y), fit_intercept=False, tol=1e-13, random_state=0
    ).fit(problem.X, problem.y)
    np.testing.assert_allclose(model.decision_function(problem.X), mode, atol=1e-6)
    scaled = KernelLogisticRegression(gamma=0.5 / 0.8**2, C=4.0, fit_intercept=False, tol=1e-13, random_state=0)
    np.testing.assert_allclose(scaled.fit(problem.X, problem.y).decision_function(problem.X), mode, atol=1e-6)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_linear_kernel_is_logistic_regression(n_classes, C):
    problem = clouds(n_classes)
    peer = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(problem.X, problem.y, sample_weight=WEIGHTS)
    model = KernelLogisticRegression("linear", C=C, tol=1e-10).fit(problem.X, problem.y, sample_weight=WEIGHTS)
    new = np.random.default_rng(2).normal(scale=2.0, size=(30, 2))
    np.testing.assert_allclose(model.predict_proba(new), peer.predict_proba(new), atol=1e-4)
    if n_classes == 2:
        np.testing.assert_allclose(model.dual_coef_ @ problem.X, peer.coef_, atol=1e-3)
        np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_kernel_without_intercept_is_logistic_regression(n_classes):
    problem = clouds(n_classes)
    peer = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000).fit(problem.X, problem.y)
    model = KernelLogisticRegression("linear", fit_intercept=False, tol=1e-10).fit(problem.X, problem.y)
    np.testing.assert_allclose(model.predict_proba(problem.X), peer.predict_proba(problem.X), atol=1e-4)
    assert not model.intercept_.any()
