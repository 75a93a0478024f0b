"""Fitted structural SVMs and models with latent variables, of every kind that can be saved, and what to ask them."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import scipy.sparse

from dualfield import (
    CRF,
    LatentChain,
    LatentCRF,
    LatentMulticlass,
    LatentPosition,
    LatentStructuredSVM,
    StructuredSVM,
)
from dualfield.solvers import CuttingPlane, FlowSwap
from dualfield.structures import Chain
from tests.estimators.problems import clouds
from tests.estimators.saved_models import (
    COST,
    CRFPP,
    PAIRS_ALLOWED,
    UNKNOWN,
    coded,
    frame,
    same,
    sentences,
    words,
)
from tests.estimators.tagging import matrices, vocabulary


def _dense(X):
    return [m + 0.01 for m in matrices(X, vocabulary(sentences()[0]))]


def _items(X):
    return X + UNKNOWN


# name: parameters, how to make X of sentences, how to make y of labels
MACHINES = {
    "attributes": (dict, same, same),
    "calibrated": (lambda: {"constraints": "BIO", "start_stop": True}, same, same),
    "template": (lambda: {"template": CRFPP, "cost": COST}, words, same),
    "order 2": (lambda: {"structure": Chain(order=2), "tol": 0.1}, same, same),
    "pairs": (lambda: {"pair_features": True, "constraints": PAIRS_ALLOWED, "tol": 0.1}, same, same),
    "positive": (lambda: {"positive": ["first", ("w=dog", "B-N")], "tol": 0.1}, same, same),
    "slack": (lambda: {"rescaling": "slack", "solver": CuttingPlane(slack="n"), "tol": 0.1}, same, same),
    "flow swap": (lambda: {"solver": FlowSwap(), "random_state": np.random.RandomState(0)}, same, same),
    "dense": (lambda: {"positive": np.ones((3, 15), dtype=bool), "tol": 0.1}, _dense, same),
    "int": (dict, same, lambda y: [np.array(ys) for ys in coded(y, int)]),
}
CALIBRATED = ("calibrated", "template", "dense")


@cache
def machine(name):
    """A fitted StructuredSVM of sequences."""
    settings, make_X, make_y = MACHINES[name]
    X, y = sentences()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = StructuredSVM(**{"C": 0.3, "random_state": 0, **settings()}).fit(make_X(X), make_y(y))
    held_X, held_y = sentences(20, seed=5)
    return model.calibrate(make_X(held_X), make_y(held_y)) if name in CALIBRATED else model


def unseen_by(name):
    """Sentences that a machine has not seen."""
    make_X, X = MACHINES[name][1], sentences(12, seed=7)[0]
    return make_X(X) if make_X is _dense else make_X(_items(X))


# name: parameters, number of classes, how to make X of points, how to make y of codes
SINGLES = {
    "binary": ({}, 2, same, same),
    "cost": ({"cost": COST, "class_weight": {0: 2.0}}, 3, same, same),
    "positive": ({"positive": [0, (1, 2)], "rescaling": "slack"}, 3, same, same),
    "sparse": ({"C": np.float64(0.5)}, 3, scipy.sparse.csr_matrix, same),
    "str": ({}, 3, same, lambda y: np.array(["b", "größer", "a"])[y]),
    "objects": ({}, 2, same, lambda y: np.array(["b", "a"], dtype=object)[y]),
    "bool": ({}, 2, same, lambda y: y == 1),
    "int8": ({}, 3, same, lambda y: y.astype(np.int8)),
    "float": ({}, 2, same, lambda y: y - 0.0),
    "names": ({}, 2, frame, same),
}


@cache
def single(name):
    """A fitted and calibrated StructuredSVM of single nodes."""
    settings, n_classes, make_X, make_y = SINGLES[name]
    problem, held_out = clouds(n_classes), clouds(n_classes, 30, seed=4)
    model = StructuredSVM("single", random_state=0, tol=0.1, **settings).fit(make_X(problem.X), make_y(problem.y))
    return model.calibrate(make_X(held_out.X), make_y(held_out.y))


def rows(name):
    """Points that it has not seen."""
    return SINGLES[name][2](clouds(SINGLES[name][1], 12, seed=5).X)


def bags(seed=0, n=12):
    """Bags of one to three rows; those with a large number in them are labelled "yes"."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 4), 2)) for _ in range(n)]
    for i in range(0, n, 2):
        X[i][-1] += 4.0
    return X, ["no" if i % 2 else "yes" for i in range(n)]


def _groups():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 4)
    return X, np.array(["up or down", "left or right"] * 8)


def _named_bags():
    X, y = bags()
    return [[{"a": row[0], "b": row[1]} for row in bag] for bag in X], np.array([int(label == "yes") for label in y])


def _tagged():
    X, y = sentences()
    return words(X), y


def _svm(latent, **settings):
    base = StructuredSVM(C=settings.pop("C", 0.3), tol=0.05, **settings.pop("base", {}))
    return LatentStructuredSVM(base, latent, n_restarts=1, random_state=0, **settings)


# name: the model, its data, and inputs that it has not seen
LATENTS = {
    "chain": (
        lambda: _svm(LatentChain({"O": 3}), init="em", base={"constraints": "BIO", "start_stop": True}),
        sentences,
        lambda: _items(sentences(12, seed=7)[0]),
    ),
    "chain of columns": (
        lambda: _svm(LatentChain([1, 2, 1]), base={"template": CRFPP, "cost": COST}, anneal=True, max_iter=3),
        _tagged,
        lambda: words(_items(sentences(12, seed=7)[0])),
    ),
    "components": (
        lambda: _svm(LatentMulticlass(2), C=10.0, init=np.array([0, 0, 1, 1] * 4)),
        _groups,
        lambda: np.array([[0.0, 3.0], [-2.0, 0.1]]),
    ),
    "bags": (lambda: _svm(LatentPosition("no"), C=10.0), bags, lambda: bags(1)[0]),
    "bags of attributes": (
        lambda: _svm(LatentPosition(intercept=False), C=10.0),
        _named_bags,
        lambda: [[{"a": 5.0, "c": 1.0}, {"b": -1.0}], [{"a": 0.1}]],
    ),
    "defaults": (
        lambda: LatentStructuredSVM(random_state=0, n_restarts=1, max_iter=2),
        sentences,
        lambda: _items(sentences(12, seed=7)[0]),
    ),
    "CRF": (
        lambda: LatentCRF(CRF(C=0.3, pair_features=["w="]), LatentChain(2), n_restarts=2, random_state=0),
        sentences,
        lambda: _items(sentences(12, seed=7)[0]),
    ),
    "CRF by EM": (
        lambda: LatentCRF(CRF(C=10.0), LatentMulticlass(2), solver="em", n_restarts=1, random_state=0),
        _groups,
        lambda: np.array([[0.0, 3.0], [-2.0, 0.1]]),
    ),
}


@cache
def latent(name):
    """A fitted model with latent variables."""
    make, data, _ = LATENTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().fit(*data())


def forget():
    """Let go of the models: native objects that outlive the interpreter are reported as leaks."""
    for kept in (machine, single, latent):
        kept.cache_clear()
