"""Classifiers of scikit-learn as models of cliques."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from dualfield import ConditionalGraphicalModel
from tests.estimators.test_graphical_optimum import coded, windows, words


@pytest.mark.parametrize(
    "base",
    [
        LogisticRegression(),
        GaussianNB(),
        LinearSVC(),
        SVC(decision_function_shape="ovr"),
        KNeighborsClassifier(3),
        RandomForestClassifier(10, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda base: type(base).__name__,
)
@pytest.mark.parametrize("unseen", ["backoff", "-inf"])
def test_scores_are_those_of_the_classifier(base: Any, unseen: Any) -> None:
    X, y = words(n=20)
    model = ConditionalGraphicalModel(0, base_estimator=base, unseen="-inf").fit(X, y)
    inputs, tuples = windows(X, y, 1)
    peer = base.fit(inputs, coded(tuples)[1])
    expected = (
        peer.decision_function(inputs)
        if hasattr(peer, "decision_function")
        else np.log(np.maximum(peer.predict_proba(inputs), np.finfo(float).eps))
    )
    np.testing.assert_allclose(model.clique_scores(X)[0].scores, expected, atol=1e-9)
    pairs = ConditionalGraphicalModel(1, base_estimator=base, unseen=unseen).fit(X, y)
    assert pairs.score(X, y) > 0.5
    assert np.isnan(pairs.objective_)
    assert pairs.status_ is None
    assert hasattr(pairs, "predict_proba") == hasattr(base, "predict_proba")


def test_two_tuples_share_the_decision_value() -> None:
    X, y = words(n=20)
    y = [["a" if label == "a" else "b" for label in row] for row in y]
    model = ConditionalGraphicalModel(0, base_estimator=SVC()).fit(X, y)
    inputs, tuples = windows(X, y, 1)
    peer = SVC().fit(inputs, np.ravel(tuples))
    table = ConditionalGraphicalModel(0, base_estimator=SVC(), unseen=0.0).fit(X, y).clique_scores(X)[0]
    np.testing.assert_allclose(table.scores[:, 1] - table.scores[:, 0], peer.decision_function(inputs))
    assert np.concatenate(model.predict(X)).tolist() == peer.predict(inputs).tolist()


def test_probabilities_of_single_nodes_are_those_of_the_classifier() -> None:
    X, y = words(n=20)
    base = LogisticRegression()
    model = ConditionalGraphicalModel(0, base_estimator=base, response_method="predict_proba").fit(X, y)
    inputs, tuples = windows(X, y, 1)
    peer = base.fit(inputs, np.ravel(tuples))
    np.testing.assert_allclose(np.concatenate(model.predict_proba(X)), peer.predict_proba(inputs), atol=1e-9)
    np.testing.assert_allclose(model.clique_scores(X)[0].scores, peer.predict_log_proba(inputs), atol=1e-9)
    row = model.predict_marginals(X)[0][0]
    assert list(row) == ["a", "b", "c"]
    assert sum(row.values()) == pytest.approx(1.0)


def test_types_with_one_tuple_are_not_given_to_the_classifier() -> None:
    X, y = [np.eye(2)[:, :1], np.eye(2)[::-1, :1]], [["a", "b"], ["a", "b"]]
    model = ConditionalGraphicalModel(0, base_estimator=LogisticRegression(), tying="position").fit(X, y)
    assert [one.estimator for one in model.clique_models_.values()] == [None, None]
    assert model.predict(X) == y
    np.testing.assert_allclose(
        ConditionalGraphicalModel(0, base_estimator=GaussianNB(), tying="position", unseen="-inf")
        .fit(X, y)
        .predict_proba(X)[0],
        np.eye(2),
    )


def test_weights_and_seeds_reach_the_classifier() -> None:
    X, y = words(n=20)
    weights = np.linspace(0.1, 2.0, 20)
    model = ConditionalGraphicalModel(0, base_estimator=LogisticRegression(), unseen="-inf").fit(X, y, weights)
    inputs, tuples = windows(X, y, 1)
    each = np.repeat(weights, [len(row) for row in X])
    peer = LogisticRegression().fit(inputs, np.ravel(tuples), sample_weight=each)
    np.testing.assert_allclose(model.clique_scores(X)[0].scores, peer.decision_function(inputs), atol=1e-9)
    forest = RandomForestClassifier(5)
    first, again, other = (
        ConditionalGraphicalModel(1, base_estimator=forest, random_state=seed).fit(X, y).clique_scores(X)[1].scores
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert forest.random_state is None


def test_tied_separately_needs_only_a_classifier_of_nodes() -> None:
    X, y = words(n=20)
    model = ConditionalGraphicalModel(1, base_estimator=LinearSVC(), features="tied_separately", unseen="-inf")
    model.fit(X, y)
    inputs, tuples = windows(X, y, 1)
    values = LinearSVC().fit(inputs, np.ravel(tuples)).decision_function(inputs)
    table, first = model.clique_scores(X)[1], np.concatenate([[0], np.cumsum([len(row) for row in X])])
    at = first[table.examples]
    expected = (
        values[at + table.nodes[:, 0]][:, table.tuples[:, 0]] + values[at + table.nodes[:, 1]][:, table.tuples[:, 1]]
    )
    np.testing.assert_allclose(table.scores, expected)


def test_what_is_no_classifier_is_refused() -> None:
    X, y = words(n=20)
    with pytest.raises(ValueError, match="must be a classifier with a fit method"):
        ConditionalGraphicalModel(base_estimator="svm").fit(X, y)
    with pytest.raises(ValueError, match="must have decision_function or predict_proba"):
        ConditionalGraphicalModel(0, base_estimator=LinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match=r"must have predict_proba. Got LinearSVC"):
        ConditionalGraphicalModel(0, base_estimator=LinearSVC(), response_method="predict_proba").fit(X, y)
    with pytest.raises(ValueError, match="must have a column for each of the"):
        ConditionalGraphicalModel(1, base_estimator=SVC(decision_function_shape="ovo")).fit(X, y).predict(X)
