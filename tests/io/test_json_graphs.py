"""Graphs as JSON Lines: what is written can be read, from every form that models take."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from dualfield import CRF
from dualfield.io import read_json_graphs, write_json_graphs


def round_trip(X, y):
    text = io.StringIO()
    write_json_graphs(X, y, text)
    return read_json_graphs(text.getvalue().split("\n"))


numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def graphs(draw):
    n = draw(st.integers(2, 4))
    form = draw(st.sampled_from(["numbers", "attributes"]))
    if form == "numbers":
        nodes = np.array(draw(st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=n, max_size=n)))
    else:
        nodes = draw(st.lists(st.lists(st.text(), max_size=2), min_size=n, max_size=n))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    edges = np.array(draw(st.lists(pairs, min_size=1, max_size=4)), dtype=np.int32)
    types = np.array(draw(st.lists(st.integers(0, 3), min_size=len(edges), max_size=len(edges))), dtype=np.int32)
    labels = draw(st.lists(st.one_of(st.text(), st.integers(-5, 5), st.booleans()), min_size=n, max_size=n))
    return (nodes, edges, types), labels


@given(graphs())
def test_what_is_written_is_read(example):
    graph, labels = example
    ((found,), (read,)) = round_trip([graph], [labels])
    assert read == labels
    assert [type(one) for one in read] == [type(one) for one in labels]
    assert np.array_equal(found[1], graph[1])
    assert np.array_equal(found[2], graph[2])
    assert np.array_equal(found[0], graph[0]) if isinstance(graph[0], np.ndarray) else found[0] == graph[0]


def test_other_forms_of_graphs():
    networkx = pytest.importorskip("networkx")
    net = networkx.DiGraph()
    net.add_node("p", features=[1.0])
    net.add_node("q", features=[2.0])
    net.add_edge("q", "p", features=[0.5], type=1)
    ((example,), labels) = round_trip([net], None)
    assert labels is None
    assert [np.asarray(part).tolist() for part in example] == [[[1.0], [2.0]], [[1, 0]], [1], [[0.5]]]
    image, truth = np.arange(4.0).reshape(2, 2, 1), np.array([[0, 1], [1, 0]])
    ((example,), (read,)) = round_trip([image], [truth])
    assert read == [0, 1, 1, 0]
    assert example[1].tolist() == [[0, 1], [2, 3], [0, 2], [1, 3]]
    sparse = (scipy.sparse.csr_array([[0.0, 1.0], [2.0, 0.0]]), scipy.sparse.csr_array([[0, 1], [0, 0]]))
    ((example,), _) = round_trip([sparse], None)
    assert example[0].tolist() == [[0.0, 1.0], [2.0, 0.0]]


def test_trees_have_parents():
    line = '{"nodes": [[1], [2], [3], [4]], "edges": [[2, 0], [0, 3]], "types": [1, 0], "labels": ["a", "b", "c", "d"]}'
    ((nodes, parents, types),), _ = read_json_graphs([line], structure="tree")
    assert nodes.tolist() == [[1.0], [2.0], [3.0], [4.0]]
    assert parents == [2, -1, -1, 0]
    assert types == [1, 0, 0, 0]
    with pytest.raises(ValueError, match='has "edge_features", which trees do not take'):
        read_json_graphs([line.replace('"types": [1, 0]', '"edge_features": [[1], [2]]')], structure="tree")
    with pytest.raises(ValueError, match="structure must be 'graph' or 'tree'"):
        read_json_graphs([line], structure="chain")


def test_what_cannot_be_written_is_refused():
    with pytest.raises(ValueError, match=r'y\[0\]: has 1 "labels"; expected 2'):
        round_trip([([["a"], ["b"]], [(0, 1)])], [["x"]])
    with pytest.raises(ValueError, match="y has labels of 2 graphs; X has 1"):
        round_trip([([["a"], ["b"]], [(0, 1)])], [["x", "y"], ["z"]])
    with pytest.raises(ValueError, match=r"X\[0\] cannot be written as JSON"):
        round_trip([(np.array([[np.inf]]), [])], [["x"]])


def test_an_interrupted_file_leaves_the_old_one(tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text("before")
    with pytest.raises(ValueError, match="cannot be written"):
        write_json_graphs([(np.array([[np.nan]]), [])], None, path)
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["graphs.jsonl"]


TYPED = {
    "nodes": {"word": [["the"], ["dog"]], "text": [[0.5, 1.0]]},
    "edges": {"word:text": [[0, 0], [1, 0]], "word:next to:word": [[0, 1]]},
    "edge_features": {"word:text": [["first"], ["last"]]},
    "labels": {"word": ["D", "N"], "text": ["pets"]},
}


def test_node_types_are_read_and_written():
    X, y = read_json_graphs([json.dumps(TYPED)] * 2)
    assert y == [TYPED["labels"]] * 2
    nodes, edges, features = X[0]
    assert nodes["word"] == [["the"], ["dog"]]
    np.testing.assert_array_equal(nodes["text"], [[0.5, 1.0]])
    assert edges == {("word", "text"): [[0, 0], [1, 0]], ("word", "next to", "word"): [[0, 1]]}
    assert features == {("word", "text"): [["first"], ["last"]]}
    out = io.StringIO()
    write_json_graphs(X, y, out)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [TYPED] * 2
    out = io.StringIO()
    write_json_graphs([one[:2] for one in X], None, out)
    plain, labels = read_json_graphs(out.getvalue().splitlines())
    assert labels is None
    model = CRF("graph").fit(plain, y)
    assert model.structure_.tables == ("next to", "word-text")
    assert model.predict(plain) == y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": [[0, 1]]}, r'line 1: "edges" is \[\[0, 1\]\]; expected an object by type'),
        (
            {"edges": {"word:page": []}},
            "edges 'word:page' must be called \"type:type\"",
        ),
        ({"edges": {"word:text": [[0, 1]]}}, r"edges 'word:text': edge 0 must be a pair of nodes below 2 and 1. Got"),
        ({"edges": {"word:text": 3}}, "edges 'word:text': must be a list of pairs of nodes. Got 3 instead"),
        ({"edge_features": {"word:text": [["one"]]}}, r'edges .word:text.: has 1 "edge_features"; expected 2'),
        ({"labels": {"word": ["D", "N"]}}, r'"labels" has the types \[.word.\]; expected \[.text., .word.\]'),
        ({"labels": {"word": ["D"], "text": ["pets"]}}, "nodes of type 'word': has 1 \"labels\"; expected 2"),
        ({"nodes": {"a:b": [["x"]]}}, "node types must be texts without ':'"),
        ({"nodes": {"word": [["x"], 3], "text": []}}, r"nodes of type 'word': \"nodes\"\[1\] must be"),
    ],
)
def test_errors_name_the_type(change, message):
    with pytest.raises(ValueError, match=message):
        read_json_graphs([json.dumps(TYPED | change)])


def test_types_that_cannot_be_written_are_refused():
    X, _ = read_json_graphs([json.dumps(TYPED)])
    with pytest.raises(ValueError, match=r"y\[0\] must be a dict with the labels of each node type"):
        write_json_graphs(X, [["D", "N", "pets"]], io.StringIO())
    with pytest.raises(ValueError, match=r"y\[0\] has .* labels by type; its graph has"):
        write_json_graphs(X, [{"word": ["D"], "text": ["pets"]}], io.StringIO())
