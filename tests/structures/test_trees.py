"""Trees from data: mutual information against scikit-learn, spanning trees against all trees."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from dualfield.structures import learnt_trees, mutual_information, spanning_tree

many = settings(max_examples=30, deadline=None)


@st.composite
def label_tables(draw):
    n, n_columns = draw(st.integers(1, 30)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = rng.integers(0, draw(st.integers(1, 4)), size=(n, n_columns))
    codes[:, -1] = codes[:, 0] * 7 + rng.integers(0, 2, size=n)  # one that depends on another, with gaps in its codes
    return codes, rng.integers(0, 3, size=n)


def peer(codes):
    n_columns = codes.shape[1]
    return [[mutual_info_score(codes[:, a], codes[:, b]) for b in range(n_columns)] for a in range(n_columns)]


@many
@given(label_tables(), st.sampled_from([1, 30, 2**22]))
def test_mutual_information(table, numbers):
    codes, groups = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learnt_trees, "NUMBERS_OF_A_CHUNK", numbers)
        got = mutual_information(codes)
        known = mutual_information(codes, given=groups)
    np.testing.assert_allclose(got, peer(codes), atol=1e-12)
    np.testing.assert_array_equal(got, got.T)
    assert (got >= 0.0).all()
    want = sum(np.mean(groups == g) * np.array(peer(codes[groups == g])) for g in np.unique(groups))
    np.testing.assert_allclose(known, want, atol=1e-12)


def test_booleans_are_codes():
    flags = np.random.default_rng(0).random((50, 3)) < 0.3
    np.testing.assert_array_equal(mutual_information(flags), mutual_information(flags.astype(int)))


def test_known_cause_leaves_nothing():
    """Two columns that copy a third with errors depend on each other, and no longer when it is known."""
    cause = np.repeat([0, 1], 50)
    left, right = cause.copy(), cause.copy()
    for start in (0, 50):  # errors of 10 and of 20 in a hundred, independent of each other within each half
        left[start : start + 5] ^= 1
        right[[start, *range(start + 5, start + 14)]] ^= 1
    columns = np.stack([left, right], axis=1)
    assert mutual_information(columns)[0, 1] > 0.1
    assert mutual_information(columns, given=cause)[0, 1] < 1e-12


@pytest.mark.parametrize(
    ("columns", "known", "message"),
    [
        ([0, 1], None, r"columns must be integer codes in an array of 2 dimensions. Got shape \(2,\)"),
        ([[0.5, 1.0]], None, r"columns must be integer codes .* dtype float64"),
        ([[0, 1], [2, -1]], None, r"columns must hold codes of at least 0. Got columns\[1, 1\] = -1 instead."),
        (np.zeros((0, 2), dtype=int), None, r"columns must have at least one row. Got shape \(0, 2\) instead."),
        ([[0, 1]], [0, 1], r"given must have one entry for each row of columns, 1. Got 2 instead."),
        ([[0, 1]], [[0]], r"given must be integer codes in an array of 1 dimension. Got shape \(1, 1\)"),
    ],
)
def test_wrong_columns(columns, known, message):
    with pytest.raises(ValueError, match=message):
        mutual_information(columns, given=known)


def is_tree(edges, n_nodes):
    reached, before = {0}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {node for edge in edges if set(edge) & reached for node in edge}
    return len(edges) == n_nodes - 1 and len(reached) == n_nodes


@many
@given(st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_spanning_tree_is_the_heaviest(n_nodes, seed, integers):
    rng = np.random.default_rng(seed)
    shape = (n_nodes, n_nodes)
    weights = rng.integers(-1, 2, size=shape).astype(float) if integers else rng.standard_normal(shape)
    weights = weights + weights.T
    got = spanning_tree(weights)
    assert got == sorted((min(edge), max(edge)) for edge in got)
    assert is_tree(got, n_nodes)

    def weight(edges):
        return sum(weights[edge] for edge in edges)

    everything = combinations(combinations(range(n_nodes), 2), n_nodes - 1)
    assert weight(got) == pytest.approx(max(weight(edges) for edges in everything if is_tree(edges, n_nodes)))


def test_equal_weights_and_zeros_still_give_a_tree():
    star = [(0, 1), (0, 2), (0, 3)]
    assert spanning_tree(np.zeros((4, 4))) == star
    assert spanning_tree(np.full((4, 4), -2.0)) == star
    assert spanning_tree([[5.0]]) == []
    assert spanning_tree(np.zeros((0, 0))) == []


def test_tiny_differences_count():
    weights = np.ones((3, 3)) - np.array([[0, 2, 1], [2, 0, 0], [1, 0, 0]]) * np.finfo(float).eps
    assert spanning_tree(weights) == [(0, 2), (1, 2)]
    assert spanning_tree(weights * 1e-300) == [(0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros((2, 3)), r"weights must be a square matrix. Got shape \(2, 3\) instead."),
        (np.zeros(3), r"weights must have 2 dimensions. Got shape \(3,\) instead."),
        ([[0.0, 1.0], [2.0, 0.0]], r"weights must be symmetric. Got weights\[0, 1\] = 1.0 and weights\[1, 0\] = 2.0."),
        ([[0.0, np.inf], [np.inf, 0.0]], r"weights must be finite. Got weights\[0, 1\] = inf"),
        ([[0.0, 1.0], [np.nan, 0.0]], r"weights must be finite. Got weights\[0, 1\] = 1.0 and weights\[1, 0\] = nan."),
    ],
)
def test_wrong_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        spanning_tree(weights)


@many
@given(label_tables(), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.5, 1e-300, 2.0**900]))
def test_weights_are_repeated_rows(table, seed, unit):
    """To the last bit where they are whole, in any unit that is a power of 2: ties must be broken alike."""
    codes, groups = table
    counts = np.random.default_rng(seed).integers(0, 4, size=len(codes))
    counts[0] = 1
    again = np.repeat(codes, counts, axis=0)
    for known in (None, groups):
        repeated = None if known is None else np.repeat(known, counts)
        wanted = mutual_information(again, given=repeated)
        found = mutual_information(codes, given=known, weights=counts * unit)
        if unit == 1e-300:
            np.testing.assert_allclose(found, wanted, atol=1e-12)
        else:
            np.testing.assert_array_equal(found, wanted)
            assert spanning_tree(found) == spanning_tree(wanted)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "weights must have one entry for each row of columns, 2. Got 1 instead"),
        ([1.0, -1.0], r"weights must be finite and at least 0. Got weights\[1\] = -1.0"),
        ([np.nan, 1.0], r"Got weights\[0\] = nan"),
        ([0.0, 0.0], "weights must have an entry above 0"),
    ],
)
def test_wrong_row_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        mutual_information([[0, 1], [1, 1]], weights=weights)
