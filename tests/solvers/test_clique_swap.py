"""Swaps on tables of cliques, for trees and graphs: against all labellings, against chains, and after a break."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

from dualfield import CRF
from dualfield.losses import Loss
from dualfield.models.training_data import read_training_data
from dualfield.objectives import Objective
from dualfield.solvers import FlowSwap, PathBlocks, Status, StopRule
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.progress import ProgressLine
from dualfield.structures import Graph
from tests.reference.structured_svm import PlaneTable, minimum
from tests.structures.test_graph import grid

K, C = 2, 0.5


def objective_of(structure, X, y, n_threads=1):
    data = read_training_data(CRF(structure, C, features="all"), X, y, None, None, hinge=False)
    n_labels = data.score_map.structure.n_labels
    return Objective(data.score_map, data.examples, Loss(0.0, 1.0 - np.eye(n_labels)), n_threads=n_threads)


def pictures(n_examples=12, height=3, width=4, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    edges = grid(height, width)
    y = [rng.integers(n_labels, size=height * width) for _ in range(n_examples)]
    X = [(np.eye(n_labels)[labels] + rng.normal(size=(height * width, n_labels)), edges) for labels in y]
    return X, y


def quarrels(n_examples=4, n_nodes=4, seed=0):
    """Full graphs whose neighbours like to differ, which not all of them can: beliefs of edges alone allow more."""
    rng = np.random.default_rng(seed)
    edges = np.array(list(itertools.combinations(range(n_nodes), 2)))
    y = [rng.permutation(np.arange(n_nodes) % 2) for _ in range(n_examples)]
    return [(np.eye(K)[truth] + rng.normal(size=(n_nodes, K)), edges) for truth in y], y


def features(nodes, edges, labels):
    pairs = np.zeros((K, K))
    for a, b in edges:
        pairs[labels[a], labels[b]] += 1.0
    return np.concatenate([(np.eye(K)[list(labels)].T @ nodes).ravel(), pairs.ravel()])


def exact_optimum(X, y):
    tables = []
    for (nodes, edges), truth in zip(X, y, strict=True):
        every = list(itertools.product(range(K), repeat=len(nodes)))
        true = features(nodes, edges, truth)
        cost = [float(np.sum(np.array(labels) != truth)) for labels in every]
        tables.append(PlaneTable(np.array(cost), np.array([features(nodes, edges, u) - true for u in every]), C))
    return minimum(tables)[0]


def optimum_over_edges(X, y):
    """The dual over beliefs that agree on nodes, but need not be those of any distribution over labellings."""
    constraints, value, weights = [], 0.0, 0.0
    for (nodes, edges), truth in zip(X, y, strict=True):
        mu = cp.Variable((len(nodes), K), nonneg=True)
        pairs = [cp.Variable((K, K), nonneg=True) for _ in edges]
        constraints.append(cp.sum(mu, axis=1) == 1)
        for (a, b), pair in zip(edges.tolist(), pairs, strict=True):
            constraints += [cp.sum(pair, axis=1) == mu[a], cp.sum(pair, axis=0) == mu[b]]
        value += C * cp.sum(cp.multiply(1.0 - np.eye(K)[truth], mu))
        own = cp.hstack([cp.vec(mu.T @ nodes, order="C"), cp.vec(sum(pairs), order="C")])
        weights += C * (features(nodes, edges, truth) - own)
    return cp.Problem(cp.Maximize(value - 0.5 * cp.sum_squares(weights)), constraints).solve(solver=cp.CLARABEL)


def test_the_bound_is_one_of_the_exact_problem():
    """With beliefs of edges as its state the ascent would climb above the optimum."""
    X, y = quarrels()
    best = exact_optimum(X, y)
    assert optimum_over_edges(X, y) > 1.01 * best
    solution = FlowSwap().solve(objective_of("graph", X, y), StopRule(1e-6, 1e5), random_state=0)
    assert solution.status is Status.CONVERGED
    assert solution.objective - solution.gap <= best * (1.0 + 1e-8) <= solution.objective * (1.0 + 2e-8)


def test_moments_are_certified():
    X, y = quarrels(seed=1)
    best, moments = exact_optimum(X, y), []
    course = FitCallbacks(ProgressLine("fit", 0), lambda moment, w: moments.append(moment))
    FlowSwap().solve(objective_of("graph", X, y), StopRule(1e-8, 1e4), callbacks=course)
    assert len(moments) > 1
    for moment in moments:
        assert moment.dual <= best * (1.0 + 1e-8) <= moment.objective * (1.0 + 2e-8)


def test_wide_pictures_as_by_mixtures():
    X, y = pictures()
    objective = objective_of(Graph(), X, y)
    swapped, mixed = (one.solve(objective, StopRule(1e-4, 1e5)) for one in (FlowSwap(), PathBlocks()))
    assert swapped.status is mixed.status is Status.CONVERGED
    assert swapped.objective - swapped.gap <= mixed.objective
    assert mixed.objective - mixed.gap <= swapped.objective


def test_chains_as_trees():
    rng = np.random.default_rng(0)
    nodes = [rng.normal(size=(n, 3)) for n in rng.integers(1, 9, 40)]
    y = [np.argmax(x + 0.5 * rng.gumbel(size=x.shape), axis=1) for x in nodes]
    trees = [(x, np.arange(len(x)) - 1) for x in nodes]
    one = FlowSwap().solve(objective_of("chain", nodes, y), StopRule(1e-6, 1e5))
    other = FlowSwap().solve(objective_of("tree", trees, y), StopRule(1e-6, 1e5))
    assert other.status is Status.CONVERGED
    assert abs(one.objective - other.objective) <= max(one.gap, other.gap)


@pytest.mark.parametrize("passes", [1, 4])
def test_it_goes_on_to_the_same_weights(passes):
    X, y = pictures(seed=2)
    objective, rule, states, looks = objective_of(Graph(), X, y), StopRule(1e-5, 1e5), [], itertools.count(1)
    whole = FlowSwap().solve(objective, rule, random_state=4)
    line = ProgressLine("fit", 0)
    course = FitCallbacks(line, lambda moment, w: next(looks) >= passes, states.append, lambda: True)
    assert FlowSwap().solve(objective, rule, callbacks=course, random_state=4).status is Status.STOPPED
    rest = FlowSwap().solve(objective, rule, callbacks=FitCallbacks(line, resume=states[-1]), random_state=4)
    assert np.array_equal(rest.parameters, whole.parameters)
    assert (rest.gap, rest.n_iter) == (whole.gap, whole.n_iter)


def test_threads_do_not_change_the_result():
    X, y = pictures(seed=3)
    one, two = (FlowSwap().solve(objective_of(Graph(), X, y, n_threads=n), StopRule(1e-4, 1e5)) for n in (1, 2))
    assert np.array_equal(one.parameters, two.parameters)
    assert one.gap == two.gap


def test_tables_that_disagree_are_refused():
    X, y = pictures(seed=4)
    objective = objective_of(Graph(), X, y)
    cold = FlowSwap().solve(objective, StopRule(1e-4, 1e5))
    warm = FlowSwap().solve(objective, StopRule(1e-4, 1e5), cold)
    assert warm.n_iter <= cold.n_iter
    assert warm.objective == pytest.approx(cold.objective, rel=2e-4)
    for name, change in (("edge_masses", lambda x: 0.9 * x), ("edge_labels", lambda x: (x + 1) % K)):
        spoilt = dict(cold.dual) | {name: change(cold.dual[name])}
        start = type(cold)(**{**{f: getattr(cold, f) for f in cold.__dataclass_fields__}, "dual": spoilt})
        with pytest.raises(ValueError, match="does not belong to this problem"):
            FlowSwap().solve(objective, StopRule(1e-4, 1e5), start)


def test_a_relaxation_has_no_tables():
    X, y = pictures(n_examples=2)
    reason = FlowSwap().missing(objective_of(Graph(inference="trw"), X, y))
    assert reason == "Its structure is a relaxation, 'trw': it has no tables of cliques."
