"""Kernel logistic regression on points in partitions: the same problem as in memory, its certificate, its input."""

from __future__ import annotations

import gzip
import itertools
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse
from scipy.special import logsumexp
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import dualfield
from dualfield import KernelLogisticRegression

GAMMA = 0.3


def points(n: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    scores = np.sin(2 * X) @ rng.normal(size=(3, n_classes)) + 0.3 * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


def cut(*arrays: Any, into: int = 4) -> list[tuple[Any, ...]]:
    ends = np.linspace(0, arrays[0].shape[0], into + 1).astype(int)
    return [tuple(one[a:b] for one in arrays) for a, b in itertools.pairwise(ends)]


def smallest(X: np.ndarray, y: np.ndarray, Z: np.ndarray, C: np.ndarray, with_bias: bool) -> float:
    """The minimum of the inducing-point problem, by SciPy on plain formulas: one function for each class."""
    K, KZ, n = rbf_kernel(X, Z, gamma=GAMMA), rbf_kernel(Z, Z, gamma=GAMMA), int(y.max()) + 1
    values, vectors = np.linalg.eigh(KZ)
    F = K @ (vectors / np.sqrt(values))
    if with_bias:
        F = np.column_stack([F, np.ones(len(X))])
    penalised = np.ones(F.shape[1])
    penalised[len(Z) :] = 0.0
    truth = np.eye(n)[y]

    def value(w: np.ndarray) -> tuple[float, np.ndarray]:
        W = w.reshape(-1, n)
        scores = F @ W
        top = logsumexp(scores, axis=1, keepdims=True)
        loss = C @ (top[:, 0] - scores[np.arange(len(y)), y])
        slope = F.T @ (C[:, None] * (np.exp(scores - top) - truth)) + penalised[:, None] * W
        return 0.5 * float((penalised[:, None] * W**2).sum()) + loss, slope.ravel()

    found = optimize.minimize(
        value, np.zeros(F.shape[1] * n), jac=True, method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 50},
    )  # fmt: skip
    return float(found.fun)


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("C", [0.1, 30.0])
def test_the_minimum_is_that_of_the_inducing_point_problem(C: float, with_bias: bool) -> None:
    X, y = points(400, 3)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, size=len(y))
    Z = X[::20]
    model = KernelLogisticRegression(gamma=GAMMA, C=C, kernel_approx=Z, fit_intercept=with_bias, tol=1e-7)
    model.fit(cut(X, y, weights))
    best = smallest(X, y, Z, C * weights, with_bias)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.objective_ - model.dual_gap_ <= best * (1 + 1e-9)
    assert model.certified_problem_ == "inducing_points"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_gap_on_the_way_holds(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small sample makes many steps; no dual value is above the minimum, nor any objective below it."""
    monkeypatch.setattr("dualfield.models.kernel.point_training._LEAST_ROWS", 60)
    monkeypatch.setattr("dualfield.models.kernel.point_training._ROWS_PER_POINT", 1)
    X, y = points(1200, n_classes)
    Z = X[::80]
    fits = [
        KernelLogisticRegression(gamma=GAMMA, C=5.0, kernel_approx=Z, tol=tol).fit(cut(X, y, into=7))
        for tol in (1e-8, 1e-2)
    ]
    best, trace = fits[0].objective_, fits[0].trace_
    assert fits[0].status_.value == "converged"
    assert len(trace) > 3
    assert (trace.dual <= best * (1 + 1e-12)).all()
    assert (trace.objective >= fits[0].objective_ - fits[0].dual_gap_).all()
    assert fits[1].n_rounds_ < fits[0].n_rounds_
    whole = KernelLogisticRegression(gamma=GAMMA, C=5.0, kernel_approx=Z, tol=1e-8).fit(X, y)
    assert best == pytest.approx(whole.objective_, rel=1e-7)
    assert whole.certified_problem_ == "full"
    np.testing.assert_allclose(fits[0].predict_proba(X), whole.predict_proba(X), atol=1e-3)


def test_label_kernels_class_weights_and_gamma_are_those_in_memory() -> None:
    X, y = points(500, 3)
    names = np.array(["one", "three", "two"])[y]
    T = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]])
    for more in ({"label_kernel": T}, {"class_weight": "balanced"}, {"class_weight": {"one": 3.0, "two": 0.0}}):
        settings = dict(kernel_approx=X[::25], tol=1e-6, C=3.0, **more)
        whole = KernelLogisticRegression(**settings).fit(X, names)
        model = KernelLogisticRegression(**settings).fit(cut(X, names))
        assert model.objective_ == pytest.approx(whole.objective_, rel=1e-5)
        np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=5e-3)
        np.testing.assert_array_equal(model.classes_, whole.classes_)
        np.testing.assert_array_equal(np.isneginf(model.intercept_), np.isneginf(whole.intercept_))


def test_forms_of_partitions_are_all_the_same(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    array = pytest.importorskip("dask.array")
    X, y = points(300, 2)
    X = np.where(np.abs(X) > 0.3, X.round(3), 0.0)
    pairs = cut(X, y, into=3)
    paths = [tmp_path / f"part-{at}.npz" for at in range(3)]
    texts = [tmp_path / f"part-{at}.svm.gz" for at in range(3)]
    thin = [tmp_path / f"sparse-{at}.npz" for at in range(3)]
    for path, text, row, (part, labels) in zip(paths, texts, thin, pairs, strict=True):
        np.savez(path, X=part, y=labels)
        with gzip.open(text, "wb") as file:
            dump_svmlight_file(part, labels, file, zero_based=False)
        few = sparse.csr_array(part)
        np.savez(row, data=few.data, indices=few.indices, indptr=few.indptr, shape=np.array(few.shape), y=labels)
    chunks = tuple(len(part[1]) for part in pairs)
    forms = {
        "arrays": (pairs,),
        "paths": (paths,),
        "glob": (str(tmp_path / "part-*.npz"),),
        "delayed": ([dask.delayed(lambda one: one)(pair) for pair in pairs],),
        "functions": ([lambda pair=pair: pair for pair in pairs],),
        "dask arrays": (array.from_array(X, chunks=(chunks, 3)), array.from_array(y, chunks=(chunks,))),
        "text": (texts,),
        "sparse": (thin,),
    }
    fits = {name: KernelLogisticRegression(kernel_approx=30, C=5.0).fit(*form) for name, form in forms.items()}
    fits["read again"] = KernelLogisticRegression(kernel_approx=30, C=5.0, cache_size=1e5).fit(paths)
    first = fits["arrays"]
    for name, one in fits.items():
        if name in ("text", "sparse"):  # products in another order
            assert one.objective_ == pytest.approx(first.objective_, rel=1e-9)
        else:
            assert one.dual_coef_.tobytes() == first.dual_coef_.tobytes(), name
            assert one.dual_gap_ == first.dual_gap_


def test_an_empty_partition_and_a_late_class_are_fine(tmp_path: Path) -> None:
    X, y = points(400, 3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    rare = np.flatnonzero(y == 2)[2:]
    X, y = np.delete(X, rare, axis=0), np.delete(y, rare)
    settings = {"gamma": GAMMA, "kernel_approx": X[::20], "C": 10.0, "tol": 1e-6}
    model = KernelLogisticRegression(**settings).fit([*cut(X, y), (X[:0], y[:0])])
    assert model.objective_ == pytest.approx(KernelLogisticRegression(**settings).fit(X, y).objective_, rel=1e-6)
    assert model.n_partitions_ == 5
    model.save(tmp_path / "model")
    again = dualfield.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert (again.n_partitions_, again.n_rounds_) == (5, model.n_rounds_)
    assert again.certified_problem_ == "inducing_points"
    model.set_params(kernel_approx=None).fit(X, y)
    assert model.certified_problem_ == "full"
    assert not hasattr(model, "n_partitions_")


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    X, y = points(40, 2)
    model = KernelLogisticRegression(kernel_approx=5)
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"PK")
    unlabelled = tmp_path / "unlabelled.npz"
    np.savez(unlabelled, X=X)
    with pytest.raises(ValueError, match="need kernel_approx"):
        KernelLogisticRegression().fit(cut(X, y))
    with pytest.raises(ValueError, match=r"parts\[1\] has 2 columns; expected 3, as in parts\[0\]"):
        model.fit([(X, y), (X[:, :2], y)])
    with pytest.raises(ValueError, match=r"parts\[1\] must have a label for each row. Got 40 rows and 39"):
        model.fit([(X, y), (X, y[1:])])
    with pytest.raises(ValueError, match=r"X of parts\[0\] contains NaN"):
        model.fit([(np.full((2, 1), np.nan), [0, 1])])
    with pytest.raises(ValueError, match=r"bad\.npz cannot be read"):
        model.fit([bad])
    with pytest.raises(ValueError, match=r"unlabelled\.npz must have an array y"):
        model.fit([unlabelled])
    with pytest.raises(FileNotFoundError, match="No file matches"):
        model.fit(str(tmp_path / "none-*.npz"))
    with pytest.raises(ValueError, match=r"parts\[1\] must be a pair"):
        model.fit([(X, y), 3])
    with pytest.raises(ValueError, match="at least 2 classes"):
        model.fit([(X, np.zeros(40, int))])
    with pytest.raises(ValueError, match="must be in the partitions"):
        model.fit(cut(X, y), sample_weight=np.ones(40))
    with pytest.raises(ValueError, match="client is for partitions"):
        model.fit(X, y, client="tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match="solver must be 'auto'"):
        KernelLogisticRegression(kernel_approx=5, solver="newton").fit(cut(X, y))
    with pytest.raises(ValueError, match="one type"):
        model.fit([(X, y), (X, y.astype(str))])


def test_the_limit_on_passes_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualfield.models.kernel.point_training._LEAST_ROWS", 50)
    monkeypatch.setattr("dualfield.models.kernel.point_training._ROWS_PER_POINT", 1)
    X, y = points(2000, 2)
    with pytest.warns(ConvergenceWarning, match="passes"):
        model = KernelLogisticRegression(kernel_approx=20, C=10.0, tol=1e-9, max_iter=3, gamma=GAMMA).fit(cut(X, y))
    assert model.n_rounds_ == 5
    assert len(model.trace_) == 3


MEMORY = """
    import resource, sys
    import numpy as np
    from dualfield import KernelLogisticRegression

    class Part:
        def __init__(self, seed):
            self.seed = seed

        def __call__(self):
            X = np.random.default_rng(self.seed).normal(size=(10_000, 20))
            return X, (X[:, 0] * X[:, 1] > 0).astype(int)

    model = KernelLogisticRegression(kernel_approx=40, cache_size=2e7, gamma=0.05)
    model.fit([Part(0)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.fit([Part(seed) for seed in range(int(sys.argv[1]))])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, model.n_partitions_)
"""


def test_memory_does_not_grow_with_the_rows() -> None:
    """A partition has 1.6 MB, all of them 64 MB, and their features would have 128 MB."""
    code = textwrap.dedent(MEMORY)
    found = subprocess.run(
        [sys.executable, "-c", code, "40"], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    grown, n_partitions = (int(word) for word in found.split())
    assert n_partitions == 40
    assert grown < 16_000  # kB
