"""The questions that estimators with latent variables answer, and the record of a training that is not convex."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.arrays import Floats
from dualfield.data.impossible import warn_impossible
from dualfield.data.labels import in_a_row
from dualfield.data.records import Fields, Record
from dualfield.estimators.base import fitted
from dualfield.estimators.prediction import FittedTagger
from dualfield.metrics.accuracy import share_right
from dualfield.models.latent.model import BagModel, CustomLatent, SubstateModel
from dualfield.solvers import Status, Trace
from dualfield.solvers.latent.records import LatentStatus, LatentTrace
from dualfield.structures.checks import n_threads

__all__ = ["LatentPredictor"]

_COLUMNS = len(dataclasses.fields(LatentTrace))


class LatentPredictor:
    """Predictions of models with latent variables, whatever these are.

    Attributes
    ----------
    parameters_ : array of shape (n_parameters,)
        The weights.
    classes_ : array or None
        The labels, sorted; None for a user-defined model.

    Examples
    --------
    >>> from dualfield import LatentStructuredSVM
    >>> from dualfield.estimators.latent_prediction import LatentPredictor
    >>> isinstance(LatentStructuredSVM(), LatentPredictor)
    True
    """

    _has_gap: ClassVar[bool]  # whether runs end with a gap, and have a certificate
    model_: Any
    objective_: float
    dual_gap_: float
    n_iter_: int
    plain_objective_: float | None
    restarts_: Floats
    status_: Any
    trace_: Any
    n_jobs: int | None
    classes_: Any = fitted("classes")
    parameters_: Floats = fitted("parameters")
    coef_: Any = fitted("coef")

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the output of the best pair of output and latent variables.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.

        Returns
        -------
        list or array
            Outputs, in the form of those of training.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import LatentMulticlass, LatentStructuredSVM, StructuredSVM
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> model.predict([[0.0, 3.0], [-2.0, 0.0]])
        ['up or down', 'left or right']
        """
        return self.model_.best(X, lengths, n_threads(self.n_jobs))[0]

    def predict_latent(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> Any:
        """Return the latent variables: those of the best pair, or with `y` the best ones of these outputs.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.
        y : list or array, default=None
            Outputs to complete; they may be known only in part.

        Returns
        -------
        list or array
            Sub-states of each node, components of each row, places in each bag (-1 for the background label), trees
            whose labels are written label/sub-state, or what a user-defined model calls hidden. Which number a
            sub-state or component has is an accident of the start.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import LatentMulticlass, LatentStructuredSVM, StructuredSVM
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> above, below = model.predict_latent([[0.0, 3.0], [0.0, -3.0]])
        >>> bool(above != below)
        True
        """
        model, threads = self.model_, n_threads(self.n_jobs)
        return model.best(X, lengths, threads)[1] if y is None else model.completed(X, y, lengths, threads)

    def score(self, X: Any, y: Any, *, lengths: ArrayLike | None = None) -> float:
        """Return the share of right labels, or F1 of labelled brackets; with a user-defined model, minus the mean loss.

        Sentences that a grammar cannot parse count as trees without brackets, and a warning says which they are.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.
        y : list or array
            True outputs.

        Returns
        -------
        float
            In [0, 1] for labels.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import LatentMulticlass, LatentStructuredSVM, StructuredSVM
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> model.score([[0.0, 3.0], [0.0, -3.0]], ["up or down", "left or right"])
        0.5
        """
        model = self.model_
        if isinstance(model, CustomLatent):
            return model.score(X, y)
        if isinstance(model, SubstateModel) and model.states.structure.counts_impossible and lengths is None:
            predicted, reasons = model.predict_possible(X, n_threads(self.n_jobs))
            warn_impossible(reasons, len(predicted))
        else:
            predicted = self.predict(X, lengths=lengths)
        found = None if isinstance(model, BagModel) else model.states.structure.agreement(predicted, y)
        return share_right(predicted, y, flat=model.is_flat) if found is None else found

    @property
    def states_(self) -> FittedTagger:
        """With sub-states or components: a tagger whose labels are the states, written label/sub-state.

        It has their weights (``coef_``, ``transitions_``, ``top_features``) and answers questions about paths of
        states.
        """
        model = self.model_
        if not isinstance(model, SubstateModel):
            raise AttributeError("states_ needs LatentChain or LatentMulticlass.")
        return FittedTagger(model.states, self.n_jobs)

    def _restore_model(self, record: Record) -> None:
        kind = record.text("kind", ("states", "bags") if self._has_gap else ("states",))
        self._model: Any = (BagModel if kind == "bags" else SubstateModel).from_record(record)

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
        hidden = [np.asarray(in_a_row(one)) for one in hidden]
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
