"""CoNLL-2000 with seven labels, and attributes that occur three times in a small draw of training sentences."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dualfield.io import read_conll
from reproductions.records import Settings
from reproductions.text_data import read_text

FILES = ("conll2000_train", "conll2000_test")
KEPT = ("B-NP", "I-NP", "B-VP", "I-VP", "B-PP", "O")
REST = "X"
LEAST, SHORTEST, LONGEST = 3, 5, 40

Items = list[list[str]]
Sentence = list[tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Training sequences of one draw, and the test sequences."""

    X: list[Any]
    y: list[list[str]]
    X_test: list[Any]
    y_test: list[list[str]]


def items(sentence: Sentence) -> Items:
    """Return words and tags around each token, and the pair of the last two tags."""

    def at(place: int, column: int) -> str:
        return sentence[place][column].lower() if 0 <= place < len(sentence) else "_"

    found = []
    for t in range(len(sentence)):
        words = [f"w{k:+d}={at(t + k, 0)}" for k in (-1, 0, 1)]
        tags = [f"t{k:+d}={at(t + k, 1)}" for k in (-1, 0, 1)]
        found.append([*words, *tags, f"tt={at(t - 1, 1)}|{at(t, 1)}"])
    return found


def coarse(label: str) -> str:
    """Return one of seven labels."""
    return label if label in KEPT else REST


def chunks(label: str) -> str:
    """Return a label in BIO of noun, verb and prepositional phrases only."""
    return label if label == "O" or label[2:] in ("NP", "VP", "PP") else "O"


@cache
def sentences(settings: Settings, name: str) -> list[Sentence]:
    """Read the sentences of 5 to 40 tokens."""
    found = read_text(settings, name, "words, tags and chunks", read_conll)
    return [[tuple(row) for row in one] for one in found if SHORTEST <= len(one) <= LONGEST]


def frequent(X: list[Items]) -> list[Items]:
    """Return the attributes that occur at least three times."""
    counts = Counter(name for xseq in X for item in xseq for name in item)
    return [[[name for name in item if counts[name] >= LEAST] for item in xseq] for xseq in X]


def draw(settings: Settings, n: int, seed: int, n_test: int, label: Callable[[str], str] = coarse) -> Drawn:
    """Draw training sentences; test sentences are always the same."""
    train, test = (sentences(settings, name) for name in FILES)
    rng = np.random.default_rng([settings.seed, seed])
    chosen = [train[at] for at in rng.choice(len(train), min(n, len(train)), replace=False)]
    kept = test[:n_test]
    return Drawn(
        frequent([items(one) for one in chosen]),
        [[label(row[2]) for row in one] for one in chosen],
        [items(one) for one in kept],
        [[label(row[2]) for row in one] for one in kept],
    )
