"""``dualfield compile``, and what ``dualfield inspect`` says about what it has made."""

from __future__ import annotations

import gzip
import itertools
import json

import pytest

from dualfield.data import CompiledCorpus
from dualfield.features import Template
from tests.cli.conftest import corpus


def test_it_reads_as_train_does(shell):
    for at in range(3):
        shell.path(f"part{at}.gz").write_bytes(gzip.compress(corpus(30, at).encode()))
    result = shell("compile", "part*.gz", "out", "--parts", "5", "--shuffle", "7")
    assert "90 sentences" in result.stderr
    assert "5 parts" in result.stderr
    assert "tokens/s" in result.stderr
    made = CompiledCorpus("out")
    assert (made.n_examples, made.n_parts, made.seed) == (90, 5, 7)
    assert made.columns == (3, (0, 1), 2)
    assert Template(*made.template) == Template.default(2)
    assert made.sources == ("part0.gz", "part1.gz", "part2.gz")
    assert made.labels.classes.tolist() == ["B-NP", "B-VP", "I-NP", "O"]


def test_options_of_columns_and_templates(shell):
    shell.write("data.txt", "\n".join(line.replace(" ", "\t") for line in corpus(20, 0).splitlines()))
    shell.write("mine.tpl", "U:%x[0,0]\nB:%x[0,0]\n")
    arguments = ["--columns", "0", "--label", "1", "--delimiter", "tab", "--template", "mine.tpl", "--quiet"]
    assert shell("compile", "data.txt", "out", "--parts", "2", *arguments).output == ""
    made = CompiledCorpus("out")
    assert made.columns == (3, (0,), 1)
    assert made.template.text == "U:%x[0,0]\nB:%x[0,0]\n"
    assert made.pair_vocabulary is not None
    assert "DT" in made.labels.classes.tolist()


def test_items_are_recognised(shell):
    shell.write("items.txt", "L\tw=a\tx=b\nM\tw=b\n\nL\tw=a\n")
    shell("compile", "items.txt", "out", "--parts", "1")
    made = CompiledCorpus("out")
    assert (made.form, made.n_examples, sorted(made.vocabulary)) == ("crfsuite", 2, ["w=a", "w=b", "x=b"])
    refused = shell("compile", "items.txt", "other", "--template", "chunking", code=1).stderr
    assert "--template is for columns; items.txt is read as crfsuite" in refused


def test_the_format_is_told_by_the_first_file_with_text(shell):
    shell.path("a.gz").write_bytes(gzip.compress(b""))
    shell.write("b.txt", "\n\n")
    shell.write("items.txt", "L\tw=a\tx=b\nM\tw=b\n\nL\tw=a\n")
    shell("compile", "a.gz", "b.txt", "items.txt", "out", "--parts", "1")
    assert CompiledCorpus("out").form == "crfsuite"
    refused = shell("compile", "a.gz", "b.txt", "new", code=1).stderr
    assert "a.gz: is empty; expected CoNLL columns, CRFsuite items" in refused


def test_files_of_several_formats_are_refused(shell):
    shell.write("columns.txt", corpus(5, 0))
    shell.write("items.txt", "L\tw=a\tx=b\nM\tw=b\n\nL\tw=a\n")
    shell.write("empty.txt", "")
    for (first, form), (other, its) in itertools.permutations([("columns", "conll"), ("items", "crfsuite")]):
        refused = shell("compile", f"{first}.txt", "empty.txt", f"{other}.txt", "out", code=1).stderr
        assert f"{other}.txt: looks like {its}, and {first}.txt like {form}" in refused
    shell("compile", "items.txt", "columns.txt", "out", "--format", "crfsuite", "--quiet")
    assert CompiledCorpus("out").form == "crfsuite"


def test_files_of_another_encoding(shell):
    shell.path("columns.txt").write_bytes("été N\nva V\n".encode("latin-1"))
    shell.path("items.txt").write_bytes("N\tw=été\nV\tw=va\n".encode("latin-1"))
    for name, form in (("columns", "conll"), ("items", "crfsuite")):
        shell("compile", f"{name}.txt", name, "--encoding", "latin-1", "--parts", "1")
        made = CompiledCorpus(name)
        assert made.form == form
        assert any("été" in attribute for attribute in made.vocabulary)
    refused = shell("compile", "columns.txt", "new", code=1).stderr
    assert "columns.txt:1: cannot be read as utf-8: byte 1 of the line is 0xe9. Name its encoding" in refused


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("a b L\nc L\n", [], "data.txt:2: has 2 columns; the first row, in line 1, has 3."),
        ("word\n", [], "data.txt:1: has 1 column; expected 2 or more, the label last."),
        ("a L\n", ["--label", "5"], "data.txt:1: has 2 columns, which do not fit"),
        ("a L\n", ["--template", "chunking"], "has 1 column besides the label; the template chunking reads 2"),
        ("1 1:2.0 3:1.0\n", [], "looks like svmlight; columns, CRFsuite's items and Parquet can be compiled"),
        ("\n", ["--format", "conll"], "data.txt: empty; expected sentences in columns."),
    ],
)
def test_errors_are_one_line(shell, text, arguments, message):
    shell.write("data.txt", text)
    result = shell("compile", "data.txt", "out", *arguments, code=1)
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not shell.path("out").exists()


def test_standard_input_is_refused(shell):
    refused = shell("compile", "-", "out", stdin=corpus(5, 0), code=2).stderr
    assert "Standard input is not for compile, which reads its files again to go on after a break." in refused


def test_targets_are_not_lost(shell):
    shell.write("data.txt", corpus(5, 0))
    shell("compile", "data.txt", "out", "--parts", "2")
    assert "--overwrite replaces it" in shell("compile", "data.txt", "out", code=1).stderr
    shell("compile", "data.txt", "out", "--parts", "3", "--overwrite")
    assert CompiledCorpus("out").n_parts == 3
    shell.path("mine").mkdir()
    shell.write("mine/notes.txt", "precious")
    assert "is not empty" in shell("compile", "data.txt", "mine", "--overwrite", code=1).stderr
    assert "there is no such file" in shell("compile", "nowhere*", "new", code=1).stderr


def test_inspect_a_corpus(shell):
    shell.write("data.txt", corpus(40, 0))
    shell("compile", "data.txt", "out", "--parts", "2")
    shown = shell("inspect", "out").stdout
    made = CompiledCorpus("out")
    assert f"40 of {made.n_nodes:,} tokens" in shown
    assert "4: B-NP B-VP I-NP O" in shown
    assert "3 columns, tokens in 0,1 and the label in 2" in shown
    read = json.loads(shell("inspect", "out", "--json").stdout)
    assert read["n_blocks"] == made.n_blocks
    assert read["n_parts"] == 2
    shell.path("empty").mkdir()
    assert "is not a compiled corpus" in shell("inspect", "empty", code=1).stderr
