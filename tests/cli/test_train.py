"""``dualfield train``: what it reads, says, refuses and writes."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import subprocess
import sys

import numpy as np
import pytest

import dualfield
from dualfield.features import Template
from dualfield.io import read_conll, write_crfsuite_items, write_svmlight
from dualfield.metrics import span_f1_score
from dualfield.solvers import Status

from .conftest import corpus

ROW = re.compile(r"^ +(\d+\.\d) +(\d+\.\d{4}) +(\S+)( +\d+\.\d\d)? +(\d+\.\d)$", re.MULTILINE)


@pytest.fixture
def files(shell):
    shell.write("train.txt", corpus(30, 0))
    shell.write("dev.txt", corpus(10, 1))
    return shell


def columns(text):
    rows = read_conll(text.splitlines())
    return [[row[:-1] for row in s] for s in rows], [[row[-1] for row in s] for s in rows]


# What comes out


def test_model_is_that_of_python(files):
    files("train", "train.txt", "--model", "m", "--C", "3", "--tol", "1e-6")
    X, y = columns(corpus(30, 0))
    expected = dualfield.CRF(C=3.0, tol=1e-6, template=Template.default(2), random_state=0).fit(X, y)
    found = dualfield.load("m")
    assert np.array_equal(found.parameters_, expected.parameters_)
    assert found.get_params() == expected.get_params()
    assert found.status_ is Status.CONVERGED
    assert found.dual_gap_ <= 1e-6 * found.objective_


def test_all_options_reach_the_model(files):
    options = ["--C", "0.5", "--l1-ratio", "0.25", "--min-freq", "2", "--constraints", "BIO", "--order", "2"]
    options += ["--features", "observed"]
    files("train", "train.txt", "--model", "m", *options, "--solver", "lbfgs", "--tol", "1e-2", "--max-iter", "900")
    model = dualfield.load("m")
    assert (model.C, model.l1_ratio, model.min_freq, model.constraints) == (0.5, 0.25, 2, "BIO")
    assert model.features == "observed"
    assert (model.solver, model.tol, model.max_iter) == ("lbfgs", 1e-2, 900)
    assert model.structure_.order == 2
    assert model.solver_ == "lbfgs"


def test_the_same_command_gives_the_same_file(files):
    for name, threads in (("a", 1), ("b", 1), ("c", 2)):
        files("train", "train.txt", "--model", name, "--threads", threads)
    assert files.path("a").read_bytes() == files.path("b").read_bytes() == files.path("c").read_bytes()
    files("train", "train.txt", "--model", "d", "--seed", 1)
    assert files.path("a").read_bytes() != files.path("d").read_bytes()


def test_results_go_to_stdout_and_progress_to_stderr(files):
    result = files("train", "train.txt", "--model", "m", "--dev", "dev.txt")
    size = files.path("m").stat().st_size
    ended, model, dev_line = result.stdout.splitlines()
    assert re.fullmatch(
        r"The duality gap is within the tolerance: relative gap \S+ after \d+ passes, \d+\.\d s\.", ended
    )
    assert model == f"Model: m, {size:,} bytes"
    assert re.fullmatch(r"dev F1 \d+\.\d\d \(best \d+\.\d\d, pass \d+\)", dev_line)
    read, dev, sizes, blank, header, *rows, hint = result.stderr.splitlines()
    assert read.startswith("train.txt: CoNLL columns: 30 sentences, ")
    assert read.endswith(" tokens, 4 labels, 2 columns besides the label")
    assert dev.startswith("dev.txt: 10 sentences")
    loaded = dualfield.load("m")
    assert sizes == f"{len(loaded.vocabulary_):,} attributes, {loaded.n_features_:,} weights"
    assert (blank, header.split()) == ("", ["pass", "objective", "gap", "dev", "F1", "seconds"])
    assert len(rows) == len(ROW.findall(result.stderr)) > 3
    assert len({len(line) for line in [header, *rows]}) == 1  # aligned
    assert "--C auto" in hint


def test_the_last_line_is_the_model_that_is_written(files):
    result = files("train", "train.txt", "--model", "m", "--dev", "dev.txt")
    *_, (_, objective, _, score, _) = ROW.findall(result.stderr)
    model = dualfield.load("m")
    assert float(objective) == pytest.approx(model.objective_, abs=1e-4)
    X, y = columns(corpus(10, 1))
    assert float(score) == pytest.approx(100 * span_f1_score(y, model.predict(X)), abs=0.01)


def test_dev_accuracy_for_labels_without_a_scheme(files):
    for name in ("train", "dev"):
        text = files.path(f"{name}.txt").read_text()
        files.write(f"{name}.pos", "\n".join(" ".join(line.split()[:2]) for line in text.splitlines()) + "\n")
    result = files("train", "train.pos", "--model", "m", "--dev", "dev.pos")
    assert "dev accuracy" in result.stderr


def test_solvers_that_do_not_know_their_gap_show_none(files):
    result = files("train", "train.txt", "--model", "m", "--solver", "sgd", "--max-iter", "3")
    assert re.findall(r"^ +(\d\.0) +- +- +\d+\.\d$", result.stderr, re.M) == ["1.0", "2.0", "3.0"]
    assert "it does not aim at a gap: relative gap" in result.stdout


def test_quiet(files):
    result = files("train", "train.txt", "--model", "m", "--dev", "dev.txt", "-q")
    assert result.output == ""
    assert dualfield.load("m").status_ is Status.CONVERGED


def test_report(files):
    result = files("train", "train.txt", "--model", "m", "--dev", "dev.txt", "--report", "page.html")
    assert "\nReport: page.html\n" in result.stdout
    page = files.path("page.html").read_text(encoding="utf-8")
    assert "Training of m" in page
    assert "train.txt: CoNLL columns" not in page  # facts name the file and what is in it
    assert "train.txt: 30 sentences" in page
    assert "dev.txt: 10 sentences" in page
    assert re.search(r"<pre>\S+ train train.txt --model m --dev dev.txt --report page.html</pre>", page)


def test_on_a_terminal_there_is_a_bar(monkeypatch, capsys):
    from types import SimpleNamespace

    from rich.console import Console

    from dualfield.cli.training import pass_table

    monkeypatch.setattr(Console, "is_terminal", property(lambda self: True))
    model = SimpleNamespace(vocabulary_=["a"], n_features_=3)
    with pass_table.PassTable(1e-4) as table:
        for passes, gap in ((1.0, 1.0), (2.0, 1e-2)):
            table(SimpleNamespace(passes=passes, objective=2.0, relative_gap=gap, seconds=0.1), model)
            table._shown_at = 0.0
    said = capsys.readouterr().err
    assert "1.0e-02, stops at 1e-04" in said
    assert re.search(r" +2\.0 +2\.0000 +1\.0e-02 +0\.1", said)


@pytest.mark.parametrize(("gap", "share"), [(1.0, 0.0), (1e-2, 0.5), (1e-4, 1.0), (1e-9, 1.0), (5.0, 0.0)])
def test_bar_is_logarithmic(gap, share):
    from dualfield.cli.training.pass_table import _BAR, bar

    spans = bar(1.0, gap, 1e-4).spans
    assert next((s.end - s.start for s in spans if s.style == "green"), 0) == round(share * _BAR)


# What goes in


def test_stdin_gzip_and_several_files_are_all_the_same(files):
    text = corpus(30, 0)
    half = text.index("\n\n", len(text) // 2) + 2
    files.write("one.txt", text[:half])
    files.write("two.txt", text[half:])
    files.path("all.gz").write_bytes(gzip.compress(text.encode()))
    files("train", "train.txt", "--model", "a")
    files("train", "one.txt", "two.txt", "--model", "b")
    files("train", "all.gz", "--model", "c")
    said = files("train", "-", "--model", "d", stdin=text).stderr
    assert said.startswith("<stdin>: CoNLL columns: 30 sentences")
    files("train", "-", "--model", "e", stdin=gzip.compress(text.encode()))
    assert len({files.path(name).read_bytes() for name in "abcde"}) == 1


def test_crfsuite_items(files):
    X, y = columns(corpus(30, 0))
    rows = [[[f"w={word}", f"t={tag}"] for word, tag in sentence] for sentence in X]
    write_crfsuite_items(rows, y, "train.items")
    result = files("train", "train.items", "--model", "m", "--tol", "1e-6")
    assert result.stderr.startswith("train.items: CRFsuite items: 30 sentences")
    expected = dualfield.CRF(tol=1e-6, random_state=0).fit(rows, y)
    assert np.array_equal(dualfield.load("m").parameters_, expected.parameters_)


def test_svmlight(files):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(40, 3)).round(3)
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    write_svmlight(X, y, "train.svm")
    write_svmlight(X, y, "dev.svm")
    options = ["--kernel", "rbf", "--gamma", "0.5", "--C", "10"]
    result = files("train", "train.svm", "--model", "m", *options, "--dev", "dev.svm")
    assert result.stderr.startswith("train.svm: svmlight examples: 40 examples, 3 features, 2 labels")
    expected = dualfield.KernelLogisticRegression(gamma=0.5, C=10.0, random_state=0).fit(X, y)
    found = dualfield.load("m")
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-9)
    assert f"dev accuracy: {100 * expected.score(X, y):.2f}" in result.stderr
    assert result.stdout.startswith("The duality gap is within the tolerance")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a B\nb I\n\n", "CoNLL columns"),
        ("a\tB\nb\tI\n\n", "CoNLL columns"),
        ("1\ta\t_\tCase=Nom\tB\n2\tb\t_\t_\tI\n", "CoNLL columns"),
        ("B\tw=a\tp=x\nI\tw=b\tp=y\n", "CRFsuite items"),
        ("B\ta\nI\ta\tb\nI\ta\tb\tc\nB\tz\n", "CRFsuite items"),
        ("1 1:0.5 7:1\n-1 2:1\n", "svmlight examples"),
        ("# a comment\n+1 1:2e-3\n-1\n", "svmlight examples"),
    ],
    ids=["spaces", "tabs", "conllu", "items", "ragged items", "svmlight", "svmlight with comment"],
)
def test_formats_are_told_by_content(shell, text, kind):
    shell.write("data", text)
    result = shell("train", "data", "--model", "m")
    assert result.stderr.startswith(f"data: {kind}: ")


def test_template_file_and_built_in_ones(files):
    files.write("words.tpl", "U0:%x[0,0]\nB\n")
    files("train", "train.txt", "--model", "m", "--template", "words.tpl")
    assert set(dualfield.load("m").vocabulary_) <= {f"U0:{word}" for word in corpus(30, 0).split()}
    files("train", "train.txt", "--model", "m", "--template", "chunking")
    assert dualfield.load("m").template == Template.chunking()


def test_warm_start(files):
    files("train", "train.txt", "--model", "m", "--template", "chunking")
    cold = files("train", "train.txt", "--model", "n", "--template", "chunking", "--solver", "lbfgs")
    warm = files("train", "train.txt", "--model", "n", "--warm-start", "m", "--solver", "lbfgs")
    assert len(ROW.findall(warm.stderr)) < len(ROW.findall(cold.stderr)) / 2
    model = dualfield.load("n")
    assert model.template == Template.chunking()  # that of the old model
    assert model.warm_start is False


# Complaints


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("a B\nb I\nc\n", [], "bad:3: has 1 column; the first row, in line 1, has 2."),
        ("a\nb\n", [], "bad:1: has 1 column; expected 2 or more, the label last."),
        ("", [], "bad: is empty; expected CoNLL columns, CRFsuite items, svmlight or JSON."),
        ("\n\n", ["--format", "conll"], "bad: is empty; expected CoNLL columns."),
        ("B\tw:x\nI\tw:y\n", ["--format", "crfsuite"], "bad:1: the weight of 'w' must be a finite number."),
        ("1 1:2\n1 0:2\n", ["--format", "svmlight"], "bad:2: indices must rise from 1. Got 0 after 0."),
        ("1:2\n2:3\n", ["--format", "svmlight"], "bad:1: has no label; expected it before the entries."),
        ("1 1:2\n-1 2:x\n", [], "bad:2: "),
        ("1 1:2\n-1 2:1\n1 7;3\n", [], "bad:3: "),
        ("a NN B\n", ["--template", "t3"], "bad: has 2 columns besides the label; the template t3 reads 3."),
        ("a NN B\n", ["--template", "t0"], "t0: Line 1 of the template"),
        ("a X\n", ["--constraints", "BIO"], "bad:1: the label 'X' does not fit --constraints BIO."),
        ("a O\n\na O\nb I-X\n", ["--constraints", "BIO"], "bad:4: the label 'I-X' after 'O' does not fit"),
        ("a I-X\n", ["--constraints", "BIO"], "bad:1: the label 'I-X' at the beginning of a sentence does not fit"),
        ("a S-X\n\nb B-X\n", ["--constraints", "BIOES"], "bad:3: the label 'B-X' at the end of a sentence does not"),
    ],
    ids=[
        "short row",
        "no label",
        "empty",
        "blank",
        "item",
        "index",
        "unlabelled",
        "entry",
        "no entry",
        "columns",
        "template",
        "scheme",
        "after",
        "start",
        "stop",
    ],
)
def test_bad_data_are_refused_by_file_and_line(shell, text, options, said):
    shell.write("bad", text)
    shell.write("t3", "U0:%x[0,2]\nB\n")
    shell.write("t0", "U0:%x[0\n")
    result = shell("train", "bad", "--model", "m", *options, code=1)
    assert len(result.stderr.splitlines()[-1:]) == 1
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert said in result.stderr
    assert not shell.path("m").exists()


def test_damaged_gzip_and_bytes(shell):
    shell.path("cut.gz").write_bytes(gzip.compress(corpus(30, 0).encode())[:-20])
    assert "Error: cut.gz:" in shell("train", "cut.gz", "--model", "m", code=1).stderr
    shell.path("latin").write_bytes("a B\ncaf\xe9 B\n".encode("latin-1"))
    assert "Error: latin:2: cannot be read as utf-8" in shell("train", "latin", "--model", "m", code=1).stderr


@pytest.mark.parametrize(("pack", "name"), [(bz2.compress, "bzip2"), (lzma.compress, "xz")])
def test_other_compressions_are_named(trained, shell, pack, name):
    packed = pack(corpus(10, 0).encode())
    shell.path("packed").write_bytes(packed)
    said = f"is compressed with {name}; expected plain text, or gzip."
    model = trained.path("chunks")
    for arguments in (
        ["train", "packed", "--model", "m"],
        ["train", "packed", "--model", "m", "--encoding", "latin-1"],
        ["compile", "packed", "out"],
        ["compile", "packed", "out", "--format", "crfsuite", "--encoding", "latin-1"],
        ["tag", "packed", "--model", model],
        ["evaluate", "packed", "--model", model],
    ):
        assert shell(*arguments, code=1).stderr == f"Error: packed: {said}\n"
    assert shell("tag", "--model", model, stdin=packed, code=1).stderr == f"Error: <stdin>: {said}\n"


def test_files_of_different_width(files):
    files.write("wide.txt", "\na b c B-NP\n")
    said = files("train", "train.txt", "wide.txt", "--model", "m", code=1).stderr
    assert said == "Error: wide.txt:2: has 4 columns; expected 3, as in train.txt.\n"


def test_a_model_is_not_data(files, trained):
    said = files("train", trained.path("chunks"), "--model", "m", code=1).stderr
    assert said == f"Error: {trained.path('chunks')}: is a model file; expected data.\n"


def test_label_without_training_example(files):
    files.write("odd.txt", "the DT B-NP\nwhale NN B-XX\n")
    result = files("train", "train.txt", "--model", "m", "--dev", "odd.txt")
    assert "Warning: odd.txt:2: the label 'B-XX' has no training example" in result.stderr
    result = files("train", "train.txt", "--model", "n", "--dev", "odd.txt", "--strict", code=1)
    assert result.stderr.endswith(
        "Error: odd.txt:2: the label 'B-XX' has no training example; it will never be predicted.\n"
    )
    assert not files.path("n").exists()


def test_not_converged_is_a_warning_unless_strict(files):
    options = ["--max-iter", "2", "--tol", "1e-9"]
    result = files("train", "train.txt", "--model", "m", *options)
    assert re.search(r"^Warning: The limit on passes was reached: .*Increase --max-iter, or --tol", result.stderr, re.M)
    assert result.stdout.startswith("Model: m, ")
    before = files.path("m").read_bytes()
    result = files("train", "train.txt", "--model", "m", *options, "--C", "2", "--strict", code=1)
    assert result.stderr.splitlines()[-1].startswith("Error: The limit on passes was reached")
    assert files.path("m").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train.txt", "--kernel", "linear"], "--kernel is for svmlight; the data are conll."),
        (["x.svm", "--min-freq", "2"], "--min-freq is for sequences and graphs; the data are svmlight."),
        (["x.items", "--template", "default"], "--template is for columns"),
        (["-", "--dev", "-"], "Standard input cannot be both DATA and --dev."),
        (["train.txt", "--C", "0"], "Invalid value for '--C'"),
        (["train.txt", "--C", "nan"], "Invalid value for '--C': 'nan' is not a finite number."),
        (["train.txt", "--tol", "inf"], "Invalid value for '--tol': 'inf' is not a finite number."),
        (["train.txt", "--gamma", "abc"], "Invalid value for '--gamma'"),
        (["broken.txt", "--solver", "newton"], "--solver newton is not for --loss log and sequences, which take auto"),
        (["x.svm", "--solver", "block_dual"], "--solver block_dual is not for --loss log and svmlight"),
        (["train.txt", "--loss", "hinge", "--solver", "lbfgs"], "--solver lbfgs is not for --loss hinge"),
        (["train.txt", "--gamma", "-1"], "Invalid value for '--gamma'"),
        (["train.txt", "--template", "no-such-file"], "'default' and 'chunking' are built in"),
        (["no-such-file"], "does not exist"),
        ([], "Missing argument 'DATA...'"),
    ],
    ids=[
        *(
            "kernel",
            "sequences",
            "items",
            "stdin",
            "C",
            "nan",
            "inf",
            "word",
            "solver",
            "svmlight solver",
            "hinge solver",
        ),
        *("gamma", "template", "missing", "nothing"),
    ],
)
def test_wrong_usage(files, arguments, said):
    files.write("broken.txt", "a B\nb\n")  # not read so far
    files.write("x.svm", "1 1:1\n2 2:1\n")
    files.write("x.items", "B\tw=a\tw=b\nI\tw=a\tw=c\n")
    result = files("train", *arguments, "--model", "m", code=2, stdin="a B\n")
    assert said in result.stderr


def test_places_that_cannot_be_written_are_known_at_once(files):
    for option in ("--model", "--report", "--checkpoint"):
        options = {"--model": "m", option: "no/such/folder/x"}
        said = files("train", "train.txt", *(part for pair in options.items() for part in pair), code=1).stderr
        assert said.startswith("Error: no/such/folder/x: cannot be written: the folder")


def test_warm_start_of_another_kind(files, trained):
    files.write("x.items", "B\tw=a\tw=b\nI\tw=a\tw=c\n")
    said = files("train", "x.items", "--model", "m", "--warm-start", trained.path("chunks"), code=1).stderr
    assert "is a model for CoNLL columns; the data are CRFsuite items." in said


def test_as_a_program_of_its_own(files):
    """Plain lines and no colours where standard error is no terminal."""
    done = subprocess.run(
        [sys.executable, "-c", "from dualfield.cli import main; main()", "train", "train.txt", "--model", "m"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in done.stdout + done.stderr
    assert len(ROW.findall(done.stderr)) > 3
