"""Solvers of planes reach the minimum that cvxpy finds on all labellings, and claim no more than they have."""

from __future__ import annotations

import builtins
import importlib
from functools import cache

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dualfield.objectives import CustomPlanes
from dualfield.regularisers import SquaredNorm
from dualfield.solvers import (
    Cuts,
    CuttingPlane,
    LabellingSet,
    MarginalQP,
    PlaneFrankWolfe,
    PlaneSGD,
    Simplicial,
    Status,
    StopRule,
)
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.planes.simplex_master import SimplexMaster
from dualfield.solvers.progress import ProgressLine
from tests.objectives.problems import random_problem
from tests.objectives.test_planes import KINDS, Choice, planes_of
from tests.reference.structured_svm import PlaneTable, chain_tables, minimum, value

EXACT = [
    *(CuttingPlane("one"), CuttingPlane(2), CuttingPlane("n"), LabellingSet(), MarginalQP()),
    *(Simplicial(1), Simplicial(2), Simplicial()),
]
ROUGH = [PlaneFrankWolfe(), PlaneFrankWolfe(gap_sampling=False), PlaneSGD()]
LENGTHS = (3, 0, 1, 2, 3)


@cache
def solved(kind: int, weight: float, rescaling: str = "margin"):
    problem = random_problem(kind, lengths=LENGTHS, cost=True, weight=weight, **KINDS[kind])
    cost = problem.model.cost if rescaling == "margin" else 1.0 - np.eye(3)
    tables = chain_tables(problem.model, problem.examples, cost, rescaling)
    return problem, planes_of(problem, cost, rescaling), tables, minimum(tables)[0]


def check_claim(problem, solution, tables, best):
    """Value and gap are those of the returned point."""
    at = value(tables, problem.to_reference(solution.parameters))
    assert solution.objective == pytest.approx(at, rel=1e-10)
    assert -1e-8 * best <= at - best <= solution.gap + 1e-8 * best
    assert solution.moment.gap == solution.gap
    assert len(solution.trace) >= 1
    assert (np.diff(solution.trace.passes) >= 0).all()
    assert (np.diff(solution.trace.objective) <= 0).all()
    assert (np.diff(solution.trace.dual) >= 0).all()


@pytest.mark.parametrize("solver", EXACT, ids=str)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_same_minimum(solver, kind):
    for weight in (0.05, 1.0):
        problem, objective, tables, best = solved(kind, weight)
        solution = solver.solve(objective, StopRule(1e-6), random_state=1)
        check_claim(problem, solution, tables, best)
        assert solution.status == Status.CONVERGED
        assert solution.relative_gap <= 1e-6
        assert solution.objective == pytest.approx(best, rel=1.1e-6)


@pytest.mark.parametrize("solver", [CuttingPlane("one"), CuttingPlane("n"), LabellingSet(), Simplicial()], ids=str)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_rescaled_slacks(solver, kind):
    problem, objective, tables, best = solved(kind, 0.5, "slack")
    solution = solver.solve(objective, StopRule(1e-6), random_state=0)
    check_claim(problem, solution, tables, best)
    assert solution.objective == pytest.approx(best, rel=1.1e-6)


@pytest.mark.parametrize("solver", ROUGH, ids=str)
@pytest.mark.parametrize("kind", [0, 6])
def test_rough_solvers_come_near(solver, kind):
    for weight, near in ((0.05, 2e-2), (1.0, 0.3)):
        problem, objective, tables, best = solved(kind, weight)
        solution = solver.solve(objective, StopRule(1e-3, 150), random_state=0)
        check_claim(problem, solution, tables, best)
        assert solution.relative_gap <= near
        assert solution.status in (Status.CONVERGED, Status.ITERATION_LIMIT, Status.FINISHED)


@given(
    seed=st.integers(0, 2**20),
    kind=st.sampled_from(KINDS),
    n_labels=st.integers(2, 3),
    lengths=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    weight=st.sampled_from([1e-3, 0.3, 10.0]),
    solver=st.sampled_from([CuttingPlane("one"), CuttingPlane("n"), MarginalQP(), Simplicial(1), Simplicial()]),
)
@settings(max_examples=40, deadline=None)
def test_drawn_problems(seed, kind, n_labels, lengths, weight, solver):
    problem = random_problem(seed, n_labels=n_labels, lengths=lengths, cost=True, weight=weight, **kind)
    objective = planes_of(problem, problem.model.cost)
    tables = chain_tables(problem.model, problem.examples, problem.model.cost)
    best = minimum(tables)[0]
    solution = solver.solve(objective, StopRule(1e-6))
    assert solution.objective == pytest.approx(best, rel=1.1e-6, abs=1e-9)
    assert solution.objective - solution.gap <= best * (1 + 1e-8) + 1e-9


