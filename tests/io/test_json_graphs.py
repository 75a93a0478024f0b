"""Graphs as JSON Lines: what is written can be read, from every form that models take."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

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
