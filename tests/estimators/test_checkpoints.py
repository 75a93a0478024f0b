"""Checkpoints are read without trust: what is in them is checked, and what they claim is computed anew."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

from dualfield.estimators import Checkpoint
from dualfield.persistence.header import CHECKPOINT
from dualfield.solvers import Status
from tests.estimators.checkpoint_fits import SOLVERS, begun, minimum, model, objective_of, problem
from tests.estimators.mutations import Forger, blind

N_FORGED = 40  # for each solver; the fuzzer goes on from there


def go_on(solver, path, **settings):
    """Return the fit that goes on from a file, or None if the file is refused by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model(solver, **settings).fit(*problem(), checkpoint=Checkpoint(path, every=1e9))
        except (ValueError, RuntimeError) as error:
            # Scores can be so large that they overflow in a later pass.
            if not any(part in str(error) for part in (str(path), "not finite any more", "steps are too long")):
                raise
        return None


def check_claims(solver, fitted):
    assert fitted.objective_ == pytest.approx(objective_of(fitted), rel=1e-6)
    assert fitted.objective_ - fitted.dual_gap_ <= minimum(solver) * (1 + 1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_reference_agrees(solver):
    fitted = model(solver, max_iter=None if solver not in ("sgd", "perceptron") else 20).fit(*problem())
    check_claims(solver, fitted)


@pytest.mark.parametrize("solver", SOLVERS)
def test_altered_bytes_are_noticed(solver, tmp_path):
    """Without a change of the digests every change is refused."""
    path = tmp_path / "fit.checkpoint"
    begun(solver, path)
    whole, rng = path.read_bytes(), random.Random(1)
    for _ in range(N_FORGED):
        changed = blind(whole, rng)
        if changed == whole:
            continue
        path.write_bytes(changed)
        assert go_on(solver, path) is None
    for at in range(8, len(whole), max(1, len(whole) // 40)):  # one bit at a time
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert go_on(solver, path) is None


@pytest.mark.parametrize("solver", SOLVERS)
def test_whatever_is_in_a_checkpoint_no_claim_is_false(solver, tmp_path):
    """Numbers changed, digests mended: the file is refused, or the fit ends with a certificate that holds."""
    path = tmp_path / "fit.checkpoint"
    begun(solver, path)
    forger, rng, n_used = Forger(path, CHECKPOINT), random.Random(2), 0
    for _ in range(N_FORGED):
        path.write_bytes(forger.forged(rng, share=0.05))
        fitted = go_on(solver, path)
        if fitted is not None and np.isfinite(fitted.objective_):
            n_used += 1
            check_claims(solver, fitted)
    assert n_used


def altered(path, **changes):
    """Write a file again with some numbers changed, and digests that agree."""
    forger = Forger(path, CHECKPOINT)
    for name, (at, value) in changes.items():
        forger.arrays[name].reshape(-1)[at] = value
    path.write_bytes(forger.bytes_of(forger.metadata, forger.arrays))


@pytest.mark.parametrize(
    ("solver", "name", "at", "value", "said"),
    [
        ("block_dual", "order", 3, 10**12, "order does not name every example once"),
        ("block_dual", "theta", 0, np.nan, "theta holds what is not a finite number"),
        ("block_dual", "next_check", 0, 2**63, "next_check is out of range"),
        ("block_dual", "passes", 0, -1e300, "passes is out of range"),
        ("sgd", "order", 0, 11, "order does not name every example once"),
        ("sgd", "scale", 0, 0.0, "scale is out of range"),
        ("perceptron", "steps", 0, 0.0, "steps is out of range"),
        ("flow_swap", "selected", 0, 10**12, "selected names an example twice, or one that there is not"),
        ("flow_swap", "order", 0, 11, "order does not name every example once"),
        ("flow_swap", "edge_labels", 1, 7, "an edge of an unknown label"),
        ("flow_swap", "edge_counts", 0, 2**63, "edge_counts do not add up"),
        ("flow_swap", "edge_counts", 0, 0, "edge_counts do not add up"),
        ("flow_swap", "edge_masses", 0, 0.5, "the flow is no distribution"),
        ("flow_swap", "primal", 0, 1e-3, "primal is not the objective of its weights"),
        ("lbfgs", "factor", 0, 0.0, "factor does not agree with moved and change"),
        ("lbfgs", "n_iter", 0, 2**63, "n_iter must be one number below"),
        ("lbfgs", "best", 0, np.inf, "best holds what is not a finite number"),
        ("lbfgs", "x", 4, 2.0, "x has weights that the model does not have"),  # zeros for alignment, which would score
        ("sgd", "v", 4, 2.0, "v has weights that the model does not have"),
        ("flow_swap", "best", 4, 2.0, "best has weights that the model does not have"),
    ],
)
def test_numbers_that_cannot_be_are_refused(solver, name, at, value, said, tmp_path):
    path = tmp_path / "fit.checkpoint"
    begun(solver, path)
    altered(path, **{name: (at, value)})
    with pytest.raises(ValueError, match=said) as caught:
        model(solver).fit(*problem(), checkpoint=path)
    assert str(caught.value).startswith(f"{path} cannot be used")
    assert path.exists()


@pytest.mark.parametrize("solver", ["sgd", "perceptron"])
def test_a_course_without_rows_is_refused(solver, tmp_path):
    path = tmp_path / "fit.checkpoint"
    begun(solver, path, passes=60.0)  # all of them: nothing is left to be added
    forger = Forger(path, CHECKPOINT)
    path.write_bytes(forger.bytes_of(forger.metadata, {**forger.arrays, "trace": np.zeros((0, 5))}))
    with pytest.raises(ValueError, match="cannot be used: trace must have rows"):
        model(solver).fit(*problem(), checkpoint=path)


@pytest.mark.parametrize("name", ["best", "dual_at", "x"])
def test_bounds_are_those_of_the_points_in_the_file(name, tmp_path):
    path = tmp_path / "fit.checkpoint"
    begun("lbfgs", path)
    altered(path, **{name: (0, 1e3)})
    check_claims("lbfgs", go_on("lbfgs", path))


def test_a_checkpoint_that_cannot_be_written_is_a_warning(tmp_path):
    """And the fit goes on to the model that it would have been."""
    path = tmp_path / "folder" / "fit.checkpoint"
    with pytest.warns(RuntimeWarning, match=r"fit\.checkpoint: the checkpoint cannot be written: No such") as caught:
        fitted = model("block_dual").fit(*problem(), checkpoint=Checkpoint(path, every=0.0))
    assert len(caught) == 1
    assert np.array_equal(fitted.parameters_, model("block_dual").fit(*problem()).parameters_)


def test_a_checkpoint_may_stay_until_the_model_is_saved(tmp_path):
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0, remove=False)
    fitted = model("block_dual").fit(*problem(), checkpoint=kept)
    assert fitted.status_ is Status.CONVERGED
    again = model("block_dual").fit(*problem(), checkpoint=kept)
    assert np.array_equal(again.parameters_, fitted.parameters_)
    kept.discard()
    kept.discard()
    assert list(tmp_path.iterdir()) == []
