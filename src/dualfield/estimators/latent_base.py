"""What estimators with latent variables keep: a decoder, and the record of a training that is not convex."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualfield.data.records import Fields, Record
from dualfield.estimators.base import Estimator
from dualfield.estimators.latent_data import StateDecoder
from dualfield.estimators.latent_tasks import BagDecoder
from dualfield.solvers import Status, Trace
from dualfield.solvers.latent.records import LatentStatus, LatentTrace

Floats = NDArray[np.float64]
_COLUMNS = len(dataclasses.fields(LatentTrace))


class LatentEstimator(Estimator):
    """An estimator with latent variables: decoder, training record, and the objectives of all runs."""

    _has_gap: ClassVar[bool]  # whether runs end with a gap, and have a certificate
    _decoder: Any
    classes_: Any
    parameters_: Floats
    plain_objective_: float | None
    restarts_: Floats
    status_: Any
    trace_: Any
    n_jobs: int | None

    def _model_record(self) -> Fields:
        if not isinstance(self._decoder, (StateDecoder, BagDecoder)):
            raise ValueError("The model cannot be saved: it was fitted with a latent model of your own, which is code.")
        return self._decoder.record()

    def _restore_model(self, record: Record) -> None:
        if record.text("kind", ("states", "bags") if self._has_gap else ("states",)) == "bags":
            bags = BagDecoder.from_record(record)
            self._decoder, self.parameters_ = bags, bags.parameters
        else:
            states = StateDecoder.from_record(record, self.n_jobs)
            self._decoder, self.parameters_ = states, states.tagger.parameters_
        self.classes_ = self._decoder.labels.classes

    def _training_record(self) -> Fields:
        rows = np.column_stack([getattr(self.trace_, one.name) for one in dataclasses.fields(self.trace_)])
        return {
            "objective": float(self.objective_),
            "plain_objective": None if self.plain_objective_ is None else float(self.plain_objective_),
            "gap": float(self.dual_gap_) if self._has_gap else None,
            "n_iter": int(self.n_iter_),
            "status": self.status_.value,
            "trace": rows.astype(np.float64),
            "restarts": self.restarts_,
        }

    def _restore_training(self, record: Record) -> None:
        self.objective_, self.n_iter_ = record.number("objective"), record.integer("n_iter")
        self.plain_objective_ = record.number("plain_objective") if record.has("plain_objective") else None
        if record.has("gap") != self._has_gap:
            raise record.fault(f"its {record.place('gap')!r} must be {'a number' if self._has_gap else 'None'}.")
        if self._has_gap:
            self.dual_gap_ = record.number("gap")
        self.restarts_ = np.array(record.array("restarts", np.float64, (None,)))
        stepwise = self._has_gap or record.shape("trace")[1:] == (_COLUMNS,)
        rows = np.array(record.array("trace", np.float64, (None, _COLUMNS if stepwise else 5)))
        known: Any = LatentStatus if stepwise else Status
        self.status_ = known(record.text("status", [one.value for one in known]))
        self.trace_ = _steps(record, rows) if stepwise else Trace.from_rows(rows)


def hidden_record(hidden: Any) -> Fields:
    """Return the latent variables of the training examples, which are one array, or one for each sequence."""
    lengths = None
    if isinstance(hidden, list):
        lengths = np.array([len(one) for one in hidden], dtype=np.int64)
        hidden = np.concatenate(hidden) if hidden else np.zeros(0)
    return {"values": np.asarray(hidden, dtype=np.int64), "lengths": lengths}


def read_hidden(record: Record) -> Any:
    """Return the latent variables, checked."""
    hidden = np.array(record.array("values", np.int64, (None,)))
    if not record.has("lengths"):
        return hidden
    lengths = record.array("lengths", np.int64, (None,))
    if (lengths < 0).any() or sum(lengths.tolist()) != len(hidden):
        raise record.fault(f"array {record.place('lengths')!r} must cut {len(hidden)} latent variables into sequences.")
    return np.split(hidden, np.cumsum(lengths)[:-1]) if len(lengths) else []


def _steps(record: Record, rows: Floats) -> LatentTrace:
    counts = rows[:, [4, 5]]  # reached, changed
    if not (np.isfinite(counts) & (np.abs(counts) < 2.0**53)).all():
        raise record.fault(f"array {record.place('trace')!r} must have counts of latent variables that change.")
    return LatentTrace.from_rows([tuple(row) for row in rows.tolist()])
