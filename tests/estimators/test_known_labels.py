"""Predictions given what is known of the labels: the best of all labellings that agree, on every structure."""

from itertools import product

import numpy as np
import pytest

from dualfield import CRF, DiscriminativeHMM, StructuredSVM
from dualfield.structures import Graph, Scores
from tests.structures.test_graph import grid

LABELS = ["a", "b", "c"]
CIRCLE = [(0, 1), (1, 2), (2, 3), (3, 0)]


def example(kind, rows):
    n = len(rows)
    if kind == "tree":
        return rows, [-1, *((np.arange(1, n) - 1) // 2).tolist()]
    return (rows, [(a, b) for a, b in CIRCLE if max(a, b) < n]) if kind in ("graph", "trw") else rows


def structure(kind):
    return Graph(inference="trw") if kind == "trw" else kind


def fitted(kind, seed=0, estimator=CRF):
    rng = np.random.default_rng(seed)
    sizes = [4, 3, 4, 2, 4, 4]
    X = [example(kind, rng.normal(size=(n, 2))) for n in sizes]
    y = [rng.choice(LABELS, size=n).tolist() for n in sizes]
    y[0][:3] = LABELS
    return estimator(structure(kind)).fit(X, y), X


KNOWN = [
    ["b", None, None, {"a", "c"}],
    [None, None, {"b"}],
    [None] * 4,
    ["c", "a"],
    [{"a", "b"}, {"b", "c"}, None, "a"],
    ["a", "b", "c", "a"],
]


def agree(known):
    """All labellings that agree with what is known."""
    choices = [LABELS if one is None else sorted(one) if isinstance(one, set) else [one] for one in known]
    return [list(labels) for labels in product(*choices)]


@pytest.mark.parametrize("kind", ["chain", "tree", "graph"])
def test_best_labellings_and_probabilities_given_what_is_known(kind):
    model, X = fitted(kind)
    found, chances = model.predict(X, known=KNOWN), model.predict_proba(X, known=KNOWN)
    lists, draws = model.k_best(X, 5, known=KNOWN), model.sample(X, 20, random_state=0, known=KNOWN)
    _, bounds = model.predict(X, known=KNOWN, return_bound=True)
    assert bounds.exact.all()
    for i, known in enumerate(KNOWN):
        every = agree(known)
        scores = model.score_sequences([X[i]] * len(every), every)
        assert found[i] == every[int(scores.argmax())]
        p = np.exp(scores - np.logaddexp.reduce(scores))
        rows = np.zeros((len(known), 3))
        for share, labels in zip(p, every, strict=True):
            rows[np.arange(len(known)), [LABELS.index(label) for label in labels]] += share
        np.testing.assert_allclose(chances[i], rows, atol=1e-9)
        np.testing.assert_allclose([share for _, share in lists[i]], np.sort(p)[::-1][:5], atol=1e-9)
        assert all(labels in every for labels in draws[i])
    assert model.predict(X, known=[[None] * len(one) for one in KNOWN]) == model.predict(X)
    assert model.predict(X, known=[None] * 6) == model.predict(X)
    assert model.predict(X, known=[KNOWN[0], *[None] * 5]) == [found[0], *model.predict(X[1:])]
    assert found != model.predict(X)


def test_bounds_given_what_is_known():
    model, X = fitted("trw")
    labels, bounds = model.predict(X, known=KNOWN, return_bound=True)
    beliefs, scores = model.beliefs(X, known=KNOWN), model.decision_scores(X)
    for i, known in enumerate(KNOWN):
        every = agree(known)
        assert labels[i] in every
        own = slice(*scores.offsets[i : i + 2])
        one = Scores(scores.node[own], None, scores.transition, shape=scores.shape.take(np.array([i])))
        values = [Graph(3).score(one, [LABELS.index(label) for label in each])[0] for each in every]
        assert bounds.bound[i] >= max(values) - 1e-9
        assert bounds.score[i] == pytest.approx(values[every.index(labels[i])])
        possible = np.array([[any(each[t] == label for each in every) for label in LABELS] for t in range(len(known))])
        assert (beliefs[i][~possible] == 0.0).all()
        np.testing.assert_allclose(beliefs[i].sum(axis=1), 1.0)


def test_known_pixels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3, 3, 1))
    y = [(image[:, :, 0] > 0).astype(int) for image in X]
    model = CRF("graph").fit(X, y)
    known = [[[None, 1, None], [None, {0}, None], [None, None, {0, 1}]]]
    found = model.predict(X[:1], known=known)[0]
    assert found.shape == (3, 3)
    assert (found[0, 1], found[1, 1]) == (1, 0)
    np.testing.assert_array_equal(model.predict(X[:2], known=[None, None]), model.predict(X[:2]))
    sure = model.predict_proba(X[:1], known=known)[0]
    assert (sure[0, 1, 1], sure[1, 1, 0]) == (1.0, 1.0)
    with pytest.raises(ValueError, match=r"known\[0\] must have shape \(3, 3\), as its image"):
        model.predict(X[:1], known=[[[None, 1]]])


