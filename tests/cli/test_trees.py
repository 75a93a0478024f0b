"""Trees in brackets from the shell: train, tag, evaluate, inspect, tune."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import dualfield
from dualfield.cli.reading.data_files import guess_format
from dualfield.data import ParseTree, clean_tree
from dualfield.io import read_trees
from dualfield.metrics import parse_scores
from dualfield.structures import Spans

from .conftest import WORDS


def treebank(n: int, seed: int) -> str:
    """Return trees as treebanks have them: on several lines, with an outer bracket, function tags and traces."""
    chance = random.Random(seed)

    def leaf(tag: str) -> str:
        return f"({tag} {chance.choice(WORDS[tag])})"

    def noun_phrase(depth: int, label: str = "NP") -> str:
        core = f"({label} {leaf('DT')} {leaf('JJ') + ' ' if chance.random() < 0.4 else ''}{leaf('NN')})"
        if depth and chance.random() < 0.4:
            return f"({label} {core.replace(label, 'NP', 1)} (PP {leaf('IN')} {noun_phrase(depth - 1)}))"
        return core

    trees = []
    for _ in range(n):
        subject = noun_phrase(1, "NP-SBJ") if chance.random() < 0.8 else "(NP-SBJ (-NONE- *))"
        trees.append(f"( (S {subject}\n     (VP {leaf('VB')} {noun_phrase(1)}) (. .)) )")
    return "\n".join(trees) + "\n"


@pytest.fixture
def files(shell):
    shell.write("train.mrg", treebank(30, 0))
    shell.write("dev.mrg", treebank(10, 1))
    return shell


def clean(path):
    return [clean_tree(tree) for tree in read_trees(path)]


def test_model_is_that_of_python(files):
    said = files("train", "train.mrg", "--model", "m", "--structure", "spans", "--dev", "dev.mrg")
    trees = clean("train.mrg")
    assert "trees in brackets: 30 trees" in said.output
    assert "dev F1" in said.output
    expected = dualfield.CRF("spans", random_state=0).fit([tree.tokens() for tree in trees], trees)
    found = dualfield.load("m")
    assert np.array_equal(found.parameters_, expected.parameters_)
    assert found.structure_ == expected.structure_


def test_tag_and_evaluate(files):
    files("train", "train.mrg", "--model", "m", "--quiet", "--solver", "perceptron")
    model, trees = dualfield.load("m"), clean("dev.mrg")
    predicted = model.predict([tree.tokens() for tree in trees])
    tagged = files("tag", "--model", "m", "dev.mrg", "--output", "tagged.mrg")
    assert tagged.stdout == ""
    assert read_trees("tagged.mrg") == predicted
    scores = parse_scores(trees, predicted)
    assert scores.f1 > 0.8
    assert str(scores) in files("evaluate", "--model", "m", "dev.mrg").stdout
    assert "Bracketing FMeasure" in files("evaluate", "dev.mrg", "--predicted", "tagged.mrg").stdout
    record = json.loads(files("evaluate", "--model", "m", "dev.mrg", "--json").stdout)
    assert record["brackets"]["f1"] == scores.f1
    assert record["up_to_40_words"]["sentences"] == 10


def test_columns_and_text_are_parsed(files):
    files("train", "train.mrg", "--model", "m", "--quiet")
    tree = clean("dev.mrg")[0]
    text = " ".join(f"{word}/{tag}" for word, tag in tree.tokens()) + "\n\n"
    columns = "\n".join(f"{word} {tag}" for word, tag in tree.tokens()) + "\n\n"
    (best,) = dualfield.load("m").predict([tree.tokens()])
    assert files("tag", "--model", "m", "--text", stdin=text).stdout == f"{best}\n"
    assert files("tag", "--model", "m", stdin=columns * 2).stdout == f"{best}\n{best}\n"
    ranked = files("tag", "--model", "m", "--k-best", "2", stdin=columns).stdout.splitlines()
    assert ranked[0].startswith("1 0.")
    assert ranked[0].endswith(str(best))
    assert ranked[2] == ""
    with_chances = json.loads(files("tag", "--model", "m", "--marginals", stdin=columns).stdout)
    assert with_chances["tree"] == str(best)
    assert [tuple(one[:3]) for one in with_chances["brackets"]] == [
        (start, stop, label) for label, start, stop in best.constituents()
    ]
    assert all(0 < one[3] <= 1 for one in with_chances["brackets"])


def test_words_alone(files):
    files("train", "train.mrg", "--model", "m", "--columns", "0", "--quiet")
    found = files("tag", "--model", "m", "--text", stdin="the dog sees a cat .\n").stdout
    assert ParseTree.from_brackets(found).tokens()[:2] == [("the", "XX"), ("dog", "XX")]
    assert "FMeasure" in files("evaluate", "--model", "m", "dev.mrg").stdout
    assert "without tags" in files("train", "train.mrg", "--model", "n", "--columns", "0").output


def test_inspect_tune_and_warm_start(files):
    files("train", "train.mrg", "--model", "m", "--quiet", "--span-feature", "%x[first,1]/%x[last,1]")
    assert dualfield.load("m").structure_.span_features == ["%x[first,1]/%x[last,1]"]
    shown = files("inspect", "m", "--label", "NP").stdout
    assert "for trees in brackets" in shown
    assert "S0:DT/NN" in shown
    assert "NP" in json.loads(files("inspect", "m", "--json").stdout)["labels"]
    tune = ("tune", "train.mrg", "--cv", "2", "--C", "0.1,1", "--structure", "spans")
    table = files(*tune, "--model", "best").stdout
    assert "mean F1" in table
    assert files(*tune, "--by", "f1").stdout == table
    assert "trees in brackets are scored by F1 of labelled" in files(*tune, "--by", "log-loss", code=2).stderr
    assert isinstance(dualfield.load("best").structure_, Spans)
    files(
        "train",
        "train.mrg",
        "--model",
        "again",
        "--warm-start",
        "best",
        "--quiet",
        "--dev",
        "dev.mrg",
        "--report",
        "r.html",
    )
    assert "Training of again" in files.path("r.html").read_text(encoding="utf-8")
    files("train", "train.mrg", "--model", "hinge", "--loss", "hinge", "--tol", "0.1", "--quiet")
    assert "FMeasure" in files("evaluate", "--model", "hinge", "dev.mrg").stdout


def test_trees_are_recognised(files):
    for text, kind in (
        (treebank(2, 0), "trees"),
        ("(S (NN dog))\n", "trees"),
        ("(())\n(S (NN dog))\n", "trees"),
        ("( ( O\nS NN O\n", "conll"),
        ("(a) x B-NP\n", "conll"),
    ):
        assert guess_format(str(files.write("some.txt", text)), "some.txt") == kind


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--structure", "tree"], "--structure tree is for graphs and several labels; the data are trees"),
        (["--structure", "semi-markov"], "--structure semi-markov is for sequences; the data are trees"),
        (["--order", "2"], "--order is for sequences; the data are trees"),
        (["--template", "default"], "--template is for sequences; the data are trees"),
        (["--label", "1"], "--label is for files of columns; the data are trees"),
        (["--max-length", "3"], "--max-length is for --structure semi-markov"),
        (["--span-feature", "%y"], "must be texts with macros"),
    ],
)
def test_refused(files, options, said):
    assert said in files("train", "train.mrg", "--model", "m", *options, code=2).stderr


def test_what_is_wrong_with_data_is_told(files):
    files.write("columns.txt", "a DT B-NP\n\n")
    refused = files("train", "columns.txt", "--model", "m", "--structure", "spans", code=2)
    assert "--structure spans is for trees; the data are conll" in refused.stderr
    assert (
        "--span-feature is for --structure spans"
        in files("train", "columns.txt", "--model", "m", "--span-feature", "%n", code=2).stderr
    )
    files.write("bad.mrg", treebank(2, 0) + "(S (NN a)\n")
    assert (
        "bad.mrg:5: the bracket '(S' that opens in line 5 is not closed"
        in files("train", "bad.mrg", "--model", "m", code=1).stderr
    )
    assert (
        "--columns must be 0, words alone, or 0,1"
        in files("train", "train.mrg", "--model", "m", "--columns", "1", code=1).stderr
    )
    files("train", "train.mrg", "--model", "m", "--quiet", "--solver", "perceptron")
    assert (
        "<stdin>:2: 'dog' has no tag"
        in files("tag", "--model", "m", "--text", stdin="the/DT dog/NN\nthe/DT dog\n", code=1).stderr
    )
    assert (
        "<stdin>:1: has 1 column; expected a word and its tag"
        in files("tag", "--model", "m", stdin="the\ndog\n", code=1).stderr
    )
    files.write("fewer.mrg", treebank(9, 1))
    assert "has 9 trees; dev.mrg has 10" in files("evaluate", "dev.mrg", "--predicted", "fewer.mrg", code=1).stderr
    assert (
        "--predicted is in place of --model"
        in files("evaluate", "dev.mrg", "--predicted", "fewer.mrg", "--model", "m", code=2).stderr
    )


def test_a_label_that_training_never_had_is_told(files):
    files.write("dev2.mrg", "(S (FRAG (NN dog)))\n")
    said = files("train", "train.mrg", "--model", "m", "--dev", "dev2.mrg").stderr
    assert "dev2.mrg:1: the label 'S+FRAG' has no training example" in said


def add_another_attachment(files):
    """Let phrases belong to verbs, too, so that sentences have more than one tree."""
    phrase = "(PP (IN near) (NP (DT a) (NN dog)))"
    tree = f"(S (NP (DT the) (NN dog)) (VP (VB sees) (NP (DT a) (NN cat)) {phrase}) (. .))\n"
    files.write("train.mrg", treebank(30, 0) + 3 * tree)


def test_a_grammar_is_trained_and_asked(files):
    add_another_attachment(files)
    said = files("train", "train.mrg", "--model", "m", "--structure", "grammar", "--dev", "dev.mrg")
    trees, dev = clean("train.mrg"), clean("dev.mrg")
    assert "dev F1" in said.output
    expected = dualfield.CRF("grammar", random_state=0).fit([tree.tokens() for tree in trees], trees)
    found = dualfield.load("m")
    assert np.array_equal(found.parameters_, expected.parameters_)
    assert found.structure_ == expected.structure_
    predicted = expected.predict([tree.tokens() for tree in dev])
    files("tag", "--model", "m", "dev.mrg", "--output", "tagged.mrg")
    assert read_trees("tagged.mrg") == predicted
    assert str(parse_scores(dev, predicted)) in files("evaluate", "--model", "m", "dev.mrg").stdout
    shown = files("inspect", "m").stdout
    assert "for trees in brackets" in shown
    assert "Rules, likely" in shown
    assert "  NP -> NP PP" in shown
    files("tune", "train.mrg", "--cv", "2", "--C", "0.1,1", "--model", "best", "--structure", "grammar")
    assert dualfield.load("best").structure_.name == "grammar"
    files("train", "train.mrg", "--model", "again", "--structure", "grammar", "--warm-start", "best", "--quiet")
    assert dualfield.load("again").structure_ == expected.structure_


@pytest.mark.parametrize("options", [["--columns", "0"], ["--columns", "0", "--span-feature", "%x[first]/%n"]])
def test_a_grammar_of_words_predicts_tags(files, options):
    files("train", "train.mrg", "--model", "m", "--structure", "grammar", "--quiet", *options)
    found = files("tag", "--model", "m", "--text", stdin="the dog sees a cat .\n").stdout
    assert ParseTree.from_brackets(found).tokens()[:3] == [("the", "DT"), ("dog", "NN"), ("sees", "VB")]
    assert "FMeasure" in files("evaluate", "--model", "m", "dev.mrg").stdout


def test_sentences_that_a_grammar_cannot_parse_are_told(files):
    bad = "(S (NP (DT a) (SYM ?)) (VP (VB sees)))\n"
    files.write("more.mrg", treebank(2, 1) + bad)
    said = files("train", "train.mrg", "--model", "m", "--structure", "grammar", "--dev", "more.mrg")
    once = "more.mrg: 1 of 3 examples has no allowed labelling. Example 2: no rule of the grammar has 'SYM'"
    assert said.stderr.count(once) == 1
    strict = files(
        "train", "train.mrg", "--model", "n", "--structure", "grammar", "--dev", "more.mrg", "--strict", code=1
    )
    assert once in strict.stderr
    tagged = files("tag", "--model", "m", "more.mrg")
    trees = tagged.stdout.splitlines()
    assert trees[2] == "(())"
    assert all(tree.startswith("(S ") for tree in trees[:2])
    why = "more.mrg:5: the sentence has no tree: no rule of the grammar has 'SYM', the terminal of word 1."
    assert why in tagged.stderr
    scored = files("evaluate", "--model", "m", "more.mrg")
    assert why in scored.stderr
    assert "Sentences without a parse =      1" in scored.stdout
    files.write("predicted.mrg", tagged.stdout)
    again = files("evaluate", "more.mrg", "--predicted", "predicted.mrg").stdout
    assert "Sentences without a parse =      1" in again
    columns = "a DT\n? SYM\n\nthe DT\ndog NN\n\n"
    ranked = files("tag", "--model", "m", "--k-best", "2", stdin="a DT\n? SYM\nsees VB\n\n" + columns)
    assert ranked.stdout.splitlines()[0] == "1 0.000000 (())"
    assert "<stdin>:1: the sentence has no tree" in ranked.stderr
    assert "<stdin>:8: the sentence has no tree: the grammar has no parse of its 2 words" in ranked.stderr
    chances = files(
        "tag", "--model", "m", "--marginals", stdin="a DT\n? SYM\n\n" + "a DT\ndog NN\nsees VB\na DT\ncat NN\n. .\n\n"
    )
    first, second = map(json.loads, chances.stdout.splitlines())
    assert first == {"tree": "(())", "brackets": []}
    assert second["brackets"][0][2:] == ["S", 1.0]
    files("train", "train.mrg", "--model", "h", "--structure", "grammar", "--loss", "hinge", "--tol", "0.1", "--quiet")
    assert why in files("evaluate", "--model", "h", "more.mrg").stderr


def test_a_counted_grammar_of_python_is_asked(files):
    trees = clean("train.mrg")
    dualfield.DiscriminativePCFG(eta=0.0).fit([tree.tokens() for tree in trees], trees).save("m")
    assert "FMeasure" in files("evaluate", "--model", "m", "dev.mrg").stdout
    assert files("tag", "--model", "m", stdin="a DT\ndog NN\nsees VB\na DT\ncat NN\n. .\n\n").stdout.startswith(
        "(S (NP"
    )
    assert "NP -> DT" in files("inspect", "m", "--top", "50").stdout
