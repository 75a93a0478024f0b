"""Monitors and checkpoints: they look, they stop, they go on, and they change nothing."""

import json
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from dualfield import CRF
from dualfield.estimators import Checkpoint
from dualfield.features import Template
from dualfield.solvers import Moment, Status

SOLVERS = ["auto", "block_dual", "lbfgs", "sgd", "perceptron"]


def problem(seed=0, n=60):
    random = np.random.default_rng(seed)
    y = [[str(k) for k in random.integers(0, 4, random.integers(1, 9))] for _ in range(n)]
    X = [[[f"w{int(k) + random.integers(0, 3)}", f"r{random.integers(0, 30)}"] for k in labels] for labels in y]
    return X, y


def model(solver="auto", **parameters):
    parameters = {
        "C": 3.0,
        "tol": 1e-5,
        "random_state": 0,
        "max_iter": 20 if solver in SOLVERS[3:] else None,
        **parameters,
    }
    return CRF(solver=solver, **parameters)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_monitor_sees_every_pass_and_changes_nothing(solver):
    X, y = problem()
    seen = []

    def monitor(moment, fitted):
        assert isinstance(moment, Moment)
        assert fitted.objective_ == moment.objective
        seen.append((moment.passes, moment.seconds, fitted.score(X, y)))

    watched = model(solver).fit(X, y, monitor=monitor)
    alone = model(solver).fit(X, y)
    assert np.array_equal(watched.parameters_, alone.parameters_)
    assert watched.status_ is alone.status_
    passes = [one[0] for one in seen]
    assert passes == sorted(set(passes))
    assert len(seen) >= (watched.n_iter_ if solver != "lbfgs" else 2)
    assert seen[-1][2] == watched.score(X, y)
    assert seen[0][2] <= seen[-1][2] + 0.1


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_what_a_monitor_sees_is_certified(solver):
    X, y = problem()
    moments = []
    model(solver).fit(X, y, monitor=lambda moment, fitted: moments.append((moment, fitted.parameters_.copy())))
    final = model(solver, tol=1e-8).fit(X, y).objective_
    for moment, _ in moments:
        assert moment.objective >= final * (1 - 1e-7)
        assert moment.gap >= moment.objective - final - 1e-6 * final
    assert moments[-1][0].relative_gap <= 1e-5