@pytest.mark.parametrize("solver", [CuttingPlane("one"), CuttingPlane(2), CuttingPlane("n"), Simplicial()], ids=str)
@pytest.mark.parametrize("kind", [0, 2, 5])
def test_signs(solver, kind):
    problem, _, tables, free = solved(kind, 1.0)
    flags = np.random.default_rng(kind).random(problem.score_map.n_parameters) < 0.6
    best, _ = minimum(tables, problem.to_reference(flags.astype(float)) > 0)
    objective = planes_of(problem, problem.model.cost, positive=flags)
    solution = solver.solve(objective, StopRule(1e-7))
    check_claim(problem, solution, tables, best)
    assert solution.objective == pytest.approx(best, rel=1e-6)
    assert best > free * (1 + 1e-3)
    assert (solution.parameters[flags] >= 0).all()
    start = np.full(problem.score_map.n_parameters, -1.0)
    assert (solver.solve(objective, StopRule(1e-3), start).parameters[flags] >= 0).all()
    for other in (LabellingSet(), MarginalQP(), *ROUGH):
        with pytest.raises(
            ValueError, match=r"keeps weights from being negative \(positive\)\. Use solver='auto', 'cutting_plane'"
        ):
            other.solve(objective, StopRule(1e-3))


# Mixtures of planes


