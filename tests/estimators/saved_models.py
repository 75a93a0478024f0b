"""Fitted models of every kind that can be saved, and files of them that were tampered with by someone who knows how."""

from __future__ import annotations

import copy
import warnings
from functools import cache

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from dualfield import CRF, KernelLogisticRegression
from dualfield.estimators import crfsuite
from dualfield.features import Template
from dualfield.persistence.file import open_model
from dualfield.solvers import LBFGS, SGD, BlockDual, NewtonCG, Perceptron
from dualfield.structures import Chain
from tests.estimators.mutations import Forger
from tests.estimators.problems import clouds
from tests.estimators.tagging import matrices, sentences, vocabulary

CRFPP = "# words\nU0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB0:%x[0,0]\nB\n"
WAPITI = 'u:%X[0,0]\nu:%t[0,0,"^[a-d]"]\n*:%x[-1,0]\nb\n'
UNKNOWN = [[["w=new", "last=w"], ["first"], ["w=dog", "Größe", "w=dog"]], [], [["only new"]]]


def words(X):
    """The raw words of sentences of attributes."""
    return [[(item[0].removeprefix("w="),) for item in xs] for xs in X]


def coded(y, kind):
    codes = {"O": 0, "B-N": 1, "I-N": 2}
    return [[kind(codes[label]) for label in ys] for ys in y]


def weighted(X):
    return [[{name: 0.5 + len(name) for name in item} for item in xs] for xs in X]


def partly(y):
    return [[None if t % 3 == 2 else {"O", label} if t % 3 == 1 else label for t, label in enumerate(ys)] for ys in y]


def _dense(X):
    names = vocabulary(sentences()[0])
    return [m + 0.01 for m in matrices(X, names)]


def _sparse(X):
    return [scipy.sparse.csr_array(m) for m in matrices(X, vocabulary(sentences()[0]))]


PAIRS_ALLOWED = np.array([[True, True, True], [True, True, True], [True, False, True]])
COST = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5], [2.0, 1.0, 0.0]])


def same(X):
    return X


# name: parameters, how to make X of sentences, how to make y of labels. Parameters are made when they are needed:
# native objects that outlive the interpreter are reported as leaks.
TAGGERS = {
    "attributes": (dict, same, same),
    "weighted": (lambda: {"C": np.float64(3.0)}, weighted, same),
    "order 2": (lambda: {"structure": Chain(order=2)}, same, same),
    "order 3": (lambda: {"structure": Chain(order=3), "max_iter": 30}, same, same),
    "own chain": (lambda: {"structure": Chain(3, 1, PAIRS_ALLOWED, [True, False, True])}, same, same),
    "order 2 listed": (
        lambda: {"structure": Chain(3, 2, np.argwhere(np.ones((3, 3, 3))).astype(np.int32)), "max_iter": 30},
        same,
        same,
    ),
    "BIO": (lambda: {"constraints": "BIO", "start_stop": True}, same, same),
    "order 2 BIO": (lambda: {"structure": Chain(order=2), "constraints": "BIO"}, same, same),
    "matrix": (lambda: {"constraints": PAIRS_ALLOWED}, same, same),
    "pairs": (lambda: {"pair_features": True}, same, same),
    "some pairs": (lambda: {"pair_features": ["w=", "first"]}, same, same),
    "pairs of columns": (lambda: {"pair_features": [0, 3]}, _dense, same),
    "all features": (lambda: {"features": "all", "start_stop": True}, same, same),
    "min_freq": (lambda: {"min_freq": 3}, same, same),
    "CRF++": (lambda: {"template": CRFPP}, words, same),
    "Wapiti": (lambda: {"template": Template(WAPITI)}, words, same),
    "template without transitions": (lambda: {"template": "U:%x[0,0]"}, words, same),
    "l1": (lambda: {"l1_ratio": 0.7}, same, same),
    "int": (dict, same, lambda y: coded(y, int)),
    "bool": (dict, same, lambda y: coded(y, bool)),
    "arrays": (dict, same, lambda y: [np.array(ys) for ys in y]),
    "dense": (dict, _dense, same),
    "sparse": (dict, _sparse, same),
    "partly labelled": (lambda: {"solver": LBFGS(memory=4)}, same, partly),
    "cost": (lambda: {"cost": COST, "temperature": 0.5, "class_weight": {"O": 0.5, "I-N": 2.0, "B-N": 1}}, same, same),
    "hamming": (lambda: {"cost": "hamming", "class_weight": "balanced"}, same, same),
    "sgd": (lambda: {"solver": SGD(n_epochs=3)}, same, same),
    "perceptron": (lambda: {"solver": Perceptron(), "max_iter": 3}, same, same),
    "block dual": (lambda: {"solver": BlockDual(memory=1e8), "n_jobs": 2}, same, same),
    "generator": (lambda: {"random_state": np.random.RandomState(3)}, same, same),
}


