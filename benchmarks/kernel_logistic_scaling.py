"""Kernel logistic regression: work, growth and memory

T_K is the time of scikit-learn's `rbf_kernel` on the same rows with as many threads. Every fit is checked against its
duality gap, computed again in float64 up to 8000 rows, before it is timed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from benchmarks.kernel_logistic_data import check_gap, fit_svc, load, markdown, medians, relative_gap, rounds_for
from benchmarks.kernel_logistic_memory import FITS
from benchmarks.kernel_logistic_memory import measure as measure_memory
from dualfield import KernelLogisticRegression
from dualfield.datasets import load_benchmark_data
from dualfield.kernels import Kernel

NEEDS_DATA = True
PARTS = ("letter", "binary", "mnist", "hard_corner", "growth", "memory")
MNIST_BYTES = 20e9  # the matrix takes 14.4e9, the points and their copies the rest
COSTS = [10.0**power for power in range(-4, 5)]


def measure_letter(size: int | None = None) -> list[dict[str, Any]]:
    """Work to two gaps, with and without intercept, on two threads."""
    split = load("letter", size)
    X, y, gamma, rows = split.X, split.y, 0.0625, []
    for intercept in (True, False):
        for tol, aim in ((1e-3, 0.6), (1e-6, 1.3)):
            model = KernelLogisticRegression(gamma=gamma, C=100.0, tol=tol, fit_intercept=intercept, n_jobs=2)
            check_gap(model.fit(X, y), X, y, gamma)
            with threadpool_limits(2):
                seconds = medians(
                    {"fit": lambda model=model: model.fit(X, y), "matrix": lambda: rbf_kernel(X, gamma=gamma)},
                    rounds_for(len(y)),
                )
            rows.append(
                {
                    "n": len(y),
                    "intercept": intercept,
                    "tol": tol,
                    "over_kernel_matrix": seconds["fit"] / seconds["matrix"],
                    "aim": aim,
                    "kernel_passes": float(model.trace_.kernel_passes[-1]),
                    "solver": model.solver_,
                    "seconds": seconds,
                }
            )
    return rows


def binary_problem(name: str, size: int | None) -> tuple[np.ndarray, np.ndarray]:
    if name == "breast_cancer_wdbc":
        data = load_benchmark_data(name)
        X, y = scale(data.X), np.unique(data.y, return_inverse=True)[1]
    else:
        split = load(name)
        X, y = split.X, split.y
        if name == "segment":
            X, y = X[:1300], (y[:1300] < 3).astype(int)
    return np.ascontiguousarray(X[:size]), y[:size]


def measure_binary(name: str, size: int | None = None, tol: float = 1e-6) -> dict[str, Any]:
    """Two classes with intercept: time in kernel matrices for usual C, and whether every C arrives."""
    X, y = binary_problem(name, size)
    gamma, timed, converged = float(1.0 / (X.shape[1] * X.var())), [], {}
    for solver in ("auto", "smo"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # those are counted
            models = {
                C: KernelLogisticRegression(gamma=gamma, C=C, tol=tol, solver=solver, random_state=0).fit(X, y)
                for C in COSTS
            }
        converged[solver] = sum(relative_gap(model, X, y, gamma) <= 1.1 * tol for model in models.values())
        for C in (1.0, 10.0, 100.0):
            check_gap(models[C], X, y, gamma)
            with threadpool_limits(1):
                seconds = medians(
                    {"fit": lambda model=models[C]: model.fit(X, y), "matrix": lambda: rbf_kernel(X, gamma=gamma)}, 5
                )
            ratio = seconds["fit"] / seconds["matrix"]
            timed.append({"solver": solver, "C": C, "over_kernel_matrix": ratio, "seconds": seconds})
    return {"data": name, "n": len(y), "gamma": gamma, "timed": timed, "converged": converged, "of": len(COSTS)}


def available_bytes() -> float:
    info = Path("/proc/meminfo")
    if not info.exists():
        return float("nan")
    fields = dict(line.split(":", 1) for line in info.read_text().splitlines())
    return 1024.0 * int(fields["MemAvailable"].split()[0])


def measure_mnist(size: int | None = None, n_rounds: int = 3) -> dict[str, Any]:
    """A fit beside the computation of its kernel matrix alone, both ours, on two threads."""
    if size is None and not available_bytes() >= MNIST_BYTES:
        return {
            "skipped": f"{available_bytes() / 1e9:.0f} GB of memory are available, {MNIST_BYTES / 1e9:.0f} are needed"
        }
    data = load_benchmark_data("mnist")
    X = np.ascontiguousarray(data.X[data.train][:size] / 255.0, dtype=np.float32)
    X_test, y, gamma = (data.X[data.test] / 255.0).astype(np.float32), data.y[data.train][:size], 0.02
    model = KernelLogisticRegression(gamma=gamma, C=100.0, tol=1e-2, cache_size=16e9, n_jobs=2)
    y_test = data.y[data.test]
    del data
    check_gap(model.fit(X, y), X, y.astype(int), gamma)

    def matrix() -> None:
        Kernel("rbf", gamma).matrix(X, single=True, budget=None, n_threads=2)  # freed at once: two would not fit

    seconds = medians({"matrix": matrix, "fit": lambda: model.fit(X, y)}, n_rounds)
    return {
        "n": len(y),
        "over_own_matrix": seconds["fit"] / seconds["matrix"],
        "kernel_passes": float(model.trace_.kernel_passes[-1]),
        "test_error": float((model.predict(X_test) != y_test).mean()),
        "seconds": seconds,
    }


def measure_hard_corner(n: int = 3000) -> dict[str, Any]:
    """A wide kernel, little penalty, many classes, a small gap: the worst case we know."""
    split, gamma = load("letter"), 0.0156
    X, y = split.X[:n], split.y[:n]
    model = KernelLogisticRegression(gamma=gamma, C=1000.0, tol=1e-6)
    check_gap(model.fit(X, y), X, y, gamma)
    with threadpool_limits(1):
        calls = {"fit": lambda: model.fit(X, y), "svc": lambda: fit_svc(X, y, gamma, 10.0)}
        seconds = medians(calls, rounds_for(n))
    return {
        "n": n,
        "over_svc": seconds["fit"] / seconds["svc"],
        "kernel_passes": float(model.trace_.kernel_passes[-1]),
        "solver": model.solver_,
        "seconds": seconds,
    }


def adult_rows(subsets: Any) -> list[np.ndarray]:
    """The nested subsets a1a to a8a; 11,220 rows, as many as a6a has, are a4a and random rows of a8a."""
    others = np.random.default_rng(0).permutation(np.setdiff1d(subsets["a8a"], subsets["a4a"]))
    middle = np.concatenate([subsets["a4a"], others[: 11_220 - len(subsets["a4a"])]])
    return [*(subsets[name] for name in ("a1a", "a2a", "a3a", "a4a")), middle, subsets["a8a"]]


def measure_growth(largest: int | None = None, n_rounds: int = 3) -> dict[str, Any]:
    """How the time to a gap of 1e-6 grows with the number of rows of adult, on two threads."""
    data, gamma, rows = load_benchmark_data("adult"), 0.05, []
    for chosen in adult_rows(data.subsets):
        if largest is not None and len(chosen) > largest:
            continue
        X, y = data.X[chosen].toarray(), (data.y[chosen] > 0).astype(int)
        model = KernelLogisticRegression(gamma=gamma, C=1.0, tol=1e-6, n_jobs=2)
        check_gap(model.fit(X, y), X, y, gamma)
        fits, inside = [], []
        for _ in range(n_rounds):
            fits.append(medians({"fit": lambda model=model, X=X, y=y: model.fit(X, y)}, 1)["fit"])
            inside.append(model.trace_.seconds[-1])
        seconds = {"solver": float(np.median(inside)), "fit": float(np.median(fits))}
        rows.append({"n": len(y), "solver": model.solver_, "seconds": seconds})
    logs = np.log([row["n"] for row in rows])
    slopes = {
        key: float(np.polyfit(logs, np.log([row["seconds"][key] for row in rows]), 1)[0]) for key in ("solver", "fit")
    }
    return {"rows": rows, "exponents": slopes}


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    """Measure all parts, or those named; `size` limits the rows, for trying things out."""
    calls = {
        "letter": lambda: measure_letter(size),
        "binary": lambda: [measure_binary(name, size) for name in ("banana", "breast_cancer_wdbc", "segment")],
        "mnist": lambda: measure_mnist(size),
        "hard_corner": lambda: measure_hard_corner(size or 3000),
        "growth": lambda: measure_growth(None if size is None else 2300),
        "memory": lambda: [measure_memory(solver, size) for solver in FITS],
    }
    return {"name": "kernel_logistic_scaling", **{part: calls[part]() for part in parts}}


def large_rows(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The table of single problems: task, ratio, to what, aim, passes, solver."""
    rows: list[tuple[Any, ...]] = []
    for one in result.get("letter", ()):
        bias = "with" if one["intercept"] else "no"
        what = f"letter {one['n']:,}, 26 classes, C = 100, {bias} intercept, gap {one['tol']:.0e}"
        cells = (f"{one['over_kernel_matrix']:.2f}", "T_K", one["aim"], f"{one['kernel_passes']:.1f}", one["solver"])
        rows.append((what, *cells))
    for one in result.get("binary", ()):
        for fit in one["timed"]:
            what = f"{one['data']} {one['n']:,}, two classes, C = {fit['C']:g}, gap 1e-06"
            rows.append((what, f"{fit['over_kernel_matrix']:.2f}", "T_K", 3, "", fit["solver"]))
    mnist, corner = result.get("mnist"), result.get("hard_corner")
    if mnist and "skipped" not in mnist:
        what = f"MNIST {mnist['n']:,}, C = 100, gap 1e-02"
        rows.append(
            (what, f"{mnist['over_own_matrix']:.2f}", "its own matrix", 1.3, f"{mnist['kernel_passes']:.1f}", "")
        )
    if corner:
        what = f"letter {corner['n']:,}, γ = 0.0156, C = 1000, gap 1e-06"
        cells = (f"{corner['over_svc']:.2f}", "SVC, C = 10", 3, f"{corner['kernel_passes']:.0f}", corner["solver"])
        rows.append((what, *cells))
    return rows


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    parts = [markdown("fit | ÷ | of | aim | passes | solver", large_rows(result))]
    if "skipped" in result.get("mnist", {}):
        parts.append(f"MNIST was skipped: {result['mnist']['skipped']}.")
    if "binary" in result:
        counts = [
            (one["data"], *(f"{one['converged'][s]} of {one['of']}" for s in ("auto", "smo")))
            for one in result["binary"]
        ]
        parts.append(markdown("C = 1e-4, 1e-3, ..., 1e4 to gap 1e-06 | auto arrives | smo arrives", counts))
    if "growth" in result:
        growth = result["growth"]
        rows = [
            (f"{r['n']:,}", *(f"{r['seconds'][key]:.3g}" for key in ("solver", "fit")), r["solver"])
            for r in growth["rows"]
        ]
        rows.append(("**exponent** (aim 2.0)", *(f"{growth['exponents'][key]:.2f}" for key in ("solver", "fit")), ""))
        parts.append(markdown("rows of adult, gap 1e-06 | solver alone, s | fit, s | solver", rows))
    if "memory" in result:
        rows = [
            (m["solver"], f"{m['n']:,}", f"{m['over_stated']:.2f}", m["stated"], f"{m['added_megabytes']:.0f}")
            for m in result["memory"]
        ]
        parts.append(markdown("solver | rows of letter | peak ÷ stated | stated | peak, MB", rows))
    return "\n\n".join(parts)
