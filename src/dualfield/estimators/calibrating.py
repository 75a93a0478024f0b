"""The temperature of an estimator: its models are asked for scores of examples that they were not trained on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from dualfield.data.user_warnings import warn_user
from dualfield.models.structured import StructuredModel
from dualfield.models.temperature_scaling import Calibration, HeldOut, choose_temperature
from dualfield.structures.checks import n_threads
from dualfield.tuning.fitted_folds import fitted_folds


def calibrated(estimator: Any, X: Any, y: Any, lengths: ArrayLike | None, cv: Any) -> StructuredModel:
    """Return the model of an estimator of dependent labels, with the temperature that examples choose."""
    model = estimator._ask()
    if not isinstance(model, StructuredModel):
        raise ValueError("Only labels of sequences and of single nodes have marginals, and can be calibrated.")
    return model.calibrated(chosen(estimator, X, y, lengths, cv, held_out))


def chosen(estimator: Any, X: Any, y: Any, lengths: ArrayLike | None, cv: Any, read: Callable[..., Any]) -> Calibration:
    """Return the temperature that examples choose, or the folds of a cross-validation.

    read(model, X, y, lengths) returns a :class:`HeldOut` or what answers the same questions.
    """
    if cv is not None and lengths is not None:
        raise ValueError("The 'cv' parameter of calibrate takes lists of sequences, or rows. Got lengths, too.")
    folds = [(estimator, X, y)] if cv is None else fitted_folds(estimator, X, y, cv)
    parts = [read(fold, inputs, labels, lengths) for fold, inputs, labels in folds]
    if not sum(len(part.codes) for part in parts):
        raise ValueError(
            "X must have at least one node. Got none."
            if cv is None
            else "The folds of calibrate must have examples whose labels the other folds have, too. Got none: use "
            "other folds, or shuffle them, such as cv=KFold(5, shuffle=True)."
        )
    found = choose_temperature(parts, estimator.n_jobs)
    if found.doubt is not None:
        warn_user(found.doubt)
    return found


def held_out(estimator: Any, X: Any, y: Any, lengths: ArrayLike | None) -> HeldOut:
    """Return the scores of examples, and their labels."""
    read: HeldOut = estimator._ask().held_out(estimator._input(X), y, lengths, n_threads(estimator.n_jobs))
    return read
