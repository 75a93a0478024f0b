"""Scores of labels and of whole sequences: scikit-learn's on the flattened lists."""

import itertools

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from dualfield import metrics

Y_TRUE = [["B", "I", "O"], [], ["O", "B"], ["O"]]
Y_PRED = [["B", "O", "O"], [], ["O", "I"], ["O"]]


def flat(y):
    return list(itertools.chain.from_iterable(y))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("accuracy_score", {}),
        ("accuracy_score", {"sample_weight": [1, 2, 3, 4, 5, 6]}),
        ("precision_score", {"average": "weighted"}),
        ("precision_score", {"average": "macro", "labels": ["B", "I"]}),
        ("recall_score", {"average": "micro", "labels": ["B", "I"]}),
        ("f1_score", {"average": "weighted", "labels": ["B", "I"]}),
        ("f1_score", {"average": "macro"}),
        ("classification_report", {"digits": 3, "zero_division": 0}),
    ],
)
@pytest.mark.parametrize("form", ["lists", "tuples", "arrays"])
def test_flattened_scores_are_those_of_scikit_learn(name, arguments, form):
    make = {"lists": list, "tuples": tuple, "arrays": np.array}[form]
    ours = getattr(metrics, f"flat_{name}")(list(map(make, Y_TRUE)), list(map(make, Y_PRED)), **arguments)
    assert ours == getattr(sklearn.metrics, name)(flat(Y_TRUE), flat(Y_PRED), **arguments)


def test_arrays_of_results_are_passed_through():
    ours = metrics.flat_f1_score(Y_TRUE, Y_PRED, average=None)
    np.testing.assert_array_equal(ours, sklearn.metrics.f1_score(flat(Y_TRUE), flat(Y_PRED), average=None))
    report = metrics.flat_classification_report(Y_TRUE, Y_PRED, output_dict=True)
    assert report["B"]["support"] == 2


def test_labels_may_be_numbers():
    assert metrics.flat_accuracy_score([[1, 2], [3]], [[1, 2], [4]]) == 2 / 3
    assert metrics.flat_accuracy_score([np.array([1, 2])], [[1, 1]]) == 0.5


LABEL = st.sampled_from(["O", "B", "I", "X"])


@given(st.lists(st.lists(st.tuples(LABEL, LABEL), max_size=5), max_size=5), st.sets(LABEL, max_size=3))
def test_token_f1_is_the_micro_average_over_the_other_labels(pairs, ignore):
    y_true, y_pred = ([[token[side] for token in row] for row in pairs] for side in (0, 1))
    labels = sorted({*flat(y_true), *flat(y_pred)} - ignore)
    expected = 0.0
    if labels:
        expected = sklearn.metrics.f1_score(
            flat(y_true), flat(y_pred), labels=labels, average="micro", zero_division=0.0
        )
    assert metrics.token_f1_score(y_true, y_pred, ignore=ignore) == pytest.approx(expected, rel=1e-14)


def test_token_f1_leaves_out_what_marks_nothing():
    assert metrics.token_f1_score([["B", "O"]], [["B", "O"]]) == 1.0
    assert metrics.token_f1_score([["O"]], [["O"]]) == 0.0
    assert metrics.token_f1_score([["OUT", "B"]], [["OUT", "I"]], ignore="OUT") == 0.0


def test_sequence_accuracy():
    assert metrics.sequence_accuracy_score(Y_TRUE, Y_PRED) == 0.5
    assert metrics.sequence_accuracy_score([np.array(["B"])], [["B"]]) == 1.0
    with pytest.raises(ValueError, match="y_true must have at least one sequence"):
        metrics.sequence_accuracy_score([], [])


ALL = [
    metrics.flat_accuracy_score,
    metrics.flat_f1_score,
    metrics.flat_precision_score,
    metrics.flat_recall_score,
    metrics.flat_classification_report,
    metrics.token_f1_score,
    metrics.sequence_accuracy_score,
    metrics.span_scores,
    metrics.span_f1_score,
]


@pytest.mark.parametrize("score", ALL)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "error", "message"),
    [
        ([["O"], ["O"]], [["O"]], ValueError, r"^y_true has 2 sequences; y_pred has 1\.$"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], ValueError, r"^y_true\[1\] has 2 labels; y_pred\[1\] has 1\.$"),
        (["O", "O"], ["O", "O"], TypeError, r"^y_true\[0\] must be a list, tuple or array of labels. Got str instead"),
        ([["O"]], "O", TypeError, r"^y_pred must be a list of label sequences. Got str instead"),
        ([["O"]], None, TypeError, r"^y_pred must be a list of label sequences. Got NoneType instead"),
    ],
    ids=itertools.count(),
)
def test_sequences_that_do_not_fit_are_named(score, y_true, y_pred, error, message):
    with pytest.raises(error, match=message):
        score(y_true, y_pred)
