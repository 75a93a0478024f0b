"""The temperature of an estimator: its models are asked for scores of examples that they were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dualfield.models.structured import StructuredModel
from dualfield.models.temperature_scaling import Calibration, HeldOut, choose_temperature
from dualfield.structures.checks import n_threads
from dualfield.tuning.search import Examples, read_once


def calibrated(estimator: Any, X: Any, y: Any, lengths: ArrayLike | None, cv: Any) -> StructuredModel:
    """Return the model of an estimator of dependent labels, with the temperature that examples choose."""
    model = estimator._ask()
    if not isinstance(model, StructuredModel):
        raise ValueError("Only labels of sequences and of single nodes have marginals, and can be calibrated.")
    return replace(model, calibration=chosen(estimator, X, y, lengths, cv, held_out))


def chosen(estimator: Any, X: Any, y: Any, lengths: ArrayLike | None, cv: Any, read: Callable[..., Any]) -> Calibration:
    """Return the temperature that examples choose, or the folds of a cross-validation.

    read(model, X, y, lengths) returns a :class:`HeldOut` or what answers the same questions.
    """
    if cv is not None and lengths is not None:
        raise ValueError("The 'cv' parameter of calibrate takes lists of sequences, or rows. Got lengths, too.")
    folds = [(estimator, X, y)] if cv is None else _fitted_folds(estimator, X, y, cv)
    parts = [read(fold, inputs, labels, lengths) for fold, inputs, labels in folds]
    if not sum(len(part.codes) for part in parts):
        raise ValueError("X must have at least one node. Got none.")
    return choose_temperature(parts, estimator.n_jobs)


def held_out(estimator: Any, X: Any, y: Any, lengths: ArrayLike | None) -> HeldOut:
    """Return the scores of examples, and their labels."""
    read: HeldOut = estimator._ask().held_out(estimator._input(X), y, lengths, n_threads(estimator.n_jobs))
    return read


def _fitted_folds(estimator: Any, X: Any, y: Any, cv: Any) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Yield for each fold a model that was trained on the others, and the examples of the fold with their labels.

    Examples are sequences, or rows of a matrix. Those with a label that the others do not have are left out.
    """
    from sklearn.base import clone
    from sklearn.model_selection import check_cv

    base = clone(estimator)
    data = Examples(given=X, read=X, y=y, weights=None)
    if hasattr(base, "_fit_data"):
        data, base = read_once(base.set_params(warm_start=False), X, y)
    places = np.zeros(len(y))  # of which scikit-learn wants the number; it is slow with what is no array
    for train, test in check_cv(cv).split(places, None):
        part = data.take(train)
        model = copy(base).fit(part.read, part.y)
        rest, known = data.take(test), set(model.classes_)
        each = _labels_of_trees(model, rest.read, rest.y) or [_labels(one) for one in rest.y]
        at = [at for at, own in zip(test.tolist(), each, strict=True) if known.issuperset(own)]
        if at:
            kept = data.take(np.array(at, dtype=np.intp))
            yield model, kept.read, kept.y


def _labels_of_trees(model: Any, X: Any, y: Any) -> list[Any] | None:
    """Return the labels of the candidates of each example; None where those of y are the labels of nodes."""
    if getattr(getattr(model, "structure_", None), "empty_label", None) is None:
        return None
    shape = model.decision_scores(X).shape
    read = shape.read_labels(y)
    names, rows = read.labels.classes, np.split(read.codes, shape.offsets[1:-1])
    return [names[np.unique(own[own >= 0])].tolist() for own in rows]


def _labels(one: Any) -> Any:
    """Return the labels of an example: a sequence, those of an image, or one label."""
    if isinstance(one, np.ndarray):
        return one.ravel().tolist()
    return one if isinstance(one, list | tuple) else [one]
