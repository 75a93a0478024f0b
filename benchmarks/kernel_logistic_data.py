"""What the measurements of kernel logistic regression share: data sets, the check of the optimum, clocks, tables."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, logsumexp, softmax
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from dualfield import KernelLogisticRegression
from dualfield.datasets import load_benchmark_data
from dualfield.datasets.benchmark_data import benchmark_file

# Training rows where a file has no split; the rest is the test set.
DRAWN = {"digits8x8": 1300, "vehicle": 600, "waveform": 3000, "twonorm": 4000}
# Training rows drawn from the official training part where that is larger than we need.
LIMITS = {"adult": 4000, "shuttle": 10_000, "ocr": 10_000}
# Pixels, and features that are 0 or 1, stay as they are; all others are standardised by the training rows.
AS_THEY_ARE = {"usps": 1.0, "mnist": 255.0, "adult": 1.0, "dna": 1.0, "ocr": 1.0}
CHECKED_UP_TO = 8000  # rows whose gap is computed again in float64; beyond, the model's own certificate counts


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows, labels as codes 0, 1, ...; test rows of classes without a training row are left out."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @property
    def scale(self) -> float:
        """gamma="scale": one over the number of features times the variance of all entries."""
        return float(1.0 / (self.X.shape[1] * self.X.var()))


def rows_of(name: str, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows; whatever is drawn is drawn with seed 0."""
    n, rng = len(data.y), np.random.default_rng(0)
    if name == "letter":
        return np.arange(15_000), np.arange(15_000, n)
    if name == "adult":
        return rng.permutation(32_561)[: LIMITS[name]], np.arange(32_561, n)
    if name in DRAWN:
        order = rng.permutation(n)
        return order[: DRAWN[name]], order[DRAWN[name] :]
    if name == "ocr":  # letters of one word stay on one side
        with np.load(benchmark_file(name)) as arrays:
            fold = arrays["fold"]
        train, test = np.flatnonzero(fold > 0), np.flatnonzero(fold == 0)
    else:
        train, test = data.train, data.test
    return (rng.permutation(train)[: LIMITS[name]] if name in LIMITS else train), test


def load(name: str, size: int | None = None) -> Split:
    """Read a data set; `size` keeps only the first training and test rows, for trying things out."""
    data = load_benchmark_data(name)
    train, test = (rows[:size] for rows in rows_of(name, data))
    X, X_test = (np.asarray(data.X[rows].toarray() if name == "adult" else data.X[rows]) for rows in (train, test))
    if name in AS_THEY_ARE:
        X, X_test = X / AS_THEY_ARE[name], X_test / AS_THEY_ARE[name]
    else:
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        keep = deviation > 0
        X, X_test = ((part[:, keep] - mean[keep]) / deviation[keep] for part in (X, X_test))
    classes, y = np.unique(data.y[train], return_inverse=True)
    known = np.isin(data.y[test], classes)
    y_test = np.searchsorted(classes, data.y[test][known])
    return Split(name, np.ascontiguousarray(X), y, np.ascontiguousarray(X_test[known]), y_test)


def relative_gap(model: KernelLogisticRegression, X: np.ndarray, y: np.ndarray, gamma: float) -> float:
    """The gap relative to the dual value, in float64 from the data alone (RBF kernel, no weights).

    Two dual points certify a model, the better one counts: its own coefficients, where they lie in the dual's domain,
    and C (D − P), which belongs to its scores at the best bias.
    """
    K, B, C, b = rbf_kernel(X, gamma=gamma), model.dual_coef_.T, float(model.C), np.asarray(model.intercept_)
    F, pinned = K @ B, B.shape[1] == 1

    def both(columns: np.ndarray, first: np.ndarray | float) -> np.ndarray:
        return np.column_stack([np.broadcast_to(first, len(columns)), columns]) if pinned else columns

    truth = np.eye(2 if pinned else B.shape[1])[y]
    scores = both(F + b, 0.0)
    primal = 0.5 * np.vdot(B, F) + C * (logsumexp(scores, axis=1) - (truth * scores).sum(axis=1)).sum()

    def dual(coefficients: np.ndarray, product: np.ndarray) -> float:
        p = truth - both(coefficients, -coefficients[:, 0]) / C
        if p.min() < -1e-9:
            return -np.inf
        # A bias asks that columns sum to zero; what is missing moves the bound by that sum times the bias.
        slack = abs(coefficients.sum(axis=0) @ b) if model.fit_intercept else 0.0
        return float(C * entr(np.clip(p, 0.0, 1.0)).sum() - 0.5 * np.vdot(coefficients, product) - slack)

    p = softmax(scores, axis=1)
    if model.fit_intercept:
        moved = np.zeros(p.shape[1])
        for _ in range(20):
            slope = (p - truth).sum(axis=0)
            moved -= np.linalg.lstsq(np.diag(p.sum(axis=0)) - p.T @ p, slope, rcond=1e-13)[0]
            p = softmax(scores + moved, axis=1)
    witness = (C * (truth - p))[:, int(pinned) :]
    below = max(dual(B, F), dual(witness, K @ witness))
    return float((primal - below) / below)


def check_gap(model: KernelLogisticRegression, X: np.ndarray, y: np.ndarray, gamma: float) -> float:
    """Refuse to time what is wrong: return the relative gap, which must be within 1.1 times the tolerance."""
    if len(y) <= CHECKED_UP_TO:
        gap = relative_gap(model, X, y, gamma)
    else:
        gap = float(model.dual_gap_ / (model.objective_ - model.dual_gap_))
    assert gap <= 1.1 * model.tol, f"relative gap {gap:.2e} where {model.tol:.0e} was asked for"
    return gap


def fit_svc(X: np.ndarray, y: np.ndarray, gamma: float, C: float) -> SVC:
    """SVC with probabilities, all else at its defaults; its note that `probability` will go is not our subject."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message=".*probability")
        return SVC(probability=True, gamma=gamma, C=C, random_state=0).fit(X, y)


def rounds_for(n: int) -> int:
    return 5 if n < 5000 else 3


def medians(calls: dict[str, Callable[[], Any]], n_rounds: int) -> dict[str, float]:
    """Median seconds of each call; rounds alternate, so that a busy moment of the machine meets all of them."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(n_rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: float(np.median(each)) for name, each in times.items()}


def log_losses(probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """−log of the probability of the true class of each row; probabilities of zero count as the smallest double."""
    return np.asarray(-np.log(np.maximum(probability[np.arange(len(y)), y], np.finfo(float).tiny)))


def difference(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """Mean difference over the same test rows, and its standard error."""
    each = ours.astype(float) - theirs.astype(float)
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))


def markdown(head: str, rows: Iterable[Iterable[Any]]) -> str:
    """A table; `head` names the columns, separated by |."""
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    return "\n".join([*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)])
