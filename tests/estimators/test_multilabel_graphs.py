"""Several labels as graphs whose edges are pairs of labels: two solvers find one optimum, on scene and without data."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from benchmarks.multilabel import GRAPHS, as_graphs, edges_of
from dualfield import CRF
from dualfield.structures import Graph
from tests.estimators.test_graphical_multilabel import scene

BOTH = pytest.mark.parametrize("graph", GRAPHS)


def made() -> tuple[np.ndarray, np.ndarray]:
    """Labels that depend on the input, and on each other: a sum of what all pairs and nodes like, drawn exactly."""
    rng = np.random.default_rng(0)
    X, every = rng.normal(size=(150, 12)), np.array(list(itertools.product([0, 1], repeat=5)))
    pairs = np.triu(rng.normal(size=(5, 5)), 1)
    scores = X @ rng.normal(size=(12, 5)) @ every.T + np.einsum("ya,ab,yb->y", every, pairs, every)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return X, every[[rng.choice(len(every), p=row) for row in chances]]


def check_one_optimum(X: np.ndarray, Y: np.ndarray, graph: str, C: float) -> Any:
    """Block exponentiated gradients and L-BFGS agree to 1e-5, and each one's certificate holds for the other."""
    given = as_graphs(X, Y.shape[1], edges_of(graph, Y))
    found = [
        CRF(Graph(), C=C, features="all", solver=solver, tol=1e-6).fit(given, Y) for solver in ("block_dual", "lbfgs")
    ]
    assert [model.solver_ for model in found] == ["block_dual", "lbfgs"]
    values = [model.objective_ for model in found]
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    for model in found:
        assert 0.0 <= model.dual_gap_ <= 2e-6 * model.objective_
        assert model.objective_ - model.dual_gap_ <= min(values) * (1 + 1e-12)
    return found[0]


@BOTH
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_block_updates_and_lbfgs_agree(graph: str, C: float) -> None:
    X, Y = made()
    model = check_one_optimum(X, Y, graph, C)
    assert model.structure_.n_types == max(1, {"independent": 0, "tree": 4, "all pairs": 10}[graph])


@BOTH
def test_block_updates_and_lbfgs_agree_on_scene(graph: str) -> None:
    X, Y, _, _ = scene()
    check_one_optimum(X, Y, graph, 0.01)


def test_a_node_has_the_input_in_a_block_of_its_own() -> None:
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    graphs = as_graphs(X, 2, [(0, 1)])
    assert graphs.nodes.toarray().tolist() == [
        [1.0, 2.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 2.0, 1.0],
        [3.0, 4.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 3.0, 4.0, 1.0],
    ]
    assert np.asarray(graphs.edges).tolist() == [[0, 1], [0, 1]]
