"""The pieces of ``python -m reproductions parsing``."""

import gzip

import numpy as np
import pytest

from dualfield.metrics import parse_scores
from reproductions import parsing_treebank
from reproductions.records import Settings
from tests.cli.test_trees import treebank


def write_trees(place):
    with gzip.open(place / "treebank_trees.txt.gz", "wt", encoding="utf-8") as file:
        file.write(treebank(sum(parsing_treebank.QUICK), 3))


def test_counts_give_the_score_of_the_library(tmp_path):
    write_trees(tmp_path)
    trees = parsing_treebank.read(Settings(folder=tmp_path, quick=True))
    found = [None if at % 3 else tree for at, tree in enumerate(trees)]
    scores = parse_scores(trees, found).overall
    assert tuple(np.array(parsing_treebank.counted(trees, found)).sum(axis=0)) == (
        scores.correct,
        scores.found,
        scores.support,
    )
    assert parsing_treebank.sentences(trees, parsing_treebank.WORDS)[0] == trees[0].words()


@pytest.mark.parametrize("parser", parsing_treebank.PARSERS, ids=lambda parser: parser.name)
def test_parsers_learn(tmp_path, parser):
    write_trees(tmp_path)
    settings = Settings(folder=tmp_path, quick=True)
    for given in (parsing_treebank.TAGS, parsing_treebank.WORDS):
        row = parsing_treebank.compute(settings, parser, given, 15)
        right, predicted, true = np.array(row.counts).sum(axis=0)
        assert 2 * right / (predicted + true) > 0.7
        assert row.n_unparsed == 0


def test_findings_name_the_best(tmp_path):
    write_trees(tmp_path)
    settings = Settings(folder=tmp_path, quick=True)
    wanted = (parsing_treebank.PERCEPTRON, parsing_treebank.COUNTED)
    parsers = [parser for parser in parsing_treebank.PARSERS if parser.name in wanted]
    rows = [parsing_treebank.compute(settings, parser, parsing_treebank.TAGS, 15) for parser in parsers]
    found = parsing_treebank.present(15, rows)
    assert "has the highest F1" in found.summary[0]
    assert len(found.tables[0].rows) == 2
