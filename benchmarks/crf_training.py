"""Conditional random fields beside CRFsuite, Wapiti and chaine

Both sides get the same lists of attribute strings and labels and minimise the same function, c2 ||w||² + loss;
ours has one thread, Wapiti two. "Its end" is the objective at which the peer stopped by its own rule (Wapiti by
CRFsuite's), and times are those until a side has come down to it; a gap instead means that ours is certified to be that
close to the optimum, and the peer's time is the one until it is (it cannot know). "All" starts with the lists, "solver"
when the features are laid out. Error and F1 (of spans) are those on the test part. Peers that are not installed are
left out.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.crf_data import (
    Corpus,
    Course,
    conll2000,
    conll2002,
    crfsuite_tags,
    ocr,
    quality,
    train_chaine,
    train_crfsuite,
    train_wapiti,
)
from benchmarks.crf_memory import measure as measure_memory
from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF

NEEDS_DATA = True
DIGITS = {"wapiti": 2}  # of the objectives that a peer logs; 6 otherwise
TRAINERS: dict[str, Callable[..., Course]] = {
    "python-crfsuite": train_crfsuite,
    "chaine": train_chaine,
    "wapiti": train_wapiti,
}


@dataclass(frozen=True)
class Problem:
    """A corpus, a penalty and how often ours should be faster, all included and in the solver alone."""

    corpus: Callable[[int | None], Corpus]
    c2: float
    aims: tuple[float | None, float | None] = (None, None)
    everything: bool = False
    gap: float | None = None
    n_features: int | None = None
    peer: str = "python-crfsuite"
    n_rounds: int = 1


PROBLEMS = {
    "conll2000": Problem(conll2000, 1.0, (12, 15), n_features=452_755),
    "weak": Problem(conll2000, 0.05, (5, None), gap=1e-3, n_features=452_755),
    "conll2002": Problem(conll2002, 1.0, (10, None)),
    "ocr_1_9": Problem(partial(ocr, train_folds=(0,)), 3.13, (8, None), everything=True, n_features=4004, n_rounds=5),
    "ocr_9_1": Problem(
        partial(ocr, train_folds=tuple(range(1, 10))), 31.25, (8, None), everything=True, n_features=4004, n_rounds=3
    ),
    "chaine": Problem(conll2000, 1.0, peer="chaine", n_features=452_755),
    "wapiti": Problem(conll2000, 1.0, peer="wapiti", everything=True, n_features=7_385_312),
}
PARTS = (*PROBLEMS, "solvers", "memory")
SOLVERS = ("block_dual", "lbfgs", "sgd", "perceptron")
SHOWN = {"seconds": ".2f", "objective": ".2f", "gap_over_objective": ".1e", "passes": ".0f"}


def fit_ours(problem: Problem, corpus: Corpus, tol: float) -> CRF:
    kind = "all" if problem.everything else "observed"
    model = CRF(C=1 / (2 * problem.c2), features=kind, tol=tol, n_jobs=1, random_state=0)
    return model.fit(corpus.X, corpus.y)


def in_their_units(model: CRF) -> float:
    return float(model.objective_ / model.C)


def arrival(model: CRF, target: float) -> int | None:
    """The first look at which the objective was this small."""
    looks = np.flatnonzero(model.trace_.objective / model.C <= target)
    return int(looks[0]) if looks.size else None


def tolerance_for(target: float, problem: Problem, corpus: Corpus) -> float:
    """The largest tolerance, more or less, with which a fit comes down to this objective."""
    for tol in (1e-3, 1e-5, 1e-7, 1e-9):
        model = fit_ours(problem, corpus, tol)
        at = arrival(model, target)
        if at is not None:
            break
    else:
        raise AssertionError(f"no fit came down to {target}: the last to {in_their_units(model)}")
    tol = max(tol, float(model.trace_.gap[at] / model.trace_.dual[at]))
    while in_their_units(fit_ours(problem, corpus, tol)) > target:
        tol *= 0.8
    return tol


def measure(name: str, size: int | None = None) -> dict[str, Any]:
    """Time to the same objective, after checking that it is the same."""
    problem = PROBLEMS[name]
    module = {"python-crfsuite": "pycrfsuite"}.get(problem.peer, problem.peer)
    if importlib.util.find_spec(module) is None:
        return {"skipped": f"{problem.peer} is not installed"}
    corpus = problem.corpus(size)
    options = {"c2": problem.c2, "everything": problem.everything}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        courses = [TRAINERS[problem.peer](corpus, path, **options)]
        if problem.gap is None:
            target = courses[0].objectives[-1] + 0.5 * 10.0 ** -DIGITS.get(problem.peer, 6)
            tol = tolerance_for(target, problem, corpus)
        else:
            optimum = in_their_units(fit_ours(problem, corpus, problem.gap / 10))
            target, tol = (1 + problem.gap) * optimum, problem.gap
        times: dict[str, list[float]] = {"fit": [], "solver": []}
        for at in range(max(3, problem.n_rounds)):
            if 0 < at < problem.n_rounds:
                courses.append(TRAINERS[problem.peer](corpus, path, **options))
            start = time.perf_counter()
            model = fit_ours(problem, corpus, tol)
            times["fit"].append(time.perf_counter() - start)
            times["solver"].append(float(model.trace_.seconds[-1]))
        theirs = quality(corpus, crfsuite_tags(corpus, path)) if path.exists() else {}
    counts = {model.n_features_, courses[0].n_features or model.n_features_}
    assert len(counts) == 1, f"not the same features: {counts}"
    assert size is not None or counts <= {problem.n_features or model.n_features_}, f"{counts} features"
    assert in_their_units(model) <= target, f"{in_their_units(model)} where {target} was the aim"
    seconds = {key: float(np.median(each)) for key, each in times.items()}
    seconds["peer_fit"] = float(np.median([course.seconds_to(target) for course in courses]))
    seconds["peer_solver"] = float(np.median([course.seconds_to(target) - course.prepared for course in courses]))
    return {
        "data": corpus.name,
        "peer": problem.peer,
        "n_tokens": corpus.n_tokens,
        "n_features": model.n_features_,
        **options,
        "gap_asked": problem.gap,
        "aims": problem.aims,
        "seconds": seconds,
        "append_seconds": courses[0].appended,
        "ratios": {key: seconds[f"peer_{key}"] / seconds[key] for key in times},
        "tol": tol,
        "solver": model.solver_,
        "passes": float(model.trace_.passes[-1]),
        "relative_gap": float(model.dual_gap_ / (model.objective_ - model.dual_gap_)),
        "objective": in_their_units(model),
        "peer_objective": courses[0].objectives[-1],
        "peer_iterations": len(courses[0].objectives),
        "quality": quality(corpus, model.predict(corpus.X_test)),
        "peer_quality": theirs,
        "peer_course": {"seconds": courses[0].seconds, "objectives": courses[0].objectives},
    }


def measure_solvers(size: int | None = None) -> list[dict[str, Any]]:
    """All our solvers with their defaults, on CoNLL-2000 at c2 = 1."""
    corpus, rows = conll2000(size), []
    for solver in SOLVERS:
        start = time.perf_counter()
        model = CRF(C=0.5, solver=solver, random_state=0).fit(corpus.X, corpus.y)
        seconds = time.perf_counter() - start
        gap, passes = float(model.dual_gap_ / model.objective_), float(model.trace_.passes[-1])
        result = {"solver": solver, "seconds": seconds, "objective": in_their_units(model), "gap_over_objective": gap}
        rows.append({**result, "passes": passes, **quality(corpus, model.predict(corpus.X_test))})
    return rows


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    """Measure all parts, or those named; `size` limits the sentences, for trying things out."""
    calls: dict[str, Callable[[], Any]] = {name: partial(measure, name, size) for name in PROBLEMS}
    calls["solvers"] = partial(measure_solvers, size)
    calls["memory"] = lambda: [measure_memory("training", peer=peer, size=size) for peer in ("crfsuite", "dualfield")]
    return {"name": "crf_training", **{part: calls[part]() for part in parts}}


def speed_row(one: dict[str, Any]) -> tuple[Any, ...]:
    """data, peer, where to, ratios with their aims, seconds."""
    aims = [f" ({aim})" if aim else "" for aim in one["aims"]]
    ratios = [f"{one['ratios'][key]:.1f}{aim}" for key, aim in zip(("fit", "solver"), aims, strict=True)]
    where = "its end" if one["gap_asked"] is None else f"gap {one['gap_asked']:.0e}"
    seconds = [f"{one['seconds'][key]:.3g}" for key in ("fit", "solver", "peer_fit", "peer_solver")]
    what = f"{one['data']}, {one['n_features']:,} features, c2 = {one['c2']:g}"
    return (what, one["peer"], where, *ratios, *seconds, f"{one['passes']:.0f} / {one['peer_iterations']}")


def quality_row(one: dict[str, Any]) -> tuple[Any, ...]:
    def both(key: str, digits: int) -> str:
        sides = [one[side].get(key) for side in ("quality", "peer_quality")]
        return " / ".join("–" if value is None else f"{100 * value:.{digits}f}" for value in sides)

    values = f"{one['objective']:.3f} / {one['peer_objective']:.3f}"
    what = f"{one['data']}, c2 = {one['c2']:g}"
    return (what, one["peer"], values, f"{one['relative_gap']:.1e}", both("f1", 2), both("error", 2))


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown; aims in brackets."""
    found = [result[name] for name in PROBLEMS if name in result]
    done = [one for one in found if "skipped" not in one]
    parts = []
    if done:
        heads = "data | peer | until | × all (aim) | × solver (aim) | all, s | solver, s | peer all, s | peer solver, s"
        parts.append(markdown(heads + " | passes / peer's iterations", [speed_row(one) for one in done]))
        heads = "data | peer | objective ours / peer | certified gap | F1 ours / peer (aim 93.6 on CoNLL-2000, c2 = 1)"
        parts.append(markdown(heads + " | error ours / peer, %", [quality_row(one) for one in done]))
    parts += [f"Skipped: {one['skipped']}." for one in found if "skipped" in one]
    if "solvers" in result:
        rows = [
            (r["solver"], *(f"{r[key]:{form}}" for key, form in SHOWN.items()), f"{100 * r['f1']:.2f}")
            for r in result["solvers"]
        ]
        heads = "our solvers, CoNLL-2000, c2 = 1 | all, s | objective | gap ÷ objective | passes | F1"
        parts.append(markdown(heads, rows))
    if "memory" in result:
        rows = [(one["peer"], f"{one['added_megabytes']:.0f}") for one in result["memory"]]
        parts.append(markdown("training on CoNLL-2000 (aim: less than the peer) | MB above the lists", rows))
    return "\n\n".join(parts)
