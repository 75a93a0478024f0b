"""Tables near a reference: projections, conjugates and Newton's equations against cvxpy, differences and conditions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import wrightomega

from dualfield import _native
from dualfield.regularisers import SquaredNorm, TableDivergence

FLOOR = 1e-11


def drawn(seed, sizes=(1, 2, 3, 7), unused=2):
    """Tables whose rows do not stand together, with some parameters that are none."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.full(unused, -1)])
    rng.shuffle(rows)
    reference = np.where(rows >= 0, rng.random(len(rows)) + 0.02, 0.0)
    return TableDivergence(reference, rows, FLOOR), reference, rows, rng


def row_sums(values, rows):
    return np.bincount(rows[rows >= 0], values[rows >= 0])


@pytest.mark.parametrize("z", [-700.0, -50.0, -2.0, -0.3, 0.0, 1.0, 1.5, 40.0, 1e4])
def test_projection_of_one_entry_is_known(z):
    """A row of one entry has theta = min(target, 0), whatever the multiplier; with a multiplier, Wright's function."""
    theta, multiplier = _native.project_rows(np.array([z]), np.array([0, 1]), -800.0, 1)
    assert theta[0] == pytest.approx(min(z, 0.0), abs=1e-12)
    if z > 0.0:
        assert theta[0] == pytest.approx(z - wrightomega(z + np.log(multiplier[0])).real, abs=1e-9 * z)


@given(seed=st.integers(0, 2**20), size=st.integers(1, 60), scale=st.sampled_from([0.1, 1.0, 30.0, 1e4]))
@settings(max_examples=100, deadline=None)
def test_projection_meets_its_conditions(seed, size, scale):
    target = scale * np.random.default_rng(seed).normal(size=size)
    tables = TableDivergence(np.ones(size), np.zeros(size, dtype=np.int64), 1e-11)
    theta = tables.nearest(target)
    assert np.exp(theta).sum() <= 1.0 + 1e-12
    free = theta > np.log(1e-11) + 1e-9
    push = target - theta  # nu exp(theta) where the floor does not bind, and no more than that where it does
    if np.exp(np.clip(target, np.log(1e-11), 1.0)).sum() <= 1.0:
        np.testing.assert_array_equal(push[free], 0.0)
    else:
        assert np.exp(theta).sum() == pytest.approx(1.0, abs=1e-12)
        at = int(theta.argmax())
        nu = push[at] / np.exp(theta[at])
        np.testing.assert_allclose(push[free], nu * np.exp(theta[free]), atol=1e-9 * max(scale, 1.0))
        assert (push[~free] <= nu * 1e-11 + 1e-9 * scale).all()


