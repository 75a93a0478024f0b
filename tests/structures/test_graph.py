"""Graphs: known special cases, scores of any size, what elimination costs, and what is refused."""

import numpy as np
import pytest

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.structures import Chain, FactorGraph, Graph, GraphShape, Scores, Tree, TreeShape


def shape_of(n_nodes, edges, types=None):
    pairs = np.array(edges, dtype=np.int32).reshape(-1, 2)
    types = None if types is None else np.array(types, dtype=np.int32)
    return GraphShape(np.array([0, n_nodes]), pairs, np.array([0, len(pairs)]), types=types)


def grid(height, width):
    at = np.arange(height * width).reshape(height, width)
    right = np.column_stack([at[:, :-1].ravel(), at[:, 1:].ravel()])
    down = np.column_stack([at[:-1].ravel(), at[1:].ravel()])
    return np.concatenate([right, down])


@pytest.mark.parametrize(
    ("n_nodes", "edges", "width"),
    [
        (4, [], 0),
        (5, [(0, 1), (1, 2), (3, 2), (3, 4)], 1),
        (5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], 2),
        (6, [(a, b) for a in range(6) for b in range(a)], 5),
        (16, grid(4, 4), 4),
    ],
)
def test_width(n_nodes, edges, width):
    assert Graph(2).width(shape_of(n_nodes, edges)) == width


def test_chains_and_trees_are_graphs():
    rng = np.random.default_rng(0)
    node, table = rng.normal(size=(7, 3)), rng.normal(size=(3, 3))
    chain = Scores(node, transition=table)
    graph = Scores(node, transition=table, shape=shape_of(7, [(t, t + 1) for t in range(6)]))
    up = np.array([-1, 0, 0, 1, 1, 2, -1], dtype=np.int32)
    tree = Scores(node, transition=table, shape=TreeShape(np.array([0, 7]), up))
    forest = Scores(node, transition=table, shape=shape_of(7, [(u, t) for t, u in enumerate(up) if u >= 0]))
    for structure, given, other in ((Chain(3), chain, graph), (Tree(3), tree, forest)):
        assert Graph(3).argmax(other).tolist() == structure.argmax(given).tolist()
        for question in ("log_partition", "entropy", "max_marginals"):
            wanted = getattr(structure, question)(given)
            np.testing.assert_allclose(getattr(Graph(3), question)(other), wanted, rtol=1e-12)
        both = structure.marginals(given, cliques="sum"), Graph(3).marginals(other, cliques="sum")
        np.testing.assert_allclose(both[1].node, both[0].node, atol=1e-13)
        np.testing.assert_allclose(both[1].clique, both[0].clique, atol=1e-13)


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
def test_a_grid_with_scores_of_any_size(size):
    """Products of exponentials vanish; logarithms do not."""
    rng = np.random.default_rng(1)
    edges, k = grid(4, 5), 3
    node, tables = size * rng.normal(size=(20, k)), size * rng.normal(size=(len(edges), k, k))
    scores = Scores(node, transition=tables, shape=shape_of(20, edges))
    factors = FactorGraph([k] * 20, [*((t,) for t in range(20)), *map(tuple, edges.tolist())])
    given = [row[None] for row in node] + [table[None] for table in tables]
    np.testing.assert_allclose(Graph(k).log_partition(scores), factors.log_partition(given), rtol=1e-12)
    assert Graph(k).argmax(scores).tolist() == factors.argmax(given)[0].tolist()
    found = Graph(k).marginals(scores, cliques="each")
    wanted = factors.marginals(given)
    np.testing.assert_allclose(found.node, np.concatenate(wanted[:20]), atol=1e-9)
    np.testing.assert_allclose(found.clique, np.concatenate(wanted[20:]), atol=1e-9)


def test_edges_have_a_direction():
    table = np.array([[0.0, 1.0], [0.0, 0.0]])
    for edge, labels in (((0, 1), [0, 1]), ((1, 0), [1, 0])):
        assert Graph(2).argmax(Scores(np.zeros((2, 2)), transition=table, shape=shape_of(2, [edge]))).tolist() == labels


def test_several_edges_between_two_nodes_add_up():
    table = np.array([[0.3, 0.0], [0.0, -0.1]])
    twice = Scores(np.zeros((2, 2)), transition=table, shape=shape_of(2, [(0, 1), (1, 0)]))
    once = Scores(np.zeros((2, 2)), transition=table + table.T, shape=shape_of(2, [(0, 1)]))
    np.testing.assert_allclose(Graph(2).log_partition(twice), Graph(2).log_partition(once), rtol=1e-14)


