"""Which solver trees and graphs get: by counts of weights, nodes and passes."""

import numpy as np
import pytest

from dualfield import CRF, StructuredSVM
from tests.solvers.test_clique_swap import pictures


def words(n_examples=20, seed=0):
    """Trees whose nodes have attributes of their own."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_examples):
        labels = rng.integers(3, size=8)
        X.append(
            ([[f"{label}{rng.integers(40)}"] for label in labels], [-1, *(int(rng.integers(t)) for t in range(1, 8))])
        )
        y.append(labels)
    return X, y


def test_few_shared_weights_are_for_lbfgs():
    X, y = pictures(n_examples=40)  # 18 weights, 480 nodes
    model = CRF("graph", C=1.0, features="all").fit(X, y)
    assert model.n_features_ * 20 <= 40 * 12
    assert model.solver_ == "lbfgs"


def test_many_weights_are_for_block_dual_ascent():
    assert CRF("tree", C=1.0).fit(*words()).solver_ == "block_dual"


def test_features_of_edges_are_for_block_dual_ascent():
    X, y = pictures(n_examples=4)
    rng = np.random.default_rng(0)
    X = [(nodes, edges, np.zeros(len(edges), int), rng.normal(size=(len(edges), 2))) for nodes, edges in X]
    assert CRF("graph", C=0.1, features="all").fit(X, y).solver_ == "block_dual"


def test_slow_ascents_are_handed_over():
    """Two dense columns that are nearly the same, and a large C: more than a hundred passes."""
    rng = np.random.default_rng(0)
    X, y = pictures(n_examples=10)
    X = [(np.column_stack([nodes, 5.0 + 0.1 * rng.normal(size=(len(nodes), 5))]), edges) for nodes, edges in X]
    model = CRF("graph", C=30.0, features="all").fit(X, y)
    assert model.n_features_ * 20 > 120
    assert model.solver_ == "lbfgs"


@pytest.mark.parametrize(("structure", "data"), [("tree", words), ("graph", pictures)])
def test_the_hinge_is_for_swaps(structure, data):
    assert StructuredSVM(structure, C=0.1).fit(*data()).solver_ == "flow_swap"
