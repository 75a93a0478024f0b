"""Pictures of graphs: what they hold, where nodes stand, and what is drawn of them in both forms."""

from __future__ import annotations

import importlib.util
import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest

from dualfield import CRF, StructuredSVM
from dualfield.plotting import GraphDisplay, MarginalsDisplay, TransitionDisplay
from dualfield.plotting.graph_layout import layout
from dualfield.structures import Graph

ROOT = Path(__file__).parents[2]
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 2, 4) for _ in range(12)]
    X = [(np.eye(2)[one] + rng.normal(scale=0.7, size=(4, 2)), RING) for one in labels]
    return X, [["xy"[code] for code in one] for one in labels]


@pytest.fixture(scope="module")
def model(data):
    return CRF("graph").fit(*data)


@pytest.fixture(scope="module")
def wide_model(data):
    return CRF(Graph(inference="trw")).fit(*data)


def parts(picture, kind):
    """Return the elements of a kind in a picture, which must be well-formed."""
    return list(ElementTree.fromstring(picture).iter(kind))


def test_it_holds_what_the_model_says(model, data):
    X, y = data
    display = GraphDisplay.from_estimator(model, X[0], y[0])
    (marginals,) = model.predict_proba(X[:1])
    assert display.labels == model.predict(X[:1])[0]
    codes = np.searchsorted(model.classes_, display.labels)
    assert np.array_equal(display.probabilities, marginals[np.arange(4), codes])
    assert display.wrong == [guess != true for guess, true in zip(display.labels, y[0], strict=True)]
    assert display.edges.tolist() == [list(edge) for edge in RING]
    assert display.to_frame()["probability"].tolist() == display.probabilities.tolist()
    assert repr(display) == f"GraphDisplay(4 nodes, 4 edges, {sum(display.wrong)} wrong)"


def test_a_relaxation_has_no_probabilities_and_says_so(wide_model, data):
    X, y = data
    for example, truth in zip(*data, strict=True):
        display = GraphDisplay.from_estimator(wide_model, example, truth)
        assert display.probabilities is None
        (bounds,) = [wide_model.predict([example], return_bound=True)[1]]
        known = "no labelling has a higher score" if bounds.exact[0] else "a better labelling may score"
        assert known in display.note
        assert "probability" not in display.html()
        assert display.note in display.html()
    with pytest.raises(ValueError, match="predict_proba needs exact answers"):
        MarginalsDisplay.from_estimator(wide_model, X[0], y[0])


def test_margins_have_no_probabilities(data):
    X, y = data
    svm = StructuredSVM("graph").fit(X, y)
    assert GraphDisplay.from_estimator(svm, X[0]).probabilities is None
    svm.calibrate(X, y)
    assert GraphDisplay.from_estimator(svm, X[0]).probabilities.shape == (4,)


def test_nodes_edges_errors_and_tips_are_drawn(model, data):
    display = GraphDisplay(["x", "y", "y", "x"], RING, [0.9, 0.6, 0.8, 0.51], ["x", "y", "x", "x"])
    picture = display.html()
    rings = [one.get("style") for one in parts(picture, "circle") if "stroke:var(--wrong)" in one.get("style")]
    assert len(rings) == 1
    assert len(parts(picture, "polygon")) == 4  # a head for each edge
    assert "<title>node 2: y with probability 0.800, true: x</title>" in picture
    assert "<title>edge 3 to 0</title>" in picture
    assert ">true: x</text>" in picture
    assert not re.search(r"#[0-9a-f]{6}", picture)  # colours are those of the page
    radii = sorted({float(one.get("r")) for one in parts(picture, "circle")} - {5.0})
    assert len(radii) == 4  # as large as probable


def test_arrows_end_at_their_nodes():
    display = GraphDisplay(["x", "y"], [(1, 0)], positions=[(0.0, 0.0), (1.0, 0.0)])
    ((begin, end),) = [
        [tuple(map(float, point.split())) for point in one.get("d")[1:].split(" L")]
        for one in parts(display.html(), "path")
    ]
    assert begin[0] > end[0]
    assert begin[1] == end[1]


def test_two_edges_between_two_nodes_do_not_hide_each_other():
    picture = GraphDisplay(["x", "y"], [(0, 1), (1, 0), (0, 1)]).html()
    lines = {one.get("d") for one in parts(picture, "path")}
    assert len(lines) == 3


def test_types_of_edges_have_their_dashes():
    picture = GraphDisplay(list("xyz"), [(0, 1), (1, 2)], types=[0, 1]).html()
    assert [("dasharray" in one.get("style")) for one in parts(picture, "path")] == [False, True]
    assert "<title>edge 1 to 2, type 1</title>" in picture


def test_images_are_drawn_beside_the_truth():
    labels, truth = np.array([[0, 1], [1, 1]]), np.array([[0, 1], [0, 1]])
    display = GraphDisplay(labels, probabilities=np.array([[0.9, 0.5], [0.6, 1.0]]), truth=truth)
    assert display.wrong == [False, False, True, False]
    picture = display.html()
    assert len(parts(picture, "rect")) == 8
    assert len(parts(picture, "path")) == 2  # one cross
    assert "<title>row 1, column 0: 1 with probability 0.600, true: 0</title>" in picture
    large = GraphDisplay(np.repeat(np.arange(2), 50).reshape(2, 50).repeat(20, axis=0))
    assert len(parts(large.html(), "rect")) == 40  # rows of one colour are one


