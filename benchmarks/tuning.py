"""Choosing C: warm-started paths beside GridSearchCV

`CRFCV` and `StructuredSVMCV` beside scikit-learn's `GridSearchCV` over seven values of C (0.1 to 100), the same
folds, the same tolerance and the same score, span F1, on the first sentences of CoNLL-2000 and CoNLL-2002 Spanish. Both
get the same lists of attribute strings, and neither refits the winner. Times are those of all folds: processor seconds
with one job each, and seconds on the clock, of the paths also with all cores. The last columns are the largest
difference between the mean scores of the two, and that between the best ones.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

from benchmarks.crf_data import conll2000, conll2002
from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF, CRFCV, StructuredSVM, StructuredSVMCV
from dualfield.metrics import span_f1_scorer

NEEDS_DATA = True
CS = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
FOLDS = 3


def timed(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a call returns, its processor seconds and its seconds on the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = fit()
    return found, time.process_time() - cpu, time.perf_counter() - wall


def compared(name: str, estimator: Any, search: Any, X: Any, y: Any) -> dict[str, Any]:
    def grid() -> Any:
        return GridSearchCV(estimator, {"C": CS}, cv=KFold(FOLDS), scoring=span_f1_scorer, refit=False).fit(X, y)

    def path(n_jobs: int) -> Any:
        return search(estimator, Cs=CS, cv=FOLDS, scoring="span_f1", refit=False, n_jobs=n_jobs).fit(X, y)

    ours, cpu, wall = timed(lambda: path(1))
    _, _, parallel = timed(lambda: path(-1))
    peer, peer_cpu, peer_wall = timed(grid)
    scores, expected = ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"]
    return {
        "name": name,
        "sentences": len(y),
        "tol": estimator.tol,
        "cpu": cpu,
        "wall": wall,
        "wall_all_cores": parallel,
        "grid_cpu": peer_cpu,
        "grid_wall": peer_wall,
        "scores": scores.tolist(),
        "grid_scores": expected.tolist(),
        "difference": float(np.abs(scores - expected).max()),
        "best_difference": float(abs(scores.max() - expected.max())),
        "C": ours.C_,
        "grid_C": peer.best_params_["C"],
    }


def run(size: int = 3000) -> dict[str, Any]:
    chunks, names = conll2000(size), conll2002(size)
    few = size // 3
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no training example")
        return {
            "models": [
                compared("CRF, CoNLL-2000", CRF(), CRFCV, chunks.X, chunks.y),
                compared("CRF, Spanish", CRF(), CRFCV, names.X, names.y),
                compared("SVM, CoNLL-2000", StructuredSVM(), StructuredSVMCV, chunks.X[:few], chunks.y[:few]),
            ]
        }


def table(result: dict[str, Any]) -> str:
    head = (
        "model, data | sentences | path, CPU s | GridSearchCV, CPU s | × CPU | path, s | all cores, s | "
        "GridSearchCV, s | × clock | best C | score differs by | the best by"
    )
    rows = [
        [
            one["name"],
            f"{one['sentences']:,}",
            f"{one['cpu']:.1f}",
            f"{one['grid_cpu']:.1f}",
            f"{one['grid_cpu'] / one['cpu']:.2f}",
            f"{one['wall']:.1f}",
            f"{one['wall_all_cores']:.1f}",
            f"{one['grid_wall']:.1f}",
            f"{one['grid_wall'] / one['wall_all_cores']:.2f}",
            f"{one['C']:g} and {one['grid_C']:g}",
            f"{one['difference']:.4f}",
            f"{one['best_difference']:.4f}",
        ]
        for one in result["models"]
    ]
    scores = [[one["name"], *(f"{100 * score:.2f}" for score in one["scores"])] for one in result["models"]]
    return "\n\n".join(
        [markdown(head, rows), "Mean F1 by C:", markdown(" | ".join(["model, data", *(f"{C:g}" for C in CS)]), scores)]
    )
