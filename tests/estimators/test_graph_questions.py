"""Questions that users ask models of graphs and images: weights by type of edge, explanations, marginals, metrics."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import CRF
from dualfield.metrics import cross_val_predict, flat_classification_report, token_log_loss
from dualfield.plotting import ConfusionDisplay, ReliabilityDisplay
from dualfield.structures import FlatGraphs, Graph


@pytest.fixture(scope="module")
def typed():
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 2, 4) for _ in range(15)]
    edges, types = [(0, 1), (1, 2), (2, 3), (3, 0)], [0, 1, 0, 1]
    X = [(np.eye(2)[one] + rng.normal(size=(4, 2)), edges, types, rng.normal(size=(4, 2))) for one in labels]
    y = [["xy"[code] for code in one] for one in labels]
    return CRF("graph", features="all").fit(X, y), X, y


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    truth = np.tile([0, 0, 1], (10, 3, 1))
    X = list(np.stack([truth + rng.normal(size=truth.shape), np.ones(truth.shape)], axis=-1))
    return CRF("graph").fit(X[:5], list(truth[:5])), X[5:], list(truth[5:])


def test_weights_of_every_type_of_edge_are_named(typed):
    model, _, _ = typed
    expected = {
        (f"type {kind}", "xy"[a], "xy"[b]): model.transitions_[kind, a, b]
        for kind in range(2)
        for a in range(2)
        for b in range(2)
        if model.transitions_[kind, a, b]
    }
    assert model.transition_features_ == expected
    top = model.top_features(20)
    ranked = dict([*top.likely, *top.unlikely])
    assert ranked == expected
    (kind, one, two), weight = top.likely[0]
    assert f"{weight:+.3f}  {kind}: {one} -> {two}" in str(top)


def test_explanations_add_up_and_name_edges(typed):
    model, X, _ = typed
    for example in X[:5]:
        scores = model.decision_scores([example])
        for token in model.explain(example).tokens:
            best = np.searchsorted(model.classes_, model.predict([example])[0])
            other = np.searchsorted(model.classes_, token.alternative)
            gap = model.structure_.score(scores, best) - model.structure_.score(scores, other)
            assert token.difference == pytest.approx(float(gap[0]))
            assert sum(value for _, value in token.contributions) == pytest.approx(token.difference)
    said = " ".join(what for token in model.explain(X[0]).tokens for what, _ in token.contributions)
    assert "edge 3 > 0 of type 1: " in said
    assert "x[0] at edge 3 > 0: " in said


def test_a_relaxation_explains_nothing(typed):
    _, X, y = typed
    model = CRF(Graph(inference="trw")).fit(X, y)
    with pytest.raises(ValueError, match="explain needs exact answers"):
        model.explain(X[0])


def test_marginals_and_metrics_of_images(images):
    model, X, y = images
    rows = model.predict_marginals(X)
    (first, *_), (probabilities, *_) = rows, model.predict_proba(X)
    assert [one[1] for one in first] == probabilities[..., 1].ravel().tolist()
    flat = [one.ravel().tolist() for one in y]
    loss = token_log_loss(y, model.predict_proba(X), model.classes_)
    assert loss == token_log_loss(flat, [one.reshape(-1, 2) for one in model.predict_proba(X)], model.classes_)
    counts = ConfusionDisplay.from_estimator(model, X, y).counts
    assert counts.sum() == 45
    assert np.trace(counts) / 45 == pytest.approx(model.score(X, y))
    assert ReliabilityDisplay.from_estimator(model, X, y).to_frame()["count"].sum() == 45
    assert "accuracy" in flat_classification_report(y, model.predict(X))
    assert np.shape(cross_val_predict(CRF("graph"), X, y, cv=2)) == (5, 3, 3)


def test_flat_graphs_are_the_tuples_that_they_were_made_of(typed):
    model, X, _ = typed
    nodes, edges, types, features = (np.concatenate([one[at] for one in X]) for at in range(4))
    flat = FlatGraphs(
        nodes=nodes, lengths=[4] * 15, edges=edges, edge_lengths=[4] * 15, types=types, edge_features=features
    )
    assert model.predict(list(flat)) == model.predict(flat) == model.predict(X)
