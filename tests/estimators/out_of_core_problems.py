"""Corpora on disk for the tests of training out of core, and the same sentences in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dualfield.data import CompiledCorpus
from dualfield.io import compile_corpus
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective


def sentences(n: int, seed: int = 0, n_words: int = 60, n_labels: int = 3) -> tuple[list[Any], list[Any]]:
    """Draw sentences whose labels depend on words and on each other."""
    random = np.random.default_rng(seed)
    home = random.integers(0, n_labels, n_words)
    X, y = [], []
    for length in random.integers(1, 9, n):
        words = random.integers(0, n_words, length)
        codes = np.where(random.random(length) < 0.8, home[words], random.integers(0, n_labels, length))
        before = np.concatenate([[0], words[:-1]])
        X.append([[f"w{word}", f"p{other}", "bias"] for word, other in zip(words, before, strict=True)])
        y.append([f"L{code}" for code in codes])
    return X, y


def compiled(folder: Path, X: Any, y: Any, **options: Any) -> CompiledCorpus:
    """Compile sentences."""
    folder.mkdir(exist_ok=True)
    return compile_corpus([(X, y)], folder / "corpus", **{"parts": 3, **options})


def least_memory(model: Any, corpus: CompiledCorpus) -> int:
    """Return the least memory with which a fit works: nearly all blocks are on disk then."""
    try:
        model.fit(corpus, memory=1)
    except ValueError as refused:
        return int(str(refused).split("at least ")[1].split()[0])
    raise AssertionError("one byte was enough")


def in_memory(
    corpus: CompiledCorpus, model: Any, C: float, T: float, cost: Any = None, penalty: Any = None
) -> Objective:
    """Return the formula of a fitted model on all sentences of a corpus of one part, in memory."""
    assert corpus.n_parts == 1
    rows = corpus.part(0)
    weights = np.full(rows.nodes.n_examples, C)
    examples = Examples(nodes=rows.nodes, labels=np.array(rows.codes), weights=weights, pairs=rows.pairs)
    return Objective(model.score_map_, examples, Loss(T, cost), penalty)
