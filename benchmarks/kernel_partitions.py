"""Kernel logistic regression from partitions

Inducing points on rows that are drawn when they are read, none of them held, beside the same fit in memory where that
fits: processor time and peak memory of each in a process of its own, objectives compared. One thread. Passes are all
readings of the rows, two of them before the first evaluation. The fit in memory also bounds the distance to the full
problem, which takes all n² kernel values and which partitions do without: ratios of time leave that out, and it has a
column of its own. Drawing the rows in every pass is part of the time of partitions, and the share of it that stands
beside it. DUALFIELD_LARGE=1 adds ten million rows, which take about ten minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import peak_megabytes
from dualfield import KernelLogisticRegression
from dualfield.solvers.kernel import inducing as in_memory

N_FEATURES, N_CLASSES, N_INDUCING = 20, 4, 500
PART_ROWS = 50_000
IN_MEMORY = 20_000  # rows: the full gap takes n² kernel values, minutes from 100,000 on
SIZES = (20_000, 100_000, 1_000_000)
LARGE = 10_000_000
TOL = 1e-3
_drawing: list[float] = []  # seconds, a partition after the other


@dataclass(frozen=True)
class DrawnPart:
    """A partition that is drawn each time it is read."""

    seed: int
    n_rows: int

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        began = time.process_time()
        rng = np.random.default_rng([7, self.seed])
        X = rng.normal(size=(self.n_rows, N_FEATURES))
        mixing = np.random.default_rng(0).normal(size=(N_FEATURES, N_CLASSES))
        scores = np.sin(X) @ mixing + 0.5 * rng.normal(size=(self.n_rows, N_CLASSES))
        y = scores.argmax(axis=1)
        _drawing.append(time.process_time() - began)
        return X, y


def partitions(n: int) -> list[DrawnPart]:
    sizes = [min(PART_ROWS, n - first) for first in range(0, n, PART_ROWS)]
    return [DrawnPart(seed, rows) for seed, rows in enumerate(sizes)]


def fit(form: str, n: int) -> dict[str, Any]:
    """Fit in this process, and tell time and memory."""
    inducing = DrawnPart(10**6, N_INDUCING)()[0]
    model = KernelLogisticRegression(C=1.0, gamma=0.02, kernel_approx=inducing, tol=TOL, cache_size=1e6)
    parts = partitions(n)
    model.fit([DrawnPart(0, 2000)])  # what is loaded once does not count
    data = None
    if form == "memory":
        drawn = [part() for part in parts]
        data = np.concatenate([one[0] for one in drawn]), np.concatenate([one[1] for one in drawn])
        del drawn
    certifying = _timed_certificate()
    _drawing.clear()
    began = time.process_time()
    added = peak_megabytes(lambda: model.fit(parts) if data is None else model.fit(*data))
    seconds = time.process_time() - began
    return {
        "form": form,
        "n": n,
        "seconds": seconds - sum(certifying),
        "full_certificate_seconds": sum(certifying),
        "added_megabytes": added,
        "objective": float(model.objective_),
        "gap_over_objective": float(model.dual_gap_ / model.objective_),
        "certified": model.certified_problem_,
        "passes": int(getattr(model, "n_rounds_", 0)),
        "drawing_seconds": sum(_drawing),
        "status": model.status_.value,
    }


def _timed_certificate() -> list[float]:
    """Return a list to which the fit in memory will add the time of its bound on the full problem."""
    seconds, bound = list[float](), in_memory._certified

    def timed(*given: Any) -> Any:
        began = time.process_time()
        found = bound(*given)
        seconds.append(time.process_time() - began)
        return found

    in_memory._certified = timed
    return seconds


def measure(form: str, n: int) -> dict[str, Any]:
    """Run a fit in a new process."""
    command = [sys.executable, "-m", "benchmarks.kernel_partitions", form, str(n)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1], env=environment
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run(sizes: tuple[int, ...] | None = None) -> dict[str, Any]:
    if sizes is None:
        sizes = (*SIZES, LARGE) if os.environ.get("DUALFIELD_LARGE") else SIZES
    rows = []
    for n in sizes:
        row = {"parts": measure("parts", n), "memory": measure("memory", n) if n <= IN_MEMORY else None}
        if row["memory"] is not None:
            apart = abs(row["parts"]["objective"] / row["memory"]["objective"] - 1.0)
            assert apart <= TOL, f"objectives differ by {apart:.1e}"
        rows.append(row)
    return {"rows": rows, "n_inducing": N_INDUCING, "n_features": N_FEATURES, "n_classes": N_CLASSES, "tol": TOL}


def table(result: dict[str, Any]) -> str:
    lines = [
        f"{result['n_inducing']} inducing points, {result['n_features']} features, {result['n_classes']} classes, gap "
        f"{result['tol']:g} of the inducing-point problem.",
        "",
        "| rows | passes | s a million rows and pass | of it drawing | minutes | peak memory, MB | time ÷ in memory | "
        "memory ÷ in memory | in memory: full bound ÷ its fit |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        parts, memory = row["parts"], row["memory"]
        share = 1e6 * parts["seconds"] / parts["n"] / parts["passes"]
        ratios = ["–", "–", "–"]
        if memory is not None:
            pairs = ((parts[name], memory[name]) for name in ("seconds", "added_megabytes"))
            ratios = [f"{one / other:.2f}" for one, other in pairs]
            ratios.append(f"{memory['full_certificate_seconds'] / memory['seconds']:.2f}")
        lines.append(
            f"| {parts['n']:,} | {parts['passes']} | {share:.1f} | {parts['drawing_seconds'] / parts['seconds']:.0%} | "
            f"{parts['seconds'] / 60:.1f} | {parts['added_megabytes']:.0f} | {ratios[0]} | {ratios[1]} | {ratios[2]} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(json.dumps(fit(sys.argv[1], int(sys.argv[2]))))
