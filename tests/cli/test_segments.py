"""``--structure semi-markov``: sequences cut into segments from the shell."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dualfield
from dualfield.features import Template
from dualfield.structures import SemiMarkov

from .conftest import corpus
from .test_train import columns


@pytest.fixture
def files(shell):
    shell.write("train.txt", corpus(30, 0))
    shell.write("dev.txt", corpus(10, 1))
    return shell


def test_model_is_that_of_python(files):
    texts = ["%x[all]", "%n"]
    files(
        *("train", "train.txt", "--model", "m", "--structure", "semi-markov", "--max-length", "4"),
        *("--segment-feature", texts[0], "--segment-feature", texts[1]),
    )
    X, y = columns(corpus(30, 0))
    structure = SemiMarkov(max_length=4, segment_features=texts)
    expected = dualfield.CRF(structure, template=Template.default(2), random_state=0).fit(X, y)
    found = dualfield.load("m")
    assert np.array_equal(found.parameters_, expected.parameters_)
    assert found.structure_ == expected.structure_


def test_tag_evaluate_inspect_and_tune(files):
    files("train", "train.txt", "--model", "m", "--structure", "semi-markov", "--dev", "dev.txt")
    model = dualfield.load("m")
    X, _ = columns(corpus(10, 1))
    tagged = files("tag", "--model", "m", "dev.txt").stdout
    assert [line.split()[-1] for line in tagged.split("\n") if line] == [label for y in model.predict(X) for label in y]
    assert re.search(r"FB1|F1", files("evaluate", "--model", "m", "dev.txt").stdout)
    assert "length" in files("inspect", "m", "--top", "40").stdout
    files("tune", "train.txt", "--cv", "2", "--C", "1,3", "--structure", "semi-markov", "--model", "best")
    assert isinstance(dualfield.load("best").structure_, SemiMarkov)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-length", "3"], "--max-length is for --structure semi-markov"),
        (["--structure", "tree"], "--structure tree is for graphs and several labels; the data are conll"),
        (["--structure", "semi-markov", "--order", "2"], "--order is for chains"),
        (["--structure", "semi-markov", "--segment-feature", "%n"], "--segment-feature needs --max-length"),
        (
            ["--structure", "semi-markov", "--max-length", "3", "--segment-feature", "%y[first]"],
            "must be texts with macros",
        ),
    ],
)
def test_refused(files, options, said):
    result = files("train", "train.txt", "--model", "m", *options, code=2)
    assert said in result.stderr
