"""Conditional graphical models of trees and graphs of any shape, against the enumeration of all labellings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from dualfield import ConditionalGraphicalModel
from dualfield.structures import Chain, FlatGraphs, Graph, Tree, grid_edges
from tests.estimators.graph_problems import EDGE_COLUMNS, Enumeration, edges_of, graphs, marginals, trees
from tests.estimators.test_graphical_optimum import words

SUM, BOTH = {1: 1.0}, {0: 1.0, 1: 0.6}


def codes(labels: list[str]) -> tuple[int, ...]:
    return tuple("abc".index(label) for label in labels)


@pytest.mark.parametrize("tying", ["type", "shared"])
@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("unseen", ["backoff", "-inf", -0.4])
@pytest.mark.parametrize("weights", [SUM, BOTH, {0: 0.7}], ids=["sum", "both", "nodes"])
@pytest.mark.parametrize("kind", ["tree", "graph"])
def test_labellings_and_probabilities_against_enumeration(
    kind: str, weights: dict[int, float], unseen: Any, loss: str, tying: Any
) -> None:
    make, structure = (graphs, Graph()) if kind == "graph" else (trees, Tree())
    model = ConditionalGraphicalModel(
        structure,
        loss=loss,
        unseen=unseen,
        combine="sum" if weights is SUM else weights,
        backoff_cost=0.2,
        tying=tying,
    ).fit(*make(0))
    X, reference = make(1, 8)[0], Enumeration(model, weights)
    predicted, bounds = model.predict(X, return_bound=True)
    assert model.predict(X) == predicted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of examples without a labelling of seen tuples
        probabilities = model.predict_proba(X) if loss == "log" else [None] * len(X)
    for i, (x, guess, found) in enumerate(zip(X, predicted, probabilities, strict=True)):
        scores = reference.scores(x)
        best = max(scores.values())
        if best == -np.inf:
            continue
        assert scores[codes(guess)] == pytest.approx(best, abs=1e-8)
        assert bounds.score[i] == pytest.approx(best, abs=1e-8)
        assert bounds.exact[i]
        if found is not None:
            np.testing.assert_allclose(found, marginals(scores), atol=1e-6)


def test_as_few_unseen_pairs_as_can_be_where_they_are_forbidden() -> None:
    """Training has pairs that rise only: a circle must fall somewhere."""
    X = [(np.eye(3)[:, :2], [(0, 1), (1, 2)])]
    model = ConditionalGraphicalModel(Graph(), loss="log", unseen="-inf").fit(X, [["a", "b", "c"]])
    circle = [(np.eye(3)[:, :2], [(0, 1), (1, 2), (2, 0)])]
    (labels,) = model.predict(circle)
    pairs = list(zip(labels, [*labels[1:], labels[0]], strict=True))
    assert sum(pair not in [("a", "b"), ("b", "c")] for pair in pairs) == 1
    with pytest.warns(UserWarning, match="1 of 2 examples"):
        found = model.predict_proba(circle + X)
    np.testing.assert_allclose(found[0].sum(axis=1), 1.0)


def test_edges_have_a_direction() -> None:
    X, y = [(np.zeros((2, 1)), [(0, 1)]), (np.zeros((2, 1)), [(1, 0)])], [["a", "b"], ["b", "a"]]
    model = ConditionalGraphicalModel(Graph(), unseen="-inf").fit(X, y)
    assert model.clique_models_[2, 0].tuples.tolist() == [[0, 1]]
    assert model.predict([(np.zeros((3, 1)), [(2, 0), (2, 1)])]) == [["b", "b", "a"]]
    below = ConditionalGraphicalModel(Tree(), unseen="-inf").fit([(np.zeros((2, 1)), [1, -1])], [["a", "b"]])
    assert below.clique_models_[2, 0].tuples.tolist() == [[1, 0]]  # parent first
    assert below.predict([(np.zeros((2, 1)), [-1, 0])]) == [["b", "a"]]


@pytest.mark.parametrize("settings", [{}, {"loss": "log"}, {"combine": BOTH, "loss": "squared"}, {"unseen": "-inf"}])
@pytest.mark.parametrize("features", ["joint", "tied_separately"])
def test_a_path_is_a_chain(features: Any, settings: dict[str, Any]) -> None:
    """Node by node, edge by edge and bit by bit: the same problems, and the same answers."""
    X, y = words(n=12)
    X, y = [*X, X[0][:1]], [*y, y[0][:1]]
    chain = ConditionalGraphicalModel(Chain(order=1), features=features, **settings).fit(X, y)
    paths = [(row, [(t, t + 1) for t in range(len(row) - 1)]) for row in X]
    parents = [(row, np.arange(len(row)) - 1) for row in X]
    for structure, given in ((Graph(), paths), (Tree(), parents)):
        model = ConditionalGraphicalModel(structure, features=features, **settings).fit(given, y)
        assert [(size, len(one.tuples)) for (size, _), one in model.clique_models_.items()] == [
            (size, len(one.tuples)) for (size, _), one in chain.clique_models_.items()
        ]
        for one, other in zip(model.clique_models_.values(), chain.clique_models_.values(), strict=True):
            np.testing.assert_array_equal(one.coefficients, other.coefficients)
        assert model.predict(given) == chain.predict(X)
        scores, expected = (m.predict(data, return_bound=True)[1].score for m, data in ((model, given), (chain, X)))
        np.testing.assert_allclose(scores, expected, atol=1e-9)
        if settings.get("loss") == "log":
            for found, wanted in zip(model.predict_proba(given), chain.predict_proba(X), strict=True):
                np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_all_forms_of_graphs_are_read_alike() -> None:
    X, y = graphs(3)
    model = ConditionalGraphicalModel(Graph(), loss="log").fit(X, y)
    flat = FlatGraphs(
        nodes=np.concatenate([x[0] for x in X]),
        lengths=[len(x[0]) for x in X],
        edges=np.concatenate([x[1] for x in X]),
        edge_lengths=[len(x[1]) for x in X],
        types=np.concatenate([x[2] for x in X]),
        edge_features=np.concatenate([x[3] for x in X]),
    )
    thin = [(sparse.csr_matrix(nodes), *rest) for nodes, *rest in X]
    for given in (flat, thin):
        other = ConditionalGraphicalModel(Graph(), loss="log").fit(given, y)
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-3)
        assert other.predict(given) == model.predict(X)
    table = model.clique_scores(X)[1]
    assert table.examples.tolist() == [i for i, x in enumerate(X) for _ in x[1]]
    assert table.nodes.tolist() == [list(edge) for x in X for edge in edges_of(x)[0]]


def test_networkx_graphs() -> None:
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = networkx.DiGraph()
    graph.add_node("x", features=[0.0])
    graph.add_node("y", features=[1.0])
    graph.add_edge("x", "y", type=1, features=[2.0])
    pair = (np.array([[0.0], [1.0]]), [(0, 1)], [1], [[2.0]])
    one = ConditionalGraphicalModel(Graph(), loss="log").fit([graph], [["a", "b"]])
    two = ConditionalGraphicalModel(Graph(), loss="log").fit([pair], [["a", "b"]])
    assert sorted(one.clique_models_) == sorted(two.clique_models_) == [(1, 0), (2, 1)]
    assert one.predict([graph]) == two.predict([pair]) == [["a", "b"]]


def pictures(n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4)[None] >= rng.integers(1, 4, n)[:, None], 3, axis=0).reshape(n, 3, 4).astype(int)
    return y[..., None] + 0.4 * rng.normal(size=(n, 3, 4, 1)), y


def test_images_have_a_type_for_each_direction() -> None:
    X, y = pictures()
    model = ConditionalGraphicalModel(Graph(), loss="log", C=5.0, gamma=1.0, combine={0: 1.0, 1: 1.0}).fit(X[:8], y[:8])
    assert sorted(model.clique_models_) == [(1, 0), (2, 0), (2, 1)]
    assert model.clique_models_[2, 0].n_cliques == 8 * 9
    assert model.clique_models_[2, 1].n_cliques == 8 * 8
    predicted = model.predict(X[8:])
    assert [one.shape for one in predicted] == [(3, 4)] * 4
    assert [one.shape for one in model.predict_proba(X[8:])] == [(3, 4, 2)] * 4
    assert [len(one) for one in model.predict_marginals(X[8:])] == [12] * 4
    edges, types = grid_edges(3, 4)
    grids = [(one.reshape(12, 1), edges, types) for one in X[8:]]
    np.testing.assert_array_equal(np.reshape(model.predict(grids), (4, 3, 4)), predicted)
    assert model.score(X[8:], y[8:]) == pytest.approx(np.mean(np.array(predicted) == y[8:]))
    assert model.score(X[8:], y[8:]) > 0.85


@pytest.mark.parametrize("unseen", ["backoff", "-inf", 0.0])
def test_bounds_where_a_graph_is_too_wide(unseen: Any) -> None:
    """Score and bound of the relaxation lie on both sides of the best score, which enumeration knows."""
    X, y = graphs(0, 20)
    exact = ConditionalGraphicalModel(Graph(inference="exact"), unseen=unseen, combine=BOTH).fit(X, y)
    relaxed = ConditionalGraphicalModel(Graph(inference="trw"), unseen=unseen, combine=BOTH).fit(X, y)
    for one, other in zip(exact.clique_models_.values(), relaxed.clique_models_.values(), strict=True):
        np.testing.assert_array_equal(one.coefficients, other.coefficients)
    test = graphs(1, 30)[0]
    reference = Enumeration(exact, BOTH)
    best = np.array([max(reference.scores(x).values()) for x in test])
    known = np.isfinite(best)
    labels, bounds = relaxed.predict(test, return_bound=True)
    assert relaxed.predict(test) == labels
    assert (bounds.score <= best + 1e-8)[known].all()
    assert (bounds.bound >= best - 1e-8)[known].all()
    np.testing.assert_allclose(bounds.score[bounds.exact & known], best[bounds.exact & known], atol=1e-7)
    assert bounds.exact.mean() > 0.5  # most of them are forests
    for i in np.flatnonzero(known & (bounds.score > best - 1e3)):
        value = reference.scores(test[i])[codes(labels[i])]
        assert value == pytest.approx(bounds.score[i], abs=1e-7) or value == -np.inf


def test_probabilities_are_refused_where_there_are_bounds_only() -> None:
    X, y = graphs(0)
    model = ConditionalGraphicalModel(Graph(inference="trw"), loss="log").fit(X, y)
    with pytest.raises(ValueError, match=r"predict_proba needs exact answers: the beliefs of inference='trw' are not"):
        model.predict_proba(X)
    small = ConditionalGraphicalModel(Graph(budget=2000), loss="log").fit(X, y)
    square = [(np.zeros((6, 2)), [(a, b) for a in range(6) for b in range(a)], np.zeros(15, int), np.zeros((15, 3)))]
    assert small.predict_proba(X[:1])[0].shape == (len(X[0][0]), 3)  # within the budget
    with pytest.raises(ValueError, match="predict_proba needs exact answers"):
        small.predict_proba(square)
    assert len(small.predict(square)[0]) == 6
    # Nodes alone are never too wide.
    nodes = small.set_params(combine={0: 1.0})
    assert nodes.predict_proba(square)[0].shape == (6, 3)


def test_too_wide_is_refused_before_anything_is_trained() -> None:
    full = [(np.zeros((6, 2)), [(a, b) for a in range(6) for b in range(a)])]
    with pytest.raises(ValueError, match="Example 0 needs tables of more than 100 bytes"):
        ConditionalGraphicalModel(Graph(inference="exact", budget=100)).fit(full, [list("aabbab")])


@pytest.mark.parametrize("unseen", ["backoff", "-inf", 0.0])
def test_types_that_training_did_not_have(unseen: Any) -> None:
    X, y = graphs(0)
    model = ConditionalGraphicalModel(Graph(), loss="log", unseen=unseen).fit(X, y)
    new = [(np.eye(2), [(0, 1)], [7], np.zeros((1, EDGE_COLUMNS)))]
    scores = Enumeration(model, SUM).scores(new[0])
    labels, bounds = model.predict(new, return_bound=True)
    assert scores[codes(labels[0])] == pytest.approx(max(scores.values()), abs=1e-9)
    assert bounds.score[0] == pytest.approx(max(scores.values()), abs=1e-9)
    with pytest.warns(UserWarning, match="1 of 1 examples have a type of clique that training did not have"):
        model.predict_proba(new)


def test_nodes_without_an_edge_are_cliques_of_their_own() -> None:
    X, y = graphs(0)
    model = ConditionalGraphicalModel(Graph(), unseen="-inf").fit(X, y)
    alone = sum(len(set(range(len(x[0]))) - set(np.ravel(x[1]))) for x in X)
    assert alone > 0
    assert model.clique_models_[1, 0].n_cliques == alone
    backoff = ConditionalGraphicalModel(Graph()).fit(X, y)
    assert backoff.clique_models_[1, 0].n_cliques == sum(len(x[0]) for x in X)
    empty = model.predict([(np.zeros((0, 2)), []), (np.zeros((1, 2)), [])])
    assert [len(one) for one in empty] == [0, 1]


def test_small_chunks_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = graphs(0)
    model = ConditionalGraphicalModel(Graph(), loss="log").fit(X, y)
    labels, bounds = model.predict(X, return_bound=True)
    probabilities = model.predict_proba(X)
    monkeypatch.setattr("dualfield.models.graphical.clique_readers._NUMBERS_OF_A_CHUNK", 40)
    again, same = model.predict(X, return_bound=True)
    assert again == labels
    np.testing.assert_allclose(same.score, bounds.score, atol=1e-12)
    for one, other in zip(model.predict_proba(X), probabilities, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("base", [None, LogisticRegression()])
def test_weights_are_copies_and_threads_change_nothing(base: Any) -> None:
    X, y = graphs(2)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    again = np.repeat(np.arange(len(X)), weights)
    settings: dict[str, Any] = {"loss": "squared"} if base is None else {"base_estimator": base}
    weighted = ConditionalGraphicalModel(Graph(), **settings).fit(X, y, weights)
    repeated = ConditionalGraphicalModel(Graph(), **settings).fit([X[i] for i in again], [y[i] for i in again])
    threads = ConditionalGraphicalModel(Graph(), n_jobs=2, **settings).fit(X, y, weights)
    for order, table in weighted.clique_scores(X).items():
        np.testing.assert_allclose(table.scores, repeated.clique_scores(X)[order].scores, atol=1e-3 if base else 1e-9)
        np.testing.assert_array_equal(table.scores, threads.clique_scores(X)[order].scores)
    assert weighted.predict(X) == threads.predict(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"tying": "position"},
            r"'tying' parameter .* must be None with trees and graphs or one of .*'shared', 'type'",
        ),
        ({"tying": lambda position, length: 0}, r"'tying' parameter"),
        ({"padding": (1, 0)}, r"padding is for sequences: it must be \(0, 0\) with trees and graphs"),
        ({"features": "tied"}, r"features='tied' makes the input of an edge of its nodes alone"),
        ({"features": "tied_separately"}, r"edges of X have features. Use 'joint'"),
        ({"combine": {2: 1.0}}, r"must not name an order above that of the graph, 1"),
        ({"graph": Graph(2)}, r"structure has 2 labels; y has 3"),
        ({"graph": Graph(n_types=1)}, r"types must be in \[0, 1\), as graph=Graph"),
        ({"graph": Graph(3, allowed=np.eye(3, dtype=bool))}, r"takes a Graph without 'allowed'.* said by 'unseen'"),
        ({"graph": "graph"}, r"or an object Tree\(\) or Graph\(\) for examples of any shape. Got 'graph'"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    X, y = graphs(0)
    with pytest.raises(ValueError, match=message):
        ConditionalGraphicalModel(**{"graph": Graph(), **settings}).fit(X, y)


def test_bad_input_is_named() -> None:
    X, y = graphs(0)
    model = ConditionalGraphicalModel(Graph()).fit(X, y)
    with pytest.raises(ValueError, match="X has no edge features; the training data had some"):
        model.predict([(np.eye(2), [(0, 1)])])
    with pytest.raises(ValueError, match="expected 2"):
        model.predict([(np.eye(3), [(0, 1)], [0], np.zeros((1, EDGE_COLUMNS)))])
    with pytest.raises(ValueError, match=f"expected {EDGE_COLUMNS}"):
        model.predict([(np.eye(2), [(0, 1)], [0], np.zeros((1, 1)))])
    plain = ConditionalGraphicalModel(Graph()).fit(*graphs(0, features=False))
    with pytest.raises(ValueError, match="X has edge features; the training data had none"):
        plain.predict(X)
    with pytest.raises(TypeError, match="X must be numbers, which kernels compare"):
        ConditionalGraphicalModel(Graph()).fit([([["w"], ["v"]], [(0, 1)])], [["a", "b"]])
    with pytest.raises(TypeError, match="edge_features must be numbers"):
        ConditionalGraphicalModel(Graph()).fit([(np.eye(2), [(0, 1)], [["near"]])], [["a", "b"]])
    with pytest.raises(ValueError, match=r"types of edges must be at least 0\. Got -1"):
        ConditionalGraphicalModel(Graph()).fit([(np.eye(2), [(0, 1)], [-1])], [["a", "b"]])
    with pytest.raises(ValueError, match="The parents of example 0 are no tree"):
        ConditionalGraphicalModel(Tree()).fit([(np.eye(2), [1, 0])], [["a", "b"]])
    with pytest.raises(ValueError, match="X must have at least one node"):
        ConditionalGraphicalModel(Graph()).fit([(np.zeros((0, 2)), [])], [[]])
    with pytest.raises(ValueError, match=r"y\[0\] has 1 labels; X\[0\] has 2 nodes"):
        ConditionalGraphicalModel(Graph()).fit([(np.eye(2), [(0, 1)])], [["a"]])
    with pytest.raises(ValueError, match="lengths must be None"):
        ConditionalGraphicalModel(Graph()).fit(X, y, lengths=[1])
