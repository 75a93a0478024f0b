"""Hyperparameters of all competitors by one protocol: 5-fold stratified cross-validation, log-loss, one common grid."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks.kernel_logistic_data import Split, fit_svc, log_losses
from dualfield import KernelLogisticRegression

CACHE = Path(__file__).parent / "results" / "kernel_logistic_tuning.json"
MOST_ROWS = 1500
N_FOLDS = 5
WIDTHS = (0.25, 1.0, 4.0)  # times gamma="scale"
SVC_COSTS = (1.0, 10.0, 100.0, 1000.0)
COSTS = (*SVC_COSTS, 1e4, 1e5)  # the softmax loss is flat far from the boundary, so its best C lies higher

Fit = Callable[[np.ndarray, np.ndarray, float, float], Any]


def fit_klr(X: np.ndarray, y: np.ndarray, gamma: float, C: float) -> KernelLogisticRegression:
    return KernelLogisticRegression(gamma=gamma, C=C).fit(X, y)


def fit_nystroem(X: np.ndarray, y: np.ndarray, gamma: float, C: float, n_components: int = 500) -> Pipeline:
    """Logistic regression on random features of the same kernel; the C of both means the same."""
    features = Nystroem(gamma=gamma, n_components=min(n_components, len(y)), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it then gets the time that its limit allows
        return make_pipeline(features, LogisticRegression(C=C, max_iter=1000)).fit(X, y)


def tuning_rows(split: Split, most: int) -> np.ndarray:
    """At most so many training rows, drawn with seed 0; classes with too few for the folds are left out."""
    rows = np.random.default_rng(0).permutation(len(split.y))[:most]
    frequent = np.bincount(split.y[rows], minlength=split.n_classes) >= N_FOLDS
    return np.asarray(rows[frequent[split.y[rows]]])


def best_setting(fit: Fit, X: np.ndarray, y: np.ndarray, gammas: Iterable[float], costs: Iterable[float]) -> dict:
    """The setting of least log-loss over the folds."""
    y = np.unique(y, return_inverse=True)[1]
    folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y))
    costs, best = list(costs), {"log_loss": np.inf}
    for gamma in gammas:
        for C in costs:
            losses = [log_losses(fit(X[a], y[a], gamma, C).predict_proba(X[b]), y[b]) for a, b in folds]
            mean = float(np.concatenate(losses).mean())
            if mean < best["log_loss"]:
                best = {"gamma": gamma, "C": C, "log_loss": mean}
    return best


def read(cache: Path) -> dict[str, Any]:
    return json.loads(cache.read_text(encoding="utf-8")) if cache.exists() else {}


def keep(cache: Path, entries: dict[str, Any]) -> None:
    aside = cache.with_suffix(".partial")
    aside.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    aside.replace(cache)


def tuned(split: Split, method: str, cache: Path = CACHE, most: int = MOST_ROWS) -> dict[str, float]:
    """gamma and C of "klr", "svc" or "nystroem" (500 components, the gamma of "klr"); kept in a file once found."""
    rows = tuning_rows(split, most)
    key = f"{split.name} {method}, {len(rows)} of {len(split.y)} rows"
    entries = read(cache)
    if key not in entries:
        gammas = [width * split.scale for width in WIDTHS]
        X, y = split.X[rows], split.y[rows]
        if method == "klr":
            found = best_setting(fit_klr, X, y, gammas, COSTS)
        elif method == "svc":
            found = best_setting(fit_svc, X, y, gammas, SVC_COSTS)
        else:
            found = best_setting(fit_nystroem, X, y, [tuned(split, "klr", cache, most)["gamma"]], COSTS)
        entries = {**read(cache), key: found}
        keep(cache, entries)
    return entries[key]
