"""Data in other encodings than UTF-8, and bytes that cannot be decoded."""

from __future__ import annotations

import gzip

import pytest

import dualfield
from dualfield.io import read_conll

TEXT = "Café B-X\nà O\n\nnaïve O\nCafé B-X\n"


@pytest.fixture
def files(shell):
    shell.write("utf8.txt", TEXT)
    shell.path("latin.txt").write_bytes(TEXT.encode("latin-1"))
    shell("train", "utf8.txt", "--model", "m", "-q")
    return shell


def test_training(files):
    files.path("packed.gz").write_bytes(gzip.compress(TEXT.encode("latin-1")))
    for source, stdin in (("latin.txt", None), ("packed.gz", None), ("-", TEXT.encode("latin-1"))):
        files(*("train", source, "--encoding", "latin-1", "--dev", "latin.txt", "--model", "latin", "-q"), stdin=stdin)
        assert files.path("latin").read_bytes() == files.path("m").read_bytes()
    assert "w[0]=Café" in dualfield.load("latin").vocabulary_


@pytest.mark.parametrize("name", ["latin-1", "cp1252", "ISO-8859-15"])
def test_tagging_writes_utf8(files, name):
    expected = files("tag", "--model", "m", "utf8.txt").stdout_bytes
    assert files("tag", "--model", "m", "--encoding", name, "latin.txt").stdout_bytes == expected
    assert "Café".encode() in expected


def test_evaluation(files):
    for options in ([], ["--model", "m"]):
        expected = files("evaluate", *options, "utf8.txt").stdout
        assert files("evaluate", *options, "--encoding", "latin-1", "latin.txt").stdout == expected


def test_conversion(files):
    files("convert", "--encoding", "latin-1", "latin.txt", "out.conll")
    assert read_conll("out.conll") == read_conll("utf8.txt")
    files("convert", "--encoding", "latin-1", "m", "m.json")


@pytest.mark.parametrize("name", ["utf8", "UTF-8", "utf-8-sig"])
def test_names_of_utf8(files, name):
    files.path("marked.txt").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    expected = files("tag", "--model", "m", "utf8.txt").stdout
    assert files("tag", "--model", "m", "--encoding", name, "marked.txt").stdout == expected


COMMANDS = {
    "train": ["train", "--model", "x"],
    "tag": ["tag", "--model", "m"],
    "evaluate": ["evaluate"],
    "evaluate with a model": ["evaluate", "--model", "m"],
    "convert": ["convert", "--to", "crfsuite"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_byte_is_named(files, name):
    files.path("later.txt").write_bytes(b"a O\nb\xc3\xa9 O\n\nCaf\xe9 O\n")
    targets = ["out"] if name == "convert" else []
    said = files(*COMMANDS[name], "later.txt", *targets, code=1).stderr
    assert said.splitlines()[-1] == (
        "Error: later.txt:4: cannot be read as utf-8: byte 4 of the line is 0xe9. "
        "Name its encoding, such as --encoding latin-1."
    )
    files.path("later.txt").write_bytes(b"a O\n\n\x81 O\n")
    said = files(*COMMANDS[name], "--encoding", "cp1252", "later.txt", *targets, code=1).stderr
    assert "Error: later.txt:3: cannot be read as cp1252: byte 1 of the line is 0x81." in said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("latin-47", "'latin-47' is not an encoding that Python knows"),
        ("hex", "'hex' is not an encoding that Python knows"),
        ("utf-16", "'utf-16' does not extend ASCII."),
        ("cp037", "'cp037' does not extend ASCII."),
    ],
)
def test_encodings_that_cannot_be(files, name, said):
    result = files("tag", "--model", "m", "--encoding", name, "utf8.txt", code=2)
    assert "'--encoding'" in result.stderr
    assert said in result.stderr
