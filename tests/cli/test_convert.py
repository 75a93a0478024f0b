"""``dualfield convert``: nothing is lost that the other format can say."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import dualfield
from dualfield.features import Template
from dualfield.io import read_conll, read_crfsuite_items, read_svmlight


@pytest.fixture
def files(shell, trained):
    for name in ("train.txt", "dev.txt"):
        shell.write(name, trained.path(name).read_text())
    return shell


def test_columns_to_items_train_the_same_model(files):
    said = files("convert", "train.txt", "train.items").stderr
    assert said.startswith("train.txt: CoNLL columns: 40 sentences")
    files("train", "train.items", "--model", "m", "--tol", "1e-6", "-q")
    files("train", "train.txt", "--model", "n", "--tol", "1e-6", "-q")
    assert dualfield.load("m").objective_ == pytest.approx(dualfield.load("n").objective_, rel=1e-5)


def test_items_have_the_attributes_of_the_template(files):
    files("convert", "train.txt", "train.items.gz", "--template", "chunking")
    X, y = read_crfsuite_items("train.items.gz")
    rows = read_conll("train.txt")
    assert y == [[row[-1] for row in sentence] for sentence in rows]
    batch = Template.chunking().read([[row[:-1] for row in sentence] for sentence in rows]).nodes
    names = list(batch.vocabulary)
    items = [item for sequence in X for item in sequence]
    expected = [
        sorted(names[c] for c in batch.indices[a:b]) for a, b in zip(batch.indptr, batch.indptr[1:], strict=False)
    ]
    assert [sorted(item) for item in items] == expected


def test_to_svmlight(files):
    said = files("convert", "train.txt", "train.svm", "--template", "chunking").stderr
    assert "Labels: 0 is B-NP, 1 is B-VP, 2 is I-NP, 3 is O" in said
    X, y = read_svmlight("train.svm")
    rows = [row for sentence in read_conll("train.txt") for row in sentence]
    assert X.shape[0] == len(rows)
    assert y.tolist() == [["B-NP", "B-VP", "I-NP", "O"].index(row[-1]) for row in rows]
    files("convert", "train.txt", "train.items", "--template", "chunking")
    files("convert", "train.items", "again.svm")
    assert files.path("again.svm").read_text() == files.path("train.svm").read_text()
    files.write("n.items", "1\ta=1\n-2\tb=1\tc=1\n")
    assert "Labels" not in files("convert", "n.items", "n.svm").stderr
    assert read_svmlight("n.svm")[1].tolist() == [1, -2]


def test_compression_and_stdout(files):
    files("convert", "train.txt", "copy.txt.gz")
    assert gzip.decompress(files.path("copy.txt.gz").read_bytes()).decode() == files.path("train.txt").read_text()
    assert files("convert", "copy.txt.gz", "-", "--to", "conll").stdout == files.path("train.txt").read_text()
    files.write("t.tsv", "New York\tB\n\n")
    assert files("convert", "t.tsv", "-", "--to", "conll", "--delimiter", "tab").stdout == "New York\tB\n\n"
    text = files("convert", "-", "-", "--from", "svmlight", "--to", "svmlight", stdin="1 2:3 # x\n").stdout
    assert text == "1 2:3\n"


def test_models(files):
    import pycrfsuite

    files("convert", "dev.txt", "dev.items")
    X, y = read_crfsuite_items("dev.items")
    trainer = pycrfsuite.Trainer(verbose=False)
    for sequence, labels in zip(X, y, strict=True):
        trainer.append(sequence, labels)
    trainer.train("peer.crfsuite")
    files("convert", "peer.crfsuite", "peer.model")
    old, new = dualfield.CRF.from_crfsuite("peer.crfsuite"), dualfield.load("peer.model")
    assert np.array_equal(old.parameters_, new.parameters_)
    assert old.predict(X) == new.predict(X)
    files("convert", "peer.model", "a.json")
    files("convert", "peer.crfsuite", "b.json")
    a, b = (json.loads(files.path(name).read_text()) for name in ("a.json", "b.json"))
    assert a.pop("written_by") != b.pop("written_by") == "CRFsuite"
    assert a == b
    assert files("convert", "peer.model", "-", "--to", "json").stdout == files.path("a.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train.txt", "x.unknown"], "Name the format of x.unknown with --to"),
        (["train.txt", "x.json"], "train.txt is conll, which cannot become json. Possible: conll to conll or"),
        (["train.txt", "x.txt", "--template", "default"], "--template is for columns that become"),
        (["-", "x.items"], "Name the format of <stdin> with --from"),
    ],
    ids=["suffix", "route", "template", "stdin"],
)
def test_wrong_usage_says_what_is_possible(files, arguments, said):
    assert said in files("convert", *arguments, code=2, stdin="").stderr


def test_templates_with_pairs_cannot_be_expressed(files):
    files.write("pairs.tpl", "U:%x[0,0]\nB:%x[0,0]\n")
    said = files("convert", "train.txt", "x.items", "--template", "pairs.tpl", code=1).stderr
    assert "attributes of pairs of labels" in said
    assert not files.path("x.items").exists()
