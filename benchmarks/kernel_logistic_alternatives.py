"""Kernel logistic regression beside other ways to probabilities

What changes its log-loss; a Gaussian process with the same kernel; logistic regression on Nystroem features of the same
kernel, feature map included, C tuned at 500 components; and prediction. KLR is tuned as above, SVC too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks.kernel_logistic_data import Split, check_gap, fit_svc, load, log_losses, markdown, medians, rounds_for
from benchmarks.kernel_logistic_tuning import CACHE, MOST_ROWS, fit_nystroem, tuned
from dualfield import KernelLogisticRegression

NEEDS_DATA = True
COMPONENTS = (500, 1000, 2000)


def temperature(split: Split, setting: dict[str, float]) -> float:
    """What to divide scores by: least log-loss on the scores of rows that a fold held out."""
    scores = np.empty((len(split.y), split.n_classes))
    for a, b in StratifiedKFold(5, shuffle=True, random_state=0).split(split.X, split.y):
        model = KernelLogisticRegression(gamma=setting["gamma"], C=setting["C"]).fit(split.X[a], split.y[a])
        scores[b] = model.decision_function(split.X[b])
    at = np.arange(len(split.y))

    def loss(log_t: float) -> float:
        return float(-log_softmax(scores / np.exp(log_t), axis=1)[at, split.y].mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded").x))


def measure_variants(name: str, size: int | None, cache: Path, most: int) -> dict[str, Any]:
    """Test log-loss with and without intercept, with a temperature, and with a label kernel.

    The label kernel I + 0.2 · 11ᵀ serves as a check: the coefficients of a point sum to zero over the classes, so that
    11ᵀ adds nothing to the scores, and the log-loss must be that of the plain model up to the tolerance.
    """
    split = load(name, size)
    setting, theirs = tuned(split, "klr", cache, most), tuned(split, "svc", cache, most)

    def fit(**options: Any) -> KernelLogisticRegression:
        model = KernelLogisticRegression(gamma=setting["gamma"], C=setting["C"], **options).fit(split.X, split.y)
        if "label_kernel" not in options:
            check_gap(model, split.X, split.y, setting["gamma"])
        return model

    model, t = fit(), temperature(split, setting)
    found = {
        "as it is": model.predict_proba(split.X_test),
        "no intercept": fit(fit_intercept=False).predict_proba(split.X_test),
        f"scores ÷ {t:.2f}": softmax(model.decision_function(split.X_test) / t, axis=1),
    }
    if name == "segment":
        shared = np.eye(split.n_classes) + 0.2
        found["label kernel I + 0.2"] = fit(label_kernel=shared).predict_proba(split.X_test)
    svc = fit_svc(split.X, split.y, theirs["gamma"], theirs["C"])
    found["SVC"] = svc.predict_proba(split.X_test)
    losses = {key: float(log_losses(p, split.y_test).mean()) for key, p in found.items()}
    return {"data": name, "temperature": t, "log_loss": losses}


def measure_gaussian_process(size: int | None, cache: Path, most: int, n_rows: int = 1500) -> dict[str, Any]:
    """The same kernel C·k as the prior of a Gaussian process, its parameters fixed."""
    split = load("digits8x8", size)
    X, y = (np.concatenate(parts) for parts in ((split.X, split.X_test), (split.y, split.y_test)))
    n_rows = min(n_rows, 5 * len(y) // 6)
    train, test = slice(n_rows), slice(n_rows, None)
    setting = tuned(split, "klr", cache, most)
    gamma, C = setting["gamma"], setting["C"]
    kernel = ConstantKernel(C, "fixed") * RBF(np.sqrt(0.5 / gamma), "fixed")

    def ours() -> KernelLogisticRegression:
        return KernelLogisticRegression(gamma=gamma, C=C).fit(X[train], y[train])

    def theirs() -> GaussianProcessClassifier:
        return GaussianProcessClassifier(kernel, optimizer=None).fit(X[train], y[train])

    model, process = ours(), theirs()
    check_gap(model, X[train], y[train], gamma)
    with threadpool_limits(1):
        seconds = medians({"klr": ours, "gaussian_process": theirs}, rounds_for(n_rows))
    return {
        "n_train": n_rows,
        "times": seconds["gaussian_process"] / seconds["klr"],
        "seconds": seconds,
        "log_loss": float(log_losses(model.predict_proba(X[test]), y[test]).mean()),
        "gaussian_process_log_loss": float(log_losses(process.predict_proba(X[test]), y[test]).mean()),
    }


def measure_nystroem(name: str, size: int | None, cache: Path, most: int) -> dict[str, Any]:
    """Random features instead of the kernel matrix; one run each where there are many rows."""
    split, n_jobs = load(name, size), 2 if name == "letter" else 1
    X, y = split.X, split.y
    setting, other = tuned(split, "klr", cache, most), tuned(split, "nystroem", cache, most)
    gamma = setting["gamma"]

    def ours() -> KernelLogisticRegression:
        return KernelLogisticRegression(gamma=gamma, C=setting["C"], n_jobs=n_jobs).fit(X, y)

    check_gap(ours(), X, y, gamma)
    fits: dict[str, Any] = {"KLR": ours}
    for n in COMPONENTS:
        fits[f"Nystroem {n}"] = lambda n=n: fit_nystroem(X, y, other["gamma"], other["C"], n)
    models: dict[str, Any] = {}
    calls = {key: lambda key=key, fit=fit: models.update({key: fit()}) for key, fit in fits.items()}
    with threadpool_limits(n_jobs):
        seconds = medians(calls, 1 if len(y) >= 5000 else 3)
    losses = {key: log_losses(one.predict_proba(split.X_test), split.y_test) for key, one in models.items()}
    return {
        "data": name,
        "n_train": len(y),
        "C": other["C"],
        "rows": [{"method": key, "seconds": seconds[key], "log_loss": float(losses[key].mean())} for key in calls],
    }


def measure_prediction(size: int | None, cache: Path, most: int) -> dict[str, Any]:
    """predict_proba of all test rows of letter."""
    split = load("letter", size)
    setting, theirs = tuned(split, "klr", cache, most), tuned(split, "svc", cache, most)
    model = KernelLogisticRegression(gamma=setting["gamma"], C=setting["C"], n_jobs=2).fit(split.X, split.y)
    svc = fit_svc(split.X, split.y, theirs["gamma"], theirs["C"])
    few = split.X_test[:100]
    scores = rbf_kernel(few, split.X, gamma=setting["gamma"]) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(model.predict_proba(few), softmax(scores, axis=1), atol=1e-6)

    def ours(n_jobs: int) -> np.ndarray:
        return np.asarray(model.set_params(n_jobs=n_jobs).predict_proba(split.X_test))

    np.testing.assert_allclose(ours(1), ours(2), atol=1e-9)
    seconds = medians(
        {"klr_1": lambda: ours(1), "klr_2": lambda: ours(2), "svc": lambda: svc.predict_proba(split.X_test)}, 5
    )
    return {
        "n_train": len(split.y),
        "n_test": len(split.y_test),
        "seconds": seconds,
        "times_svc": {str(n): seconds["svc"] / seconds[f"klr_{n}"] for n in (1, 2)},
    }


def run(
    parts: Sequence[str] = ("variants", "gaussian_process", "nystroem", "prediction"),
    size: int | None = None,
    cache: Path = CACHE,
    most: int = MOST_ROWS,
) -> dict[str, Any]:
    """Measure all parts, or those named."""
    result: dict[str, Any] = {"name": "kernel_logistic_alternatives"}
    if "variants" in parts:
        result["variants"] = [measure_variants(name, size, cache, most) for name in ("segment", "usps")]
    if "gaussian_process" in parts:
        result["gaussian_process"] = measure_gaussian_process(size, cache, most)
    if "nystroem" in parts:
        result["nystroem"] = [measure_nystroem(name, size, cache, most) for name in ("letter", "adult")]
    if "prediction" in parts:
        result["prediction"] = measure_prediction(size, cache, most)
    return result


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    parts = []
    if "gaussian_process" in result or "prediction" in result:
        rows = []
        if process := result.get("gaussian_process"):
            what = f"fit, {process['n_train']:,} digits, GaussianProcessClassifier"
            losses = f"{process['log_loss']:.4f} / {process['gaussian_process_log_loss']:.4f}"
            rows.append((what, f"{process['times']:.1f}", "≥ 20", losses))
        if predicted := result.get("prediction"):
            what = f"predict_proba, letter, {predicted['n_test']:,} × {predicted['n_train']:,}, SVC"
            for n, times in predicted["times_svc"].items():
                rows.append((f"{what}, {n} thread{'s' * (n != '1')}", f"{times:.1f}", "≥ 3", ""))
        parts.append(markdown("task, beside | × | aim | log-loss KLR / other", rows))
    for one in result.get("nystroem", ()):
        base = one["rows"][0]["seconds"]
        rows = [(r["method"], f"{r['seconds'] / base:.2f}", f"{r['log_loss']:.4f}") for r in one["rows"]]
        head = f"{one['data']}, {one['n_train']:,} rows (features: C = {one['C']:g}) | fit time ÷ KLR | log-loss"
        parts.append(markdown(head, rows))
    losses = [
        (v["data"], key, f"{loss:.4f}") for v in result.get("variants", ()) for key, loss in v["log_loss"].items()
    ]
    if losses:
        parts.append(markdown("data | KLR | log-loss", losses))
    return "\n\n".join(parts)
