"""Spanish names: segments with and without features of their own beside a chain with the same attributes of tokens."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dualfield import CRF
from dualfield.io import read_conll
from dualfield.metrics import convert_scheme, span_f1_score, spans
from dualfield.structures import SemiMarkov
from reproductions.bootstrap import Counts, intervals
from reproductions.records import Cell, Findings, Part, Settings, Table, Task
from reproductions.text_data import read_text

FILES = ("conll2002_esp_train", "conll2002_esp_testa", "conll2002_esp_testb")
CHAIN, TOKENS, WHOLE = "chain, BIO", "segments", "segments with features"
MODELS = (CHAIN, TOKENS, WHOLE)
TEXTS = ["%x[all]", "%x[first]/%x[last]", "%x[first-1]/%x[last+1]", "%x[first,1]/%x[last,1]/%n"]
GRID = (0.1, 0.3, 1.0, 3.0)
MAX_LENGTH = 16
QUICK = 150  # sentences

Sentences = list[list[tuple[str, str]]]
Tags = list[list[str]]


@dataclass(frozen=True, slots=True)
class NamesRow:
    """One model.

    Attributes
    ----------
    model : str
        Its name.
    C : float
        Chosen on the development part.
    dev : tuple of float
        F1 there, for each C of the grid.
    counts : tuple of (int, int, int)
        For each test sentence the names that are right, predicted and true.
    gap, seconds : float
        Relative duality gap, and processor time of the chosen fit.
    left_out : int
        Training sentences with a longer segment than the model may have.
    """

    model: str
    C: float
    dev: tuple[float, ...]
    counts: tuple[tuple[int, int, int], ...]
    gap: float
    seconds: float
    left_out: int


def read(settings: Settings, name: str) -> tuple[Sentences, Tags]:
    """Read words with their tags, and names as BIO; a name that begins with I- is mended."""
    columns = read_text(settings, name, "words, tags and names", read_conll)
    columns = columns[:QUICK] if settings.quick else columns
    tags = convert_scheme([[row[2] for row in sentence] for sentence in columns], "BIO", source="any")
    return [[(row[0], row[1]) for row in sentence] for sentence in columns], tags


def counted(predicted: Tags, truth: Tags) -> list[tuple[int, int, int]]:
    """Return the names of each sentence that are right, predicted and true."""
    pairs = zip((set(spans(one)) for one in predicted), (set(spans(one)) for one in truth), strict=True)
    return [(len(ours & theirs), len(ours), len(theirs)) for ours, theirs in pairs]


def longest(tags: list[str]) -> int:
    """Return the number of tokens of the longest name."""
    return max((stop - start for _, start, stop in spans(tags)), default=0)


def fitted(settings: Settings, model: str, C: float, X: Sentences, y: Tags) -> CRF:
    """Train one model; all have the same template, and the rules of BIO."""
    shared: dict[str, Any] = {
        "C": C,
        "template": "default",
        "tol": 1e-3,
        "n_jobs": settings.threads,
        "random_state": settings.seed,
    }
    if model == CHAIN:
        return CRF("chain", constraints="BIO", **shared).fit(X, y)
    structure = SemiMarkov(max_length=MAX_LENGTH, segment_features=TEXTS if model == WHOLE else None)
    return CRF(structure, **shared).fit(X, y)


def compute(settings: Settings, model: str) -> NamesRow:
    """Choose C on the development part, and label the test part with that model."""
    (X, y), (X_dev, y_dev), (X_test, y_test) = (read(settings, name) for name in FILES)
    short = [at for at, tags in enumerate(y) if model == CHAIN or longest(tags) <= MAX_LENGTH]
    X, y, left_out = [X[at] for at in short], [y[at] for at in short], len(y) - len(short)
    best, dev = None, []
    for C in GRID[1:3] if settings.quick else GRID:
        began = time.process_time()
        one = fitted(settings, model, C, X, y)
        seconds = time.process_time() - began
        dev.append(100.0 * span_f1_score(y_dev, one.predict(X_dev)))
        if best is None or dev[-1] > max(dev[:-1]):
            best = one, C, seconds
    assert best is not None
    chosen, C, seconds = best
    return NamesRow(
        model=model,
        C=C,
        dev=tuple(dev),
        counts=tuple(counted(chosen.predict(X_test), y_test)),
        gap=chosen.dual_gap_ / chosen.objective_,
        seconds=seconds,
        left_out=left_out,
    )


def tasks(settings: Settings) -> list[Task[NamesRow]]:
    """Return one task for each model."""
    return [Task(model, partial(compute, settings, model)) for model in MODELS]


def present(rows: Sequence[NamesRow]) -> Findings:
    """Lay out scores, and what segments add to those of the chain on the same sentences."""
    counts: dict[str, Counts] = {row.model: np.array(row.counts, dtype=np.int64) for row in rows}
    found = intervals(counts, CHAIN)
    header = ("model", "C", "F1 on testa", "F1 on testb (95 %)", "minus the chain (95 %)", "gap", "CPU s")
    body: list[tuple[Cell, ...]] = []
    for row in rows:
        own, more = found[row.model]
        body.append((row.model, row.C, f"{max(row.dev):.2f}", str(own), str(more), row.gap, row.seconds))
    grid = " ".join(f"{row.model}: " + ", ".join(f"{one:.2f}" for one in row.dev) + "." for row in rows)
    best = found[WHOLE][1]
    verdict = "a gain" if best.low > 0 else "a loss" if best.high < 0 else "no difference that the test part could show"
    return Findings(
        summary=(f"Segments with features of their own against a chain: {best} points of F1, {verdict}.",),
        tables=(
            Table(
                "Names in Spanish news, the default template for all; C chosen on testa.",
                header,
                tuple(body),
                (
                    f"F1 on testa for each C: {grid}",
                    f"Segments have at most {MAX_LENGTH} tokens; {max(row.left_out for row in rows)} training "
                    "sentences have a longer one and were left out of their fits.",
                    "Intervals by drawing test sentences again, 2,000 times.",
                ),
            ),
        ),
        differences=(
            "Sarawagi and Cohen used other data and a dictionary of names; these are the data of CoNLL-2002, without.",
        ),
    )


NAMES = Part("names", "Spanish names", (), tasks, present)  # text files, which its first task looks for
