"""Models with hidden parts in model files: labels, what is hidden, and weights."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualfield.estimators.latent_data import StateDecoder, StateTagger
from dualfield.estimators.latent_tasks import BagDecoder
from dualfield.estimators.saved import Savable, field
from dualfield.estimators.saved_labels import label_record, restored_labels
from dualfield.estimators.saved_tagger import StoredWeights, restored_columns, restored_vocabulary, saved_weights
from dualfield.objectives.latent_bags import BagScores
from dualfield.objectives.latent_states import StateSpace
from dualfield.persistence.file import ModelFile
from dualfield.persistence.mapped_vocabulary import vocabulary_arrays
from dualfield.persistence.parameters import ParameterReader, ParameterWriter
from dualfield.solvers import Status, Trace
from dualfield.solvers.latent.records import LatentStatus, LatentTrace

Floats = NDArray[np.float64]
_COLUMNS = len(dataclasses.fields(LatentTrace))


class SavableLatent(Savable):
    """A model with hidden parts that can be saved: decoder, training record, and the objectives of all runs."""

    _has_gap: ClassVar[bool]  # whether runs end with a gap, and have a certificate
    _decoder: Any
    classes_: Any
    parameters_: Floats
    plain_objective_: float | None
    restarts_: Floats
    status_: Any
    trace_: Any
    n_jobs: int | None

    def _saved(self, writer: ParameterWriter) -> dict[str, Any]:
        decoder = self._decoder
        if isinstance(decoder, StateDecoder):
            return _saved_states(decoder, writer)
        if isinstance(decoder, BagDecoder):
            return _saved_bags(decoder, writer)
        raise ValueError("The model cannot be saved: it was fitted with a latent model of your own, which is code.")

    def _restore(self, file: ModelFile) -> None:
        if self._has_gap and "bags" in file.metadata:
            bags = _restored_bags(file)
            self._decoder, self.parameters_ = bags, bags.parameters
        else:
            states = _restored_states(file, self.n_jobs)
            self._decoder, self.parameters_ = states, states.tagger.parameters_
        self.classes_ = self._decoder.labels.classes

    def _training(self, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        rows = np.column_stack([getattr(self.trace_, one.name) for one in dataclasses.fields(self.trace_)])
        arrays["training.trace"], arrays["training.restarts"] = rows.astype(np.float64), self.restarts_
        return {
            "objective": float(self.objective_),
            "plain_objective": None if self.plain_objective_ is None else float(self.plain_objective_),
            "gap": float(self.dual_gap_) if self._has_gap else None,
            "n_iter": int(self.n_iter_),
            "status": self.status_.value,
        }

    def _restore_training(self, file: ModelFile) -> None:
        record = field(file, "training", dict)
        self.objective_, self.n_iter_ = field(file, "objective", float, record), field(file, "n_iter", int, record)
        self.plain_objective_ = field(file, "plain_objective", (float, type(None)), record)
        gap = field(file, "gap", float if self._has_gap else type(None), record)
        if self._has_gap:
            self.dual_gap_ = gap
        self.restarts_ = np.array(file.array("training.restarts", np.float64, (None,)))
        stepwise = self._has_gap or file.shape("training.trace")[1:] == (_COLUMNS,)
        rows = np.array(file.array("training.trace", np.float64, (None, _COLUMNS if stepwise else 5)))
        status, known = field(file, "status", str, record), LatentStatus if stepwise else Status
        if status not in [one.value for one in known]:
            raise file.fault(f"is altered: its status is {status!r:.100}.")
        self.status_ = known(status)
        self.trace_ = _steps(file, rows) if stepwise else Trace.from_rows(rows)


def save_hidden(hidden: Any, arrays: dict[str, NDArray[Any]]) -> None:
    """Set the hidden parts of the training examples aside, which are one array, or one for each sequence."""
    if isinstance(hidden, list):
        arrays["hidden.lengths"] = np.array([len(one) for one in hidden], dtype=np.int64)
        hidden = np.concatenate(hidden) if hidden else np.zeros(0)
    arrays["hidden"] = np.asarray(hidden, dtype=np.int64)


def restored_hidden(file: ModelFile) -> Any:
    """Return the hidden parts, checked."""
    hidden = np.array(file.array("hidden", np.int64, (None,)))
    if not file.has("hidden.lengths"):
        return hidden
    lengths = file.array("hidden.lengths", np.int64, (None,))
    if (lengths < 0).any() or sum(lengths.tolist()) != len(hidden):
        raise file.fault(f"is altered: array 'hidden.lengths' must cut {len(hidden)} hidden parts into sequences.")
    return np.split(hidden, np.cumsum(lengths)[:-1]) if len(lengths) else []


def _saved_states(decoder: StateDecoder, writer: ParameterWriter) -> dict[str, Any]:
    tagger = decoder.tagger
    return {
        "labels": label_record(decoder.labels),
        "states": {
            "sizes": decoder.space.sizes.tolist(),
            "single": bool(decoder.single),
            "arrays": bool(decoder.arrays),
            "template": writer.encoded("template", tagger.template),
            "temperature": float(tagger.temperature),
        },
        **saved_weights(tagger, writer),
    }


def _restored_states(file: ModelFile, n_jobs: int | None) -> StateDecoder:
    labels, record = restored_labels(file), field(file, "states", dict)
    sizes, temperature = field(file, "sizes", list, record), field(file, "temperature", float, record)
    if len(sizes) != len(labels) or not all(type(size) is int and size >= 1 for size in sizes):
        raise file.fault(f"is altered: it must have sub-states for each of {len(labels)} labels.")
    if not (math.isfinite(temperature) and temperature > 0.0):
        raise file.fault(f"is altered: its temperature must be a float in (0, inf). Got {temperature!r}.")
    tagger = StateTagger(n_jobs, ParameterReader(file).decoded("template", record.get("template")), temperature)
    tagger.__dict__.update(restored_columns(file, sum(sizes)))  # no larger than the weights in the file
    if tagger.structure_.order != 1:
        raise file.fault("is altered: sub-states need a chain of order 1.")
    try:
        tagger._check_restored()
    except (TypeError, ValueError) as error:
        raise file.fault(f"is altered: {error}") from None
    space = StateSpace(np.array(sizes, dtype=np.int64))
    tagger.name_states(labels, space)
    tagger.__dict__.update(StoredWeights(file, tagger.structure_).whole())
    return StateDecoder(tagger, labels, space, field(file, "single", bool, record), field(file, "arrays", bool, record))


def _saved_bags(decoder: BagDecoder, writer: ParameterWriter) -> dict[str, Any]:
    if not np.isfinite(decoder.parameters).all():
        raise ValueError("The model cannot be saved: it has weights that are not finite.")
    writer.arrays["bags.weights"] = decoder.parameters
    if decoder.vocabulary is not None:
        writer.arrays |= vocabulary_arrays("vocabulary", decoder.vocabulary)
    scores = decoder.scores
    return {
        "labels": label_record(decoder.labels),
        "bags": {
            "n_columns": int(scores.n_columns),
            "attributes": decoder.vocabulary is not None,
            "background": int(scores.background),
            "intercept": bool(scores.intercept),
            "arrays": bool(decoder.arrays),
        },
    }


def _restored_bags(file: ModelFile) -> BagDecoder:
    labels, record = restored_labels(file), field(file, "bags", dict)
    n_columns, background = field(file, "n_columns", int, record), field(file, "background", int, record)
    if len(labels) < 2 or not -1 <= background < len(labels) or n_columns < 0:
        raise file.fault("is altered: bags need two labels, one of them or none in the background, and columns.")
    scores = BagScores(n_columns, len(labels), background, field(file, "intercept", bool, record))
    weights = np.array(file.array("bags.weights", np.float64, (scores.n_parameters,)))
    if not np.isfinite(weights).all():
        raise file.fault("is altered: array 'bags.weights' must have finite numbers.")
    vocabulary = None
    if field(file, "attributes", bool, record):
        vocabulary = restored_vocabulary(file, "vocabulary", n_columns)
    return BagDecoder(weights, scores, labels, field(file, "arrays", bool, record), vocabulary)


def _steps(file: ModelFile, rows: Floats) -> LatentTrace:
    counts = rows[:, [4, 5]]  # reached, changed
    if not (np.isfinite(counts) & (np.abs(counts) < 2.0**53)).all():
        raise file.fault("is altered: array 'training.trace' must have counts of hidden parts that change.")
    return LatentTrace.from_rows([tuple(row) for row in rows.tolist()])
