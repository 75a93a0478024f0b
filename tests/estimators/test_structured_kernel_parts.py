"""CRF and StructuredSVM with a kernel and landmarks on partitions: the problem in memory, certificate and input."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import cvxpy
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.structures import Chain

GAMMA = 0.5
Data = tuple[list[np.ndarray], list[list[str]]]


def sequences(n: int = 40) -> Data:
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(n):
        codes = np.cumsum(rng.integers(0, 2, size=rng.integers(1, 6))) % 3
        X.append(np.column_stack([np.cos(2 * codes), np.sin(2 * codes)]) + 0.7 * rng.normal(size=(len(codes), 2)))
        y.append([f"label {code}" for code in codes])
    return X, y


def cut(X: list[np.ndarray], y: list[list[str]], into: int = 4) -> list[Data]:
    return [(X[at::into], y[at::into]) for at in range(into)]


def landmarks(X: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(X)[::10]


def best_hinge(X: list[np.ndarray], y: list[list[str]], Z: np.ndarray, C: float) -> float:
    """The minimum of the structural SVM in the span of Z, with all labellings of short sequences written out."""
    names = sorted({label for one in y for label in one})
    values, vectors = np.linalg.eigh(rbf_kernel(Z, Z, gamma=GAMMA))
    root = vectors / np.sqrt(values)
    codes = [[names.index(label) for label in one] for one in y]
    seen = {pair for one in codes for pair in itertools.pairwise(one)}
    W, T = cvxpy.Variable((len(Z), len(names))), cvxpy.Variable((len(names), len(names)))
    mask = np.array([[(a, b) in seen for b in range(len(names))] for a in range(len(names))], dtype=float)
    losses = []
    for rows, truth in zip(X, codes, strict=True):
        F = rbf_kernel(rows, Z, gamma=GAMMA) @ root
        grids = np.array(np.meshgrid(*[range(len(names))] * len(truth))).reshape(len(truth), -1).T
        planes = []
        for other in grids.tolist():
            node = sum(
                np.outer(F[t], np.eye(len(names))[other[t]] - np.eye(len(names))[truth[t]]) for t in range(len(other))
            )
            pairs = np.zeros((len(names), len(names)))
            for t in range(1, len(other)):
                pairs[other[t - 1], other[t]] += 1.0
                pairs[truth[t - 1], truth[t]] -= 1.0
            cost = float(sum(a != b for a, b in zip(other, truth, strict=True)))
            planes.append(cost + cvxpy.sum(cvxpy.multiply(node, W)) + cvxpy.sum(cvxpy.multiply(pairs * mask, T)))
        losses.append(cvxpy.max(cvxpy.hstack(planes)))
    penalty = cvxpy.sum_squares(W) + cvxpy.sum_squares(T)
    problem = cvxpy.Problem(
        cvxpy.Minimize(0.5 * penalty + C * sum(losses)), [T[mask == 0] == 0] if (mask == 0).any() else []
    )
    return float(problem.solve(solver=cvxpy.CLARABEL))


def test_hinge_against_cvxpy() -> None:
    X, y = sequences(12)
    short = [at for at in range(len(X)) if len(X[at]) <= 3]
    X, y = [X[at] for at in short], [y[at] for at in short]
    Z = np.concatenate(X)[::3]
    model = StructuredSVM(kernel="rbf", gamma=GAMMA, kernel_approx=Z, C=2.0, tol=1e-6).fit(cut(X, y, 2))
    assert model.objective_ == pytest.approx(best_hinge(X, y, Z, 2.0), rel=1e-5)


@pytest.mark.parametrize("model", [CRF(), StructuredSVM()])
@pytest.mark.parametrize("more", [{}, {"transition_scale": 2.0, "start_stop": True, "features": "all"}])
def test_the_problem_is_that_in_memory(model: Any, more: dict[str, Any]) -> None:
    X, y = sequences()
    model.set_params(kernel="rbf", gamma=GAMMA, kernel_approx=landmarks(X), C=1.0, tol=1e-4, **more)
    whole = copy.deepcopy(model).fit(X, y)
    found = model.fit(cut(X, y))
    assert found.status_.value == "converged"
    assert found.objective_ - found.dual_gap_ <= whole.objective_ * (1 + 1e-9)
    assert whole.objective_ - whole.trace_.gap[:-1].min() <= found.objective_ * (1 + 1e-9)
    assert found.objective_ == pytest.approx(whole.objective_, rel=1e-3)
    assert (found.certified_problem_, whole.certified_problem_) == ("inducing_points", "full")
    same = [one == other for one, other in zip(found.predict(X), whole.predict(X), strict=True)]
    assert np.mean(same) > 0.9


def test_forms_seeds_and_files(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    X, y = sequences()
    pairs = cut(X, y)
    settings: dict[str, Any] = {"kernel": "rbf", "kernel_approx": 12, "random_state": 0}
    first = CRF(**settings).fit(pairs)
    for form in ([lambda pair=pair: pair for pair in pairs], [dask.delayed(lambda one: one)(pair) for pair in pairs]):
        assert CRF(**settings).fit(form).expansion_.coefficients.tobytes() == first.expansion_.coefficients.tobytes()
    empty = CRF(**settings).fit([*pairs, ([], [])])
    assert empty.objective_ == pytest.approx(first.objective_, rel=1e-3)
    first.save(tmp_path / "model")
    again = dualfield.load(tmp_path / "model")
    assert again.predict(X) == first.predict(X)
    assert (again.n_partitions_, again.n_rounds_, again.certified_problem_) == (4, first.n_rounds_, "inducing_points")


def test_constraints_are_kept() -> None:
    X, y = sequences(10)
    allowed = np.eye(3, dtype=bool) | np.eye(3, k=1, dtype=bool)
    allowed[2, 0] = True
    model = CRF(kernel="rbf", kernel_approx=8, constraints=allowed).fit(cut(X, y, 2))
    for labels in model.predict(X):
        codes = [int(label[-1]) for label in labels]
        assert all(allowed[a, b] for a, b in itertools.pairwise(codes))
    bad = [*cut(X, y, 2), ([np.zeros((2, 2))], [["label 0", "label 2"]])]
    with pytest.raises(ValueError, match=r"parts\[2\]"):
        CRF(kernel="rbf", kernel_approx=8, constraints=allowed).fit(bad)


def test_what_does_not_fit_is_said() -> None:
    X, y = sequences(8)
    parts = cut(X, y, 2)
    with pytest.raises(ValueError, match="need kernel_approx"):
        CRF(kernel="rbf").fit(parts)
    with pytest.raises(ValueError, match="'structure' parameter of CRF must be a chain of order 1"):
        CRF(Chain(order=2), kernel="rbf", kernel_approx=3).fit(parts)
    with pytest.raises(ValueError, match="'class_weight' parameter of StructuredSVM must be None"):
        StructuredSVM(kernel="rbf", kernel_approx=3, class_weight="balanced").fit(parts)
    with pytest.raises(ValueError, match="monitor must be None with a kernel"):
        CRF(kernel="rbf", kernel_approx=3).fit(parts, monitor=print)
    with pytest.raises(ValueError, match=r"parts\[0\] must have sequences of numbers"):
        CRF(kernel="rbf", kernel_approx=3).fit([([[["a"], ["b"]]], [["x", "y"]])])
    with pytest.raises(ValueError, match=r"parts\[1\] has 3 columns|parts\[0\] has 2 columns"):
        CRF(kernel="rbf", kernel_approx=3).fit([parts[0], ([np.zeros((1, 3))], [["label 0"]])])
    with pytest.raises(ValueError, match="client"):
        StructuredSVM().fit(X, y, client="tcp://127.0.0.1:1")
