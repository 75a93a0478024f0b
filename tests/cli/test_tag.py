"""``dualfield tag``: the same lines with a label behind them, early, and nothing else."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading

import numpy as np
import pytest

import dualfield
from dualfield.io import read_conll, read_crfsuite_items, write_crfsuite_items, write_svmlight

PROGRAM = [sys.executable, "-c", "from dualfield.cli import main; main()"]


@pytest.fixture
def chunks(trained):
    return dualfield.load(trained.path("chunks"))


@pytest.fixture
def dev(trained):
    return trained.path("dev.txt").read_text()


def tag(trained, *arguments, **settings):
    return trained("tag", "--model", trained.path("chunks"), *arguments, **settings)


def sentences(text):
    return read_conll(text.splitlines())


# Columns


def test_label_is_appended_and_all_else_is_kept(trained, chunks, dev):
    result = tag(trained, trained.path("dev.txt"))
    lines, given = result.stdout.splitlines(), dev.splitlines()
    assert [line.rpartition(" ")[0] if line else "" for line in lines] == given
    found = [[row[-1] for row in sentence] for sentence in sentences(result.stdout)]
    assert found == chunks.predict([[row[:2] for row in sentence] for sentence in sentences(dev)])
    assert result.stderr == ""


def test_without_labels_the_same(trained, dev):
    bare = "\n".join(" ".join(line.split()[:2]) for line in dev.splitlines()) + "\n"
    labels = [line.split()[-1:] for line in tag(trained, stdin=dev).stdout.splitlines()]
    assert [line.split()[-1:] for line in tag(trained, stdin=bare).stdout.splitlines()] == labels


def test_sources(trained, dev, tmp_path):
    expected = tag(trained, stdin=dev).stdout
    packed = tmp_path / "dev.gz"
    packed.write_bytes(gzip.compress(dev.encode()))
    assert tag(trained, packed).stdout == expected
    assert tag(trained, stdin=gzip.compress(dev.encode())).stdout == expected
    assert tag(trained, trained.path("dev.txt"), "-", stdin=dev).stdout == 2 * expected
    assert tag(trained, trained.path("dev.txt"), "--mmap", "--threads", 2).stdout == expected
    out = tmp_path / "out.txt"
    assert tag(trained, trained.path("dev.txt"), "--output", out).stdout == ""
    assert out.read_text() == expected


def test_odd_lines_are_kept(trained):
    text = "\ufeff-DOCSTART- -X- O\r\n\n\nthe\tDT\tB-NP\r\ndog\tNN\tI-NP\n \n\nno DT B-NP\ndog NN I-NP"
    lines = tag(trained, stdin=text.encode()).stdout.split("\n")
    assert lines == [
        *("-DOCSTART- -X- O O", "", "", "the\tDT\tB-NP\tB-NP", "dog\tNN\tI-NP\tI-NP", " ", ""),
        *("no DT B-NP B-NP", "dog NN I-NP I-NP", ""),
    ]


def test_nothing_in_nothing_out(trained):
    assert tag(trained, stdin="").stdout == ""


def test_marginals(trained, chunks, dev):
    X = [[row[:2] for row in sentence] for sentence in sentences(dev)]
    expected = chunks.predict_proba(X)
    names = chunks.classes_.tolist()
    for choice, width in (("best", 2), ("all", 2 + len(names))):
        found = sentences(tag(trained, trained.path("dev.txt"), "--marginals", choice).stdout)
        for rows, probabilities in zip(found, expected, strict=True):
            for row, each in zip(rows, probabilities, strict=True):
                label, chance, *others = row[3:]
                assert len(row) == 3 + width
                assert float(chance) == pytest.approx(each[names.index(label)], abs=1e-6)
                assert [float(field.rpartition(":")[2]) for field in others] == pytest.approx(
                    each[: len(others)].tolist(), abs=1e-6
                )
                assert [field.rpartition(":")[0] for field in others] == names[: len(others)]
    assert tag(trained, trained.path("dev.txt"), "--marginals").stdout == (
        tag(trained, trained.path("dev.txt"), "--marginals=best").stdout
    )


def test_k_best(trained, chunks, dev):
    first = dev[: dev.index("\n\n") + 2]
    lines = tag(trained, "--k-best", 3, stdin=first).stdout.splitlines()
    rows = sentences(first)[0]
    expected = []
    for rank, (labels, chance) in enumerate(chunks.k_best([[row[:2] for row in rows]], 3)[0], start=1):
        expected.append(f"# rank {rank}, probability {chance:.6f}")
        expected += [" ".join([*row, label]) for row, label in zip(rows, labels, strict=True)]
        expected.append("")
    assert lines == expected


# Other kinds of data


@pytest.fixture
def items(shell, dev):
    X = [[[f"w={word}", f"t={t}"] for word, t, _ in sentence] for sentence in sentences(dev)]
    y = [[row[-1] for row in sentence] for sentence in sentences(dev)]
    write_crfsuite_items(X, y, "dev.items")
    shell("train", "dev.items", "--model", "m", "-q")
    return shell


def test_items(items):
    model, (X, _) = dualfield.load("m"), read_crfsuite_items("dev.items")
    result = items("tag", "--model", "m", "dev.items")
    assert result.stdout == "".join("".join(f"{label}\n" for label in labels) + "\n" for labels in model.predict(X))
    assert result.stderr == ""
    lines = items.path("dev.items").read_text().splitlines()
    bare = "\n".join(line.partition("\t")[2] for line in lines) + "\n"
    for options in ([], ["--no-label"]):
        assert items("tag", "--model", "m", *options, stdin=bare).stdout == result.stdout


def test_items_with_probabilities(items):
    model, (X, _) = dualfield.load("m"), read_crfsuite_items("dev.items")
    _, chance = items("tag", "--model", "m", "dev.items", "--marginals").stdout.splitlines()[0].split("\t")
    assert float(chance) == pytest.approx(model.predict_proba(X)[0][0].max(), abs=1e-6)
    lines = items("tag", "--model", "m", "dev.items", "--k-best", 2).stdout.splitlines()
    (labels, chance), _ = model.k_best(X[:1], 2)[0]
    assert lines[: len(labels) + 2] == [f"# rank 1, probability {chance:.6f}", *labels, ""]


def test_items_in_doubt_are_labelled(items):
    result = items("tag", "--model", "m", stdin="what\tw=the\n")
    assert "'what' is taken for the label of the first item" in result.stderr


def test_items_name_file_and_line(items):
    text = items.path("dev.items").read_text()
    n_lines = text.count("\n")
    said = items("tag", "--model", "m", stdin=text + "B-NP\tw=the\nB-NP\tw:the\n", code=1).stderr
    assert said.startswith(f"Error: <stdin>:{n_lines + 2}: the weight of 'w' must be a finite number.")


def test_models_of_crfsuite(items):
    import pycrfsuite

    X, y = read_crfsuite_items("dev.items")
    trainer = pycrfsuite.Trainer(verbose=False)
    for sequence, labels in zip(X, y, strict=True):
        trainer.append(sequence, labels)
    trainer.train("peer.crfsuite")
    tagger = pycrfsuite.Tagger()
    tagger.open("peer.crfsuite")
    expected = "".join("".join(f"{label}\n" for label in tagger.tag(sequence)) + "\n" for sequence in X)
    assert items("tag", "--model", "peer.crfsuite", "dev.items").stdout == expected


def test_svmlight(shell):
    X = np.random.default_rng(0).normal(size=(30, 3)).round(3)
    y = np.where(X[:, 0] > 0, 1, -1)
    write_svmlight(X, y, "x.svm")
    shell("train", "x.svm", "--model", "m", "-q")
    model = dualfield.load("m")
    assert shell("tag", "--model", "m", "x.svm").stdout == "".join(f"{label}\n" for label in model.predict(X))
    bare = "\n".join(line.partition(" ")[2] for line in shell.path("x.svm").read_text().splitlines())
    rows = [line.split() for line in shell("tag", "--model", "m", "--marginals", "all", stdin=bare).stdout.splitlines()]
    assert [row[2] for row in rows] == [f"-1:{chance:.6f}" for chance in model.predict_proba(X)[:, 0]]
    said = shell("tag", "--model", "m", stdin="1 1:1\n1 7:1\n", code=1).stderr
    assert said == "Error: <stdin>:2: has the index 7; there are 3 features.\n"
    assert "--k-best is for sentences" in shell("tag", "--model", "m", "x.svm", "--k-best", 2, code=2).stderr


def test_models_on_matrices_are_refused(shell):
    dualfield.CRF().fit([np.eye(2)], [["a", "b"]]).save("m")
    assert "works on matrices of numbers" in shell("tag", "--model", "m", stdin="a\n", code=1).stderr


# Complaints


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("the\n", [], "<stdin>:1: has 1 column; "),
        ("the DT\n\ndog NN x\n", [], "<stdin>:3: has 3 columns; expected 2, as in line 1."),
        ("the DT\n", ["--labelled"], "<stdin>:1: has 2 columns; "),
        ("the DT O O\n", [], "<stdin>:1: has 4 columns; "),
        ("the DT\n", ["--columns", "0,2"], "<stdin>:1: has 2 columns; --columns names column 2, counted from 0."),
        ("the DT\n", ["--columns", "0"], "<stdin>:1: --columns names 1 column; expected 2, which the template of"),
        ("the DT x\n", ["--columns", "0,1,2"], "<stdin>:1: --columns names 3 columns; "),
        (b"the DT\n\xff NN\n", [], "<stdin>:2: cannot be read as utf-8"),
    ],
    ids=["few", "differing", "labelled", "many", "absent", "too few named", "too many named", "bytes"],
)
def test_bad_lines_are_named(trained, text, options, said):
    result = tag(trained, *options, stdin=text, code=1)
    assert f"Error: {said}" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_column_is_noticed(trained):
    text = "the B-NP\ndog I-NP\n"
    assert "Warning: <stdin>: the last of 2 columns holds labels" in tag(trained, stdin=text).stderr
    assert tag(trained, "--no-label", stdin=text).stderr == ""


def test_bad_models(trained, shell):
    shell.write("no-model", "hello")
    said = shell("tag", "--model", "no-model", stdin="", code=1).stderr
    assert said.startswith("Error: no-model")
    assert len(said.splitlines()) == 1
    shell.path("cut").write_bytes(trained.path("chunks").read_bytes()[:-100])
    said = shell("tag", "--model", "cut", stdin="", code=1).stderr
    assert said.startswith("Error: cut")
    assert "does not exist" in shell("tag", "--model", "gone", stdin="", code=2).stderr


def test_a_fault_leaves_the_old_output(trained, shell):
    out = shell.write("out.txt", "old")
    tag(trained, "--output", out, stdin="the DT\n\ndog\n", code=1)
    assert out.read_text() == "old"
    assert [path.name for path in shell.folder.iterdir()] == ["out.txt"]


# As a program in a pipe


def test_output_comes_before_the_input_ends(trained):
    with subprocess.Popen(
        [*PROGRAM, "tag", "--model", trained.path("chunks")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        watch = threading.Timer(60.0, process.kill)
        watch.start()
        for _ in range(2):
            process.stdin.write("the DT\ndog NN\n\n")
            process.stdin.flush()
            assert [process.stdout.readline() for _ in range(3)] == ["the DT B-NP\n", "dog NN I-NP\n", "\n"]
        process.stdin.close()
        assert process.wait() == 0
        watch.cancel()


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes that break")
def test_a_broken_pipe_ends_silently(trained, dev, tmp_path):
    (tmp_path / "much.txt").write_text(200 * dev)
    with subprocess.Popen(
        [*PROGRAM, "tag", "--model", trained.path("chunks"), tmp_path / "much.txt"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 141
