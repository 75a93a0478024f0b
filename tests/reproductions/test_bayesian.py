"""The pieces of ``python -m reproductions bayesian-crf``."""

import dataclasses
import gzip
import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dualfield.plotting.line_chart import line_chart
from reproductions import bayesian_intervals, bayesian_labelling, bayesian_losses
from reproductions.bayesian_data import FILES, LEAST, coarse, draw, frequent
from reproductions.bayesian_words import pooled
from reproductions.records import Settings

WORDS = {"DT": ["the", "a", "no"], "NN": ["dog", "cat", "house"], "VB": ["sees", "saw", "likes"], "IN": ["in", "near"]}


def write_chunks(place: Path) -> None:
    """Write sentences in the layout of CoNLL-2000: words, tags and chunks."""
    chance = random.Random(4)
    for name in FILES:
        lines = []
        for _ in range(160):
            for tag, label in (
                ("DT", "B-NP"),
                ("NN", "I-NP"),
                ("VB", "B-VP"),
                ("IN", "B-PP"),
                ("DT", "B-NP"),
                ("NN", "I-NP"),
            ):
                noisy = label if chance.random() < 0.95 or label == "B-NP" else "B-VP"
                lines.append(f"{chance.choice(WORDS[tag])} {tag} {noisy}")
            lines += [". . B-LST" if chance.random() < 0.1 else ". . O", ""]
        with gzip.open(place / f"{name}.txt.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


@pytest.fixture
def settings(tmp_path):
    write_chunks(tmp_path)
    return Settings(folder=tmp_path, quick=True)


def test_draws(settings):
    one, other = (draw(settings, 10, seed, 5) for seed in (0, 1))
    assert len(one.X) == 10
    assert one.X != other.X
    assert one.X_test == other.X_test
    assert {coarse("B-LST"), coarse("B-NP")} == {"X", "B-NP"}
    counts = [name for xseq in frequent(one.X) for item in xseq for name in item]
    assert min(counts.count(name) for name in set(counts)) >= LEAST


def test_losses_are_those_of_the_models(settings):
    methods = (bayesian_losses.MODE, bayesian_losses.TEMPERATURE)
    rows = bayesian_losses.compute(partial(draw, settings, 20, 0, 40), 0, [10.0], methods).methods
    assert [row.method for row in rows] == list(methods)
    assert all(0.0 < row.token < 2.0 and row.sequence > 0.0 for row in rows)
    assert rows[0].error == rows[1].error  # a temperature leaves predictions alone
    for row in rows:  # the bins hold all tokens, and their accuracies are what is right
        counts = np.array([count for _, _, count in row.bins])
        assert counts.sum() % 7 == 0
        best = np.average([accuracy for _, accuracy, _ in row.bins], weights=counts)
        assert best == pytest.approx(1.0 - row.error, abs=0.02)  # of single labels, and of whole labellings
    findings = bayesian_losses.LOSSES.present([bayesian_losses.LossRows(rows)])
    assert len(findings.tables[0].rows) == 2
    assert [figure.name for figure in findings.figures] == ["reliability_text_10"]
    one = rows[0]
    every = bayesian_losses.LossRows(tuple(dataclasses.replace(one, method=name) for name in bayesian_losses.ALL))
    figures = bayesian_losses.LOSSES.present([every]).figures
    assert [figure.name for figure in figures] == ["reliability_text_10_1", "reliability_text_10_2"]
    assert {line.name for figure in figures for line in figure.lines} == {"perfect", *bayesian_losses.ALL}
    for figure in figures:  # none has more lines than a chart can show
        assert line_chart(figure.lines, title=figure.title, x_axis=figure.x_axis, y_axis=figure.y_axis)


def test_pixels_are_joined_four_by_four():
    pixels = np.zeros((1, 128), dtype=np.float32)
    pixels[0, [0, 1, 8]] = 1.0  # three of the four pixels in the first corner
    assert pooled(pixels)[0, 0] == 0.75
    assert pooled(pixels)[0, 1:-1].sum() == 0.0
    assert pooled(pixels)[0, -1] == 1.0


def test_every_round_labels_more(settings):
    row = bayesian_labelling.compute(settings, "entropy per token", 0)
    assert all(np.diff(row.tokens) > 0)
    assert row.at(row.tokens[0]) == row.scores[0]


def test_coverage_is_a_share(settings):
    row = bayesian_intervals.compute(settings, 20, 0)
    assert 0.0 <= row.covered <= 1.0
    assert row.n_spans > 10
