"""``dualfield train`` on a compiled corpus."""

from __future__ import annotations

import numpy as np
import pytest

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.data import CompiledCorpus


@pytest.fixture(scope="module")
def compiled(trained):
    """The folder of `trained` with a compiled corpus, `out`, of its training data."""
    trained("compile", trained.path("train.txt"), trained.path("out"), "--parts", 3, "-q")
    return trained


def test_model_is_that_of_python(shell, compiled):
    options = ["--C", "0.5", "--min-freq", "2", "--constraints", "BIO", "--tol", "1e-3", "--memory", "1e6"]
    shell("train", compiled.path("out"), "--model", "m", *options, "-q")
    settings = {"C": 0.5, "min_freq": 2, "constraints": "BIO", "tol": 1e-3, "random_state": 0}
    expected = CRF(**settings).fit(CompiledCorpus(compiled.path("out")))
    found = dualfield.load("m")
    assert np.array_equal(found.parameters_, expected.parameters_)
    assert found.template.text == expected.model_.template.text


def test_dev_data_are_scored_and_change_nothing(shell, compiled):
    alone = shell("train", compiled.path("out"), "--model", "alone", "--tol", "1e-2")
    assert "out: a compiled corpus: 40 sentences" in alone.stderr
    assert "CRF: converged, relative gap" in alone.stderr
    result = shell("train", compiled.path("out"), "--model", "m", "--tol", "1e-2", "--dev", compiled.path("dev.txt"))
    assert "dev F1 100.00" in result.stdout
    assert shell.path("alone").read_bytes() == shell.path("m").read_bytes()
    tagged = shell("evaluate", "--model", "m", compiled.path("dev.txt"))
    assert "100.00" in tagged.stdout


def test_hinge_with_a_checkpoint(shell, compiled):
    options = ["--loss", "hinge", "--tol", "1e-1", "--checkpoint", "kept", "--checkpoint-every", "0", "--memory", "1e6"]
    shell("train", compiled.path("out"), "--model", "m", *options, "-q")
    expected = StructuredSVM(tol=1e-1, random_state=0).fit(CompiledCorpus(compiled.path("out")))
    assert np.array_equal(dualfield.load("m").parameters_, expected.parameters_)
    assert not shell.path("kept").exists()
    assert not shell.path("kept.blocks").exists()


REFUSED = {
    "--memory is for compiled corpora": ("train.txt", "--memory", "1e9"),
    "--template was settled when the corpus was compiled": ("out", "--template", "default"),
    "--format was settled when the corpus was compiled": ("out", "--format", "conll"),
    "--structure is not for compiled corpora": ("out", "--structure", "semi-markov"),
    "--C auto, --C evidence and --calibrate cv are for data in memory": ("out", "--C", "evidence"),
    "a compiled corpus must be the only DATA": ("out", "{folder}/train.txt"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_go_together_is_refused(message, shell, compiled):
    name, *options = REFUSED[message]
    options = [one.format(folder=compiled.folder) for one in options]
    assert message in shell("train", compiled.path(name), "--model", "m", *options, code=2).stderr


def test_failures_are_one_line_and_leave_nothing(shell, compiled):
    result = shell("train", compiled.path("out"), "--model", "m", "--memory", "10", "--checkpoint", "kept", code=1)
    assert result.stderr.splitlines()[-1].startswith("Error: memory must be at least ")
    shell.path("empty").mkdir()
    result = shell("train", "empty", "--model", "m", code=1)
    assert "empty is not a compiled corpus: it has no file corpus.json" in result.stderr
    assert sorted(path.name for path in shell.folder.iterdir()) == ["empty"]
