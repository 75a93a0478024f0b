"""The reference solver itself: against its own dual, scipy.optimize and cvxpy. The other tests believe it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from scipy.special import logsumexp

from tests.estimators.problems import clouds, label_kernel
from tests.reference import kernel_logistic as reference

WEIGHTS = np.random.default_rng(5).uniform(0.2, 3.0, 44)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_its_dual_value_is_its_primal_value(n_classes, bias, C):
    problem = clouds(n_classes)
    c = C * WEIGHTS
    best = problem.optimum(c, bias)
    objective, gap = reference.gap(problem.K, problem.y, c, best.dual_coef, best.bias, bias)
    assert objective == pytest.approx(best.objective, rel=1e-11)
    assert abs(gap) <= 1e-11 * objective
    if bias:
        assert np.abs(best.dual_coef.sum(axis=1)).max() <= 1e-12 * c.sum()


@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_its_dual_value_is_its_primal_value_with_a_label_kernel(bias, rank):
    problem, T = clouds(4), label_kernel(4, rank)
    best = problem.optimum(WEIGHTS, bias, T)
    objective, gap = reference.gap(problem.K, problem.y, WEIGHTS, best.dual_coef, best.bias, bias, T)
    assert objective == pytest.approx(best.objective, rel=1e-11)
    assert abs(gap) <= 1e-11 * objective


def test_scores_are_the_gram_matrix_times_the_coefficients():
    problem, T = clouds(3), label_kernel(3)
    best = problem.optimum(2.0, True, T)
    np.testing.assert_allclose(problem.K @ best.dual_coef.T @ T + best.bias, best.scores, atol=1e-9)
    best = clouds(2).optimum(2.0, True)
    np.testing.assert_allclose(clouds(2).K @ best.dual_coef[0] + best.bias, best.scores, atol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_against_scipy(n_classes, bias):
    """General-purpose BFGS on the same function in other variables, with gradients by differences."""
    problem = clouds(n_classes, n=24)
    K, y, c = problem.K, problem.y, 1.5 * WEIGHTS[:24]
    n_outputs = 1 if n_classes == 2 else n_classes
    square = np.linalg.cholesky(K + 1e-13 * np.eye(len(y)))  # coefficients square⁻ᵀ u: the norm becomes ‖u‖²

    def function(flat):
        u, b = flat[: n_outputs * len(y)].reshape(n_outputs, -1), flat[n_outputs * len(y) :]
        s = (square @ u.T) + (b if bias else 0.0)
        if n_outputs == 1:
            loss = np.logaddexp(0.0, np.where(y == 1, -s[:, 0], s[:, 0]))
        else:
            loss = logsumexp(s, axis=1) - s[np.arange(len(y)), y]
        return 0.5 * (u**2).sum() + c @ loss

    start = np.zeros(n_outputs * len(y) + (n_outputs if bias else 0))
    found = scipy.optimize.minimize(function, start, method="BFGS", options={"gtol": 1e-4, "maxiter": 500})
    assert problem.optimum(c, bias).objective == pytest.approx(found.fun, rel=1e-7)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_against_cvxpy(n_classes, bias):
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    problem = clouds(n_classes, n=24)
    y, c = problem.y, 1.5 * WEIGHTS[:24]
    n_outputs = 1 if n_classes == 2 else n_classes
    features = reference.factor(problem.K)
    W, b = cvxpy.Variable((features.shape[1], n_outputs)), cvxpy.Variable((1, n_outputs))
    s = features @ W + (np.ones((len(y), 1)) @ b if bias else 0.0)
    if n_outputs == 1:
        loss = cvxpy.logistic(cvxpy.multiply(np.where(y == 1, -1.0, 1.0), s[:, 0]))
    else:
        loss = cvxpy.log_sum_exp(s, axis=1) - cvxpy.sum(cvxpy.multiply(s, np.eye(n_classes)[y]), axis=1)
    task = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(W) + c @ loss))
    task.solve()
    assert problem.optimum(c, bias).objective == pytest.approx(task.value, rel=1e-6)


@pytest.mark.parametrize("bias", [False, True])
def test_softmax_over_two_classes_is_the_binary_problem_at_twice_the_c(bias):
    problem = clouds(2)
    two, one = reference.multiclass(problem.K, problem.y, 1.7, bias), reference.binary(problem.K, problem.y, 3.4, bias)
    assert 2 * two.objective == pytest.approx(one.objective, rel=1e-12)
    np.testing.assert_allclose(two.proba, one.proba, atol=1e-10)
    np.testing.assert_allclose(two.scores[:, 1] - two.scores[:, 0], one.scores, atol=1e-9)
