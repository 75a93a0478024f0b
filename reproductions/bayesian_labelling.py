"""Active learning: which sentences are labelled next, and what a tagger learns from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dualfield import CRF, BaggedTagger
from dualfield.metrics import span_f1_score
from dualfield.report import Line
from reproductions.bayesian_data import FILES, items, sentences
from reproductions.records import Cell, Figure, Findings, Part, Settings, Table, Task

RANDOM = "random"
WAYS = {
    RANDOM: None,
    "entropy per token": ("entropy", "token"),
    "entropy": ("entropy", "sentence"),
    "least confidence": ("least_confidence", "sentence"),
    "BALD per token": ("bald", "token"),
}
POOL, TEST, START, BATCH, ROUNDS, SEEDS = 1200, 400, 20, 30, 6, 5
AT = 3000  # labelled tokens at which ways are compared


@dataclass(frozen=True, slots=True)
class LabellingRow:
    """One way with one start: labelled tokens and span F1 after each round."""

    way: str
    seed: int
    tokens: tuple[int, ...]
    scores: tuple[float, ...]

    def at(self, tokens: float) -> float:
        """Return the score at a number of labelled tokens, between two rounds by a straight line."""
        return float(np.interp(tokens, self.tokens, self.scores))


def compute(settings: Settings, way: str, seed: int) -> LabellingRow:
    """Label, train, rank what is left, and so on."""
    n_pool, n_test, rounds = (100, 40, 1) if settings.quick else (POOL, TEST, ROUNDS)
    train, test = (sentences(settings, name) for name in FILES)
    X, y = [items(one) for one in train[:n_pool]], [[row[2] for row in one] for one in train[:n_pool]]
    X_test, y_test = [items(one) for one in test[:n_test]], [[row[2] for row in one] for one in test[:n_test]]
    rng = np.random.default_rng([settings.seed, seed])
    order = rng.permutation(len(X)).tolist()
    have, rest = order[:START], order[START:]
    tokens, scores, by = [], [], WAYS[way]
    for _ in range(rounds + 1):
        some = [X[at] for at in have], [y[at] for at in have]
        model = CRF(C=1.0).fit(*some)
        tokens.append(sum(map(len, some[1])))
        scores.append(100.0 * span_f1_score(y_test, model.predict(X_test)))
        chosen = list(range(min(BATCH, len(rest))))
        if by is not None:
            ranker = (
                BaggedTagger(CRF(C=1.0), n_estimators=8, random_state=seed).fit(*some) if by[0] == "bald" else model
            )
            chosen = ranker.rank_for_labelling([X[at] for at in rest], by=by[0], per=by[1]).order[:BATCH].tolist()
        have = have + [rest[at] for at in chosen]
        taken = set(chosen)
        rest = [one for at, one in enumerate(rest) if at not in taken]
    return LabellingRow(way, seed, tuple(tokens), tuple(scores))


def tasks(settings: Settings) -> list[Task[LabellingRow]]:
    """Return a task for each way and start."""
    seeds = 1 if settings.quick else SEEDS
    return [
        Task(f"{way}, start {seed}", partial(compute, settings, way, seed)) for way in WAYS for seed in range(seeds)
    ]


def present(rows: Sequence[LabellingRow]) -> Findings:
    """Compare the ways at equal numbers of labelled tokens."""
    ways = list(dict.fromkeys(row.way for row in rows))
    at = min(float(AT), min(row.tokens[-1] for row in rows))
    by_seed = {(row.way, row.seed): row.at(at) for row in rows}
    seeds = sorted({row.seed for row in rows})
    body: list[tuple[Cell, ...]] = []
    lines = []
    for way in ways:
        mine = [row for row in rows if row.way == way]
        more = np.array([by_seed[way, seed] - by_seed[RANDOM, seed] for seed in seeds])
        error = f" ± {more.std(ddof=1) / np.sqrt(len(more)):.2f}" if len(more) > 1 else ""
        ends = np.mean([(row.tokens[-1], row.scores[-1]) for row in mine], axis=0)
        mean = float(np.mean([by_seed[way, seed] for seed in seeds]))
        body.append((way, f"{mean:.2f}", f"{more.mean():+.2f}{error}", f"{ends[1]:.2f}", int(ends[0])))
        xs, ys = np.mean([row.tokens for row in mine], axis=0), np.mean([row.scores for row in mine], axis=0)
        lines.append(Line(way, xs.tolist(), ys.tolist()))
    gain = np.mean([by_seed["entropy per token", seed] - by_seed[RANDOM, seed] for seed in seeds])
    header = ("way", f"F1 at {at:.0f} labelled tokens", "minus random", "F1 at the end", "labelled tokens there")
    return Findings(
        summary=(f"Entropy per token against random sentences at {at:.0f} labelled tokens: {gain:+.2f} points of F1.",),
        tables=(
            Table(
                f"Span F1 on CoNLL-2000, {START} sentences at first and {BATCH} more in each round; CRF(C=1).",
                header,
                tuple(body),
                ("BALD is what eight models of draws of the labelled sentences disagree about.",),
            ),
        ),
        figures=(Figure("labelling", "What labels teach", tuple(lines), "labelled tokens", "span F1"),),
        differences=("The paper does not choose what is labelled.",),
    )


LABELLING = Part("labelling", "Which sentences to label next", (), tasks, present)