def test_gaps_of_rounded_states_are_certified_too():
    """In single precision the sum of all gains drifts above the minimum: what a monitor sees must not."""
    X, y = problem(1)
    moments = []
    settings = {"C": 1e4, "tol": 1e-5, "max_iter": 200}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        watched = model("block_dual", **settings).fit(X, y, monitor=lambda moment, fitted: moments.append(moment))
        alone = model("block_dual", **settings).fit(X, y)
    assert np.array_equal(watched.parameters_, alone.parameters_)
    exact = model("lbfgs", C=1e4, tol=1e-9).fit(X, y)
    for moment in moments:
        assert moment.gap >= 0.0
        assert moment.objective - moment.gap <= exact.objective_ * (1 + 1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_monitor_can_stop_the_fit(solver):
    X, y = problem()
    stopped = model(solver).fit(X, y, monitor=lambda moment, fitted: moment.passes >= 2)
    assert stopped.status_ is Status.STOPPED
    assert "monitor" in stopped.status_.sentence
    assert stopped.n_iter_ < model(solver, tol=1e-9).fit(X, y).n_iter_
    if solver not in ("sgd", "perceptron"):
        best = model("lbfgs", tol=1e-10).fit(X, y).objective_
        assert stopped.objective_ - stopped.dual_gap_ <= best + 1e-9 <= stopped.objective_ + 2e-9


def test_errors_of_a_monitor_reach_the_caller():
    def monitor(moment, fitted):
        raise ZeroDivisionError("in the monitor")

    for solver in SOLVERS:
        with pytest.raises(ZeroDivisionError, match="in the monitor"):
            model(solver).fit(*problem(), monitor=monitor)


@pytest.mark.parametrize("solver", SOLVERS)
def test_interrupted_in_a_monitor_the_fit_returns_what_it_has(solver):
    def monitor(moment, fitted):
        raise KeyboardInterrupt

    with pytest.warns(Warning, match="interrupted"):
        fitted = model(solver).fit(*problem(), monitor=monitor)
    assert fitted.status_ is Status.INTERRUPTED


@pytest.mark.parametrize("passes", [1, 3, 6])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_goes_on_to_the_same_weights(solver, passes, tmp_path):
    X, y = problem()
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    first = model(solver).fit(X, y, checkpoint=kept, monitor=lambda moment, fitted: moment.passes >= passes)
    assert first.status_ is Status.STOPPED
    assert kept.path.exists()
    rest = model(solver, n_jobs=2).fit(X, y, checkpoint=kept)
    whole = model(solver).fit(X, y)
    assert np.array_equal(rest.parameters_, whole.parameters_)
    assert rest.n_iter_ == whole.n_iter_
    assert rest.status_ is whole.status_
    assert np.array_equal(rest.trace_.objective, whole.trace_.objective) or solver == "block_dual" or solver == "auto"
    assert list(tmp_path.iterdir()) == []


def test_the_second_stage_of_auto_goes_on_too(tmp_path, monkeypatch):
    # With no patience at all the block dual gives up at its second look after fifty passes.
    monkeypatch.setattr("dualfield.solvers.auto._PATIENCE", 0.0)
    X, y = problem(3)
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    settings = {"C": 1e5, "tol": 1e-7}
    whole = model(**settings).fit(X, y)
    assert whole.solver_ == "lbfgs"
    before = len([gap for gap in whole.trace_.gap if np.isfinite(gap)])
    stop_at = whole.trace_.passes[-1] - 5
    assert before > 10
    model(**settings).fit(X, y, checkpoint=kept, monitor=lambda moment, fitted: moment.passes >= stop_at)
    with safe_open(kept.path, framework="numpy") as file:
        assert "rows_before" in list(file.keys())
    rest = model(**settings).fit(X, y, checkpoint=kept)
    assert np.array_equal(rest.parameters_, whole.parameters_)
    assert np.array_equal(rest.trace_.passes, whole.trace_.passes)


def test_a_fit_that_draws_its_seed_goes_on_with_the_one_it_had(tmp_path):
    X, y = problem()
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    stop = {"checkpoint": kept, "monitor": lambda moment, fitted: moment.passes >= 2}
    generator = np.random.RandomState(7)
    model(random_state=generator).fit(X, y, **stop)
    rest = model(random_state=generator).fit(X, y, checkpoint=kept)
    whole, other = (model(random_state=np.random.RandomState(seed)).fit(X, y) for seed in (7, 8))
    assert np.array_equal(rest.parameters_, whole.parameters_)
    assert not np.array_equal(other.parameters_, whole.parameters_)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"C": 4.0}, "parameter C was 3.0, now 4.0"),
        ({"tol": 1e-3}, "parameter tol"),
        ({"random_state": 5}, "parameter random_state was 0, now 5"),
        ({"constraints": np.ones((4, 4), dtype=bool)}, "parameter constraints"),
    ],
    ids=["C", "tol", "seed", "constraints"],
)
def test_a_checkpoint_of_another_fit_is_refused(change, word, tmp_path):
    X, y = problem()
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    model().fit(X, y, checkpoint=kept, monitor=lambda moment, fitted: moment.passes >= 2)
    with pytest.raises(ValueError, match=word) as caught:
        model(**change).fit(X, y, checkpoint=kept)
    assert "fit.checkpoint belongs to another fit" in str(caught.value)
    for other, part in ((problem(1), "the input X|the labels y"), ((X, y[::-1]), ".")):
        with pytest.raises(ValueError, match=part):
            model().fit(*other, checkpoint=kept)


def test_other_files_are_no_checkpoints(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("something else")
    with pytest.raises(ValueError, match=r"notes\.txt is not a checkpoint"):
        model().fit(*problem(), checkpoint=path)
    assert path.read_text() == "something else"
    with pytest.raises(TypeError, match=r"checkpoint must be None, a path or a Checkpoint\. Got int"):
        model().fit(*problem(), checkpoint=3)
    with pytest.raises(ValueError, match="'every' parameter of Checkpoint"):
        model().fit(*problem(), checkpoint=Checkpoint(tmp_path / "new", every=-1.0))


def test_damaged_checkpoints_are_refused(tmp_path):
    X, y = problem()
    path = tmp_path / "fit.checkpoint"
    model().fit(X, y, checkpoint=Checkpoint(path, 0.0), monitor=lambda moment, fitted: moment.passes >= 2)
    whole = path.read_bytes()
    for n in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n])
        with pytest.raises(ValueError, match=r"fit\.checkpoint"):
            model().fit(X, y, checkpoint=path)


