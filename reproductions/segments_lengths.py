"""Regions of a generated strand of DNA whose lengths are known: what a model of lengths adds to a chain."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dualfield import CRF
from dualfield.structures import Scores, SemiMarkov
from reproductions.records import Findings, Part, Settings, Table, Task

# Regions of three kinds: shares of the letters A, C, G, T, and the mean number of letters.
KINDS = ("coding", "gap", "island")
LETTERS = np.array([[0.22, 0.28, 0.28, 0.22], [0.32, 0.18, 0.18, 0.32], [0.15, 0.35, 0.35, 0.15]])
MEANS = np.array([30.0, 12.0, 20.0])
SPREAD = 3.0  # standard deviation of lengths
MAX_LENGTH = 48
CHAIN, SEGMENTS, KNOWN = "chain", "segments", "segments, true parameters"
MODELS = (CHAIN, SEGMENTS, KNOWN)
SLACK = 2  # letters by which a boundary may be off


@dataclass(frozen=True, slots=True)
class LengthsRow:
    """One model on one draw: shares of letters in the right region, of boundaries found, and of found ones right."""

    model: str
    seed: int
    letters: float
    recall: float
    precision: float


def length_table() -> NDArray[np.float64]:
    """Return the probability of each length, [kinds][MAX_LENGTH]: a normal density at whole numbers."""
    at = np.arange(1, MAX_LENGTH + 1)
    table = np.exp(-0.5 * ((at - MEANS[:, None]) / SPREAD) ** 2)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def draw(rng: np.random.Generator, n_regions: int = 10) -> tuple[NDArray[np.int64], list[str]]:
    """Draw one strand: its letters and the region of each."""
    table, letters, names, kind = length_table(), [], [], int(rng.integers(3))
    for _ in range(n_regions):
        n = int(rng.choice(MAX_LENGTH, p=table[kind])) + 1
        letters += rng.choice(4, size=n, p=LETTERS[kind]).tolist()
        names += [KINDS[kind]] * n
        kind = (kind + int(rng.integers(1, 3))) % 3
    return np.array(letters), names


def known_answers(strands: list[NDArray[np.int64]]) -> list[list[str]]:
    """Return the most probable regions under the parameters that the strands were drawn with."""
    structure = SemiMarkov(sorted(KINDS), MAX_LENGTH)
    order = [KINDS.index(name) for name in structure.kinds.names]
    pairs = np.where(np.eye(3, dtype=bool), 0.0, np.log(0.5))
    with np.errstate(divide="ignore"):
        lengths = np.maximum(np.log(length_table()[order]), -700.0)
    node = np.concatenate([np.log(LETTERS[order][:, one].T) for one in strands])
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in strands])])
    codes = structure.argmax(Scores(node, offsets, np.concatenate([pairs.ravel(), lengths.ravel()])))
    names = np.array(structure.labels)[codes]
    return [names[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def boundaries(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the places where another region begins."""
    return np.array([t for t in range(1, len(names)) if names[t] != names[t - 1]], dtype=np.int64)


def hits(some: NDArray[np.int64], others: NDArray[np.int64]) -> int:
    """Return how many of some boundaries are near one of the others."""
    return int((np.abs(some[:, None] - others[None, :]) <= SLACK).any(axis=1).sum()) if others.size else 0


def compute(settings: Settings, model: str, seed: int) -> LengthsRow:
    """Train on strands, and compare boundaries on others."""
    rng = np.random.default_rng([settings.seed, seed])
    n = 20 if settings.quick else 150
    train, test = [draw(rng) for _ in range(n)], [draw(rng) for _ in range(n)]
    truth = [names for _, names in test]
    if model == KNOWN:
        answers = known_answers([letters for letters, _ in test])
    else:
        structure = "chain" if model == CHAIN else SemiMarkov(max_length=MAX_LENGTH)
        fit = CRF(structure, C=1.0, features="all", n_jobs=settings.threads, tol=1e-3)
        fit.fit([np.eye(4)[letters] for letters, _ in train], [names for _, names in train])
        answers = fit.predict([np.eye(4)[letters] for letters, _ in test])
    pairs = [(boundaries(ours), boundaries(theirs)) for ours, theirs in zip(answers, truth, strict=True)]
    right = sum(a == b for ours, theirs in zip(answers, truth, strict=True) for a, b in zip(ours, theirs, strict=True))
    return LengthsRow(
        model=model,
        seed=seed,
        letters=right / sum(len(one) for one in truth),
        recall=sum(hits(theirs, ours) for ours, theirs in pairs) / sum(len(theirs) for _, theirs in pairs),
        precision=sum(hits(ours, theirs) for ours, theirs in pairs) / max(sum(len(ours) for ours, _ in pairs), 1),
    )


def tasks(settings: Settings) -> list[Task[LengthsRow]]:
    """Return a task for each model and draw."""
    draws = range(2 if settings.quick else 10)
    cases = itertools.product(draws, MODELS)
    return [Task(f"{model}, draw {seed}", partial(compute, settings, model, seed)) for seed, model in cases]


def present(rows: Sequence[LengthsRow]) -> Findings:
    """Lay out means over the draws with their standard errors."""

    def mean(model: str, field: str) -> str:
        values = np.array([getattr(row, field) for row in rows if row.model == model])
        return f"{100 * values.mean():.1f} ± {100 * values.std(ddof=1) / np.sqrt(len(values)):.1f}"

    recall = {model: np.mean([row.recall for row in rows if row.model == model]) for model in MODELS}
    return Findings(
        summary=(
            f"A chain finds {recall[CHAIN]:.0%} of the boundaries, a model of lengths {recall[SEGMENTS]:.0%}; one that "
            f"knows the true parameters {recall[KNOWN]:.0%}.",
        ),
        tables=(
            Table(
                "Regions of generated strands, per cent, mean and standard error over the draws.",
                ("model", "letters right", "boundaries found", "found ones right"),
                tuple((model, *(mean(model, f) for f in ("letters", "recall", "precision"))) for model in MODELS),
                (f"A boundary is found if one is predicted at most {SLACK} letters away.",),
            ),
        ),
        differences=("No paper has these data: they are drawn, so that the true parameters are known.",),
    )


LENGTHS = Part("lengths", "Regions with lengths", (), tasks, present)
