"""Descent on partitions: bundle certificates against the minimum, memory, averaged starts, and states to go on from."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import pytest

from dualfield._native import StateError
from dualfield.engines import Serial
from dualfield.objectives import PartitionedObjective
from dualfield.regularisers import ElasticNet, SquaredNorm
from dualfield.solvers import LBFGS, BlockDual, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.primal.bundle import Bundle, best_mixture
from tests.objectives.partitions import partitioned, problems, sequences, whole_problem

CUTS = [0, 40, 80, 81, 130]


def objective(n: int = 160, C: float = 5.0, penalty: Any = None, n_parts: int | None = None) -> PartitionedObjective:
    X, y = sequences(n)
    whole = whole_problem(X, y, C, penalty)
    cuts = CUTS if n_parts is None else np.linspace(0, n, n_parts + 1)[1:-1].astype(int).tolist()
    return partitioned(Serial(), problems(X, y, whole, cuts), whole)


def test_the_best_mixture_is_that_of_a_quadratic_programme() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        slopes, heights = rng.normal(size=(6, 4)), rng.normal(size=6) + 1.0
        gram = slopes @ slopes.T
        found = best_mixture(heights, gram, 1000)
        assert (found >= 0.0).all()
        assert found.sum() <= 1.0 + 1e-12
        weights = cvxpy.Variable(6, nonneg=True)
        value = heights @ weights - 0.5 * cvxpy.sum_squares(slopes.T @ weights)
        best = cvxpy.Problem(cvxpy.Maximize(value), [cvxpy.sum(weights) <= 1.0]).solve()
        assert heights @ found - 0.5 * found @ gram @ found == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("bundle_size", [0, 3, 20])
def test_every_row_of_the_course_bounds_the_distance_from_the_minimum(bundle_size: int) -> None:
    sharp = LBFGS(40).solve(objective(), StopRule(1e-9)).objective
    problem = objective()
    problem.bundle_size = bundle_size
    solution = LBFGS(40).solve(problem, StopRule(1e-5))
    assert solution.status.value == "converged"
    assert len(solution.trace) > 10
    assert (solution.trace.objective - solution.trace.gap <= sharp * (1.0 + 1e-12)).all()
    assert (np.diff(solution.trace.dual) >= 0.0).all()


def test_a_bundle_is_never_worse_than_its_points_and_saves_passes() -> None:
    single, bundled = objective(), objective()
    single.bundle_size = 0
    ends = [LBFGS(40).solve(problem, StopRule(1e-3)) for problem in (single, bundled)]
    rows = min(len(end.trace) for end in ends)
    np.testing.assert_array_equal(ends[0].trace.objective[:rows], ends[1].trace.objective[:rows])
    assert (ends[1].trace.dual[:rows] >= ends[0].trace.dual[:rows]).all()
    assert ends[1].trace.passes[-1] < ends[0].trace.passes[-1]


def test_planes_that_lie_are_refused() -> None:
    bundle = Bundle(SquaredNorm(2), 3)
    bundle.add(1.0, np.array([1.0, 0.5]))
    bundle.bound()
    kept = bundle.state()
    losses = [(np.zeros(2), 1.0), (np.ones(2), 0.0)]
    again = Bundle(SquaredNorm(2), 3)
    again.restore(kept, 2, losses)
    assert again.best == bundle.best
    for name, change in (("bundle_heights", 0.01), ("bundle_slopes", -2.0)):
        with pytest.raises(StateError, match="above the losses"):
            Bundle(SquaredNorm(2), 3).restore(kept | {name: kept[name] + change}, 2, losses)
    with pytest.raises(StateError, match="expected 1 to 4"):
        Bundle(SquaredNorm(2), 3).restore({"bundle_heights": np.zeros(5), "bundle_slopes": np.zeros(10)}, 2, losses)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3])
def test_the_minimum_is_that_of_the_whole(l1_ratio: float) -> None:
    penalty = ElasticNet(l1_ratio) if l1_ratio else None
    X, y = sequences(160)
    whole = BlockDual().solve(whole_problem(X, y, 5.0, penalty), StopRule(1e-6))
    parts = LBFGS(40).solve(objective(penalty=penalty), StopRule(1e-6))
    assert abs(whole.objective - parts.objective) <= whole.gap + parts.gap
    if l1_ratio:
        assert (parts.parameters == 0.0).sum() > (whole_problem(X, y).score_map.used == 0).sum()


class Keeper(Callbacks):
    """Keeps the state of every pass, or goes on from one; ends after some passes."""

    def __init__(self, resume: Any = None, stop: int | None = None) -> None:
        self.states: list[Any] = []
        self.resume, self._stop = resume, stop
        self.pass_end = self._look

    def _look(self, end: Any) -> bool:
        self.states.append({name: array.copy() for name, array in end.state().items()})
        return len(self.states) == self._stop


@pytest.mark.parametrize("after", [1, 12, 30])
def test_a_state_leads_to_the_same_bits(after: int) -> None:
    rule = StopRule(1e-6)
    undisturbed = LBFGS(40).solve(objective(), rule)
    first = Keeper(stop=after)
    LBFGS(40).solve(objective(), rule, None, first)
    again = LBFGS(40).solve(objective(), rule, None, Keeper(resume=first.states[-1]))
    assert undisturbed.parameters.tobytes() == again.parameters.tobytes()
    np.testing.assert_array_equal(undisturbed.trace.rows()[:, :4], again.trace.rows()[:, :4])


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3])
def test_vectors_on_disk_have_the_same_bits(l1_ratio: float) -> None:
    penalty, rule = ElasticNet(l1_ratio) if l1_ratio else None, StopRule(1e-4)
    X, y = sequences(160)
    for problem in (lambda: objective(penalty=penalty), lambda: whole_problem(X, y, 5.0, penalty)):
        here, there = (LBFGS(5, in_memory=size).solve(problem(), rule) for size in (1e9, 0.0))
        assert here.status.value == "converged"
        assert here.parameters.tobytes() == there.parameters.tobytes()
        np.testing.assert_array_equal(here.trace.rows()[:, :4], there.trace.rows()[:, :4])


@pytest.mark.parametrize("sizes", [(0.0, 0.0), (0.0, 1e9), (1e9, 0.0)])
def test_a_state_on_disk_leads_to_the_same_bits(sizes: tuple[float, float]) -> None:
    rule = StopRule(1e-4)
    undisturbed, first = LBFGS(40).solve(objective(), rule), Keeper(stop=12)
    LBFGS(40, in_memory=sizes[0]).solve(objective(), rule, None, first)
    again = LBFGS(40, in_memory=sizes[1]).solve(objective(), rule, None, Keeper(resume=first.states[-1]))
    assert undisturbed.parameters.tobytes() == again.parameters.tobytes()
    assert undisturbed.gap == again.gap


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3])
def test_vectors_are_on_disk_where_they_take_more_than_they_may(
    l1_ratio: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    penalty = ElasticNet(l1_ratio) if l1_ratio else None
    size = 8 * objective(penalty=penalty).n_parameters * (10 if l1_ratio else 31)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert LBFGS(5, in_memory=size).solve(objective(penalty=penalty), StopRule(1e-3)).status.value == "converged"
    with pytest.raises(OSError, match="cannot be kept in"):
        LBFGS(5, in_memory=size - 1).solve(objective(penalty=penalty), StopRule(1e-3))


@pytest.mark.parametrize("bad", [-1.0, np.nan, "1e9"])
def test_bytes_that_are_none_are_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"'in_memory' parameter of LBFGS must be a float in \[0, inf\)\. Got"):
        LBFGS(in_memory=bad).solve(objective(), StopRule(1e-3))


def test_an_averaged_start_saves_exchanges() -> None:
    cold, average = objective(600, n_parts=8), objective(600, n_parts=8)
    rule = StopRule(1e-3)
    ends = [LBFGS(40, begin=begin).solve(one, rule) for one, begin in ((cold, "zero"), (average, "average"))]
    assert abs(ends[0].objective - ends[1].objective) <= ends[0].gap + ends[1].gap
    assert ends[1].trace.passes[-1] < ends[0].trace.passes[-1]


def test_an_averaged_start_is_refused_where_it_cannot_be() -> None:
    penalised = objective(penalty=ElasticNet(0.5))
    with pytest.raises(ValueError, match="It penalises absolute values"):
        LBFGS(begin="average").solve(penalised, StopRule(1e-3))
    X, y = sequences(10)
    with pytest.raises(ValueError, match="no partitions to average over"):
        LBFGS(begin="average").solve(whole_problem(X, y), StopRule(1e-3))
    with pytest.raises(ValueError, match="must be 'zero' or 'average'"):
        LBFGS(begin="mean").solve(objective(), StopRule(1e-3))
