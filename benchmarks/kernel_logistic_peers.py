"""Kernel logistic regression beside SVC with probabilities

Both tuned for log-loss by 5-fold cross-validation on one grid, on at most 1500 training rows: gamma ¼, 1 and 4 times
"scale", C from 1 to 1000 for SVC and to 100,000 for kernel logistic regression (KLR). Everything else is at its
default, so KLR has an intercept and chooses its solver. Two threads on letter (SVC always uses one), one elsewhere. T_K
is the time of scikit-learn's `rbf_kernel` on the training rows, a pass is one product with that matrix. The last rows
are sets on which nothing was tried out while the solvers were written. Differences are KLR minus SVC on the same test
rows, ± their standard error; beyond two of them they are unlikely to be chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.kernel_logistic_data import (
    Split,
    check_gap,
    difference,
    fit_svc,
    load,
    log_losses,
    markdown,
    medians,
    rounds_for,
)
from benchmarks.kernel_logistic_tuning import CACHE, MOST_ROWS, tuned
from dualfield import KernelLogisticRegression

NEEDS_DATA = True
TOLERANCES = {"1e-3": 1e-3, "1e-6": 1e-6}
# Fit time over that of SVC that we aim at, for each tolerance.
AIMS = {
    "letter": (0.35, 0.8),
    "usps": (0.15, 2.0),
    "adult": (0.15, 2.0),
    "digits8x8": (0.25, 2.0),
    "banana": (0.25, 2.0),
    "vehicle": (0.25, 2.0),
    "segment": (1.0, 2.0),
}
UNTOUCHED = ("shuttle", "waveform", "dna", "vowel", "twonorm", "ocr")
THREADS = {"letter": 2}


def compare(split: Split, ours: dict[str, float], theirs: dict[str, float], n_rounds: int | None) -> dict[str, Any]:
    """Fit times, work and test losses of both at their tuned settings."""
    X, y, n_jobs = split.X, split.y, THREADS.get(split.name, 1)
    gamma = ours["gamma"]

    def fit(tol: str) -> KernelLogisticRegression:
        return KernelLogisticRegression(gamma=gamma, C=ours["C"], tol=TOLERANCES[tol], n_jobs=n_jobs).fit(X, y)

    models = {tol: fit(tol) for tol in TOLERANCES}
    gaps = {tol: check_gap(model, X, y, gamma) for tol, model in models.items()}
    svc = fit_svc(X, y, theirs["gamma"], theirs["C"])
    with threadpool_limits(n_jobs):
        seconds = medians(
            {
                "klr_1e-3": lambda: fit("1e-3"),
                "svc": lambda: fit_svc(X, y, theirs["gamma"], theirs["C"]),
                "klr_1e-6": lambda: fit("1e-6"),
                "kernel_matrix": lambda: rbf_kernel(X, gamma=gamma),
            },
            n_rounds or rounds_for(len(y)),
        )
    model, X_test, y_test = models["1e-3"], split.X_test, split.y_test
    wrong, svc_wrong = model.predict(X_test) != y_test, svc.predict(X_test) != y_test
    losses, svc_losses = (log_losses(one.predict_proba(X_test), y_test) for one in (model, svc))
    return {
        "seconds": seconds,
        "fits": {
            tol: {
                "over_svc": seconds[f"klr_{tol}"] / seconds["svc"],
                "over_kernel_matrix": seconds[f"klr_{tol}"] / seconds["kernel_matrix"],
                "solver": model.solver_,
                "kernel_passes": float(model.trace_.kernel_passes[-1]),
                "relative_gap": gaps[tol],
            }
            for tol, model in models.items()
        },
        "log_loss": float(losses.mean()),
        "svc_log_loss": float(svc_losses.mean()),
        "log_loss_difference": difference(losses, svc_losses),
        "error": float(wrong.mean()),
        "svc_error": float(svc_wrong.mean()),
        "error_difference": difference(wrong, svc_wrong),
    }


def measure(
    name: str, size: int | None = None, cache: Path = CACHE, most: int = MOST_ROWS, n_rounds: int | None = None
) -> dict[str, Any]:
    split = load(name, size)
    ours, theirs = (tuned(split, method, cache, most) for method in ("klr", "svc"))
    return {
        "data": name,
        "n_train": len(split.y),
        "n_test": len(split.y_test),
        "n_classes": split.n_classes,
        "n_jobs": THREADS.get(name, 1),
        "setting": ours,
        "svc_setting": theirs,
        **compare(split, ours, theirs, n_rounds),
    }


def run(names: Sequence[str] | None = None, **options: Any) -> dict[str, Any]:
    """Measure all sets, or those named; `options` go to `measure`."""
    return {
        "name": "kernel_logistic_peers",
        "sets": [measure(name, **options) for name in (names or (*AIMS, *UNTOUCHED))],
    }


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    speed, quality = [], []
    for one in result["sets"]:
        aims = AIMS.get(one["data"], ("–", "–"))
        label = f"{one['data']}, {one['n_train']:,} × {one['n_classes']} classes"
        for tol, aim in zip(TOLERANCES, aims, strict=True):
            fit = one["fits"][tol]
            ratios = (f"{fit['over_svc']:.2f}", aim, f"{fit['over_kernel_matrix']:.2f}")
            cells = (f"{one['seconds'][f'klr_{tol}']:.3g}", f"{one['seconds']['svc']:.3g}")
            speed.append((label, tol, *ratios, f"{fit['kernel_passes']:.0f}", fit["solver"], *cells))
        log, error = one["log_loss_difference"], one["error_difference"]
        quality.append(
            (
                one["data"],
                f"{log[0]:+.4f} ± {log[1]:.4f}",
                f"{one['log_loss']:.4f} / {one['svc_log_loss']:.4f}",
                f"{100 * error[0]:+.2f} ± {100 * error[1]:.2f}",
                f"{100 * one['error']:.2f} / {100 * one['svc_error']:.2f}",
                *(f"{one[key]['gamma']:.3g}, {one[key]['C']:g}" for key in ("setting", "svc_setting")),
            )
        )
    speeds = markdown("data | gap | ÷ SVC | aim | ÷ T_K | passes | solver | KLR, s | SVC, s", speed)
    heads = "data | log-loss difference | log-loss KLR / SVC | error difference, % | error KLR / SVC, % | KLR γ, C"
    return speeds + "\n\n" + markdown(heads + " | SVC γ, C", quality)
