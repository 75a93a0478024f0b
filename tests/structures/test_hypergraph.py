"""Edges of any number of nodes: what users pass, what is refused, and chains of order 2 that are hypergraphs."""

import os

import numpy as np
import pytest

from dualfield import CRF, LatentCRF, StructuredSVM
from dualfield.datasets.benchmark_data import benchmark_file
from dualfield.structures import Chain, Graph, GraphShape, Hypergraph, HypergraphShape, Scores
from tests.reference.parts import Hypergraphs, draw_hypergraph

needs_data = pytest.mark.skipif("DUALFIELD_DATA" not in os.environ, reason="DUALFIELD_DATA does not name a folder")


def windows(n):
    """The windows of labels of a chain of order 2."""
    return [(0, 1)] * (n > 1) + [(t - 2, t - 1, t) for t in range(2, n)]


def same_answers(one, scores, two, others, tolerance=1e-10):
    """Compare all eight questions."""
    for temperature in (1.0, 0.3):
        left, right = (s.marginals(x, temperature=temperature) for s, x in ((one, scores), (two, others)))
        np.testing.assert_allclose(left.node, right.node, atol=tolerance)
        np.testing.assert_allclose(left.log_partition, right.log_partition, rtol=tolerance)
        entropy = (s.entropy(x, temperature=temperature) for s, x in ((one, scores), (two, others)))
        np.testing.assert_allclose(*entropy, atol=1e2 * tolerance)
    best = one.argmax(scores)
    np.testing.assert_array_equal(best, two.argmax(others))
    np.testing.assert_allclose(one.score(scores, best), two.score(others, best), rtol=tolerance)
    np.testing.assert_allclose(one.max_marginals(scores), two.max_marginals(others), rtol=tolerance)
    left, right = one.k_best(scores, 4), two.k_best(others, 4)
    np.testing.assert_allclose(left.scores, right.scores, rtol=tolerance)
    np.testing.assert_array_equal(left.labels, right.labels)
    draws = one.sample(scores, 2000, random_state=0)
    node = two.marginals(others).node
    for label in range(one.n_labels):
        spread = np.sqrt(node[:, label].clip(0, 1) * (1 - node[:, label].clip(0, 1)) / 2000)
        assert (np.abs((draws == label).mean(axis=0) - node[:, label]) <= 6 * spread + 2e-3).all()


@needs_data
def test_ocr_words_as_hypergraphs_are_chains_of_order_2():
    with np.load(benchmark_file("ocr")) as data:
        pixels, codes, of_word = (data[name][:600] for name in ("X", "y", "word_id"))
    cuts = np.flatnonzero(np.diff(of_word)) + 1  # behind the last cut a word may be cut off
    X, letters = (np.split(rows, cuts)[:-1] for rows in (pixels.astype(float), codes))
    letters = [word.tolist() for word in letters]
    chain = Chain(len({one for word in letters for one in word}), 2)
    settings = {"C": 0.1, "features": "all", "tol": 1e-5}
    graph = CRF(Hypergraph(), **settings).fit([(word, windows(len(word))) for word in X], letters)
    model = CRF(chain, **settings).fit(X, letters)
    assert graph.objective_ == pytest.approx(model.objective_, rel=2e-5)
    # The weights are in the same order: nodes, the windows of the first two labels, all other windows.
    shape = graph.decision_scores([(word, windows(len(word))) for word in X]).shape
    scores = model.decision_scores(X)
    others = Scores(scores.node, transition=scores.transition, shape=shape)
    same_answers(model.structure_, scores, graph.structure_, others)


def test_chains_of_order_2():
    rng = np.random.default_rng(0)
    lengths = [4, 1, 2, 6, 3]
    node, cliques = rng.normal(size=(16, 4)), rng.normal(size=16 + 64)
    shape = HypergraphShape.of_edges(lengths, [windows(n) for n in lengths])
    scores = Scores(node, np.cumsum([0, *lengths]), cliques)
    same_answers(Chain(4, 2), scores, Hypergraph(4, [2, 3]), Scores(node, transition=cliques, shape=shape))


def test_pairs_are_graphs():
    rng = np.random.default_rng(1)
    edges = rng.permuted(np.array([(a, b) for a in range(6) for b in range(a) if rng.random() < 0.6]), axis=1)
    node, rows = rng.normal(size=(6, 3)), rng.normal(size=(len(edges), 9))
    plain = GraphShape(np.array([0, 6]), edges.astype(np.int32), np.array([0, len(edges)]))
    joined = HypergraphShape.of_edges([6], [edges.tolist()])
    for transition in (rng.normal(size=(3, 3)), rows):
        one, two = Scores(node, transition=transition, shape=plain), Scores(node, transition=transition, shape=joined)
        same_answers(Graph(3), one, Hypergraph(3, [2]), two)
    assert Hypergraph(3, [2]).width(joined) == Graph(3).width(plain)


