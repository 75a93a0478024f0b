"""``dualfield train`` that does not come to its end: Ctrl-C, killed, and going on."""

from __future__ import annotations

import re
import signal
import sys

import pytest

import dualfield
from dualfield.solvers import Status
from tests.interrupting import IGNORES, LISTENS
from tests.warm_python import PROGRAM

from .conftest import corpus

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals")

ROW = re.compile(r"^ +\d+\.\d +(\d+\.\d{4}|-) ")


@pytest.fixture
def files(shell, warm_python):
    shell.python = warm_python
    shell.write("train.txt", corpus(40, 0))
    shell.write("dev.txt", corpus(400, 1))  # scoring it takes longer than a pass, which gives signals time to arrive
    return shell


def run(files, *arguments, stop=None, after=5, before=LISTENS):
    """Run a training; send a signal when so many passes are shown. Return the exit code and both outputs."""
    process = files.python.start("train", "train.txt", *map(str, arguments), source=before + PROGRAM)
    said, passes = "", 0
    for line in process.stderr:
        said += line
        passes += bool(ROW.match(line))
        if stop is not None and passes == after:
            process.send_signal(stop)
            stop = None
    out = process.stdout.read()
    return process.wait(), out, said


def solved_by(solver):
    """Options; flow_swap is for the hinge."""
    return ("--solver", solver, *(("--loss", "hinge") if solver == "flow_swap" else ()))


LONG = ("--dev", "dev.txt", "--tol", "1e-13", "--C", "1000")


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "sgd", "flow_swap"])
def test_ctrl_c_writes_the_best_point_and_says_so(files, solver):
    options = (*LONG, *solved_by(solver), "--max-iter", 1000)
    code, out, said = run(files, "--model", "m", *options, stop=signal.SIGINT)
    assert code == 130, said
    assert "Warning: The fit was interrupted; the model is the best point so far" in said
    assert "--warm-start m begins at this model, with another name for --model." in said
    assert out.startswith("Model: m, ")
    assert "Traceback" not in said
    assert dualfield.load("m").status_ is Status.INTERRUPTED


def test_started_with_ctrl_c_ignored_it_goes_on(files):
    """As under nohup, and in the background of a shell."""
    options = ("--dev", "dev.txt", "--tol", "1e-6", "--C", "30")
    code, out, said = run(files, "--model", "m", *options, stop=signal.SIGINT, after=3, before=IGNORES)
    assert (code, said.count("nterrupted")) == (0, 0), said
    assert out.startswith("The duality gap is within the tolerance")
    assert dualfield.load("m").status_ is Status.CONVERGED


def test_ctrl_c_with_strict_writes_nothing(files):
    code, out, said = run(files, "--model", "m", *LONG, "--strict", stop=signal.SIGINT)
    assert (code, out) == (130, "")
    assert said.endswith("Interrupted. No model was written.\n")
    assert not files.path("m").exists()


def test_ctrl_c_while_reading(files, monkeypatch):
    from dualfield.cli.training import fit as training

    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "read_sources", interrupted)
    files.write("m", "old")
    said = files("train", "train.txt", "--model", "m", code=130).stderr
    assert said.endswith("Interrupted. m is as it was before.\n")


@pytest.mark.parametrize("after", [1, 6])
def test_killed_it_leaves_the_old_model(files, after):
    files("train", "train.txt", "--model", "m", "-q")
    before = files.path("m").read_bytes()
    code, _, _ = run(files, "--model", "m", *LONG, stop=signal.SIGKILL, after=after)
    assert code == -signal.SIGKILL
    assert files.path("m").read_bytes() == before


def test_killed_about_the_end_it_leaves_the_old_model_or_the_new_one(files):
    files("train", "train.txt", "--model", "m", "-q")
    old = files.path("m").read_bytes()
    result = files("train", "train.txt", "--model", "n", "--C", "3")
    new = files.path("n").read_bytes()
    n_passes = sum(bool(ROW.match(line)) for line in result.stderr.splitlines())
    code, _, _ = run(files, "--model", "m", "--C", "3", stop=signal.SIGKILL, after=n_passes)
    assert code in (-signal.SIGKILL, 0)
    assert files.path("m").read_bytes() in (old, new)


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "flow_swap"])
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_checkpoint_leads_to_the_same_file(files, solver, stop):
    options = ("--dev", "dev.txt", "--tol", "1e-6", "--C", "30", *solved_by(solver))
    files("train", "train.txt", "--model", "whole", *options, "-q")
    kept = ("--checkpoint", "state", "--checkpoint-every", 0)
    code, _, said = run(files, "--model", "m", *options, *kept, stop=stop, after=6)
    assert code == (130 if stop == signal.SIGINT else -stop)
    assert files.path("state").exists()
    assert files.path("m").exists() == (stop == signal.SIGINT)
    if stop == signal.SIGINT:
        assert "The same command goes on from state." in said
    result = files("train", "train.txt", "--model", "m", *options, *kept)
    assert "Resuming from state." in result.stderr
    assert files.path("m").read_bytes() == files.path("whole").read_bytes()
    assert not files.path("state").exists()


def test_a_checkpoint_of_another_training_is_refused(files):
    code, _, _ = run(
        files, "--model", "m", *LONG, "--checkpoint", "state", "--checkpoint-every", 0, stop=signal.SIGKILL
    )
    assert code == -signal.SIGKILL
    said = files("train", "train.txt", "--model", "m", "--C", "2", "--checkpoint", "state", code=1).stderr
    assert said.splitlines()[-1].startswith("Error: ")
    assert "state" in said.splitlines()[-1]
    assert files.path("state").exists()
