"""Peak memory of one fit on letter, measured in a process of its own: `python -m benchmarks.kernel_logistic_memory`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import peak_megabytes
from dualfield import KernelLogisticRegression
from dualfield.datasets import load_benchmark_data

ROW_CACHE = 1e8  # bytes that "online" may use for rows
# Rows of letter, and bytes for each pair of rows that the documentation states; "online" states its row cache instead.
FITS = {"working_set": (8000, 4), "newton": (2500, 12), "online": (20_000, 0)}


def added_by_fit(solver: str, n: int) -> float:
    """Megabytes at the peak of a fit, above what was resident before it."""
    data = load_benchmark_data("letter")
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    budget = {"cache_size": ROW_CACHE} if solver == "online" else {}
    model = KernelLogisticRegression(gamma=0.0625, C=10.0, solver=solver, **budget)
    model.fit(X[:200], data.y[:200])  # what is loaded once does not count
    X, y = np.ascontiguousarray(X[:n]), data.y[:n]
    return peak_megabytes(lambda: model.fit(X, y))


def measure(solver: str, n: int | None = None) -> dict[str, Any]:
    """Run `added_by_fit` in a new process, whose memory no earlier fit has touched."""
    rows, bytes_per_pair = FITS[solver]
    n = n or rows
    command = [sys.executable, "-m", "benchmarks.kernel_logistic_memory", solver, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    added = json.loads(done.stdout)
    stated = (bytes_per_pair * n**2 or ROW_CACHE) / 2**20
    return {
        "solver": solver,
        "n": n,
        "added_megabytes": added,
        "stated_megabytes": stated,
        "stated": f"{bytes_per_pair} n² bytes" if bytes_per_pair else f"row cache of {ROW_CACHE / 1e6:.0f} MB",
        "over_stated": added / stated,
        "over_4_bytes_for_each_pair": added / (4 * n**2 / 2**20),
    }


if __name__ == "__main__":
    print(json.dumps(added_by_fit(sys.argv[1], int(sys.argv[2]))))
