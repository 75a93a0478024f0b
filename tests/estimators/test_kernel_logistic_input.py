"""Kernels, forms of X, labels: what goes in does not change what comes out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.special import expit, softmax
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel

from dualfield import KernelLogisticRegression
from tests.estimators.problems import GAMMA, clouds


class Frame:
    """The least that a data frame does for NumPy."""

    def __init__(self, values):
        self.values = values
        self.shape = values.shape

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


def fit(X, y, *args, **parameters):
    return KernelLogisticRegression(*args, **{"gamma": GAMMA, "tol": 1e-8, "random_state": 0} | parameters).fit(X, y)


def same_model(one, other, X_one, X_other, atol=1e-3):
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)
    np.testing.assert_allclose(one.predict_proba(X_one), other.predict_proba(X_other), atol=atol)


KERNELS = {
    "linear": (linear_kernel, {}),
    "poly": (polynomial_kernel, {"gamma": 0.4, "degree": 2, "coef0": 1.0}),
    "rbf": (rbf_kernel, {"gamma": 0.4}),
    "laplacian": (laplacian_kernel, {"gamma": 0.4}),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_those_of_scikit_learn(name, n_classes):
    problem = clouds(n_classes)
    function, parameters = KERNELS[name]
    new = np.random.default_rng(3).normal(size=(9, 2))
    model = fit(problem.X, problem.y, name, **parameters)
    precomputed = fit(function(problem.X, **parameters), problem.y, "precomputed")
    same_model(model, precomputed, new, function(new, problem.X, **parameters))
    called = fit(problem.X, problem.y, function, kernel_params=parameters)
    same_model(model, called, new, new)


def test_polynomial_kernel_of_the_default_degree():
    problem = clouds(2)
    gram = polynomial_kernel(problem.X, degree=3, gamma=0.4, coef0=0.5)
    model = fit(problem.X, problem.y, "poly", gamma=0.4, coef0=0.5)
    same_model(model, fit(gram, problem.y, "precomputed"), problem.X, gram)


def test_sigmoid_kernel():
    """In general it is not positive semidefinite, and then refused; on orthogonal points it is."""
    problem = clouds(3)
    X = 2.0 * np.eye(8)[np.random.default_rng(0).integers(0, 8, problem.n)]
    gram = sigmoid_kernel(X, gamma=0.2, coef0=0.0)
    model = fit(X, problem.y, "sigmoid", gamma=0.2)
    same_model(model, fit(gram, problem.y, "precomputed"), X, gram)
    with pytest.raises(ValueError, match=r"positive semi-?definite"):
        fit(problem.X, problem.y, "sigmoid", gamma=1.0, coef0=-2.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_gamma_by_name(sparse):
    problem = clouds(2)
    X = np.column_stack([problem.X, 0.0 * problem.X[:, :1]])
    given = scipy.sparse.csr_matrix(X) if sparse else X
    scale = fit(given, problem.y, gamma="scale")
    same_model(scale, fit(X, problem.y, gamma=1.0 / (3 * X.var())), given, X)
    auto = fit(given, problem.y, gamma="auto")
    same_model(auto, fit(X, problem.y, gamma=1.0 / 3), given, X)
    assert abs(scale.objective_ - auto.objective_) > 1e-3 * auto.objective_


FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "column order": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "frame": Frame,
    "csr_matrix": scipy.sparse.csr_matrix,
    "csr_array": scipy.sparse.csr_array,
    "csc": scipy.sparse.csc_array,
    "coo": scipy.sparse.coo_array,
    "wide indices": lambda X: _with_wide_indices(scipy.sparse.csr_array(X)),
}


def _with_wide_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_x(form, kernel):
    problem = clouds(3)
    X = (8 * problem.X).round() / 8  # exact in float32
    X[np.abs(X) < 0.5] = 0.0
    given = FORMS[form](X)
    parameters = {"gamma": 0.5, "degree": 2, "coef0": 1.0}
    same_model(fit(given, problem.y, kernel, **parameters), fit(X, problem.y, kernel, **parameters), given, X)


def test_integers_are_numbers():
    problem = clouds(3)
    X = (4 * problem.X).round()
    same_model(fit(X.astype(np.int32), problem.y), fit(X, problem.y), X.astype(np.int32), X)


def test_feature_names():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    problem = clouds(2)
    frame = pandas.DataFrame(problem.X, columns=["height", "weight"])
    model = fit(frame, pandas.Series(problem.y))
    assert model.feature_names_in_.tolist() == ["height", "weight"]
    same_model(model, fit(problem.X, problem.y), frame, problem.X)


LABELS = {
    "strings": np.array(["cat", "dog", "eel"]),
    "negative": np.array([-7, -1, 5]),
    "objects": np.array(["a", "a long name", "bb"], dtype=object),
    "bool": np.array([False, True]),
    "signs": np.array([-1, 1]),
    "floats": np.array([0.0, 1.0, 2.0]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_come_back_as_they_went_in(name):
    names = LABELS[name]
    problem = clouds(len(names))
    plain = fit(problem.X, problem.y)
    model = fit(problem.X, names[problem.y])
    np.testing.assert_array_equal(model.classes_, names)
    new = np.random.default_rng(3).normal(size=(40, 2))
    predicted = model.predict(new)
    assert predicted.dtype.kind == names.dtype.kind
    np.testing.assert_array_equal(predicted, names[plain.predict(new)])
    np.testing.assert_array_equal(model.predict_proba(new), plain.predict_proba(new))
    assert model.score(problem.X, names[problem.y]) == np.mean(model.predict(problem.X) == names[problem.y])


def test_the_order_of_classes_is_sorted_whatever_comes_first():
    problem = clouds(3)
    model = fit(problem.X[::-1], np.array(["z", "m", "a"])[problem.y[::-1]])
    assert model.classes_.tolist() == ["a", "m", "z"]


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e3])
def test_predictions_agree_with_probabilities(n_classes, C):
    problem = clouds(n_classes)
    model = fit(problem.X, problem.y, C=C, tol=1e-3)
    new = np.random.default_rng(4).normal(scale=2.0, size=(200, 2))
    scores, proba = model.decision_function(new), model.predict_proba(new)
    assert scores.shape == ((200,) if n_classes == 2 else (200, n_classes))
    assert proba.shape == (200, n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    expected = softmax(scores, axis=1) if n_classes > 2 else np.column_stack([expit(-scores), expit(scores)])
    np.testing.assert_allclose(proba, expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(model.predict_log_proba(new), np.log(proba), rtol=1e-9, atol=1e-9)
    best = scores.argmax(axis=1) if n_classes > 2 else (scores > 0).astype(int)
    np.testing.assert_array_equal(model.predict(new), model.classes_[best])
    np.testing.assert_array_equal(model.predict(new), model.classes_[proba.argmax(axis=1)])
    direct = rbf_kernel(new, problem.X, gamma=GAMMA) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(scores.reshape(200, -1), direct, rtol=1e-4, atol=1e-4 * C)


def test_log_probabilities_do_not_underflow():
    X = np.array([[-1.0], [1.0]] * 10)
    model = KernelLogisticRegression("linear", C=1e3).fit(X, [0, 1] * 10)
    log_proba = model.predict_log_proba(np.array([[1e4], [-1e4]]))
    assert np.isfinite(log_proba).all()
    assert log_proba[0, 0] < -1000
