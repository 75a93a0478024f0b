"""Expected calibration error, against a loop over bins."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.metrics import calibration_bins, calibration_error

CLASSES = ["a", "b", "c"]


def reference(labels, rows, n_bins):
    total = 0.0
    for number in range(n_bins):
        low, high = number / n_bins, (number + 1) / n_bins
        members = [
            (row.max(), CLASSES[row.argmax()] == label)
            for label, row in zip(labels, rows, strict=True)
            if low < row.max() <= high
        ]
        if members:
            confidence = math.fsum(member[0] for member in members) / len(members)
            accuracy = sum(member[1] for member in members) / len(members)
            total += len(members) * abs(accuracy - confidence)
    return total / len(labels)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(1, 12))
def test_error_is_that_of_a_loop_over_bins(seed, lengths, n_bins):
    lengths = [*lengths, 1]
    generator = np.random.default_rng(seed)
    rows = generator.dirichlet([0.5] * 3, size=sum(lengths))
    labels = generator.choice([*CLASSES, "unseen"], size=sum(lengths)).tolist()
    cuts = np.cumsum([0, *lengths])
    marginals = [rows[start:stop] for start, stop in itertools.pairwise(cuts)]
    y = [labels[start:stop] for start, stop in itertools.pairwise(cuts)]
    error = calibration_error(y, marginals, CLASSES, n_bins=n_bins)
    assert error == pytest.approx(reference(labels, rows, n_bins), abs=1e-12)
    assert 0.0 <= error <= 1.0


def test_extremes():
    sure = [np.array([[1.0, 0.0], [0.0, 1.0]])]
    assert calibration_error([["a", "b"]], sure, ["a", "b"]) == 0.0
    assert calibration_error([["b", "a"]], sure, ["a", "b"]) == 1.0
    half = [np.full((4, 2), 0.5)]
    assert calibration_error([["a", "b", "a", "b"]], half, np.array(["a", "b"])) == 0.0
    assert calibration_error([[3, 5]], [[[0.25, 0.75], [0.75, 0.25]]], np.array([3, 5]), n_bins=np.int64(4)) == 0.75


def test_edges_belong_to_the_bin_below():
    rows = [np.array([[0.6, 0.4], [0.61, 0.39]])]
    together = calibration_error([["a", "b"]], rows, ["a", "b"], n_bins=1)
    apart = calibration_error([["a", "b"]], rows, ["a", "b"], n_bins=5)
    assert together == pytest.approx(abs(0.4 - 0.61) / 2)
    assert apart == pytest.approx((0.4 + 0.61) / 2)


def test_empty_sequences_do_not_count():
    rows = [np.zeros((0, 2)), np.array([[0.75, 0.25]]), []]
    assert calibration_error([[], ["a"], []], rows, ["a", "b"]) == 0.25
    with pytest.raises(ValueError, match="y_true must have at least one label"):
        calibration_error([[]], [np.zeros((0, 2))], ["a", "b"])


@pytest.mark.parametrize(
    ("y_true", "marginals", "message"),
    [
        ([["a"]], [], r"y_true has 1 sequences; marginals has 0"),
        ([["a"], ["a"]], [[[1, 0]], [[1, 0], [0, 1]]], r"marginals\[1\] must have shape \(1, 2\): .* Got \(2, 2\)"),
        ([["a"]], [[[1, 0, 0]]], r"marginals\[0\] must have shape \(1, 2\): .* Got \(1, 3\)"),
        ([["a"]], [[[1.5, 0]]], r"marginals\[0\] must be probabilities in \[0, 1\]. Got 0.0 to 1.5"),
        ([["a"]], [[[math.nan, 0]]], r"marginals\[0\] must be probabilities"),
    ],
)
def test_what_does_not_fit_is_named(y_true, marginals, message):
    with pytest.raises(ValueError, match=message):
        calibration_error(y_true, marginals, ["a", "b"])


@pytest.mark.parametrize("n_bins", [0, -1, 2.0, True, None])
def test_number_of_bins_is_checked(n_bins):
    with pytest.raises(ValueError, match="The 'n_bins' parameter of calibration_error must be an int in"):
        calibration_error([["a"]], [[[1.0]]], ["a"], n_bins=n_bins)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.7], [1]), r"confidence must be a probability in \[0, 1\]. Got confidence\[0\] = 1.7"),
        (([0.5, -3.0], [1, 0]), r"Got confidence\[1\] = -3.0"),
        (([0.5, np.nan], [1, 0]), r"Got confidence\[1\] = nan"),
        (([0.5], [0.3]), r"correct must say whether a prediction was right, True or False. Got correct\[0\] = 0.3"),
        (([0.5], [2]), "correct must say"),
        (([0.5], ["yes"]), "correct must be an array of numbers"),
        ((["x"], [True]), "confidence must be an array of numbers"),
        (([], []), "non-empty 1D arrays of the same length"),
        (([0.5, 0.5], [True]), "non-empty 1D arrays of the same length"),
    ],
)
def test_what_is_no_confidence_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        calibration_bins(*arguments)


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, "10", None])
def test_bins_are_counted(n_bins):
    with pytest.raises(ValueError, match="The 'n_bins' parameter of calibration_bins must be an int"):
        calibration_bins([0.5], [True], n_bins=n_bins)


def test_rounding_is_no_fault():
    bins = calibration_bins(np.array([1.0 + 1e-7, -1e-9], dtype=np.float32), [True, False], n_bins=4)
    assert bins.count.tolist() == [1, 1]
    assert bins.error == pytest.approx(0.0, abs=1e-6)
