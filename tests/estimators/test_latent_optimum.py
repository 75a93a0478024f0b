"""Latent structural SVMs against enumeration of all (y, h) and against cvxpy."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import LatentChain, LatentMulticlass, LatentStructuredSVM, StructuredSVM
from dualfield.data import Batch
from dualfield.objectives.latent import Completion
from dualfield.objectives.latent_bags import BagProblem, BagScores
from dualfield.solvers import StopRule
from dualfield.solvers.latent.cccp import CCCP
from dualfield.solvers.latent.cuts import InnerCuts
from dualfield.solvers.latent.states import StateSolver
from tests.estimators.latent_problems import flattened, packed, random_weights, tiny
from tests.reference.latent import best_bound, hidden_rhythm, latent_objective


def inner_solvers(problem):
    return {"cuts": InnerCuts(problem), "flow": StateSolver(problem, InnerCuts(problem))}


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3), (2, 1, 2)])
@pytest.mark.parametrize("ends", [False, True])
def test_objective_completion_and_loss_agree_with_enumeration(sizes, ends):
    data, listed = tiny(1, sizes, ends=ends)
    problem = data.problem(0.0, 1)
    flat = random_weights(data, 2)
    w = packed(data, flat)
    loss = sum((everything @ flat + losses).max() for everything, losses, _ in listed)
    completion = problem.complete(w)
    assert problem.loss(w) == pytest.approx(loss, abs=1e-11)
    assert completion.at(w) == pytest.approx(sum((own @ flat).max() for *_, own in listed), abs=1e-11)
    best = np.sum([own[(own @ flat).argmax()] for *_, own in listed], axis=0)
    np.testing.assert_allclose(flattened(data, completion.features), best, atol=1e-12)
    worst = np.sum([f[(f @ flat + losses).argmax()] for f, losses, _ in listed], axis=0)
    np.testing.assert_allclose(flattened(data, problem.loss_and_gradient(w)[1]), worst, atol=1e-12)
    labels = data.space.label[completion.states]
    np.testing.assert_array_equal(labels, data.data.codes)


def test_soft_completion_is_the_expectation():
    data, listed = tiny(4)
    problem, flat, heat = data.problem(0.0, 1), random_weights(data, 5), 0.7
    value, expected = 0.0, np.zeros(len(flat))
    for *_, own in listed:
        weights = np.exp(own @ flat / heat)
        value += heat * np.log(weights.sum())
        expected += weights @ own / weights.sum()
    soft = problem.complete(packed(data, flat), heat)
    assert soft.at(packed(data, flat)) == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(flattened(data, soft.features), expected, atol=1e-10)


@pytest.mark.parametrize("solver", ["cuts", "flow"])
@pytest.mark.parametrize("seed", range(3))
def test_inner_problem_against_cvxpy(solver, seed):
    data, listed = tiny(seed, C=0.8)
    problem = data.problem(0.0, 1)
    states = problem.start(np.random.RandomState(seed))
    completion = Completion(states, problem.features(states))
    # The features of the truth of each example, from the library's states.
    cuts, rows = data.data.nodes.offsets, []
    for i, (*_, own) in enumerate(listed):
        mine = data.space.substates(states[cuts[i] : cuts[i + 1]])
        sizes = data.space.sizes[data.data.codes[cuts[i] : cuts[i + 1]]]
        rows.append(own[np.ravel_multi_index(tuple(mine), tuple(sizes))])
    best, _ = best_bound(0.8, [(f, losses, row) for (f, losses, _), row in zip(listed, rows, strict=True)])
    found = inner_solvers(problem)[solver].minimise(completion, None, StopRule(1e-9, 20_000), 0)
    assert found.objective == pytest.approx(best, rel=1e-6)
    assert found.objective - found.gap <= best * (1 + 1e-6)


@pytest.mark.parametrize("solver", ["cuts", "flow"])
@pytest.mark.parametrize("seed", range(10))
def test_certificate_on_random_problems(solver, seed):
    data, listed = tiny(seed, lengths=(3, 3, 2, 3, 3, 1), C=0.5 + seed)
    problem = data.problem(0.0, 1)
    states = problem.start(np.random.RandomState(seed))
    inner = inner_solvers(problem)[solver]
    end = CCCP(max_passes=2000).solve(problem, inner, Completion(states, problem.features(states)))
    assert end.trace.certified()
    assert np.diff(end.trace.objective).max(initial=0.0) <= 1e-9 * end.objective
    enumerated = latent_objective(flattened(data, end.parameters), 0.5 + seed, listed)
    assert end.objective == pytest.approx(enumerated, rel=1e-9)


def test_where_a_run_settles_its_bound_cannot_be_lowered():
    data, listed = tiny(7)
    problem = data.problem(0.0, 1)
    states = problem.start(np.random.RandomState(0))
    end = CCCP(inner_tol=1e-7).solve(problem, InnerCuts(problem), Completion(states, problem.features(states)))
    flat = flattened(data, end.parameters)
    rows = [own[(own @ flat).argmax()] for *_, own in listed]
    best, _ = best_bound(1.0, [(f, losses, row) for (f, losses, _), row in zip(listed, rows, strict=True)])
    assert end.trace.changed[-1] == 0
    assert best >= end.objective - end.gap - 1e-7
    assert end.gap <= 1e-6 * end.objective


@pytest.mark.parametrize("solver", ["auto", "flow_swap", "cutting_plane"])
def test_one_state_each_is_the_structural_svm(solver):
    X, y = hidden_rhythm(30, 2)
    base = StructuredSVM(C=1.0, tol=1e-3, solver=solver, start_stop=True)
    latent = LatentStructuredSVM(base, LatentChain(1), random_state=0, n_restarts=1).fit(X, y)
    plain = StructuredSVM(C=1.0, tol=1e-5, start_stop=True).fit(X, y)
    assert latent.plain_objective_ is None
    assert latent.objective_ == pytest.approx(plain.objective_, rel=1.1e-3)


def test_one_component_each_is_the_multiclass_svm():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + np.repeat(4.0 * np.eye(3), 20, axis=0)
    y = np.repeat(["a", "b", "c"], 20)
    latent = LatentStructuredSVM(StructuredSVM(C=5.0), LatentMulticlass(1), random_state=0, n_restarts=1).fit(X, y)
    plain = StructuredSVM("single", C=5.0, tol=1e-6).fit(X, y)
    assert latent.objective_ == pytest.approx(plain.objective_, rel=1.1e-3)
    np.testing.assert_array_equal(latent.predict(X), plain.predict(X))
    assert latent.coef_.shape == (3, 3)


@pytest.mark.parametrize("background", [-1, 0])
@pytest.mark.parametrize("intercept", [False, True])
def test_bags_agree_with_enumeration(background, intercept):
    rng = np.random.default_rng(3)
    bags = [rng.normal(size=(n, 2)) for n in (1, 3, 2, 4)]
    codes, weights = np.array([0, 1, 2, 1], dtype=np.int32), np.array([1.0, 0.5, 2.0, 1.0])
    cost = rng.uniform(0.5, 2.0, size=(3, 3)) * (1.0 - np.eye(3))
    scores = BagScores(2, 3, background, intercept)
    problem = BagProblem(scores, Batch.build(bags), codes, weights, cost)
    w = rng.normal(size=scores.n_parameters)

    def features(bag, label, at):
        table = np.zeros((len(scores.scored), 2 + intercept))
        if label != background:
            row = list(scores.scored).index(label)
            table[row, :2] = bag[at]
            table[row, 2:] = 1.0
        return table.ravel()

    loss, slope, own, best = 0.0, np.zeros(len(w)), 0.0, []
    for bag, code, weight in zip(bags, codes, weights, strict=True):
        pairs = [(label, at) for label in range(3) for at in range(len(bag))]
        values = [w @ features(bag, *pair) + cost[code, pair[0]] for pair in pairs]
        loss += weight * max(values)
        slope += weight * features(bag, *pairs[int(np.argmax(values))])
        mine = [w @ features(bag, code, at) for at in range(len(bag))]
        own += weight * max(mine)
        best.append(-1 if code == background else int(np.argmax(mine)))
    completion = problem.complete(w)
    assert problem.loss(w) == pytest.approx(loss, abs=1e-12)
    np.testing.assert_allclose(problem.loss_and_gradient(w)[1], slope, atol=1e-12)
    assert completion.at(w) == pytest.approx(own, abs=1e-12)
    np.testing.assert_array_equal(completion.states, best)
    step, heat = 1e-6 * rng.normal(size=len(w)), 0.5
    ahead, back = (problem.complete(w + side * step, heat).at(w + side * step) for side in (1.0, -1.0))
    assert problem.complete(w, heat).features @ step == pytest.approx((ahead - back) / 2.0, abs=1e-12)
