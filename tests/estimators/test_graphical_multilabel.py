"""Several labels for each example: trees and lists of cliques, on data made here and on pictures of scenes."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualfield import ConditionalGraphicalModel, KernelLogisticRegression

NODES = [(node,) for node in range(6)]
PAIRS = list(itertools.combinations(range(6), 2))


def tied_labels(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels on a star: 1, 2 and 3 differ from label 0 in one of ten examples, and none has clear features but 0."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, size=n)
    others = first[:, None] ^ (rng.random((n, 3)) < 0.1)
    y = np.column_stack([first, others])
    X = np.column_stack([4.0 * first, 1.2 * others]) + rng.normal(size=(n, 4))
    return X, y


def errors(predicted: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Hamming error and subset accuracy."""
    return float((predicted != y).mean()), float((predicted == y).all(axis=1).mean())


def given_a_node_for_each_label(model: ConditionalGraphicalModel) -> tuple[float, float]:
    X, y = tied_labels(0, 150)
    test, truth = tied_labels(1, 400)
    rows, more = X[:, :, None], test[:, :, None]  # a node knows its own number only
    return errors(model.fit(rows, y).predict(more), truth)


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_a_tree_uses_what_its_neighbours_say(loss: Any) -> None:
    settings: dict[str, Any] = {"loss": loss, "C": 1.0, "gamma": 0.5, "random_state": 0}
    alone = given_a_node_for_each_label(ConditionalGraphicalModel([(0,), (1,), (2,), (3,)], **settings))
    tree = ConditionalGraphicalModel("tree", **settings)
    together = given_a_node_for_each_label(tree)
    star = given_a_node_for_each_label(ConditionalGraphicalModel([(1, 0), (0, 2), (0, 3)], **settings))
    assert {frozenset(edge) for edge in tree.graph_} == {frozenset({0, node}) for node in (1, 2, 3)}
    assert together[0] < 0.7 * alone[0]
    assert together[1] > alone[1] + 0.2
    assert abs(star[0] - together[0]) < 0.02


def scene() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    folder = os.environ.get("DUALFIELD_DATA")
    path = Path(folder or "", "scene_multilabel.npz")
    if not folder or not path.exists():
        pytest.skip("scene_multilabel.npz is not in $DUALFIELD_DATA")
    with np.load(path) as file:
        X, Y, train, test = (file[name] for name in ("X", "Y", "train_idx", "test_idx"))
    return X[train].astype(float), Y[train].astype(int), X[test].astype(float), Y[test].astype(int)


class Separate:
    """A model of its own for each label, as people do without structure."""

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Separate:
        self.models = [KernelLogisticRegression(C=300.0, gamma=16 / 294).fit(X, column) for column in Y.T]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.column_stack([model.predict(X) for model in self.models])


def cliques(graph: Any, loss: Any, C: float, **more: Any) -> ConditionalGraphicalModel:
    return ConditionalGraphicalModel(graph, loss=loss, C=C, gamma=32 / 294, random_state=0, **more)


# The table of the guide: Hamming error and subset accuracy. C and gamma were chosen by the Hamming error of three folds
# of the training part.
SCENE = {
    "separate": (Separate, 0.080, 0.641),
    "hinge nodes": (lambda: cliques(NODES, "hinge", 1.0), 0.082, 0.643),
    "hinge tree": (lambda: cliques("tree", "hinge", 1.0), 0.081, 0.686),
    "hinge pairs": (lambda: cliques(PAIRS, "hinge", 1.0), 0.078, 0.692),
    "hinge all": (lambda: cliques([tuple(range(6))], "hinge", 1.0, unseen="-inf"), 0.081, 0.720),
    "log nodes": (lambda: cliques(NODES, "log", 300.0), 0.083, 0.647),
    "log tree": (lambda: cliques("tree", "log", 10.0), 0.081, 0.675),
    "log pairs": (lambda: cliques(PAIRS, "log", 100.0), 0.080, 0.687),
    "log all": (lambda: cliques([tuple(range(6))], "log", 100.0, unseen="-inf"), 0.082, 0.715),
}


@pytest.mark.parametrize("name", SCENE)
def test_figures_of_the_guide(name: str) -> None:
    make, hamming, subset = SCENE[name]
    X, Y, test, truth = scene()
    found = errors(make().fit(X, Y).predict(test), truth)
    # A few of the 1196 pictures are decided by the last digits of a fit that stops at a gap.
    assert found[0] == pytest.approx(hamming, abs=2e-3)
    assert found[1] == pytest.approx(subset, abs=6e-3)
