"""Structural SVMs: the hinge on chains beside the log-loss, block-coordinate Frank-Wolfe and LIBLINEAR

Seconds are those of the solver on one thread, after the features are laid out, until a relative duality gap is
certified. ÷ compares the hinge with the log-loss of the same data, features and penalty in the same run. Frank-Wolfe
is the published one with weighted averaging, in NumPy. For single letters LIBLINEAR solves the same problem
(Crammer and Singer); its time is the shortest of several tolerances that come within the gap of our certified optimum.
Error is that of letters, F1 that of spans, on the test part. On the letters of words "1/9" means one of ten folds to
train on; all 55 words occur in every fold.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.crf_data import Corpus, conll2000, ocr, quality
from benchmarks.frank_wolfe import frank_wolfe
from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF, StructuredSVM

NEEDS_DATA = True
GAPS = (1e-2, 1e-3)


@dataclass(frozen=True)
class Problem:
    """A corpus, a penalty, and how many times the time of the log-loss the hinge may take to each gap."""

    corpus: Callable[[int | None], Corpus]
    penalty: float
    aims: tuple[float | None, float | None]
    everything: bool = False
    frank_wolfe: int = 0  # passes


_ONE, _NINE = partial(ocr, train_folds=(0,)), partial(ocr, train_folds=tuple(range(1, 10)))
PROBLEMS = {
    "conll2000 λ=2": Problem(conll2000, 2.0, (2, 3)),
    "conll2000 λ=20": Problem(conll2000, 20.0, (4, None)),
    "conll2000 λ=0.2": Problem(conll2000, 0.2, (4, None)),
    "ocr 1/9 λ=6.26": Problem(_ONE, 6.26, (5, None), True, 100),
    "ocr 1/9 λ=0.6": Problem(_ONE, 0.6, (5, None), True),
    "ocr 9/1 λ=62.5": Problem(_NINE, 62.5, (None, None), True),
}
PARTS = (*PROBLEMS, "letters")


def arrival(model: Any, gap: float) -> float | None:
    """Seconds until a gap was certified."""
    trace = model.trace_
    close = np.flatnonzero((trace.dual > 0) & (trace.gap <= gap * trace.dual))
    return float(trace.seconds[close[0]]) if close.size else None


def measure(problem: Problem, size: int | None) -> dict[str, Any]:
    corpus = problem.corpus(size)
    settings = {"C": 1 / problem.penalty, "n_jobs": 1, "random_state": 0}
    settings["features"] = "all" if problem.everything else "observed"
    result: dict[str, Any] = {"penalty": problem.penalty, "aims": problem.aims}
    logs = [CRF(solver="block_dual", tol=gap, **settings).fit(corpus.X, corpus.y) for gap in GAPS]
    result["log-loss"] = {
        "seconds": [float(one.trace_.seconds[-1]) for one in logs],
        **quality(corpus, logs[-1].predict(corpus.X_test)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        hinge = StructuredSVM(solver="flow_swap", tol=GAPS[-1], max_iter=400, **settings).fit(corpus.X, corpus.y)
    result["hinge"] = {
        "seconds": [arrival(hinge, gap) for gap in GAPS],
        "objective": hinge.objective_ * problem.penalty,
        "gap": hinge.dual_gap_ / (hinge.objective_ - hinge.dual_gap_),
        "passes": float(hinge.trace_.passes[-1]),
        **quality(corpus, hinge.predict(corpus.X_test)),
    }
    if problem.frank_wolfe:
        result["frank-wolfe in NumPy"] = frank_wolfe(corpus, problem.penalty, problem.frank_wolfe, GAPS)
    return result


def letters() -> dict[str, Any]:
    """Single letters: the Crammer-Singer problem, beside LIBLINEAR."""
    corpus = _ONE(None)
    columns = {name: at for at, name in enumerate(sorted({n for items in corpus.X for item in items for n in item}))}
    X = np.zeros((sum(map(len, corpus.X)), len(columns)))
    for row, item in enumerate(item for items in corpus.X for item in items):
        X[row, [columns[name] for name in item]] = 1.0
    y = np.array([label for labels in corpus.y for label in labels])
    C = 0.1
    ours = StructuredSVM(structure="single", C=C, tol=GAPS[-1], random_state=0, n_jobs=1).fit(X, y)
    optimum = StructuredSVM(structure="single", C=C, tol=1e-6, random_state=0, n_jobs=1).fit(X, y).objective_
    codes = np.searchsorted(ours.classes_, y)
    theirs: list[float | None] = [None, None]
    for tol in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            peer = LinearSVC(multi_class="crammer_singer", C=C, fit_intercept=False, tol=tol, max_iter=100_000).fit(
                X, y
            )
            seconds = time.perf_counter() - began
        scores = X @ peer.coef_.T
        true = scores[np.arange(len(y)), codes]
        margin = scores + 1.0
        margin[np.arange(len(y)), codes] -= 1.0
        value = 0.5 * float((peer.coef_**2).sum()) + C * float((margin.max(axis=1) - true).sum())
        for at, gap in enumerate(GAPS):
            if theirs[at] is None and value <= (1 + gap) * optimum:
                theirs[at] = seconds
    return {"flow_swap": [arrival(ours, gap) for gap in GAPS], "liblinear": theirs, "n": len(y), "C": C}


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    return {part: letters() if part == "letters" else measure(PROBLEMS[part], size) for part in parts}


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def table(result: dict[str, Any]) -> str:
    rows = []
    for part, found in result.items():
        if part not in PROBLEMS:
            continue
        log, hinge = found["log-loss"], found["hinge"]
        score = next(name for name in ("f1", "error") if name in hinge)
        for at, gap in enumerate(GAPS):
            own, other = hinge["seconds"][at], log["seconds"][at]
            aim = found["aims"][at]
            published = found.get("frank-wolfe in NumPy")
            rows.append(
                [
                    part if at == 0 else "",
                    f"{gap:g}",
                    f"{other:.2f}",
                    _shown(own, ".2f"),
                    "-" if own is None else f"÷ {own / other:.2f}",
                    "" if aim is None else f"÷ {aim}",
                    "" if published is None else _shown(published["seconds"][at], ".1f"),
                    f"{log[score]:.4f} / {hinge[score]:.4f} ({score})" if at == 0 else f"gap {hinge['gap']:.1e}",
                ]
            )
    header = "problem | gap | log-loss s | hinge s | ratio | aim | Frank-Wolfe in NumPy s | log-loss / hinge"
    text = markdown(header, rows)
    if "letters" in result:
        found = result["letters"]
        lines = [
            [f"{gap:g}", _shown(found["flow_swap"][at], ".3f"), _shown(found["liblinear"][at], ".3f")]
            for at, gap in enumerate(GAPS)
        ]
        text += f"\n\n{found['n']} single letters, C = {found['C']}:\n\n"
        text += markdown("gap | flow_swap s | LIBLINEAR s", lines)
    return text