def test_edges_of_different_sizes_have_weights_of_their_own():
    """The optimum with features of edges is that of a model that has a column for each size."""
    rng = np.random.default_rng(2)
    shape = draw_hypergraph(rng, [4, 3, 5, 4], [(2, 0), (3, 0)])
    table = Hypergraphs(Hypergraph(2, [2, 3]), shape, 2)
    y = [rng.integers(2, size=n).tolist() for n in (4, 3, 5, 4)]
    X, split = [], []
    for i, n in enumerate((4, 3, 5, 4)):
        nodes, edges = table.input(i, rng.normal(size=(n, 2)))
        rows, sizes = rng.normal(size=(len(edges), 1)), np.array([len(edge) for edge in edges])
        X.append((nodes, edges, rows))
        split.append((nodes, edges, np.hstack([rows * (sizes == 2)[:, None], rows * (sizes == 3)[:, None]])))
    for estimator in (CRF, StructuredSVM):
        found = [estimator("hypergraph", features="all", tol=1e-6).fit(one, y) for one in (X, split)]
        assert found[0].objective_ == pytest.approx(found[1].objective_, rel=3e-6)
        assert found[0].predict(X) == found[1].predict(split)
    assert len(found[0].structure_.edge_names(["a", "b"])) == 4 + 8


def test_shapes_take_examples():
    shape = HypergraphShape.of_edges([3, 2, 4], [[(0, 1, 2)], [(1, 0)], [(3, 0, 1), (2, 3)]], [0, 1, 2, 3])
    part = shape.take(np.array([2, 0]))
    assert part.nodes.tolist() == [3, 0, 1, 2, 3, 0, 1, 2]
    assert (part.sizes.tolist(), part.types.tolist(), part.edge_offsets.tolist()) == ([3, 2, 3], [2, 3, 0], [0, 2, 3])


def test_tables_by_size_and_type():
    structure = Hypergraph(2, [3, (3, 4), 2])
    assert structure.tables == ((2, 0), (3, 0), (3, 4))
    assert structure.n_cliques == 4 + 8 + 8
    assert structure.edge_width == 4 + 8
    assert structure.clique_names(["a", "b"])[3:5] == [("b", "b"), ("type 0", "a", "a", "a")]
    old = Hypergraph(3, [2, 3])
    place = structure.matched_cliques(old, np.array([2, -1]))
    assert place[[0, 4]].tolist() == [8, 9 + 26]
    assert (np.delete(place, [0, 4]) == -1).all()
    assert Hypergraph(2, [3]) != Hypergraph(2, [3], budget=10**6)
    with pytest.raises(ValueError, match="Example 0 has an edge of 3 nodes and type 0; the tables of this hypergraph"):
        Hypergraph(2, [2]).argmax(Scores(np.zeros((3, 2)), shape=HypergraphShape.of_edges([3], [[(0, 1, 2)]])))


ROWS = np.zeros((3, 1))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([(ROWS, [(0, 1), (0,)])], r"X\[0\]\[1\]\[1\] must be the two or more nodes .* Got \(0,\)"),
        ([(ROWS, [(0, 1, 0)])], r"X\[0\]\[1\]\[0\] must be different nodes. Got \(0, 1, 0\)"),
        ([(ROWS, [(0, 1, 3)])], r"X\[0\]\[1\]\[0\] is the edge \(0, 1, 3\); its hypergraph has nodes 0 to 2"),
        ([(ROWS, [(0, 1)], [0, 1])], r"X\[0\]\[2\] has 2 types; X\[0\]\[1\] has 1 edges"),
        ([(ROWS, [(0, 1)], [0]), (ROWS, [(0, 1)])], r"X\[1\] has no edge types, as other graphs have"),
        ([ROWS], r"X\[0\] must be a hypergraph: a tuple \(nodes, edges\), .* Got ndarray instead"),
    ],
)
def test_errors_name_the_edge(X, message):
    with pytest.raises(ValueError, match=message):
        CRF("hypergraph").fit(X, [["a", "b", "a"]] * len(X))


def test_what_is_too_large_is_refused_before_it_is_there():
    X = [(np.zeros((12, 1)), [tuple(range(12))])]
    y = [[str(t) for t in range(12)]]
    with pytest.raises(ValueError, match=r"Edges of 12 nodes with 12 labels need a table of 12\^12 scores"):
        CRF("hypergraph").fit(X, y)
    ring = [(t, (t + 1) % 9, (t + 4) % 9) for t in range(9)]
    with pytest.raises(ValueError, match=r"needs tables of more than 20000 bytes .* Raise the budget, leave out edges"):
        CRF(Hypergraph(budget=20000)).fit([(np.zeros((9, 1)), ring)], [list("abcdabcda")])


def test_what_makes_no_sense_is_refused():
    X, y = [(ROWS, [(0, 1, 2)])] * 2, [["a", "b", "a"], ["b", "a", "b"]]
    with pytest.raises(ValueError, match="Hypergraph"):
        StructuredSVM("hypergraph", solver="flow_swap").fit(X, y)
    with pytest.raises(ValueError, match="pairwise needs pairs of labels; a Hypergraph has edges of any number"):
        CRF("hypergraph").fit(X, y).predict_proba(X, pairwise=True)
    with pytest.raises(ValueError, match="constraints must be None: a Hypergraph has none"):
        CRF("hypergraph", constraints=np.ones((2, 2), dtype=bool)).fit(X, y)
    with pytest.raises(ValueError, match="Sub-states need"):
        LatentCRF(CRF("hypergraph")).fit(X, y)
    with pytest.raises(ValueError, match="lengths must be None for hypergraphs"):
        CRF("hypergraph").fit(X, y, lengths=[3, 3])
