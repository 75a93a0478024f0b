"""All solvers of linear chains reach the same minimum, to what each of them claims."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from dualfield.solvers import LBFGS, SGD, Auto, BlockDual, Perceptron, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from tests.objectives.problems import random_problem

EXACT = [BlockDual(), LBFGS(), Auto()]
VARIANTS = {
    "plain": {},
    "ends": {"ends": True},
    "cost": {"cost": True, "temperature": 0.5},
    "warm": {"temperature": 2.0, "form": "unit"},
    "order 2": {"order": 2},
    "constrained": {"constrained": True, "ends": True},
    "two constrained": {"constrained": True, "order": 2, "form": "weighted"},
}
MORE = {"pair": {"pair": True}, "pair order 2": {"pair": True, "order": 2, "ends": True}}


@cache
def solved(variant: str, weight: float = 1.0, l1_ratio: float = 0.0, seed: int = 1):
    """A problem with the minimum that SciPy finds on the enumeration."""
    problem = random_problem(seed, weight=weight, lengths=(3, 0, 1, 4, 2, 3, 4), **{**VARIANTS, **MORE}[variant])
    return problem, *problem.reference(l1_ratio).minimum()


def check(problem, solution, best, tol, l1_ratio=0.0):
    """The claim holds: value, gap and status are those of the returned point, and the gap bounds its distance."""
    assert solution.status == Status.CONVERGED
    value = problem.reference(l1_ratio).value(problem.to_reference(solution.parameters))
    assert solution.objective == pytest.approx(value, rel=1e-9)
    assert solution.objective == pytest.approx(problem.loss(l1_ratio).certify(solution.parameters)[0], rel=1e-9)
    assert -1e-14 * best <= solution.gap <= tol * best * (1 + 1e-6)
    assert -1e-10 * best <= value - best <= solution.gap + 1e-10 * best
    assert solution.relative_gap <= tol


@pytest.mark.parametrize("solver", EXACT, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("variant", VARIANTS)
def test_same_minimum(solver, variant):
    for weight in (1e-3, 1.0, 30.0):
        problem, best, at = solved(variant, weight)
        for tol in (1e-2, 1e-5, 1e-8):
            solution = solver.solve(problem.loss(), StopRule(tol), random_state=3)
            check(problem, solution, best, tol)
        # Strong convexity: |w - w*|^2 / 2 is at most the distance in value.
        distance = np.linalg.norm(problem.to_reference(solution.parameters) - at)
        assert 0.5 * distance**2 <= solution.gap + 1e-9 * best


@pytest.mark.parametrize("variant", MORE)
def test_pair_features(variant):
    problem, best, _ = solved(variant)
    check(problem, LBFGS().solve(problem.loss(), StopRule(1e-8)), best, 1e-8)
    assert Auto().solve(problem.loss(), StopRule(1e-3)).solver == "lbfgs"


@pytest.mark.parametrize("l1_ratio", [0.1, 0.7, 1.0])
@pytest.mark.parametrize("variant", ["plain", "cost", "pair", "order 2"])
def test_absolute_values(variant, l1_ratio):
    # With absolute values alone the bound falls as slowly as the gradient: rounding of the value stops it earlier.
    tol = 1e-7 if l1_ratio < 1 else 1e-5
    for weight in (0.5, 5.0):
        problem, best, at = solved(variant, weight, l1_ratio)
        solution = LBFGS().solve(problem.loss(l1_ratio), StopRule(tol))
        check(problem, solution, best, tol, l1_ratio)
        zeros = np.abs(problem.to_reference(solution.parameters)) == 0
        assert np.all(np.abs(at[zeros]) < 1e-3)
        first = "lbfgs" if variant == "pair" else "block_dual"
        assert Auto().solve(problem.loss(l1_ratio), StopRule(1e-3)).solver == first


@pytest.mark.parametrize("average", [True, False])
def test_stochastic_gradients_come_near(average):
    for variant in VARIANTS:
        problem, best, _ = solved(variant)
        solution = SGD(average=average).solve(problem.loss(), StopRule(1e-12, 300), random_state=1)
        assert solution.status == Status.FINISHED
        assert solution.n_iter == 300
        value, gap = problem.loss().certify(solution.parameters)
        assert (solution.objective, solution.gap) == (value, gap)
        assert -1e-12 * best <= value - best <= 1e-3 * best
        assert gap >= value - best
    first = SGD(average=average).solve(problem.loss(), StopRule(1e-12, 10), random_state=1)
    assert first.gap > gap


def test_stochastic_gradients_on_pairs_and_partly_labelled():
    problem, best, _ = solved("pair")
    assert SGD().solve(problem.loss(), StopRule(1e-6, 200)).objective <= best * 1.01
    partial = random_problem(2, partial=True)
    solution = SGD().solve(partial.loss(), StopRule(1e-6, 200))
    start = partial.loss().certify(np.zeros(partial.score_map.n_parameters))[0]
    nearby = partial.reference().minimum(partial.to_reference(solution.parameters))[0]
    assert nearby - 1e-9 <= solution.objective <= nearby + 0.02 * (start - nearby)
    assert np.isnan(solution.gap)


def test_partly_labelled_ends_where_the_gradient_is_zero():
    problem = random_problem(2, partial=True, pair=True, ends=True)
    solution = LBFGS().solve(problem.loss(), StopRule(1e-8))
    assert solution.status == Status.CONVERGED
    assert np.isnan(solution.gap)
    w = problem.to_reference(solution.parameters)
    _, gradient = problem.reference().loss_and_gradient(w)
    assert np.linalg.norm(gradient + w) <= 1e-7 * solution.objective
    assert solution.objective == pytest.approx(problem.reference().value(w), rel=1e-10)


@pytest.mark.parametrize("average", [True, False])
def test_perceptron_separates(average):
    """Labels that some weights give: the perceptron finds such weights after finitely many mistakes."""
    problem = random_problem(11, lengths=(4,) * 12, n_columns=6)
    w = problem.random_parameters(0, scale=3.0)
    problem.codes = problem.score_map.structure.argmax(problem.score_map.scores(w, problem.batch))
    solution = Perceptron(average=False).solve(problem.loss(), StopRule(1e-6, 2000), random_state=0)
    assert solution.n_iter < 2000  # a pass without a mistake ends it
    found = problem.score_map.scores(solution.parameters, problem.batch)
    np.testing.assert_array_equal(problem.score_map.structure.argmax(found), problem.codes)
    if average:
        mean = Perceptron(average=True).solve(problem.loss(), StopRule(1e-6, 2000), random_state=0).parameters
        right = problem.score_map.structure.argmax(problem.score_map.scores(mean, problem.batch)) == problem.codes
        assert right.mean() > 0.9
        assert not np.allclose(mean, solution.parameters)


def test_perceptron_in_plain_python():
    """The same course as Collins' algorithm, step by step, on one example at a time."""
    problem = random_problem(4, lengths=(3,), n_columns=3)
    reference = problem.model
    example, w, mean = problem.examples[0], np.zeros(problem.model.size), np.zeros(problem.model.size)
    example.weight = 1.0
    for _ in range(7):
        best = max(reference.labellings(3), key=lambda y: (reference.features(example, y) @ w, [-k for k in y[::-1]]))
        w = w + reference.features(example, tuple(example.truth)) - reference.features(example, best)
        mean += w / 7
        if list(best) == example.truth:
            break
    last = Perceptron(average=False).solve(problem.loss(), StopRule(1e-6, 7))
    np.testing.assert_allclose(problem.to_reference(last.parameters), w, atol=1e-12)


