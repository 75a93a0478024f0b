"""Kernels in structured models: clique problems beside LIBSVM, kernel CRF and kernel max-margin network on letters

Clique problems: letters of words (26 classes) and pairs of letters (191 classes) with an RBF kernel, gamma = 8 / bits,
C = 5. Ours is the machine of Crammer and Singer to a certified relative gap of 1e-2, kernel values included; LIBSVM is
scikit-learn's SVC, one against one, with its default tolerance, on one thread. Error is the share of wrong letters in
the classes predicted for the cliques of 10,000 letters of other copies of the words.

Kernel chains: letters of words as sequences, kernels on the letters and weights for transitions. "1/9" trains on one of
ten folds and tests on the others, "9/1" the other way round; all 55 words occur in every fold. T_K is the time of the
kernel matrix of the training letters in floating point on the same threads, where it fits the memory. The gap is that
to the minimum of the full problem, divided by the objective; with landmarks it includes what they lost.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF, StructuredSVM
from dualfield.kernels import Kernel
from dualfield.objectives import KernelMargin
from dualfield.solvers import KernelAscent, StopRule

NEEDS_DATA = True
SIZES = (5000, 10_000, 20_000)
PARTS = ("cliques", "1/9", "9/1", "landmarks")
KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"kernel": "rbf", "gamma": 1 / 16},
    "poly 3": {"kernel": "poly", "gamma": 1 / 64, "coef0": 1.0, "degree": 3},
}


class Letters:
    """The letters of words, in order."""

    def __init__(self) -> None:
        data = np.load(Path(os.environ["DUALFIELD_DATA"]) / "ocr.npz")
        self.X, self.y, self.fold = data["X"], data["y"].astype(np.int32), data["fold"]
        cuts = np.flatnonzero(np.diff(data["word_id"])) + 1
        self.offsets = np.concatenate([[0], cuts, [len(self.y)]])

    def words(self, in_train: Any) -> tuple[Any, list[Any], Any]:
        """Return rows, labels by words, and lengths, of the words whose folds are chosen."""
        chosen = [(a, b) for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True) if in_train(self.fold[a])]
        rows = np.concatenate([np.arange(a, b) for a, b in chosen])
        return self.X[rows].astype(np.float32), [self.y[a:b] for a, b in chosen], [b - a for a, b in chosen]

    def cliques(self, size: int, n_letters: int, *, from_end: bool = False) -> tuple[Any, Any]:
        """Return inputs and labels (n, size) of the cliques of random words with so many letters together.

        Words are taken from the beginning or from the end of one order of all of them.
        """
        order = np.random.default_rng(0).permutation(len(self.offsets) - 1)
        order = order[::-1] if from_end else order
        starts: list[Any] = []
        total = 0
        for word in order:
            begin, end = self.offsets[word : word + 2]
            starts.append(np.arange(begin, end - size + 1))
            total += end - begin
            if total >= n_letters:
                break
        members = np.concatenate(starts)[:, None] + np.arange(size)
        return self.X[members].reshape(len(members), -1).astype(np.float32), self.y[members]


def clique_problem(letters: Letters, size: int, n_letters: int) -> dict[str, Any]:
    X, tuples = letters.cliques(size, n_letters)
    X_test, true = letters.cliques(size, 10_000, from_end=True)
    classes, codes = np.unique(tuples, axis=0, return_inverse=True)
    codes = codes.ravel().astype(np.int32)
    gamma = 8 / X.shape[1]
    result: dict[str, Any] = {"n": len(X), "classes": len(classes)}
    one, outputs = (np.arange(n, dtype=np.int32)[:, None] for n in (len(X), len(classes)))
    kernel = Kernel("rbf", gamma)
    for threads in (1, 2):
        began = time.perf_counter()
        problem = KernelMargin(
            kernel,
            X,
            one,
            outputs=outputs,
            truth=codes,
            weights=np.full(len(X), 5.0),
            n_labels=len(classes),
            n_threads=threads,
        )
        solution = KernelAscent().solve(problem, StopRule(1e-2))
        result[f"seconds, {threads} threads"] = time.perf_counter() - began
    assert solution.relative_gap <= 1e-2
    found = classes[kernel.scores(X_test, X, solution.parameters.coefficients).argmax(axis=1)]
    result |= {"gap": solution.relative_gap, "error": float((found != true).mean())}
    began = time.perf_counter()
    peer = SVC(C=5.0, gamma=gamma, cache_size=4000).fit(X, codes)
    result["seconds, LIBSVM"] = time.perf_counter() - began
    result["error, LIBSVM"] = float((classes[peer.predict(X_test)] != true).mean())
    return result


def chain(letters: Letters, direction: str, model: Any, tol: float) -> dict[str, Any]:
    one = direction == "1/9"
    X, y, lengths = letters.words(lambda fold: (fold == 0) == one)
    X_test, y_test, lengths_test = letters.words(lambda fold: (fold == 0) != one)
    began = time.perf_counter()
    model.set_params(tol=tol, n_jobs=2, random_state=0).fit(X, y, lengths=lengths)
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    found = model.predict(X_test, lengths=lengths_test)
    wrong = [np.asarray(a) != b for a, b in zip(found, y_test, strict=True)]
    return {
        "n": len(X),
        "seconds": seconds,
        "passes": float(model.trace_.passes[-1]),
        "gap": model.dual_gap_ / model.objective_,
        "objective": model.objective_,
        "points": len(model.expansion_.points),
        "letter error": float(np.concatenate(wrong).mean()),
        "word error": float(np.mean([one.any() for one in wrong])),
        "seconds to predict": time.perf_counter() - began,
        "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def kernel_seconds(X: Any) -> float:
    """T_K: the kernel matrix in floating point; a shift by half hides that the points are 0 and 1."""
    began = time.perf_counter()
    Kernel("rbf", 1 / 16).matrix(X + np.float32(0.5), single=True, budget=None, n_threads=2)
    return time.perf_counter() - began


def measure_direction(letters: Letters, direction: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if direction == "1/9":
        result["T_K"] = kernel_seconds(letters.words(lambda fold: fold == 0)[0])
    penalties = {"CRF": 50.0, "StructuredSVM": 5.0}
    for kind in (CRF, StructuredSVM):
        for name, kernel in KERNELS.items():
            if direction == "9/1" and name != "rbf":
                continue
            model = kind(C=penalties[kind.__name__], **kernel)
            result[f"{kind.__name__}, {name}"] = chain(letters, direction, model, 1e-2)
    return result


def measure_landmarks(letters: Letters) -> dict[str, Any]:
    result = {}
    for method in ("k-means++", "greedy", "leverage", "random"):
        for n in (250, 1000):
            model = CRF(C=50.0, kernel_approx=(n, method), **KERNELS["rbf"])
            result[f"{method}, {n}"] = chain(letters, "1/9", model, 1e-3)
    return result


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    """Measure all parts, or those named; `size` limits the letters of clique problems, for trying things out."""
    letters, result = Letters(), {}
    for part in parts:
        if part == "cliques":
            sizes = SIZES if size is None else (size,)
            result[part] = {
                f"{what}, {n}": clique_problem(letters, at, n)
                for at, what in ((1, "letters"), (2, "pairs"))
                for n in sizes
            }
        elif part == "landmarks":
            result[part] = measure_landmarks(letters)
        else:
            result[part] = measure_direction(letters, part)
    return result


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    rows = [
        (
            what,
            f"{found['n']:,} / {found['classes']}",
            f"{found['seconds, 1 threads']:.2f}",
            f"{found['seconds, 2 threads']:.2f}",
            f"{found['seconds, LIBSVM']:.2f}",
            f"{found['seconds, LIBSVM'] / found['seconds, 1 threads']:.1f}",
            f"{100 * found['error']:.2f}",
            f"{100 * found['error, LIBSVM']:.2f}",
        )
        for what, found in result.get("cliques", {}).items()
    ]
    head = "cliques | points / classes | s, 1 thread | s, 2 threads | s, LIBSVM | times faster | error, % | LIBSVM's, %"
    parts = [markdown(head, rows)]
    rows = []
    for part in ("1/9", "9/1", "landmarks"):
        unit = result.get("1/9", {}).get("T_K")
        for what, found in result.get(part, {}).items():
            if what == "T_K":
                continue
            each = found["seconds"] / max(found["passes"], 1e-9)
            shown = f"{each / unit:.2f}" if unit and part == "1/9" else ""
            rows.append(
                (
                    part,
                    what,
                    f"{found['n']:,}",
                    f"{found['seconds']:.1f}",
                    f"{found['passes']:.1f}",
                    shown,
                    f"{found['gap']:.1e}",
                    f"{found['points']:,}",
                    f"{100 * found['letter error']:.2f} / {100 * found['word error']:.1f}",
                    f"{found['peak GB']:.1f}",
                )
            )
    head = "letters | model | nodes | s | passes | T_K per pass | gap | points | letter / word error, % | peak GB"
    return "\n\n".join([*parts, markdown(head, rows)])
