"""Outputs never replace an input or each other, and what was computed is not lost when a file cannot be written."""

from __future__ import annotations

import errno
import os
import re
import sys
from pathlib import Path

import pytest

import dualfield
from dualfield.solvers import Status

from .conftest import corpus


@pytest.fixture
def files(shell, trained):
    """A corpus, its development data, a template, a model, and links to the corpus."""
    shell.write("a.txt", corpus(12, 0))
    shell.write("dev.txt", corpus(6, 1))
    shell.write("t.tpl", "U0:%x[0,0]\nB\n")
    shell.path("m").write_bytes(trained.path("chunks").read_bytes())
    shell.path("soft.txt").symlink_to("a.txt")
    os.link(shell.path("a.txt"), shell.path("hard.txt"))
    shell.path("new").symlink_to("not-yet")
    return shell


def content(shell):
    return {path.name: path.read_bytes() for path in shell.folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("train a.txt --model a.txt", "--model a.txt and DATA a.txt"),
        ("train dev.txt a.txt --model ./a.txt", "--model a.txt and DATA a.txt"),
        ("train a.txt --model soft.txt", "--model soft.txt and DATA a.txt"),
        ("train a.txt --model hard.txt", "--model hard.txt and DATA a.txt"),
        ("train soft.txt --model n --report a.txt", "--report a.txt and DATA soft.txt"),
        ("train a.txt --model n --checkpoint hard.txt", "--checkpoint hard.txt and DATA a.txt"),
        ("train a.txt --dev dev.txt --model dev.txt", "--model dev.txt and --dev dev.txt"),
        ("train a.txt --template t.tpl --model t.tpl", "--model t.tpl and --template t.tpl"),
        ("train a.txt --warm-start m --model m", "--model m and --warm-start m"),
        ("train a.txt --model both --report both", "--report both and --model both"),
        ("train a.txt --model new --checkpoint not-yet", "--checkpoint not-yet and --model new"),
        ("tag --model m --output m a.txt", "--output m and --model m"),
        ("tag --model m --output soft.txt a.txt", "--output soft.txt and FILES a.txt"),
        ("convert a.txt hard.txt --to crfsuite", "OUT hard.txt and IN a.txt"),
        ("convert a.txt t.tpl --to crfsuite --template t.tpl", "OUT t.tpl and --template t.tpl"),
    ],
)
def test_an_output_that_is_something_else_is_wrong_usage(files, command, said):
    before = content(files)
    result = files(*command.split(), code=2)
    assert f"{said} are the same file: one would replace the other." in " ".join(result.stderr.split())
    assert content(files) == before


@pytest.mark.parametrize("command", ["tag --model m", "evaluate", "convert - out.txt --from conll --to conll"])
def test_standard_streams_are_files_too(files, command, monkeypatch):
    """Both are the file a.txt: what is read would be what is written."""
    from dualfield.cli import outputs

    stat = Path("a.txt").stat()
    monkeypatch.setattr(outputs.os, "fstat", lambda number: stat)
    arguments = command.replace("out.txt", "soft.txt").split()
    assert "are the same file" in files(*arguments, code=2, stdin="a B\n").stderr
    assert "are the same file" in files("evaluate", "a.txt", code=2).stderr
    assert "are the same file" in files("inspect", "a.txt", code=2).stderr


def test_other_outputs_are_fine(files):
    files("tag", "--model", "m", "--output", "out.txt", "a.txt")
    files("tag", "--model", "m", "--output", "out.txt", "dev.txt")
    files("convert", "a.txt", "a.crfsuite")
    assert files.path("a.crfsuite").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes with names")
