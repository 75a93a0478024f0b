"""L-BFGS and OWL-QN on functions whose minimum is known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from sklearn.linear_model import ElasticNet, Lasso

from dualfield.solvers.primal.quasi_newton import LimitedMemory


def run(evaluate, start, memory=10, l1=0.0, most=2000):
    """All steps; checks on the way that values fall, or where they differ by rounding only, that gradients shrink."""
    search = LimitedMemory(evaluate, start, memory, l1)
    for _ in range(most):
        before = search.point
        if not search.step():
            break
        rise = search.point.value - before.value
        shrinks = np.linalg.norm(search.point.gradient) <= 0.99 * np.linalg.norm(before.gradient)
        assert rise < 0 or (l1 == 0.0 and rise <= 1e-14 * abs(before.value) and shrinks)
    return search


def quadratic(n=30, condition=1e4, seed=0):
    """x'Ax/2 - b'x with its minimum."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = basis @ np.diag(np.geomspace(1.0, condition, n)) @ basis.T
    b = rng.normal(size=n)
    return (lambda x: (float(0.5 * x @ A @ x - b @ x), A @ x - b)), np.linalg.solve(A, b)


@pytest.mark.parametrize("memory", [1, 3, 10, 50])
def test_quadratic(memory):
    evaluate, want = quadratic()
    start = np.ones(30)
    found = run(evaluate, start, memory)
    np.testing.assert_allclose(found.point.x, want, atol=1e-5)
    assert found.point.value == pytest.approx(evaluate(want)[0], rel=1e-10)
    np.testing.assert_array_equal(start, np.ones(30))  # the start is not touched


def test_memory_pays():
    evaluate, _ = quadratic()
    few, many = (run(evaluate, np.ones(30), memory).n_evaluations for memory in (2, 40))
    assert many < few


def test_rosenbrock():
    found = run(lambda x: (scipy.optimize.rosen(x), scipy.optimize.rosen_der(x)), np.array([-1.2, 1.0, -0.5, 2.0, 0.1]))
    np.testing.assert_allclose(found.point.x, np.ones(5), atol=1e-5)
    assert found.n_evaluations < 200


def test_the_point_belongs_to_its_value_and_gradient():
    evaluate, _ = quadratic()
    search = LimitedMemory(evaluate, np.ones(30), 5)
    for _ in range(10):
        search.step()
        value, gradient = evaluate(search.point.x)
        assert search.point.value == value
        np.testing.assert_array_equal(search.point.gradient, gradient)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_steps_into_nowhere_are_cut(bad):
    """-log x + x is not defined left of zero, where the first steps lead; its minimum is at 1."""

    def evaluate(x):
        if np.any(x <= 0):
            return bad, np.full_like(x, np.nan)
        return float((x - np.log(x)).sum()), 1.0 - 1.0 / x

    np.testing.assert_allclose(run(evaluate, np.array([30.0, 1e-3, 5.0])).point.x, np.ones(3), atol=1e-6)


def test_slopes_lead_on_where_values_no_longer_tell():
    """A value of 1e8 hides falls below 1e-8; gradients at the minimum can be told from zero far beyond that."""
    evaluate, want = quadratic(condition=3.0)
    found = run(lambda x: (evaluate(x)[0] + 1e8, evaluate(x)[1]), np.ones(30))
    assert np.linalg.norm(found.point.gradient) < 1e-9
    np.testing.assert_allclose(found.point.x, want, atol=1e-9)


def test_no_step_at_the_minimum():
    evaluate, want = quadratic(condition=10.0)
    found = run(evaluate, want)
    assert found.n_evaluations < 60
    np.testing.assert_allclose(found.point.x, want, atol=1e-7)
    assert not LimitedMemory(lambda x: (float(x @ x), 2 * x), np.zeros(3), 5).step()
    assert not LimitedMemory(lambda x: (float(np.abs(x).sum()), 0 * x), np.zeros(3), 5, l1=1.0).step()


def least_squares(seed=0, n=40, d=25):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d))
    return A, A @ (rng.normal(size=d) * (rng.random(d) < 0.3)) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("l1", [0.01, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_absolute_values(l1, ridge):
    """Against coordinate descent: |Ax - b|^2 / 2 + ridge |x|^2 / 2 + l1 |x|_1, with the same zeros."""
    A, b = least_squares()

    def evaluate(x):
        rest = A @ x - b
        value = 0.5 * rest @ rest + 0.5 * ridge * x @ x + l1 * np.abs(x).sum()
        return float(value), A.T @ rest + ridge * x

    settings = {"fit_intercept": False, "tol": 1e-14, "max_iter": 100_000}
    if ridge:
        alpha = (l1 + ridge) / len(b)
        peer = ElasticNet(alpha=alpha, l1_ratio=l1 / (l1 + ridge), **settings)
    else:
        peer = Lasso(alpha=l1 / len(b), **settings)
    want = peer.fit(A, b).coef_
    found = run(evaluate, np.random.default_rng(1).normal(size=25), l1=l1)
    assert found.point.value == pytest.approx(evaluate(want)[0], rel=1e-9)
    np.testing.assert_allclose(found.point.x, want, atol=1e-4)
    if l1 >= 1.0:
        np.testing.assert_array_equal(found.point.x == 0.0, want == 0.0)
