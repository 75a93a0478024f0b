"""``dualfield evaluate``: conlleval's figures to the digit, and what conlleval does not know."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualfield
from dualfield.cli.evaluation import Evaluation
from dualfield.data.span_labels import marks_spans
from dualfield.io import read_conll
from dualfield.metrics import SpanScore, SpanScores, calibration_error, sequence_accuracy_score, token_f1_score

from .conlleval import conlleval, line


def labels_of(prefixes):
    return ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("NP", "VP", "A-B"))]


def pairs_of(prefixes):
    """Draw sentences of pairs of labels, in any order."""
    label = st.sampled_from(labels_of(prefixes))
    return st.lists(st.lists(st.tuples(label, label), min_size=1, max_size=12), min_size=1, max_size=5)


# The schemes that conlleval knows: with B, and with E. Both at once (BIOES) is ours alone: conlleval would take two
# neighbouring spans of one type for one.
PAIRS = pairs_of("BI") | pairs_of("IE")
LABELS = labels_of("BI")


def text_of(y_true, y_pred):
    sentences = zip(y_true, y_pred, strict=True)
    return "\n\n".join("\n".join(f"w {t} {p}" for t, p in zip(*pair, strict=True)) for pair in sentences) + "\n"


# conlleval


@given(PAIRS)
def test_the_beginning_is_what_conlleval_prints(pairs):
    """Also for labels that break the rules of their scheme: all neighbours occur."""
    y_true, y_pred = ([[pair[side] for pair in sentence] for sentence in pairs] for side in (0, 1))
    expected = conlleval(y_true, y_pred)
    assert str(Evaluation.of(y_true, y_pred)).partition("\n\n")[0] == expected


@given(PAIRS)
def test_raw_is_what_conlleval_prints_with_r(pairs):
    y_true, y_pred = ([[pair[side] for pair in sentence] for sentence in pairs] for side in (0, 1))
    expected = conlleval(y_true, y_pred, raw=True)
    assert str(Evaluation.of(y_true, y_pred, raw=True)).partition("\n\n")[0] == expected


def test_rounding_is_that_of_conlleval():
    """Where the third decimal is a 5, the order of the operations decides."""
    plain = 0
    for found in range(1, 400):
        for true in (found, found + 1, 160, 63):
            for correct in range(min(found, true) + 1):
                expected = line(correct, found, true)
                assert str(SpanScore(correct, found, true)) == expected
                plain += f"FB1: {200 * correct / (found + true):6.2f}" not in expected
    assert plain  # a simpler formula would not do
    for n in range(1, 400):
        for right in range(n + 1):
            said = str(SpanScores(SpanScore(0, 0, 0), {}, right / n, n))
            assert f"accuracy: {100 * right / n:6.2f}%" in said


def test_columns_from_files_and_stdin(shell):
    y_true, y_pred = [["B-NP", "I-NP", "O"], ["B-VP"]], [["B-NP", "O", "O"], ["B-VP"]]
    text = text_of(y_true, y_pred)
    shell.write("tagged.txt", text)
    shell.path("tagged.gz").write_bytes(gzip.compress(text.encode()))
    result = shell("evaluate", "tagged.txt")
    assert result.stdout == (
        conlleval(y_true, y_pred)
        + "\n\n     tokens but O: precision: 100.00%; recall:  66.67%; FB1:  80.00  2\n"
        + "  sentences right:  50.00%, 1 of 2\n"
    )
    assert result.stderr == ""
    for same in (shell("evaluate", "tagged.gz"), shell("evaluate", stdin=text), shell("evaluate", "-", stdin=text)):
        assert same.stdout == result.stdout


def test_boundaries_and_marks_of_documents_as_conlleval_reads_them(shell):
    text = "-DOCSTART- O O\n\nw B-NP B-NP\n-X- a b\nw I-NP I-NP\n"
    assert shell("evaluate", stdin=text).stdout.startswith("processed 3 tokens with 2 phrases; found: 2 phrases")


def test_delimiters(shell):
    assert "processed 1 tokens" in shell("evaluate", "--delimiter", "tab", stdin="New York\tB-NP\tB-NP\n").stdout
    said = shell("evaluate", "--delimiter", "space", stdin="a  B-NP\nb B-NP B-NP c\n", code=1).stderr
    assert said == "Error: <stdin>:2: has 4 columns; expected 3, as in line 1.\n"


def test_labels_without_a_scheme_count_one_by_one(shell):
    result = shell("evaluate", stdin="a NN NN\nb VB NN\n")
    assert "each token counts by itself" in result.stderr
    assert result.stdout.partition("\n\n")[0] == conlleval([["NN", "VB"]], [["NN", "NN"]], raw=True)
    assert shell("evaluate", "--raw", stdin="a NN NN\nb VB NN\n").stdout == result.stdout
    assert shell("evaluate", "--raw", stdin="a NN NN\nb VB NN\n").stderr == ""


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["O", "B-X"], True),
        (["S-X", "E-Y"], True),
        (["B", "I", "O"], True),
        (["O"], False),
        (["NN"], False),
        (["B-X", "NN"], False),
        ([], False),
    ],
    ids=str,
)
def test_marks_spans(labels, expected):
    assert marks_spans(labels) is expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "<stdin>: is empty; expected columns"),
        ("a\n", "<stdin>:1: has 1 column; expected 2 or more"),
        ("a O O\n\na O\n", "<stdin>:3: has 2 columns; expected 3, as in line 1."),
    ],
    ids=["empty", "one column", "differing"],
)
def test_bad_columns(shell, text, said):
    assert shell("evaluate", stdin=text, code=1).stderr.startswith(f"Error: {said}")


def test_json(shell):
    y_true, y_pred = [["B-NP", "I-NP", "O"], ["B-VP"]], [["B-NP", "O", "O"], ["B-VP"]]
    record = json.loads(shell("evaluate", "--json", stdin=text_of(y_true, y_pred)).stdout)
    assert record["spans"] == {"correct": 1, "found": 2, "true": 2, "precision": 0.5, "recall": 0.5, "f1": 0.5}
    assert record["types"]["VP"]["f1"] == 1.0
    assert (record["tokens"], record["accuracy"], record["sentences"]) == (4, 0.75, 2)
    assert record["tokens_without_O"]["f1"] == pytest.approx(token_f1_score(y_true, y_pred))
    assert record["sentence_accuracy"] == sequence_accuracy_score(y_true, y_pred)
    assert "log_loss" not in record


# With a model


def test_with_a_model_it_tags_first(trained):
    model, dev = trained.path("chunks"), trained.path("dev.txt")
    tagged = trained("tag", "--model", model, dev).stdout
    both = trained("evaluate", "--model", model, dev).stdout
    *lines, calibration = both.splitlines()
    assert lines == trained("evaluate", stdin=tagged).stdout.splitlines()
    rows = read_conll(dev)
    X, y = [[row[:-1] for row in s] for s in rows], [[row[-1] for row in s] for s in rows]
    loaded = dualfield.load(model)
    marginals, names = loaded.predict_proba(X), loaded.classes_.tolist()
    flat = [(p, names.index(label)) for m, s in zip(marginals, y, strict=True) for p, label in zip(m, s, strict=True)]
    loss = -np.mean([np.log(p[code]) for p, code in flat])
    error = calibration_error(y, marginals, names)
    assert calibration == f"         log-loss: {loss:.4f} nats per token; calibration error: {error:.4f}"


def test_labels_that_the_model_does_not_know_are_wrong(trained, shell):
    shell.write("odd.txt", "the DT B-NP\nwhale NN I-XX\n")
    record = json.loads(shell("evaluate", "--json", "--model", trained.path("chunks"), "odd.txt").stdout)
    assert record["tokens_with_unknown_label"] == 1
    assert record["accuracy"] == 0.5
    assert 0 < record["log_loss"] < 1
    shell.write("odd.txt", "the DT I-XX\n")
    record = json.loads(shell("evaluate", "--json", "--model", trained.path("chunks"), "odd.txt").stdout)
    assert record["log_loss"] is None


def test_too_few_columns_for_the_model(trained, shell):
    shell.write("few.txt", "the B-NP\n")
    said = shell("evaluate", "--model", trained.path("chunks"), "few.txt", code=1).stderr
    assert said.startswith("Error: few.txt:1: has 2 columns; ")
    assert "was trained on 3 columns, tokens in 0,1 and the label in 2." in said


def test_svmlight(shell):
    shell.write("x.svm", "".join(f"{1 if at > 4 else -1} 1:{at}\n" for at in range(10)))
    shell("train", "x.svm", "--model", "m", "--kernel", "linear", "--C", "100", "-q")
    result = shell("evaluate", "--model", "m", "x.svm")
    assert result.stdout.startswith("10 examples, 10 right")
    assert "sentences right" not in result.stdout
    assert "log-loss" in result.stdout
    assert result.stderr == ""


@pytest.mark.skipif("DUALFIELD_DATA" not in os.environ, reason="DUALFIELD_DATA does not name a folder of data sets")
def test_conll_2000(shell):
    """A real model's output, and the same with every seventh label replaced, which breaks the scheme in many places."""
    folder = Path(os.environ["DUALFIELD_DATA"])
    for name, n in (("train", 8000), ("test", 12000)):
        with gzip.open(folder / f"conll2000_{name}.txt.gz", "rt", encoding="utf-8") as file:
            lines = file.read().split("\n")[:n]
        shell.write(f"{name}.txt", "\n".join(lines[: len(lines) - lines[::-1].index("")]))
    shell("train", "train.txt", "--model", "m", "--template", "chunking", "-q")
    tagged = shell("tag", "--model", "m", "test.txt").stdout
    broken = tagged.splitlines()
    for at in range(0, len(broken), 7):
        broken[at] = " ".join([*broken[at].split()[:-1], LABELS[at // 7 % len(LABELS)]]) if broken[at] else ""
    for text in (tagged, "\n".join(broken)):
        rows = read_conll(text.splitlines())
        y_true, y_pred = ([[row[at] for row in s] for s in rows] for at in (-2, -1))
        assert shell("evaluate", stdin=text).stdout.partition("\n\n")[0] == conlleval(y_true, y_pred)
