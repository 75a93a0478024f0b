"""Planes against enumeration: the highest one is found, and its numbers are those of its labelling."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from dualfield.losses import Loss
from dualfield.objectives import CustomPlanes, Objective
from dualfield.regularisers import SquaredNorm
from dualfield.structures import check_custom_problem
from tests.objectives.problems import ChainProblem, random_problem
from tests.reference.structured_svm import chain_tables, minimum, value

KINDS = [
    {},
    {"ends": True},
    {"order": 2},
    {"constrained": True, "ends": True},
    {"constrained": True, "order": 2, "form": "weighted"},
    {"pair": True, "form": "unit"},
    {"pair": True, "order": 2, "ends": True},
]


def planes_of(problem: ChainProblem, cost, rescaling="margin", positive=None, weights=None, **more) -> Objective:
    given = replace(problem.labelled, allowed=None, **more)
    given = given if weights is None else replace(given, weights=weights)
    norm = None if positive is None else SquaredNorm(problem.score_map.n_parameters, positive)
    return Objective(problem.score_map, given, Loss(0.0, cost, rescaling), norm)


@given(
    seed=st.integers(0, 2**20),
    kind=st.sampled_from(KINDS),
    n_labels=st.integers(1, 3),
    lengths=st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any),
    rescaling=st.sampled_from(["margin", "slack"]),
)
@settings(max_examples=60, deadline=None)
def test_highest_plane(seed, kind, n_labels, lengths, rescaling):
    problem = random_problem(seed, n_labels=n_labels, lengths=lengths, cost=True, **kind)
    cost = problem.model.cost if rescaling == "margin" else 1.0 - np.eye(n_labels)
    objective, tables = (
        planes_of(problem, cost, rescaling),
        chain_tables(problem.model, problem.examples, cost, rescaling),
    )
    for at in range(2):
        w = problem.random_parameters(seed + at)
        v = problem.to_reference(w)
        found = objective.planes(w)
        np.testing.assert_allclose(found.values(w), [table.loss(v) for table in tables], atol=1e-10)
        some = np.random.default_rng(seed).permutation(len(lengths))[: (len(lengths) + 1) // 2]
        part = objective.planes(w, some)
        np.testing.assert_allclose(part.slopes.toarray(), found.slopes.toarray()[some], atol=1e-12)
        assert part.keys == [found.keys[i] for i in some]
        np.testing.assert_array_equal(part.examples, some)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_differences_of_scores(kind):
    """For any labelling and any weights: ⟨a, w⟩ = score(y) - score(truth), by the structure itself."""
    problem = random_problem(5, cost=True, **{**kind, "constrained": False})
    objective, rng = planes_of(problem, problem.model.cost), np.random.default_rng(0)
    everything, chain = np.arange(problem.batch.n_examples), problem.score_map.structure
    for seed in range(5):
        labels = rng.integers(0, chain.n_labels, problem.batch.n_nodes).astype(np.int32)
        planes, w = objective.planes_of(labels, everything), problem.random_parameters(seed)
        scores = problem.score_map.scores(w, problem.batch, problem.pair_batch)
        differences = chain.score(scores, labels) - chain.score(scores, problem.codes)
        np.testing.assert_allclose(planes.slopes @ w, differences, atol=1e-10)
        wrong = problem.model.cost[problem.codes, labels]
        np.testing.assert_allclose(planes.offsets, [part.sum() for part in problem.batch.split(wrong)])


def test_the_truth_is_the_plane_zero():
    problem = random_problem(1, pair=True, ends=True, order=2)
    planes = planes_of(problem, 1.0 - np.eye(3)).planes_of(problem.codes, np.arange(problem.batch.n_examples))
    assert planes.slopes.nnz == 0
    assert not planes.offsets.any()


def test_slacks_of_sequences_need_counted_errors():
    problem = random_problem(1, cost=True)
    with pytest.raises(ValueError, match="by the number of wrong labels only"):
        planes_of(problem, problem.model.cost, "slack").planes(np.zeros(problem.score_map.n_parameters))


@pytest.mark.parametrize("n_labels", [2, 4])
def test_slacks_of_single_nodes_take_any_cost(n_labels):
    problem = random_problem(3, n_labels=n_labels, lengths=(1,) * 6, ends=True, cost=True)
    objective = planes_of(problem, problem.model.cost, "slack")
    tables = chain_tables(problem.model, problem.examples, problem.model.cost, "slack")
    for seed in range(10):
        w = problem.random_parameters(seed)
        losses = [table.loss(problem.to_reference(w)) for table in tables]
        np.testing.assert_allclose(objective.planes(w).values(w), losses, atol=1e-12)


# Outputs that users bring along


class Choice:
    """One row of a matrix."""

    def __init__(self, sparse=False, lazy=False):
        self.sparse, self.lazy = sparse, lazy

    def joint_feature(self, x, y):
        return scipy.sparse.csr_array(x[y][None]) if self.sparse else x[y]

    def loss(self, y_true, y):
        return float(abs(y - y_true))

    def argmax(self, w, x, y_true=None):
        if self.lazy:
            return 0
        return int(np.argmax(x @ w + (0.0 if y_true is None else np.abs(np.arange(len(x)) - y_true))))


@pytest.mark.parametrize("sparse", [False, True])
def test_custom_planes(sparse):
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(4, 3)) for _ in range(5)], [0, 3, 1, 2, 2]
    problem = CustomPlanes(Choice(sparse), X, y, np.ones(5), SquaredNorm(check_custom_problem(Choice(sparse), X, y)))
    for w in rng.normal(size=(4, 3)):
        planes = problem.planes(w)
        best = [max(abs(k - t) + (x[k] - x[t]) @ w for k in range(4)) for x, t in zip(X, y, strict=True)]
        np.testing.assert_allclose(planes.values(w), best, atol=1e-12)
        np.testing.assert_allclose(problem.planes(w, np.array([3, 0])).values(w), [best[3], best[0]], atol=1e-12)
    assert problem.planes(w).keys == problem.planes(w).keys


def test_an_oracle_that_is_no_maximum_is_refused():
    x = np.array([[0.0], [5.0]])
    problem = CustomPlanes(Choice(lazy=True), [x], [1], np.ones(1), SquaredNorm(1))
    with pytest.raises(ValueError, match=r"Choice\.argmax.*X\[0\].*4 below that of the truth: it is not the largest"):
        problem.planes(np.ones(1))


@pytest.mark.parametrize("seed", range(6))
def test_known_labels_do_not_compete_and_guesses_cost_nothing(seed):
    """Against all labellings: fixed nodes keep their label, and unscored ones are wrong for free."""
    problem = random_problem(seed, lengths=(3, 1, 4), cost=True, ends=True)
    rng, cost = np.random.default_rng(seed), problem.model.cost
    fixed, unscored = rng.random((2, problem.batch.n_nodes)) < 0.4
    objective = planes_of(problem, cost, fixed=fixed, unscored=unscored)
    w, n_labels = problem.random_parameters(seed), problem.score_map.structure.n_labels
    found = objective.planes(w).values(w)
    for i, (begin, end) in enumerate(itertools.pairwise(problem.batch.offsets)):
        truth, best = problem.codes[begin:end], -np.inf
        choices = [[k] if known else range(n_labels) for k, known in zip(truth, fixed[begin:end], strict=True)]
        for labels in itertools.product(*choices):
            codes = problem.codes.copy()
            codes[begin:end] = labels
            plane = objective.planes_of(codes[begin:end], np.array([i]))
            paid = cost[truth, labels][~unscored[begin:end]].sum()
            assert plane.offsets[0] == pytest.approx(paid, abs=1e-12)
            best = max(best, float(plane.values(w)[0]))
        assert found[i] == pytest.approx(best, abs=1e-12)
    with pytest.raises(ValueError, match="rescaling='slack' needs all labels to compete"):
        planes_of(problem, 1.0 - np.eye(n_labels), "slack", fixed=fixed).planes(w)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("signs", [False, True])
def test_any_weights_are_certified(rescaling, signs):
    """Values, subgradients and gaps of hinges that native code does not know, against the minimum of cvxpy."""
    problem, rng = random_problem(3, lengths=(3, 1, 2), cost=True, weight=0.3), np.random.default_rng(0)
    cost = problem.model.cost if rescaling == "margin" else 1.0 - np.eye(3)
    flags = rng.random(problem.score_map.n_parameters) < 0.6 if signs else None
    hinge = planes_of(problem, cost, rescaling, positive=flags)
    tables = chain_tables(problem.model, problem.examples, cost, rescaling)
    best, at = minimum(tables, None if flags is None else problem.to_reference(flags.astype(float)) > 0)
    for w in (0.0 * at, at, at + 0.1 * np.abs(rng.normal(size=len(at))), 10.0 * np.abs(at)):
        w = problem.to_library(w)
        w = w if flags is None else np.where(flags, np.maximum(w, 0.0), w)
        want, (found, gap) = value(tables, problem.to_reference(w)), hinge.certify(w)
        assert found == pytest.approx(want, rel=1e-9)
        assert hinge.value(w) == pytest.approx(want, rel=1e-9)
        assert found - gap <= best * (1 + 1e-7)
        other = w + 0.3 * rng.normal(size=len(w)) * problem.score_map.used
        loss, gradient = hinge.loss_and_gradient(w)
        assert hinge.loss_and_gradient(other)[0] >= loss + gradient @ (other - w) - 1e-9