def test_devices_and_pipes_are_written_to(files, tmp_path):
    import threading

    os.mkfifo("pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()
    files("tag", "--model", "m", "--output", "pipe", "a.txt")
    reader.join()
    assert read == [files("tag", "--model", "m", "a.txt").stdout]
    files("tag", "--model", "m", "--output", "/dev/null", "a.txt")
    said = files("convert", "m", "-", "--from", "crfsuite-model", "--to", "dualfield", code=2).stderr
    assert "A model cannot go to standard output: name a file." in said


# Files that cannot be written


def fails(monkeypatch, *names):
    """Let the disk be full for some files."""
    from dualfield.io import atomic

    real = atomic._begun

    def begun(target):
        if target.name in names:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(target)

    monkeypatch.setattr(atomic, "_begun", begun)


def test_the_model_is_written_before_the_report(files, monkeypatch):
    fails(monkeypatch, "page.html")
    result = files("train", "a.txt", "--model", "n", "--report", "page.html", "--checkpoint", "state", code=1)
    assert result.stderr.endswith("Error: page.html: cannot be written: No space left on device. The model is in n.\n")
    assert result.stdout.splitlines()[-1].startswith("Model: n, ")
    assert dualfield.load("n").status_ is Status.CONVERGED


def test_a_report_that_cannot_be_drawn_is_refused_before_the_training(files, without_matplotlib):
    said = files("train", "a.txt", "--model", "n", "--report", "page.html", code=1).stderr
    assert said.startswith("Error: --report: Figures and reports need matplotlib: pip install matplotlib")
    assert said.count("\n") == 1
    assert not files.path("n").exists()
    files("train", "a.txt", "--model", "n")


def test_the_checkpoint_outlives_a_model_that_cannot_be_written(files, monkeypatch):
    keep = ("--checkpoint", "state", "--checkpoint-every", 0)
    with monkeypatch.context() as patch:
        fails(patch, "n")
        said = files("train", "a.txt", "--model", "n", *keep, code=1).stderr
    assert said.endswith("Error: n: cannot be written: No space left on device. The same command goes on from state.\n")
    assert files.path("state").exists()
    assert "Resuming from state." in files("train", "a.txt", "--model", "n", *keep).stderr
    assert not files.path("state").exists()
    files("train", "a.txt", "--model", "whole")
    assert files.path("n").read_bytes() == files.path("whole").read_bytes()


def test_a_checkpoint_that_cannot_be_written_is_a_warning(files, monkeypatch):
    fails(monkeypatch, "state")
    keep = ("--checkpoint", "state", "--checkpoint-every", 0)
    said = files("train", "a.txt", "--model", "n", *keep).stderr
    assert len(re.findall(r"^Warning: state: the checkpoint cannot be written: No space left", said, re.M)) == 1
    assert dualfield.load("n").status_ is Status.CONVERGED
    said = files("train", "a.txt", "--model", "other", *keep, "--strict", code=1).stderr
    assert "Error: state: the checkpoint cannot be written" in said
    assert not files.path("other").exists()


def test_another_seed_is_another_training(files):
    keep = ("--checkpoint", "state", "--checkpoint-every", 0)
    files("train", "a.txt", "--model", "n", *keep, "--max-iter", 4, "--tol", "1e-9", "--strict", code=1)
    assert files.path("state").exists()
    options = ("--max-iter", 4, "--tol", "1e-9", "--seed", 5)
    said = files("train", "a.txt", "--model", "n", *keep, *options, code=1).stderr
    assert "state belongs to another fit: parameter random_state was 0, now 5." in said


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")
@pytest.mark.parametrize("option", ["--model", "--report", "--checkpoint"])
def test_what_killed_runs_have_left_is_removed_at_the_start(files, option):
    """Also if the run fails: before, it was removed when the file was written, perhaps after hours."""
    stale, other = files.path(".out.0123456789ab.part"), files.path(".elsewhere.0123456789ab.part")
    for path in (stale, other):
        path.write_text("half")
    files.write("bad.txt", "a b c\nd e\n")
    outputs = {"--model": "m2", option: "out"}
    files("train", "bad.txt", *(word for pair in outputs.items() for word in pair), code=1)
    assert not stale.exists()
    assert other.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")
def test_what_another_run_is_writing_stays(files):
    from dualfield.io import atomic_write

    with atomic_write(files.path("out")) as file:
        file.write(b"at work")
        file.flush()
        files("tag", "--model", "m", "a.txt", "--output", "out")
        assert len(list(files.folder.glob(".out.*.part"))) == 1
    assert files.path("out").read_bytes() == b"at work"
    assert not list(files.folder.glob(".out.*.part"))
