"""Naive Bayes and TAN, trained to predict as Yu, Bertsekas and Rousu propose, beside counting on the same data."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

from dualfield.datasets import load_benchmark_data
from dualfield.estimators import DiscriminativeBayesNet
from reproductions.fits import stop_if_interrupted
from reproductions.problems import need_rows
from reproductions.records import Cell, Findings, Part, Settings, Table, Task
from reproductions.yu_models import rows_lacking

DATA = ("tic_tac_toe", "car", "vote", "nursery", "breast_cancer_wdbc", "digits8x8")
_BINNED, _LEVELS = "breast_cancer_wdbc", "digits8x8"
_N_BINS, _LEVEL_EDGES = 5, (4.0, 8.0, 12.0)  # of pixels from 0 to 16
_N_SPLITS, _QUICK_SPLITS = 10, 2
_N_TRAIN, _QUICK_TRAIN, _QUICK_TEST = 200, 60, 80
ETAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_CS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_STRUCTURES = {"naive_bayes": "naive Bayes", "tan": "TAN"}
COUNTED, TRAINED = "{}, counted", "{}, trained"
_LOGISTIC, _CATEGORICAL = "logistic regression", "CategoricalNB"


@dataclass(frozen=True, slots=True)
class NetworkRow:
    """One method on one data set.

    Attributes
    ----------
    data, method : str
        Which.
    n_train, n_test : int
        Rows of each split.
    errors : tuple of float
        Shares of wrong classes in the test rows, one for each split.
    chosen : tuple of float
        What the held-out third of the training rows chose in each split, η or C; empty where nothing was.
    rounds, lacking : int or None
        The most rounds of all splits, and the most table rows that sum to less than one, of trained networks.
    seconds : float
        Wall-clock time of all splits, choices included.
    """

    data: str
    method: str
    n_train: int
    n_test: int
    errors: tuple[float, ...]
    chosen: tuple[float, ...]
    rounds: int | None
    lacking: int | None
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Codes of training and test rows, their classes, and how many values each column may have."""

    X: NDArray[np.int64]
    y: NDArray[Any]
    X_test: NDArray[np.int64]
    y_test: NDArray[Any]
    sizes: list[int]

    def thirds(self) -> "Split":
        """Return the training rows in two: two thirds to fit, and one third, held out, to choose."""
        cut = 2 * len(self.y) // 3
        return Split(self.X[:cut], self.y[:cut], self.X[cut:], self.y[cut:], self.sizes)

    def error(self, model: Any) -> float:
        """Return the share of test rows that a fitted model gets wrong."""
        return float(np.mean(model.predict(self.X_test) != self.y_test))


def random_split(settings: Settings, name: str, number: int) -> Split:
    """Draw the rows of a split, and cut numbers into bins by the training rows alone."""
    data = load_benchmark_data(name, settings.folder)
    n_train = _QUICK_TRAIN if settings.quick else _N_TRAIN
    need_rows(data, n_train + _QUICK_TEST)
    order = np.random.default_rng((settings.seed, number)).permutation(len(data.y))
    train, test = order[:n_train], order[n_train : n_train + _QUICK_TEST if settings.quick else None]
    X = np.asarray(data.X)
    if name == _BINNED:
        bins = KBinsDiscretizer(_N_BINS, encode="ordinal", strategy="quantile")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # equal edges are merged; other versions have other defaults to announce
            bins.fit(X[train])
        codes, sizes = bins.transform(X), [int(size) for size in bins.n_bins_]
    else:
        codes = np.digitize(X, _LEVEL_EDGES) if name == _LEVELS else X
        sizes = [int(size) for size in codes.max(axis=0) + 1]
    codes = codes.astype(np.int64)
    return Split(codes[train], data.y[train], codes[test], data.y[test], sizes)


def _network(split: Split, eta: float, structure: str) -> Any:
    model = DiscriminativeBayesNet(structure, eta=eta, categories=[np.arange(size) for size in split.sizes])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(split.X, split.y)
    stop_if_interrupted(model)
    return model


def _logistic(split: Split, C: float) -> Any:
    one_hot = OneHotEncoder(categories=[np.arange(size) for size in split.sizes])
    return make_pipeline(one_hot, LogisticRegression(C=C, max_iter=5000)).fit(split.X, split.y)


def _categorical(split: Split, _: float) -> Any:
    return CategoricalNB(min_categories=split.sizes).fit(split.X, split.y)


# How to fit, and what to choose from; a single value is no choice.
_METHODS: Mapping[str, tuple[Callable[[Split, float], Any], Sequence[float]]] = {
    **{
        pattern.format(name): (partial(_network, structure=structure), grid)
        for structure, name in _STRUCTURES.items()
        for pattern, grid in ((COUNTED, (0.0,)), (TRAINED, ETAS))
    },
    _LOGISTIC: (_logistic, _CS),
    _CATEGORICAL: (_categorical, (0.0,)),
}


def compute(settings: Settings, data: str, method: str) -> NetworkRow:
    """Measure one method on all splits, as many at a time as there are threads."""
    began = time.perf_counter()
    n_splits = _QUICK_SPLITS if settings.quick else _N_SPLITS
    tasks = (joblib.delayed(_measure)(settings, data, method, number) for number in range(n_splits))
    found = joblib.Parallel(n_jobs=settings.threads)(tasks)
    errors, values, rounds, lacking, sizes = zip(*found, strict=True)
    is_trained, is_choice = rounds[0] is not None, len(_METHODS[method][1]) > 1
    return NetworkRow(
        data=data,
        method=method,
        n_train=sizes[0][0],
        n_test=sizes[0][1],
        errors=errors,
        chosen=values if is_choice else (),
        rounds=max(rounds) if is_trained else None,
        lacking=max(lacking) if is_trained and None not in lacking else None,
        seconds=time.perf_counter() - began,
    )