def test_one_label_and_a_large_clique():
    shape = shape_of(70, [(a, b) for a in range(70) for b in range(a)])
    scores = Scores(np.zeros((70, 1)), transition=np.array([[0.5]]), shape=shape)
    assert Graph(1).log_partition(scores).round(9) == [0.5 * 70 * 69 / 2]


def test_too_wide_a_graph_is_refused_before_memory_is_taken():
    clique = [(a, b) for a in range(40) for b in range(a)]
    with pytest.raises(ValueError, match=r"Example 0 needs tables of more than 1000000000 bytes .* 39 neighbours .* 4"):
        Graph(4, inference="exact").argmax(Scores(np.zeros((40, 4)), shape=shape_of(40, clique)))
    shape = shape_of(25, grid(5, 5))
    assert Graph(2, budget=10_000).width(shape) == 5
    with pytest.raises(ValueError, match=r"Use inference=.trw., which bounds, raise the budget, leave out edges"):
        Graph(2, budget=1_000).width(shape)
    with pytest.raises(ValueError, match=r"'budget' parameter of Graph must be an int in \[1, inf\)"):
        Graph(2, budget=0)


def test_what_is_no_graph_is_refused():
    for edges, message in (
        ([(0, 3)], r"Example 0 has the edge \(0, 3\), but its nodes are 0 to 2"),
        ([(1, 1)], r"Example 0 has the edge \(1, 1\), which joins a node with itself"),
    ):
        with pytest.raises(ValueError, match=message):
            Graph(2).argmax(Scores(np.zeros((3, 2)), shape=shape_of(3, edges)))
    with pytest.raises(ValueError, match="Graph needs the edges between the nodes"):
        Graph(2).argmax(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"types must be in \[0, 2\), the edge types of this graph. Got 2"):
        Graph(2, 2).argmax(Scores(np.zeros((2, 2)), shape=shape_of(2, [(0, 1)], [2])))
    with pytest.raises(ValueError, match="Got NaN or"):
        Graph(2).argmax(Scores(np.zeros((2, 2)), transition=np.full((2, 2), np.nan), shape=shape_of(2, [(0, 1)])))


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (np.zeros((2, 1)), r"X\[0\] must be a graph: a tuple \(nodes, edges\), "),
        (
            (np.zeros((2, 1)), [0, 1]),
            r"X\[0\]\[1\] must be pairs of nodes, of shape \(n_edges, 2\), or a square sparse matrix. Got shape \(2,\)",
        ),
        ((np.zeros((2, 1)), [(0.0, 1.0)]), r"X\[0\]\[1\] must be pairs of nodes"),
        ((np.zeros((2, 1)), [(0, 2)]), r"X\[0\]\[1\] has the edge \(0, 2\); its graph has nodes 0 to 1"),
        ((np.zeros((2, 1)), [(0, 1)], [0, 0]), r"X\[0\]\[2\] has 2 types; X\[0\]\[1\] has 1 edges"),
    ],
)
def test_input_that_is_no_graph(example, message):
    with pytest.raises(ValueError, match=message):
        CRF("graph").fit([example], [["a", "b"]])


def test_a_model_of_noisy_pictures(tmp_path):
    """Neighbouring pixels agree: a graph knows, single pixels do not; and a file remembers."""
    rng = np.random.default_rng(0)
    edges, types = grid(6, 6), np.repeat([0, 1], 30)  # to the right, and down

    def pictures(n):
        X, y = [], []
        for _ in range(n):
            truth = np.zeros((6, 6), dtype=int)
            truth[:, rng.integers(1, 5) :] = 1
            X.append((np.column_stack([truth.ravel() + rng.normal(size=36), np.ones(36)]), edges, types))
            y.append(truth.ravel().tolist())
        return X, y

    train, test = pictures(20), pictures(20)
    rows = [np.concatenate([x for x, *_ in X]) for X in (train[0], test[0])]
    labels = [np.concatenate([np.array(one) for one in y]) for y in (train[1], test[1])]
    for estimator in (CRF, StructuredSVM):
        model = estimator("graph").fit(*train)
        alone = estimator("single").fit(rows[0], labels[0])
        assert model.score(*test) > alone.score(rows[1], labels[1]) + 0.15
        model.save(tmp_path / "model")
        assert dualfield.load(tmp_path / "model").predict(test[0]) == model.predict(test[0])
