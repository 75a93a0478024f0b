"""Paths over C: each fit reaches what a separate one reaches, from another start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dualfield import CRF, StructuredSVM
from dualfield.structures import Chain
from dualfield.tuning.path import _hinge_start, _lagrange, fit_path

CS = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0]


def sentences(n=60, seed=0):
    """Return sequences of noisy attributes, and labels that depend on their neighbours."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(2, 8))
        codes = np.cumsum(rng.integers(0, 2, length)) % 3
        noisy = np.where(rng.random(length) < 0.2, rng.integers(0, 3, length), codes)
        X.append([[f"w{code}", f"v{rng.integers(0, 30)}", "bias"] for code in noisy])
        y.append([("B-x", "I-x", "O")[code] for code in codes])
    return X, y


def path(estimator, X, y, Cs=CS):
    data = estimator.set_params(C=1.0)._read(X, y, None, None)
    return list(fit_path(estimator, data, Cs))


@pytest.mark.parametrize(
    "estimator",
    [
        CRF(tol=1e-8),
        CRF(tol=1e-8, solver="lbfgs", start_stop=True),
        CRF(Chain(order=2), tol=1e-8),
        CRF(tol=1e-8, cost="hamming", class_weight="balanced"),
        CRF(tol=1e-6, l1_ratio=0.3),
        StructuredSVM(tol=1e-6),
        StructuredSVM(tol=1e-6, solver="cutting_plane", max_iter=100_000),
        StructuredSVM(Chain(order=2), tol=1e-5),
    ],
    ids=["crf", "lbfgs", "order 2", "cost", "l1", "hinge", "cutting plane", "hinge of order 2"],
)
def test_a_path_reaches_the_optima_of_separate_fits(estimator):
    X, y = sentences()
    for fitted in path(estimator, X, y):
        alone = type(estimator)(**estimator.get_params() | {"C": fitted.C}).fit(X, y)
        assert fitted.dual_gap_ <= estimator.tol * fitted.objective_ * 1.001
        # Both are within their gaps of the minimum.
        assert abs(fitted.objective_ - alone.objective_) <= max(fitted.dual_gap_, alone.dual_gap_)
        distance = np.sqrt(2 * fitted.dual_gap_) + np.sqrt(2 * alone.dual_gap_)
        if getattr(estimator, "l1_ratio", 0.0) == 0.0:  # strong convexity
            assert np.linalg.norm(fitted.parameters_ - alone.parameters_) <= distance
        if estimator.tol <= 1e-8:
            assert fitted.predict(X) == alone.predict(X)


def test_the_dual_point_of_the_hinge_goes_along():
    """Mass moved to the truth leaves the weights as they are, and the dual value does not fall."""
    X, y = sentences()
    model = StructuredSVM(C=1.0, tol=1e-6)
    data = model._read(X, y, None, None)
    first = model._fit_data(data, None)
    begun = StructuredSVM(C=1.0, tol=1e-6, max_iter=1)
    start = _hinge_start(data, [(1.0, first)], 4.0)
    later = begun._fit_data(replace(data, weights=4.0 * data.weights), start)
    assert later.objective - later.gap >= (first.objective - first.gap) * (1 - 1e-6)
    assert float(np.sum(start.dual["edge_masses"])) == pytest.approx(data.nodes.n_nodes)


def test_starts_save_passes():
    X, y = sentences(200)
    warm = sum(model.trace_.passes[-1] for model in path(CRF(tol=1e-6, solver="lbfgs"), X, y))
    cold = sum(CRF(C=C, tol=1e-6, solver="lbfgs").fit(X, y).trace_.passes[-1] for C in CS)
    assert warm < 0.8 * cold


def test_partly_labelled_sequences_start_anew():
    """Their objective is not convex: another start could end in another minimum."""
    X, y = sentences()
    y[0] = [None] * len(y[0])
    for fitted in path(CRF(tol=1e-4), X, y, [0.1, 1.0, 10.0]):
        alone = CRF(C=fitted.C, tol=1e-4).fit(X, y)
        assert np.array_equal(fitted.parameters_, alone.parameters_)


def test_epochs_start_anew():
    X, y = sentences()
    for fitted in path(CRF(solver="sgd", max_iter=3), X, y, [0.1, 1.0]):
        assert np.array_equal(fitted.parameters_, CRF(C=fitted.C, solver="sgd", max_iter=3).fit(X, y).parameters_)


def test_extrapolation_is_exact_for_polynomials():
    places = [0.0, 1.0, 2.5]
    for degree in range(3):
        values = [place**degree for place in places]
        shares = _lagrange(places, 4.0)
        assert float(np.dot(shares, values)) == pytest.approx(4.0**degree)
