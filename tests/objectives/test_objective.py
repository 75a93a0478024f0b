"""Losses, gradients and certificates of linear chains against enumeration, finite differences and other solvers."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualfield import _native
from dualfield.scores import LinearScores
from dualfield.structures import Chain
from tests.objectives.problems import random_problem

variants = st.fixed_dictionaries(
    {
        "n_labels": st.integers(1, 3),
        "lengths": st.lists(st.integers(0, 4), min_size=1, max_size=9).filter(any),
        "n_columns": st.integers(1, 5),
        "order": st.integers(1, 2),
        "ends": st.booleans(),
        "pair": st.booleans(),
        "constrained": st.booleans(),
        "temperature": st.sampled_from([0.5, 1.0, 2.0]),
        "form": st.sampled_from(["dense", "mostly zeros", "weighted", "unit"]),
    }
)


def check_against_enumeration(problem, seed, scale=1.0):
    w = problem.random_parameters(seed, scale)
    loss, gradient = problem.loss().loss_and_gradient(w)
    want, want_gradient = problem.reference().loss_and_gradient(problem.to_reference(w))
    assert loss == pytest.approx(want, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(
        problem.to_reference(gradient), want_gradient * problem.model.exists, atol=1e-9, rtol=1e-9
    )
    # Nothing is put where there is no feature.
    assert np.count_nonzero(gradient) <= problem.score_map.n_features
    assert problem.loss()._losses.loss(w) == pytest.approx(want, rel=1e-9, abs=1e-9)


@settings(max_examples=120, deadline=None)
@given(variants, st.booleans(), st.integers(0, 2**32 - 1))
def test_loss_and_gradient(variant, cost, seed):
    check_against_enumeration(random_problem(seed, cost=cost, **variant), seed)


@settings(max_examples=60, deadline=None)
@given(variants, st.integers(0, 2**32 - 1))
def test_partly_labelled(variant, seed):
    check_against_enumeration(random_problem(seed, partial=True, **variant), seed)


@pytest.mark.parametrize("n_labels", [4, 5, 8, 9, 16, 17, 23, 32, 33, 40])
@pytest.mark.parametrize("form", ["dense", "unit"])
def test_many_labels(n_labels, form):
    """Rows of one to eight vectors, and beyond; sequences of two nodes can still be enumerated."""
    problem = random_problem(n_labels, n_labels, lengths=(2, 1, 2, 0, 2), form=form, ends=True, cost=True)
    check_against_enumeration(problem, 0)


def test_large_scores():
    """Scores of thousands: sums of exponentials that overflow if they are taken as they stand."""
    for seed in range(5):
        check_against_enumeration(random_problem(seed, ends=True), seed, scale=1e3)


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_gradient_by_finite_differences(order, partial):
    problem = random_problem(3, order=order, ends=True, pair=True, partial=partial, temperature=0.5)
    objective, w = problem.loss(), problem.random_parameters(1)
    _, gradient = objective.loss_and_gradient(w)
    rng = np.random.default_rng(0)
    for _ in range(10):
        direction = problem.random_parameters(int(rng.integers(2**31)))
        up, down = (objective.loss_and_gradient(w + step * direction)[0] for step in (1e-5, -1e-5))
        assert (up - down) / 2e-5 == pytest.approx(float(gradient @ direction), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("partial", [False, True])
def test_threads_give_the_same_bits(pair, partial):
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 5, 1500)
    problem = random_problem(0, 2, lengths=lengths, pair=pair, partial=partial, n_columns=6, ends=True)
    w = problem.random_parameters(0)
    loss, gradient = problem.loss(n_threads=1).loss_and_gradient(w)
    for n_threads in (2, 3):
        again, other = problem.loss(n_threads=n_threads).loss_and_gradient(w)
        assert again == loss
        np.testing.assert_array_equal(other, gradient)
    assert np.array_equal(problem.loss(n_threads=2)._losses.loss(w), problem.loss()._losses.loss(w))


def test_chunks_add_up():
    """A big batch is computed in pieces."""
    rng = np.random.default_rng(1)
    problem = random_problem(1, 3, lengths=rng.integers(0, 5, 300), n_columns=3)
    w = problem.random_parameters(1)
    loss, gradient = problem.loss().loss_and_gradient(w)
    want, want_gradient = problem.reference().loss_and_gradient(problem.to_reference(w))
    assert loss == pytest.approx(want, rel=1e-12)
    np.testing.assert_allclose(problem.to_reference(gradient), want_gradient, atol=1e-10)


def test_weights_count_like_repetitions():
    problem = random_problem(5, lengths=(3, 2))
    w = problem.random_parameters(0)
    first, second = problem.reference().losses(problem.to_reference(w))
    for a, b in [(0.0, 1.0), (3.0, 0.0), (2.0, 5.0)]:
        problem.examples[0].weight, problem.examples[1].weight = a, b
        assert problem.loss().loss_and_gradient(w)[0] == pytest.approx(a * first + b * second, rel=1e-12)


def test_a_cost_raises_the_loss_but_not_for_the_truth():
    with_cost = random_problem(6, cost=True)
    w = with_cost.random_parameters(0)
    raised = with_cost.reference().losses(with_cost.to_reference(w))
    with_cost.model.cost = None
    plain = with_cost.reference().losses(with_cost.to_reference(w))
    assert np.all(raised >= plain - 1e-12)
    assert raised.sum() > plain.sum()


def test_truth_that_is_not_allowed_names_the_example():
    problem = random_problem(2, 2, lengths=(2, 3, 2))
    rules = {
        "allowed": np.array([[True, False], [True, True]]),
        "allowed_start": [True, False],
        "allowed_stop": [True, True],
    }
    chain = Chain(2, **{name: np.array(flags) for name, flags in rules.items()})
    problem.score_map = LinearScores(chain, problem.score_map.node)
    for example, codes, why in [
        (2, [0, 0, 0, 0, 0, 0, 1], "one may not follow the one before it"),
        (1, [0, 0, 1, 0, 0, 0, 0], "the first one may not stand first"),
    ]:
        problem.codes = np.array(codes, dtype=np.int32)
        with pytest.raises(ValueError, match=f"The labels of example {example} are not allowed: {why}"):
            problem.loss().certify(np.zeros(problem.score_map.n_parameters))


@pytest.mark.parametrize("what", ["labels", "weights"])
def test_labels_and_weights_are_needed(what):
    problem = random_problem(0)
    given = {"labels": problem.codes, "weights": np.ones(len(problem.examples))}
    del given[what]
    with pytest.raises(ValueError, match="labels and weights are needed"):
        _native.Objective(problem.score_map.bind(problem.batch, **given), 1).evaluate(np.zeros(1))


# Certificates


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    "variant", [{}, {"cost": True, "ends": True}, {"temperature": 0.5, "pair": True}, {"order": 2}]
)
def test_gap_bounds_the_distance_from_the_minimum(l1_ratio, variant):
    for seed, weight in enumerate((0.3, 10.0)):
        problem = random_problem(seed, weight=weight, **variant)
        objective, reference = problem.loss(l1_ratio), problem.reference(l1_ratio)
        best, at = reference.minimum()
        for scale in (0.0, 1e-3, 0.3, 3.0):
            w = problem.random_parameters(seed, scale) * (scale > 0)
            value, gap = objective.certify(w)
            assert value == pytest.approx(reference.value(problem.to_reference(w)), rel=1e-9)
            assert gap >= value - best - 1e-9 * best
        # Towards the minimum the bound goes to zero with the distance.
        gaps = []
        for share in (1e-1, 1e-2, 1e-4):
            near = problem.to_library(at * (1 + share))
            value, gap = objective.certify(near)
            assert gap >= value - best - 1e-9 * best
            gaps.append(gap)
        value, gap = objective.certify(problem.to_library(at))
        assert -1e-9 * best <= gap <= 1e-6 * best
        assert gaps[0] > gaps[1] > gaps[2] or not at.any()


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3, 0.999, 1.0])
def test_bound_is_the_best_on_the_way_to_the_truth(l1_ratio):
    """D(s) = s E - R*(s v) on a grid of shares s, with E and v by enumeration."""
    for seed, scale in ((1, 0.0), (2, 0.1), (3, 1.0), (4, 10.0)):
        problem = random_problem(seed, weight=50.0, cost=seed % 2 == 0)
        w = problem.random_parameters(seed, scale) * (scale > 0)
        value, gap = problem.loss(l1_ratio).certify(w)
        at = problem.to_reference(w)
        loss, gradient = problem.reference().loss_and_gradient(at)
        entropy, sizes = loss - at @ gradient, np.abs(gradient)
        bounds = []
        for share in np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 5000)]):
            over = np.maximum(share * sizes - l1_ratio, 0.0)
            if l1_ratio < 1.0:
                bounds.append(share * entropy - over @ over / (2 * (1 - l1_ratio)))
            elif not over.any():
                bounds.append(share * entropy)
        assert value - gap >= max(bounds) - 1e-9 * value
        assert value - gap <= max(bounds) + 0.01 * abs(max(bounds)) + 1e-9 * value


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3, 1.0])
def test_reference_minimum_is_that_of_cvxpy(l1_ratio):
    """The enumeration's own minimum, held against an interior-point method that knows nothing of chains."""
    problem = random_problem(8, 2, lengths=(3, 2, 1, 3, 2), cost=True, ends=True, weight=3.0)
    reference = problem.reference(l1_ratio)
    w = cvxpy.Variable(problem.model.size)
    total = (1 - l1_ratio) / 2 * cvxpy.sum_squares(w) + l1_ratio * cvxpy.norm1(w)
    for (rows, costs, agree), example in zip(reference.tables, reference.examples, strict=True):
        total += example.weight * (cvxpy.log_sum_exp(rows @ w + costs) - rows[agree][0] @ w)
    solved = cvxpy.Problem(cvxpy.Minimize(total))
    solved.solve(solver=cvxpy.CLARABEL)
    best, _ = reference.minimum()
    assert best == pytest.approx(solved.value, rel=1e-6)
    value, gap = problem.loss(l1_ratio).certify(problem.to_library(np.array(w.value)))
    assert value == pytest.approx(solved.value, rel=1e-6)
    assert value - gap <= solved.value * (1 + 1e-7)
    assert gap <= 1e-3 * value


def test_zero_is_the_minimum_where_the_penalty_on_absolute_values_is_strong():
    problem = random_problem(4, weight=1e-3)
    value, gap = problem.loss(1.0).certify(np.zeros(problem.score_map.n_parameters))
    assert gap == pytest.approx(0.0, abs=1e-15)
    assert value == pytest.approx(problem.reference(1.0).minimum()[0], rel=1e-9)


def test_no_gap_without_convexity():
    problem = random_problem(4, partial=True)
    value, gap = problem.loss().certify(problem.random_parameters(0))
    assert np.isfinite(value)
    assert np.isnan(gap)