def unseen(name):
    """Sentences that the model has not seen, with attributes that it has not seen."""
    change = (TAGGERS[name] if name in TAGGERS else TAGGERS["attributes"])[1]
    X = sentences(12, seed=7)[0]
    return change(X) if change in (_dense, _sparse) else change(X + UNKNOWN)


@cache
def tagger(name):
    """A fitted CRF."""
    settings, make_X, make_y = TAGGERS[name]
    X, y = sentences()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CRF(**{"random_state": 0, **settings()}).fit(make_X(X), make_y(y))


@cache
def drop_in():
    X, y = sentences()
    return crfsuite.CRF(c1=0.1, c2=0.1, max_iterations=20, all_possible_transitions=True).fit(X, y, X, y)


def frame(X):
    import pandas

    return pandas.DataFrame(X, columns=["größe", "y"])


LABEL_KERNEL = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]])
# name: parameters, number of classes, how to make X of points, how to make y of codes
CLASSIFIERS = {
    "binary": ({}, 2, same, same),
    "multiclass": ({"solver": NewtonCG(forcing=0.1)}, 3, same, same),
    "single precision": ({}, 3, lambda X: X.astype(np.float32), same),
    "csr_matrix": ({"gamma": 0.5}, 2, scipy.sparse.csr_matrix, same),
    "csr_array": ({"gamma": "auto"}, 3, lambda X: scipy.sparse.csr_array(X.astype(np.float32)), same),
    "precomputed": ({"kernel": "precomputed"}, 2, lambda X: X @ X.T, same),
    "poly": ({"kernel": "poly", "degree": 2, "coef0": 1.0}, 2, same, same),
    "laplacian": ({"kernel": "laplacian"}, 3, same, same),
    "inducing": ({"kernel_approx": 10, "tol": 0.5, "random_state": 0}, 2, same, same),
    "given points": ({"kernel_approx": np.linspace(-2, 2, 16).reshape(8, 2), "tol": 0.5}, 3, same, same),
    "label kernel": ({"label_kernel": LABEL_KERNEL, "solver": "newton"}, 3, same, same),
    "weights": ({"class_weight": {0: 1.0, 1: 2.0}, "fit_intercept": False}, 2, same, same),
    "str": ({}, 3, same, lambda y: np.array(["b", "größer", "a"])[y]),
    "objects": ({}, 2, same, lambda y: np.array(["b", "a"], dtype=object)[y]),
    "bool": ({}, 2, same, lambda y: y == 1),
    "int8": ({}, 3, same, lambda y: y.astype(np.int8)),
    "float": ({}, 2, same, lambda y: y - 0.0),
    "names": ({}, 2, frame, same),
}


@cache
def classifier(name):
    """A fitted KernelLogisticRegression."""
    settings, n_classes, make_X, make_y = CLASSIFIERS[name]
    problem = clouds(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KernelLogisticRegression(**settings).fit(make_X(problem.X), make_y(problem.y))


def points(name):
    """Points that the model has not seen."""
    problem, fresh = clouds(CLASSIFIERS[name][1]), clouds(CLASSIFIERS[name][1], 12, seed=5)
    return fresh.X @ problem.X.T if name == "precomputed" else CLASSIFIERS[name][2](fresh.X)


def forget():
    """Let go of the models, for the same reason."""
    for kept in (tagger, classifier, drop_in):
        kept.cache_clear()


def equal(a, b) -> bool:
    """Whether two values are the same, to the last bit where they are numbers."""
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if scipy.sparse.issparse(a):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and (a != b).nnz == 0
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, float) and a != a:
        return isinstance(b, float) and b != b
    return bool(a == b)


def rewritten(source, target, change):
    """Write a model file again after a change of its metadata and arrays, with digests that agree."""
    file = open_model(source)
    metadata = copy.deepcopy({name: value for name, value in file.metadata.items() if name != "tensors"})
    arrays = {name: array.values.copy() for name, array in file.arrays.items()}
    change(metadata, arrays)
    target.write_bytes(Forger.bytes_of(metadata, arrays))
    return target