@pytest.mark.parametrize("seed", range(3))
def test_response_is_the_minimiser(seed):
    import cvxpy as cp

    tables, c, rows, rng = drawn(seed)
    slope, anchor = rng.normal(size=len(c)), tables.nearest(rng.normal(size=len(c)))
    slope[rows < 0] = 5.0  # what is no parameter is not looked at
    found = tables.respond(slope, anchor, 0.3)
    theta = cp.Variable(len(c))
    inside = [cp.log_sum_exp(theta[np.flatnonzero(rows == i)]) <= 0 for i in range(rows.max() + 1)]
    inside += [theta >= np.log(FLOOR), theta[np.flatnonzero(rows < 0)] == 0]
    weight = np.where(rows >= 0, slope - c, 0.0)
    problem = cp.Problem(cp.Minimize(weight @ theta + 0.15 * cp.sum_squares(theta - anchor)), inside[:-1])
    problem.solve(solver=cp.CLARABEL)
    used = rows >= 0
    least = -c[used] @ tables.origin()[used]
    assert found.value == pytest.approx(problem.value - least, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(found.w[used], theta.value[used], atol=1e-4)
    assert (found.w[~used] == 0.0).all()


@pytest.mark.parametrize("seed", range(4))
def test_gradient_and_curvature_are_those_of_the_value(seed):
    """Differences of the value are theta, and differences of theta are the curvature of Newton's equations."""
    tables, c, rows, rng = drawn(seed)
    slope, anchor = 0.5 * rng.normal(size=len(c)), tables.nearest(rng.normal(size=len(c)))
    planes = rng.normal(size=(3, len(c)))
    planes[:, rows < 0] = 0.0
    step = 1e-5
    ends = [[tables.respond(slope + sign * step * plane, anchor, 0.2) for plane in planes] for sign in (1, -1)]
    middle = tables.respond(slope, anchor, 0.2)
    for plane, up, down in zip(planes, *ends, strict=True):
        assert (up.value - down.value) / (2 * step) == pytest.approx(plane @ middle.w, rel=1e-6, abs=1e-7)
    turned = np.array([(up.w - down.w) / (2 * step) for up, down in zip(*ends, strict=True)])
    inside = tables.interior(scipy.sparse.csr_array(planes), middle.w, anchor, 0.2)
    for _ in range(60):  # to the point itself: Newton's method, the slope held fast
        inside.linearise(slope)
        inside.turn(np.zeros(len(c)), 1e-11)
        inside.move(min(1.0, 0.9 * inside.longest()))
    np.testing.assert_allclose(inside.w, middle.w, atol=1e-8)
    np.testing.assert_allclose(inside.gram(), -planes @ turned.T, rtol=1e-5, atol=1e-6)
    assert inside.decrement < 1e-15


@pytest.mark.parametrize("seed", range(4))
def test_bound_is_the_minimum(seed):
    """Also where slopes exceed the reference: then entries are at the floor."""
    tables, c, rows, rng = drawn(seed)
    used = rows >= 0
    least = -c[used] @ tables.origin()[used]
    for scale in (0.0, 0.3, 3.0):
        slope = scale * rng.random(len(c))
        bound = least - tables.conjugate(-slope)
        for pull in (1e-2, 1e-4, 1e-6):  # the anchor's term vanishes
            theta = tables.respond(slope, tables.origin(), pull).w
            assert (slope - c)[used] @ theta[used] >= bound - 1e-12 * abs(bound) - 1e-12
        assert (slope - c)[used] @ theta[used] == pytest.approx(bound, rel=1e-4, abs=1e-4)
    everything = least - tables.conjugate(-c - 1.0)  # all at the floor
    assert everything == pytest.approx(used.sum() * np.log(FLOOR))


def test_the_origin_is_the_reference():
    tables, c, rows, _ = drawn(0)
    theta = tables.origin()
    np.testing.assert_allclose(row_sums(np.exp(theta), rows), 1.0, rtol=1e-14)
    used = rows >= 0
    np.testing.assert_allclose(theta[used], np.log(c[used] / row_sums(c, rows)[rows[used]]), rtol=0, atol=1e-12)
    assert tables.value(theta) == pytest.approx(tables.conjugate(np.zeros(len(c))), rel=1e-12)
    np.testing.assert_allclose(tables.missing_mass(theta - np.log(2.0)), 0.5, atol=1e-12)


def test_refusals():
    with pytest.raises(ValueError, match="reference must be above 0"):
        TableDivergence(np.array([0.5, 0.0]), np.array([0, 0]))
    with pytest.raises(ValueError, match="rows must number the rows"):
        TableDivergence(np.array([0.5, 0.5]), np.array([0, 2]))
    with pytest.raises(ValueError, match=r"floor must be in \(0, 1 / 2\)"):
        TableDivergence(np.array([0.5, 0.5]), np.array([0, 0]), floor=0.5)
    tables = TableDivergence(np.array([0.5, 0.5]), np.array([0, 0]))
    with pytest.raises(ValueError, match="needs an anchor and a pull above 0"):
        tables.respond(np.zeros(2))
    with pytest.raises(ValueError, match="needs an anchor and a pull above 0"):
        tables.interior(scipy.sparse.csr_array((1, 2)))


def test_signed_norm_turns_like_its_response():
    """Newton's equations of weights that must not be negative end at the response."""
    rng = np.random.default_rng(0)
    positive, slope = rng.random(6) < 0.5, rng.normal(size=6)
    norm = SquaredNorm(6, positive)
    inside = norm.interior(scipy.sparse.csr_array(np.eye(6)))
    for _ in range(60):
        inside.linearise(slope)
        inside.turn(np.zeros(6), 1e-14)
        inside.move(min(1.0, 0.9 * inside.longest()))
    np.testing.assert_allclose(inside.w, norm.respond(slope).w, atol=1e-6)
    assert norm.conjugate(-slope) == pytest.approx(0.5 * (norm.nearest(-slope) ** 2).sum())
