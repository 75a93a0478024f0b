"""Planes of networks against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualfield.objectives import NetworkPlanes
from dualfield.regularisers import SquaredNorm
from dualfield.structures import Network
from dualfield.structures.network import groups
from dualfield.structures.network import hidden as conditioned
from tests.structures.network_problems import NetworkProblem, completions, network_problems, uses


@settings(max_examples=80, deadline=None)
@given(network_problems(), st.sampled_from([0, 4096]), st.sampled_from([0, 16]), st.booleans())
def test_planes_by_enumeration(problem: NetworkProblem, listed: int, few: int, with_costs: bool) -> None:
    network, theta = problem.network, problem.theta
    costs = None
    if with_costs:
        rng = np.random.default_rng(len(theta))
        costs = [rng.random((size, size)) * (1.0 - np.eye(size)) for size in network.n_values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditioned, "MOST_LISTED", listed)
        patch.setattr(groups, "FEW_EXAMPLES", few)
        weights, norm = np.ones(len(problem.codes)), SquaredNorm(network.n_parameters)
        planes = NetworkPlanes(network, problem.codes, problem.hidden, weights=weights, regulariser=norm, costs=costs)
        found = planes.planes(theta)
        part = np.arange(len(problem.codes))[::-2]
        some = planes.planes(theta, part)
    each = costs or [1.0 - np.eye(size) for size in network.n_values]
    for i, (row, hidden) in enumerate(zip(problem.codes, problem.hidden, strict=True)):
        members = np.flatnonzero(hidden)
        known = []
        for other in completions(network, row, hidden):
            offset = sum(each[v][row[v], other[v]] for v in members)
            known.append((offset, uses(network, other) - uses(network, row)))
        highest = max(offset + slope @ theta for offset, slope in known)
        slope = found.slopes.toarray()[i]
        assert found.values(theta)[i] == pytest.approx(highest, rel=0, abs=1e-12)
        assert any(offset == pytest.approx(found.offsets[i]) and (slope == a).all() for offset, a in known)
    assert found.slopes.nnz == np.count_nonzero(found.slopes.toarray())
    np.testing.assert_array_equal(some.examples, part)
    np.testing.assert_array_equal(some.offsets, found.offsets[part])
    np.testing.assert_array_equal(some.slopes.toarray(), found.slopes.toarray()[part])
    assert some.keys == [found.keys[i] for i in part]


@settings(max_examples=25, deadline=None)
@given(network_problems(most_variables=3))
def test_equal_keys_are_equal_planes(problem: NetworkProblem) -> None:
    weights, norm = np.ones(len(problem.codes)), SquaredNorm(problem.network.n_parameters)
    planes = NetworkPlanes(problem.network, problem.codes, problem.hidden, weights=weights, regulariser=norm)
    rng = np.random.default_rng(0)
    met: dict[object, tuple[float, bytes]] = {}
    for _ in range(6):
        found = planes.planes(rng.normal(size=problem.network.n_parameters))
        for i, key in enumerate(found.keys):
            plane = (float(found.offsets[i]), found.slopes.toarray()[i].tobytes())
            assert met.setdefault((i, key), plane) == plane
    again = planes.planes(problem.theta)
    assert again.keys == planes.planes(problem.theta).keys


def test_chains_of_hidden_variables_that_cannot_be_listed() -> None:
    """Forty hidden variables: elimination finds what a walk over the chain finds."""
    n, rng = 40, np.random.default_rng(1)
    network = Network([3] * n, [[]] + [[v - 1] for v in range(1, n)], [0] + [1] * (n - 1))
    theta = np.log(rng.dirichlet(np.ones(3), 4)).ravel()
    codes = rng.integers(3, size=(2, n)).astype(np.int32)
    norm = SquaredNorm(network.n_parameters)
    planes = NetworkPlanes(network, codes, np.ones((2, n), dtype=bool), weights=np.ones(2), regulariser=norm).planes(
        theta
    )
    start, move = theta[:3], theta[3:].reshape(3, 3)
    for i, row in enumerate(codes):
        best = start + (np.arange(3) != row[0])
        for value in row[1:]:
            best = (best[:, None] + move).max(axis=0) + (np.arange(3) != value)
        truth = start[row[0]] + move[row[:-1], row[1:]].sum()
        assert planes.values(theta)[i] == pytest.approx(best.max() - truth, abs=1e-10)


def test_too_wide_is_said_before_the_work_begins() -> None:
    network = Network([10] * 5, [[], [], [], [], [0, 1, 2, 3]])
    hidden, norm = np.ones((1, 5), dtype=bool), SquaredNorm(network.n_parameters)
    with pytest.raises(ValueError, match="are too many to be predicted exactly"):
        NetworkPlanes(
            network, np.zeros((1, 5), dtype=np.int32), hidden, weights=np.ones(1), regulariser=norm, max_table=10**4
        ).planes(np.zeros(network.n_parameters))