@given(
    seed=st.integers(0, 2**20),
    n_planes=st.integers(1, 25),
    n_parameters=st.integers(1, 8),
    n_blocks=st.integers(1, 4),
    signs=st.booleans(),
)
@example(seed=2, n_planes=18, n_parameters=2, n_blocks=2, signs=False)  # tiny shares ended every step at once
@settings(max_examples=60, deadline=None)
def test_master(seed, n_planes, n_parameters, n_blocks, signs):
    """Rounded slopes make planes that depend on each other, as solvers do."""
    rng = np.random.default_rng(seed)
    slopes, offsets = np.round(rng.normal(size=(n_planes, n_parameters)), 1), rng.random(n_planes)
    blocks = rng.integers(0, n_blocks, n_planes)
    positive = rng.random(n_parameters) < 0.5 if signs else None
    master = SimplexMaster(n_parameters, n_blocks, positive)
    half = n_planes // 2
    for part in (slice(0, half), slice(half, None)):  # a warm start
        master.add(scipy.sparse.csr_array(slopes[part]), offsets[part], blocks[part])
        master.solve(1e-11)
    tables = [
        PlaneTable(np.append(offsets[blocks == k], 0.0), np.vstack([slopes[blocks == k], np.zeros(n_parameters)]))
        for k in range(n_blocks)
    ]
    best, w = minimum(tables, positive)
    assert master.dual == pytest.approx(best, rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(master.w, w, atol=1e-4)
    assert (master.shares >= 0).all()
    assert (np.bincount(blocks, master.shares) <= 1 + 1e-12).all()
    master.keep(master.shares > 0)
    assert master.dual == pytest.approx(best, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(("seed", "whole"), [(2, True), (3, False), (5, False), (6, False)])
def test_master_of_many_planes_in_few_dimensions(seed, whole):
    """More planes than parameters: Newton's direction may be noise, and steps must go on all the same."""
    rng = np.random.default_rng(seed)
    master = SimplexMaster(3)
    planes = rng.integers(-2, 3, size=(40, 3)) * 100.0 if whole else rng.normal(size=(40, 3)) * 100.0
    offsets = rng.integers(0, 5, size=40).astype(float) if whole else 5.0 * rng.random(40)
    for slope, offset in zip(planes, offsets, strict=True):
        master.add(scipy.sparse.csr_array(slope[None]), np.array([offset]), np.zeros(1, dtype=np.int64))
        master.solve(1e-9)
        heights = master.values()
        assert max(heights.max(), 0.0) - heights @ master.shares <= 2e-9


# Starts, ends, refusals


def test_a_start_saves_rounds():
    _, objective, _, _ = solved(0, 1.0)
    cold = CuttingPlane().solve(objective, StopRule(1e-9))
    warm = CuttingPlane().solve(objective, StopRule(1e-2), cold.parameters)
    assert warm.n_iter < CuttingPlane().solve(objective, StopRule(1e-2)).n_iter
    for solver in (LabellingSet(), MarginalQP(), *ROUGH):
        again = solver.solve(objective, StopRule(1e-3, 3), cold.parameters, random_state=0)
        assert again.objective <= cold.objective * (1 + 1e-12)


def test_cuts_to_begin_with():
    _, objective, _, best = solved(1, 1.0)
    planes = [objective.planes(w) for w in np.random.default_rng(0).normal(size=(5, objective.n_parameters))]
    rows = [objective.weights @ one.slopes for one in planes]
    cuts = Cuts(
        scipy.sparse.csr_array(np.array(rows)),
        np.array([objective.weights @ one.offsets for one in planes]),
        np.zeros(5, dtype=np.int64),
    )
    solution = CuttingPlane("one").solve(objective, StopRule(1e-7), cuts)
    assert solution.objective == pytest.approx(best, rel=2e-7)
    assert solution.trace.dual[0] > 0


@pytest.mark.parametrize("solver", [*EXACT, *ROUGH], ids=str)
def test_interruption_returns_the_best_point(solver):
    problem, objective, tables, best = solved(0, 1.0)

    def told(*row):
        if row[3] >= 2:
            raise KeyboardInterrupt

    solution = solver.solve(objective, StopRule(1e-12), callbacks=told, random_state=0)
    assert solution.status == Status.INTERRUPTED
    check_claim(problem, solution, tables, best)


@pytest.mark.parametrize("solver", [*EXACT[:4], *ROUGH], ids=str)
def test_a_monitor_ends_it(solver):
    _, objective, _, _ = solved(0, 1.0)
    seen = []

    def monitor(moment, w):
        seen.append((moment.objective, moment.gap, w.copy()))
        return len(seen) == 3

    solution = solver.solve(
        objective, StopRule(1e-12), callbacks=FitCallbacks(ProgressLine("fit", 0), monitor), random_state=0
    )
    assert solution.status == Status.STOPPED
    assert len(seen) == 3
    assert seen[-1][0] == solution.objective
    np.testing.assert_array_equal(seen[-1][2], solution.parameters)


@pytest.mark.parametrize("solver", [CuttingPlane(), LabellingSet(), PlaneFrankWolfe()], ids=str)
def test_limit_on_passes(solver):
    _, objective, _, _ = solved(0, 1.0)
    solution = solver.solve(objective, StopRule(1e-12, 4), random_state=0)
    assert solution.status == Status.ITERATION_LIMIT
    assert 4 <= solution.trace.passes[-1] < 12


@pytest.mark.parametrize("solver", [LabellingSet(), *ROUGH], ids=str)
def test_seeds_decide(solver):
    _, objective, _, _ = solved(0, 1.0)
    first, again, other = (solver.solve(objective, StopRule(1e-12, 6), random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.parameters, again.parameters)
    assert not np.array_equal(first.parameters, other.parameters)


def test_examples_without_weight_do_not_count():
    problem, objective, _, _ = solved(0, 1.0)
    weights = objective.weights * np.array([1, 1, 0, 1, 0])
    kept = [example for example, weight in zip(problem.examples, weights, strict=True) if weight]
    best = minimum(chain_tables(problem.model, kept, problem.model.cost))[0]
    objective = planes_of(problem, problem.model.cost, weights=weights)
    for solver in EXACT:
        assert solver.solve(objective, StopRule(1e-7), random_state=0).objective == pytest.approx(best, rel=1e-6)


def test_nothing_to_learn():
    """One label: the loss is zero everywhere, and so is the minimum."""
    problem = random_problem(0, n_labels=1, cost=True)
    for solver in [*EXACT, *ROUGH]:
        solution = solver.solve(planes_of(problem, np.zeros((1, 1))), StopRule(1e-3), random_state=0)
        assert (solution.status, solution.objective, solution.gap) == (Status.CONVERGED, 0.0, 0.0)


@pytest.mark.parametrize("solver", [CuttingPlane(), LabellingSet(), *ROUGH], ids=str)
def test_custom_outputs(solver):
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(4, 3)) for _ in range(6)], rng.integers(0, 4, 6).tolist()
    tables = [PlaneTable(np.abs(np.arange(4.0) - t), x - x[t], 0.05) for x, t in zip(X, y, strict=True)]
    best, _ = minimum(tables)
    solution = solver.solve(
        CustomPlanes(Choice(), X, y, np.full(6, 0.05), SquaredNorm(3)), StopRule(1e-4, 300), random_state=0
    )
    assert solution.objective == pytest.approx(value(tables, solution.parameters), rel=1e-10)
    assert solution.objective - solution.gap <= best * (1 + 1e-9) <= solution.objective * (1 + 2e-9)
    assert solution.relative_gap <= (1e-4 if solver in (CuttingPlane(), LabellingSet()) else 2e-2)


def test_refusals():
    _, objective, _, _ = solved(0, 1.0, "slack")
    with pytest.raises(ValueError, match="Rescaled slacks are not sums over cliques"):
        MarginalQP().solve(objective, StopRule(1e-3))
    custom = CustomPlanes(Choice(), [np.eye(2)], [0], np.ones(1), SquaredNorm(2))
    with pytest.raises(ValueError, match=r"solver='marginal' cannot take .* only chains have them"):
        MarginalQP().solve(custom, StopRule(1e-3))
    with pytest.raises(ValueError, match=r"It has 57 marginals, more than the 10 allowed"):
        MarginalQP(10).solve(solved(0, 1.0)[1], StopRule(1e-3))
    for slack in ("two", 0, True, 1.5):
        with pytest.raises(ValueError, match="The 'slack' parameter of CuttingPlane must be"):
            CuttingPlane(slack).solve(objective, StopRule(1e-3))
    with pytest.raises(ValueError, match="The 'patience' parameter of LabellingSet must be"):
        LabellingSet(0).solve(objective, StopRule(1e-3))


def test_without_clarabel(monkeypatch):
    real = importlib.import_module
    monkeypatch.setattr(
        importlib,
        "import_module",
        lambda name, *rest: builtins.__import__("no_such_package") if name == "clarabel" else real(name, *rest),
    )
    with pytest.raises(ImportError, match=r"pip install clarabel"):
        MarginalQP().solve(solved(0, 1.0)[1], StopRule(1e-3))
