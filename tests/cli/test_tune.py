"""``dualfield tune`` and what ``train`` has of it: the table, the winner, early stopping, and what is refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import dualfield
from dualfield.features import Template
from dualfield.metrics import span_f1_scorer

from .conftest import corpus
from .test_train import columns

ROW = re.compile(
    r"^([* ])(?: +(?:log|hinge))?((?: +\d+)*?) +(\d+(?:\.\d+)?) +(\d+\.\d+)(?: +(\d+\.\d+))?$", re.MULTILINE
)


@pytest.fixture
def files(shell):
    shell.write("train.txt", corpus(30, 0))
    shell.write("dev.txt", corpus(10, 1))
    return shell


def test_scores_are_those_of_python(files):
    result = files("tune", "train.txt", "--dev", "dev.txt", "--C", "10,0.01,1")
    X, y = columns(corpus(30, 0))
    X_dev, y_dev = columns(corpus(10, 1))
    rows = ROW.findall(result.stdout)
    assert [float(C) for _, _, C, _, _ in rows] == [0.01, 1.0, 10.0]
    expected = []
    for C in (0.01, 1.0, 10.0):
        model = dualfield.CRF(C=C, template=Template.default(2), random_state=0).fit(X, y)
        expected.append(round(100 * span_f1_scorer(model, X_dev, y_dev), 2))
    assert [float(score) for *_, score, _ in rows] == expected
    best = int(np.argmax(expected))
    assert [mark for mark, *_ in rows] == ["*" if at == best else " " for at in range(3)]
    assert result.stdout.splitlines()[-1] == f"Best: C={rows[best][2]}, dev F1 {expected[best]:.2f}"


def test_the_winner_is_the_model_of_train(files):
    result = files("tune", "train.txt", "--cv", "3", "--C", "0.1,1", "--order", "1,2", "--model", "best")
    assert "Model: best, " in result.stderr
    model = dualfield.load("best")
    order = ["--order", "2"] if model.structure_.order == 2 else []
    files("train", "train.txt", "--model", "same", "--C", model.C, *order)
    assert files.path("best").read_bytes() == files.path("same").read_bytes()
    assert model.file_columns_ is not None


def test_json(files):
    options = ["--cv", "2", "--C", "0.1,1", "--loss", "both", "--min-freq", "0,2", "--json", "-q"]
    result = files("tune", "train.txt", *options)
    found = json.loads(result.stdout)
    assert result.stderr == ""
    assert (found["scoring"], found["folds"], len(found["candidates"])) == ("span_f1", 2, 8)
    assert found["best"]["mean_score"] == max(one["mean_score"] for one in found["candidates"])
    for one in found["candidates"]:
        assert one["mean_score"] == pytest.approx(np.mean(one["scores"]))
        assert set(one) == {"loss", "order", "min_freq", "C", "mean_score", "std_score", "scores"}


def test_log_loss_is_shown_without_its_sign(files):
    result = files("tune", "train.txt", "--dev", "dev.txt", "--by", "log-loss", "--C", "0.001,1")
    rows = ROW.findall(result.stdout)
    assert [mark for mark, *_ in rows] == [" ", "*"]
    assert float(rows[1][3]) < float(rows[0][3]) < 2.0


def test_the_same_for_any_number_of_threads(files):
    outputs = [files("tune", "train.txt", "--cv", "3", "--C", "0.1,1", "--threads", n).stdout for n in (1, 3)]
    assert outputs[0] == outputs[1]
    assert len(ROW.findall(outputs[0])) == 2
    assert all(spread for *_, spread in ROW.findall(outputs[0]))


def test_the_edge_of_the_grid(files):
    result = files("tune", "train.txt", "--dev", "dev.txt", "--by", "log-loss", "--C", "0.0001,0.001")
    assert "The best C is the largest that was tried: try larger ones, such as --C 0.001,0.003,0.01." in result.stderr
    result = files("tune", "train.txt", "--dev", "dev.txt", "--C", "1")
    assert "that was tried" not in result.stderr


def test_report(files):
    options = ["--cv", "2", "--C", "0.1,1", "--order", "1,2", "--report", "page.html"]
    result = files("tune", "train.txt", *options)
    assert result.stderr.endswith("Report: page.html\n")
    page = files.path("page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert page.count("<tr>") >= 4
    assert ">order=2</text>" in page
    assert "<td>best</td>" in page


def test_progress_is_shown_line_by_line(files):
    result = files("tune", "train.txt", "--cv", "2", "--C", "0.1,1", "--threads", "1")
    assert "4 of 4 fits, C=1: " in result.stderr
    assert files("tune", "train.txt", "--cv", "2", "--C", "0.1,1", "-q").stderr == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dev", "dev.txt", "--cv", "3"], "--dev and --cv exclude each other"),
        (["--C", "1,x"], "'x' is not a valid"),
        (["--C", "0,1"], "0"),
        (["--order", "9"], "9"),
        (["--loss", "hinge", "--by", "log-loss"], "--by log-loss needs probabilities"),
        (["--model", "train.txt"], "same file"),
        (["--format", "svmlight"], "tune is for sequences"),
    ],
)
def test_refused(files, options, message):
    result = files("tune", "train.txt", *options, code=2)
    assert message in result.stderr


def test_help(shell):
    text = shell("tune", "--help").output
    for option in ("--dev", "--cv", "--C", "--loss", "--order", "--min-freq", "--by", "--model", "--report", "--json"):
        assert option in text


# What train has of it


def test_train_chooses_C(files):  # noqa: N802
    result = files("train", "train.txt", "--model", "m", "--C", "auto", "--dev", "dev.txt")
    (chosen,) = re.findall(
        r"^Chose C = (\S+) by dev F1: .* at 0.1, .* at 1, .* at 10, .* at 100\.$", result.stderr, re.M
    )
    files("train", "train.txt", "--model", "same", "--C", chosen)
    assert files.path("m").read_bytes() == files.path("same").read_bytes()
    assert "--C auto" not in result.stderr
    by_folds = files("train", "train.txt", "--model", "m", "--C", "auto", "--loss", "hinge")
    assert re.search(r"^Chose C = \S+ by 3-fold F1: ", by_folds.stderr, re.M)


def test_train_chooses_C_by_evidence(files):  # noqa: N802
    result = files("train", "train.txt", "--model", "m", "--C", "evidence")
    (chosen,) = re.findall(
        r"^Chose C = (\S+) by log-evidence: -\S+ at 0.1, -.* -\S+ at 100, -\S+ at 1000\.$", result.stderr, re.M
    )
    files("train", "train.txt", "--model", "by-number", "--C", chosen)
    by_evidence, by_number = dualfield.load(files.path("m")), dualfield.load(files.path("by-number"))
    assert by_evidence.C == "evidence"
    assert np.allclose(by_evidence.parameters_, by_number.parameters_, atol=0.05)


def test_train_refuses_evidence_where_there_is_none(files):
    files.write("rows.txt", "1 1:2\n-1 1:1\n")
    for data, options, code, reason in (
        ("train.txt", ["--loss", "hinge"], 2, "--C evidence needs probabilities, which --loss hinge does not have."),
        ("rows.txt", [], 2, "--C evidence needs sequences, graphs or trees."),
        ("train.txt", ["--l1-ratio", "0.5"], 1, "The evidence of CRF needs l1_ratio=0.0"),
    ):
        assert reason in files("train", data, "--model", "m", "--C", "evidence", *options, code=code).stderr


def test_train_says_which_pass_was_best(files):
    result = files("train", "train.txt", "--model", "m", "--dev", "dev.txt")
    scores = re.findall(r"^ +(\d+\.\d) +\S+ +\S+ +(\d+\.\d\d) +\d+\.\d$", result.stderr, re.M)
    best = max(scores, key=lambda row: float(row[1]))
    at = f"{float(best[0]):.0f}"
    assert result.stdout.splitlines()[-1] == f"dev F1 {scores[-1][1]} (best {best[1]}, pass {at})"
    hint = "C is 1, the default: --C auto or `dualfield tune` may find a better one.\n"
    assert result.stderr.endswith(hint)
    assert hint not in files("train", "train.txt", "--model", "m", "--dev", "dev.txt", "--C", "1").stderr
    assert files("train", "train.txt", "--model", "m", "--dev", "dev.txt", "-q").output == ""


def test_patience_and_the_best_pass(files):
    options = ["--dev", "dev.txt", "--patience", "2", "--keep", "best", "--tol", "1e-9", "--strict"]
    result = files("train", "train.txt", "--model", "m", *options)
    assert "The dev score has not got better for 2 looks" in result.stdout
    best = float(re.search(r"dev F1 (\S+) \(pass \d+, the best; last \S+\)", result.stdout)[1])
    X, y = columns(corpus(10, 1))
    assert 100 * span_f1_scorer(dualfield.load("m"), X, y) == pytest.approx(best, abs=0.01)
    for option in (["--patience", "2"], ["--keep", "best"]):
        assert "needs --dev" in files("train", "train.txt", "--model", "m", *option, code=2).stderr
