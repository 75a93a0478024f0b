"""``dualfield rank``: the order of the library, in lines."""

from __future__ import annotations

import numpy as np
import pytest

import dualfield
from dualfield.io import read_conll


def test_the_order_is_that_of_the_library(trained, shell):
    pool, path = trained.path("dev.txt"), trained.path("chunks")
    X = [[row[:2] for row in sentence] for sentence in read_conll(pool)]
    found = dualfield.load(path).rank_for_labelling(X)
    lines = shell("rank", "--model", path, pool).stdout.splitlines()
    assert [int(line.split()[1]) - 1 for line in lines] == found.order.tolist()
    np.testing.assert_allclose([float(line.split()[0]) for line in lines], found.values[found.order], atol=1e-4)
    assert lines[0].split(" ", 2)[2] == " ".join(row[0] for row in X[found.order[0]])
    by = ["--by", "least_confidence", "--per", "sentence", "--top", "2"]
    other = dualfield.load(path).rank_for_labelling(X, by="least_confidence", per="sentence")
    lines = shell("rank", "--model", path, pool, *by).stdout.splitlines()
    assert [int(line.split()[1]) - 1 for line in lines] == other.order[:2].tolist()


def test_sentences_as_they_are(trained, shell):
    pool, path = trained.path("dev.txt"), trained.path("chunks")
    X = [[row[:2] for row in sentence] for sentence in read_conll(pool)]
    found = dualfield.load(path).rank_for_labelling(X)
    blocks = pool.read_text(encoding="utf-8").strip().split("\n\n")
    shell("rank", "--model", path, pool, "--top", "3", "--sentences", "--output", shell.path("next.txt"))
    written = shell.path("next.txt").read_text(encoding="utf-8").strip().split("\n\n")
    assert written == [blocks[at] for at in found.order[:3]]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--by", "bald"], 1, "by='bald' compares several models"),
        (["--by", "chance"], 2, "'chance' is not one of"),
    ],
)
def test_refused(trained, shell, arguments, code, said):
    result = shell("rank", "--model", trained.path("chunks"), trained.path("dev.txt"), *arguments, code=code)
    assert said in " ".join(result.stderr.split())


def test_empty_data(trained, shell):
    result = shell("rank", "--model", trained.path("chunks"), stdin="\n", code=1)
    assert "There are no sentences in the data." in result.stderr
