"""Spans as conlleval finds them: against its published rules, written once more as tables of neighbouring prefixes."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.metrics import SpanScore, span_f1_score, span_scores, spans

# The reference. Between two tokens a chunk ends, or starts, by their prefixes (left, right) or because types differ.

ENDS = {"BB", "BS", "BO", "IB", "IS", "IO", "EB", "EI", "EE", "ES", "EO", "SB", "SI", "SE", "SS", "SO"}
STARTS = {"OB", "BB", "IB", "EB", "SB", "OS", "BS", "IS", "ES", "SS", "OI", "EI", "SI", "OE", "EE", "SE"}


def split(label):
    return (label[0], label[2:])


def ends(left, right):
    return left[0] + right[0] in ENDS or (left[0] != "O" and left[1] != right[1])


def starts(left, right):
    return left[0] + right[0] in STARTS or (right[0] != "O" and left[1] != right[1])


def reference_spans(labels):
    """Walk from token to token, with an O on both sides."""
    tokens = [("O", ""), *map(split, labels), ("O", "")]
    found, start = [], None
    for at in range(1, len(tokens)):
        left, right = tokens[at - 1], tokens[at]
        if start is not None and ends(left, right):
            found.append((left[1], start, at - 1))
            start = None
        if starts(left, right):
            start = at - 1
    return found


def reference_counts(y_true, y_pred):
    """Count as conlleval does: in one walk over both columns, without a list of spans."""
    correct, found, support = Counter(), Counter(), Counter()
    for true, pred in zip(y_true, y_pred, strict=True):
        tokens = [(("O", ""), ("O", "")), *zip(map(split, true), map(split, pred), strict=True), (("O", ""), ("O", ""))]
        both = False  # inside a chunk that has been right so far
        for (true_left, pred_left), (true_right, pred_right) in itertools.pairwise(tokens):
            true_ends, pred_ends = ends(true_left, true_right), ends(pred_left, pred_right)
            true_starts, pred_starts = starts(true_left, true_right), starts(pred_left, pred_right)
            if both and (true_ends or pred_ends):
                correct[true_left[1]] += true_ends and pred_ends
                both = False
            if true_starts and pred_starts and true_right[1] == pred_right[1]:
                both = True
            support[true_right[1]] += true_starts
            found[pred_right[1]] += pred_starts
    return correct, found, support


LABELS = ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("x", "y-z"))]
IOB = [label for label in LABELS if label[0] in "OBI"]


def sequences(labels):
    return st.lists(st.sampled_from(labels), max_size=12)


def pairs(labels):
    """Lists of true and predicted sequences; predictions are often right."""
    label = st.sampled_from(labels)
    token = label.flatmap(lambda true: st.tuples(st.just(true), st.just(true) | label))
    both = st.lists(st.lists(token, max_size=8), max_size=4)
    return both.map(lambda found: tuple([[token[side] for token in row] for row in found] for side in (0, 1)))


@given(sequences(LABELS) | sequences(IOB))
def test_spans_are_those_of_the_reference(labels):
    assert spans(labels) == reference_spans(labels)


@given(pairs(LABELS) | pairs(IOB))
def test_scores_are_those_of_the_reference(data):
    y_true, y_pred = data
    correct, found, support = reference_counts(y_true, y_pred)
    scores = span_scores(y_true, y_pred)
    for kind in {*correct, *found, *support} - {""}:
        score = scores.types.get(kind, SpanScore(0, 0, 0))
        assert (score.correct, score.found, score.support) == (correct[kind], found[kind], support[kind])
    total = scores.overall
    assert (total.correct, total.found, total.support) == (correct.total(), found.total(), support.total())
    assert list(scores.types) == sorted(scores.types)
    tokens = [one == other for a, b in zip(y_true, y_pred, strict=True) for one, other in zip(a, b, strict=True)]
    assert scores.n_tokens == len(tokens)
    assert scores.accuracy == (sum(tokens) / len(tokens) if tokens else 0.0)
    assert span_f1_score(y_true, y_pred) == total.f1


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_scores_follow_from_counts(correct, wrong, missed):
    score = SpanScore(correct, correct + wrong, correct + missed)
    precision = Fraction(correct, correct + wrong) if correct + wrong else 0
    recall = Fraction(correct, correct + missed) if correct + missed else 0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
    assert (score.precision, score.recall) == (float(precision), float(recall))
    assert score.f1 == pytest.approx(float(f1), rel=1e-15)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ([], []),
        (["O", "O"], []),
        (["B-x", "I-x", "O", "B-x"], [("x", 0, 2), ("x", 3, 4)]),  # IOB2
        (["I-x", "I-x", "B-x", "I-y"], [("x", 0, 2), ("x", 2, 3), ("y", 3, 4)]),  # IOB1
        (["B-x", "I-x", "E-x", "S-x", "S-y"], [("x", 0, 3), ("x", 3, 4), ("y", 4, 5)]),  # IOBES
        (["O", "I-x"], [("x", 1, 2)]),
        (["B-x", "I-y"], [("x", 0, 1), ("y", 1, 2)]),
        (["S-x", "I-x"], [("x", 0, 1), ("x", 1, 2)]),
        (["E-x", "E-x"], [("x", 0, 1), ("x", 1, 2)]),
        (["B-x", "S-x"], [("x", 0, 1), ("x", 1, 2)]),
        (["B-x-y", "I-x-y"], [("x-y", 0, 2)]),
        (["B", "I", "O", "I"], [("", 0, 2), ("", 3, 4)]),
    ],
)
def test_schemes_and_broken_rules(labels, found):
    assert spans(labels) == found
    assert spans(tuple(labels)) == found
    assert spans(np.array(labels, dtype=str)) == found


def test_report_is_printed_as_conlleval_prints_it():
    y_true = [["B-NP", "I-NP", "B-VP", "O"], ["B-NP", "B-PP"]]
    y_pred = [["B-NP", "O", "B-VP", "O"], ["B-NP", "B-PP"]]
    assert str(span_scores(y_true, y_pred)) == (
        "processed 6 tokens with 4 phrases; found: 4 phrases; correct: 3.\n"
        "accuracy:  83.33%; precision:  75.00%; recall:  75.00%; FB1:  75.00\n"
        "               NP: precision:  50.00%; recall:  50.00%; FB1:  50.00  2\n"
        "               PP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1\n"
        "               VP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1"
    )


def test_nothing_to_score():
    assert span_f1_score([], []) == 0.0
    assert span_f1_score([["O"]], [["O"]]) == 0.0
    assert span_scores([[]], [[]]).accuracy == 0.0


@pytest.mark.parametrize("label", ["NN", "X-y", "b-x", "", "-x", "O-x", "BI-x"])
def test_other_labels_are_refused(label):
    with pytest.raises(ValueError, match=r"labels\[1\] must be 'O' or begin with 'B-', 'I-', 'E-' or 'S-'."):
        spans(["O", label])
    with pytest.raises(ValueError, match=r"y_pred\[1\]\[0\] must be 'O' or begin"):
        span_scores([["O"], ["O"]], [["O"], [label]])


def test_what_is_no_label_sequence_is_refused():
    with pytest.raises(TypeError, match=r"labels\[0\] must be a str. Got int instead."):
        spans([1])
    with pytest.raises(TypeError, match=r"'labels' must be a sequence of str. Got str instead."):
        spans("B-x")
    with pytest.raises(ValueError, match=r"y_true\[1\] has 1 labels; y_pred\[1\] has 2."):
        span_scores([["O"], ["O"]], [["O"], ["O", "O"]])