def test_an_image_from_a_model():
    rng = np.random.default_rng(0)
    truth = np.tile([0, 0, 1], (6, 3, 1))
    X = np.stack([truth + rng.normal(scale=0.3, size=truth.shape), np.ones(truth.shape)], axis=-1)
    model = CRF("graph").fit(list(X), list(truth))
    display = GraphDisplay.from_estimator(model, X[0], truth[0])
    assert display.grid == (3, 3)
    assert display.probabilities.shape == (9,)
    with pytest.raises(ValueError, match="GraphDisplay shows images"):
        MarginalsDisplay.from_estimator(model, X[0])


def test_matplotlib_draws_the_same_texts(model, data):
    display = GraphDisplay.from_estimator(model, data[0][0], data[1][0], names=["p", "q", "r", "s"]).plot()
    drawn = [text.get_text() for text in display.ax_.texts]
    written = [one.text for one in parts(display.html(), "text")]
    assert drawn == written
    assert {"p", "q", "r", "s"} < set(drawn)
    plt.close(display.figure_)
    _, ax = plt.subplots()
    assert display.plot(ax).ax_ is ax
    plt.close(ax.figure)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 60])
def test_nodes_of_a_picture_are_apart(n):
    rng = np.random.default_rng(n)
    edges = [(int(rng.integers(at)), at) for at in range(1, n)] + [(0, n - 1)] * (n > 2)
    circles = parts(GraphDisplay(["x"] * n, edges).html(), "circle")[:-2:2]  # without paper and legend
    places = [(float(one.get("cx")), float(one.get("cy")), float(one.get("r"))) for one in circles]
    assert len(places) == n
    for (x0, y0, r0), (x1, y1, r1) in itertools.combinations(places, 2):
        assert np.hypot(x0 - x1, y0 - y1) >= r0 + r1 - 0.5


def test_trees_are_layered():
    edges = np.array([[0, 1], [0, 2], [2, 3], [2, 4], [5, 6]], dtype=np.int32)
    places = layout(7, edges)
    assert places[:, 1].tolist() == [0.0, 1.0, 1.0, 2.0, 2.0, 0.0, 1.0]
    assert places[2, 0] == (places[3, 0] + places[4, 0]) / 2
    assert len({tuple(place) for place in places.tolist()}) == 7


def test_distances_are_near_those_of_the_graph():
    """A ring of eight: neighbours are as far as each other, and opposite nodes the farthest."""
    edges = np.array([[at, (at + 1) % 8] for at in range(8)], dtype=np.int32)
    places = layout(8, edges)
    distance = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    sides = [distance[at, (at + 1) % 8] for at in range(8)]
    assert np.allclose(sides, sides[0], rtol=1e-3)
    assert (distance.argmax(axis=1) == (np.arange(8) + 4) % 8).all()


def test_parts_without_a_connection_do_not_meet():
    places = layout(6, np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.int32))
    assert np.hypot(*(places[:3].mean(axis=0) - places[3:].mean(axis=0))) > 1.0


def test_labels_keep_their_colour():
    picture = GraphDisplay(["b"], classes=["a", "b"]).html()
    assert "var(--hue-1)" in picture
    assert GraphDisplay(["b"]).classes == ["b"]
    assert GraphDisplay([3, True, "x"]).html()  # labels of several types


def test_markup_is_escaped():
    assert "<script>" not in GraphDisplay(["<script>"], names=["<script>"]).html()


def test_an_empty_graph():
    assert "<svg" in GraphDisplay([]).html()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edges": [(0, 2)]}, r"edges\[0\] must join two of the nodes from 0 to 1. Got \(0, 2\)"),
        ({"edges": [(1, 1)]}, r"edges\[0\] must join two of the nodes"),
        ({"truth": ["x"]}, "truth has 1 entries; expected 2, one for each node"),
        ({"probabilities": [0.5]}, "probabilities has 1 entries; expected 2"),
        ({"positions": [(0, 0, 0), (1, 1, 1)]}, r"positions must have shape \(2, 2\). Got \(2, 3\)"),
        ({"edges": [(0, 1)], "types": [0, 1]}, r"types has shape \(2,\); expected \(1,\)"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        GraphDisplay(["x", "y"], **arguments)


def test_transitions_of_edges(model):
    display = TransitionDisplay.from_estimator(model)
    assert np.array_equal(display.weights, model.transitions_)
    assert "label that an edge comes from" in display.html()
    X = [(np.eye(2), [(0, 1), (1, 0)], [0, 1])] * 3
    typed = CRF("graph").fit(X, [["x", "y"]] * 3)
    assert np.array_equal(TransitionDisplay.from_estimator(typed, edge_type=1).weights, typed.transitions_[1])
    with pytest.raises(ValueError, match=r"edge_type must be an int in \[0, 2\)"):
        TransitionDisplay.from_estimator(typed, edge_type=2)
    with pytest.raises(ValueError, match="needs pairs of labels"):
        TransitionDisplay.from_estimator(CRF("single").fit(np.eye(2), ["x", "y"]))


def test_the_picture_of_the_guide_is_what_the_model_says():
    spec = importlib.util.spec_from_file_location("labelled_tree", ROOT / "docs" / "labelled_tree.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.PICTURE.read_text(encoding="utf-8") == made.display().svg(), "run: python docs/labelled_tree.py"
