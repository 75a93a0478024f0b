"""One temperature of conditional graphical models and of grammars: chosen by log-loss, in questions and in files."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dualfield
from dualfield import CRF, ConditionalGraphicalModel, DiscriminativePCFG
from dualfield.data import ParseTree
from dualfield.estimators import ImpossibleWarning
from dualfield.plotting import CalibrationChangeDisplay
from dualfield.structures import Graph


def sequences(n, seed):
    rng = np.random.default_rng(seed)
    y = [np.cumsum(rng.random(int(rng.integers(2, 6))) < 0.3) % 2 for _ in range(n)]
    return [one[:, None] + rng.normal(size=(len(one), 1)) for one in y], [one.tolist() for one in y]


def fixed(n, seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(2, size=n)
    y = np.column_stack([first, np.where(rng.random(n) < 0.9, first, 1 - first), rng.integers(2, size=n)])
    return y + rng.normal(size=y.shape), y


def circles(n, seed):
    X, y = fixed(n, seed)
    return [(x[:, None], [(0, 1), (1, 2), (2, 0)]) for x in X], y.tolist()


def log_loss(model, X, y):
    rows = np.concatenate([np.reshape(one, (-1, 2)) for one in model.predict_proba(X)])
    return -np.log(rows[np.arange(len(rows)), np.concatenate(y)]).mean()


CASES = [
    (sequences, 1, {"gamma": 1.0}),
    (sequences, 2, {"gamma": 1.0, "padding": (1, 1)}),
    (sequences, 1, {"combine": {0: 1.0, 1: 0.5}}),
    (fixed, [(0, 1), (1, 2)], {}),
    (circles, Graph(), {}),
]


@pytest.mark.parametrize(("data", "graph", "settings"), CASES)
@pytest.mark.filterwarnings("ignore:.*clique that training did not have")
def test_least_log_loss_in_questions_and_files(data, graph, settings, tmp_path):
    X, y = data(40, 1)
    model = ConditionalGraphicalModel(graph, loss="log", **settings).fit(*data(30, 0))
    before, labels = log_loss(model, X, y), model.predict(X)
    found = model.calibrate(X, y).calibration_
    assert found.log_loss_at_one == pytest.approx(before, rel=1e-9)
    assert found.log_loss == pytest.approx(log_loss(model, X, y), rel=1e-9)
    assert found.log_loss < before
    assert abs(found.temperature - 1.0) > 0.05
    assert all(np.array_equal(a, b) for a, b in zip(model.predict(X), labels, strict=True))
    model.save(tmp_path / "model")
    again = dualfield.load(tmp_path / "model")
    assert again.calibration_ == found
    for one, other in zip(again.predict_proba(X), model.predict_proba(X), strict=True):
        np.testing.assert_array_equal(one, other)
    entropies = model.rank_for_labelling(X).values
    assert not hasattr(model.fit(*data(30, 0)), "calibration_")
    assert not np.allclose(entropies, model.rank_for_labelling(X).values)


def test_probabilities_are_those_of_scores_by_the_temperature():
    X, y = sequences(40, 1)
    model = ConditionalGraphicalModel(1, loss="log", gamma=1.0).fit(*sequences(30, 0)).calibrate(X, y)
    T, x = model.calibration_.temperature, next(one for one in X if len(one) == 4)
    table = model.clique_scores([x])[1]
    rows = np.zeros((4, 2))
    for labels in itertools.product(range(2), repeat=4):
        at = [int(np.flatnonzero((table.tuples == labels[t : t + 2]).all(axis=1))[0]) for t in range(3)]
        rows[np.arange(4), labels] += np.exp(sum(table.scores[t, k] for t, k in enumerate(at)) / T)
    np.testing.assert_allclose(model.predict_proba([x])[0], rows / rows.sum(axis=1, keepdims=True), atol=1e-9)


def test_folds():
    X, y = sequences(40, 1)
    model = ConditionalGraphicalModel(1, loss="log", gamma=1.0).fit(X, y).calibrate(X, y, cv=4)
    assert model.calibration_.n_nodes == sum(map(len, y))
    assert log_loss(model, *sequences(40, 2)) < log_loss(
        ConditionalGraphicalModel(1, loss="log", gamma=1.0).fit(X, y), *sequences(40, 2)
    )


@pytest.mark.parametrize(("data", "graph"), [(sequences, 1), (fixed, [(0, 1), (1, 2)])])
def test_reports_show_the_change(data, graph, tmp_path):
    model = ConditionalGraphicalModel(graph, loss="log").fit(*data(30, 0)).calibrate(*data(30, 1))
    X, y = data(30, 1)
    display = CalibrationChangeDisplay.from_estimator(model, X, y)
    assert display.temperature == model.calibration_.temperature
    assert display.log_losses == pytest.approx((model.calibration_.log_loss_at_one, model.calibration_.log_loss))
    if data is sequences:
        model.report(tmp_path / "report.html", X, y)
        assert "temperature of probabilities" in (tmp_path / "report.html").read_text()


def test_refused():
    X, y = sequences(20, 0)
    assert not hasattr(ConditionalGraphicalModel(1, loss="hinge").fit(X, y), "calibrate")
    model = ConditionalGraphicalModel(1, loss="log").fit(X, y)
    with pytest.raises(ValueError, match=r"y\[0\] has \d labels; X\[0\] has \d nodes"):
        model.calibrate(X, [row[:-1] for row in y])
    with pytest.raises(ValueError, match="not seen in training"):
        model.calibrate(X, [[7] * len(row) for row in y])
    wide = ConditionalGraphicalModel(Graph(inference="trw"), loss="log").fit(*circles(20, 0))
    with pytest.raises(ValueError, match="calibrate needs exact answers"):
        wide.calibrate(*circles(5, 1))


def treebank(n, seed):
    """Prepositional phrases go to the noun three times out of four."""
    rng, trees = np.random.default_rng(seed), []
    for kind in rng.random(n):
        noun, phrase = "(NP (N a))", "(PP (P c) (NP (N a)))"
        if kind < 0.6:
            trees.append(f"(S {noun} (VP (V b) (NP {noun} {phrase})))")
        else:
            trees.append(
                f"(S {noun} (VP (VP (V b) {noun}) {phrase}))" if kind < 0.8 else f"(S {noun} (VP (V b) {noun}))"
            )
    return [ParseTree.from_brackets(tree).tokens() for tree in trees], trees


@pytest.mark.filterwarnings("ignore:The 774 labels .* no more probable under the model than by chance:UserWarning")
@pytest.mark.parametrize("model", [DiscriminativePCFG(eta=0.0), DiscriminativePCFG(eta=1.0), CRF("grammar", C=1e4)])
def test_grammars(model, tmp_path):
    X, y = treebank(60, 1)
    model.fit(*treebank(8, 0))
    trees = model.predict(X)
    shape = model.structure_.shape(X)
    codes = shape.read_labels(y, model.labels_).codes

    def loss():
        rows = np.concatenate(model.predict_proba(X))
        return -np.log(rows[np.arange(len(codes)), codes]).mean()

    before = loss()
    found = model.calibrate(X, y).calibration_
    assert found.log_loss_at_one == pytest.approx(before, rel=1e-9)
    assert found.log_loss == pytest.approx(loss(), rel=1e-9)
    assert found.log_loss < before
    assert model.predict(X) == trees
    model.save(tmp_path / "model")
    again = dualfield.load(tmp_path / "model")
    assert again.calibration_ == found
    np.testing.assert_array_equal(again.predict_proba(X)[0], model.predict_proba(X)[0])
    strange = [("a", "N"), ("b", "FW")]
    with pytest.warns(ImpossibleWarning, match="1 of 61 examples has no allowed labelling. Example 60: no rule"):
        model.calibrate([*X, strange], [*y, "(S (NP (N a)) (VP (FW b)))"])
    assert model.calibration_ == found
    assert model.calibrate(X, y, cv=3).calibration_.n_nodes == len(codes)
    with pytest.raises(ValueError, match="1 of 1 examples has no allowed labelling"):
        model.calibrate([strange], ["(S (NP (N a)) (VP (FW b)))"])


def test_folds_leave_out_trees_with_labels_that_others_do_not_have():
    X, y = treebank(30, 1)
    X, y = [*X, X[0][:3]], [*y, "(S (QP (N a)) (VP (V b) (NP (N a))))"]
    model = CRF("grammar").fit(X, y).calibrate(X, y, cv=5)
    shape = model.structure_.shape(X)
    assert model.calibration_.n_nodes == int(shape.lengths[:-1].sum())
