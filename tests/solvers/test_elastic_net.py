"""Penalties on absolute values in the block dual: the optimum of others, exact zeros, and bounds that hold anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.data import Batch
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.regularisers import ElasticNet
from dualfield.scores import FeatureTable, LinearScores
from dualfield.solvers import LBFGS, Auto, BlockDual, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.structures import Chain
from tests.solvers.test_linear_solvers import check, solved

RATIOS = (0.1, 0.7, 1.0)


@pytest.mark.parametrize("l1_ratio", RATIOS)
@pytest.mark.parametrize("variant", ["plain", "ends", "cost", "order 2", "two constrained", "pair"])
def test_same_minimum_as_on_the_enumeration(variant, l1_ratio):
    for weight, tol in ((0.05, 1e-7), (0.5, 1e-6), (5.0, 1e-4), (30.0, 1e-4)):
        problem, best, at = solved(variant, weight, l1_ratio)
        solution = BlockDual().solve(problem.loss(l1_ratio), StopRule(tol), random_state=3)
        check(problem, solution, best, tol, l1_ratio)
        found = problem.to_reference(solution.parameters)
        if l1_ratio < 1.0:  # strong convexity: the distance in value bounds that of the weights
            near = np.sqrt(2.0 * (solution.gap + 1e-9 * best) / (1.0 - l1_ratio))
            assert np.linalg.norm(found - at) <= near
            assert np.all(np.abs(at[found == 0.0]) <= near)


@pytest.mark.parametrize("l1_ratio", RATIOS)
def test_bounds_hold_wherever_it_stops(l1_ratio):
    for weight in (1.0, 5.0, 300.0):
        problem, best, _ = solved("plain", weight, l1_ratio)
        gaps = []
        for passes in (1, 2, 3, 5, 9, 17, 40, 100):
            solution = BlockDual().solve(problem.loss(l1_ratio), StopRule(1e-12, passes), random_state=1)
            assert solution.objective >= best * (1.0 - 1e-9)
            assert solution.objective - solution.gap <= best * (1.0 + 1e-9)
            assert np.all(solution.trace.dual <= best * (1.0 + 1e-9))
            gaps.append(solution.gap)
        assert gaps[-1] < 0.1 * gaps[0]


@pytest.mark.parametrize("l1_ratio", RATIOS)
def test_zeros_are_exact_and_a_strong_penalty_leaves_nothing(l1_ratio):
    problem, _, at = solved("plain", 0.5, l1_ratio)
    solution = BlockDual().solve(problem.loss(l1_ratio), StopRule(1e-7))
    found, free = problem.to_reference(solution.parameters), np.abs(at) > 1e-3
    assert np.all(found[free] != 0.0)
    assert np.count_nonzero(found) <= np.count_nonzero(np.abs(at) > 1e-6)
    problem, best, _ = solved("plain", 1e-3, l1_ratio)
    strong = BlockDual().solve(problem.loss(l1_ratio), StopRule(1e-9))
    assert not strong.parameters.any()
    assert strong.objective == pytest.approx(best)


@pytest.mark.parametrize("l1_ratio", RATIOS)
def test_warm_starts_and_bad_ones(l1_ratio):
    problem, best, _ = solved("plain", 5.0, l1_ratio)
    loss, rule = problem.loss(l1_ratio), StopRule(1e-5)
    cold = BlockDual().solve(loss, rule)
    again = BlockDual().solve(loss, StopRule(1e-4), cold.parameters)
    check(problem, again, best, 1e-4, l1_ratio)
    assert again.trace.passes[-1] < cold.trace.passes[-1]
    bad = problem.random_parameters(7, scale=30.0)
    for solver in (BlockDual(), Auto()):
        check(problem, solver.solve(loss, rule, bad), best, 1e-5, l1_ratio)


class _Kept(Callbacks):
    """Keeps the state after some passes, or goes on from one."""

    def __init__(self, at: int = 0, resume: dict | None = None) -> None:
        self.left, self.kept, self.resume = at, None, resume
        self.pass_end = self._look

    def _look(self, end) -> bool:
        self.left -= 1
        if self.left == 0:
            self.kept = end.state()
            value, dual, gap, *_ = end.progress()
            assert dual <= value
            assert gap >= value - dual
        return False


@pytest.mark.parametrize("l1_ratio", RATIOS)
def test_a_kept_state_leads_to_the_same_weights(l1_ratio):
    problem, _, _ = solved("plain", 5.0, l1_ratio)
    loss, rule = problem.loss(l1_ratio), StopRule(1e-5)
    whole = _Kept(11)
    first = BlockDual().solve(loss, rule, callbacks=whole, random_state=2)
    second = BlockDual().solve(loss, rule, callbacks=_Kept(resume=whole.kept), random_state=2)
    np.testing.assert_array_equal(first.parameters, second.parameters)
    assert (first.objective, first.gap, first.n_iter) == (second.objective, second.gap, second.n_iter)


def test_transitions_alone():
    """No features: only the shared parts have weights, and only they tell how strong the proximal term is to be."""
    empty = FeatureTable(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), 2)
    labels = np.array([0, 1, 0, 1, 1, 1], dtype=np.int32)
    nodes = Batch(np.array([0, 4, 6]), 0, np.zeros((6, 0)))
    examples = Examples(nodes=nodes, labels=labels, weights=np.array([3.0, 0.5]))
    for l1_ratio in RATIOS:
        objective = Objective(LinearScores(Chain(2), empty), examples, Loss(1.0), ElasticNet(l1_ratio))
        best = LBFGS().solve(objective, StopRule(1e-9)).objective
        found = BlockDual().solve(objective, StopRule(1e-5))
        assert found.status is Status.CONVERGED
        assert found.objective == pytest.approx(best, rel=1e-5)
