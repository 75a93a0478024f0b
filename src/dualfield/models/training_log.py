"""The course of a fit in the words of python-crfsuite's log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.solvers.trace import Trace

__all__ = ["TrainingLog"]


@dataclass(frozen=True)
class TrainingLog:
    """What a fit has logged, with the names that ``training_log_`` of sklearn-crfsuite has.

    Attributes
    ----------
    iterations : list of dict
        One for each look at the fit: "num", counted from 1; "loss", CRFsuite's objective; "time", the seconds since the
        look before; "gap", a bound on the distance of the loss from its minimum. The last one also has "feature_norm",
        the Euclidean norm of the weights, "active_features", how many are not zero, and, if there were development
        data, "item_accuracy_float", the share of right labels.
    featgen_num_features : int
        The number of weights.
    training_seconds : float
        The time of all iterations.

    Examples
    --------
    >>> from dualfield.estimators.crfsuite import CRF
    >>> crf = CRF(c2=0.1).fit([[["a"], ["b"]]], [["x", "y"]], [[["b"]]], [["y"]])
    >>> log = crf.training_log_
    >>> log.last_iteration["item_accuracy_float"], log.last_iteration["active_features"]
    (1.0, 3)
    >>> log.last_iteration["loss"] == crf.objective_
    True
    """

    iterations: list[dict[str, Any]]
    featgen_num_features: int
    training_seconds: float

    @classmethod
    def of(cls, trace: Trace, parameters: Floats, n_features: int, dev_score: float | None = None) -> TrainingLog:
        """Make the log of a fit.

        Parameters
        ----------
        trace : Trace
            The course, in units of CRFsuite's objective.
        parameters : ndarray
            The weights at its end; those that are not features are zero.
        n_features : int
            How many features there are.
        dev_score : float, default=None
            Share of right labels on development data.

        Returns
        -------
        TrainingLog
            The log.
        """
        times = np.diff(trace.seconds, prepend=0.0).tolist()
        iterations: list[dict[str, Any]] = [
            {"num": at + 1, "scores": {}, "loss": loss, "time": time, "gap": gap}
            for at, (loss, time, gap) in enumerate(
                zip(trace.objective.tolist(), times, trace.gap.tolist(), strict=True)
            )
        ]
        iterations[-1] |= {
            "feature_norm": float(np.linalg.norm(parameters)),
            "active_features": int(np.count_nonzero(parameters)),
        }
        if dev_score is not None:
            iterations[-1]["item_accuracy_float"] = dev_score
        return cls(iterations, n_features, float(trace.seconds[-1]))

    @property
    def last_iteration(self) -> dict[str, Any]:
        """The last of the iterations."""
        return self.iterations[-1]
