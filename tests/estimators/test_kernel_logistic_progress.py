"""What a fit tells while it runs and when it stops early."""

from __future__ import annotations

import signal
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualfield import KernelLogisticRegression
from dualfield.solvers import Status
from tests.estimators.problems import GAMMA, SOLVERS, clouds
from tests.interrupting import interrupted


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", SOLVERS)
def test_trace(solver, n_classes):
    problem = clouds(n_classes, n=150)
    model = KernelLogisticRegression(gamma=GAMMA, solver=solver, C=2.0, tol=1e-4, random_state=0)
    model.fit(problem.X, problem.y)
    trace = model.trace_
    columns = [trace.objective, trace.dual, trace.gap, trace.kernel_passes, trace.seconds]
    assert {np.asarray(column).shape for column in columns} == {np.shape(trace.gap)}
    assert len(trace.gap) >= 2
    assert all(np.isfinite(column).all() for column in columns)
    assert (np.diff(trace.kernel_passes) >= 0).all()
    assert (np.diff(trace.seconds) >= 0).all()
    assert trace.kernel_passes[-1] > 0
    assert np.all(trace.gap >= 0)
    np.testing.assert_allclose(trace.gap, trace.objective - trace.dual, rtol=1e-6, atol=1e-8 * model.objective_)
    assert trace.gap[-1] == pytest.approx(model.dual_gap_, rel=1e-6, abs=1e-12 * model.objective_)
    assert trace.objective[-1] == pytest.approx(model.objective_, rel=1e-9)
    # Every row is a true bound, not only the last one.
    assert trace.dual.max() <= model.objective_ * (1 + 1e-7)
    assert trace.objective.min() >= (model.objective_ - model.dual_gap_) * (1 - 1e-7)
    assert model.status_ == Status.CONVERGED
    assert model.n_iter_ >= 1
    assert model.solver_ in {"working_set", "newton", "smo", "online", "lbfgs"}
    if solver != "auto":
        assert model.solver_ == solver


@pytest.mark.parametrize("solver", SOLVERS)
def test_verbose(solver, capfd):
    problem = clouds(3, n=150)
    model = KernelLogisticRegression(gamma=GAMMA, solver=solver, tol=1e-4, random_state=0)
    model.fit(problem.X, problem.y)
    assert capfd.readouterr() == ("", "")
    model.set_params(verbose=1).fit(problem.X, problem.y)
    said = "".join(capfd.readouterr())
    assert "gap" in said
    assert said.endswith("\n")
    model.set_params(verbose=2).fit(problem.X, problem.y)
    more = "".join(capfd.readouterr())
    assert len(more.splitlines()) > max(2, len(said.splitlines()))
    assert more.count("gap") >= len(more.splitlines()) - 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_too_few_iterations_are_told_with_gap_tolerance_and_remedy(solver):
    problem = clouds(3, n=150)
    model = KernelLogisticRegression(gamma=GAMMA, solver=solver, C=1e3, tol=1e-9, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"(?s)(?=.*gap)(?=.*1e-09)(?=.*max_iter)") as caught:
        model.fit(problem.X, problem.y)
    assert len(caught) == 1
    assert model.status_ != Status.CONVERGED
    assert np.isfinite(model.dual_gap_)
    assert model.dual_gap_ > 1e-9 * model.objective_
    best = problem.optimum(1e3, True).objective
    assert model.objective_ - model.dual_gap_ <= best * (1 + 1e-7)
    assert best <= model.objective_ * (1 + 1e-7)
    assert model.predict(problem.X).shape == (150,)


def test_a_tolerance_that_arithmetic_cannot_reach_ends_all_the_same():
    problem = clouds(2)
    model = KernelLogisticRegression(gamma=GAMMA, tol=1e-300)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(problem.X, problem.y)
    assert model.dual_gap_ <= 1e-10 * model.objective_
    assert (model.status_ == Status.CONVERGED) == (not caught)


LONG_FIT = """
    import json, warnings
    import numpy as np
    from dualfield import KernelLogisticRegression

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2500, 4)), rng.integers(0, {n_classes}, 2500)
    settings = dict(gamma=0.05, C=1e5, tol=1e-12, max_iter={max_iter}, random_state=0, verbose=1)
    model = KernelLogisticRegression(solver={solver!r}, **settings)
    print("BEGIN")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    print(json.dumps({{
        "warnings": [str(w.message) for w in caught], "gap": model.dual_gap_, "status": model.status_.name,
        "labels": len(model.predict(X[:5])),
    }}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
@pytest.mark.parametrize(
    ("solver", "n_classes"), [("auto", 2), ("auto", 4), ("working_set", 4), ("newton", 4), ("smo", 2), ("online", 2)]
)
def test_interrupt(solver, n_classes):
    """SIGINT during a fit without end: it returns, fitted, and says how far it came."""
    told = interrupted(LONG_FIT.format(solver=solver, n_classes=n_classes, max_iter=10**9))
    assert told["status"] == "INTERRUPTED"
    assert [text for text in told["warnings"] if "gap" in text]
    assert told["gap"] > 0
    assert told["labels"] == 5


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_a_fit_that_ignores_interrupts_goes_on():
    """Under nohup, or in the background of a shell: SIGINT neither ends the process nor the fit."""
    told = interrupted(LONG_FIT.format(solver="working_set", n_classes=2, max_iter=3), listens=False)
    assert told["status"] == "ITERATION_LIMIT"
    assert told["labels"] == 5


def test_the_interrupt_is_not_swallowed_for_good():
    """After a fit, Ctrl-C means again what it meant before."""
    before = signal.getsignal(signal.SIGINT)
    problem = clouds(2)
    KernelLogisticRegression().fit(problem.X, problem.y)
    assert signal.getsignal(signal.SIGINT) is before
