"""Conditional graphical models of outputs of fixed size, against the enumeration of all labellings."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import ConditionalGraphicalModel
from dualfield.structures import FactorGraph


def data(seed: int = 0, n: int = 20, n_nodes: int = 4, *, shared: bool = True) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3) if shared else (n, n_nodes, 2))
    weights = rng.normal(size=(3, n_nodes))
    y = (X @ weights if shared else X.sum(axis=2)) + 0.3 * rng.normal(size=(n, n_nodes)) > 0
    y[:, 2] = y[:, 1] ^ (rng.random(n) < 0.1)
    return X, y.astype(int)


def learnt(model: ConditionalGraphicalModel, x: np.ndarray, clique: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    key = clique if model.tying != "shared" else "shared"
    one = model.clique_models_[len(clique), key]
    values = np.zeros(len(one.tuples))
    if one.coefficients is not None:
        inputs = x[None] if x.ndim == 1 else x[list(clique)].reshape(1, -1)
        values = (rbf_kernel(inputs, one.points, 8.0 / inputs.size) @ one.coefficients)[0]
    values = log_softmax(values) if model.loss == "log" else values
    return {tuple(t): float(v) for t, v in zip(one.tuples.tolist(), values, strict=True)}


def score(model: ConditionalGraphicalModel, x: np.ndarray, y: tuple[int, ...], weights: dict[Any, float]) -> float:
    total = 0.0
    for clique, weight in weights.items():
        labels = tuple(y[node] for node in clique)
        seen = learnt(model, x, clique)
        if labels in seen or model.unseen != "backoff":
            value = seen.get(labels, float(model.unseen) if model.unseen != "backoff" else np.nan)
            value -= max(seen.values()) if model.unseen == "backoff" and model.loss != "log" else 0.0
        else:
            value = -model.backoff_cost
            for node, label in zip(clique, labels, strict=True):
                alone = learnt(model, x, (node,))
                lowest = min(alone.values()) - 1.0 - model.backoff_cost
                value += alone.get((label,), lowest) - (0.0 if model.loss == "log" else max(alone.values()))
        total += weight * value
    return total


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize("unseen", ["backoff", "-inf", -0.4])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("combine", ["sum", {0: 1.0, 1: 0.6}])
def test_graphs_against_enumeration(loss: str, unseen: Any, shared: bool, combine: Any) -> None:
    X, y = data(shared=shared)
    graph = [(0, 1), (1, 2), (2, 0), (3, 1)]
    model = ConditionalGraphicalModel(graph, loss=loss, unseen=unseen, combine=combine, backoff_cost=0.2).fit(X, y)
    weights: dict[Any, float] = dict.fromkeys(graph, 1.0)
    if combine != "sum":
        weights = dict.fromkeys(graph, 0.6) | {(node,): 1.0 for node in range(4)}
    test = data(1, 6, shared=shared)[0]
    predicted, bounds = model.predict(test, return_bound=True)
    np.testing.assert_array_equal(model.predict(test), predicted)
    assert bounds.exact.all()
    probabilities = model.predict_proba(test) if loss == "log" else [None] * len(test)
    assert predicted.shape == (6, 4)
    for x, guess, marginals, total in zip(test, predicted, probabilities, bounds.score, strict=True):
        scores = {labels: score(model, x, labels, weights) for labels in itertools.product([0, 1], repeat=4)}
        assert scores[tuple(guess.tolist())] == pytest.approx(max(scores.values()), abs=1e-8)
        assert total == pytest.approx(max(scores.values()), abs=1e-8)
        if marginals is not None:
            chances = np.exp(np.array(list(scores.values())) - max(scores.values()))
            each = np.array(list(scores))
            expected = [chances[each[:, node] == 1].sum() / chances.sum() for node in range(4)]
            np.testing.assert_allclose(marginals[:, 1], expected, atol=1e-6)


def test_cliques_of_three_back_off_to_pairs_and_nodes() -> None:
    X, y = data(n=9)
    model = ConditionalGraphicalModel([(0, 2, 1), (3,)], loss="squared").fit(X, y)
    assert sorted(model.clique_models_) == [
        *((1, (node,)) for node in range(4)),
        (2, (0, 2)),
        (2, (2, 1)),
        (3, (0, 2, 1)),
    ]
    test = data(2, 5)[0]
    table = model.clique_scores(test)
    assert sorted(table) == [0, 2]
    assert table[0].nodes.ravel().tolist() == [3] * 5
    assert set(map(tuple, table[2].nodes.tolist())) == {(0, 2, 1)}
    assert np.isfinite(table[2].scores).all()
    assert model.predict(test).shape == (5, 4)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("features", ["tied", "tied_printed"])
def test_features_that_add_up_over_nodes(features: Any, shared: bool) -> None:
    X, y = data(n=12, shared=shared)
    model = ConditionalGraphicalModel([(0, 1), (2, 3)], features=features, unseen="-inf").fit(X, y)
    table = model.clique_scores(X)[1]
    for example, nodes, scores in zip(table.examples, table.nodes.tolist(), table.scores, strict=True):
        one = model.clique_models_[2, tuple(nodes)]
        rows = [X[example]] * 2 if shared else list(X[example][nodes])
        gamma = 8.0 / len(rows[0])
        if features == "tied":
            each = [rbf_kernel(row[None], one.points, gamma)[0] @ one.coefficients for row in rows]
            values = [each[0][a] + each[1][2 + b] for a, b in one.tuples.tolist()]
        else:
            parts = np.split(one.points, 2, axis=1)
            both = sum(rbf_kernel(row[None], part, gamma)[0] for row, part in zip(rows, parts, strict=True))
            values = both @ one.coefficients
        known = [table.tuples.tolist().index(t) for t in one.tuples.tolist()]
        np.testing.assert_allclose(scores[known], values, atol=1e-8)
        assert np.isneginf(np.delete(scores, known)).all()


def test_the_tree_is_the_spanning_tree_of_mutual_information() -> None:
    X, y = data(n=60)
    model = ConditionalGraphicalModel("tree", loss="squared").fit(X, y)
    assert (1, 2) in model.graph_  # column 2 is a copy of column 1 with few errors
    assert len(model.graph_) == 3
    given = ConditionalGraphicalModel(model.graph_, loss="squared").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), given.predict(X))
    assert model.score(X, y) == pytest.approx(np.mean(model.predict(X) == y))
    assert model.score(X, y) > 0.9
    one = ConditionalGraphicalModel("tree", loss="squared").fit(X, y[:, :1])
    assert one.graph_ == [(0,)]


@pytest.mark.parametrize("seed", range(6))
def test_weights_count_in_the_tree(seed: int) -> None:
    """A weight of 3 is the example three times, for the graph as well."""
    rng = np.random.default_rng(seed)
    X, Y, weights = rng.normal(size=(40, 2)), rng.integers(0, 2, (40, 5)), rng.integers(0, 6, 40)
    again = np.repeat(np.arange(40), weights)
    weighted = ConditionalGraphicalModel("tree", loss="squared").fit(X, Y, weights)
    repeated = ConditionalGraphicalModel("tree", loss="squared").fit(X[again], Y[again])
    assert weighted.graph_ == repeated.graph_


def test_strings_and_sparse_input() -> None:
    X, y = data(n=15)
    named = np.array(["no", "yes"])[y]
    model = ConditionalGraphicalModel([(0, 1), (2, 3)], loss="squared").fit(sparse.csr_matrix(X), named)
    dense = ConditionalGraphicalModel([(0, 1), (2, 3)], loss="squared").fit(X, sparse.csr_matrix(y))
    np.testing.assert_array_equal(model.predict(sparse.csr_matrix(X)), np.array(["no", "yes"])[dense.predict(X)])
    np.testing.assert_array_equal(model.predict(X), model.predict(sparse.csr_matrix(X)))


def test_cliques_that_share_a_type_have_one_model() -> None:
    X, y = data(n=15, shared=False)
    model = ConditionalGraphicalModel([(0, 1), (2, 3)], loss="squared", tying="shared", unseen=0.0).fit(X, y)
    assert list(model.clique_models_) == [(2, "shared")]
    assert model.clique_models_[2, "shared"].n_cliques == 30
    ends = ConditionalGraphicalModel([(0, 1), (2, 3)], loss="squared", tying=lambda clique, n: clique[-1] == n - 1)
    assert sorted(ends.set_params(unseen=0.0).fit(X, y).clique_models_) == [(2, False), (2, True)]


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([(0, 9)], r"graph\[0\] must be a tuple of distinct nodes in \[0, 4\)"),
        ([(0, 0)], r"graph\[0\] must be a tuple of distinct nodes"),
        ([(0, 1), (1, 0), (2, 3)], "graph must not name a clique twice"),
        ([(0, 1)], "Node 2 is in none"),
        ([], "Node 0 is in none"),
    ],
)
def test_wrong_graphs(graph: Any, message: str) -> None:
    X, y = data()
    with pytest.raises(ValueError, match=message):
        ConditionalGraphicalModel(graph, loss="squared").fit(X, y)


def test_wrong_tables() -> None:
    X, y = data()
    model = ConditionalGraphicalModel([(0, 1), (2, 3)], loss="squared")
    with pytest.raises(ValueError, match=r"X must have shape \(n, d\), or \(n, 4, d\)"):
        model.fit(X.reshape(20, 3, 1), y)
    with pytest.raises(ValueError, match=r"y must have shape \(n, n_nodes\)"):
        model.fit(X, y[:, 0])
    with pytest.raises(ValueError, match="y has 19 examples; X has 20"):
        model.fit(X, y[:19])
    with pytest.raises(ValueError, match="lengths must be None"):
        model.fit(X, y, lengths=[20])
    with pytest.raises(ValueError, match="padding is for sequences"):
        model.set_params(padding=(1, 0)).fit(X, y)
    model.set_params(padding=(0, 0)).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but ConditionalGraphicalModel is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match=r"X must have shape \(n, d\), as in training"):
        model.predict(np.zeros((2, 4, 3)))


def columns(n=60, seed=0):
    """Return examples whose columns have labels of their own, two of them in common."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    first, second, third = (X @ random.normal(size=2) + random.normal(size=n) > 0 for _ in range(3))
    parts = [np.where(first, "a", "b"), np.where(second, "b", "c"), np.where(third, "d", "e")]
    return X, np.column_stack(parts)


