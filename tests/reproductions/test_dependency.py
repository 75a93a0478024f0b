"""The pieces of ``python -m reproductions dependency``."""

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from dualfield.metrics import attachment_scores
from reproductions import dependency_treebank
from reproductions.records import Settings


def write_trees(place: Path) -> None:
    """Write sentences in the layout of the real data: a subject with or without an article, a verb, and a mark."""
    chance = random.Random(4)
    lines = []
    for _ in range(sum(dependency_treebank.QUICK)):
        words = [("the", "DT", 2)] * chance.randint(0, 1)
        words += [(chance.choice(["dog", "cat"]), "NN", len(words) + 2), (chance.choice(["ran", "sat"]), "VBD", 0)]
        words += [("there", "RB", len(words))] * chance.randint(0, 1)
        verb = next(at for at, word in enumerate(words, start=1) if word[2] == 0)
        lines += ["\t".join(map(str, word)) for word in [*words, (".", ".", verb)]] + [""]
    with gzip.open(place / "dependency_treebank.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def test_counts_give_the_score_of_the_library(tmp_path):
    write_trees(tmp_path)
    X, y = dependency_treebank.read(Settings(folder=tmp_path, quick=True))
    found = [[0 if word % 2 else head for word, head in enumerate(tree)] for tree in y]
    counts = np.array(dependency_treebank.counted(X, y, found)).sum(axis=0)
    scores = attachment_scores(y, found, punctuation=dependency_treebank.MARKS, tokens=X)
    assert (scores.n_heads, scores.n_words) == tuple(counts)
    assert dependency_treebank.uas(X, y, y) == 100.0


@pytest.mark.parametrize("model", [dependency_treebank.PERCEPTRON, dependency_treebank.LIKELIHOOD])
def test_models_beat_the_word_before(tmp_path, model):
    write_trees(tmp_path)
    settings = Settings(folder=tmp_path, quick=True)
    trained = dependency_treebank.compute(settings, model)
    before = dependency_treebank.compute(settings, dependency_treebank.BEFORE)
    right = [np.array(row.counts).sum(axis=0) for row in (trained, before)]
    assert right[0][1] == right[1][1]
    assert right[0][0] > right[1][0]
