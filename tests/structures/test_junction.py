"""Junction trees: enumeration, products beside logarithms, lanes, chains, and what is too wide."""

from __future__ import annotations

import math
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from dualfield import _native
from dualfield.structures import Chain, FactorGraph, Graph, GraphShape, Scores, Tree, TreeShape
from tests.structures.factor_graph_problems import grid_edges

TIGHT = {"rtol": 1e-12, "atol": 1e-12}
QUESTIONS = ("argmax", "maximum", "log_partition", "marginals", "node_marginals")


def random_graph(rng):
    """1 to 6 nodes of 1 to 3 labels, scopes of 1 to 3 nodes in any order."""
    n_labels = rng.integers(1, 4, size=rng.integers(1, 7)).tolist()
    most = min(3, len(n_labels))
    scopes = [
        tuple(rng.permutation(len(n_labels))[: rng.integers(1, most + 1)].tolist()) for _ in range(rng.integers(0, 9))
    ]
    return n_labels, scopes


def random_tables(rng, n_labels, scopes, n_examples, size):
    return [size * rng.standard_normal((n_examples, *(n_labels[node] for node in scope))) for scope in scopes]


def enumerated(n_labels, scopes, tables, example):
    """All labellings, and their scores."""
    labellings = np.array(list(product(*map(range, n_labels))))
    scores = np.zeros(len(labellings))
    for scope, table in zip(scopes, tables, strict=True):
        scores += table[(example, *labellings[:, scope].T)]
    return labellings, scores


@pytest.mark.parametrize("size", [1.0, 30.0, 300.0])
def test_enumeration(size):
    rng = np.random.default_rng(int(size))
    for _ in range(40):
        n_labels, scopes = random_graph(rng)
        graph, n = FactorGraph(n_labels, scopes), int(rng.integers(1, 6))
        tables = random_tables(rng, n_labels, scopes, n, size)
        n = n if scopes else 1
        totals, highest, best = graph.log_partition(tables), graph.maximum(tables), graph.argmax(tables)
        cliques, nodes = graph.marginals(tables), graph.node_marginals(tables)
        for i in range(n):
            labellings, scores = enumerated(n_labels, scopes, tables, i)
            wanted = scores.max() + math.log(np.exp(scores - scores.max()).sum())
            np.testing.assert_allclose(totals[i], wanted, **TIGHT)
            np.testing.assert_allclose(highest[i], scores.max(), **TIGHT)
            assert best[i].tolist() == labellings[scores.argmax()].tolist()
            p = np.exp(scores - wanted)
            every = [*zip(scopes, cliques, strict=True), *(((t,), found) for t, found in enumerate(nodes))]
            for scope, found in every:
                table = np.zeros(found.shape[1:])
                np.add.at(table, tuple(labellings[:, scope].T), p)
                np.testing.assert_allclose(found[i], table, atol=1e-12)