def test_types_of_nodes_may_be_left_out():
    X = [({"a": [["x"], ["y"]], "b": [["z"]]}, {("a", "b"): [(0, 0), (1, 0)]})] * 2
    y = [{"a": ["p", "q"], "b": ["r"]}, {"a": ["q", "q"], "b": ["s"]}]
    model = CRF("graph").fit(X, y)
    assert model.predict(X, known=[{"b": ["s"]}, None])[0]["b"] == ["s"]
    assert model.predict(X, known=[{"a": ["q", None]}, {}])[0]["a"][0] == "q"
    with pytest.raises(ValueError, match=r"known\[0\] has 1 labels for 2 nodes of type 'a'"):
        model.predict(X, known=[{"a": ["q"]}, None])
    with pytest.raises(
        ValueError, match=r"known\[1\]\['b'\]\[0\] allows \['q'\]; the type of this node has \['r', 's'\]"
    ):
        model.predict(X, known=[None, {"b": ["q"]}])


def test_wide_graphs_keep_known_labels():
    rng = np.random.default_rng(0)
    edges = grid(12, 12)
    X = [(rng.normal(size=(144, 1)), edges) for _ in range(2)]
    y = [(rows[:, 0] > 0).astype(int).tolist() for rows, _ in X]
    model = CRF(Graph(budget=10**4)).fit(X, y)
    known = [[1 - label if t % 7 == 0 else None for t, label in enumerate(labels)] for labels in y]
    for labels, want in zip(model.predict(X, known=known), known, strict=True):
        assert all(one == label for one, label in zip(want, labels, strict=True) if one is not None)


def test_margins_and_single_nodes():
    model, X = fitted("graph", estimator=StructuredSVM)
    for labels, known in zip(model.predict(X, known=KNOWN), KNOWN, strict=True):
        assert labels in agree(known)
    single = CRF("single").fit(np.eye(3), ["a", "b", "c"])
    assert single.predict(np.eye(3), known=[None, "c", {"a", "b"}]) == ["a", "c", "a"]
    np.testing.assert_allclose(single.predict_proba(np.eye(3), known=["a", None, {"b", "c"}]).sum(axis=1), 1.0)
    hmm = DiscriminativeHMM(eta=0.0, smoothing=1.0).fit([["a", "b", "a"]], [["x", "y", "x"]])
    assert hmm.k_best([["a", "b"]], 4, known=[["y", None]])[0][0][0][0] == "y"


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ([["a"]], r"known\[0\] has 1 labels; X\[0\] has 4 nodes"),
        ([["a", "z", None, None]], r"known\[0\]\[1\] is 'z', a label not seen in training"),
        ([["a", set(), None, None]], r"known\[0\]\[1\] is an empty set: no label is allowed there"),
    ],
)
def test_what_cannot_be_known(known, message):
    model, X = fitted("graph")
    with pytest.raises(ValueError, match=message):
        model.predict(X[:1], known=known)


def test_known_labels_that_constraints_forbid():
    constraints = np.array([[False, True], [True, True]])
    X = [([["x"], ["y"]], [(0, 1)])]
    model = CRF("graph", constraints=constraints).fit(X, [["a", "b"]])
    assert model.predict(X, known=[["a", None]]) == [["a", "b"]]
    with pytest.raises(ValueError, match="Example 0 has no allowed labelling"):
        model.predict(X, known=[["a", "a"]])
