"""A small corpus of local news with labelled names, generated from a grammar, for first steps and tests."""

from __future__ import annotations

import numbers
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from dualfield.datasets.town_news_grammar import NAMES, PHRASES, SENTENCES

Sentences = list[list[str]]

_CHOICE = re.compile(r"\[([^\[\]{}]*(?:\{\w+\}[^\[\]{}]*)*)\]")
_SYMBOL = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, eq=False)
class TownNews:
    """Sentences of local news, with labels of people, places, organisations and dates.

    Made by :func:`load_town_news`. A part is a list of sentences; tokens and labels are lists of str.

    Attributes
    ----------
    X_train, y_train
        Tokens and BIO labels of the training sentences.
    X_test, y_test
        Those of the test sentences.

    Examples
    --------
    >>> from dualfield.datasets import load_town_news
    >>> news = load_town_news()
    >>> len(news.X_train), len(news.X_test)
    (400, 200)
    """

    X_train: Sentences
    y_train: Sentences
    X_test: Sentences
    y_test: Sentences


class _Writer:
    """Writes sentences with the words and sentence patterns of one part of the data.

    Every list of names, and the list of patterns, is cut into thirds: every third entry, from the first, second or
    third on. Each part of the data uses two of them.
    """

    def __init__(self, rng: np.random.RandomState, thirds: tuple[int, int]) -> None:
        def kept(entries: list[str]) -> list[str]:
            return [entry for place, entry in enumerate(entries) if place % 3 in thirds]

        self.rng = rng
        self.rules = {symbol: _lines(text) for symbol, text in PHRASES.items()}
        self.rules |= {symbol: kept(text.split()) for symbol, text in NAMES.items()}
        self.patterns = kept(_lines(SENTENCES))
        self.waiting: list[str] = []

    def pick(self, entries: list[str]) -> str:
        return entries[self.rng.randint(len(entries))]

    def sentence(self) -> tuple[list[str], list[str]]:
        """Write a sentence: choose alternatives and names until only words and marks of spans are left."""
        if not self.waiting:  # every pattern once, in a new order, before any of them comes again
            self.waiting = [self.patterns[place] for place in self.rng.permutation(len(self.patterns))]
        text = self.waiting.pop()
        while "{" in text or "[" in text:
            text = _CHOICE.sub(lambda found: self.pick(found[1].split("|")), text)
            text = _SYMBOL.sub(lambda found: self.pick(self.rules[found[1]]), text, count=1)
        return _read_spans(text)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def _read_spans(text: str) -> tuple[list[str], list[str]]:
    """Turn ``Mr <PER Hale> left`` into tokens and labels; a sentence begins with a capital letter."""
    tokens: list[str] = []
    labels: list[str] = []
    kind, begins = "", False
    for word in text.split():
        if word.startswith("<"):
            kind, begins = word[1:], True
            continue
        tokens.append(word.rstrip(">"))
        labels.append(f"{'B' if begins else 'I'}-{kind}" if kind else "O")
        begins = False
        if word.endswith(">"):
            kind = ""
    tokens[0] = tokens[0][0].upper() + tokens[0][1:]
    return tokens, labels


def load_town_news(
    n_train: int = 400, n_test: int = 200, *, random_state: int | np.random.RandomState | None = 0
) -> TownNews:
    """Write sentences of local news from a grammar, with BIO labels of the names in them.

    The types are PER, LOC, ORG and DATE. Many names are ambiguous: *Hale* is a surname, a town, a football team or part
    of a firm, *May* a month, a surname, a given name or a verb. A third of the names, and of the sentence patterns,
    occurs in training only, another third in test sentences only. All people, firms and towns are fictional. The text
    has the licence of the library, BSD 3-clause.

    Parameters
    ----------
    n_train : int, default=400
        Number of training sentences, at least 1.
    n_test : int, default=200
        Number of test sentences, at least 1. No sentence occurs twice.
    random_state : int, RandomState instance or None, default=0
        Seed. The same seed gives the same sentences.

    Returns
    -------
    TownNews
        Tokens and labels of both parts.

    Examples
    --------
    >>> from dualfield.datasets import load_town_news
    >>> news = load_town_news()
    >>> " ".join(news.X_test[0])
    'Only Victoria knew the way to Port Calloway .'
    >>> " ".join(news.y_test[0])
    'O B-PER O O O O B-LOC I-LOC O'
    """
    n_train, n_test = (_check_count(name, n) for name, n in (("n_train", n_train), ("n_test", n_test)))
    rng = check_random_state(random_state)
    seen: set[tuple[str, ...]] = set()
    return TownNews(*_write(rng, n_train, (0, 1), seen), *_write(rng, n_test, (1, 2), seen))


def _write(
    rng: np.random.RandomState, n: int, thirds: tuple[int, int], seen: set[tuple[str, ...]]
) -> tuple[Sentences, Sentences]:
    """Write n sentences that were not seen before, and their labels."""
    writer = _Writer(rng, thirds)
    X: Sentences = []
    y: Sentences = []
    while len(X) < n:
        tokens, labels = writer.sentence()
        if tuple(tokens) not in seen:
            seen.add(tuple(tokens))
            X.append(tokens)
            y.append(labels)
    return X, y


def _check_count(name: str, n: Any) -> int:
    if not isinstance(n, numbers.Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"The '{name}' parameter of load_town_news must be an int in [1, inf). Got {n!r} instead.")
    return int(n)
