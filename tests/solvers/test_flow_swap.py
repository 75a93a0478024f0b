"""Swaps of mass between labellings, against all labellings in cvxpy, and against themselves after a break."""

import itertools
from dataclasses import replace

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualfield.data import Batch
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.regularisers import ElasticNet
from dualfield.scores import FeatureTable, LinearScores
from dualfield.solvers import FlowSwap, Status, StopRule
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.progress import ProgressLine
from dualfield.structures import Chain


class Problem:
    """Random chains with everything that the solver takes: ends, weights, costs, missing features, constraints."""

    def __init__(self, seed, n=4, longest=3, binary=False, sparse=False, forbidden=False, n_labels=None):
        random = np.random.default_rng(seed)
        self.n_labels, n_columns = int(random.integers(1, 4)), int(random.integers(1, 5))
        self.n_labels = n_labels or self.n_labels
        self.X = [random.normal(size=(int(random.integers(1, longest + 1)), n_columns)) for _ in range(n)]
        if binary:
            self.X = [(x > 0.0).astype(float) for x in self.X]
        batch = Batch.build(self.X)
        self.offsets = batch.offsets
        self.y = random.integers(0, self.n_labels, batch.n_nodes).astype(np.int32)
        allowed = None
        if forbidden and self.n_labels > 1:
            allowed = random.random((self.n_labels, self.n_labels)) < 0.7
            for begin, end in itertools.pairwise(self.offsets):
                allowed[self.y[begin : end - 1], self.y[begin + 1 : end]] = True
        self.chain = Chain(self.n_labels) if allowed is None else Chain(self.n_labels, allowed=allowed)
        table = FeatureTable.all(n_columns, self.n_labels)
        if sparse:
            table = FeatureTable.observed(batch, self.y, self.n_labels)
        mask = random.random(self.chain.n_cliques) < 0.8
        self.map = LinearScores(self.chain, table, None, mask, bool(random.integers(2)))
        self.weights = random.uniform(0.1, 3.0, n)
        self.cost = np.abs(random.normal(size=(self.n_labels,) * 2)) * (1.0 - np.eye(self.n_labels))
        self.examples = Examples(nodes=batch, labels=self.y, weights=self.weights)
        self.objective = Objective(self.map, self.examples, Loss(0.0, self.cost))

    def features(self, x, labels):
        """Return the vector that scores a labelling, by asking for the score of unit vectors."""
        node = np.zeros((x.shape[1], self.n_labels))
        cliques = np.zeros((self.n_labels,) * 2)
        ends = np.zeros((2, self.n_labels))
        ends[0, labels[0]] = ends[1, labels[-1]] = 1.0
        for t, label in enumerate(labels):
            node[:, label] += x[t]
            if t > 0:
                cliques[labels[t - 1], label] += 1.0
        kept = node[self.map.node.columns, self.map.node.outputs]
        return self.map.pack(kept, cliques.ravel(), *ends)

    def minimum(self):
        """Return the smallest value, with one constraint for every labelling."""
        w, total = cvxpy.Variable(self.map.n_parameters), 0.0
        for i, x in enumerate(self.X):
            true = self.y[self.offsets[i] : self.offsets[i + 1]]
            begin = self.features(x, true)
            planes = []
            for labels in itertools.product(range(self.n_labels), repeat=len(x)):
                pairs = [a * self.n_labels + b for a, b in itertools.pairwise(labels)]
                if self.chain.clique_allowed[pairs].all():
                    planes.append((self.features(x, labels) - begin, self.cost[true, list(labels)].sum()))
            slopes, offsets = np.array([a for a, _ in planes]), np.array([b for _, b in planes])
            total += self.weights[i] * cvxpy.max(slopes @ w + offsets)
        problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + total))
        return float(problem.solve(solver=cvxpy.CLARABEL))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.booleans(), st.booleans(), st.booleans())
def test_it_agrees_with_all_labellings_enumerated(seed, binary, sparse, forbidden):
    problem = Problem(seed, binary=binary, sparse=sparse, forbidden=forbidden)
    solution = FlowSwap().solve(problem.objective, StopRule(1e-6, 1e5), random_state=1)
    best = problem.minimum()
    assert solution.status is Status.CONVERGED
    assert solution.objective == pytest.approx(best, rel=2e-6, abs=1e-6)
    assert solution.objective - solution.gap <= best + 1e-6 * max(1.0, best)
    value, gap = problem.objective.certify(solution.parameters)
    assert value == pytest.approx(solution.objective, rel=1e-9, abs=1e-9)
    assert gap >= solution.objective - best - 1e-6 * max(1.0, best)


def flow_is_consistent(problem, flow):
    """Check that the edges of every node have mass one in all, and that what flows into a label flows out of it."""
    counts = flow["edge_counts"].astype(int)
    edges = flow["edge_labels"].astype(int).reshape(-1, 2)
    begin = np.concatenate([[0], np.cumsum(counts)])
    for first, last in itertools.pairwise(problem.offsets):
        before = None
        for row in range(first, last):
            here = slice(begin[row], begin[row + 1])
            masses, out = flow["edge_masses"][here], np.zeros(problem.n_labels)
            into = np.zeros(problem.n_labels)
            np.add.at(into, edges[here, 1], masses)
            np.add.at(out, edges[here, 0], masses)
            assert masses.min() > 0.0
            assert into.sum() == pytest.approx(1.0, abs=1e-9)
            if before is not None:
                assert np.allclose(out, before, atol=1e-9)
            before = into
    return True


