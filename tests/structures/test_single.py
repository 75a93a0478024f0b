"""Single against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr, logsumexp, softmax

from dualfield.structures import Scores, Single


@st.composite
def rows(draw):
    n, k = draw(st.integers(1, 300)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    node = draw(st.sampled_from([1.0, 100.0, 1e4])) * rng.standard_normal((n, k))
    if k > 1 and draw(st.booleans()):
        node[np.arange(n), rng.integers(0, k, n)] = -np.inf
    cost = rng.random((n, k)) if draw(st.booleans()) else None
    return node, cost


@settings(max_examples=80, deadline=None)
@given(rows(), st.sampled_from([1.0, 0.25, 3.0]), st.sampled_from([1, 3]))
def test_against_scipy(data, temperature, n_jobs):
    node, cost = data
    single = Single(node.shape[1])
    total = node if cost is None else node + cost
    options = {"cost": cost, "n_jobs": n_jobs}
    np.testing.assert_array_equal(single.argmax(node, **options), total.argmax(axis=1))
    np.testing.assert_array_equal(single.max_marginals(node, **options), total)
    want = temperature * logsumexp(total / temperature, axis=1)
    close = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(single.log_partition(node, temperature=temperature, **options), want, **close)
    p = softmax(total / temperature, axis=1)
    got = single.marginals(node, temperature=temperature, **options)
    # Rounding a score of 1e5 moves its exponential by 1e-11.
    np.testing.assert_allclose(got.node, p, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(got.log_partition, want, **close)
    entropy = single.entropy(node, temperature=temperature, **options)
    np.testing.assert_allclose(entropy, entr(p).sum(axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(single.log_partition(node, temperature=0, **options), total.max(axis=1))
    cold = single.marginals(node, temperature=0, cliques="sum", **options)
    np.testing.assert_array_equal(cold.node.argmax(axis=1), total.argmax(axis=1))
    np.testing.assert_array_equal(cold.node.sum(axis=1), 1.0)
    k = 3
    best = single.k_best(node, k, **options)
    order = np.argsort(-total, axis=1, kind="stable")[:, :k]
    for r in range(k):
        if r >= node.shape[1]:
            assert np.all(best.labels[r] == -1)
            continue
        score = np.take_along_axis(total, order[:, [r]], axis=1)[:, 0]
        np.testing.assert_array_equal(best.scores[:, r], score)
        np.testing.assert_array_equal(best.labels[r], np.where(score > -np.inf, order[:, r], -1))
    labels = total.argmin(axis=1)
    np.testing.assert_array_equal(single.score(node, labels, **options), total.min(axis=1))


def test_samples_follow_the_distribution():
    node = np.array([[0.0, 1.0, -np.inf, 2.0]])
    draws = Single(4).sample(node, 20_000, random_state=0)
    np.testing.assert_allclose(np.bincount(draws[:, 0], minlength=4) / 20_000, softmax(node)[0], atol=0.015)
    assert not np.any(draws == 2)
    np.testing.assert_array_equal(draws, Single(4).sample(node, 20_000, random_state=0))
    assert np.any(draws != Single(4).sample(node, 20_000, random_state=1))
    np.testing.assert_array_equal(Single(4).sample(node, 2, temperature=0), [[3], [3]])


def test_bad_input():
    single = Single(2)
    with pytest.raises(ValueError, match=r"scores must have 2 columns, one for each label\. Got shape \(3, 4\)"):
        single.argmax(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="Single takes no start scores"):
        single.argmax(Scores([[0.0, 1.0]], start=[0.0, 0.0]))
    with pytest.raises(ValueError, match="Single takes examples of one node each"):
        single.argmax(Scores(np.zeros((4, 2)), [0, 2, 4]))
    with pytest.raises(ValueError, match="The scores of example 1 must be finite"):
        single.marginals([[0.0, 1.0], [np.nan, 0.0]])
    with pytest.raises(ValueError, match="Example 1 has no allowed labelling"):
        single.marginals([[0.0, 1.0], [-np.inf, -np.inf]])
    with pytest.raises(ValueError, match="The 'n_labels' parameter of Single"):
        Single(0)
    assert Single(2) == Single(2)
    assert single.argmax(np.empty((0, 2))).shape == (0,)
