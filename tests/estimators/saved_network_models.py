"""Fitted Bayesian networks of every kind that can be saved, and what to ask them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dualfield import DiscriminativeBayesNet
from dualfield.solvers import Simplicial
from tests.estimators.saved_models import same
from tests.estimators.test_bayes_net_optimum import LOOPY, categorical, table

NAMES = np.array(["low", "größer", "top", "far", "end"])
OWN = [(0, ["class"]), (1, ["class", 0]), (2, [1])]


def _frame(X: Any) -> Any:
    import pandas

    return pandas.DataFrame({"a": NAMES[X[:, 0]], "größe": X[:, 1], "c": X[:, 2] == 1, "d": X[:, 3] / 4})


def _numbers(X: Any) -> Any:
    return (X / 2).astype(np.float32)


# name: parameters, how to make X, how to make y
CLASSIFIERS: dict[str, Any] = {
    "naive Bayes": (dict, same, same),
    "tan": (lambda: {"structure": "tan", "eta": 0.1}, same, lambda y: np.array(["b", "größer", "a"])[y]),
    "counts": (lambda: {"eta": 0.0}, lambda X: NAMES[X], lambda y: y == 1),
    "own": (lambda: {"structure": OWN, "prior": "count", "solver": Simplicial(n_blocks=2)}, same, same),
    "objects": (lambda: {"unknown": "error"}, lambda X: NAMES[X].astype(object), lambda y: y.astype(np.int8)),
    "shared": (lambda: {"shared": {"x": [0, 2]}, "smoothing": np.float64(0.5)}, _numbers, same),
    "costs": (lambda: {"loss": np.array([[0.0, 1, 2], [1, 0, 1], [3, 1, 0]]), "hidden": ["class"]}, same, same),
    "categories": (lambda: {"categories": [[2, 1, 0], range(6), [0, 1], list(range(5))]}, same, same),
    "tables": (lambda: {"prior": [np.ones((3, 3)), np.ones((3, 4)), np.ones((3, 2)), np.ones((3, 5)), [1, 2, 3]]}, same,
               same),
    "one class": (dict, same, lambda y: y * 0),
    "frame": (dict, _frame, same),
}  # fmt: skip
# name: parameters, how to make X, which cells are hidden in training
TABLES: dict[str, Any] = {
    "columns": (lambda: {"hidden": [1, 3], "eta": 0.1}, same, None),
    "cells": (lambda: {"eta": 0.1}, lambda X: NAMES[X], "cells"),
    "numbers": (lambda: {"eta": 0.0}, lambda X: X.astype(float), None),
}


@cache
def network(name: str) -> DiscriminativeBayesNet:
    """A fitted classifier."""
    settings, make_X, make_y = CLASSIFIERS[name]
    X, y = categorical(60)
    settings = settings()
    if "categories" in settings:
        settings["categories"] = [np.array(values) for values in settings["categories"]]
    return DiscriminativeBayesNet(**settings).fit(make_X(X), make_y(y))


def rows(name: str) -> Any:
    """Rows that it has not seen."""
    return CLASSIFIERS[name][1](categorical(12, 5)[0])


@cache
def filler(name: str) -> DiscriminativeBayesNet:
    """A fitted model of tables."""
    settings, make_X, hidden = TABLES[name]
    X, cells = table(0, 30)
    return DiscriminativeBayesNet(LOOPY, **settings()).fit(make_X(X), hidden=None if hidden is None else cells)


def holes(name: str) -> Any:
    """Tables with cells that are missing."""
    X = TABLES[name][1](table(3, 12)[0])
    return np.where(np.random.default_rng(0).random(X.shape) < 0.3, None, X.astype(object))


def forget() -> None:
    """Let go of the models."""
    for kept in (network, filler):
        kept.cache_clear()
