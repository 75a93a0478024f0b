"""What displays hold, against counts by hand and the models they are made from."""

import itertools
from collections import Counter

import numpy as np
import pytest

from dualfield import CRF, KernelLogisticRegression
from dualfield.metrics import calibration_error
from dualfield.plotting import (
    ConfusionDisplay,
    ConvergenceDisplay,
    MarginalsDisplay,
    ReliabilityDisplay,
    TopFeaturesDisplay,
    TransitionDisplay,
)
from dualfield.solvers import Trace
from dualfield.structures import Chain

X = [[["the", "pos=D"], ["dog", "pos=N"], ["runs", "pos=V"]], [["a", "pos=D"], ["cat", "pos=N"]], [["run", "pos=V"]]]
Y = [["B-NP", "I-NP", "B-VP"], ["B-NP", "I-NP"], ["B-VP"]]


@pytest.fixture(scope="module")
def model():
    return CRF(C=5.0, constraints="BIO", tol=1e-8).fit(X, Y)


@pytest.fixture(scope="module")
def kernel_model():
    points = np.random.default_rng(0).normal(size=(60, 3))
    return KernelLogisticRegression().fit(points, np.sign(points[:, 0]).astype(int)), points


# Transitions


def test_transitions_are_those_of_the_model(model):
    display = TransitionDisplay.from_estimator(model)
    assert display.labels == ["B-NP", "B-VP", "I-NP"]
    for row, column in itertools.product(range(3), repeat=2):
        labels = display.labels[row], display.labels[column]
        assert display.weights[row, column] == model.transition_features_.get(labels, 0.0)
        assert display.allowed[row, column] == (labels != ("B-VP", "I-NP"))


def test_transitions_of_longer_windows_are_refused():
    model = CRF(Chain(order=2)).fit(X, Y)
    with pytest.raises(ValueError, match=r"needs a chain of order 1\. Got order 2; model\.top_features\(\)"):
        TransitionDisplay.from_estimator(model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 3)), "ab"), r"weights must have shape \(2, 2\), as there are 2 labels\. Got \(2, 3\)"),
        ((np.zeros((2, 2)), "ab", [True]), r"allowed must have shape \(2, 2\)"),
    ],
)
def test_transitions_of_other_shapes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TransitionDisplay(*arguments)


# Attributes


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_top_features_are_those_of_the_model(model, n):
    display = TopFeaturesDisplay.from_estimator(model, n=n)
    assert list(display.features) == model.classes_.tolist()
    for label, ranked in display.features.items():
        top = model.top_features(n, label=label)
        expected = [(name, weight) for (name, _), weight in [*top.positive, *reversed(top.negative)]]
        assert sorted(ranked) == sorted(expected)
        weights = [weight for _, weight in ranked]
        assert weights == sorted(weights, reverse=True)


def test_top_features_of_random_weights_against_sorting():
    rng = np.random.default_rng(3)
    model = CRF().fit([rng.normal(size=(6, 40)) for _ in range(4)], [list("abcabc")] * 4)
    size = len(model.parameters_)
    weights = np.where(rng.uniform(size=size) < 0.2, 0.0, rng.normal(size=size))
    model._model = model.model_.with_parameters(weights)
    display = TopFeaturesDisplay.from_estimator(model, n=4)
    for row, label in enumerate("abc"):
        ranked = sorted(((weight, f"x[{at}]") for at, weight in enumerate(model.coef_[row])), reverse=True)
        expected = [(name, weight) for weight, name in [*ranked[:4], *ranked[-4:]]]
        assert display.features[label] == expected


def test_top_features_refuse_no_features(model):
    with pytest.raises(ValueError, match=r"'n' parameter of TopFeaturesDisplay must be an int in \[1, inf\)\. Got 0"):
        TopFeaturesDisplay.from_estimator(model, n=0)


# Convergence


def test_convergence_is_the_trace(model):
    history = [(1, 0.1, "F1", 0.5), (2, 0.2, "F1", 0.75), (2, 0.2, "accuracy", 0.9)]
    display = ConvergenceDisplay.from_estimator(model, history=history)
    for name in ("objective", "dual", "gap", "passes", "seconds"):
        np.testing.assert_array_equal(getattr(display, name), getattr(model.trace_, name))
    assert display.relative_gap[-1] <= 1e-8
    assert display.scores == {"F1": ([1.0, 2.0], [0.5, 0.75]), "accuracy": ([2.0], [0.9])}


def test_relative_gap_needs_a_bound_above_zero():
    display = ConvergenceDisplay(
        [4.0, 4.0, 4.0, 4.0], [-1.0, 0.0, 2.0, np.nan], [5.0, 4.0, 2.0, np.nan], range(4), range(4)
    )
    np.testing.assert_array_equal(display.relative_gap, [np.nan, np.nan, 1.0, np.nan])


def test_convergence_refuses_columns_of_different_length():
    with pytest.raises(ValueError, match=r"must be 1D and of the same length\. Got shapes \(2,\), \(1,\)"):
        ConvergenceDisplay([1.0, 2.0], [1.0], [1.0], [1.0], [1.0])


def test_a_model_without_a_trace_has_nothing_to_draw():
    class Untraced:
        pass

    for model in (Untraced(), type("Empty", (), {"trace_": Trace.from_rows(np.zeros((0, 5)))})()):
        display = ConvergenceDisplay.from_estimator(model)
        assert "<svg" not in display.html()
        assert "no convergence curve" in display.html()
        with pytest.raises(ValueError, match="no convergence curve"):
            display.plot()


# Reliability


