"""The objective on partitions: that of the whole, the same bits for threads and engines, and what travels."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dualfield.engines import Serial
from dualfield.objectives.touched import TouchedValues
from dualfield.solvers import solver_classes
from tests.objectives.partitions import partitioned, problems, sequences, whole_problem

CUTS = [0, 11, 30, 31, 55, 70]  # seven partitions, the first of them empty


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_is_the_objective_of_the_whole(seed: int) -> None:
    X, y = sequences(80)
    whole = whole_problem(X, y)
    parts = partitioned(Serial(), problems(X, y, whole, CUTS), whole)
    w = np.where(whole.score_map.used, np.random.default_rng(seed).normal(size=whole.n_parameters), 0.0)
    loss, gradient, magnitude, slack = whole.evaluate(w)
    found = parts.evaluate(w)
    assert found[0] == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(found[1], gradient, rtol=0.0, atol=1e-12 * np.abs(gradient).max())
    assert found[2:] == pytest.approx((magnitude, slack), rel=1e-12)
    assert parts.value(w) == pytest.approx(whole.value(w), rel=1e-12)
    assert parts.certify(w) == pytest.approx(whole.certify(w), rel=1e-10)
    sent = sum(min(12 * part.places.size, 8 * part.size) for part in problems(X, y, whole, CUTS))
    assert (parts.n_rounds, parts.bytes_up) == (3, 2 * sent)


def test_threads_and_the_way_of_keeping_do_not_change_bits() -> None:
    X, y = sequences(80)
    whole = whole_problem(X, y)
    w = np.where(whole.score_map.used, 0.3, 0.0)
    one, many = (problems(X, y, whole, CUTS, n_threads) for n_threads in (1, 3))
    first = partitioned(Serial(), one, whole).evaluate(w)
    for other in (partitioned(Serial(), many, whole), partitioned(Serial(memory=0), one, whole)):
        again = other.evaluate(w)
        assert first[0] == again[0]
        assert first[1].tobytes() == again[1].tobytes()


def test_a_leaf_sends_at_most_twelve_bytes_for_a_touched_weight() -> None:
    X, y = sequences(80)
    whole = whole_problem(X, y)
    for part in problems(X, y, whole, CUTS):
        values = part.evaluate(np.zeros(part.size))[3]
        assert values.nbytes == min(12 * part.places.size, 8 * part.size)
        assert len(pickle.dumps(values)) <= values.nbytes + 1000


def test_what_is_sent_leaves_native_objects_behind() -> None:
    X, y = sequences(20)
    whole = whole_problem(X, y)
    part = problems(X, y, whole, [10])[0]
    w = np.zeros(part.size)
    before = part.evaluate(w)
    again = pickle.loads(pickle.dumps(part)).evaluate(w)
    assert before[0] == again[0]
    assert before[3].values.tobytes() == again[3].values.tobytes()


def test_sums_of_vectors_are_those_of_dense_ones_in_order() -> None:
    rng = np.random.default_rng(0)
    dense = [np.where(rng.random(50) < 0.2, rng.normal(size=50), 0.0) for _ in range(4)]
    vectors = [TouchedValues(np.flatnonzero(one).astype(np.int32), one[one != 0.0], 50) for one in dense]
    found = TouchedValues.sum_of(tuple(vectors))
    expected = ((dense[0] + dense[1]) + dense[2]) + dense[3]
    np.testing.assert_array_equal(found.dense(), expected)
    full = TouchedValues.sum_of((found, TouchedValues(None, np.ones(50), 50)))
    assert full.places is None
    np.testing.assert_array_equal(full.dense(), expected + 1.0)


@pytest.mark.parametrize("name", sorted(solver_classes()))
def test_only_gradients_take_partitions(name: str) -> None:
    X, y = sequences(20)
    whole = whole_problem(X, y)
    parts = partitioned(Serial(), problems(X, y, whole, [10]), whole)
    reason = solver_classes()[name]().missing(parts)
    if name in ("auto", "lbfgs"):
        assert reason is None
    else:
        assert isinstance(reason, str)
    if name == "block_dual":
        assert "train out of core on one machine" in reason
