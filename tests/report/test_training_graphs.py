"""Reports on trees, graphs and images: their words, their pictures, and no confidence where answers are bounds."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dualfield import CRF, StructuredSVM
from dualfield.metrics import token_log_loss
from dualfield.report import DevData, training_page
from dualfield.structures import Graph, LabelGraph

CONFIDENT = ("log-loss</dt>", "calibration error", "reliab", "probab", "confidence")


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 2, 5) for _ in range(20)]
    ring = [(at, (at + 1) % 5) for at in range(5)]
    X = [(np.eye(2)[one] + rng.normal(size=(5, 2)), ring) for one in labels]
    return X, [["xy"[code] for code in one] for one in labels]


def page(model, X, y, **more):
    return training_page(model, title="Graphs", dev=DevData(X, y, **more))


def card(document, name):
    return re.search(rf"<dt>{name}</dt><dd>([^<]+)<", document)[1]


def test_exact_graphs_have_scores_calibration_and_pictures(graphs):
    X, y = graphs
    model = CRF("graph").fit(X[:10], y[:10])
    document = page(model, X[10:], y[10:])
    assert card(document, "accuracy") == f"{100 * model.score(X[10:], y[10:]):.2f} %"
    right = sum(one == other for one, other in zip(model.predict(X[10:]), y[10:], strict=True))
    assert card(document, "graphs right") == f"{10 * right:.2f} %"
    loss = token_log_loss(y[10:], model.predict_proba(X[10:]), model.classes_)
    assert card(document, "log-loss") == f"{loss:.4f}"
    assert "10 graphs with 50 nodes" in document
    assert "<h2>Graphs</h2>" in document
    assert "<title>node 0: " in document
    assert "label that an edge comes from" in document
    assert not re.search(r"\b[Ss]entence|\b[Tt]oken", document.partition("<body>")[2])


def test_a_relaxation_shows_no_confidence(graphs):
    X, y = graphs
    model = CRF(Graph(inference="trw")).fit(X[:10], y[:10])
    document = page(model, X[10:], y[10:])
    said = re.search(r"<p>10 of 10 graphs are too wide for exact answers.*?</p>", document)[0]
    rest = document.replace(said, "")
    rest = re.sub(r"Too wide for probabilities;[^<]*", "", rest)
    for word in CONFIDENT:
        assert word not in rest
    assert "The objective of the relaxed problem, an upper bound of the exact one, is" in document
    assert "<title>node 0: " in document


def test_one_wide_graph_takes_confidence_from_all(graphs):
    """Beside graphs that are narrow enough: a figure for some of them would not be that of the data."""
    X, y = graphs
    model = CRF(Graph(budget=100)).fit(X[:10], y[:10])
    document = page(model, [X[10], (np.eye(2)[:1], [])], [y[10], ["x"]])
    assert "1 of 2 graphs are too wide" in document
    assert "<dt>log-loss</dt>" not in document


def test_trees_and_margins(graphs):
    X, y = graphs
    trees = [(nodes, [-1, 0, 0, 1, 1]) for nodes, _ in X]
    model = StructuredSVM("tree").fit(trees[:10], y[:10])
    document = page(model, trees[10:], y[10:])
    assert "10 trees with 50 nodes" in document
    assert "The model has margins and no probabilities" in document
    model.calibrate(trees[10:], y[10:])
    assert "<dt>log-loss</dt>" in page(model, trees[10:], y[10:])


def test_words_of_nodes_are_written():
    X = [([["ate"], ["dog"]], [-1, 0]), ([["sleeps"], ["cat"]], [-1, 0])]
    y = [["verb", "noun"]] * 2
    model = CRF("tree").fit(X, y)
    assert ">sleeps</text>" in page(model, X, y)
    assert ">two</text>" in page(model, X, y, tokens=[["one", "two"], ["three", "four"]])
    with pytest.raises(ValueError, match=r"tokens\[0\] has 1 entries"):
        page(model, X, y, tokens=[["one"], ["three", "four"]])


def test_images():
    rng = np.random.default_rng(0)
    truth = np.tile([0, 0, 1], (8, 3, 1))
    X = np.stack([truth + rng.normal(size=truth.shape), np.ones(truth.shape)], axis=-1)
    model = CRF("graph").fit(list(X[:4]), list(truth[:4]))
    document = page(model, list(X[4:]), list(truth[4:]))
    assert "4 images with 36 pixels" in document
    assert card(document, "accuracy") == f"{100 * model.score(list(X[4:]), list(truth[4:])):.2f} %"
    assert "<h2>Images</h2>" in document
    assert "<h4>Type 1</h4>" in document  # edges downwards


def test_label_sets_name_their_labels():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 2))
    y = [tuple(name for name, value in zip(("red", "round"), row, strict=True) if value > 0) for row in rows]
    graph = LabelGraph.learn(y, 2, "tree")
    X, indicators = list(graph.graphs(rows)), graph.indicators(y)
    model = CRF("graph").fit(X, indicators)
    model.label_graph_ = graph
    document = page(model, X, indicators)
    assert "30 examples with 60 labels" in document
    assert ">round</text>" in document
    assert "<h2>Model</h2>" not in document
