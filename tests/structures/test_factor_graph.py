"""FactorGraph: its order of elimination, its limits, known special cases, and what it refuses."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualfield.structures import Chain, FactorGraph, Scores, spanning_tree
from tests.structures.factor_graph_problems import grid_edges

TOLERANCE = {"rtol": 1e-10, "atol": 1e-10}


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 10), st.sampled_from([0.2, 0.4, 0.6]), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_elimination_is_min_fill(n_nodes, density, most_labels, seed):
    rng = np.random.default_rng(seed)
    edges = [pair for pair in combinations(range(n_nodes), 2) if rng.random() < density]
    n_labels = [int(size) for size in rng.integers(1, most_labels + 1, size=n_nodes)]
    near = {v: {b if a == v else a for a, b in edges if v in (a, b)} for v in range(n_nodes)}
    want, widest = [], 0
    while near:

        def price(v, near=near):
            missing = sum(b not in near[a] for a, b in combinations(near[v], 2))
            return missing, math.prod(n_labels[u] for u in [v, *near[v]]), v

        node = min(near, key=price)
        around = near.pop(node)
        for other in around:
            near[other] = (near[other] | around) - {node, other}
        want.append(node)
        widest = max(widest, len(around))
    got = FactorGraph(n_labels, edges)
    assert got.elimination_order == tuple(want)
    assert got.width == widest


@pytest.mark.parametrize(
    ("n_nodes", "cliques", "width"),
    [
        (1, [], 0),
        (5, [(0, 1), (1, 2), (1, 3), (3, 4)], 1),
        (6, [(v, (v + 1) % 6) for v in range(6)], 2),
        (5, list(combinations(range(5), 2)), 4),
        (9, grid_edges(3, 3), 3),
        (1000, [(0, leaf) for leaf in range(1, 1000)], 1),
    ],
)
def test_width(n_nodes, cliques, width):
    assert FactorGraph([2] * n_nodes, cliques).width == width


@pytest.mark.parametrize("temperature", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("order", [1, 2])
def test_a_chain_is_a_graph(order, temperature):
    rng = np.random.default_rng(order)
    n, length, n_labels = 6, 7, 3
    node = rng.integers(-2, 3, size=(n, length, n_labels)).astype(float)  # equals occur
    transition = rng.integers(-2, 3, size=(n_labels,) * (order + 1)).astype(float)
    transition[(0,) * (order + 1)] = -np.inf
    windows = [tuple(range(t, t + order + 1)) for t in range(length - order)]
    one = FactorGraph([n_labels] * length, [*((t,) for t in range(length)), *windows])
    tables = [*(node[:, t] for t in range(length)), *([transition] * len(windows))]
    scores = Scores(node.reshape(-1, n_labels), np.arange(0, n * length + 1, length), transition)
    chain = Chain(n_labels, order)

    np.testing.assert_allclose(
        one.log_partition(tables, temperature=temperature), chain.log_partition(scores, temperature=temperature)
    )
    want = chain.marginals(scores, temperature=temperature, cliques="each")
    got = np.stack(one.node_marginals(tables, temperature=temperature), axis=1)
    np.testing.assert_allclose(got.reshape(-1, n_labels), want.node, **TOLERANCE)
    np.testing.assert_array_equal(one.argmax(tables).ravel(), chain.argmax(scores))
    if order == 1:
        pairs = np.stack(one.marginals(tables, temperature=temperature)[length:], axis=1)
        np.testing.assert_allclose(pairs.reshape(want.clique.shape), want.clique, **TOLERANCE)


def test_evidence_is_the_joint_probability():
    """In a Bayesian network the log-partition is the log-probability of what is known, whatever is hidden."""
    rng = np.random.default_rng(3)
    parents = {0: (), 1: (0,), 2: (0,), 3: (1, 2), 4: (3,)}
    sizes = [2, 3, 2, 3, 2]
    tables, joint = [], np.ones(sizes)
    for node, above in parents.items():
        probability = rng.dirichlet(np.ones(sizes[node]), size=[sizes[p] for p in above])
        tables.append(np.log(probability))
        shape = [sizes[v] if v in (*above, node) else 1 for v in range(5)]  # parents are lower: axes are in order
        joint = joint * probability.reshape(shape)
    network = FactorGraph(sizes, [(*above, node) for node, above in parents.items()])
    evidence = np.array([[rng.integers(-1, size) for size in sizes] for _ in range(40)])
    want = [joint[tuple(slice(None) if code < 0 else code for code in row)].sum() for row in evidence]
    np.testing.assert_allclose(np.exp(network.log_partition(tables, evidence=evidence)), want)
    np.testing.assert_allclose(np.exp(network.log_partition(tables)), [1.0])


def test_far_apart_scores():
    rng = np.random.default_rng(0)
    weights = rng.random((30, 30))
    edges = spanning_tree(weights + weights.T)
    one = FactorGraph([4] * 30, edges)
    tables = [1e5 * rng.standard_normal((2, 4, 4)) for _ in edges]
    np.testing.assert_allclose(one.log_partition(tables), one.maximum(tables))
    for table in one.marginals(tables):
        np.testing.assert_allclose(table.sum(axis=(1, 2)), 1.0)


def test_free_nodes():
    free = FactorGraph([2, 3], [])
    np.testing.assert_allclose(free.log_partition([]), [math.log(6)])
    np.testing.assert_array_equal(free.argmax([], evidence=[[-1, 2], [1, -1]]), [[0, 2], [1, 0]])
    np.testing.assert_allclose(free.node_marginals([])[1], [[1 / 3] * 3])
    assert free.marginals([]) == []


def test_no_examples():
    one = FactorGraph([2, 2], [(0, 1)])
    nothing = [np.zeros((0, 2, 2))]
    assert one.argmax(nothing).shape == (0, 2)
    assert one.log_partition(nothing).shape == (0,)
    assert one.marginals(nothing)[0].shape == (0, 2, 2)
    assert one.score(nothing, np.zeros((0, 2), dtype=int)).shape == (0,)


def test_arguments_stay_as_they_are():
    tables = [np.array([[0.5, -1.0], [0.0, 2.0]]), np.array([1.0, -np.inf])]
    before = [table.copy() for table in tables]
    one, known = FactorGraph([2, 2], [(0, 1), (1,)]), np.array([[-1, 0], [1, -1]])
    for ask in (one.argmax, one.maximum, one.log_partition, one.marginals, one.node_marginals):
        ask(tables, evidence=known)
    np.testing.assert_array_equal(known, [[-1, 0], [1, -1]])
    for table, copy in zip(tables, before, strict=True):
        np.testing.assert_array_equal(table, copy)


def test_record():
    one = FactorGraph([2, 3], [[0, 1], np.array([1])], max_table=10)
    assert repr(one) == "FactorGraph(n_labels=(2, 3), cliques=((0, 1), (1,)), max_table=10, budget=1000000000)"
    assert one == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(FactorGraph((2, 3), ((0, 1), (1,)), max_table=10))
    assert one != FactorGraph([2, 3], [(0, 1)], max_table=10)
    with pytest.raises(FrozenInstanceError):
        one.max_table = 3


def test_too_wide_is_refused():
    cliques = list(combinations(range(5), 2))
    assert FactorGraph([3] * 5, cliques, max_table=3**5).width == 4
    with pytest.raises(
        ValueError, match=r"width 4 and needs a table of 5 nodes and 243 numbers, more than max_table=242"
    ):
        FactorGraph([3] * 5, cliques, max_table=242)
    with pytest.raises(ValueError, match=r"spanning tree .* or raise max_table where memory holds .* 1944 bytes"):
        FactorGraph([3] * 5, cliques, max_table=242)
    with pytest.raises(ValueError, match=r"width 99 .* 1267650600228229401496703205376 numbers"):
        FactorGraph([2] * 100, [tuple(range(100))])
    assert FactorGraph([1] * 40, [tuple(range(40))]).width == 39  # nodes with one label take no room


@pytest.mark.parametrize(
    ("n_labels", "cliques", "message"),
    [
        ([], [], r"The 'n_labels' parameter of FactorGraph must have an entry for each node. Got none."),
        ([2, 0], [], r"The 'n_labels\[1\]' parameter of FactorGraph must be an int in \[1, inf\). Got 0 instead."),
        ([2, 2], [(0, 1), (1, 2)], r"cliques\[1\] must hold nodes in \[0, 2\), as n_labels has. Got 2 instead."),
        ([2, 2], [(0, -1)], r"cliques\[0\] must hold nodes in \[0, 2\), as n_labels has. Got -1 instead."),
        ([2, 2], [(0, 1.0)], r"Got 1.0 instead."),
        ([2, 2], [(0,), (1, 1)], r"cliques\[1\] must hold distinct nodes. Got \(1, 1\) instead."),
        ([2, 2], [()], r"cliques\[0\] must name at least one node."),
        ([2, 2], [0, 1], r"cliques\[0\] must be a tuple of nodes. Got 0 instead."),
    ],
)
def test_wrong_graphs(n_labels, cliques, message):
    with pytest.raises(ValueError, match=message):
        FactorGraph(n_labels, cliques)


PAIR = np.zeros((4, 2, 3))
WRONG_PAIR = np.where(np.arange(24).reshape(4, 2, 3) == 16, np.nan, 0.0)
ENDLESS = np.array([0.0, np.inf])


@pytest.mark.parametrize(
    ("tables", "evidence", "message"),
    [
        ([PAIR], None, r"tables must hold 2 arrays, one for each clique. Got 1 instead."),
        ([PAIR, np.zeros((4, 3))], None, r"tables\[1\] must have shape \(n_examples, 2\), or \(2,\) if all .* \(0,\)"),
        ([np.zeros((3, 2)), [0.0, 0.0]], None, r"tables\[0\] must have shape \(n_examples, 2, 3\), or \(2, 3\)"),
        ([PAIR, np.zeros((5, 2))], None, r"tables\[1\] has 5 examples; expected 4, as in tables\[0\]."),
        ([PAIR, np.zeros((1, 2))], None, r"tables\[1\] has 1 examples; expected 4, .* share has no axis for them."),
        ([WRONG_PAIR, [0.0, 0.0]], None, r"clique \(0, 1\), .* Got nan for the labels \(1, 1\) of example 2 instead."),
        ([PAIR, ENDLESS], None, r"tables\[1\], the scores of clique \(0,\), .* Got inf for the labels \(1,\) instead."),
        ([PAIR, ["a", "b"]], None, r"tables\[1\] must be an array of numbers."),
        ([PAIR, [0.0, 0.0]], [[0, 0]], r"evidence has 1 examples; expected 4, as in tables\[0\]."),
        ([PAIR, [0.0, 0.0]], [0, 0], r"evidence must be integer codes of shape \(n_examples, 2\)"),
        ([PAIR, [0.0, 0.0]], [[0.0, 0.0]] * 4, r"evidence must be integer codes .* dtype float64 instead."),
        (
            [PAIR, [0.0, 0.0]],
            [[0, 3]] * 4,
            r"node 1 must lie in \[0, 3\), or be -1 if unknown. Got evidence\[0, 1\] = 3",
        ),
        ([PAIR, [0.0, -np.inf]], [[-1, 0]] * 3 + [[1, 0]], r"Example 3 has no allowed labelling"),
    ],
)
def test_wrong_questions(tables, evidence, message):
    one = FactorGraph([2, 3], [(0, 1), (0,)])
    for ask in (one.argmax, one.maximum, one.log_partition, one.marginals, one.node_marginals):
        with pytest.raises(ValueError, match=message):
            ask(tables, evidence=evidence)


def test_wrong_labels_and_temperatures():
    one = FactorGraph([2, 3], [(0, 1)])
    with pytest.raises(ValueError, match=r"labels of node 0 must lie in \[0, 2\). Got labels\[1, 0\] = -1 instead."):
        one.score([np.zeros((2, 3))], [[0, 0], [-1, 0]])
    with pytest.raises(ValueError, match=r"labels has 2 examples; expected 4, as in tables\[0\]."):
        one.score([PAIR], [[0, 0], [1, 0]])
    for ask in (one.log_partition, one.marginals, one.node_marginals):
        with pytest.raises(ValueError, match=r"The 'temperature' parameter of .* must be a float in \[0, inf\)"):
            ask([PAIR], temperature=-1.0)


def test_scores_that_cannot_be_added_up_are_refused():
    """Finite scores whose sums are infinite would give NaN."""
    graph = FactorGraph([3, 3], [(0,), (1,), (0, 1)])
    large, forbidden = np.array([1e308, -1e308, 0.0]), np.array([-np.inf, 0.0, 1.0])
    for ask in (graph.log_partition, graph.marginals, graph.node_marginals, graph.argmax, graph.maximum):
        with pytest.raises(ValueError, match=r"add up to more than 8.9e307. Divide all scores by a constant"):
            ask([large, large, np.eye(3)])
        ask([large / 4, large / 4, np.eye(3)])
        ask([forbidden, large / 4, np.eye(3)])  # what is forbidden is not large
    total = graph.log_partition([large / 4, -large / 4, 0.0 * np.eye(3)])
    assert total == pytest.approx(5e307)
    np.testing.assert_allclose(graph.node_marginals([large / 4, large / 4, np.eye(3)])[0], [[1.0, 0.0, 0.0]])


def test_chain_and_graph_take_the_same_temperatures():
    graph, chain = FactorGraph([2], [(0,)]), Chain(2)
    for ask in (graph.log_partition, graph.marginals, graph.node_marginals, chain.log_partition, chain.marginals):
        scores = [[0.0, 0.5]]
        for temperature in (1e-310, 9e-301, 5e-324):
            with pytest.raises(ValueError, match=r"must be 0, which maximises, or at least 1e-300"):
                ask(scores, temperature=temperature)
        for temperature in (0.0, 1e-300, 1e300):
            ask(scores, temperature=temperature)