@pytest.mark.parametrize("variant", ["plain", "cost", "order 2"])
def test_trace_of_the_dual(variant):
    """Every look is a true bound, the dual never falls, and the last row is the solution."""
    problem, best, _ = solved(variant, 30.0)
    solution = BlockDual().solve(problem.loss(), StopRule(1e-9), random_state=0)
    trace = solution.trace
    assert len(trace) > 3
    assert np.all(np.diff(trace.dual) >= -1e-12 * best)
    assert np.all(trace.dual <= best * (1 + 1e-12))
    assert np.all(trace.objective >= best * (1 - 1e-12))
    finite = np.isfinite(trace.gap)
    np.testing.assert_allclose((trace.objective - trace.dual)[finite], trace.gap[finite], atol=1e-12 * best)
    assert np.all(np.diff(trace.passes) >= 0)
    assert np.all(np.diff(trace.seconds) >= 0)
    assert (trace.objective[-1], trace.gap[-1]) == (solution.objective, solution.gap)


@pytest.mark.parametrize("solver", EXACT, ids=lambda one: type(one).__name__)
def test_start(solver):
    """From the minimum it is a short way; from a bad place it still arrives."""
    problem, best, at = solved("ends", 30.0)
    objective, rule = problem.loss(), StopRule(1e-6)
    cold = solver.solve(objective, rule, random_state=0)
    there = problem.to_library(at)
    warm = solver.solve(objective, rule, start=there, random_state=0)
    check(problem, warm, best, 1e-6)
    assert warm.trace.passes[-1] <= max(4, 0.2 * cold.trace.passes[-1])
    np.testing.assert_array_equal(there, problem.to_library(at))  # the start is not touched
    check(problem, solver.solve(objective, rule, start=problem.random_parameters(0, 10.0)), best, 1e-6)


