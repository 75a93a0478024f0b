"""Structural SVMs without a choice of solver, on features as they come: with offsets, and of different scales."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dualfield import StructuredSVM
from dualfield.regularisers import SquaredNorm
from dualfield.solvers import Status
from dualfield.solvers.planes import mixture_master, simplex_master
from dualfield.solvers.planes.mixture_master import MixtureMaster
from tests.reference.structured_svm import PlaneTable, crammer_singer, minimum, value


def raw(n=120, d=6, n_classes=3, seed=0):
    """Classes that overlap, in columns of scale 1 to 1,000 whose offsets are larger than what they vary by."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    Z = rng.normal(size=(n, d)) + np.eye(n_classes, d)[y]
    return 10.0 ** np.linspace(0.0, 3.0, d) * (Z + rng.uniform(-5.0, 5.0, d)), y


def single_tables(X, y, C):
    n_classes, tables = int(y.max()) + 1, []
    for x, true in zip(X, y, strict=True):
        slopes = np.zeros((n_classes, n_classes, X.shape[1]))
        for k in range(n_classes):
            slopes[k, k] += x
            slopes[k, true] -= x
        tables.append(PlaneTable(1.0 - np.eye(n_classes)[true], slopes.reshape(n_classes, -1), C))
    return tables


def offset_chains(offset, n=100, size=4, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n * size, 4))
    y = (Z[:, 0] + rng.normal(size=len(Z)) > 0).astype(int)
    return list((Z + offset).reshape(n, size, 4)), [labels.tolist() for labels in y.reshape(n, size)]


def chain_tables(X, y, C):
    """Every labelling of every sequence; weights of labels by columns, then those of transitions."""

    def features(x, labels):
        node, pairs = np.zeros((2, x.shape[1])), np.zeros((2, 2))
        np.add.at(node, labels, x)
        np.add.at(pairs, (labels[:-1], labels[1:]), 1.0)
        return np.concatenate([node.ravel(), pairs.ravel()])

    tables = []
    for x, true in zip(X, y, strict=True):
        labellings = [np.array(labels) for labels in itertools.product(range(2), repeat=len(true))]
        slopes = np.array([features(x, labels) - features(x, np.array(true)) for labels in labellings])
        tables.append(PlaneTable(np.array([float((labels != true).sum()) for labels in labellings]), slopes, C))
    return tables


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # of the peer: any point of it will do
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_unscaled_columns(C):
    X, y = raw()
    model = StructuredSVM("single", C=C, random_state=0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.trace_.passes[-1] < 2500  # swaps alone make the 10,000 that are allowed, and end far away
    assert model.objective_ == pytest.approx(crammer_singer(X, y, model.coef_, C), rel=1e-9)
    tables = single_tables(X, y, C)
    best = value(tables, minimum(tables)[1])
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-9)
    assert model.objective_ <= best * (1.0 + 2e-3)


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "simplicial"])
@pytest.mark.parametrize("offset", [10.0, 100.0])
def test_chains_with_an_offset(offset, solver):
    X, y = offset_chains(offset)
    model = StructuredSVM(C=10.0, solver=solver, features="all", random_state=0).fit(X, y)
    tables = chain_tables(X, y, 10.0)
    _, w = minimum(tables)
    best = value(tables, w)
    assert model.status_ is Status.CONVERGED
    assert model.trace_.passes[-1] < (700 if solver == "auto" else 50)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-9)
    assert best * (1.0 - 1e-4) <= model.objective_ <= best * (1.0 + 2e-3)


def test_the_master_of_cutting_planes_takes_few_steps(monkeypatch):
    """It made a thousand in each round, and was not done."""
    steps = []
    own = simplex_master.SimplexMaster._step
    monkeypatch.setattr(
        simplex_master.SimplexMaster, "_step", lambda self, *a: steps.append(len(self.shares)) or own(self, *a)
    )
    X, y = offset_chains(10.0)
    model = StructuredSVM(C=10.0, solver="cutting_plane").fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert len(steps) < 40 * model.n_iter_


def test_the_course_of_all_stages_is_one():
    X, y = raw()
    seen = []
    model = StructuredSVM("single", C=100.0, random_state=0)
    model.fit(X, y, monitor=lambda moment, now: seen.append((moment.passes, moment.seconds)) and None)
    assert model.solver_ == "simplicial"
    passes, seconds = np.array(seen).T
    assert (np.diff(passes) > 0.0).all()
    assert (np.diff(seconds) >= 0.0).all()
    trace = model.trace_
    assert (np.diff(trace.passes) >= 0.0).all()
    late = trace.passes > 320.0
    assert (np.diff(trace.objective[late]) <= 0.0).all()
    assert (np.diff(trace.dual[late]) >= 0.0).all()
    assert trace.gap[-1] == pytest.approx(model.dual_gap_, rel=1e-9)


def test_a_monitor_stops_the_second_stage():
    X, y = raw()
    model = StructuredSVM("single", C=100.0, tol=1e-9, random_state=0)
    model.fit(X, y, monitor=lambda moment, now: moment.passes > 305.0)
    assert model.status_ is Status.STOPPED
    assert model.solver_ == "simplicial"
    assert model.objective_ == pytest.approx(crammer_singer(X, y, model.coef_, 100.0), rel=1e-9)


def test_checkpoints_of_the_first_stage_lead_to_the_second(tmp_path):
    X, y = raw()
    whole = StructuredSVM("single", C=1.0, random_state=0).fit(X, y)
    kept = StructuredSVM("single", C=1.0, random_state=0)
    kept.fit(X, y, monitor=lambda moment, now: moment.passes > 100.0, checkpoint=tmp_path / "state")
    assert (kept.status_, kept.solver_) == (Status.STOPPED, "flow_swap")
    kept.fit(X, y, checkpoint=tmp_path / "state")
    assert kept.solver_ == "simplicial"
    assert kept.status_ is Status.CONVERGED
    np.testing.assert_allclose(kept.parameters_, whole.parameters_, rtol=1e-6, atol=1e-9)


def test_well_scaled_features_are_left_to_swaps():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 6)) + np.eye(3, 6)[y]
    assert StructuredSVM("single", random_state=0).fit(X, y).solver_ == "flow_swap"


@pytest.mark.parametrize("positive", [None, np.array([True, False, True])])
def test_systems_of_planes_and_of_parameters_have_the_same_solution(monkeypatch, positive):
    rng = np.random.default_rng(1)
    slopes = 10.0 ** np.array([0.0, 1.0, 2.0]) * (rng.normal(size=(40, 3)) + 3.0)
    offsets, blocks = rng.uniform(0.0, 2.0, 40), np.arange(40) % 5

    def solved():
        master = MixtureMaster(SquaredNorm(3, positive), 5)
        master.add(mixture_master.scipy.sparse.csr_array(slopes), offsets, blocks)
        master.solve(1e-10)
        return master

    by_parameters = solved()
    own = mixture_master._Way.__init__

    def by_planes_only(self, *arguments):
        own(self, *arguments)
        self._dense = None

    monkeypatch.setattr(mixture_master._Way, "__init__", by_planes_only)
    by_planes = solved()
    assert by_parameters.lack() <= 1e-9
    assert by_parameters.value == pytest.approx(by_planes.value, rel=1e-8)
    np.testing.assert_allclose(by_parameters.response.w, by_planes.response.w, rtol=1e-4, atol=1e-7)
