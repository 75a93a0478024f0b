"""Fitted conditional graphical models of every kind that can be saved, and what to ask them."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse

from dualfield import ConditionalGraphicalModel
from dualfield.structures import Chain, Graph, Tree
from tests.estimators.graph_problems import graphs, trees
from tests.estimators.saved_models import same
from tests.estimators.test_graphical_fixed import data
from tests.estimators.test_graphical_optimum import words


def _arrays(y):
    return [np.array(["abc".index(label) for label in row]) for row in y]


def _sparse(X):
    return [scipy.sparse.csr_array(row) for row in X]


def _single(X):
    return [row.astype(np.float32) for row in X]


def _frame(X):
    import pandas

    return pandas.DataFrame(X, columns=["a", "größe", "c"])


# name: parameters, how to make X, how to make y
SEQUENCES = {
    "hinge": (lambda: {"C": np.float64(2.0)}, same, same),
    "log": (lambda: {"graph": 2, "loss": "log"}, same, same),
    "nodes": (lambda: {"graph": 0, "loss": "log", "kernel": "poly", "degree": 2, "coef0": 1.0}, same, same),
    "chain": (lambda: {"graph": Chain(3, 1), "loss": "squared"}, same, same),
    "position": (lambda: {"tying": "position", "unseen": "-inf", "loss": "squared"}, same, same),
    "padding": (lambda: {"padding": (1, 2), "unseen": -0.5, "loss": "log"}, same, same),
    "tied": (lambda: {"features": "tied", "padding": (1, 0)}, same, same),
    "tied separately": (lambda: {"features": "tied_separately", "loss": "log"}, same, same),
    "tied printed": (lambda: {"features": "tied_printed", "loss": "squared"}, same, same),
    "combined": (lambda: {"graph": 2, "combine": {0: 1.0, 2: 0.5}, "backoff_cost": 0.1, "loss": "log"}, same, same),
    "sparse": (lambda: {"loss": "squared", "gamma": "scale"}, _sparse, same),
    "single precision": (lambda: {"loss": "log", "gamma": 0.3, "kernel": "laplacian"}, _single, same),
    "ints": (lambda: {"loss": "squared", "random_state": np.random.RandomState(0)}, same, _arrays),
    "one label": (lambda: {"loss": "log"}, same, lambda y: [["a" for _ in row] for row in y]),
}
# name: parameters, whether all nodes share a row, how to make X, how to make y
GRAPHS = {
    "tree": (lambda: {"graph": "tree", "loss": "log"}, True, same, same),
    "pairs": (lambda: {"graph": [(0, 1), (1, 2), (2, 0), (3, 1)]}, False, same, same),
    "triples": (lambda: {"graph": [(0, 2, 1), (3,)], "unseen": "-inf", "loss": "squared"}, True, same, same),
    "shared": (lambda: {"graph": [(0, 1), (2, 3)], "tying": "shared", "loss": "log"}, False, same, same),
    "combined": (lambda: {"graph": "tree", "combine": {0: 1.0, 1: 0.6}, "loss": "log"}, True, same, same),
    "tied": (lambda: {"graph": [(0, 1), (2, 3)], "features": "tied"}, True, same, same),
    "tied printed": (lambda: {"graph": [(0, 1), (2, 3)], "features": "tied_printed"}, True, same, same),
    "sparse": (lambda: {"graph": [(0, 1, 2, 3)], "loss": "log"}, True, scipy.sparse.csr_matrix, same),
    "str": (lambda: {"graph": "tree", "loss": "squared"}, True, same, lambda y: np.array(["no", "yes"])[y]),
    "bool": (lambda: {"graph": "tree", "loss": "log"}, True, same, lambda y: y == 1),
    "names": (lambda: {"graph": "tree", "loss": "squared"}, True, _frame, same),
}


# name: parameters, how to make X and y
SHAPES = {
    "trees": (lambda: {"graph": Tree(), "loss": "log"}, trees),
    "graphs": (lambda: {"graph": Graph(n_types=3, budget=10**6), "loss": "log", "unseen": "-inf"}, graphs),
    "shared": (lambda: {"graph": Graph(3, 2), "tying": "shared", "combine": {0: 1.0, 1: 0.5}}, graphs),
    "bounds": (lambda: {"graph": Graph(inference="trw", neighbours=8), "loss": "squared"}, graphs),
    "tied": (lambda: {"graph": Tree(), "features": "tied", "unseen": -0.5}, trees),
    "tied printed": (lambda: {"graph": Tree(), "features": "tied_printed", "loss": "squared"}, trees),
}


@cache
def tagger(name):
    """A fitted model of sequences."""
    settings, make_X, make_y = SEQUENCES[name]
    X, y = words(n=20)
    return ConditionalGraphicalModel(**{"random_state": 0, **settings()}).fit(make_X(X), make_y(y))


def unseen_by(name):
    """Sequences that it has not seen, of lengths that it has seen and of others."""
    X = words(5, n=6)[0]
    longer = [] if name == "position" else [np.concatenate(X[:2]), X[0][:1], X[0][:0]]
    return SEQUENCES[name][1](X + longer)


@cache
def labeller(name):
    """A fitted model of outputs of fixed size."""
    settings, shared, make_X, make_y = GRAPHS[name]
    X, y = data(shared=shared)
    return ConditionalGraphicalModel(**{"random_state": 0, **settings()}).fit(make_X(X), make_y(y))


def rows(name):
    """Inputs that it has not seen."""
    return GRAPHS[name][2](data(7, 6, shared=GRAPHS[name][1])[0])


@cache
def connected(name):
    """A fitted model of trees or graphs."""
    settings, make = SHAPES[name]
    return ConditionalGraphicalModel(**{"random_state": 0, **settings()}).fit(*make(0, 10))


def shapes(name):
    """Trees or graphs that it has not seen."""
    return SHAPES[name][1](5, 6)[0]


def forget():
    """Let go of the models: native objects that outlive the interpreter are reported as leaks."""
    for kept in (tagger, labeller, connected):
        kept.cache_clear()