def test_the_flow_stays_one():
    problem = Problem(3, n=40, longest=9, binary=True, n_labels=4)
    solution = FlowSwap().solve(problem.objective, StopRule(1e-5, 1e5), random_state=0)
    assert solution.dual is not None
    assert flow_is_consistent(problem, solution.dual)


def test_a_flow_is_a_start_also_for_other_labels():
    problem = Problem(5, n=60, longest=8, n_labels=3)
    cold = FlowSwap().solve(problem.objective, StopRule(1e-5, 1e5), random_state=0)
    warm = FlowSwap().solve(problem.objective, StopRule(1e-5, 1e5), cold, random_state=0)
    assert warm.objective == pytest.approx(cold.objective, rel=2e-5)
    assert warm.n_iter <= cold.n_iter
    other = (problem.y + 1) % problem.n_labels
    given = replace(problem.examples, labels=other.astype(np.int32))
    relabelled = Objective(problem.map, given, problem.objective.loss)
    fresh = FlowSwap().solve(relabelled, StopRule(1e-5, 1e5))
    again = FlowSwap().solve(relabelled, StopRule(1e-5, 1e5), cold)
    assert again.objective == pytest.approx(fresh.objective, rel=2e-5)


def test_the_result_is_never_worse_than_the_start():
    problem = Problem(7, n=30, longest=6, n_labels=3)
    best = FlowSwap().solve(problem.objective, StopRule(1e-7, 1e5))
    poor = FlowSwap().solve(problem.objective, StopRule(1e-9, 1.0), best.parameters)
    assert poor.status is Status.ITERATION_LIMIT
    assert poor.objective <= best.objective * (1 + 1e-12)


@pytest.mark.parametrize("passes", [1, 3, 5])
def test_it_goes_on_to_the_same_weights(passes):
    problem, rule, states = Problem(11, n=50, longest=7, n_labels=3), StopRule(1e-7, 1e5), []
    whole = FlowSwap().solve(problem.objective, rule, random_state=4)
    looks = itertools.count(1)

    def keep(state):
        states.append(state)

    line = ProgressLine("fit", 0)
    course = FitCallbacks(line, lambda moment, w: next(looks) >= passes, keep, lambda: True)
    first = FlowSwap().solve(problem.objective, rule, callbacks=course, random_state=4)
    assert first.status is Status.STOPPED
    rest = FlowSwap().solve(problem.objective, rule, callbacks=FitCallbacks(line, resume=states[-1]), random_state=4)
    assert np.array_equal(rest.parameters, whole.parameters)
    assert (rest.gap, rest.n_iter) == (whole.gap, whole.n_iter)


def test_moments_are_certified():
    problem, moments = Problem(13, n=40, longest=7, n_labels=3), []
    course = FitCallbacks(ProgressLine("fit", 0), lambda moment, w: moments.append((moment, w)))
    best = FlowSwap().solve(problem.objective, StopRule(1e-8, 1e5), callbacks=course).objective
    for moment, w in moments:
        assert moment.dual <= best * (1 + 1e-7) <= moment.objective * (1 + 2e-7)
        assert problem.objective.certify(w)[0] == pytest.approx(moment.objective, rel=1e-9)


def test_threads_do_not_change_the_result():
    problem = Problem(17, n=80, longest=8, n_labels=4)
    alone = FlowSwap().solve(problem.objective, StopRule(1e-5, 1e5), random_state=2)
    together = Objective(problem.map, problem.examples, problem.objective.loss, n_threads=3)
    assert np.array_equal(FlowSwap().solve(together, StopRule(1e-5, 1e5), random_state=2).parameters, alone.parameters)


def test_what_it_cannot_take_is_named():
    problem = Problem(19)
    with pytest.raises(ValueError, match="temperature above zero"):
        FlowSwap().solve(Objective(problem.map, problem.examples, Loss(1.0, problem.cost)), StopRule(1e-3))
    net = Objective(problem.map, problem.examples, problem.objective.loss, ElasticNet(0.5))
    with pytest.raises(ValueError, match="absolute values"):
        FlowSwap().solve(net, StopRule(1e-3))
    chain = Chain(2, 2)
    score_map = LinearScores(chain, FeatureTable.all(1, 2))
    given = Examples(nodes=Batch.build([np.ones((3, 1))]), labels=np.zeros(3, np.int32), weights=np.ones(1))
    with pytest.raises(ValueError, match="order 2"):
        FlowSwap().solve(Objective(score_map, given, Loss(0.0)), StopRule(1e-3))
    found = FlowSwap().solve(problem.objective, StopRule(0.1))
    bad = replace(found, dual={"edge_counts": np.ones(3, np.uint64)})
    with pytest.raises(ValueError, match="edge_counts"):
        FlowSwap().solve(problem.objective, StopRule(1e-3), bad)