def test_templates_and_solver_settings_are_part_of_the_fit(tmp_path):
    X, y = [[["a"], ["b"]], [["b"], ["c"]]] * 5, [["x", "y"], ["y", "x"]] * 5
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    once = {"checkpoint": kept, "monitor": lambda moment, fitted: moment.passes >= 1}
    model(template=Template.parse("U0:%x[0,0]\nB")).fit(X, y, **once)
    with pytest.raises(ValueError, match="parameter template"):
        model(template=Template.parse("U0:%x[0,0]\nU1:%x[-1,0]\nB")).fit(X, y, checkpoint=kept)
    assert model(template=Template.parse("U0:%x[0,0]\nB")).fit(X, y, checkpoint=kept).status_ is Status.CONVERGED


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
def test_killed_it_goes_on_to_the_same_weights(tmp_path):
    script = tmp_path / "fit.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(Path.cwd())!r})
        import os, signal, numpy as np
        from tests.estimators.test_crf_monitored import model, problem
        from dualfield.estimators import Checkpoint
        def monitor(moment, fitted):
            if moment.passes >= 4 and sys.argv[1] == "die":
                os.kill(os.getpid(), signal.SIGKILL)
        kept = Checkpoint({str(tmp_path / "fit.checkpoint")!r}, every=0.0)
        fitted = model().fit(*problem(), checkpoint=kept, monitor=monitor)
        np.save({str(tmp_path / "weights.npy")!r}, fitted.parameters_)
        """)
    )
    killed = subprocess.run([sys.executable, script, "die"], check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "weights.npy").exists()
    subprocess.run([sys.executable, script, "live"], check=True)
    assert np.array_equal(np.load(tmp_path / "weights.npy"), model().fit(*problem()).parameters_)
    assert json.dumps(sorted(p.name for p in tmp_path.iterdir())) == '["fit.py", "weights.npy"]'


def test_gaps_on_the_way_are_above_zero():
    """Also where rounding leaves nothing of the difference of both values."""
    for seed in (0, 26, 44):
        random = np.random.default_rng(seed)
        X = [random.normal(size=(3, 2)) for _ in range(8)]
        y = [[str(k) for k in random.integers(0, 3, 3)] for _ in X]
        for C in (1e-8, 1e-4):
            seen = []
            fitted = CRF(C=C, random_state=0).fit(X, y, monitor=lambda moment, _, seen=seen: seen.append(moment.gap))
            assert min(seen) > 0
            assert fitted.trace_.gap.min() > 0
            assert fitted.dual_gap_ > 0


@pytest.mark.parametrize("stop", [60, 110, 135])
def test_a_fit_goes_on_within_newton_steps(stop, tmp_path):
    """Stopped before, at the beginning of, and within Newton's method, which OWL-QN hands over to."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(4, 4)) for _ in range(6)]
    y = [[str(k) for k in random.integers(0, 3, 4)] for _ in X]
    settings = {"C": 1000.0, "l1_ratio": 1.0, "tol": 1e-7, "max_iter": 2000}
    whole = CRF(**settings).fit(X, y)
    assert whole.trace_.passes[-1] > 136
    kept = Checkpoint(tmp_path / "state", every=0.0)
    first = CRF(**settings).fit(X, y, checkpoint=kept, monitor=lambda moment, _: moment.passes >= stop)
    assert first.status_ is Status.STOPPED
    again = CRF(**settings).fit(X, y, checkpoint=kept)
    np.testing.assert_array_equal(again.parameters_, whole.parameters_)
    np.testing.assert_array_equal(again.trace_.passes, whole.trace_.passes)
    assert (again.objective_, again.dual_gap_, again.status_) == (whole.objective_, whole.dual_gap_, whole.status_)