@pytest.mark.parametrize("solver", [BlockDual(), SGD(), Perceptron()], ids=lambda one: type(one).__name__)
def test_seeds(solver):
    problem, _, _ = solved("ends")
    one, again, other = (solver.solve(problem.loss(), StopRule(1e-4, 9), random_state=s).parameters for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("solver", [BlockDual(), LBFGS(), SGD(), Perceptron()], ids=lambda one: type(one).__name__)
def test_threads_give_the_same_bits(solver):
    problem = random_problem(0, 3, lengths=np.random.default_rng(0).integers(1, 4, 300))
    one, two = (solver.solve(problem.loss(n_threads=n), StopRule(1e-5, 30), random_state=0) for n in (1, 2))
    np.testing.assert_array_equal(one.parameters, two.parameters)
    assert (one.objective, one.n_iter) == (two.objective, two.n_iter)


@pytest.mark.parametrize("solver", [BlockDual(), LBFGS()], ids=lambda one: type(one).__name__)
def test_limit_on_passes(solver):
    problem, best, _ = solved("plain", 30.0)
    solution = solver.solve(problem.loss(), StopRule(1e-12, 3))
    assert solution.status == Status.ITERATION_LIMIT
    assert solution.trace.passes[-1] <= 3 + 12  # a visit may try some step lengths
    assert solution.objective - solution.gap <= best <= solution.objective
    assert solution.gap == pytest.approx(solution.objective - solution.trace.dual[-1])


@pytest.mark.parametrize("solver", [BlockDual(), LBFGS(), SGD(), Perceptron()], ids=lambda one: type(one).__name__)
def test_whoever_watches_may_raise(solver):
    class Raising(Callbacks):
        interval = 0.0

        def __call__(self, *row):
            assert len(row) == 5
            raise LookupError("enough")

    problem, _, _ = solved("plain", 30.0)
    with pytest.raises(LookupError, match="enough"):
        solver.solve(problem.loss(), StopRule(1e-9, 100), callbacks=Raising())


def test_what_solvers_cannot_take():
    partial = random_problem(2, partial=True)
    plain, _, _ = solved("plain")
    with pytest.raises(ValueError, match=r"solver='block_dual' cannot take .*labelled only in part.*'auto'.* 'lbfgs'"):
        BlockDual().solve(partial.loss(), StopRule(1e-3))
    with pytest.raises(ValueError, match=r"The state of the dual takes 0.0 GB, more than the 0.0 allowed"):
        BlockDual(memory=10).solve(plain.loss(), StopRule(1e-3))
    assert Auto().solve(partial.loss(), StopRule(1e-3)).solver == "lbfgs"
    with pytest.raises(ValueError, match=r"solver='sgd' cannot take .*absolute values .*'lbfgs'"):
        SGD().solve(plain.loss(0.5), StopRule(1e-3))
    with pytest.raises(ValueError, match=r"solver='perceptron' cannot take .* labelled only in part.*'lbfgs'"):
        Perceptron().solve(partial.loss(), StopRule(1e-3))
