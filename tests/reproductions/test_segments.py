"""The pieces of ``python -m reproductions segments``."""

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from dualfield.metrics import span_f1_score
from reproductions import segments_lengths, segments_names
from reproductions.bootstrap import f1, intervals, share
from reproductions.records import Settings

TOWNS, PEOPLE, OTHERS = ["Lima", "Madrid", "Rome"], ["Ana", "Juan Cruz", "Eva Mora Gil"], ["en", "vive", "con", "dice"]


def write_names(place: Path) -> None:
    """Write sentences with names in the layout of the real data; one begins with an I- tag."""
    chance = random.Random(3)
    for name in segments_names.FILES:
        lines = ["Ana NP I-PER", ""]
        for _ in range(40):
            for _ in range(chance.randint(1, 4)):
                kind, names = chance.choice([("PER", PEOPLE), ("LOC", TOWNS), ("O", OTHERS)])
                words = chance.choice(names).split()
                tags = ["O"] if kind == "O" else [f"{'B' if not at else 'I'}-{kind}" for at in range(len(words))]
                lines += [f"{word} NP {tag}" for word, tag in zip(words, tags, strict=True)]
            lines.append("")
        with gzip.open(place / f"{name}.txt.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def test_counts_give_the_f1_of_the_library(tmp_path):
    write_names(tmp_path)
    settings = Settings(folder=tmp_path, quick=True)
    _, truth = segments_names.read(settings, segments_names.FILES[0])
    assert truth[0] == ["B-PER"]
    predicted = [[tag.replace("LOC", "PER") for tag in tags] for tags in truth]
    counts = np.array(segments_names.counted(predicted, truth)).sum(axis=0)
    assert f1(*counts) == pytest.approx(100.0 * span_f1_score(truth, predicted))


def test_sentences_with_long_names_are_left_out(tmp_path, monkeypatch):
    write_names(tmp_path)
    monkeypatch.setattr(segments_names, "MAX_LENGTH", 2)
    settings = Settings(folder=tmp_path, quick=True)
    _, truth = segments_names.read(settings, segments_names.FILES[0])
    row = segments_names.compute(settings, segments_names.TOKENS)
    assert row.left_out == sum("Eva Mora Gil".count(" ") + 1 <= segments_names.longest(tags) for tags in truth) > 0


def test_those_who_know_the_parameters_find_most():
    rows = {
        model: [segments_lengths.compute(Settings(quick=True), model, seed) for seed in range(3)]
        for model in segments_lengths.MODELS
    }
    recall = {model: np.mean([row.recall for row in one]) for model, one in rows.items()}
    assert recall[segments_lengths.KNOWN] > recall[segments_lengths.CHAIN] + 0.1
    assert segments_lengths.hits(np.array([5, 9]), np.array([7])) == 2
    assert segments_lengths.hits(np.array([5]), np.array([], dtype=int)) == 0
    assert segments_lengths.length_table().sum(axis=1) == pytest.approx(1.0)


def test_intervals_are_those_of_a_binomial():
    """Of examples that are right or wrong, the share has the standard deviation of a binomial."""
    rng = np.random.default_rng(0)
    right = (rng.random(400) < 0.3).astype(int)
    counts = np.column_stack([right, np.ones(400, dtype=int)])
    found, nothing = intervals({"one": counts}, "one", share)["one"]
    spread = 100.0 * np.sqrt(right.mean() * (1 - right.mean()) / 400)
    assert found.value == pytest.approx(100.0 * right.mean())
    assert found.high - found.low == pytest.approx(2 * 1.96 * spread, rel=0.1)
    assert (nothing.value, nothing.low, nothing.high) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="the same examples"):
        intervals({"one": counts, "two": counts[1:]}, "one", share)
