"""Above 2500 points the kernel matrix is in single precision; small gaps are claimed in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, xlogy
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import KernelLogisticRegression


def exact_gap(model, X, y, C, gamma):
    """Primal minus dual at the returned point, and the primal, all in double precision."""
    B = model.dual_coef_.T
    scores = rbf_kernel(X, gamma=gamma) @ B
    log_q = log_softmax(scores + model.intercept_, axis=1)
    p = np.clip(np.eye(len(model.classes_))[y] - B / C, 0, 1)
    primal = 0.5 * np.vdot(B, scores) - C * log_q[np.arange(len(y)), y].sum()
    return primal, primal - (-0.5 * np.vdot(B, scores) - C * xlogy(p, p).sum())


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_gap_of_a_single_precision_fit(tol):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 2600)
    X = rng.normal(size=(2600, 30)) + 0.8 * np.eye(3, 30)[y]  # more than 24 features: distances by products
    C, gamma = 100.0, 0.02
    model = KernelLogisticRegression(C=C, gamma=gamma, tol=tol, solver="working_set", n_jobs=2).fit(X, y)
    primal, gap = exact_gap(model, X, y, C, gamma)
    assert -1e-9 * primal <= gap <= 1.1 * tol * primal
    assert model.objective_ == pytest.approx(primal, rel=max(1e-9, 0.1 * tol))
    assert np.abs(model.dual_coef_.sum(axis=1)).max() <= 1e-9 * C * len(y)
