"""``--structure dependency``: trees from the shell, in CoNLL-U and in columns."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import dualfield
from dualfield.data import DependencySentence
from dualfield.io import read_conllu, write_conllu
from dualfield.metrics import attachment_scores
from dualfield.structures import Dependency
from tests.estimators.test_dependency import treebank

CROSSING = [("n1", "N"), ("d1", "D"), ("v1", "V"), ("n2", "N")], [3, 4, 0, 3]


def sentences(n, seed):
    """Sentences with a comment, a range and an empty node each."""
    found = []
    for at, (words, tree) in enumerate(zip(*treebank(n, seed), strict=True)):
        rows = list(DependencySentence.from_tokens(words, *zip(*tree, strict=True)).rows)
        rows.insert(0, ("1-2", "x", *"________"))
        rows.append((f"{len(words)}.1", "y", *"________"))
        found.append(DependencySentence(tuple(rows), (f"# sent_id = {at}",)))
    return found


def conllu(found):
    file = io.StringIO()
    write_conllu(found, file)
    return file.getvalue()


def columns(n, seed):
    lines = []
    for words, tree in zip(*treebank(n, seed), strict=True):
        lines += [f"{word}\t{tag}\t{head}" for (word, tag), (head, _) in zip(words, tree, strict=True)] + [""]
    return "\n".join(lines) + "\n"


@pytest.fixture
def files(shell):
    shell.write("train.conllu", conllu(sentences(40, 0)))
    shell.write("dev.conllu", conllu(sentences(12, 1)))
    shell.write("train.txt", columns(40, 0))
    shell.write("dev.txt", columns(12, 1))
    return shell


def test_model_is_that_of_python(files):
    said = files("train", "train.conllu", "--model", "m", "--structure", "dependency", "--dev", "dev.conllu")
    assert "dev LAS" in said.stdout
    assert "40 sentences" in said.stderr
    train, dev = sentences(40, 0), sentences(12, 1)
    expected = dualfield.CRF(Dependency(), random_state=0).fit(train, train)
    found = dualfield.load("m")
    assert np.array_equal(found.parameters_, expected.parameters_)
    assert files("tag", "--model", "m", "dev.conllu").stdout == conllu(expected.predict(dev))
    scores = attachment_scores(dev, expected.predict(dev))
    shown = files("evaluate", "--model", "m", "dev.conllu").stdout
    assert f"UAS {scores.uas:.2%}, LAS {scores.las:.2%}" in shown
    record = json.loads(files("evaluate", "--model", "m", "dev.conllu", "--json").stdout)
    assert record["las"] == scores.las
    assert record["words"] == scores.n_words
    assert "Attributes of det" in files("inspect", "m").stdout
    json.loads(files("inspect", "m", "--json").stdout)


def test_ranges_empty_nodes_and_comments_are_kept(files):
    files("train", "train.conllu", "--model", "m", "--structure", "dependency", "-q")
    lines = files("tag", "--model", "m", "dev.conllu").stdout.split("\n")
    given = conllu(sentences(12, 1)).split("\n")
    assert [line.split("\t")[0] for line in lines] == [line.split("\t")[0] for line in given]


def test_probabilities_and_best_trees(files):
    files("train", "train.conllu", "--model", "m", "--structure", "dependency", "-q")
    text = files("tag", "--model", "m", "dev.conllu", "--marginals", "--k-best", "2").stdout
    found = read_conllu(text.split("\n")[:-1])
    assert len(found) == 24
    ranks = [one.comments[-1].split(",")[0] for one in found]
    assert ranks == ["# rank 1", "# rank 2"] * 12
    model, dev = dualfield.load("m"), sentences(12, 1)
    best = model.k_best(dev, 2)
    assert found[0].heads == best[0][0][0].heads
    assert found[0].comments[-1].endswith(f"{best[0][0][1]:.6f}")
    chances = [float(row[9].removeprefix("Probability=")) for row in found[0].words]
    assert all(0.0 < chance <= 1.0 for chance in chances)
    assert "is not for" in files("tag", "--model", "m", "dev.conllu", "--marginals", "all", code=2).stderr


def test_columns_with_the_head_last(files):
    files("train", "train.txt", "--model", "m", "--structure", "dependency", "--dev", "dev.txt", "-q")
    words, trees = treebank(12, 1)
    model = dualfield.load("m")
    found = [heads for one in words for heads in [model.predict([DependencySentence.from_tokens(one)])[0].heads]]
    tagged = files("tag", "--model", "m", "dev.txt").stdout
    rows = [line.split("\t") for line in tagged.split("\n") if line]
    assert [int(row[3]) for row in rows] == [head for heads in found for head in heads]
    assert [int(row[2]) for row in rows] == [head for tree in trees for head, _ in tree]
    files.write("new.txt", "\n".join(line.rpartition("\t")[0] for line in columns(12, 1).split("\n")))
    new = files("tag", "--model", "m", "new.txt", "--marginals").stdout
    assert [line.split("\t")[2] for line in new.split("\n") if line] == [row[3] for row in rows]
    assert "UAS" in files("evaluate", "--model", "m", "dev.txt").stdout
    assert "LAS" not in files("evaluate", "--model", "m", "dev.txt").stdout


def test_hinge_tune_and_warm_start(files):
    files("train", "train.conllu", "--model", "m", "--structure", "dependency", "--loss", "hinge", "-q")
    assert isinstance(dualfield.load("m"), dualfield.StructuredSVM)
    tune = ("tune", "train.conllu", "--cv", "2", "--C", "1,3", "--structure", "dependency")
    assert "mean LAS" in files(*tune, "--model", "best").stdout
    assert "dependency trees are scored by UAS, or LAS where" in files(*tune, "--by", "f1", code=2).stderr
    assert isinstance(dualfield.load("best").structure_, Dependency)
    files("train", "train.conllu", "--model", "again", "--structure", "dependency", "--warm-start", "best", "-q")


def test_crossing_trees(files):
    words, heads = CROSSING
    crossing = DependencySentence.from_tokens(words, heads, ["a", "b", "root", "c"])
    files.write("more.conllu", conllu([*sentences(3, 0), crossing]))
    line = conllu(sentences(3, 0)).count("\n") + 1
    said = files("train", "more.conllu", "--model", "m", "--structure", "dependency", code=1).stderr
    assert f"1 of 4 trees is not projective, the first is more.conllu:{line}" in said
    assert "--non-projective skip" in said
    for how in ("skip", "lift"):
        files("train", "more.conllu", "--model", how, "--structure", "dependency", "--non-projective", how, "-q")
    assert dualfield.load("skip").structure.non_projective == "skip"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train.conllu", "--root", "any"], "--root is for --structure dependency"),
        (
            ["train.conllu", "--structure", "dependency", "--order", "2"],
            "--order is for sequences; the data are conllu",
        ),
        (["train.conllu", "--structure", "dependency", "--max-length", "2"], "is for --structure semi-markov"),
        (["train.conllu", "--structure", "dependency", "--arc-feature", "%x[first]"], "must be texts with macros"),
        (["train.conllu", "--format", "conll", "--structure", "dependency"], "--structure dependency is for trees"),
        (["train.conllu", "--format", "conllu", "--structure", "semi-markov"], "semi-markov is for sequences"),
        (["train.conllu"], "train.conllu is CoNLL-U. Pass --structure dependency for its trees, or --label COLUMN"),
        (
            ["trees.mrg", "--structure", "dependency"],
            "--structure dependency is for trees of heads; the data are trees",
        ),
    ],
)
def test_refused_options(files, arguments, said):
    files.write("trees.mrg", "(S (A a) (B b))\n(S (A a) (B (C c) (D d)))\n")
    assert said in files("train", *arguments, "--model", "m", code=2).stderr


def test_tags_are_learnt_where_their_column_is_named(files):
    files.write("plain.conllu", "".join(f"{line}\n" for line in conllu(sentences(9, 0)).splitlines() if _is_word(line)))
    files("train", "plain.conllu", "--model", "m", "--columns", "1", "--label", "3", "-q")
    assert set(dualfield.load("m").classes_) == {"A", "D", "N", "V"}


def _is_word(line):
    return not line or line.partition("\t")[0].isdecimal()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tN\t0\nb\tN\tx\n", "data:2: the last column must be the head, another word in [0, 2]. Got 'x'"),
        ("a\tN\t2\nb\tN\t2\n", "data:2: the last column must be the head"),
        ("a\nb\n", "data:1: has 1 columns; expected CoNLL-U, or columns of tokens"),
        ("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n", "data:1: no word of the file has a head"),
        ("1\ta\t_\t_\t_\t_\t9\t_\t_\t_\n", "data:1: the head must be in [0, 1], or an underscore"),
        ("a\tN\t2\nb\tN\t1\n", "data:1 is no tree: word 1 is above itself: heads make a cycle"),
    ],
)
def test_errors_name_the_line(files, text, said):
    files.write("data", text)
    assert said in files("train", "data", "--model", "m", "--structure", "dependency", code=1).stderr
