"""Errors of spans against cases made by hand, and against the counts of precision and recall."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.metrics import SpanError, span_errors, span_scores, spans

BIO = ["O", "B-x", "I-x", "B-y", "I-y"]


def kinds(true: str, pred: str) -> list[tuple]:
    return [error[0:1] + error[2:] for error in span_errors([true.split()], [pred.split()])]


@pytest.mark.parametrize(
    ("true", "pred", "expected"),
    [
        ("B-x I-x O", "B-x I-x O", []),
        ("B-x I-x O", "O O O", [("missed", ("x", 0, 2), None)]),
        ("O O O", "O B-y O", [("spurious", None, ("y", 1, 2))]),
        ("B-x I-x O", "B-x O O", [("boundary", ("x", 0, 2), ("x", 0, 1))]),
        ("O B-x I-x", "B-x I-x O", [("boundary", ("x", 1, 3), ("x", 0, 2))]),
        ("B-x I-x O", "B-y I-y O", [("type", ("x", 0, 2), ("y", 0, 2))]),
        ("B-x I-x O", "O B-y I-y", [("type", ("x", 0, 2), ("y", 1, 3))]),
        # Two halves of a true span: one is its partner, the longer one, and the other is spurious.
        ("B-x I-x I-x", "B-x B-x I-x", [("boundary", ("x", 0, 3), ("x", 1, 3)), ("spurious", None, ("x", 0, 1))]),
        # Two true spans in one: one is its partner, and the other is missed.
        ("B-x B-x I-x", "B-x I-x I-x", [("missed", ("x", 0, 1), None), ("boundary", ("x", 1, 3), ("x", 0, 3))]),
        # The same bounds come before the same type.
        ("B-x B-y", "B-y B-y", [("type", ("x", 0, 1), ("y", 0, 1))]),
        ("B-x I-x B-y", "B-y I-y I-y", [("missed", ("x", 0, 2), None), ("boundary", ("y", 2, 3), ("y", 0, 3))]),
        # Beside each other is no overlap.
        ("B-x O", "O B-x", [("missed", ("x", 0, 1), None), ("spurious", None, ("x", 1, 2))]),
    ],
)
def test_by_hand(true, pred, expected):
    assert sorted(kinds(true, pred), key=repr) == sorted(expected, key=repr)  # the order is tested below


labels = st.lists(st.tuples(st.sampled_from(BIO), st.sampled_from(BIO)), max_size=12)


@given(st.lists(labels, max_size=4))
def test_precision_and_recall_lose_what_the_errors_say(pairs):
    y_true, y_pred = ([[pair[at] for pair in one] for one in pairs] for at in (0, 1))
    errors = span_errors(y_true, y_pred)
    count = Counter(error.kind for error in errors)
    overall = span_scores(y_true, y_pred).overall
    both = count["boundary"] + count["type"]
    assert overall.found - overall.correct == count["spurious"] + both
    assert overall.support - overall.correct == count["missed"] + both
    for error in errors:
        true, pred = spans(y_true[error.sequence]), spans(y_pred[error.sequence])
        assert error.true is None or (error.true in true and error.true not in pred)
        assert error.predicted is None or (error.predicted in pred and error.predicted not in true)
        if error.true is not None and error.predicted is not None:
            (kind, a, b), (other, c, d) = error.true, error.predicted
            assert a < d
            assert c < b
            assert error.kind == ("boundary" if kind == other else "type")
    assert [error.sequence for error in errors] == sorted(error.sequence for error in errors)


def test_what_is_wrong_is_named():
    with pytest.raises(ValueError, match=r"y_pred\[1\]\[0\] must be 'O' or begin with"):
        span_errors([["O"], ["O"]], [["O"], ["NN"]])
    assert SpanError("missed", 0, ("x", 0, 1), None) == ("missed", 0, ("x", 0, 1), None)
