"""Whether models of draws of the training sentences differ as models of other training sentences do."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dualfield import CRF, BaggedTagger
from dualfield.models.spans import Marked, span_probabilities
from reproductions.bayesian_data import chunks, draw
from reproductions.records import Cell, Findings, Part, Settings, Table, Task

SIZES, SEEDS, FRESH, N_TEST, C = (50, 200), 3, 100, 80, 10.0
WIDTH = 1.645  # standard deviations on each side: nine tenths of a normal distribution


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """One bagged tagger.

    Attributes
    ----------
    n, seed : int
        Training sentences, and which draw of them.
    n_spans : int
        Spans that it predicts.
    covered : float
        Share of them whose mean probability under fresh models is inside of the interval.
    bias : float
        By how much its probabilities are above these, on average.
    ratio : float
        Median of its standard deviation divided by that of fresh models.
    """

    n: int
    seed: int
    n_spans: int
    covered: float
    bias: float
    ratio: float


def compute(settings: Settings, n: int, seed: int) -> CoverageRow:
    """Compare the spread of ten bagged models with that of models of fresh sentences."""
    n_test, n_fresh = (10, 5) if settings.quick else (N_TEST, FRESH)
    data = draw(settings, n, seed, n_test, chunks)
    model = BaggedTagger(CRF(C=C, constraints="BIO"), random_state=seed).fit(data.X, data.y)
    spans: list[list[Any]] = [list(some) for some in model.predict_spans(data.X_test, return_std=True)]
    found = [Marked(i, one.type, one.start, one.stop) for i, some in enumerate(spans) for one in some]
    mean = np.array([one.probability for some in spans for one in some])
    std = np.array([one.std for some in spans for one in some])
    fresh = np.zeros((n_fresh, len(found)))
    for at in range(n_fresh):
        other = draw(settings, n, 1000 * (seed + 1) + at, n_test, chunks)
        one = CRF(C=C, constraints="BIO").fit(other.X, other.y).model_
        known = np.array([any(name[2:] == span.type for name in one.names) for span in found])
        wanted = [span for span, is_known in zip(found, known, strict=True) if is_known]
        scores = one.scores(other.X_test)
        fresh[at, known] = span_probabilities(one.structure, scores, wanted, one.names, "O", 1.0, settings.threads)
    truth, spread = fresh.mean(axis=0), fresh.std(axis=0, ddof=1)
    covered = np.abs(mean - truth) <= WIDTH * std
    ratio = float(np.median(std / np.maximum(spread, 1e-12)))
    return CoverageRow(n, seed, len(found), float(covered.mean()), float((mean - truth).mean()), ratio)


def tasks(settings: Settings) -> list[Task[CoverageRow]]:
    """Return a task for each size and draw."""
    sizes, seeds = ((20,), 1) if settings.quick else (SIZES, SEEDS)
    return [
        Task(f"{n} sentences, draw {seed}", partial(compute, settings, n, seed)) for n in sizes for seed in range(seeds)
    ]


def present(rows: Sequence[CoverageRow]) -> Findings:
    """Lay out coverage."""
    body: list[tuple[Cell, ...]] = []
    for row in rows:
        body.append((row.n, row.seed, row.n_spans, f"{100 * row.covered:.1f} %", f"{row.bias:+.3f}", row.ratio))
    share = 100 * np.average([row.covered for row in rows], weights=[row.n_spans for row in rows])
    return Findings(
        summary=(
            f"Intervals of {WIDTH} standard deviations of ten bagged models, nominally 90 %, have the mean of models "
            f"of fresh sentences in {share:.0f} % of the spans: the spread is a hint, not a confidence interval.",
        ),
        tables=(
            Table(
                "Probabilities of predicted spans: ten bagged models beside models of fresh sentences.",
                ("sentences", "draw", "spans", "covered", "mean minus that of fresh models", "spread / theirs"),
                tuple(body),
                ("Spans are those that the bagged models predict, so that their probabilities are too high a little.",),
            ),
        ),
        differences=("The paper has no intervals, and no bagging.",),
    )


INTERVALS = Part("intervals", "Spread of the probabilities of spans", (), tasks, present)
