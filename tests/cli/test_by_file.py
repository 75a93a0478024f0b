"""Patterns of files on the command line: read, tagged and evaluated file by file; clusters are in tests/cluster."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.cli.conftest import corpus


@pytest.fixture
def parts(shell):
    for at in range(3):
        shell.path(f"part{at}.txt.gz").write_bytes(gzip.compress(corpus(6, at).encode()))
    return shell


def test_a_pattern_is_the_files_that_it_means(trained, parts):
    parts("train", "part*.gz", "--model", "by_pattern", "--quiet")
    parts("train", *(f"part{at}.txt.gz" for at in range(3)), "--model", "by_name", "--quiet")
    assert parts.path("by_pattern").read_bytes() == parts.path("by_name").read_bytes()
    parts("train", "no*.gz", "--model", "nothing", code=2)


def test_a_file_for_each_file(trained, parts):
    model = trained.path("chunks")
    parts("tag", "--model", model, "part*.gz", "--output-dir", "tagged/here")
    for at in range(3):
        expected = parts("tag", "--model", model, f"part{at}.txt.gz").stdout
        assert parts.path(f"tagged/here/part{at}.txt").read_text() == expected


def test_counts_are_summed(trained, parts):
    model = trained.path("chunks")
    parts.write("all.txt", "".join(corpus(6, at) for at in range(3)))
    summed = json.loads(parts("evaluate", "--model", model, "part*.gz", "--json").stdout)
    whole = json.loads(parts("evaluate", "--model", model, "all.txt", "--json").stdout)
    assert summed == {name: value for name, value in whole.items() if name in summed}
    assert summed["sentences"] == 18
    as_text = parts("evaluate", "--model", model, "part*.gz").stdout
    assert parts("evaluate", "--model", model, "all.txt").stdout.startswith(as_text.rstrip("\n"))


def test_empty_files_count_nothing(trained, parts):
    model = trained.path("chunks")
    found = parts("evaluate", "--model", model, "part*.gz").stdout
    parts.path("part3.gz").write_bytes(gzip.compress(b""))
    parts.write("part4.gz", "\n\n")
    parts.write("part5.gz", "-DOCSTART- -X- O\n\n")
    assert parts("evaluate", "--model", model, "part*.gz").stdout == found
    assert "is empty; expected sentences" in parts("evaluate", "--model", model, "part[345].gz", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tag", "part*.gz", "--cluster", "tcp://127.0.0.1:1"], "--cluster needs --output-dir"),
        (["tag", "part*.gz", "--output", "a", "--output-dir", "b"], "--output-dir is in place of --output"),
        (["tag", "--output-dir", "b"], "standard input has no name"),
        (["tag", "part0.txt.gz", "copy/part0.txt.gz", "--output-dir", "b"], "would both be written to b/part0.txt"),
        (["tag", "plain.txt", "--output-dir", "."], "plain.txt is one of FILES"),
    ],
)
def test_places_that_cannot_be(trained, parts, arguments, message):
    parts.path("copy").mkdir()
    parts.path("copy/part0.txt.gz").write_bytes(parts.path("part0.txt.gz").read_bytes())
    parts.write("plain.txt", corpus(1, 0))
    assert message in parts(*arguments, "--model", trained.path("chunks"), code=2).stderr
    assert not parts.path("b").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss", "hinge"], "--loss hinge is not for --cluster"),
        (["--C", "auto"], "--C auto is not for --cluster"),
        (["--C", "evidence"], "--C evidence is not for --cluster"),
        (["--solver", "block_dual"], "--solver block_dual is not for --cluster"),
        (["--dev", "part0.txt.gz"], "--dev is not for --cluster"),
        (["--order", "2"], "--order is not for --cluster"),
    ],
)
def test_what_a_cluster_does_not_do(parts, arguments, message):
    result = parts("train", "part*.gz", "--model", "m", "--cluster", "tcp://127.0.0.1:1", *arguments, code=2)
    assert message in result.stderr


def test_evaluation_of_patterns_needs_a_model(parts):
    assert "need --model and files" in parts("evaluate", "part*.gz", code=2).stderr
