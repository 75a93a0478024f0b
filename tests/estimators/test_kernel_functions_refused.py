"""Kernel functions that return what no kernel has, and numbers of points or threads that are none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dualfield import CRF, DiscriminativeHMM, KernelLogisticRegression, StructuredSVM
from dualfield.structures.checks import n_threads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2))
Y = (X[:, 0] > 0).astype(int)
SEQUENCES, LABELS = [X[:10], X[10:]], [Y[:10].tolist(), Y[10:].tolist()]
WRONG = {
    "sparse": (lambda A, B: sparse.csr_array(A @ B.T), "sparse matrix: use its toarray"),
    "complex": (lambda A, B: A @ B.T + 0j, "complex"),
    "nan": (lambda A, B: np.full((len(A), len(B)), np.nan), r"nan at \[0, 0\]"),
    "infinite": (lambda A, B: np.where(np.eye(len(A), len(B), 1) > 0, np.inf, A @ B.T), r"inf at \[0, 1\]"),
    "text": (lambda A, B: "kernel", "str"),
    "ragged": (lambda A, B: [[1.0], [1.0, 2.0]], "list"),
    "shape": (lambda A, B: np.ones(len(A)), r"shape \(\d+,\) instead"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_kernel_function_that_returns_no_kernel(name):
    kernel, message = WRONG[name]
    message = rf"^The 'kernel' function must return a dense array of finite numbers of shape .* Got .*{message}"
    for model in (
        KernelLogisticRegression(kernel),
        KernelLogisticRegression(kernel, kernel_approx=5),
        KernelLogisticRegression(kernel, cache_size=0),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)
    for model in (CRF(kernel=kernel), StructuredSVM(kernel=kernel)):
        with pytest.raises(ValueError, match=message):
            model.fit(SEQUENCES, LABELS)


@pytest.mark.parametrize("value", [2.5, True, "a", 0, -1, [1.0, 2.0]])
def test_inducing_points_that_are_none(value):
    with pytest.raises(
        ValueError, match=r"^The 'kernel_approx' parameter of KernelLogisticRegression must be None, an"
    ):
        KernelLogisticRegression(kernel_approx=value).fit(X, Y)


def test_a_fractional_degree_with_inducing_points():
    with pytest.raises(ValueError, match="not numbers"):
        KernelLogisticRegression("poly", degree=0.5, kernel_approx=5, random_state=0).fit(X, Y)


@pytest.mark.parametrize("value", ["x", 1.5, 0])
def test_threads_that_are_none(value):
    message = r"^The 'n_jobs' parameter must be None or an int other than 0. Got "
    with pytest.raises(ValueError, match=message):
        n_threads(value)
    with pytest.raises(ValueError, match=message):
        KernelLogisticRegression(n_jobs=value).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        CRF(n_jobs=value).fit(SEQUENCES, LABELS)


def test_choices_are_listed_without_more():
    with pytest.raises(ValueError, match=r"^The 'unknown' parameter of DiscriminativeHMM must be one of \['skip'"):
        DiscriminativeHMM(unknown="drop").fit([["a"]], [["x"]])
