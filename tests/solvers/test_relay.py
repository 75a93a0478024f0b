"""Solvers in turn: no fit ends worse than a fit without a start, nor than weights of zero."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualfield import CRF
from dualfield.solvers import LBFGS, SGD, Auto, BlockDual, Solution, Status, StopRule, Trace
from dualfield.solvers.primal.relay import solve_in_turn
from tests.objectives.problems import random_problem


class Scripted:
    """A solver that ends as it is told, and notes where it began."""

    def __init__(self, *ends):
        self.ends, self.began, self.rules = list(ends), [], []

    def solve(self, objective, rule, start=None, callbacks=None, random_state=None):
        self.began.append(start)
        self.rules.append(rule)
        w, status, passes = self.ends.pop(0)
        value, gap = objective.certify(w)
        rows = np.array([[value, value - gap, gap, passes, 0.1]])
        return Solution(
            parameters=w,
            objective=value,
            gap=gap,
            status=status,
            n_iter=1,
            trace=Trace.from_rows(rows),
            solver="scripted",
        )


@pytest.fixture
def problem():
    return random_problem(3, weight=5.0)


@pytest.fixture
def good(problem):
    return LBFGS().solve(problem.loss(), StopRule(1e-9)).parameters


def test_after_a_start_that_leads_nowhere_it_begins_anew(problem, good):
    solver = Scripted((0.5 * good, Status.STALLED, 7.0), (good, Status.CONVERGED, 4.0))
    found = solve_in_turn([solver], problem.loss(), StopRule(1e-6, 100.0), 0.5 * good)
    np.testing.assert_array_equal(solver.began[0], 0.5 * good)
    assert solver.began[1] is None
    assert solver.rules[1].max_passes == 93.0
    np.testing.assert_array_equal(found.parameters, good)
    assert found.status is Status.CONVERGED
    assert found.n_iter == 2
    np.testing.assert_array_equal(found.trace.passes, [7.0, 11.0])


def test_the_better_of_two_ends_is_kept(problem, good):
    solver = Scripted((0.9 * good, Status.STALLED, 7.0), (0.1 * good, Status.STALLED, 4.0))
    found = solve_in_turn([solver], problem.loss(), StopRule(1e-9), 0.5 * good)
    np.testing.assert_array_equal(found.parameters, 0.9 * good)
    assert found.objective == problem.loss().certify(0.9 * good)[0]
    assert found.status is Status.STALLED
    assert (found.trace.objective[-1], found.trace.gap[-1]) == (found.objective, found.gap)
    best = problem.reference().minimum()[0]
    assert found.objective - found.gap <= best * (1 + 1e-9)


def test_without_a_start_nothing_is_tried_twice(problem, good):
    solver = Scripted((0.9 * good, Status.STALLED, 7.0))
    assert solve_in_turn([solver], problem.loss(), StopRule(1e-9)).status is Status.STALLED
    assert not solver.ends


@pytest.mark.parametrize("bad", [1e9, np.inf, np.nan])
@pytest.mark.parametrize("solver", [LBFGS(), BlockDual(), SGD()], ids=lambda one: type(one).__name__)
def test_a_start_worse_than_zero_is_dropped(problem, solver, bad):
    objective, rule = problem.loss(), StopRule(1e-6)
    cold = solve_in_turn([solver], objective, rule, None, None, 0)
    start = np.full(objective.n_parameters, bad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of inf - inf
        warm = solve_in_turn([solver], objective, rule, start, None, 0)
    np.testing.assert_array_equal(warm.parameters, cold.parameters)
    assert warm.n_iter == cold.n_iter


def test_weights_worse_than_zero_are_drawn_back(problem, good):
    wild = 1e6 * good
    found = solve_in_turn([Scripted((wild, Status.FINISHED, 1.0))], problem.loss(), StopRule(1e-6))
    at_zero = problem.reference().value(np.zeros(problem.model.size))
    assert problem.reference().value(problem.to_reference(found.parameters)) <= at_zero
    assert found.objective <= at_zero
    assert found.parameters.any()
    score_map, batch = problem.score_map, problem.batch
    before, after = (score_map.structure.argmax(score_map.scores(w, batch)) for w in (wild, found.parameters))
    np.testing.assert_array_equal(before, after)  # they predict the same
    best = problem.reference().minimum()[0]
    assert found.objective - found.gap <= best <= found.objective
    nothing = solve_in_turn([Scripted((-wild, Status.STALLED, 1.0))], problem.loss(), StopRule(1e-6))
    assert nothing.objective <= at_zero


def times(n=10):
    """A column of seconds since 1970 beside a word that tells the label."""
    rng = np.random.default_rng(0)
    X = [[{"time": 1.7e9 + 60.0 * t, "w": str(rng.integers(5))} for t in range(4)] for _ in range(n)]
    return X, [["ab"[int(item["w"]) % 2] for item in xs] for xs in X]


def test_a_stalled_dual_is_not_the_end():
    X, y = times()
    model = CRF(random_state=0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.solver_ == "lbfgs"
    assert model.score(X, y) == 1.0
    # Words alone, which cost no less: their minimum is a bound from above.
    words = CRF(tol=1e-8).fit([[{"w": item["w"]} for item in xs] for xs in X], y)
    assert model.objective_ <= words.objective_ * (1 + 1e-4)


@pytest.mark.parametrize("solver", ["auto", "block_dual", "lbfgs", "sgd"])
@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 50])
def test_no_result_is_worse_than_zero_weights(solver, max_iter):
    X, y = times()
    rng = np.random.default_rng(1)
    numbers = [rng.normal(size=(4, 3)) for _ in y]
    for data in (X, numbers):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = CRF(C=10.0, solver=solver, max_iter=max_iter, random_state=0).fit(data, y)
        assert model.objective_ <= 10.0 * 40 * np.log(2) * (1 + 1e-9)
        assert model.dual_gap_ > 0
        assert model.trace_.objective[-1] == model.objective_


@pytest.mark.parametrize("solver", ["auto", "block_dual", "lbfgs", "sgd", "perceptron"])
def test_passes_end_at_the_limit(solver):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 4)) for _ in range(30)]
    y = [["abc"[k] for k in rng.integers(0, 3, 6)] for _ in X]
    for most in (1, 2, 3, 7):
        seen = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = CRF(C=10.0, solver=solver, max_iter=most, random_state=0).fit(
                X, y, monitor=lambda moment, _, seen=seen: seen.append(moment.passes)
            )
        # The last visit of an example may try some lengths of its step.
        assert model.trace_.passes[-1] <= most + 12 / 30
        assert max(seen) <= most + 12 / 30
        assert len(seen) <= most


@pytest.mark.parametrize("solver", ["auto", "block_dual", "lbfgs"])
def test_warm_fits_end_no_worse_than_cold_ones(solver):
    """Other data, and steps of C by up to 10⁵."""
    for seed in (*range(8), 107):
        rng = np.random.default_rng(seed)
        data = []
        for _ in range(2):
            X = [rng.normal(size=(int(rng.integers(1, 5)), 3)) for _ in range(5)]
            data.append((X, [["ab"[k] for k in rng.integers(0, 2, len(x))] for x in X]))
        if any(len({label for labels in y for label in labels}) < 2 for _, y in data):
            continue
        C, other = 10.0 ** rng.uniform(-2, 3, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            cold = CRF(C=other, solver=solver, random_state=0).fit(*data[1])
            warm = CRF(C=C, solver=solver, random_state=0, warm_start=True).fit(*data[0])
            warm.set_params(C=other).fit(*data[1])
        assert warm.status_ is Status.CONVERGED or cold.status_ is not Status.CONVERGED
        assert warm.objective_ <= cold.objective_ * (1 + 1.1e-4)
        assert warm.objective_ - warm.dual_gap_ <= cold.objective_ * (1 + 1e-9)


def test_the_course_is_that_of_one_solver():
    """The bound of the first solver holds for the second: gaps that were shown are not taken back."""
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(4, 3)) for _ in range(20)]
    y = [["ab"[int(v > 0)] for v in x[:, 0] + 0.5 * rng.normal(size=4)] for x in X]
    for C in (100.0, 1e4):
        model = CRF(C=C, random_state=0).fit(X, y)
        assert model.solver_ == "lbfgs"
        assert np.all(np.diff(model.trace_.dual) >= -1e-9 * model.objective_)
        assert np.all(np.diff(model.trace_.passes) >= 0)


def test_tiny_objectives_are_judged_beside_their_size():
    """Losses that count 1e-16 times, with features of 1e8: the model is that of features of size one."""
    problem = random_problem(6, lengths=(3, 2, 4, 3, 4, 2))
    plain = problem.loss()
    want = LBFGS().solve(plain, StopRule(1e-9))
    problem.batch.dense[:] *= 1e8
    given = replace(problem.labelled, weights=1e-16 * problem.labelled.weights)
    # Transitions do not grow with the features: what they could gain is gone, and the rest is what it was.
    tiny = type(plain)(problem.score_map, given, plain.loss)
    for solver in (LBFGS(), BlockDual(), Auto()):
        found = solver.solve(tiny, StopRule(1e-6))
        assert found.status is Status.CONVERGED
        assert found.objective < 1e-12
        assert found.gap <= 1e-6 * found.objective
        value, gap = tiny.certify(found.parameters)
        assert value == pytest.approx(found.objective, rel=1e-9)
        assert found.parameters.any()
        assert value < 0.9 * tiny.value(np.zeros_like(found.parameters))
        assert gap <= 1e-3 * value
    assert 1e16 * found.objective >= want.objective  # with free transitions it is lower
