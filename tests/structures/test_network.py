"""Networks: layout of tables, cycles, sharing, and hidden variables against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from dualfield.structures import Conditioned, Network
from dualfield.structures.network import groups, hidden
from dualfield.structures.network.groups import condition
from tests.structures.network_problems import NetworkProblem, completions, network_problems, place, uses


@settings(max_examples=60, deadline=None)
@given(network_problems())
def test_places_and_counts(problem: NetworkProblem) -> None:
    network, codes = problem.network, problem.codes
    found = network.indices(codes)
    for row, answers in zip(codes, found, strict=True):
        for v, answer in enumerate(answers):
            at = place(network, v, row)
            assert answer == (-1 if at is None else at)
    weights = np.arange(1.0, len(codes) + 1.0)
    wanted = sum(
        (w * uses(network, row) for w, row in zip(weights, codes, strict=True)), np.zeros(network.n_parameters)
    )
    np.testing.assert_allclose(network.counts(codes, weights), wanted)


@settings(max_examples=40, deadline=None)
@given(network_problems())
def test_rows_are_what_sums_to_one(problem: NetworkProblem) -> None:
    """The rows of all tables: one for each table and configuration of parents, with as many entries as values."""
    network = problem.network
    probabilities = np.empty(network.n_parameters)
    n_rows = 0
    for table in range(max(network.tables) + 1):
        v = network.tables.index(table)
        numbers = network.table(probabilities, v)
        numbers[...] = 1.0 / network.n_values[v]
        n_rows += numbers.size // network.n_values[v]
    assert network.n_rows == n_rows
    np.testing.assert_allclose(np.bincount(network.rows, probabilities), np.ones(n_rows))


@settings(max_examples=80, deadline=None)
@given(network_problems(), st.sampled_from([0, 1, 4096]), st.sampled_from([0, 16]), st.sampled_from([1, 2**20]))
def test_hidden_variables_by_enumeration(problem: NetworkProblem, listed: int, few: int, chunk: int) -> None:
    """Listing, elimination, and groups of unlike examples give the same, whatever chunks they are cut into."""
    network, theta = problem.network, problem.theta
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden, "MOST_LISTED", listed)
        patch.setattr(hidden, "NUMBERS_OF_A_CHUNK", chunk)
        patch.setattr(groups, "FEW_EXAMPLES", few)
        seen = []
        for examples, part in condition(network, problem.codes, problem.hidden):
            best, total, marginals = part.argmax(theta), part.log_partition(theta), part.marginals(theta)
            rest = part.rest(theta)
            seen += examples.tolist()
            for at, i in enumerate(examples):
                rows = list(completions(network, problem.codes[i], problem.hidden[i]))
                scores = np.array([uses(network, row) @ theta for row in rows])
                found = problem.codes[i].copy()
                found[list(part.hidden)] = best[at]
                assert (found == problem.codes[i])[~problem.hidden[i]].all()
                np.testing.assert_allclose(uses(network, found) @ theta, scores.max(), rtol=0, atol=1e-12)
                np.testing.assert_allclose(total[at] + rest[at], logsumexp(scores), rtol=0, atol=1e-11)
                chances = np.exp(scores - logsumexp(scores))
                for v, answer in zip(part.hidden, marginals, strict=True):
                    wanted = np.bincount([row[v] for row in rows], chances, minlength=network.n_values[v])
                    np.testing.assert_allclose(answer[at], wanted, rtol=0, atol=1e-12)
        assert sorted(seen) == np.flatnonzero(problem.hidden.any(axis=1)).tolist()


@settings(max_examples=30, deadline=None)
@given(network_problems(most_rows=4))
def test_one_value_of_a_hidden_variable(problem: NetworkProblem) -> None:
    network, theta = problem.network, problem.theta
    for examples, part in condition(network, problem.codes, problem.hidden):
        shared = [h for h, v in enumerate(part.hidden) if problem.hidden[examples, v].all()]
        for h in shared:
            for value in range(part.n_values[h]):
                answers = part.log_partition(theta, (h, value)) + part.rest(theta)
                for at, i in enumerate(examples):
                    rows = completions(network, problem.codes[i], problem.hidden[i])
                    scores = [uses(network, row) @ theta for row in rows if row[part.hidden[h]] == value]
                    np.testing.assert_allclose(answers[at], logsumexp(scores), rtol=0, atol=1e-11)


def test_ties_take_the_lowest_values() -> None:
    part = Conditioned(Network([2, 3], [[], []]), np.zeros((2, 2), dtype=np.int32), [0, 1])
    np.testing.assert_array_equal(part.argmax(np.zeros(5)), np.zeros((2, 2)))


def test_samples_have_the_frequencies_of_the_tables() -> None:
    network = Network([2, 3], [[1], []])
    theta = np.log([0.9, 0.1, 0.5, 0.5, 0.2, 0.4, 0.2, 0.3, 0.5])  # the second row of the first table lacks a half
    codes = network.sample(theta, 20_000, np.random.RandomState(0))
    second = np.bincount(codes[:, 1], minlength=3) / len(codes)
    np.testing.assert_allclose(second, [0.2, 0.3, 0.5], atol=0.015)
    for value, wanted in enumerate([0.1, 0.5, 2 / 3]):
        assert codes[codes[:, 1] == value, 0].mean() == pytest.approx(wanted, abs=0.02)
    np.testing.assert_array_equal(codes, network.sample(theta, 20_000, np.random.RandomState(0)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2, 2, 2], [[2], [0], [1]]), r"must have no cycle. Got 0 -> 1 -> 2 -> 0 instead"),
        (([2, 2], [[0], []]), r"must have no cycle. Got 0 -> 0 instead"),
        (([2, 2], [[], [0]], None, ["a"]), "The 'names' parameter of Network must have an entry for each of 2"),
        (([2, 2], [[]]), "The 'parents' parameter of Network must have an entry for each of 2"),
        (([2, 0], [[], []]), r"The 'n_values\[1\]' parameter of Network must be an int in \[1, inf\)"),
        (([2, 2], [[], [2]]), r"The parents of 1 must be variables in \[0, 2\). Got \(2,\) instead"),
        (([2, 2], [[], [0, 0]], None, ["a", "b"]), "The parents of 'b' must be distinct. Got 'a' twice"),
        (([2, 3], [[], []], [0, 0], ["a", "b"]), r"The table of 'a' has shape \(2,\), that of 'b' has \(3,\)"),
        (([2, 2, 3, 2], [[2], [3], [], []], [0, 0, 1, 2]), r"shape \(3, 2\), that of 1 has \(2, 2\)"),
    ],
)
def test_what_is_no_network(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Network(*arguments)


def test_the_cycle_is_named() -> None:
    names = ["rain", "wet", "slip", "sun"]
    with pytest.raises(ValueError, match="'wet' -> 'slip' -> 'wet'"):
        Network([2, 2, 2, 2], [[3], [0, 2], [1], []], names=names)


def test_large_tables_are_refused() -> None:
    with pytest.raises(ValueError, match=r"The table of 3 given its 3 parents would have 10000 entries, more than"):
        Network([10, 10, 10, 10], [[], [], [], [0, 1, 2]], max_table=9999)
    n = 16
    network = Network([4] * n, [[]] + [[v - 1] for v in range(1, n - 1)] + [list(range(0, n - 1, 2))])
    hidden = np.ones((1, n), dtype=bool)
    with pytest.raises(ValueError, match=r"are too many to be predicted exactly\. FactorGraph is too wide"):
        condition(network, np.zeros((1, n), dtype=np.int32), hidden, max_table=1000)


def test_networks_compare_by_what_they_are() -> None:
    assert Network([2, 2], [[], [0]]) == Network([2, 2], [[], [0]], names=["a", "b"])
    assert Network([2, 2], [[], [0]]) != Network([2, 2], [[1], []])
    assert Network([2, 2], [[], []], [5, 5]) == Network([2, 2], [[], []], [0, 0])


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, 3]], r"codes of 'b' must be below 2, its number of values, or below 0 for none. Got codes\[0, 1\] = 3"),
        ([[0, 0], [2, 1]], r"codes of 'a' must be below 2.* Got codes\[1, 0\] = 2"),
        ([[0.0, 1.0]], "codes must be integers of shape .* dtype float64"),
        ([[0.7, 1.2]], "codes must be integers"),
        ([[True, False]], "codes must be integers"),
        ([0, 1], r"codes must be integers of shape \(n, 2\).* Got shape \(2,\)"),
        ([[0, 1, 0]], r"Got shape \(1, 3\)"),
    ],
)
def test_wrong_values_are_named(codes: Any, message: str) -> None:
    network = Network([2, 2], [[], [0]], names=["a", "b"])
    for ask in (network.indices, network.counts):
        with pytest.raises(ValueError, match=message):
            ask(codes)


def test_weights_of_values_must_fit() -> None:
    network = Network([2, 2], [[], [0]])
    for weights in ([1.0], [[1.0], [2.0]], ["a", "b"]):
        with pytest.raises(ValueError, match="weights must"):
            network.counts([[0, 1], [1, 1]], weights)
    assert network.counts(np.zeros((0, 2), dtype=int)).tolist() == [0.0] * 6
    assert network.counts([[0, -1], [1, -2]], [2, 3]).tolist() == [2.0, 3.0, 0.0, 0.0, 0.0, 0.0]
