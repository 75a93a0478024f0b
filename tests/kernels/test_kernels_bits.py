"""Kernels between points of zeros and ones, which are packed into bits, against scikit-learn's."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise

from dualfield import _native
from dualfield.kernels import Kernel

KERNELS = [
    ("linear", {}),
    ("poly", {"gamma": 0.3, "coef0": 1.0, "degree": 3.0}),
    ("poly", {"gamma": 0.2, "coef0": 0.5, "degree": 1.7}),
    ("rbf", {"gamma": 0.05}),
    ("laplacian", {"gamma": 0.05}),
    ("sigmoid", {"gamma": 0.02, "coef0": -0.4}),
]
N_FEATURES = [1, 63, 64, 65, 127, 128, 200, 257, 449]
FORMS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "uint8": lambda X: X.astype(np.uint8),
    "bool": lambda X: X.astype(bool),
    "int64": lambda X: X.astype(np.int64),
    "columns": np.asfortranarray,
    "every other": lambda X: np.repeat(X, 2, axis=1).astype(bool)[:, ::2],
    "csr": sparse.csr_array,
    "csc of float32": lambda X: sparse.csc_array(X.astype(np.float32)),
    "coo of bool": lambda X: sparse.coo_array(X.astype(bool)),
    "list": lambda X: X.tolist(),
}


def zeros_and_ones(n, n_features, share=0.4, seed=0):
    return (np.random.default_rng(seed).random((n, n_features)) < share).astype(np.float64)


def expected(name, parameters, X, Y):
    return pairwise.pairwise_kernels(np.asarray(X, dtype=float), np.asarray(Y, dtype=float), metric=name, **parameters)


def is_packed(kernel, X, Y):
    return all(isinstance(form, _native.BitMatrix) for form in kernel._forms(X, Y))


@given(
    kernel=st.sampled_from(KERNELS),
    n_features=st.sampled_from(N_FEATURES),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    forms=st.tuples(st.sampled_from(sorted(FORMS)), st.sampled_from(sorted(FORMS))),
    share=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    seed=st.integers(0, 1000),
)
def test_values_and_scores_agree_with_scikit_learn(kernel, n_features, shape, forms, share, seed):
    name, parameters = kernel
    X, Y = zeros_and_ones(shape[0], n_features, share, seed), zeros_and_ones(shape[1], n_features, share, seed + 1)
    wanted = expected(name, parameters, X, Y)
    left, right = FORMS[forms[0]](X), FORMS[forms[1]](Y)
    scale = 1e-12 * max(1.0, np.abs(wanted).max())
    values = Kernel(name, **parameters).values(left, right)
    np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=scale)
    coefficients = np.random.default_rng(seed).normal(size=(shape[1], 3))
    coefficients[seed % shape[1]] = 0.0
    scores = Kernel(name, **parameters).scores(left, right, coefficients)
    np.testing.assert_allclose(scores, wanted @ coefficients, rtol=1e-12, atol=100 * scale)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(("name", "parameters"), KERNELS)
@pytest.mark.parametrize("n_features", N_FEATURES)
def test_matrices_agree_stored_or_not(n_features, name, parameters, single):
    X = zeros_and_ones(150, n_features)
    kernel = Kernel(name, **parameters)
    wanted = expected(name, parameters, X, X)
    tolerance = 1e-6 if single else 1e-12
    coefficients = np.random.default_rng(1).normal(size=(150, 2))
    # Stored, rows looked up from stored counts, rows counted anew.
    for budget, n_threads in itertools.product([None, 2 * 150 * 150, 0], [1, 2]):
        matrix = kernel.matrix(X.astype(bool), single=single, budget=budget, n_threads=n_threads)
        assert matrix.single == single
        np.testing.assert_allclose(matrix.diagonal, wanted.diagonal(), rtol=tolerance)
        np.testing.assert_allclose(
            matrix.product(coefficients, n_threads),
            wanted @ coefficients,
            atol=10 * tolerance * np.abs(wanted).sum(axis=1).max(),
        )


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_a_point_has_the_value_one_with_itself_and_its_copies(name):
    X = zeros_and_ones(30, 128)
    X[7] = X[3]
    values = Kernel(name, gamma=0.1).values(X, X)
    assert values[3, 7] == 1.0
    assert (values.diagonal() == 1.0).all()
    assert (values == values.T).all()


@pytest.mark.parametrize("form", sorted(FORMS))
def test_every_form_of_zeros_and_ones_is_packed(form):
    X = FORMS[form](zeros_and_ones(20, 100))
    assert is_packed(Kernel(), X, X)
    assert is_packed(Kernel(), X, zeros_and_ones(3, 100))


@pytest.mark.parametrize("other", [2.0, -1.0, 0.5, 1.0 + 1e-15, np.nan])
def test_one_other_number_is_enough_to_compute_in_floating_point(other):
    X = zeros_and_ones(20, 100)
    Y = X.copy()
    Y[19, 99] = other
    for left, right in [(X, Y), (Y, X), (Y, Y)]:
        assert not is_packed(Kernel(), left, right)
        assert not is_packed(Kernel(), sparse.csr_array(left), sparse.csr_array(right))
    if np.isfinite(other):
        np.testing.assert_allclose(Kernel(gamma=0.1).values(X, Y), expected("rbf", {"gamma": 0.1}, X, Y), rtol=1e-12)


def test_stored_zeros_and_summed_duplicates_count_as_what_they_are():
    rows, columns, values = [0, 0, 1, 1], [0, 5, 2, 2], [1.0, 0.0, 0.5, 0.5]
    X = sparse.coo_array((values, (rows, columns)), shape=(2, 64))
    assert is_packed(Kernel("linear"), X, X)
    np.testing.assert_array_equal(Kernel("linear").values(X, X), np.eye(2))


def test_long_sparse_points_stay_compressed():
    X = sparse.random_array((50, 5000), density=0.002, rng=0, data_sampler=lambda size: np.ones(size), format="csr")
    assert not is_packed(Kernel(), X, X)
    assert is_packed(Kernel("laplacian"), X, X)  # whose other way is to unpack them
    np.testing.assert_allclose(
        Kernel(gamma=0.1).values(X, X), expected("rbf", {"gamma": 0.1}, X.toarray(), X.toarray()), rtol=1e-12
    )


@pytest.mark.parametrize("dtype", [bool, float])
def test_different_numbers_of_features_are_refused(dtype):
    X, Y = np.ones((3, 70), dtype=dtype), np.ones((3, 60), dtype=dtype)
    with pytest.raises(ValueError, match="different features"):
        Kernel().values(X, Y)
    with pytest.raises(ValueError, match="different features"):
        Kernel().scores(X, Y, np.ones((3, 1)))
    with pytest.raises(ValueError, match="one row of coefficients"):
        Kernel().scores(X, X, np.ones((4, 1)))


def test_points_without_a_coefficient_do_not_matter():
    X, points = zeros_and_ones(10, 128, seed=2), zeros_and_ones(300, 128, seed=3)
    coefficients = np.zeros((300, 4))
    assert (Kernel().scores(X, points, coefficients) == 0.0).all()
    coefficients[[5, 150, 299], [0, 3, 1]] = [1.0, -2.0, 3.0]
    for form in (points, points + 0.25):
        expected_scores = expected("rbf", {"gamma": 0.1}, X, form) @ coefficients
        np.testing.assert_allclose(
            Kernel(gamma=0.1).scores(X, form, coefficients), expected_scores, rtol=1e-11, atol=1e-300
        )


def test_unsorted_rows_are_left_as_they_are():
    rows = sparse.csr_array((np.ones(3), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    rows.data.flags.writeable = rows.indices.flags.writeable = False
    np.testing.assert_allclose(Kernel("linear").values(rows, rows), (rows @ rows.T).toarray())
    assert rows.indices.tolist() == [2, 0, 1]
