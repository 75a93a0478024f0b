"""Files of trees: lines, compression, and errors that name the place."""

from __future__ import annotations

import gzip

import pytest

from dualfield.data import ParseTree
from dualfield.io import read_trees, write_trees

ONE = "(S (NP (NN a)) (VP (VB b)))"


@pytest.mark.parametrize("name", ["trees.txt", "trees.txt.gz"])
def test_files_and_back(tmp_path, name):
    path = tmp_path / name
    trees = [ParseTree.from_brackets(ONE), None, ParseTree.from_brackets("((S (NN a)) (. .))")]
    write_trees(trees, path)
    assert read_trees(path) == trees
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        assert file.read() == f"{ONE}\n(())\n((S (NN a)) (. .))\n"


def test_trees_on_several_lines_and_several_on_one(tmp_path):
    path = tmp_path / "wsj.mrg"
    path.write_text("\n( (S\n    (NP (NN a))\n    (VP (VB b)) ))\n(X (Y c)) (X (Y d))\n()\n", encoding="utf-8")
    found = read_trees(path)
    assert [str(tree) for tree in found] == ["((S (NP (NN a)) (VP (VB b))))", "(X (Y c))", "(X (Y d))", "None"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{ONE}\n{ONE})\n", "line 2: a bracket is closed"),
        (f"{ONE}\n\n(S (NN a)\n{ONE}\n", r"line 4: the bracket '\(S' that opens in line 3 is not closed"),
        (f"{ONE}\n# comment\n", "line 2: '#' stands outside"),
        (f"{ONE}\n(S\n (NP ) (NN a))\n", r"line 3: the bracket '\(NP' that opens in line 3 has neither"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    path = tmp_path / "bad.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"bad\.txt, {message}"):
        read_trees(path)


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "trees.txt"
    write_trees([ONE], path)
    with pytest.raises(ValueError, match=r"trees\[1\]: The word 'a b'"):
        write_trees([ONE, ParseTree("X", word="a b")], path)
    assert path.read_text(encoding="utf-8") == ONE + "\n"
