"""Peak memory of training CRFs, each in a process of its own: `python -m benchmarks.crf_memory TASK OPTIONS`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.memory import STATUS, peak_megabytes
from dualfield import CRF
from dualfield.data import Batch
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.scores import FeatureTable, LinearScores
from dualfield.solvers import BlockDual, StopRule
from dualfield.structures import Chain

N_SLOTS = 10  # attributes of a synthetic token
SLOT_COLUMNS = 20_000  # each of them has so many values
ARRAYS = ("offsets", "indptr", "indices", "labels")
WARM_UP = 2_000  # tokens of a first fit: what is loaded once does not count


def synthetic(n_tokens: int, n_labels: int = 9, slot_columns: int = SLOT_COLUMNS) -> tuple[Batch, np.ndarray]:
    """Sentences of 5 to 45 tokens, N_SLOTS attributes each with frequencies like those of words; labels like to stay.

    Every second attribute of a token, on average, tells its label.
    """
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 46, size=n_tokens // 20 + 1)
    bounds = np.append(0, np.cumsum(lengths))
    offsets = np.append(bounds[bounds < n_tokens], n_tokens).astype(np.int64)
    fresh = rng.random(n_tokens) < 0.5
    fresh[0] = True
    origin = np.maximum.accumulate(np.where(fresh, np.arange(n_tokens), 0))
    labels = rng.integers(n_labels, size=n_tokens, dtype=np.int32)[origin]
    indices = np.empty((n_tokens, N_SLOTS), dtype=np.int32)
    for slot in range(N_SLOTS):
        rank = np.exp(rng.random(n_tokens, dtype=np.float32) * np.log(slot_columns / n_labels)).astype(np.int32) - 1
        told = rng.random(n_tokens, dtype=np.float32) < 0.5
        hint = np.where(told, labels, rng.integers(n_labels, size=n_tokens, dtype=np.int32))
        indices[:, slot] = slot * slot_columns + (rank * n_labels + hint) % slot_columns
    indptr = N_SLOTS * np.arange(n_tokens + 1, dtype=np.int64)
    return Batch(offsets, N_SLOTS * slot_columns, indptr=indptr, indices=indices.ravel()), labels


def objective_on(batch: Batch, labels: np.ndarray, n_labels: int = 9, n_threads: int = 1) -> Objective:
    """The loss of a chain with the features that occur, C = 1."""
    score_map = LinearScores(Chain(n_labels), FeatureTable.observed(batch, labels, n_labels))
    examples = Examples(nodes=batch, labels=labels, weights=np.ones(batch.n_examples))
    return Objective(score_map, examples, Loss(), n_threads=n_threads)


def gradient_pass(batch: Batch, labels: np.ndarray) -> Any:
    objective = objective_on(batch, labels)
    return objective.loss_and_gradient(np.zeros(objective.n_parameters))


def dual_passes(batch: Batch, labels: np.ndarray) -> Any:
    return BlockDual(memory=np.inf).solve(objective_on(batch, labels), StopRule(1e-12, 3.0))


def added_by_pass(n_tokens: int, solver: str) -> dict[str, Any]:
    """A gradient, or three passes of the block dual, above the arrays of the corpus."""
    call = {"gradient": gradient_pass, "block_dual": dual_passes}[solver]
    call(*synthetic(WARM_UP))
    batch, labels = synthetic(n_tokens)
    return {"added_megabytes": peak_megabytes(lambda: call(batch, labels))}


def added_by_training(peer: str, size: int | None) -> dict[str, Any]:
    """Training on the lists of CoNLL-2000, c2 = 1; the peer's memory is all in use after a few iterations."""
    from benchmarks.crf_data import conll2000, train_crfsuite

    corpus, small = conll2000(size), conll2000(20)
    with tempfile.TemporaryDirectory() as folder:
        calls: dict[str, Callable[[Any], Any]] = {
            "crfsuite": lambda data: train_crfsuite(data, Path(folder) / "model", most=10),
            "dualfield": lambda data: CRF(C=0.5, random_state=0).fit(data.X, data.y),
        }
        calls[peer](small)
        return {"added_megabytes": peak_megabytes(lambda: calls[peer](corpus))}


def many_labels(n_tokens: int, n_labels: int, max_iter: int) -> dict[str, Any]:
    """L-BFGS on many labels."""
    batch, labels = synthetic(n_tokens, n_labels)
    model = CRF(solver="lbfgs", max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*_head(batch, labels))
        added = peak_megabytes(lambda: model.fit(batch, labels))
    seconds = float(model.trace_.seconds[-1])
    return {
        "added_megabytes": added,
        "seconds_per_pass": seconds / float(model.trace_.passes[-1]),
        "passes": float(model.trace_.passes[-1]),
        "n_labels_seen": len(model.classes_),
        "n_features": model.n_features_,
        "objectives": [float(model.trace_.objective[0]), float(model.objective_)],
    }


def _head(batch: Batch, labels: np.ndarray) -> tuple[Batch, np.ndarray]:
    n = max(1, int(np.searchsorted(batch.offsets, WARM_UP)))
    part = batch[: min(n, batch.n_examples)]
    return part, labels[: part.n_nodes]


def from_disk(folder: str, solver: str, max_iter: int, bytes_allowed: float) -> dict[str, Any]:
    """Fit to arrays that stay in their files, with an address space that cannot grow beyond what is allowed."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (int(bytes_allowed), int(bytes_allowed)))
    offsets, indptr, indices, labels = (np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in ARRAYS)
    batch = Batch(offsets, N_SLOTS * SLOT_COLUMNS, indptr=indptr, indices=indices)
    model = CRF(solver=solver, max_iter=max_iter, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.perf_counter()
        model.fit(batch, labels)
        seconds = time.perf_counter() - start
    fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return {
        "n_tokens": batch.n_nodes,
        "solver": model.solver_,
        "passes": float(model.trace_.passes[-1]),
        "seconds": seconds,
        "gap_over_objective": float(model.dual_gap_ / model.objective_),
        "peak_resident_gigabytes": int(fields["VmHWM"].split()[0]) * 1024 / 1e9,
        "peak_address_gigabytes": int(fields["VmPeak"].split()[0]) * 1024 / 1e9,
    }


def write_corpus(folder: Path, n_tokens: int) -> None:
    batch, labels = synthetic(n_tokens)
    for name, array in zip(ARRAYS, (batch.offsets, batch.indptr, batch.indices, labels), strict=True):
        np.save(folder / f"{name}.npy", array)


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "pass": added_by_pass,
    "training": added_by_training,
    "many_labels": many_labels,
    "from_disk": from_disk,
}


def measure(task: str, **options: Any) -> dict[str, Any]:
    """Run a task in a new process, whose memory nothing else has touched; an error that it ends with is its result."""
    command = [sys.executable, "-m", "benchmarks.crf_memory", task, json.dumps(options)]
    told = {name: value for name, value in options.items() if name != "folder"}  # where it was is no result
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
    if done.returncode:
        return {**told, "failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(done)}
    return {**told, **json.loads(done.stdout)}


if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))