def test_reliability_is_that_of_the_metrics(model):
    y = [["B-NP", "I-NP", "I-NP"], [], ["unseen"]]
    sentences = [X[0], [], X[2]]
    display = ReliabilityDisplay.from_estimator(model, sentences, y, n_bins=7)
    assert display.name == "CRF"
    marginals = model.predict_proba(sentences)
    assert display.error == pytest.approx(calibration_error(y, marginals, model.classes_, n_bins=7))
    assert display.bins.count.sum() == 4


def test_reliability_of_a_classifier(kernel_model):
    model, points = kernel_model
    y = np.where(np.arange(60) % 3 == 0, -1, 1)
    display = ReliabilityDisplay.from_estimator(model, points, y, name="kernel")
    chances = model.predict_proba(points)
    right = model.classes_[chances.argmax(axis=1)] == y
    total = 0.0
    for low, high in itertools.pairwise(np.linspace(0, 1, 11)):
        inside = (chances.max(axis=1) > low) & (chances.max(axis=1) <= high)
        total += abs((right[inside] - chances.max(axis=1)[inside]).sum())
    assert display.error == pytest.approx(total / 60)
    assert display.name == "kernel"


# Confusion


def test_confusion_counts_pairs():
    rng = np.random.default_rng(1)
    lengths = [3, 0, 5, 1]
    true, pred = ([rng.choice(["b", "a", "c"], size).tolist() for size in lengths] for _ in range(2))
    display = ConfusionDisplay.from_predictions(true, pred)
    pairs = Counter(zip(itertools.chain(*true), itertools.chain(*pred), strict=True))
    assert display.labels == ["a", "b", "c"]
    for row, column in itertools.product(range(3), repeat=2):
        assert display.counts[row, column] == pairs[display.labels[row], display.labels[column]]
    for counts, shares in zip(display.counts, display.shares, strict=True):
        np.testing.assert_allclose(shares, counts / max(counts.sum(), 1))


def test_confusion_of_a_model_names_labels_it_does_not_know(model):
    display = ConfusionDisplay.from_estimator(model, X, [["B-NP", "I-NP", "B-ZP"], ["B-NP", "I-NP"], ["B-AP"]])
    assert display.labels == ["B-NP", "B-VP", "I-NP", "B-AP", "B-ZP"]
    assert display.counts[3:, 1].tolist() == [1, 1]


def test_confusion_of_a_classifier_and_of_arrays(kernel_model):
    model, points = kernel_model
    display = ConfusionDisplay.from_estimator(model, points, np.ones(60, dtype=int))
    assert display.labels == [-1, 1]
    assert display.counts.sum(axis=1).tolist() == [0, 60]
    sequences = [np.array([1, 2]), np.array([], dtype=int)]
    assert ConfusionDisplay.from_predictions(sequences, sequences).counts.tolist() == [[1, 0], [0, 1]]


def test_labels_of_several_types_are_put_in_some_order():
    assert ConfusionDisplay.from_predictions([["b", 2, "a"]], [["b", 1, "a"]]).labels == [1, 2, "a", "b"]


@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([["a"], ["b"]], [["a"]], r"y_true has 2 sequences; y_pred has 1"),
        ([["a"], ["b"]], [["a"], []], r"y_true\[1\] has 1 labels; y_pred\[1\] has 0"),
    ],
)
def test_confusion_refuses_what_does_not_fit(y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        ConfusionDisplay.from_predictions(y_true, y_pred)


def test_confusion_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"counts must have shape \(2, 2\), as there are 2 labels\. Got \(1, 2\)"):
        ConfusionDisplay([[1, 2]], ["a", "b"])


# Marginals


def test_marginals_are_those_of_the_predicted_labels(model):
    display = MarginalsDisplay.from_estimator(model, X[0], ["B-NP", "B-VP", "B-VP"])
    (labels,), (marginals,) = model.predict([X[0]]), model.predict_proba([X[0]])
    codes = [model.classes_.tolist().index(label) for label in labels]
    np.testing.assert_allclose(display.probabilities, marginals[np.arange(3), codes])
    assert display.labels == labels
    assert display.wrong == [a != b for a, b in zip(labels, ["B-NP", "B-VP", "B-VP"], strict=True)]
    assert display.tokens == ["the", "dog", "runs"]


def test_a_label_need_not_be_the_most_probable_one_at_its_place():
    display = MarginalsDisplay.from_predictions(["a", "b"], [[0.4, 0.6], [0.9, 0.1]], ["x", "y"], labels=["x", "x"])
    assert display.probabilities.tolist() == [0.4, 0.9]
    assert display.wrong == [False, False]


@pytest.mark.parametrize(
    ("xseq", "tokens"),
    [
        ([{"w": "Rex", "pos": "N"}, {"bias": 1.0}, {}], ["Rex", "token 1", "token 2"]),
        ([("Rex", "N"), ["barks"], []], ["Rex", "barks", "token 2"]),
        (["one", "two"], ["one", "two"]),
        (np.zeros((2, 3)), ["token 0", "token 1"]),
        ([], []),
    ],
)
def test_tokens_are_found_in_the_input(xseq, tokens):
    class Constant:
        classes_ = np.array(["x"])

        def predict(self, X):
            return [["x"] * len(xseq) for xseq in X]

        def predict_proba(self, X):
            return [np.ones((len(xseq), 1)) for xseq in X]

    assert MarginalsDisplay.from_estimator(Constant(), xseq).tokens == tokens


def test_marginals_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match=r"truth has 2 entries; expected 1, one for each token"):
        MarginalsDisplay(["a"], ["x"], [0.5], truth=["x", "y"])
