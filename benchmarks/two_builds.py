"""Two builds of the library side by side

The same fits and questions with the public interface of two builds, in processes that take turns, one thread each:
``python -m benchmarks.two_builds /path/of/the/other/python``. Seconds are processor time, medians over the turns; the
ratio is that of the other build to this one, above 1 where this one is faster, with the range over the turns. Peaks are
those of the resident set above what was there before the call. CRFsuite trains the same chunker to its own end in the
same run, for scale.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TURNS = 5
Case = Callable[[], Callable[[], Any]]  # prepares, and returns what is measured


def _sentences(n: int) -> list[list[list[str]]]:
    path = Path(os.environ["DUALFIELD_DATA"], "conll2000_train.txt.gz")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")[:n]
    return [[line.split() for line in block.split("\n")] for block in blocks]


def _chunking(n: int) -> tuple[list[list[list[str]]], list[list[str]]]:
    X = []
    for sentence in _sentences(n):
        words, tags = [row[0] for row in sentence], [row[1] for row in sentence]
        padded = [["", *words, ""], ["", *tags, ""]]
        X.append(
            [
                [
                    f"{name}[{k - 1}]={column[t + k]}"
                    for name, column in zip("wp", padded, strict=True)
                    for k in range(3)
                ]
                for t in range(len(words))
            ]
        )
    return X, [[row[2] for row in sentence] for sentence in _sentences(n)]


def _crf(**settings: Any) -> Callable[[], Any]:
    from dualfield import CRF

    X, y = _chunking(2000)
    return lambda: CRF(n_jobs=1, random_state=0, **settings).fit(X, y)


def _svm(**settings: Any) -> Callable[[], Any]:
    from dualfield import StructuredSVM

    X, y = _chunking(1000)
    return lambda: StructuredSVM(n_jobs=1, random_state=0, **settings).fit(X, y)


def _numbers(n: int, n_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    return X, (X @ rng.normal(size=(20, n_classes)) + rng.normal(size=(n, n_classes))).argmax(axis=1)


def _kernel(n_classes: int, **settings: Any) -> Callable[[], Any]:
    from dualfield import KernelLogisticRegression

    X, y = _numbers(3000, n_classes)
    return lambda: KernelLogisticRegression(C=10.0, n_jobs=1, **settings).fit(X, y)


def _kernel_words(estimator: str) -> Callable[[], Any]:
    import dualfield

    X, y = _numbers(3000, 8)
    words, labels = [X[i : i + 6] for i in range(0, 3000, 6)], [y[i : i + 6].tolist() for i in range(0, 3000, 6)]
    return lambda: getattr(dualfield, estimator)(kernel="rbf", n_jobs=1).fit(words, labels)


def _hmm(eta: float) -> Callable[[], Any]:
    from dualfield import DiscriminativeHMM

    sentences = _sentences(600)
    X, y = [[row[1] for row in one] for one in sentences], [[row[2] for row in one] for one in sentences]
    return lambda: DiscriminativeHMM(eta, tol=1e-2, n_jobs=1).fit(X, y)


def _latent() -> Callable[[], Any]:
    from dualfield import LatentMulticlass, LatentStructuredSVM, StructuredSVM

    X, y = _numbers(400, 3)
    model = LatentStructuredSVM(StructuredSVM(), LatentMulticlass(2), n_restarts=2, n_jobs=1, random_state=0)
    return lambda: model.fit(X, y)


def _tagging(question: str) -> Callable[[], Any]:
    from dualfield import CRF

    X, y = _chunking(2000)
    model = CRF(n_jobs=1, max_iter=3, random_state=0).fit(X, y)
    return lambda: getattr(model, question)(X)


def _file(mmap: bool) -> Callable[[], Any]:
    import dualfield

    X, y = _chunking(2000)
    model = dualfield.CRF(n_jobs=1, max_iter=3).fit(X, y)
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "model")
    model.save(path)
    return lambda: [dualfield.load(path, mmap=mmap).predict(X[:3]) for _ in range(20 if mmap else 5)] and folder


def _chain(question: str) -> Callable[[], Any]:
    from dualfield.structures import Chain, Scores

    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(5, 60, size=3000))])
    scores = Scores(rng.normal(size=(offsets[-1], 22)), offsets, transition=rng.normal(size=(22, 22)))
    return lambda: [getattr(Chain(22), question)(scores, n_jobs=1) for _ in range(10)]


CASES: dict[str, Case] = {
    "marginals of chains": lambda: _chain("marginals"),
    "best labellings of chains": lambda: _chain("argmax"),
    "CRF, block_dual": lambda: _crf(solver="block_dual"),
    "CRF, lbfgs": lambda: _crf(solver="lbfgs", max_iter=40),
    "CRF, sgd": lambda: _crf(solver="sgd", max_iter=5),
    "CRF, elastic net": lambda: _crf(l1_ratio=0.5, max_iter=40),
    "StructuredSVM, flow_swap": lambda: _svm(solver="flow_swap"),
    "StructuredSVM, cutting_plane": lambda: _svm(solver="cutting_plane", max_iter=8),
    "CRF with a kernel": lambda: _kernel_words("CRF"),
    "StructuredSVM with a kernel": lambda: _kernel_words("StructuredSVM"),
    "KernelLogisticRegression, 2 classes": lambda: _kernel(2),
    "KernelLogisticRegression, 5 classes": lambda: _kernel(5),
    "KernelLogisticRegression, smo": lambda: _kernel(2, solver="smo"),
    "DiscriminativeHMM, counted": lambda: _hmm(0.0),
    "DiscriminativeHMM, trained": lambda: _hmm(0.01),
    "LatentStructuredSVM": _latent,
    "predict": lambda: _tagging("predict"),
    "predict_proba": lambda: _tagging("predict_proba"),
    "load and predict": lambda: _file(False),
    "map and predict": lambda: _file(True),
}


def _peak(call: Callable[[], Any]) -> float:
    """High-water mark of the resident set during a call, above what was there; in megabytes."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")

    def kilobytes(name: str) -> int:
        return int(dict(line.split(":", 1) for line in status.read_text().splitlines())[name].split()[0])

    Path("/proc/self/clear_refs").write_text("5")
    before = kilobytes("VmRSS")
    call()
    return (kilobytes("VmHWM") - before) / 1024


