"""Every query of Chain against plain enumeration of all labellings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.reference import enumeration
from tests.structures.problems import problems

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
temperatures = st.sampled_from([1.0, 0.5, 0.1, 2.0, 0.01])
threads = st.sampled_from([1, 3])
many = settings(max_examples=150, deadline=None)


@many
@given(problems(), temperatures, threads)
def test_log_partition(problem, temperature, n_jobs):
    assume(problem.solvable)
    got = problem.chain.log_partition(problem.scores, temperature=temperature, cost=problem.cost, n_jobs=n_jobs)
    want = [enumeration.log_partition(s, temperature) for s in problem.sequences]
    np.testing.assert_allclose(got, want, **TOLERANCE)


@many
@given(problems(), temperatures, threads)
def test_marginals(problem, temperature, n_jobs):
    assume(problem.solvable)
    got = problem.chain.marginals(
        problem.scores, temperature=temperature, cliques="each", cost=problem.cost, n_jobs=n_jobs
    )
    summed = problem.chain.marginals(problem.scores, temperature=temperature, cliques="sum", cost=problem.cost)
    np.testing.assert_array_equal(summed.node, got.node)
    np.testing.assert_allclose(
        got.log_partition, [enumeration.log_partition(s, temperature) for s in problem.sequences], **TOLERANCE
    )
    by_edge = got.clique.reshape(len(got.clique), problem.chain.n_cliques)
    by_example = summed.clique.reshape(len(summed.clique), problem.chain.n_cliques)
    for i, sequence in enumerate(problem.sequences):
        if not sequence.node:
            continue
        want = np.array(enumeration.node_marginals(sequence, temperature))
        np.testing.assert_allclose(got.node[problem.rows(i)], want, **TOLERANCE)
        windows = enumeration.window_marginals(sequence, temperature)
        want = np.zeros((len(windows), problem.chain.n_cliques))
        for c, row in enumerate(problem.chain.cliques):
            key = tuple(int(v) for v in row if v >= 0)
            for t, table in enumerate(windows):
                # A short window is the clique of its own node only: (-1, a, b) ends at the second node.
                if len(key) == min(t + 2, problem.chain.order + 1):
                    want[t, c] = table.get(key, 0.0)
        np.testing.assert_allclose(by_edge[problem.edges(i)], want, **TOLERANCE)
        np.testing.assert_allclose(by_example[i], want.sum(axis=0), **TOLERANCE)


@many
@given(problems(), temperatures)
def test_entropy(problem, temperature):
    assume(problem.solvable)
    got = problem.chain.entropy(problem.scores, temperature=temperature, cost=problem.cost)
    want = [enumeration.entropy(s, temperature) for s in problem.sequences]
    np.testing.assert_allclose(got, want, **TOLERANCE)


@many
@given(problems(integers=True), threads)
def test_argmax_and_ties(problem, n_jobs):
    """Integer scores tie all the time: the promised one of the best must come back, whatever the number of threads."""
    assume(problem.solvable)
    got = problem.chain.argmax(problem.scores, cost=problem.cost, n_jobs=n_jobs)
    for i, sequence in enumerate(problem.sequences):
        assert tuple(got[problem.rows(i)]) == enumeration.best_first(sequence)[0][1]


@many
@given(problems(integers=True), st.integers(1, 12), threads)
def test_k_best(problem, k, n_jobs):
    assume(problem.solvable)
    got = problem.chain.k_best(problem.scores, k, cost=problem.cost, n_jobs=n_jobs)
    np.testing.assert_array_equal(got.labels[0], problem.chain.argmax(problem.scores, cost=problem.cost))
    for i, sequence in enumerate(problem.sequences):
        want = enumeration.best_first(sequence)
        n_found = min(k, len(want))
        np.testing.assert_allclose(got.scores[i, :n_found], [score for score, _ in want[:n_found]], atol=1e-9)
        assert np.all(got.scores[i, n_found:] == -np.inf)
        paths = [tuple(int(v) for v in row) for row in got.labels[:, problem.rows(i)]]
        assert paths[:n_found] == [labels for _, labels in want[:n_found]]
        if sequence.node:
            assert all(set(path) == {-1} for path in paths[n_found:])


@many
@given(problems(), threads)
def test_max_marginals(problem, n_jobs):
    assume(problem.solvable)
    got = problem.chain.max_marginals(problem.scores, cost=problem.cost, n_jobs=n_jobs)
    for i, sequence in enumerate(problem.sequences):
        if sequence.node:
            np.testing.assert_allclose(got[problem.rows(i)], enumeration.max_marginals(sequence), **TOLERANCE)


@many
@given(problems(), st.integers(0, 2**32 - 1))
def test_score(problem, seed):
    labels = np.random.default_rng(seed).integers(0, problem.chain.n_labels, problem.scores.n_nodes)
    got = problem.chain.score(problem.scores, labels, cost=problem.cost)
    for i, sequence in enumerate(problem.sequences):
        assert got[i] == pytest.approx(sequence.score(tuple(labels[problem.rows(i)].tolist())), abs=1e-10)


@many
@given(problems())
def test_temperature_zero_is_the_limit(problem):
    assume(problem.solvable)
    maximum = problem.chain.log_partition(problem.scores, temperature=0, cost=problem.cost)
    np.testing.assert_allclose(maximum, [enumeration.log_partition(s, 0) for s in problem.sequences], **TOLERANCE)
    nearly = problem.chain.log_partition(problem.scores, temperature=1e-9, cost=problem.cost)
    np.testing.assert_allclose(nearly, maximum, atol=1e-7)
    # M_T lies between M_0 and M_0 + T log(number of labellings).
    warm = problem.chain.log_partition(problem.scores, temperature=0.3, cost=problem.cost)
    room = [0.3 * math.log(len(s.labellings())) for s in problem.sequences]
    assert np.all(warm >= maximum - 1e-9)
    assert np.all(warm <= maximum + room + 1e-9)
    cold = problem.chain.marginals(problem.scores, temperature=0, cliques="sum", cost=problem.cost)
    near = problem.chain.marginals(problem.scores, temperature=1e-9, cliques="sum", cost=problem.cost)
    np.testing.assert_array_equal(cold.node.argmax(axis=1), problem.chain.argmax(problem.scores, cost=problem.cost))
    np.testing.assert_allclose(near.node, cold.node, atol=1e-6)
    np.testing.assert_allclose(near.clique, cold.clique, atol=1e-6)
    assert np.all(problem.chain.entropy(problem.scores, temperature=0, cost=problem.cost) == 0)


@many
@given(problems(dead_end=True))
def test_examples_without_a_labelling_are_named(problem):
    bad = [i for i, s in enumerate(problem.sequences) if not s.labellings()]
    found = problem.chain.is_possible(problem.scores, cost=problem.cost)
    assert np.flatnonzero(~found).tolist() == bad
    assume(bad)
    for query in (problem.chain.log_partition, problem.chain.argmax, problem.chain.marginals, problem.chain.entropy):
        with pytest.raises(ValueError, match=f"Example {bad[0]} has no allowed labelling"):
            query(problem.scores, cost=problem.cost)
    with pytest.raises(ValueError, match=f"Example {bad[0]} has no allowed labelling"):
        problem.chain.k_best(problem.scores, 2, cost=problem.cost)
    with pytest.raises(ValueError, match=f"Example {bad[0]} has no allowed labelling"):
        problem.chain.sample(problem.scores, 2, cost=problem.cost)
