"""What is refused, and what the message says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dualfield import KernelLogisticRegression
from tests.estimators.problems import SOLVERS, clouds, label_kernel

X, Y = clouds(3).X, clouds(3).y
GRAM = clouds(3).K


def both(*words):
    """A pattern that wants all words, in any order."""
    return "(?si)" + "".join(f"(?=.*(?:{word}))" for word in words)


PARAMETERS = [
    ({"C": -1.0}, ["'C' parameter of KernelLogisticRegression", r"\(0", r"Got -1\.0"]),
    ({"C": 0}, ["'C' parameter of KernelLogisticRegression", "Got 0"]),
    ({"C": float("nan")}, ["'C' parameter", "nan"]),
    ({"C": "1"}, ["'C' parameter", "'1'"]),
    ({"gamma": -0.5}, ["'gamma' parameter", r"\(0", r"-0\.5"]),
    ({"gamma": 0.0}, ["'gamma' parameter", r"0\.0"]),
    ({"gamma": "wide"}, ["'gamma' parameter", "'wide'"]),
    ({"degree": -1, "kernel": "poly"}, ["'degree' parameter", "-1"]),
    ({"tol": 0.0}, ["'tol' parameter", r"0\.0"]),
    ({"tol": -1e-3}, ["'tol' parameter", r"-0\.001"]),
    ({"max_iter": 0}, ["'max_iter' parameter", "0"]),
    ({"cache_size": -1}, ["'cache_size' parameter", "-1"]),
    ({"kernel": "gauss"}, ["'kernel' parameter", "rbf", "'gauss'"]),
    ({"solver": "sgd"}, ["'solver' parameter", "working_set", "'sgd'"]),
    ({"solver": 3}, ["'solver' parameter", "3"]),
    ({"class_weight": "even"}, ["'class_weight' parameter", "balanced", "'even'"]),
    ({"class_weight": {0: -1.0}}, ["class_weight", "-1"]),
    ({"kernel_approx": 0}, ["'kernel_approx' parameter", "0"]),
    ({"kernel_approx": np.ones((4, 5))}, ["kernel_approx", "5", "2"]),
    ({"kernel_approx": np.array([[np.nan, 0.0]])}, ["kernel_approx", "nan"]),
    ({"kernel_params": {"width": 1.0}}, ["kernel_params", "callable"]),
    ({"label_kernel": np.eye(2)}, ["label_kernel", r"\(3, 3\)", r"\(2, 2\)"]),
    ({"label_kernel": np.triu(np.ones((3, 3)))}, ["label_kernel", "symmetric"]),
    ({"label_kernel": np.diag([1.0, 1.0, -1.0])}, ["label_kernel", "positive semi-?definite"]),
    ({"label_kernel": np.full((3, 3), np.inf)}, ["label_kernel", "inf|finite"]),
    ({"label_kernel": "identity"}, ["'label_kernel' parameter", "'identity'"]),
]


@pytest.mark.parametrize(("parameters", "words"), PARAMETERS, ids=lambda value: str(value)[:40])
def test_parameters(parameters, words):
    with pytest.raises(ValueError, match=both(*words)):
        KernelLogisticRegression(**parameters).fit(X, Y)


def spoiled(value):
    return np.where(np.arange(X.size).reshape(X.shape) == 7, value, X)


DATA = [
    (spoiled(np.nan), Y, ["NaN"]),
    (spoiled(np.inf), Y, ["inf"]),
    (X, np.zeros(44, int), ["class"]),
    (X[:0], Y[:0], ["0 sample"]),
    (X[:, :0], Y, ["0 feature"]),
    (X[:30], Y, ["30", "44"]),
    (X[0], Y[:2], ["2D"]),
    (X, np.array([1, "a"] * 22, dtype=object), ["label"]),
    (X, np.linspace(0, 1, 44), ["label"]),
    (X, np.where(np.arange(44) == 3, np.nan, Y), ["y", "NaN"]),
    (X, np.column_stack([Y, Y]), ["y", r"1d|shape"]),
    (X.astype(complex), Y, ["complex"]),
    (np.full((44, 2), "a"), Y, ["string|numeric|float"]),
]


@pytest.mark.parametrize(("data", "labels", "words"), DATA, ids=lambda value: None)
def test_data(data, labels, words):
    with pytest.raises((ValueError, TypeError), match=both(*words)):
        KernelLogisticRegression().fit(data, labels)


def test_one_class_says_what_is_needed():
    with pytest.raises(ValueError, match=both("2|two", "class", "one class|1 class|single|'a'")):
        KernelLogisticRegression().fit(X, ["a"] * 44)


WEIGHTS = [
    (np.ones(43), ["sample_weight", "43", "44"]),
    (np.where(np.arange(44) == 2, -1.0, 1.0), ["sample_weight", "negative|non-negative|>= 0"]),
    (np.zeros(44), ["sample[ _]weight", "zero|positive"]),
    (np.where(np.arange(44) == 2, np.nan, 1.0), ["sample_weight", "nan"]),
    (np.where(np.arange(44) == 2, np.inf, 1.0), ["sample_weight", "inf"]),
    (np.ones((44, 2)), ["sample[ _]weight", "1D|shape"]),
    (np.where(Y == 0, 1.0, 0.0), ["weight", "class"]),
]


@pytest.mark.parametrize(("weight", "words"), WEIGHTS, ids=lambda value: None)
def test_sample_weight(weight, words):
    with pytest.raises(ValueError, match=both(*words)):
        KernelLogisticRegression().fit(X, Y, sample_weight=weight)


def _random_signs():
    signs = np.sign(np.random.default_rng(0).normal(size=(44, 44)))
    return np.eye(44) + 0.9 * np.triu(signs, 1) + 0.9 * np.triu(signs, 1).T


INDEFINITE = {
    "-I": -np.eye(44),
    "1 - I": np.ones((44, 44)) - np.eye(44),
    "signs": _random_signs(),  # every pair of points alone is in order
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("gram", INDEFINITE.values(), ids=INDEFINITE)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_kernels_that_are_not_positive_semidefinite(n_classes, gram, solver):
    with pytest.raises(ValueError, match=r"positive semi-?definite"):
        KernelLogisticRegression("precomputed", solver=solver, tol=1e-6).fit(gram, Y % n_classes)


def test_precomputed_kernels():
    model = KernelLogisticRegression("precomputed")
    with pytest.raises(ValueError, match=both("square", "44", "40")):
        model.fit(GRAM[:, :40], Y)
    skew = GRAM.copy()
    skew[3, 5] += 0.1
    with pytest.raises(ValueError, match=both("symmetric")):
        model.fit(skew, Y)
    model.fit(GRAM, Y)
    with pytest.raises(ValueError, match=both("40", "44")):
        model.predict(GRAM[:, :40])


def test_callable_kernels():
    with pytest.raises(ValueError, match=both("kernel", "shape")):
        KernelLogisticRegression(lambda A, B: np.ones((len(A), 3))).fit(X, Y)
    with pytest.raises(ValueError, match=both("kernel", "nan|finite|not numbers")):
        KernelLogisticRegression(lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, Y)
    with pytest.raises(ZeroDivisionError):
        KernelLogisticRegression(lambda A, B: 1 / 0).fit(X, Y)


def test_other_columns_than_in_training():
    model = KernelLogisticRegression().fit(X, Y)
    for method in (model.predict, model.predict_proba, model.predict_log_proba, model.decision_function):
        with pytest.raises(ValueError, match=both("3 features", "expecting 2")):
            method(np.ones((4, 3)))
        with pytest.raises(ValueError, match=r"(?i)nan"):
            method(np.full((4, 2), np.nan))


def test_not_fitted():
    model = KernelLogisticRegression()
    for method in (model.predict, model.predict_proba, model.predict_log_proba, model.decision_function):
        with pytest.raises(NotFittedError, match="KernelLogisticRegression"):
            method(X)


def test_a_failed_fit_leaves_the_parameters_alone():
    model = KernelLogisticRegression(C=2.0, label_kernel=label_kernel(4))
    with pytest.raises(ValueError, match="label_kernel"):
        model.fit(X, Y)
    assert model.get_params()["C"] == 2.0
