"""Restricted simplicial decomposition on tables of probabilities: minimum, bounds, monotone anchors, few vertices."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse

from dualfield.data import Batch
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.regularisers import SquaredNorm, TableDivergence
from dualfield.scores import FeatureTable, LinearScores
from dualfield.solvers import CuttingPlane, FlowSwap, Simplicial, Status, StopRule
from dualfield.solvers.planes.mixture_master import MixtureMaster
from dualfield.structures import Chain
from tests.estimators import hmm_reference as plain
from tests.objectives.problems import random_problem
from tests.objectives.test_planes import KINDS, planes_of
from tests.reference.structured_svm import PlaneTable, minimum

STATES, SYMBOLS = 2, 3


def hmm(X, y, c, eta):
    """The planes and tables of an HMM, and where its parameters stand in the order of the reference."""
    score_map = LinearScores(Chain(STATES), FeatureTable.all(SYMBOLS, STATES), with_ends=True)
    symbols = np.concatenate(X)
    one_hot = scipy.sparse.csr_array(
        (np.ones(len(symbols)), symbols, np.arange(len(symbols) + 1)), shape=(len(symbols), SYMBOLS)
    )
    batch = Batch.build(one_hot, lengths=[len(x) for x in X])

    def packed(values, stop):
        start, transition, emission = np.split(values, [STATES, STATES + STATES**2])
        return score_map.pack(
            emission.reshape(STATES, SYMBOLS).T.ravel(), transition, start, np.full(STATES, stop, dtype=float)
        )

    rows = packed(plain.rows(STATES, SYMBOLS) + 1.0, 0.0).astype(np.int64) - 1
    places = packed(np.arange(len(c)) + 1.0, 0.0).astype(np.int64) - 1
    labels = np.concatenate(y).astype(np.int32)
    tables = TableDivergence(packed(c, 0.0), rows)
    given = Examples(nodes=batch, labels=labels, weights=np.full(len(X), eta))
    problem = Objective(score_map, given, Loss(0.0, 1.0 - np.eye(STATES)), tables)
    order = np.argsort(np.where(places < 0, len(c), places), kind="stable")[: len(c)]
    return problem, tables, order


@cache
def solved(seed, eta, prior):
    X, y = plain.drawn(seed, STATES, SYMBOLS)
    counts, rows = plain.reference(X, y, STATES, SYMBOLS, 0.5)
    c = rows if prior == "prob" else counts
    best, theta = plain.minimum(c, plain.planes(X, y, STATES, SYMBOLS), STATES, SYMBOLS, eta)
    return (*hmm(X, y, c, eta), c, best, theta, plain.planes(X, y, STATES, SYMBOLS))


CASES = [(seed, eta, prior) for seed in range(3) for eta in (0.1, 1.0, 5.0) for prior in ("prob", "count")]


@pytest.mark.parametrize(("seed", "eta", "prior"), CASES)
@pytest.mark.parametrize("n_blocks", [1, 2, "auto"])
def test_minimum_and_bounds(seed, eta, prior, n_blocks):
    """The minimum of cvxpy, and at every round a bound below it and a value above it."""
    problem, tables, order, c, best, _, found = solved(seed, eta, prior)
    solution = Simplicial(n_blocks).solve(problem, StopRule(1e-8, 400))
    assert solution.status == Status.CONVERGED
    assert abs(solution.objective - best) <= 1e-6 * max(1.0, abs(best))
    value = plain.objective(solution.parameters[order], c, found, eta, STATES, SYMBOLS)
    assert solution.objective == pytest.approx(value, rel=1e-10)
    slack = 1e-7 * max(1.0, best + plain.least(c, STATES, SYMBOLS))  # what cvxpy itself is sure of
    assert (solution.trace.dual <= best + slack).all()
    assert (solution.trace.objective >= best - slack).all()
    np.testing.assert_allclose(solution.trace.gap, solution.trace.objective - solution.trace.dual)
    assert (np.diff(solution.dual["anchors"]) <= 0.0).all()
    assert len(solution.dual["anchors"]) > 1
    # The mixture that is kept has the bound that is claimed.
    bound = float(solution.dual["offset"]) - tables.conjugate(-solution.dual["slope"])
    assert bound == pytest.approx(solution.trace.dual[-1], rel=1e-12)


@pytest.mark.parametrize("seed", [1, 5, 12, 14])
def test_missing_mass_only_where_nothing_is_left_of_the_reference(seed):
    """A row that sums to less than one has mu = c. Large margins bring such rows about."""
    problem, tables, order, c, _, _, _ = solved(seed, 5.0, "prob")
    solution = Simplicial().solve(problem, StopRule(1e-8, 200))
    assert solution.status == Status.CONVERGED
    missing = tables.missing_mass(solution.parameters)
    left = np.abs(c - solution.dual["slope"][order])
    number = plain.rows(STATES, SYMBOLS)
    assert missing.max() > 0.05
    for row in np.flatnonzero(missing > 1e-5):
        assert left[number == row].max() <= 1e-6
    for row in np.flatnonzero(missing <= 1e-5):
        assert left[number == row].max() > 1e-3


@pytest.mark.parametrize("prior", ["prob", "count"])
def test_number_of_vertices(prior):
    """Enough vertices reach the same minimum; with two the value never rises and the bound holds."""
    problem, _, _, _, best, _, _ = solved(1, 1.0, prior)
    values = [Simplicial(1, max_columns).solve(problem, StopRule(1e-8, 400)).objective for max_columns in (10, 40)]
    assert values[0] == pytest.approx(values[1], rel=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        few = Simplicial(1, 2).solve(problem, StopRule(1e-8, 60))
    assert (np.diff(few.trace.objective) <= 0.0).all()
    assert (few.trace.dual <= best * (1 + 1e-7)).all()


def test_too_few_vertices_are_named():
    problem, _, _, _, _, _, _ = solved(2, 5.0, "count")
    with pytest.warns(UserWarning, match="more than max_columns=1 vertices with a share"):
        solution = Simplicial(1, 1).solve(problem, StopRule(1e-9, 30))
    assert solution.status in (Status.ITERATION_LIMIT, Status.STALLED)
    assert np.isfinite(solution.gap)


@pytest.mark.parametrize("kind", [0, 1, 6])
def test_agrees_with_the_other_solvers_of_the_hinge(kind):
    """The same minimum as cutting planes, to 1e-6, with and without signs; with half the squared norm by name, too."""
    problem = random_problem(kind, lengths=(3, 2, 4, 1, 3), cost=True, weight=0.7, **KINDS[kind])
    flags = np.random.default_rng(kind).random(problem.score_map.n_parameters) < 0.5
    for positive in (None, flags):
        planes = planes_of(problem, problem.model.cost, positive=positive)
        mine = Simplicial().solve(planes, StopRule(1e-8))
        other = CuttingPlane().solve(planes, StopRule(1e-8))
        assert mine.objective == pytest.approx(other.objective, rel=1e-7)
        np.testing.assert_allclose(mine.parameters, other.parameters, atol=1e-3)
        named = planes_of(problem, problem.model.cost, positive=np.zeros_like(flags) if positive is None else positive)
        assert Simplicial().solve(named, StopRule(1e-8)).objective == mine.objective


def test_a_start_saves_rounds_and_is_never_lost():
    problem, tables, _, _, _, _, _ = solved(0, 1.0, "count")
    cold = Simplicial().solve(problem, StopRule(1e-8, 400))
    warm = Simplicial().solve(problem, StopRule(1e-3), cold.parameters)
    assert warm.objective <= cold.objective * (1 + 1e-12)
    outside = Simplicial().solve(problem, StopRule(1e-6), np.full(problem.n_parameters, 3.0))
    assert outside.objective == pytest.approx(cold.objective, rel=1e-5)
    assert (tables.missing_mass(outside.parameters) >= 0.0).all()


def test_weights_of_zero_leave_the_reference():
    problem, tables, _, _, _, _, _ = solved(0, 1.0, "prob")
    given = replace(problem.examples, weights=np.zeros(4))
    nothing = Objective(problem.score_map, given, problem.loss, tables)
    solution = Simplicial().solve(nothing, StopRule(1e-8))
    np.testing.assert_allclose(solution.parameters, tables.origin(), atol=1e-12)
    assert solution.n_iter == 1


def test_refusals():
    problem, _, _, _, _, _, _ = solved(0, 1.0, "prob")
    for settings, name in ((Simplicial(0), "n_blocks"), (Simplicial(1, 0), "max_columns")):
        with pytest.raises(ValueError, match=rf"The '{name}' parameter of Simplicial must be an int in \[1, inf\)"):
            settings.solve(problem, StopRule(1e-3))


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_mixtures(seed, signs):
    """Mixtures of planes that depend on each other, after a warm start: the maximum of cvxpy."""
    rng = np.random.default_rng(seed)
    n_planes, n_parameters, n_blocks = rng.integers(2, 25), rng.integers(1, 8), rng.integers(1, 4)
    slopes, offsets = np.round(rng.normal(size=(n_planes, n_parameters)), 1), rng.random(n_planes)
    blocks = rng.integers(0, n_blocks, n_planes)
    positive = rng.random(n_parameters) < 0.5 if signs else None
    master = MixtureMaster(SquaredNorm(n_parameters, positive), n_blocks)
    for part in (slice(0, n_planes // 2), slice(n_planes // 2, None)):
        master.add(scipy.sparse.csr_array(slopes[part]), offsets[part], blocks[part])
        master.solve(1e-11)
    planes = [
        PlaneTable(np.append(offsets[blocks == k], 0.0), np.vstack([slopes[blocks == k], np.zeros(n_parameters)]))
        for k in range(n_blocks)
    ]
    best, w = minimum(planes, positive)
    assert master.value == pytest.approx(best, rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(master.response.w, w, atol=1e-4)
    assert master.lack() <= 1e-10
    assert (np.bincount(blocks, master.shares, n_blocks) <= 1 + 1e-12).all()
    before = (master.slope, master.offset)
    master.trim(2, 1e-3)
    np.testing.assert_allclose(master.slope, before[0], atol=1e-12)
    assert master.offset == pytest.approx(before[1], abs=1e-12)
    assert np.bincount(master.blocks, minlength=n_blocks).max(initial=0) <= 3  # two, and what was melted


def test_agrees_with_flow_swap():
    problem = random_problem(0, lengths=(3, 2, 4), cost=True, weight=0.7)
    hinge = planes_of(problem, problem.model.cost)
    other, mine = FlowSwap().solve(hinge, StopRule(1e-8)), Simplicial().solve(hinge, StopRule(1e-8))
    assert mine.objective == pytest.approx(other.objective, rel=1e-6)
