"""Graphs whose nodes have types: bounds, label sets, and the forms in which they come."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

from dualfield import CRF
from dualfield.structures import FlatGraphs, Graph, LabelSets, Scores
from tests.reference.parts import TypedGraphs, draw_graph

SETS = np.array([[True, True, False], [False, True, True]])


def drawn(seed, scale=1.0, inference="trw"):
    """A typed graph with random scores, and the scores of all its labellings."""
    rng = np.random.default_rng(seed)
    shape = draw_graph(rng, [5], 2, 2)
    table = TypedGraphs(Graph(3, 2, label_sets=SETS, inference=inference), shape, 3)
    node, cliques = rng.normal(0, scale, (5, 3)), rng.normal(0, scale, 18)
    every = {
        labels: sum(node[t, k] for t, k in enumerate(labels)) + sum(cliques[part] for part in table.shared(0, labels))
        for labels in table.labellings(0)
    }
    return table.structure, Scores(node, None, cliques, shape=shape), every


@pytest.mark.parametrize("scale", [0.5, 3.0, 100.0])
def test_bounds_leave_out_forbidden_labels(scale):
    for seed in range(12):
        structure, scores, every = drawn(seed, scale)
        kinds, edges = scores.shape.node_types, scores.shape.edges
        exact = np.logaddexp.reduce(list(every.values()))
        answer = structure.marginals(scores, cliques="each")
        assert answer.log_partition[0] >= exact - 1e-9 * scale
        assert (answer.node[~SETS[kinds]] == 0.0).all()
        np.testing.assert_allclose(answer.node.sum(axis=1), 1.0)
        for (a, b), pair in zip(edges.tolist(), answer.clique.reshape(-1, 3, 3), strict=True):
            np.testing.assert_allclose(pair.sum(axis=1), answer.node[a], atol=1e-12)
            np.testing.assert_allclose(pair.sum(axis=0), answer.node[b], atol=1e-12)
        found = structure.bounded_argmax(scores)
        assert every[tuple(found.labels.tolist())] == pytest.approx(found.bounds.score[0])
        assert found.bounds.bound[0] >= max(every.values()) - 1e-9 * scale


def test_what_forbidden_labels_score_does_not_matter():
    for inference in ("exact", "trw"):
        structure, scores, _ = drawn(0, inference=inference)
        other = scores.node.copy()
        other[~SETS[scores.shape.node_types]] = 1e6
        again = Scores(other, None, scores.transition, shape=scores.shape)
        for temperature in (0.0, 1.0):
            one, two = (structure.marginals(one, temperature=temperature) for one in (scores, again))
            np.testing.assert_array_equal(one.node, two.node)
            np.testing.assert_array_equal(one.log_partition, two.log_partition)


def test_label_sets():
    sets = LabelSets.of({"word": ["noun", "verb"], "text": ("noun",)})
    assert sets.by_type == {"text": ["noun"], "word": ["noun", "verb"]}
    assert sets == LabelSets.of(sets.by_type)
    assert sets != LabelSets.of({"word": ["noun", "verb"], "text": ["verb"]})
    assert sets.for_labels(["adverb", "noun"]).by_type == {"text": ["noun"], "word": ["noun"]}
    assert sets.over_states(np.array([0, 1, 1])).flags.tolist() == [[True, False, False], [True, True, True]]
    graph = Graph(label_sets={"word": ["noun"], "text": ["noun"]})
    assert repr(graph) == "Graph(n_labels=0, n_types=0, label_sets={'text': ['noun'], 'word': ['noun']})"
    assert graph != Graph()
    assert not Graph(3, label_sets=SETS).is_free
    assert Graph(3, label_sets=np.ones((2, 3), dtype=bool)).is_free


@pytest.mark.parametrize(
    ("n_labels", "given", "message"),
    [
        (None, SETS, "must be a dict from node types to lists of labels"),
        (3, SETS.astype(int), r"a boolean array of shape \(n_node_types, n_labels\)"),
        (2, SETS, "must have 2 labels, as many as n_labels says. Got 3"),
        (2, np.array([[True, False], [False, False]]), "has no label for nodes of type 1"),
        (None, {"word": "noun"}, "must have a list of labels for each node type. Got 'noun' for 'word'"),
        (None, {"word": ["noun"], "text": []}, "has no label for nodes of type 'text'"),
        (None, {"word": ["noun", 3]}, r"label_sets\[1\] must be of type str"),
    ],
)
def test_label_sets_that_are_none(n_labels, given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Graph(n_labels, label_sets=given)


def test_shapes_without_types_are_refused():
    structure, scores, _ = drawn(0)
    shape = draw_graph(np.random.default_rng(0), [5], 2)
    with pytest.raises(ValueError, match="pass a GraphShape with node_types"):
        structure.argmax(Scores(scores.node, None, scores.transition, shape=shape))
    shape = draw_graph(np.random.default_rng(0), [5], 2, 4)
    with pytest.raises(ValueError, match=r"node_types must be in \[0, 2\), the node types of label_sets"):
        structure.argmax(Scores(scores.node, None, scores.transition, shape=shape))


NODES = {"word": [["the"], ["dog"]], "text": np.array([[0.5, 1.0]])}
EDGES = {("word", "text"): [(0, 0), (1, 0)], ("word", "next", "word"): [(0, 1)]}
LABELS = {"word": ["D", "N"], "text": ["pets"]}


def opened(*example, graph=None):
    found = (Graph() if graph is None else graph).open([example])
    batch = found.nodes.build()
    return batch, batch.connect(found.connect).shape, found.edges


def test_nodes_by_type():
    batch, shape, _ = opened(NODES, EDGES)
    assert list(batch.vocabulary) == ["text:x[0]", "text:x[1]", "word:the", "word:dog"]
    np.testing.assert_array_equal(batch.to_csr().toarray(), [[0.5, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]])
    assert shape.edges.tolist() == [[1, 0], [2, 0], [1, 2]]
    assert shape.names.tables == ("next", "word-text")
    assert shape.types.tolist() == [1, 1, 0]
    assert shape.node_types.tolist() == [0, 1, 1]
    assert shape.flat_labels([LABELS]) == [["pets", "D", "N"]]
    assert shape.arranged([["pets", "D", "N"]]) == [LABELS]
    assert [shape.place(node) for node in range(3)] == ["[0]['text'][0]", "[0]['word'][0]", "[0]['word'][1]"]
    part = shape.take(np.array([0, 0]))
    assert part.node_types.tolist() == [0, 1, 1, 0, 1, 1]
    assert part.place(5) == "[1]['word'][1]"


def test_edge_features_by_type():
    features = {("word", "text"): np.array([[3.0], [4.0]]), ("word", "next", "word"): [{"gap": 2.0}]}
    batch = opened(NODES, EDGES, features)[2].build()
    assert list(batch.vocabulary) == ["next:gap", "word-text:x[0]"]
    np.testing.assert_array_equal(batch.to_csr().toarray(), [[0, 3.0], [0, 4.0], [2.0, 0]])
    del features["word", "next", "word"]  # whose edges then have none
    np.testing.assert_array_equal(opened(NODES, EDGES, features)[2].build().to_csr().toarray(), [[3.0], [4.0], [0.0]])
    same = {("word", "a", "text"): [(0, 0)], ("word", "a", "word"): [(0, 1)]}
    for one, two in (([[1.0]], np.array([[2.0]])), (scipy.sparse.eye(1), scipy.sparse.eye(1)), ([["x"]], [["y"]])):
        batch = opened(NODES, same, {("word", "a", "text"): one, ("word", "a", "word"): two})[2].build()
        assert batch.n_nodes == 2


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ((NODES, [(0, 1)]), r"X\[0\] must be \(nodes, edges\) .* with dicts of edges"),
        ((NODES, {"word": [(0, 1)]}), r"X\[0\]\[1\] must have keys \(type, type\) or .* Got 'word' instead"),
        ((NODES, {("word", "page"): [(0, 0)]}), r"of the node types \['text', 'word'\]. Got \('word', 'page'\)"),
        (
            (NODES, {("word", "text"): [(0, 1)]}),
            r"has the edge \(0, 1\); its graph has 2 nodes of type 'word' and 1 of",
        ),
        ((NODES, {("word", "text"): [0, 1]}), r"X\[0\]\[1\]\[\('word', 'text'\)\] must be pairs of nodes"),
        ((NODES, EDGES, np.ones((3, 1))), r"X\[0\]\[2\] must be a dict of edge features"),
        ((NODES, EDGES, {("word", "text"): np.ones((3, 1))}), r"has 3 rows of edge features; .* has 2 edges"),
        (({"a:b": [["x"]]}, {}), r"Node types must be int, or str without ':'. Got 'a:b'"),
        (({"a": [["x"]], "a-a": [["x"]]}, {}), r"Pairs of node types must have different names, type-type. Got"),
    ],
)
def test_what_is_no_typed_graph(example, message):
    with pytest.raises(ValueError, match=message):
        opened(*example)


def test_all_graphs_have_types_or_none():
    with pytest.raises(ValueError, match=r"X\[1\] has no node types, as other graphs have"):
        Graph().open([(NODES, EDGES), ([["a"]], [])])


def test_types_of_networks_and_flat_graphs():
    network = nx.DiGraph()
    network.add_node("first", features={"the": 1.0}, type="word")
    network.add_node("page", features=[0.5, 1.0], type="text")
    network.add_node("second", features={"dog": 1.0}, type="word")
    network.add_edges_from([("first", "page"), ("first", "second"), ("second", "page")])
    found = Graph().open([network])
    batch = found.nodes.build()
    shape = batch.connect(found.connect).shape
    np.testing.assert_array_equal(batch.to_csr().toarray(), [[0, 0, 1.0, 0], [0.5, 1.0, 0, 0], [0, 0, 0, 1.0]])
    assert shape.names.tables == ("word-text", "word-word")
    assert shape.types.tolist() == [0, 1, 0]
    assert shape.flat_labels([["D", "pets", "N"]]) == [["D", "pets", "N"]]
    assert shape.place(1) == "[0][1]"
    flat = FlatGraphs(
        nodes={"word": [["the"], ["dog"]], "text": np.array([[0.5, 1.0]])},
        lengths=[3],
        edges=[(0, 1), (0, 2), (2, 1)],
        edge_lengths=[3],
        node_types=["word", "text", "word"],
    )
    found = Graph().open(flat)
    again = found.nodes.build()
    np.testing.assert_array_equal(again.to_csr().toarray(), batch.to_csr().toarray())
    assert again.connect(found.connect).shape.types.tolist() == [0, 1, 0]
    del network.nodes["page"]["type"]
    with pytest.raises(ValueError, match=r"X\[0\]: node 'page' has no attribute 'type', as other nodes have"):
        Graph().open([network])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_types": [0]}, r"node_types of FlatGraphs must have shape \(2,\), a type for each node. Got \(1,\)"),
        ({"nodes": {0: np.ones((1, 2))}}, "nodes of FlatGraphs has no rows for nodes of type 1"),
        (
            {"nodes": {0: np.ones((2, 2)), 1: np.ones((1, 2))}},
            "'lengths' must sum to the number of rows of 0 nodes, 2. Got 1",
        ),
    ],
)
def test_flat_graphs_that_do_not_fit(changes, message):
    given = {"nodes": np.eye(2), "lengths": [2], "edges": [(0, 1)], "edge_lengths": [1], "node_types": [0, 1]}
    with pytest.raises(ValueError, match=message):
        CRF("graph").fit(FlatGraphs(**{**given, **changes}), [["a", "b"]])


def test_numbers_are_types_too():
    X = FlatGraphs(nodes=np.eye(2), lengths=[2], edges=[(0, 1)], edge_lengths=[1], node_types=[10, 2])
    model = CRF("graph").fit(X, [["a", "b"]])
    assert model.structure_.label_sets.by_type == {2: ["b"], 10: ["a"]}
    assert model.structure_.tables == ("10-2",)
    assert list(model.vocabulary_) == ["10:x[0]", "10:x[1]", "2:x[0]", "2:x[1]"]
    assert model.predict(X) == [["a", "b"]]
