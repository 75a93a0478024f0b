"""Rows with several labels as graphs, against logistic regression, enumeration, and the tree of Chow and Liu."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from dualfield import CRF
from dualfield.data.records import Record
from dualfield.structures import LabelGraph


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    has = X @ rng.normal(size=(3, 3)) + rng.normal(size=(60, 3)) > 0
    return X, [tuple(itertools.compress(["x", "y", "z"], row)) for row in has]


def test_independent_labels_are_logistic_regressions(data):
    X, y = data
    graph = LabelGraph.learn(y, 3)
    model = CRF("graph", C=0.5, tol=1e-9).fit(graph.graphs(X), graph.indicators(y))
    found = np.array([one[:, 1] for one in model.predict_proba(graph.graphs(X))])
    whole, has = np.column_stack([X, np.ones(60)]), graph.indicators(y)
    for label in range(3):
        # With weights w for a label and -w against it, the penalty is |w|² and the margin 2 w: C is twice as large.
        other = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10).fit(whole, has[:, label])
        assert np.allclose(found[:, label], other.predict_proba(whole)[:, 1], atol=1e-4)


def test_probabilities_of_a_full_graph_by_enumeration(data):
    X, y = data
    graph = LabelGraph.learn(y, 3, "graph")
    assert graph.edges == [(0, 1), (0, 2), (1, 2)]
    model = CRF("graph").fit(graph.graphs(X), graph.indicators(y))
    weights = np.asarray(model.coef_).reshape(2, 4, 3)  # whether there, feature, label
    found = np.array([one[:, 1] for one in model.predict_proba(graph.graphs(X))])
    whole = np.column_stack([X, np.ones(60)])
    total, present = np.zeros(60), np.zeros((60, 3))
    for labels in itertools.product((0, 1), repeat=3):
        score = sum(whole @ weights[one, :, label] for label, one in enumerate(labels))
        score = score + sum(model.transitions_[e, labels[a], labels[b]] for e, (a, b) in enumerate(graph.edges))
        total += np.exp(score)
        present += np.exp(score)[:, None] * np.array(labels)
    assert np.allclose(found, present / total[:, None], atol=1e-9)


def test_the_tree_joins_labels_that_come_together():
    y = [("a", "b"), ("a", "b"), ("c",), ("c", "d"), (), ("a", "b", "d")]
    assert (0, 1) in LabelGraph.learn(y, 1, "tree").edges
    assert len(LabelGraph.learn(y, 1, "tree").edges) == 3


def test_sets_and_indicators_are_each_others_way_back(data):
    _, y = data
    graph = LabelGraph.learn(y, 3)
    assert graph.label_sets(graph.indicators(y)) == y
    assert graph.indicators([("new", "z")]).tolist() == [[0, 0, 1]]


def test_sparse_rows_are_as_dense_ones(data):
    X, y = data
    graph = LabelGraph.learn(y, 3, "tree")
    one, two = graph.graphs(X), graph.graphs(scipy.sparse.csr_matrix(X))
    assert np.array_equal(one.nodes.toarray(), two.nodes.toarray())
    assert [len(example[1]) for example in one] == [2] * 60


def test_record():
    graph = LabelGraph([3, "x"], 5, [(0, 1)])
    again = LabelGraph.from_record(Record(graph.record()))
    assert (again.names, again.n_features, again.edges) == ([3, "x"], 5, [(0, 1)])
    with pytest.raises(ValueError, match="edges must join two of the 2 names"):
        LabelGraph.from_record(Record(graph.record() | {"edges": np.array([[0, 2]])}))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([], 1), "names must be different labels"),
        ((["a", "a"], 1), "names must be different labels"),
        ((["a", "b"], 1, [(0, 0)]), r"edges must join two of the 2 names. Got \(0, 0\)"),
        ((["a"], 2**31), "more than 2147483647 columns"),
    ],
)
def test_wrong_parameters(arguments, said):
    with pytest.raises(ValueError, match=said):
        LabelGraph(*arguments)


def test_wrong_columns_and_structures(data):
    X, y = data
    with pytest.raises(ValueError, match="X has 2 columns; expected 3"):
        LabelGraph.learn(y, 3).graphs(X[:, :2])
    with pytest.raises(ValueError, match="'structure' parameter"):
        LabelGraph.learn(y, 3, "forest")
