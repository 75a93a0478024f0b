"""Every question of FactorGraph against plain enumeration of all labellings."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualfield.structures import FactorGraph
from tests.structures.factor_graph_problems import Problem, grid_edges, problems

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}
temperatures = st.sampled_from([1.0, 0.5, 0.1, 2.0, 0.01])
many = settings(max_examples=100, deadline=None)


def every_question(problem, temperature=1.0):
    ask, given = problem.graph, {"evidence": problem.evidence}
    return [
        ask.argmax(problem.tables, **given),
        ask.maximum(problem.tables, **given),
        ask.log_partition(problem.tables, temperature=temperature, **given),
        *ask.marginals(problem.tables, temperature=temperature, **given),
        *ask.node_marginals(problem.tables, temperature=temperature, **given),
    ]


@many
@given(problems(), temperatures)
def test_log_partition(problem, temperature):
    assume(problem.solvable)
    got = problem.graph.log_partition(problem.tables, temperature=temperature, evidence=problem.evidence)
    want = [problem.log_partition(i, temperature) for i in range(problem.n_examples)]
    np.testing.assert_allclose(got, want, **TOLERANCE)


@many
@given(problems(), temperatures)
def test_marginals(problem, temperature):
    assume(problem.solvable)
    got = problem.graph.marginals(problem.tables, temperature=temperature, evidence=problem.evidence)
    assert len(got) == len(problem.graph.cliques)
    for clique, table in zip(problem.graph.cliques, got, strict=True):
        np.testing.assert_allclose(table, problem.marginals(clique, temperature), **TOLERANCE)
    each = problem.graph.node_marginals(problem.tables, temperature=temperature, evidence=problem.evidence)
    assert len(each) == problem.graph.n_nodes
    for node, table in enumerate(each):
        np.testing.assert_allclose(table, problem.marginals((node,), temperature), **TOLERANCE)


@many
@given(problems(integers=True))
def test_argmax_and_its_rule_for_equals(problem):
    assume(problem.solvable)
    got = problem.graph.argmax(problem.tables, evidence=problem.evidence)
    assert got.dtype == np.int32
    assert got.shape == (problem.n_examples, problem.graph.n_nodes)
    last_first = problem.graph.elimination_order[::-1]
    for i in range(problem.n_examples):
        best = min(problem.labellings(i), key=lambda item: (-item[0], [item[1][node] for node in last_first]))
        assert tuple(got[i]) == best[1]


@many
@given(problems(), st.integers(1, 9))
def test_k_best(problem, k):
    assume(problem.solvable)
    got = problem.graph.k_best(problem.tables, k, evidence=problem.evidence)
    assert got.labels.shape == (k, problem.n_examples, problem.graph.n_nodes)
    np.testing.assert_array_equal(got.labels[0], problem.graph.argmax(problem.tables, evidence=problem.evidence))
    for i in range(problem.n_examples):
        known = {labels: score for score, labels in problem.labellings(i)}
        ranked = sorted(known.values(), reverse=True)[:k]
        np.testing.assert_allclose(got.scores[i, : len(ranked)], ranked, **TOLERANCE)
        lists = [tuple(labels) for labels in got.labels[: len(ranked), i].tolist()]
        assert len(set(lists)) == len(lists)
        np.testing.assert_allclose([known[labels] for labels in lists], ranked, **TOLERANCE)
        assert (got.scores[i, len(ranked) :] == -np.inf).all()
        assert (got.labels[len(ranked) :, i] == -1).all()


@many
@given(problems())
def test_maximum_and_score(problem):
    assume(problem.solvable)
    got = problem.graph.maximum(problem.tables, evidence=problem.evidence)
    np.testing.assert_allclose(got, [max(problem.labellings(i))[0] for i in range(problem.n_examples)], **TOLERANCE)
    np.testing.assert_array_equal(
        got, problem.graph.log_partition(problem.tables, temperature=0, evidence=problem.evidence)
    )
    labels = problem.graph.argmax(problem.tables, evidence=problem.evidence)
    np.testing.assert_allclose(problem.graph.score(problem.tables, labels), got, **TOLERANCE)


@many
@given(problems(evidence=False))
def test_scores_of_all_labellings(problem):
    allowed = [{y: score for score, y in problem.labellings(i)} for i in range(problem.n_examples)]
    for y in product(*map(range, problem.graph.n_labels)):
        got = problem.graph.score(problem.tables, [y] * problem.n_examples)
        np.testing.assert_allclose(got, [of.get(y, -np.inf) for of in allowed], **TOLERANCE)


@many
@given(problems())
def test_temperature_0_gives_the_indicator(problem):
    assume(problem.solvable)
    labels = problem.graph.argmax(problem.tables, evidence=problem.evidence)
    cliques = problem.graph.marginals(problem.tables, temperature=0, evidence=problem.evidence)
    nodes = problem.graph.node_marginals(problem.tables, temperature=0, evidence=problem.evidence)
    sets = [*problem.graph.cliques, *((node,) for node in range(problem.graph.n_nodes))]
    for clique, table in zip(sets, [*cliques, *nodes], strict=True):
        assert table.sum() == problem.n_examples
        assert (table[(np.arange(problem.n_examples), *labels[:, clique].T)] == 1.0).all()


@many
@given(problems())
def test_no_temperature_is_too_low(problem):
    assume(problem.solvable)
    assert problem.graph.log_partition(problem.tables, temperature=1e-300, evidence=problem.evidence) == pytest.approx(
        problem.graph.maximum(problem.tables, evidence=problem.evidence)
    )
    for table in problem.graph.marginals(problem.tables, temperature=1e-300, evidence=problem.evidence):
        np.testing.assert_allclose(table.reshape(problem.n_examples, -1).sum(axis=1), 1.0)


@settings(max_examples=30, deadline=None)
@given(problems(scale=1.0), temperatures.filter(lambda value: value >= 0.5))
def test_marginals_are_the_gradient(problem, temperature):
    assume(problem.solvable)
    rng = np.random.default_rng(0)
    steps = [rng.standard_normal(table.shape) for table in problem.tables]

    def value(size):
        moved = [table + size * step for table, step in zip(problem.tables, steps, strict=True)]
        return problem.graph.log_partition(moved, temperature=temperature, evidence=problem.evidence)

    got = problem.graph.marginals(problem.tables, temperature=temperature, evidence=problem.evidence)
    slope = np.zeros(problem.n_examples)
    for table, step in zip(got, steps, strict=True):
        slope += (table * step).reshape(problem.n_examples, -1).sum(axis=1)
    np.testing.assert_allclose(slope, (value(1e-5) - value(-1e-5)) / 2e-5, rtol=1e-6, atol=1e-6)


@many
@given(problems())
def test_examples_alone_are_answered_alike(problem):
    """Lanes and remainders of the batch: every example has the answer that it has alone."""
    assume(problem.solvable)
    whole = every_question(problem)
    for i in range(problem.n_examples):
        tables = [
            table[i : i + 1] if table.ndim > len(clique) else table
            for table, clique in zip(problem.tables, problem.graph.cliques, strict=True)
        ]
        known = None if problem.evidence is None else problem.evidence[i : i + 1]
        for got, want in zip(every_question(Problem(problem.graph, tables, known, 1)), whole, strict=True):
            np.testing.assert_array_equal(got, want[i : i + 1])


@many
@given(problems(dead_end=True))
def test_an_example_without_labelling_is_named(problem):
    lost = [i for i in range(problem.n_examples) if not problem.labellings(i)]
    assume(lost)
    for ask in (problem.graph.marginals, problem.graph.maximum):
        with pytest.raises(ValueError, match=f"Example {lost[0]} has no allowed labelling"):
            ask(problem.tables, evidence=problem.evidence)


def test_grid_of_nine():
    rng = np.random.default_rng(0)
    cliques = [*((v,) for v in range(9)), *grid_edges(3, 3)]
    tables = [2.0 * rng.standard_normal((3, *(2,) * len(clique))) for clique in cliques]
    problem = Problem(FactorGraph([2] * 9, cliques), tables, None, 3)
    np.testing.assert_allclose(
        problem.graph.log_partition(tables), [problem.log_partition(i, 1.0) for i in range(3)], **TOLERANCE
    )
    for clique, table in zip(cliques, problem.graph.marginals(tables), strict=True):
        np.testing.assert_allclose(table, problem.marginals(clique, 1.0), **TOLERANCE)
    best = [max(problem.labellings(i))[1] for i in range(3)]
    np.testing.assert_array_equal(problem.graph.argmax(tables), best)
