"""From a data set to a training and a test set: splits, the subsets of quick runs, and scaling."""

from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from dualfield.datasets import BenchmarkData
from reproductions.records import Settings

Rows = NDArray[np.int64]
_QUICK_TRAIN, _QUICK_TEST = 60, 80


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Training examples (n, n_features) and test examples, dense, with their labels."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]


def official_split(data: BenchmarkData) -> tuple[Rows, Rows]:
    """Return the rows of the split that the data set brings along, or say that it brings none."""
    if data.train is None or data.test is None:
        raise click.UsageError(f"The data set '{data.name}' must hold train_idx and test_idx, the rows of its split.")
    return data.train, data.test


def random_split(data: BenchmarkData, n_train: int, n_test: int, settings: Settings) -> tuple[Rows, Rows]:
    """Draw a split of the paper's sizes, with about the same shares of classes on both sides."""
    if settings.quick:
        n_train, n_test = _QUICK_TRAIN, _QUICK_TEST
    need_rows(data, n_train + n_test)
    order = stratified_order(data.y, np.random.default_rng(settings.seed))
    return order[:n_train], order[n_train : n_train + n_test]


def need_rows(data: BenchmarkData, n: int) -> None:
    """Say it when a data set is too small."""
    if len(data.y) < n:
        raise click.UsageError(f"The data set '{data.name}' has {len(data.y)} rows; this reproduction needs {n}.")


def prepare(X: Any, y: NDArray[Any], train: Rows, test: Rows, settings: Settings) -> Problem:
    """Take the rows of a split, fewer in a quick run, and bring features to mean 0 and variance 1.

    The scale is that of the training rows; a feature that is constant there is only centred.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        All examples.
    y : ndarray of shape (n,)
        Their labels.
    train, test : ndarray of int
        The rows of the split.
    settings : Settings
        A quick run takes 60 rows for training and 80 for testing.

    Returns
    -------
    Problem
        Dense arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.problems import prepare
    >>> from reproductions.records import Settings
    >>> X, y = np.array([[0.0], [2.0], [4.0]]), np.array(["a", "b", "a"])
    >>> prepare(X, y, np.array([0, 1]), np.array([2]), Settings()).X_test.tolist()
    [[3.0]]
    """
    if settings.quick:
        rng = np.random.default_rng(settings.seed)
        train = train[stratified_order(y[train], rng)][:_QUICK_TRAIN]
        test = test[stratified_order(y[test], rng)][:_QUICK_TEST]
    inner, outer = X[train], X[test]
    scaler = StandardScaler().fit(inner)
    return Problem(scaler.transform(inner), y[train], scaler.transform(outer), y[test])


def stratified_order(y: NDArray[Any], rng: np.random.Generator) -> Rows:
    """Order examples at random so that every beginning has about the shares of classes of the whole.

    Parameters
    ----------
    y : ndarray of shape (n,)
        The labels.
    rng : Generator
        Decides which examples of a class come first.

    Returns
    -------
    ndarray of shape (n,)
        Indices into `y`.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.problems import stratified_order
    >>> y = np.array([0, 0, 0, 0, 1, 1])
    >>> y[stratified_order(y, np.random.default_rng(0))].tolist()
    [0, 1, 0, 0, 1, 0]
    """
    shuffled = rng.permutation(len(y))
    place = np.empty(len(y))
    for label in np.unique(y):
        members = np.flatnonzero(y[shuffled] == label)
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return shuffled[np.argsort(place, kind="stable")]
