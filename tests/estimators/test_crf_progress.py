"""What the fit of a CRF tells while it runs and when it stops early."""

from __future__ import annotations

import signal
import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualfield import CRF
from dualfield.solvers import Status
from tests.estimators.tagging import sentences
from tests.interrupting import interrupted

X, Y = sentences(40)


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs"])
def test_trace(solver):
    model = CRF(solver=solver, C=10.0, tol=1e-6, random_state=0).fit(X, Y)
    trace = model.trace_
    assert len({np.shape(c) for c in (trace.objective, trace.dual, trace.gap, trace.passes, trace.seconds)}) == 1
    assert trace.objective[-1] == pytest.approx(model.objective_, rel=1e-9)
    assert trace.gap[-1] == pytest.approx(model.dual_gap_, rel=1e-6, abs=1e-12)
    assert np.all(np.diff(trace.passes) >= 0)
    assert np.all(np.diff(trace.seconds) >= 0)
    # Every row is a true bound, not only the last one.
    assert trace.dual.max() <= model.objective_ * (1 + 1e-12)
    assert trace.objective.min() >= (model.objective_ - model.dual_gap_) * (1 - 1e-12)


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "sgd", "perceptron"])
def test_verbose(solver, capfd):
    model = CRF(solver=solver, random_state=0).fit(X, Y)
    assert capfd.readouterr() == ("", "")
    model.set_params(verbose=1).fit(X, Y)
    said = "".join(capfd.readouterr())
    assert "CRF" in said
    assert said.endswith("\n")
    model.set_params(verbose=2).fit(X, Y)
    more = "".join(capfd.readouterr())
    assert len(more.splitlines()) >= len(said.splitlines())
    assert "pass" in more


@pytest.mark.parametrize("solver", ["auto", "block_dual", "lbfgs"])
def test_too_few_iterations_are_told_with_gap_tolerance_and_remedy(solver):
    best = CRF(C=100.0, tol=1e-9, solver="lbfgs").fit(X, Y).objective_
    model = CRF(solver=solver, C=100.0, tol=1e-9, max_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"(?s)(?=.*gap)(?=.*1e-09)(?=.*max_iter)") as caught:
        model.fit(X, Y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.status_ == Status.ITERATION_LIMIT
    assert model.objective_ - model.dual_gap_ <= best <= model.objective_
    assert len(model.predict(X)) == 40


LONG_FITS = """
    import json, warnings
    import numpy as np
    from dualfield import CRF

    rng = np.random.default_rng(0)
    lengths = [10] * 3000
    X = rng.normal(size=(30000, 20)) * np.geomspace(1e-2, 1e2, 20)  # hard for all of them
    y = rng.integers(0, 5, 30000)
    told = []
    for solver in {solvers!r}:
        model = CRF(C=1e3, tol=1e-12, max_iter={max_iter}, solver=solver, random_state=0, verbose=1)
        print("BEGIN")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y, lengths=lengths)
        told.append({{
            "solver": solver, "status": model.status_.name, "warnings": [str(w.message) for w in caught],
            "gap": model.dual_gap_, "objective": model.objective_,
            "labels": len(model.predict(X[:10], lengths=[10])[0]),
        }})
    print(json.dumps(told))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_interrupt():
    """SIGINT during a fit without end: it returns, fitted, and says how far it came; once for each solver."""
    solvers = ("block_dual", "lbfgs", "sgd", "perceptron")
    found = interrupted(LONG_FITS.format(solvers=solvers, max_iter=10**6))
    assert len(found) == 4
    for told in found:
        assert told["status"] == "INTERRUPTED", told
        assert [text for text in told["warnings"] if "interrupted" in text and "gap" in text], told
        assert told["gap"] > 0
        assert np.isfinite(told["objective"])
        assert told["labels"] == 10


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_fits_that_ignore_interrupts_go_on():
    """Under nohup, or in the background of a shell: SIGINT neither ends the process nor the fit."""
    found = interrupted(LONG_FITS.format(solvers=("block_dual", "lbfgs"), max_iter=3), listens=False)
    assert [told["status"] for told in found] == ["ITERATION_LIMIT", "ITERATION_LIMIT"]


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "sgd", "perceptron"])
def test_interrupted_while_progress_is_shown(solver, monkeypatch):
    """The keyboard may be heard in the middle of Python's own work: the model is kept all the same."""
    from dualfield.solvers.progress import ProgressLine

    def interrupt(line, *row):
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "__call__", interrupt)
    with pytest.warns(Warning, match="interrupted"):
        model = CRF(solver=solver, tol=1e-12, max_iter=10**6, verbose=2, random_state=0).fit(X, Y)
    assert model.status_.name == "INTERRUPTED"
    assert len(model.predict(X)) == 40


def test_the_interrupt_is_not_swallowed_for_good():
    """After a fit, Ctrl-C means again what it meant before."""
    before = signal.getsignal(signal.SIGINT)
    CRF().fit(X, Y)
    assert signal.getsignal(signal.SIGINT) is before
