"""The multiclass problems of Memisevic (2006): their data, splits, widths and regularisation."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dualfield.datasets import load_benchmark_data
from reproductions.problems import Problem, need_rows, official_split, prepare, random_split
from reproductions.records import Settings


@dataclass(frozen=True, slots=True)
class Source:
    """A data set of the paper.

    Attributes
    ----------
    file : str
        The data set that is read.
    sigma2 : float
        The paper's width; the kernel is exp(-|x - x'|^2 / sigma^2).
    n_train, n_test : int
        The paper's sizes (Table 1).
    difference : str
        How the split differs from the paper's.
    """

    file: str
    sigma2: float
    n_train: int
    n_test: int
    difference: str

    @property
    def gamma(self) -> float:
        """The width as scikit-learn counts it."""
        return 1.0 / self.sigma2


SOURCES = {
    "wine": Source("wine", 10.0, 120, 58, "wine: 120 / 58 points, drawn at random."),
    "glass": Source(
        "glass",
        10.0,
        130,
        84,
        "glass: 130 / 84 points, drawn at random; six classes, where the paper counts seven, one of which has no "
        "point.",
    ),
    "vehicle": Source("vehicle", 10.0, 600, 246, "vehicle: 600 / 246 points, drawn at random."),
    "segment": Source("segment", 0.1, 1500, 810, "segment: 1500 / 810 points, Weka's split."),
    "digits": Source(
        "usps",
        128.0,
        5000,
        2000,
        "digits: 5000 training points drawn at random from the 7291 of the official USPS training set, and 2000 test "
        "points from the 2007 of its test set. The paper does not say which 5000 and 2000 it took.",
    ),
    "letter": Source(
        "letter", 0.1, 15000, 5000, "letter: the first 15000 points in the original order against the last 5000."
    ),
}
SCALING = (
    "Features are scaled to mean 0 and variance 1 over the training points; the paper says unit variance.",
    "The model has no intercept, as in the paper.",
)


@lru_cache(maxsize=2)
def multiclass_problem(settings: Settings, name: str) -> Problem:
    """Read one of the problems.

    Parameters
    ----------
    settings : Settings
        Where the data is; a quick run gets few points.
    name : {"wine", "glass", "vehicle", "segment", "digits", "letter"}
        As the paper calls it.

    Returns
    -------
    Problem
        With scaled features.
    """
    source = SOURCES[name]
    data = load_benchmark_data(source.file, settings.folder)
    if name == "segment":
        train, test = official_split(data)
    elif name == "digits":
        rng = np.random.default_rng(settings.seed)
        sizes = (source.n_train, source.n_test)
        parts = zip(official_split(data), sizes, strict=True)
        train, test = (np.sort(rng.permutation(rows)[:size]) for rows, size in parts)
    elif name == "letter":
        need_rows(data, 140 if settings.quick else source.n_train + source.n_test)
        n_train = min(source.n_train, (3 * len(data.y)) // 4)
        train, test = np.arange(n_train), np.arange(n_train, min(n_train + source.n_test, len(data.y)))
    else:
        train, test = random_split(data, source.n_train, source.n_test, settings)
    return prepare(data.X, data.y, train, test, settings)


def inverse_lambda(ratio: float, problem: Problem) -> float:
    """Translate the paper's lambda / N: C = 1 / lambda.

    Parameters
    ----------
    ratio : float
        lambda / N.
    problem : Problem
        Has N training examples.

    Returns
    -------
    float
        1 / (ratio N).

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.memisevic_data import inverse_lambda
    >>> from reproductions.problems import Problem
    >>> X, y = np.zeros((4, 1)), np.arange(4)
    >>> inverse_lambda(0.5, Problem(X, y, X, y))
    0.5
    """
    return 1.0 / (ratio * len(problem.y))
