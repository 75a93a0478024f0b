"""Ctrl-C while code runs that does not look at signals itself: nothing that was reached is lost."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import KernelLogisticRegression, StructuredSVM
from dualfield.solvers import Status
from tests.reference import kernel_logistic as reference

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
Y = (X[:, 0] + RNG.normal(size=400) > 0).astype(int)


def kernel_with_an_interrupt(at):
    """An RBF kernel; its call for whole rows with this number is interrupted, as by Ctrl-C."""
    calls = 0

    def kernel(A, B):
        nonlocal calls
        calls += len(B) == len(X)
        if calls == at:
            calls += 1
            raise KeyboardInterrupt
        return rbf_kernel(A, B, gamma=0.5)

    return kernel


@pytest.mark.parametrize("solver", ["working_set", "newton", "smo", "online", "lbfgs"])
def test_a_kernel_function_that_is_interrupted(solver):
    """Its values are computed again and again: there is no room for all rows."""
    settings = {"C": 1e3, "tol": 1e-10, "cache_size": 3 * 8 * 400, "solver": solver, "random_state": 0}
    # In one of the first passes: 30 of them make 200 calls and more. L-BFGS has no point before its first iteration.
    model = KernelLogisticRegression(kernel_with_an_interrupt(250 if solver == "lbfgs" else 100), **settings)
    with pytest.warns(ConvergenceWarning, match="interrupted; the model is the best point so far"):
        model.fit(X, Y)
    assert model.status_ is Status.INTERRUPTED
    K = rbf_kernel(X, gamma=0.5)
    value, _ = reference.gap(K, Y, 1e3, model.dual_coef_, model.intercept_, True)
    best = KernelLogisticRegression("precomputed", C=1e3, tol=1e-6).fit(K, Y)
    assert value <= model.objective_ * (1 + 1e-6)
    assert model.dual_gap_ >= model.objective_ - best.objective_


def test_before_there_is_a_point_the_old_model_stays():
    model = KernelLogisticRegression().fit(X, Y)
    before = model.predict_proba(X)
    for solver in ("auto", "lbfgs"):
        model.set_params(kernel=kernel_with_an_interrupt(1), solver=solver)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.fixture
def sigint():
    """The handler that Python has by itself, also where SIGINT is ignored from outside."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("sigint")
def test_a_quadratic_programme_that_is_interrupted(monkeypatch):
    clarabel = pytest.importorskip("clarabel")
    solve = clarabel.DefaultSolver

    class Slow:
        def __init__(self, *args):
            self._solver = solve(*args)

        def set_termination_callback(self, callback):
            self._solver.set_termination_callback(callback)

        def solve(self):
            signal.raise_signal(signal.SIGINT)
            return self._solver.solve()

    words, labels = [X[:30], X[30:60]], [Y[:30].tolist(), Y[30:60].tolist()]
    best = StructuredSVM(tol=1e-6).fit(words, labels)
    monkeypatch.setattr(clarabel, "DefaultSolver", Slow)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = StructuredSVM(solver="marginal").fit(words, labels)
    assert model.status_ is Status.INTERRUPTED
    assert np.isfinite(model.parameters_).all()
    assert model.dual_gap_ >= model.objective_ - best.objective_
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
