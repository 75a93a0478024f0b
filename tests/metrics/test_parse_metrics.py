"""evalb's scores on trees that were counted by hand."""

from __future__ import annotations

import pytest

from dualfield.data import ParseTree
from dualfield.metrics import SpanScore, parse_f1_score, parse_scores

# Words: 0 the, 1 dog, 2 saw, 3 a, 4 cat, 5 in, 6 Rome, and a full stop, which is not counted.
TRUE = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (NP (DT a) (NN cat)) (PP (IN in) (NP (NNP Rome))))) (. .)))"
# Brackets that count: S 0-7, NP 0-2, VP 2-7, NP 3-7, NP 3-5, PP 5-7, NP 6-7: seven.
HIGH = "(TOP (S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat)) (PP (IN in) (NP (NN Rome)))) (. .)))"
# S 0-7, NP 0-2, VP 2-7, NP 3-5, PP 5-7, NP 6-7: six, all right; one tag is wrong.
CROSS = "(TOP (S (NP (DT the) (NN dog) (VBD saw)) (VP (NP (DT a) (NN cat)) (PP (IN in) (NP (NNP Rome) (. .))))))"
# S 0-7, NP 0-3 (crosses VP 2-7), VP 3-7 (wrong label: NP 3-7 is true), NP 3-5, PP 5-7, NP 6-7: six, four right.


def test_counts_by_hand():
    scores = parse_scores([TRUE, TRUE, TRUE], [TRUE, HIGH, CROSS])
    assert scores.overall == SpanScore(correct=7 + 6 + 4, found=7 + 6 + 6, support=21)
    assert scores.overall.precision == pytest.approx(17 / 19)
    assert scores.overall.recall == pytest.approx(17 / 21)
    assert scores.f1 == pytest.approx(34 / 40)
    assert scores.complete_match == pytest.approx(1 / 3)
    assert (scores.n_crossing, scores.average_crossing) == (1, pytest.approx(1 / 3))
    assert scores.crossing_at_most == (2, 3, 3)
    assert scores.tagging_accuracy == pytest.approx(20 / 21)
    assert scores.labels["NP"] == SpanScore(correct=4 + 3 + 2, found=4 + 3 + 3, support=12)
    assert scores.labels["VP"] == SpanScore(correct=2, found=3, support=3)
    assert parse_f1_score([TRUE], [HIGH]) == pytest.approx(12 / 13)


def test_punctuation_is_removed_wherever_it_is_attached():
    true = "(S (NP (NN a) (, ,)) (VP (VB b) (`` ``)) (. .))"
    pred = "(S (NP (NN a)) (PRN (, ,)) (VP (VB b)) (`` ``) (. .))"
    scores = parse_scores([true], [pred])
    assert scores.overall == SpanScore(3, 3, 3)  # PRN has no word that counts
    assert scores.complete_match == 1.0
    assert scores.n_words == 2


def test_other_punctuation_counts():
    true, pred = "(S (NP ($ $) (CD 5)) (-LRB- x))", "(S (NP ($ $)) (CD 5) (-LRB- x))"
    assert parse_scores([true], [pred]).overall == SpanScore(1, 2, 2)
    assert parse_scores([true], [pred]).n_words == 3


def test_the_outermost_bracket_empty_elements_and_function_tags_do_not_count():
    true = "((S (NP-SBJ-1 (-NONE- *)) (VP (VB go) (PRT (RP up)))))"
    pred = "(ROOT (S=2 (NP-SBJ-1 (-NONE- *)) (VP-X (VB go) (ADVP (RB up)))))"
    scores = parse_scores([true], [pred])
    assert scores.overall == SpanScore(3, 3, 3)
    assert scores.tagging_accuracy == 0.5


def test_empty_elements_need_not_be_predicted():
    true = "(S (NP (-NONE- *)) (VP (VB go) (NP (NN home) (-NONE- *T*))))"
    scores = parse_scores([true], ["(S (VP (VB go)) (NP (NN home)))"])
    assert scores.overall == SpanScore(2, 3, 3)  # S and NP 1-2; VP 0-2 is missed
    assert scores.n_words == 2


def test_unary_chains_count_as_often_as_they_have_brackets():
    once, twice = "(S (NP (NN a)))", "(S (NP (NP (NN a))))"
    assert parse_scores([twice], [once]).overall == SpanScore(2, 2, 3)
    assert parse_scores([once], [twice]).overall == SpanScore(2, 3, 2)
    assert parse_scores([once], [twice]).complete_match == 0.0


def test_crossing_brackets_are_those_of_the_prediction():
    true = "(S (A (X a) (X b)) (B (X c) (X d)))"
    pred = "(S (X a) (C (D (X b) (X c)) (X d)))"  # D 1-3 crosses A and B and counts once; C 1-4 crosses A
    assert parse_scores([true], [pred]).n_crossing == 2
    assert parse_scores([pred], [true]).n_crossing == 2  # A crosses C and D; B crosses D


def test_sentences_without_a_parse_count_as_empty():
    scores = parse_scores([TRUE, TRUE], [None, TRUE])
    assert scores.overall == SpanScore(7, 7, 14)
    assert (scores.n_unparsed, scores.n_complete, scores.n_words) == (1, 1, 7)
    assert "Sentences without a parse =      1" in str(scores)


def test_sentences_up_to_the_cut_off():
    # With its full stop, which counts here, TRUE has 8 words.
    scores = parse_scores([TRUE, "(S (NN a))"], [HIGH, "(S (NN a))"], cutoff=7)
    assert scores.short.n_sentences == 1
    assert scores.short.overall == SpanScore(1, 1, 1)
    assert parse_scores([TRUE], [HIGH], cutoff=8).short.n_sentences == 1
    assert "-- len<=7 --" in str(scores)


def test_summary():
    assert str(parse_scores([TRUE, TRUE, TRUE], [TRUE, HIGH, CROSS])).splitlines()[:11] == [
        "-- All --",
        "Number of sentence        =      3",
        "Sentences without a parse =      0",
        "Bracketing Recall         =  80.95",
        "Bracketing Precision      =  89.47",
        "Bracketing FMeasure       =  85.00",
        "Complete match            =  33.33",
        "Average crossing          =   0.33",
        "No crossing               =  66.67",
        "2 or less crossing        = 100.00",
        "Tagging accuracy          =  95.24",
    ]


def test_other_words_are_refused():
    with pytest.raises(ValueError, match=r"y_pred\[1\] must have the words of y_true\[1\]. It has 'b' instead of 'a'"):
        parse_scores(["(S (N a))"] * 2, ["(S (N a))", "(S (N b))"])
    with pytest.raises(ValueError, match="It has 2 words instead of 1"):
        parse_scores(["(S (N a))"], ["(S (N a) (N b))"])
    with pytest.raises(ValueError, match="as many trees"):
        parse_scores(["(S (N a))"], [])


def test_all_forms_of_trees_and_tables():
    scores = parse_scores([ParseTree.from_brackets(TRUE)], [TRUE])
    assert scores.f1 == 1.0
    assert "NP" in scores._repr_html_()
