"""Elastic net and squared norm: conjugates against a search over all parameters, and the shares against a grid."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.regularisers import ElasticNet, SquaredNorm

POSITIVE = np.array([True, False, True, False])
REGULARISERS = {
    **{f"elastic net {ratio}": ElasticNet(ratio) for ratio in (0.0, 0.3, 0.999)},
    "squared norm": SquaredNorm(4),
    "signs": SquaredNorm(4, POSITIVE),
}


def allowed(regulariser, w):
    return w if regulariser.positive is None else np.where(regulariser.positive, np.abs(w), w)


@pytest.mark.parametrize("name", REGULARISERS)
def test_conjugate_is_the_maximum(name):
    """R is a sum over parameters: one at a time is searched on a fine grid."""
    regulariser, rng = REGULARISERS[name], np.random.default_rng(0)
    v, grid = 1.5 * rng.normal(size=4), np.linspace(-3.0, 3.0, 20001)
    if isinstance(regulariser, ElasticNet):
        v = np.clip(v, -regulariser.l1_ratio - 3 * (1 - regulariser.l1_ratio), None)
        v = np.clip(v, None, regulariser.l1_ratio + 3 * (1 - regulariser.l1_ratio))
    best = 0.0
    for j in range(4):
        points = allowed(regulariser, np.outer(grid, np.eye(4)[j]))
        best += max(float(w @ v) - regulariser.value(w) for w in points)
    assert regulariser.conjugate(v) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("name", REGULARISERS)
def test_excess_is_what_fenchels_inequality_leaves(name):
    regulariser, rng = REGULARISERS[name], np.random.default_rng(1)
    for _ in range(20):
        w, v = allowed(regulariser, rng.normal(size=4)), rng.normal(size=4)
        excess = regulariser.excess(w, v)
        assert excess >= 0.0
        assert excess == pytest.approx(regulariser.value(w) + regulariser.conjugate(v) - w @ v, rel=1e-9)


@pytest.mark.parametrize("name", [*REGULARISERS, "lasso"])
def test_share_is_the_best(name):
    regulariser, rng = {**REGULARISERS, "lasso": ElasticNet(1.0)}[name], np.random.default_rng(2)
    for entropy in (0.0, 0.1, 1.0, 100.0):
        v = 2.0 * rng.normal(size=4)
        bounds = [s * entropy - regulariser.conjugate(s * v) for s in np.linspace(0.0, 1.0, 1001)]
        share = regulariser.share(entropy, v)
        assert 0.0 <= share <= 1.0
        assert share * entropy - regulariser.conjugate(share * v) >= max(bounds) - 1e-9


def test_lasso():
    assert ElasticNet(1.0).conjugate(np.array([1.0, -0.5])) == 0.0
    assert ElasticNet(1.0).conjugate(np.array([1.001, -0.5])) == np.inf


@pytest.mark.parametrize("wrong", [-0.1, 1.5, np.nan])
def test_refused(wrong):
    with pytest.raises(ValueError, match=r"l1_ratio must be a float in \[0, 1\]"):
        ElasticNet(wrong)