@pytest.mark.parametrize("unseen", ["backoff", "-inf", 5.0])
@pytest.mark.parametrize("loss", ["log", "squared"])
def test_a_column_has_no_labels_but_its_own(unseen: Any, loss: str) -> None:
    X, y = columns()
    # Scores of 5 for what was never seen are better than all others.
    model = ConditionalGraphicalModel([(0, 1), (1, 2)], unseen=unseen, loss=loss).fit(X, y)
    far = 30.0 * np.random.default_rng(1).normal(size=(40, 2))
    predicted = model.predict(far)
    for column, seen in enumerate(("ab", "bc", "de")):
        assert set(predicted[:, column]) <= set(seen)
    if loss == "log":
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=2), 1.0)
        for column, seen in enumerate(("ab", "bc", "de")):
            others = [at for at, label in enumerate(model.classes_) if label not in seen]
            assert (probabilities[:, column, others] == 0.0).all()


def test_a_label_that_only_points_without_weight_have_is_not_predicted() -> None:
    X, y = columns()
    weights = np.where(y[:, 0] == "b", 0.0, 1.0)
    model = ConditionalGraphicalModel([(0,), (1, 2)], unseen=9.0).fit(X, y, weights)
    assert set(model.predict(X)[:, 0]) == {"a"}


