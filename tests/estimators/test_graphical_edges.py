"""Training of conditional graphical models of trees and graphs: each type of edge is a problem of rows made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import ConditionalGraphicalModel, KernelLogisticRegression
from dualfield.structures import Graph, Tree
from tests.estimators.graph_problems import edges_of, graphs, inputs_of, trees
from tests.estimators.test_graphical_optimum import coded, crammer_singer, root

MAKE = {"tree": (trees, Tree()), "graph": (graphs, Graph())}


def rows(X: list[Any], y: list[list[str]], weights: Any = None) -> dict[tuple[int, int], tuple[Any, Any, Any]]:
    """Inputs, label tuples and weights of all nodes, and of all edges by type; the node it comes from first."""
    found: dict[tuple[int, int], tuple[list[Any], list[Any], list[float]]] = {}
    for i, (x, labels) in enumerate(zip(X, y, strict=True)):
        pairs, types, own = edges_of(x)
        cliques: list[Any] = [((1, 0), (node,), None) for node in range(len(labels))]
        cliques += [((2, types[at]), pair, None if own is None else own[at]) for at, pair in enumerate(pairs)]
        for key, clique, row in cliques:
            inputs, tuples, each = found.setdefault(key, ([], [], []))
            inputs.append(inputs_of(x, clique, row)[0])
            tuples.append(tuple(labels[node] for node in clique))
            each.append(1.0 if weights is None else weights[i])
    return {key: (np.array(one[0]), one[1], np.array(one[2])) for key, one in found.items()}


@pytest.mark.parametrize("kind", MAKE)
def test_log_loss_is_kernel_logistic_regression_of_the_pairs_of_a_type(kind: str) -> None:
    make, structure = MAKE[kind]
    X, y = make(0)
    model = ConditionalGraphicalModel(structure, loss="log", C=4.0, tol=1e-8).fit(X, y)
    problems = rows(X, y)
    assert sorted(model.clique_models_) == sorted(problems) == [(1, 0), (2, 0), (2, 1)]
    total = 0.0
    for key, (inputs, tuples, _) in problems.items():
        one = model.clique_models_[key]
        peer = KernelLogisticRegression(gamma=8.0 / inputs.shape[1], C=4.0, fit_intercept=False, tol=1e-8)
        peer.fit(inputs, ["".join(t) for t in tuples])
        assert ["".join(model.classes_[t]) for t in one.tuples] == peer.classes_.tolist()
        assert one.objective == pytest.approx(peer.objective_, rel=1e-7)
        assert 0 <= one.dual_gap <= 1e-8 * one.objective
        scores = rbf_kernel(inputs, one.points, 8.0 / inputs.shape[1]) @ one.coefficients
        expected = peer.predict_log_proba(inputs)
        found = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(found, expected, atol=1e-3)
        total += peer.objective_
    assert model.objective_ == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("kind", MAKE)
def test_squared_loss_is_kernel_ridge(kind: str) -> None:
    make, structure = MAKE[kind]
    X, y = make(1)
    weights = np.random.default_rng(0).uniform(0.2, 2.0, len(X))
    model = ConditionalGraphicalModel(structure, loss="squared", C=3.0).fit(X, y, weights)
    for key, (inputs, tuples, each) in rows(X, y, weights).items():
        one, (seen, truth) = model.clique_models_[key], coded(tuples)
        peer = KernelRidge(alpha=1 / 3.0, kernel="rbf", gamma=8.0 / inputs.shape[1])
        peer.fit(inputs, np.eye(len(seen))[truth], sample_weight=each)
        found = rbf_kernel(inputs, one.points, 8.0 / inputs.shape[1]) @ one.coefficients
        np.testing.assert_allclose(found, peer.predict(inputs), atol=1e-9)


@pytest.mark.parametrize("kind", MAKE)
def test_hinge_is_that_of_crammer_and_singer(kind: str) -> None:
    make, structure = MAKE[kind]
    X, y = make(2, 7)
    model = ConditionalGraphicalModel(structure, C=2.0, tol=1e-6).fit(X, y)
    best = 0.0
    for inputs, tuples, each in rows(X, y).values():
        seen, truth = coded(tuples)
        if len(seen) == 1:
            continue
        half, q = root(rbf_kernel(inputs, gamma=8.0 / inputs.shape[1])), len(seen)
        features = np.einsum("ip,oc->iocp", half, np.eye(q)).reshape(len(half), q, -1)
        best += crammer_singer(features, truth, 2.0 * each)
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    assert model.objective_ - model.dual_gap_ <= best * (1 + 1e-7)


def test_classifiers_of_others_get_the_same_rows() -> None:
    X, y = graphs(3)
    model = ConditionalGraphicalModel(Graph(), base_estimator=LogisticRegression(C=2.0), unseen=-9.0).fit(X, y)
    table = model.clique_scores(X)[1]
    types = np.concatenate([x[2] for x in X])
    for kind in (0, 1):
        inputs, tuples, _ = rows(X, y)[2, kind]
        seen, truth = coded(tuples)
        peer = LogisticRegression(C=2.0).fit(inputs, truth)
        names = [tuple(model.classes_[list(t)]) for t in table.tuples]
        columns = [names.index(t) for t in seen]
        np.testing.assert_allclose(table.scores[types == kind][:, columns], peer.decision_function(inputs), atol=1e-6)
    assert np.isnan(model.objective_)
    assert model.status_ is None