def measure(name: str) -> dict[str, float]:
    """Measure a case in this process."""
    call = CASES[name]()
    peak = _peak(call)
    began = time.process_time()
    call()
    return {"seconds": time.process_time() - began, "megabytes": peak}


def _crfsuite() -> float:
    import pycrfsuite

    X, y = _chunking(2000)
    trainer = pycrfsuite.Trainer(verbose=False)
    for one, labels in zip(X, y, strict=True):
        trainer.append(one, labels)
    trainer.set_params({"c1": 0.0, "c2": 0.5})
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        trainer.train(str(Path(folder, "model")))
    return time.process_time() - began


def run(other: str, names: list[str]) -> dict[str, Any]:
    """Let both builds take turns."""
    pythons = {"other": other, "this": sys.executable}
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    for name in names or CASES:
        found[name] = {"other": [], "this": []}
        for turn in range(TURNS):
            for which in sorted(pythons, reverse=turn % 2 == 1):
                said = subprocess.run(
                    [pythons[which], __file__, name], capture_output=True, text=True, check=True, cwd="/"
                )
                found[name][which].append(json.loads(said.stdout.splitlines()[-1]))
        print(name, _row(name, found[name]), flush=True)
    return {"turns": TURNS, "cases": found, "crfsuite": _crfsuite()}


def _row(name: str, found: dict[str, list[dict[str, float]]]) -> str:
    seconds = {which: [one["seconds"] for one in found[which]] for which in found}
    peaks = {which: statistics.median(one["megabytes"] for one in found[which]) for which in found}
    each = [a / b for a, b in zip(seconds["other"], seconds["this"], strict=True)]
    middle = {which: statistics.median(seconds[which]) for which in seconds}
    ratio = f"{middle['other'] / middle['this']:.2f} ({min(each):.2f}-{max(each):.2f})"
    times = f"{middle['other']:.3f} | {middle['this']:.3f}"
    return f"| {name} | {times} | {ratio} | {peaks['other']:.0f} | {peaks['this']:.0f} |"


def table(result: dict[str, Any]) -> str:
    """Render the figures."""
    lines = [
        f"The other build is commit {result['other_commit']}; {result['turns']} turns.",
        "",
        "| case | other, s | this, s | other / this (range) | other, MB | this, MB |",
        "|---|---|---|---|---|---|",
        *(_row(name, found) for name, found in result["cases"].items()),
        "",
        f"CRFsuite's L-BFGS on the chunker of the CRFs, to its own end: {result['crfsuite']:.2f} s.",
    ]
    return "\n".join(lines)


if __name__ == "__main__" and len(sys.argv) == 2 and sys.argv[1] in CASES:
    print(json.dumps(measure(sys.argv[1])))
elif __name__ == "__main__":
    from benchmarks.__main__ import FOLDER, circumstances, write_aside, write_table

    if len(sys.argv) < 2:
        raise SystemExit("python -m benchmarks.two_builds /path/of/the/other/python [case ...]")
    home = Path(sys.argv[1]).parent
    told = subprocess.run(["git", "describe", "--always"], capture_output=True, text=True, cwd=home, check=False)
    outcome = run(sys.argv[1], sys.argv[2:])
    outcome |= {"other_commit": told.stdout.strip() or "unknown", "circumstances": circumstances()}
    write_aside(FOLDER / "results" / "two_builds.json", json.dumps(outcome, indent=1) + "\n")
    write_table()