@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_products_and_logarithms_agree(temperature):
    """Two more nodes, with a label that scores so little that products vanish, have all computed in logarithms."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        n_labels, scopes = random_graph(rng)
        if not scopes:
            continue
        tables = random_tables(rng, n_labels, scopes, 5, 2.0)
        n = len(n_labels)
        far = np.array([[0.0, -2000.0], [0.0, -2000.0]])
        plain, other = FactorGraph(n_labels, scopes), FactorGraph([*n_labels, 2, 2], [*scopes, (n, n + 1)])
        more = temperature * math.log(2.0)
        np.testing.assert_allclose(
            other.log_partition([*tables, far], temperature=temperature) - more,
            plain.log_partition(tables, temperature=temperature),
            **TIGHT,
        )
        found = other.marginals([*tables, far], temperature=temperature)
        for one, two in zip(plain.marginals(tables, temperature=temperature), found[:-1], strict=True):
            np.testing.assert_allclose(one, two, **TIGHT)


def every_answer(graph, tables, evidence=None):
    answers = []
    for question in QUESTIONS:
        found = getattr(graph, question)(tables, evidence=evidence)
        answers += found if isinstance(found, list) else [found]
    return answers


@pytest.fixture(params=_native.instruction_sets())
def instruction_set(request):
    before = _native.instruction_set()
    _native.use_instruction_set(request.param)
    yield request.param
    _native.use_instruction_set(before)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("size", [1.0, 400.0])
def test_lanes_do_not_change_a_bit(size):
    """Four examples side by side, or alone: with scores that need logarithms in some lanes, and known labels."""
    rng = np.random.default_rng(1)
    for _ in range(12):
        n_labels, scopes = random_graph(rng)
        if not scopes:
            continue
        graph = FactorGraph(n_labels, scopes)
        tables = random_tables(rng, n_labels, scopes, 7, 1.0)
        for table in tables:
            table[::2] *= size
        evidence = np.array([[rng.integers(-1, k) for k in n_labels] for _ in range(7)])
        for known in (None, evidence):
            whole = every_answer(graph, tables, known)
            for i in range(7):
                one = slice(i, i + 1)
                alone = every_answer(graph, [table[one] for table in tables], None if known is None else known[one])
                for found, wanted in zip(whole, alone, strict=True):
                    np.testing.assert_array_equal(found[one], wanted)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("with_edges", [False, True])
def test_lanes_of_graphs_do_not_change_a_bit(with_edges):
    """Shapes that come and go, edge types that differ between graphs of one shape."""
    rng = np.random.default_rng(2)
    triangle, square = [(0, 1), (1, 2), (2, 0)], [(0, 1), (2, 1), (2, 3), (3, 0)]
    shapes = [(3, triangle) if rng.random() < 0.6 else (4, square) for _ in range(19)]
    edges = np.array([edge for _, pairs in shapes for edge in pairs], dtype=np.int32)
    offsets = np.cumsum([0, *(n for n, _ in shapes)])
    edge_offsets = np.cumsum([0, *(len(pairs) for _, pairs in shapes)])
    types = rng.integers(0, 2, size=len(edges)).astype(np.int32)
    shape = GraphShape(offsets, edges, edge_offsets, types=types)
    structure, node = Graph(3, 2), rng.normal(size=(offsets[-1], 3))
    transition = rng.normal(size=(len(edges), 3, 3) if with_edges else (2, 3, 3))
    cliques = "each" if with_edges else "sum"
    scores = Scores(node, transition=transition, shape=shape)
    whole = structure.marginals(scores, cliques=cliques)
    again = structure.marginals(scores, cliques=cliques, n_jobs=2)
    np.testing.assert_array_equal(whole.node, again.node)
    np.testing.assert_array_equal(whole.clique, again.clique)
    totals, best = structure.log_partition(scores), structure.argmax(scores)
    highest = structure.log_partition(scores, temperature=0.0)
    for i in range(19):
        nodes, pairs = slice(*offsets[i : i + 2]), slice(*edge_offsets[i : i + 2])
        own = transition[pairs] if with_edges else transition
        one = Scores(node[nodes], transition=own, shape=shape.take(np.array([i])))
        alone = structure.marginals(one, cliques=cliques)
        np.testing.assert_array_equal(whole.node[nodes], alone.node)
        np.testing.assert_array_equal(whole.clique[pairs if with_edges else slice(i, i + 1)], alone.clique)
        assert totals[i] == structure.log_partition(one)[0]
        assert highest[i] == structure.log_partition(one, temperature=0.0)[0]
        assert best[nodes].tolist() == structure.argmax(one).tolist()


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(3)
    cliques = [*((t,) for t in range(9)), *grid_edges(3, 3)]
    graph = FactorGraph([3] * 9, cliques)
    tables = random_tables(rng, graph.n_labels, cliques, 301, 2.0)
    for question in QUESTIONS:
        one, two = (getattr(graph, question)(tables, n_jobs=n) for n in (1, 2))
        for found, wanted in zip(one, two, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_what_is_forbidden_is_no_small_number():
    """Sums that are 0 for good need no logarithms; neither way gives what is impossible a share."""
    rng = np.random.default_rng(4)
    tables = random_tables(rng, [3, 3, 3], [(0, 1), (1, 2), (0, 2)], 6, 1.0)
    for table in tables:
        table[:, 0, 1:] = -np.inf  # nothing goes with label 0 but itself
        table[:, 1:, 0] = -np.inf
    tables[0][::2] *= 500.0
    graph = FactorGraph([3, 3, 3], [(0, 1), (1, 2), (0, 2)])
    for i in range(6):
        labellings, scores = enumerated([3, 3, 3], graph.cliques, tables, i)
        wanted = scores.max() + math.log(np.exp(scores - scores.max()).sum())
        np.testing.assert_allclose(graph.log_partition(tables)[i], wanted, **TIGHT)
        table = np.zeros((3, 3))
        np.add.at(table, tuple(labellings[:, :2].T), np.exp(scores - wanted))
        np.testing.assert_allclose(graph.marginals(tables)[0][i], table, **TIGHT)


def test_no_probability_is_denormal():
    """Numbers below the smallest normal one make every product with them a hundred times slower: they are 0."""
    least = np.finfo(np.float64).tiny
    graph = FactorGraph([2, 2], [(0,), (1,), (0, 1)])
    drop = np.linspace(0.0, 380.0, 40)
    node = np.stack([np.zeros(40), -drop], axis=1)
    for found in graph.marginals([node, node, np.zeros((2, 2))]):
        assert ((found == 0.0) | (found >= least)).all()
        assert (found == 0.0).any() or found.ndim == 2
    scores = np.stack([np.zeros(60), -np.linspace(690.0, 760.0, 60)], axis=1)
    for structure, shape in (
        (Graph(2), GraphShape(np.arange(61), np.zeros((0, 2), dtype=np.int32), np.zeros(61, dtype=np.int64))),
        (Tree(2), TreeShape(np.arange(61), np.full(60, -1, dtype=np.int32))),
    ):
        found = structure.marginals(Scores(scores, shape=shape)).node
        assert ((found == 0.0) | (found >= least)).all()


@pytest.mark.parametrize(("k", "length"), [(2, 30), (5, 25), (11, 9)])
def test_a_tree_is_a_chain(k, length):
    rng = np.random.default_rng(k)
    n = 6
    node, table = 3.0 * rng.normal(size=(n * length, k)), 2.0 * rng.normal(size=(k, k))
    offsets = np.arange(0, n * length + 1, length)
    up = np.tile(np.arange(-1, length - 1, dtype=np.int32), n)
    chain = Scores(node, offsets, table)
    tree = Scores(node, transition=table, shape=TreeShape(offsets, up))
    one, two = Chain(k).marginals(chain, cliques="sum"), Tree(k).marginals(tree, cliques="sum")
    np.testing.assert_allclose(Tree(k).log_partition(tree), Chain(k).log_partition(chain), **TIGHT)
    np.testing.assert_allclose(two.node, one.node, **TIGHT)
    np.testing.assert_allclose(two.clique, one.clique, **TIGHT)
    assert Tree(k).argmax(tree).tolist() == Chain(k).argmax(chain).tolist()


def second_order(rng, k, length, n):
    """Words of some letters, with scores of all windows of three."""
    node, window = 2.0 * rng.normal(size=(n, length, k)), rng.normal(size=(k, k, k))
    scores = Scores(node.reshape(-1, k), np.arange(0, n * length + 1, length), window)
    return node, window, Chain(k, 2), scores


@pytest.mark.parametrize("length", [3, 5, 8])
def test_words_with_windows_of_three_letters(length):
    """Factors over three nodes, 26 labels: the second-order chain of words."""
    node, window, chain, scores = second_order(np.random.default_rng(length), 26, length, 5)
    windows = [(t, t + 1, t + 2) for t in range(length - 2)]
    graph = FactorGraph([26] * length, [*((t,) for t in range(length)), *windows])
    tables = [*(node[:, t] for t in range(length)), *([window] * len(windows))]
    assert graph.width == 2
    np.testing.assert_allclose(graph.log_partition(tables), chain.log_partition(scores), rtol=1e-10)
    found = np.stack(graph.node_marginals(tables), axis=1).reshape(-1, 26)
    np.testing.assert_allclose(found, chain.marginals(scores).node, atol=1e-10)
    np.testing.assert_array_equal(graph.argmax(tables).ravel(), chain.argmax(scores))
    np.testing.assert_allclose(graph.maximum(tables), chain.score(scores, chain.argmax(scores)), rtol=1e-10)


def test_words_with_pairs_of_letters_as_nodes():
    """A node for each pair of neighbours, whose edges forbid what does not overlap."""
    k, length, n = 4, 6, 5
    node, window, chain, scores = second_order(np.random.default_rng(0), k, length, n)
    pairs = node[:, :-1, :, None] + np.zeros((n, length - 1, k, k))
    pairs[:, -1] += node[:, -1, None, :]
    overlap = np.full((k, k, k, k), -np.inf)
    overlap[:, np.arange(k), np.arange(k), :] = window  # labels (a, b) and (b, c)
    shape = GraphShape(
        np.arange(0, n * (length - 1) + 1, length - 1),
        np.tile(np.column_stack([np.arange(length - 2), np.arange(1, length - 1)]), (n, 1)).astype(np.int32),
        np.arange(0, n * (length - 2) + 1, length - 2),
    )
    given = Scores(pairs.reshape(-1, k * k), transition=overlap.reshape(k * k, k * k), shape=shape)
    graph = Graph(k * k)
    np.testing.assert_allclose(graph.log_partition(given), chain.log_partition(scores), rtol=1e-10)
    beliefs = graph.marginals(given).node.reshape(n, length - 1, k, k)
    letters = np.concatenate([beliefs.sum(axis=3), beliefs[:, -1:].sum(axis=2)], axis=1)
    np.testing.assert_allclose(letters.reshape(-1, k), chain.marginals(scores).node, atol=1e-10)
    best = graph.argmax(given).reshape(n, length - 1)
    word = np.concatenate([best // k, best[:, -1:] % k], axis=1)
    np.testing.assert_array_equal(word.ravel(), chain.argmax(scores))


def peak_bytes():
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("no /proc/self/status here to read peak memory from")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmPeak"))
    return 1024 * int(line.split()[1])


def test_too_wide_is_refused_before_a_table_is_allocated():
    edges = list(combinations(range(14), 2))
    shape = GraphShape(np.array([0, 14]), np.array(edges, dtype=np.int32), np.array([0, len(edges)]))
    scores = Scores(np.zeros((14, 4)), shape=shape)
    before = peak_bytes()
    with pytest.raises(ValueError, match=r"width 13 .* 268435456 numbers, more than max_table=4194304.* 4 labels"):
        FactorGraph([4] * 14, edges)
    with pytest.raises(ValueError, match=r"tables of 2147483648 bytes or more, beyond budget=1000000000\. .*raise"):
        FactorGraph([4] * 14, edges, max_table=2**40)
    with pytest.raises(ValueError, match=r"Example 0 needs tables of more than 1000000000 bytes .* 13 neighbours"):
        Graph(4, inference="exact").log_partition(scores)
    assert peak_bytes() - before < 2**28  # one table would have 2 GB


def test_all_tables_together_count():
    edges = grid_edges(4, 4)
    whole = FactorGraph([3] * 16, edges, budget=10**6)
    assert whole.width == 4
    with pytest.raises(ValueError, match=r"beyond budget=9000\. Its nodes have up to 3 labels"):
        FactorGraph([3] * 16, edges, budget=9000)
