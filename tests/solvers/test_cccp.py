"""The concave-convex procedure on problems of one or a few numbers, whose bounds can be looked up."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.objectives.latent import Completion
from dualfield.solvers import Solution, Status, StopRule, Trace
from dualfield.solvers.latent.cccp import CCCP
from dualfield.solvers.latent.cuts import InnerCuts, InnerDescent
from dualfield.solvers.latent.records import LatentStatus, LatentTrace


class Planes:
    """Examples with given features of all (y, h), their losses, and the features of the completions of the truth."""

    def __init__(self, seed: int, n: int = 8, d: int = 3) -> None:
        rng = np.random.default_rng(seed)
        self.n_parameters, self.calls = d, 0
        self.own = rng.normal(size=(n, 3, d))
        self.others = rng.normal(size=(n, 5, d))
        self.losses = rng.uniform(0.5, 2.0, size=(n, 5))

    def _all(self, w):
        scores = np.concatenate([self.own @ w, self.others @ w + self.losses], axis=1)
        return scores, np.concatenate([self.own, self.others], axis=1)

    def loss(self, w):
        return float(self._all(w)[0].max(axis=1).sum())

    def loss_and_gradient(self, w):
        self.calls += 1
        scores, features = self._all(w)
        return float(scores.max(axis=1).sum()), features[np.arange(len(scores)), scores.argmax(axis=1)].sum(axis=0)

    def complete(self, w, temperature=0.0):
        scores = self.own @ w
        states = scores.argmax(axis=1)
        if temperature == 0.0:
            return self.given(states)
        shares = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
        shares /= shares.sum(axis=1, keepdims=True)
        features = np.einsum("ih,ihd->d", shares, self.own)
        top = scores.max(axis=1)
        value = (top + temperature * np.log(np.exp((scores - top[:, None]) / temperature).sum(axis=1))).sum()
        return Completion(states, features, float(value - w @ features), temperature)

    def given(self, states):
        return Completion(states, self.own[np.arange(len(self.own)), states].sum(axis=0))

    def objective(self, w):
        return 0.5 * w @ w + self.loss(w) - (self.own @ w).max(axis=1).sum()


@pytest.mark.parametrize("seed", range(20))
def test_objective_never_rises_and_stays_below_its_bounds(seed):
    problem = Planes(seed)
    start = problem.given(np.random.default_rng(seed).integers(3, size=8))
    end = CCCP().solve(problem, InnerCuts(problem), start)
    trace = end.trace
    assert trace.certified()
    assert np.isnan(trace.before[0])
    assert (trace.objective[1:] <= trace.objective[:-1] * (1 + 1e-9)).all()
    np.testing.assert_allclose(trace.before[1:], trace.objective[:-1], rtol=1e-12)
    assert end.objective == pytest.approx(problem.objective(end.parameters), rel=1e-12)
    assert end.status is LatentStatus.SETTLED
    assert end.reached


def test_settled_weights_minimise_their_own_bound():
    problem = Planes(3)
    end = CCCP(inner_tol=1e-8).solve(problem, InnerCuts(problem), problem.given(np.zeros(8, int)))
    again = InnerCuts(problem).minimise(problem.complete(end.parameters), None, StopRule(1e-9), 0)
    assert again.objective >= end.objective - end.gap - 1e-9
    assert end.gap <= 1e-8 * end.objective


@pytest.mark.parametrize("seed", range(3))
def test_cuts_kept_between_steps_give_the_same_minima_with_fewer_passes(seed):
    # Whole runs may part where two completions tie at a minimum, as the hinge likes to have it; single problems do not.
    problem, rng = Planes(seed, n=20, d=6), np.random.default_rng(seed)
    completions = [problem.given((rng.random(20) < 0.1 * step).astype(int)) for step in range(5)]
    kept, passes = InnerCuts(problem), np.zeros(2)
    for completion in completions:
        answers = [one.minimise(completion, None, StopRule(1e-8), 0) for one in (kept, InnerCuts(problem))]
        assert answers[0].objective == pytest.approx(answers[1].objective, rel=2e-8)
        passes += [one.trace.passes[-1] for one in answers]
    assert passes[0] < 0.8 * passes[1]


def test_an_answer_worse_than_the_start_is_not_taken():
    problem = Planes(0)

    class Bad:
        def minimise(self, completion, start, rule, seed):
            w = np.full(3, 10.0)
            value = 0.5 * float(w @ w) + problem.loss(w) - float(w @ completion.features)
            course = Trace.from_rows(np.array([[value, 0.0, value, 1.0, 0.0]]))
            return Solution(
                parameters=w,
                objective=value,
                gap=value,
                status=Status.ITERATION_LIMIT,
                n_iter=1,
                trace=course,
                solver="bad",
            )

    start = np.array([0.3, -0.2, 0.1])
    end = CCCP().solve(problem, Bad(), start)
    np.testing.assert_array_equal(end.parameters, start)
    assert end.trace.certified()
    assert not end.reached


def test_annealing_is_monotone_at_each_temperature_and_ends_cold():
    problem = Planes(1, n=20)
    end = CCCP(anneal=True).solve(problem, InnerCuts(problem), problem.given(np.zeros(20, int)))
    assert end.trace.temperature[0] == 1.0
    assert (np.diff(end.trace.temperature) <= 0.0).all()
    assert end.trace.temperature[-1] == 0.0
    assert end.trace.certified()
    assert end.objective == pytest.approx(problem.objective(end.parameters), rel=1e-12)


def test_step_limit_is_told():
    problem = Planes(2, n=40, d=10)
    end = CCCP(max_iter=1).solve(problem, InnerCuts(problem), problem.given(np.zeros(40, int)))
    assert end.status is LatentStatus.ITERATION_LIMIT
    assert end.n_iter == 1
    assert "max_iter" in end.status.remedy


def test_small_steps_end_a_run():
    problem = Planes(2, n=40, d=10)
    end = CCCP(tol=0.5).solve(problem, InnerCuts(problem), problem.given(np.zeros(40, int)))
    assert end.status in (LatentStatus.SMALL_STEP, LatentStatus.SETTLED)
    assert end.n_iter <= 4


def test_interruption_keeps_the_best_point():
    problem, calls = Planes(2, n=40, d=10), []
    once = problem.loss_and_gradient

    def interrupted(w):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return once(w)

    problem.loss_and_gradient = interrupted
    end = CCCP().solve(problem, InnerCuts(problem), problem.given(np.zeros(40, int)))
    assert end.status is LatentStatus.INTERRUPTED
    assert np.isfinite(end.objective)
    assert end.trace.certified()


def test_certificate_fails_where_an_oracle_lies():
    class Liar(Planes):
        def complete(self, w, temperature=0.0):
            return self.given((self.own @ w).argmin(axis=1))  # the worst latent variables

    problem = Liar(0)
    end = CCCP(max_iter=6).solve(problem, InnerCuts(problem), problem.given(np.zeros(8, int)))
    assert not end.trace.certified()


def test_trace_tells_a_rise_only_at_equal_temperatures():
    rows = [(5.0, 4.0, 4.0, 0.1, True, 1, 1.0, 1, 0.1), (6.0, 5.0, 5.0, 0.1, True, 0, 0.0, 2, 0.2)]
    assert LatentTrace.from_rows(rows).certified()
    assert not LatentTrace.from_rows([(*row[:6], 0.0, *row[7:]) for row in rows]).certified()


def test_descent_and_cuts_solve_alike_where_both_can():
    class Smooth:
        n_parameters = 4

        def __init__(self):
            self.rows = np.random.default_rng(0).normal(size=(12, 4))

        def loss_and_gradient(self, w):
            s = self.rows @ w
            return float(np.logaddexp(0.0, s).sum()), self.rows.T @ (1.0 / (1.0 + np.exp(-s)))

    problem = Smooth()
    completion = Completion(np.zeros(1, int), problem.rows[:6].sum(axis=0))
    found = [one.minimise(completion, None, StopRule(1e-7), 0) for one in (InnerDescent(problem), InnerCuts(problem))]
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-7)
    for one in found:
        assert one.status is Status.CONVERGED
        assert one.gap <= 1e-7 * one.objective
