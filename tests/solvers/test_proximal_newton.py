"""Newton's method with a penalty on absolute values, and the quadratic model that its steps minimise."""

from __future__ import annotations

from itertools import product

import cvxpy
import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Lasso

from dualfield.solvers import LBFGS, Status, StopRule
from dualfield.solvers.primal.l1_quadratic import minimise_l1_quadratic, pseudo_gradient
from dualfield.solvers.primal.proximal_newton import ProximalNewton
from dualfield.solvers.primal.quasi_newton import Point
from tests.objectives.problems import random_problem


def best_by_signs(B, q, l1):
    """Try the minimum for all signs of all coordinates."""
    best = np.inf
    for signs in product((-1.0, 0.0, 1.0), repeat=len(q)):
        signs = np.array(signs)
        chosen = np.flatnonzero(signs)
        x = np.zeros(len(q))
        if chosen.size:
            x[chosen] = np.linalg.solve(B[np.ix_(chosen, chosen)], -(q + l1 * signs)[chosen])
        best = min(best, 0.5 * x @ B @ x + q @ x + l1 * np.abs(x).sum())
    return best


@pytest.mark.parametrize("l1", [0.0, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e8])
def test_quadratic_model(l1, condition):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.normal(size=(5, 5)))[0]
        B = basis @ np.diag(np.geomspace(1.0, condition, 5)) @ basis.T
        q = 5.0 * rng.normal(size=5)
        x = minimise_l1_quadratic(B, q, l1, rng.normal(size=5))
        value = 0.5 * x @ B @ x + q @ x + l1 * np.abs(x).sum()
        best = best_by_signs(B, q, l1)
        assert value == pytest.approx(best, rel=1e-8, abs=1e-12)
        assert np.abs(pseudo_gradient(x, B @ x + q, l1)).max() <= 1e-8 * (1.0 + np.abs(q).max())


@pytest.mark.parametrize("l1", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_least_squares(l1, ridge):
    """Against coordinate descent, on columns of very unequal size."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 12)) * np.geomspace(0.1, 10.0, 12)
    b = A @ (rng.normal(size=12) * (rng.random(12) < 0.5)) + 0.1 * rng.normal(size=40)

    def evaluate(x):
        rest = A @ x - b
        return float(0.5 * rest @ rest + 0.5 * ridge * x @ x + l1 * np.abs(x).sum()), A.T @ rest + ridge * x

    settings = {"fit_intercept": False, "tol": 1e-14, "max_iter": 200_000}
    peer = Lasso(l1 / 40, **settings)
    if ridge:
        peer = ElasticNet((l1 + ridge) / 40, l1_ratio=l1 / (l1 + ridge), **settings)
    want = peer.fit(A, b).coef_
    run = ProximalNewton(evaluate, Point(np.zeros(12), *evaluate(np.zeros(12))), l1, np.geomspace(0.1, 10.0, 12))
    for _ in range(50):
        if not run.step():
            break
    assert run.point.value <= evaluate(want)[0] * (1 + 1e-12)
    np.testing.assert_allclose(run.point.x, want, atol=1e-6)
    np.testing.assert_array_equal(run.point.x == 0.0, want == 0.0)


def test_goes_on_from_a_state_as_it_would_have():
    problem = random_problem(3, weight=100.0)
    objective = problem.loss(1.0)

    def evaluate(w):
        loss, gradient = objective.loss_and_gradient(w)
        return objective.gap(w, loss, gradient)[0], gradient

    start = np.zeros(objective.n_parameters)
    reach = np.full(objective.n_parameters, 1.0)
    run = ProximalNewton(evaluate, Point(start, *evaluate(start)), 1.0, reach)
    assert run.step()
    assert run.step()
    again = ProximalNewton(evaluate, run.state(), 1.0, reach)
    for _ in range(3):
        assert run.step() == again.step()
        np.testing.assert_array_equal(run.point.x, again.point.x)
        assert run.n_evaluations == again.n_evaluations


def by_cvxpy(problem, l1_ratio):
    reference = problem.reference(l1_ratio)
    w = cvxpy.Variable(problem.model.size)
    total = (1 - l1_ratio) / 2 * cvxpy.sum_squares(w) + l1_ratio * cvxpy.norm1(w)
    for (rows, costs, agree), example in zip(reference.tables, reference.examples, strict=True):
        total += example.weight * (cvxpy.log_sum_exp(rows @ w + costs) - rows[agree][0] @ w)
    solved = cvxpy.Problem(cvxpy.Minimize(total))
    solved.solve(solver=cvxpy.CLARABEL)
    return float(solved.value)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("l1_ratio", [0.9, 1.0])
def test_weak_penalties_on_absolute_values_are_certified(l1_ratio, seed):
    """Six sequences that count a thousand times: OWL-QN alone does not get there in 5,000 passes."""
    problem = random_problem(seed, lengths=(3, 2, 4, 3, 4, 2), weight=1000.0)
    solution = LBFGS().solve(problem.loss(l1_ratio), StopRule(1e-4, 1000))
    assert solution.status == Status.CONVERGED
    assert solution.trace.passes[-1] <= 500
    best = by_cvxpy(problem, l1_ratio)
    value = problem.reference(l1_ratio).value(problem.to_reference(solution.parameters))
    assert solution.objective == pytest.approx(value, rel=1e-9)
    assert best * (1 - 1e-6) <= value <= best * (1 + 1e-4)
    assert value - solution.gap <= best * (1 + 1e-6)
    assert np.all(solution.trace.dual <= best * (1 + 1e-6))  # certificates on the way hold too
    assert np.all(np.diff(solution.trace.gap) <= 1e-9 * best)  # and none is taken back


def test_columns_of_very_unequal_size():
    """The same model as with columns of equal size and other penalties, which cvxpy solves."""
    rng = np.random.default_rng(0)
    problem = random_problem(5, lengths=(3, 2, 4, 3, 4, 2), weight=10.0)
    sizes = 10.0 ** rng.uniform(-3, 4, problem.batch.n_columns)
    problem.batch.dense[:] *= sizes
    for example, first, last in zip(problem.examples, problem.batch.offsets, problem.batch.offsets[1:], strict=False):
        example.x = problem.batch.dense[first:last]
    solution = LBFGS().solve(problem.loss(), StopRule(1e-6))
    assert solution.status == Status.CONVERGED
    reference = problem.reference()
    scale = np.ones(problem.model.size)
    problem.model.blocks(scale)[0][:] = 1.0 / sizes[:, None]
    v = cvxpy.Variable(problem.model.size)  # w = scale * v
    total = 0.5 * cvxpy.sum_squares(cvxpy.multiply(scale, v))
    for (rows, _, agree), example in zip(reference.tables, reference.examples, strict=True):
        scaled = rows * scale
        total += example.weight * (cvxpy.log_sum_exp(scaled @ v) - scaled[agree][0] @ v)
    solved = cvxpy.Problem(cvxpy.Minimize(total))
    solved.solve(solver=cvxpy.CLARABEL)
    assert solution.objective == pytest.approx(solved.value, rel=1e-5)
    assert solution.objective - solution.gap <= solved.value * (1 + 1e-5)
