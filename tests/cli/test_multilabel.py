"""Examples with several labels on the command line: independent labels, a tree of labels, and all pairs."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from sklearn.metrics import f1_score, hamming_loss

import dualfield
from dualfield.io import read_svmlight
from dualfield.structures import LabelGraph

STRUCTURES = {"none": [], "tree": ["--structure", "tree"], "graph": ["--structure", "graph"]}


def rows(n: int, seed: int) -> str:
    """Return lines of svmlight: four labels that depend on four numbers, and on each other."""
    chance = random.Random(seed)
    lines = []
    for _ in range(n):
        values = [chance.gauss(0, 1) for _ in range(4)]
        labels = [str(k + 3) for k in range(4) if values[k] + 0.5 * values[0] + chance.gauss(0, 0.5) > 0.3]
        entries = [f"{at + 1}:{value:.4f}" for at, value in enumerate(values)]
        lines.append(" ".join([",".join(labels)] * bool(labels) + entries))
    return "\n".join(lines) + "\n"


@pytest.fixture
def files(shell):
    shell.write("train.svm", rows(100, 0))
    shell.write("dev.svm", rows(40, 1))
    return shell


@pytest.mark.parametrize("structure", STRUCTURES)
def test_train_tag_and_evaluate_agree_with_python(files, structure):
    said = files("train", "train.svm", "--model", "m", *STRUCTURES[structure]).stderr
    assert "train.svm: svmlight examples with several labels: 100 examples, 4 features, 4 labels" in said
    n_edges = {"none": 0, "tree": 3, "graph": 6}[structure]
    assert ("Edges between labels: none" if not n_edges else f"Edges between labels: {n_edges}, ") in said
    X, y = read_svmlight("train.svm", multilabel=True)
    graph = LabelGraph.learn(y, 4, structure)
    model = dualfield.CRF("graph", random_state=0).fit(graph.graphs(X), graph.indicators(y))
    saved = dualfield.load("m")
    assert np.array_equal(saved.parameters_, model.parameters_)
    assert saved.label_graph_.edges == graph.edges
    X, y = read_svmlight("dev.svm", multilabel=True)
    predicted = graph.label_sets(model.predict(graph.graphs(X)))
    tagged = files("tag", "--model", "m", "dev.svm").stdout.split("\n")[:-1]
    assert tagged == [",".join(map(str, labels)) for labels in predicted]
    record = json.loads(files("evaluate", "--model", "m", "dev.svm", "--json").stdout)
    truth, guess = graph.indicators(y), graph.indicators(predicted)
    assert record["hamming_loss"] == pytest.approx(hamming_loss(truth, guess))
    assert record["subset_accuracy"] == pytest.approx((truth == guess).all(axis=1).mean())
    assert record["micro"]["f1"] == pytest.approx(f1_score(truth, guess, average="micro"))
    shown = files("evaluate", "--model", "m", "dev.svm").stdout
    assert f"macro F1: {100 * f1_score(truth, guess, average='macro'):.2f}" in shown
    chances = np.array([one[:, 1] for one in model.predict_proba(graph.graphs(X))])
    assert record["log_loss"] == pytest.approx(-np.log(np.where(truth, chances, 1 - chances)).mean())


def test_tag_writes_probabilities(files):
    files("train", "train.svm", "--model", "m", "-q", "--structure", "tree")
    model = dualfield.load("m")
    X, _ = read_svmlight("dev.svm", multilabel=True)
    chances = [one[:, 1] for one in model.predict_proba(model.label_graph_.graphs(X))]
    lines = files("tag", "--model", "m", "dev.svm", "--marginals", "all").stdout.splitlines()
    for line, row in zip(lines, chances, strict=True):
        *found, a, b, c, d = line.split()
        assert np.allclose([float(one.partition(":")[2]) for one in (a, b, c, d)], row, atol=1e-6)
        if found:
            labels, written = (part.split(",") for part in found)
            assert np.allclose([float(one) for one in written], row[[int(one) - 3 for one in labels]], atol=1e-6)


def test_labels_in_the_data_do_not_matter_to_tag(files):
    files("train", "train.svm", "--model", "m", "-q")
    without = "\n".join(" ".join(word for word in line.split() if ":" in word) for line in rows(40, 1).splitlines())
    expected = files("tag", "--model", "m", "dev.svm").stdout
    assert files("tag", "--model", "m", stdin=without + "\n").stdout == expected


def test_hinge_tune_and_inspect(files):
    files("train", "train.svm", "--model", "h", "-q", "--loss", "hinge", "--calibrate", "cv", "--structure", "tree")
    shown = files("inspect", "h", "--top", "1").stdout
    assert "labels       4: 3 4 5 6\n" in shown
    assert "trained on   4 features; 3 edges between labels" in shown
    assert "Features of 4\n" in shown
    assert "feature 2\n" in shown.partition("Features of 4\n")[2].partition("Features of 5\n")[0].splitlines()[0] + "\n"
    out = files("tune", "train.svm", "--dev", "dev.svm", "--C", "0.1,1", "--structure", "graph", "--model", "m").stdout
    assert "Best: C=" in out
    assert len(dualfield.load("m").label_graph_.edges) == 6
    assert json.loads(files("inspect", "m", "--json").stdout)["label_graph"]["labels"] == [3, 4, 5, 6]


def test_convert(files):
    files("convert", "train.svm", "again.svm")
    one, two = (read_svmlight(name, multilabel=True) for name in ("train.svm", "again.svm"))
    assert one[1] == two[1]
    assert np.array_equal(one[0].toarray(), two[0].toarray())


FAULTS = {
    "twice": ("3,3 1:1\n", "must have different labels with commas between them, such as 0,3. Got '3,3'."),
    "empty": ("3,,4 1:1\n", "must have different labels with commas between them, such as 0,3. Got '3,,4'."),
    "entry": ("3,4 1:x\n", "must have entries such as 3:0.5, an index and a finite number. Got '1:x'."),
}


@pytest.mark.parametrize(("line", "said"), FAULTS.values(), ids=FAULTS)
def test_errors_name_file_and_line(shell, line, said):
    shell.write("bad.svm", f"3,4 1:1\n{line}")
    result = shell("train", "bad.svm", "--format", "multilabel", "--model", "m", code=1)
    assert f"Error: bad.svm:2: {said}" in result.stderr


def test_one_label_with_a_comma_in_its_name(shell):
    shell.write("x.svm", "a,b 1:1\nc,d 1:-1\n" * 3)
    said = shell("train", "x.svm", "--format", "svmlight", "--model", "m").stderr
    assert "6 examples, 1 features, 2 labels" in said
    assert shell("tag", "--model", "m", stdin="1:2\n").stdout == "a,b\n"


def test_labels_of_the_dev_data_that_are_new_are_named(files):
    files.write("dev.svm", "3,9 1:1 2:1\n3 1:2\n")
    said = files("train", "train.svm", "--dev", "dev.svm", "--model", "m").stderr
    assert "dev.svm:1: the label '9' has no training example; it will never be predicted." in said
    assert "1 labels are none that the model knows" in files("evaluate", "--model", "m", "dev.svm").stdout


def test_wrong_usage(files):
    for option, said in (
        (["--kernel", "rbf"], "--kernel is for svmlight; the data are multilabel."),
        (["--budget", "9"], "--budget is for --structure graph"),
        (["--warm-start", "train.svm"], "--warm-start is for sequences and graphs; the data are multilabel."),
    ):
        assert said in files("train", "train.svm", "--model", "m", *option, code=2).stderr
