"""Penalties on absolute values (L1, elastic net) beside CRFsuite

The entities of sklearn-crfsuite's tutorial (CoNLL-2002 Spanish, its attributes, all transitions), by the drop-in
`dualfield.estimators.crfsuite.CRF` and by CRFsuite's own L-BFGS (OWL-QN), on one thread, from the same lists. CRFsuite
ends after 100 iterations, as the tutorial sets it, or by its own rule, an improvement below 1e-5 over 10 iterations.
Seconds are processor time of the process, reading included, so that other work on the machine hardly counts. × compares
CRFsuite's time to its end with ours to the same objective, and to a relative duality gap that is certified to be at
most 1e-4. The fit to the same objective is given the number of passes that the other fit needed for it; its certified
gap stands beside it, and may be far from 1e-4. One run each. F1 is that of spans on the test part.
"""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.crf_data import Corpus, conll2002, crfsuite_tags, quality, train_crfsuite
from benchmarks.kernel_logistic_data import markdown
from dualfield.estimators.crfsuite import CRF

NEEDS_DATA = True
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Problem:
    """Penalties, iterations of CRFsuite (None: until it stops by itself), sentences to train on (None: all)."""

    c1: float
    c2: float
    most: int | None = None
    size: int | None = None


PROBLEMS = {
    "tutorial": Problem(0.1, 0.1, most=100),
    "tutorial, 800 sentences": Problem(0.1, 0.1, size=800),
    "absolute values alone, 800 sentences": Problem(1.0, 0.0, size=800),
}
AIM = 5  # how many times faster, to the objective at which CRFsuite ends


def fit_ours(problem: Problem, corpus: Corpus, most: int | None = None) -> tuple[CRF, float]:
    """A fit, to the tolerance or so many passes, and its processor time."""
    model = CRF(c1=problem.c1, c2=problem.c2, all_possible_transitions=True, delta=TOLERANCE, max_iterations=most)
    start = time.process_time()
    model.fit(corpus.X, corpus.y)
    return model, time.process_time() - start


def state_of(model: CRF, seconds: float) -> dict[str, Any]:
    gap = float(model.dual_gap_ / (model.objective_ - model.dual_gap_))
    passes = float(model.trace_.passes[-1])
    return {"seconds": seconds, "passes": passes, "objective": float(model.objective_), "relative_gap": gap}


def measure(name: str, size: int | None = None) -> dict[str, Any]:
    """CRFsuite to its end; ours to a certificate, and again to the objective where CRFsuite ended."""
    problem = PROBLEMS[name]
    corpus = conll2002(None)
    kept = size or problem.size
    corpus = Corpus(corpus.name, corpus.X[:kept], corpus.y[:kept], corpus.X_test, corpus.y_test)
    options = {"c1": problem.c1, "c2": problem.c2, "transitions": True, "most": problem.most}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        course = train_crfsuite(corpus, path, clock=time.process_time, **options)
        theirs = quality(corpus, crfsuite_tags(corpus, path))
    target = course.objectives[-1] + 5e-7  # it writes six digits
    certified, seconds = fit_ours(problem, corpus)
    found = {"certified": state_of(certified, seconds)}
    assert certified.n_features_ == course.n_features, f"{certified.n_features_} features, not {course.n_features}"
    assert certified.objective_ <= target * (1.0 + TOLERANCE), f"{certified.objective_} where {target} was reached"
    looks = np.flatnonzero(certified.trace_.objective <= target)
    # The objective goes up and down a little on its way, and a fit that is to end there may end a pass later.
    first = math.ceil(certified.trace_.passes[looks[0]]) if looks.size else math.inf
    while first < certified.trace_.passes[-1]:
        model, seconds = fit_ours(problem, corpus, int(first))
        if model.objective_ <= target:
            found["same"] = state_of(model, seconds)
            break
        first += 1
    return {
        "data": corpus.name,
        "n_sentences": len(corpus.X),
        "n_tokens": corpus.n_tokens,
        "c1": problem.c1,
        "c2": problem.c2,
        "most": problem.most,
        "n_features": certified.n_features_,
        "solver": certified.solver_,
        **found,
        "peer": {
            "seconds": course.seconds[-1],
            "iterations": len(course.objectives),
            "objective": course.objectives[-1],
        },
        "ratios": {key: course.seconds[-1] / one["seconds"] for key, one in found.items()},
        "quality": quality(corpus, certified.predict(corpus.X_test)),
        "peer_quality": theirs,
        "n_nonzero": len(certified.state_features_ or ()) + len(certified.transition_features_ or ()),
    }


def run(parts: Sequence[str] = tuple(PROBLEMS), size: int | None = None) -> dict[str, Any]:
    """Measure all problems, or those named; `size` limits the sentences, for trying things out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {"name": "crf_l1", "problems": {part: measure(part, size) for part in parts}}


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown; the aim in brackets."""
    rows = []
    for name, one in result["problems"].items():
        peer, sides = one["peer"], []
        for key in ("same", "certified"):
            state = one.get(key)
            sides.append(
                ("–", "–")
                if state is None
                else (
                    f"{one['ratios'][key]:.1f}",
                    f"{state['seconds']:.2f} s, {state['passes']:.0f} passes, {state['relative_gap']:.1e}",
                )
            )
        values = f"{one['certified']['objective']:.2f} / {peer['objective']:.2f}"
        f1 = " / ".join(f"{100 * one[side]['f1']:.2f}" for side in ("quality", "peer_quality"))
        ours = [text for pair in sides for text in pair]
        what = f"{name}: c1 = {one['c1']:g}, c2 = {one['c2']:g}"
        rows.append((what, f"{peer['seconds']:.1f} s, {peer['iterations']} iterations", *ours, values, f1))
    heads = f"problem | CRFsuite to its end | × to its objective ({AIM}) | ours to its objective, gap there"
    heads += " | × to a gap of 1e-4 | ours to a gap of 1e-4, gap"
    return markdown(f"{heads} | objective ours / CRFsuite | F1 ours / CRFsuite", rows)