@pytest.mark.parametrize("loss", ["log", "hinge"])
@pytest.mark.parametrize("tying", ["position", "shared"])
def test_lists_of_seen_tuples_are_the_same_as_tables(loss: str, tying: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    X, y = random.normal(size=(30, 2)), random.integers(0, 3, (30, 5))
    y[:, 1] = y[:, 0]  # so that most tuples are never seen
    graph = [(0, 1, 2), (2, 3), (3, 4, 0)]
    model = ConditionalGraphicalModel(graph, loss=loss, tying=tying, unseen="-inf").fit(X, y)
    test = random.normal(size=(25, 2))
    labels = model.predict(test)
    chances = model.predict_proba(test) if loss == "log" else None
    monkeypatch.setattr("dualfield.models.graphical.clique_graph.FactorGraph", partial(_narrow, FactorGraph))
    np.testing.assert_array_equal(model.predict(test), labels)
    if chances is not None:
        np.testing.assert_allclose(model.predict_proba(test), chances, atol=1e-12)


def _narrow(graph: Any, n_labels: Any, cliques: Any, **_: Any) -> Any:
    if len(n_labels) == 5:
        raise ValueError("FactorGraph is too wide for exact answers: of no use here. So lists are needed.")
    return graph(n_labels, cliques)


def test_a_clique_of_many_nodes_is_a_list_of_what_was_seen() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 2)), random.integers(0, 2, (20, 30))
    model = ConditionalGraphicalModel([tuple(range(30))], unseen="-inf").fit(X, y)
    test = random.normal(size=(7, 2))
    table = model.clique_scores(test)[29]
    np.testing.assert_array_equal(model.predict(test), table.tuples[table.scores.argmax(axis=1)])


def test_two_large_cliques_with_nodes_in_common_agree_on_them() -> None:
    random = np.random.default_rng(2)
    X, y = random.normal(size=(20, 2)), random.integers(0, 2, (20, 40))
    left, right = tuple(range(25)), tuple(range(20, 40))
    y[10:, 20:25] = y[:10, 20:25]  # so that halves of different examples fit
    model = ConditionalGraphicalModel([left, right], unseen="-inf").fit(X, y)
    test = random.normal(size=(9, 2))
    first, second = (model.clique_scores(test)[len(clique) - 1] for clique in (left, right))
    for i, guess in enumerate(model.predict(test)):
        pairs = [
            (one + two, [*a, *b[5:]])
            for one, a in zip(first.scores[i], first.tuples.tolist(), strict=True)
            for two, b in zip(second.scores[i], second.tuples.tolist(), strict=True)
            if a[20:] == b[:5]
        ]
        assert guess.tolist() == max(pairs)[1]


@pytest.mark.parametrize("unseen", ["backoff", 0.0])
def test_a_graph_that_predict_could_not_put_together_is_not_trained(unseen: Any) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 2)), random.integers(0, 2, (20, 30))
    model = ConditionalGraphicalModel([tuple(range(30))], unseen=unseen)
    with pytest.raises(ValueError, match=r"'graph' parameter .* a clique of 30 nodes has 1073741824 numbers") as error:
        model.fit(X, y)
    assert "max_table" not in str(error.value)
    assert "unseen='-inf'" in str(error.value)
    every = [(a, b) for a in range(30) for b in range(a)]
    for wanted in (unseen, "-inf"):
        with pytest.raises(ValueError, match="its elimination has width 29") as error:
            ConditionalGraphicalModel(every, unseen=wanted).fit(X, y)
        assert "max_table" not in str(error.value)