def _measure(
    settings: Settings, data: str, method: str, number: int
) -> tuple[float, float, int | None, int | None, tuple[int, int]]:
    split = random_split(settings, data, number)
    fit, grid = _METHODS[method]
    best = grid[0]
    if len(grid) > 1:
        thirds, tried = split.thirds(), grid[1:3] if settings.quick else grid
        best = min(tried, key=lambda value: thirds.error(fit(thirds, value)))  # of equal ones the smallest
    model = fit(split, best)
    is_trained = isinstance(model, DiscriminativeBayesNet) and model.eta > 0.0
    rounds, lacking = (int(model.n_iter_), rows_lacking(model)) if is_trained else (None, None)
    return split.error(model), best, rounds, lacking, (len(split.y), len(split.y_test))


def tasks(settings: Settings) -> list[Task[NetworkRow]]:
    """Return one task for each data set and method."""
    return [Task(f"{data}, {method}", partial(compute, settings, data, method)) for data in DATA for method in _METHODS]


def paired(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Return the mean difference of two lists of errors, and its standard error.

    Parameters
    ----------
    one, other : sequence of float
        Errors on the same splits.

    Returns
    -------
    float, float
        Mean and standard error over splits.

    Examples
    --------
    >>> from reproductions.yu_networks import paired
    >>> paired((0.25, 0.5), (0.5, 0.25))
    (0.0, 0.25)
    """
    return _mean(np.subtract(one, other))


def _mean(values: Any) -> tuple[float, float]:
    values = np.asarray(values)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def present(rows: Sequence[NetworkRow]) -> Findings:
    """Show errors, and what training has gained over counting."""
    found = {(row.data, row.method): row for row in rows}
    first = rows[0]
    errors = Table(
        title="Shares of wrong classes, %, mean and standard error over splits.",
        header=("data", "test rows", *_METHODS),
        rows=tuple(
            (data, found[data, _LOGISTIC].n_test, *(_percent(_mean(found[data, name].errors)) for name in _METHODS))
            for data in DATA
        ),
        notes=(
            f"{len(first.errors)} random splits with {first.n_train} rows for training, and the rest for testing. η "
            f"of trained networks ({ETAS[0]:g} to {ETAS[-1]:g}, without 0) and C of logistic regression on one-hot "
            f"columns ({_CS[0]:g} to {_CS[-1]:g}) are chosen on a third of the training rows that is held out. Every "
            "count is smoothed by 1. Test rows of the splits overlap, and so do training rows: standard errors are a "
            "guide and no test.",
        ),
    )
    gains = {
        (data, name): paired(found[data, TRAINED.format(name)].errors, found[data, COUNTED.format(name)].errors)
        for data in DATA
        for name in _STRUCTURES.values()
    }
    differences = Table(
        title="Trained minus counted, points of error, split by split.",
        header=("data", "network", "difference", "splits better / worse", "η chosen, median", "rounds", "lacking mass"),
        rows=tuple(_gain(found, data, name, gain) for (data, name), gain in gains.items()),
        notes=("Rounds and table rows that sum to less than one: the most of all splits.",),
    )
    return Findings((_summary(gains),), (errors, differences), differences=_DIFFERENCES)


def _gain(
    found: Mapping[tuple[str, str], NetworkRow], data: str, name: str, gain: tuple[float, float]
) -> tuple[Cell, ...]:
    trained, counted = (found[data, pattern.format(name)] for pattern in (TRAINED, COUNTED))
    each = np.subtract(trained.errors, counted.errors)
    share = f"{int((each < 0).sum())} / {int((each > 0).sum())}"
    median = float(np.median(trained.chosen))
    return (data, name, _percent(gain, "+"), share, f"{median:g}", trained.rounds, trained.lacking)


def _percent(value: tuple[float, float], sign: str = "") -> str:
    return f"{100 * value[0]:{sign}.2f} ± {100 * value[1]:.2f}"


def _summary(gains: Mapping[tuple[str, str], tuple[float, float]]) -> str:
    kinds: dict[str, list[str]] = {"lower": [], "higher": [], "neither": []}
    for (data, name), (mean, error) in gains.items():
        kind = "neither" if abs(mean) <= 2.0 * error else "lower" if mean < 0.0 else "higher"
        kinds[kind].append(f"{name} on {data} ({100 * mean:+.2f})")
    listed = {kind: "; ".join(names) or "none" for kind, names in kinds.items()}
    return (
        f"Error of trained networks minus that of counted ones, points. Lower by more than two standard errors: "
        f"{listed['lower']}. Higher: {listed['higher']}. Neither: {listed['neither']}."
    )


_DIFFERENCES = (
    "The paper, an extended abstract, has no experiments. The data sets, the number of training rows and the splits "
    "are ours.",
    "The grids of η and C were made longer once, where held-out rows had chosen their ends; test errors had been seen.",
    f"breast_cancer_wdbc: each column in {_N_BINS} bins with about as many training rows each. digits8x8: pixels, from "
    "0 to 16, in four levels. Missing values of vote are values of their own.",
)
NETWORKS = Part(
    name="networks",
    title="Naive Bayes and TAN",
    data=DATA,
    tasks=tasks,
    present=present,
)
