"""A path over C: models of the same data from small C to large, each fit from what the ones before have found.

Weights move smoothly with log C. A polynomial through the last solutions predicts the next one so well that L-BFGS
starts close to it. For the hinge the dual point goes along instead: masses of labellings, of which the share C / C' is
kept and the rest goes to the truth. This is a point of the dual for C' with the same weights, and its value is not
lower. All fits end at the same gap as without a start.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from dualfield.data.arrays import Floats
from dualfield.models.training_data import TrainingData
from dualfield.solvers import LBFGS, Solution

__all__ = ["fit_path"]

_MANY_PASSES = 30.0  # of the block dual: for the next C it will not be the quicker one
_POINTS = 3  # solutions that a polynomial goes through, at most


def fit_path(estimator: Any, data: TrainingData, Cs: Sequence[float]) -> Iterator[Any]:
    """Fit an estimator for each C.

    Parameters
    ----------
    estimator : CRF or StructuredSVM
        Whose parameters all fits have; it is not changed.
    data : TrainingData
        Read for this estimator with C = 1.
    Cs : sequence of float
        In the order of the fits; rising values are the quick ones.

    Yields
    ------
    estimator
        A fitted one, for each C.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.tuning.path import fit_path
    >>> model = CRF(C=1.0)
    >>> data = model._read([[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]], None, None)
    >>> [fitted.C for fitted in fit_path(model, data, [0.1, 1.0, 10.0])]
    [0.1, 1.0, 10.0]
    """
    # Without convexity, or with epochs in the place of a gap, the result would depend on the start.
    carries = data.allowed is None and not getattr(_solver_class(estimator), "makes_epochs", False)
    found: list[tuple[float, Solution[Floats]]] = []
    for C in Cs:
        model, weighed = clone(estimator).set_params(C=C), replace(data, weights=C * data.weights)
        before = found[-_POINTS:] if carries else []
        if hasattr(model, "rescaling"):
            solution = model._fit_data(weighed, _hinge_start(weighed, before, C))
        else:
            solver = LBFGS() if before and _takes_lbfgs(model, before[-1][1]) else None
            start = _best_guess(model, weighed, before, C) if solver or model.solver != "auto" else None
            solution = model._fit_data(weighed, start, solver)
        found.append((C, solution))
        yield model


def _solver_class(estimator: Any) -> Any:
    from dualfield.solvers import solver_classes

    return solver_classes().get(estimator.solver) if isinstance(estimator.solver, str) else estimator.solver


def _takes_lbfgs(model: Any, last: Solution[Floats]) -> bool:
    """Whether the choice of the solver is free, and block dual ascent was slow or could not take the problem."""
    return model.solver == "auto" and (last.solver != "block_dual" or float(last.trace.passes[-1]) > _MANY_PASSES)


def _best_guess(model: Any, data: TrainingData, before: list[tuple[float, Solution[Floats]]], C: float) -> Any:
    """Return the best of the last weights and of the polynomials in log C through the last two and three."""
    if not before:
        return None
    guesses = [before[-1][1].parameters]
    for n in range(2, len(before) + 1):
        places = [math.log(known) for known, _ in before[-n:]]
        if len(set(places)) == n:
            shares = _lagrange(places, math.log(C))
            weights = np.stack([solution.parameters for _, solution in before[-n:]])
            guesses.append(np.tensordot(shares, weights, axes=1))
    if len(guesses) == 1:
        return guesses[0]
    objective = model._objective(data)
    return min(guesses, key=objective.value)


def _lagrange(places: Sequence[float], at: float) -> list[float]:
    """Return the share of the value at each place in that of the polynomial through all of them."""
    return [
        math.prod((at - other) / (own - other) for other in places if other != own) for own in places
    ]  # fmt: skip


def _hinge_start(data: TrainingData, before: list[tuple[float, Solution[Floats]]], C: float) -> Any:
    if not before:
        return None
    last_C, last = before[-1]
    if last.dual is None or "edge_masses" not in last.dual:
        return last.parameters
    share = min(1.0, last_C / C)
    return replace(last, dual=_towards_truth(dict(last.dual), data, share))


def _towards_truth(flow: dict[str, Any], data: TrainingData, share: float) -> dict[str, Any]:
    """Return the flow of which only a share is left, and all other mass is at the true labellings."""
    if share == 1.0:
        return flow
    codes, offsets = data.codes.astype(np.uint64), data.nodes.offsets
    left = np.concatenate([codes[:1], codes[:-1]])
    left[offsets[:-1][np.diff(offsets) > 0]] = 0  # nothing is left of a first node
    ends = np.cumsum(flow["edge_counts"].astype(np.int64))
    return {
        "edge_counts": flow["edge_counts"] + np.uint64(1),
        "edge_labels": np.insert(
            flow["edge_labels"].reshape(-1, 2), ends, np.stack([left, codes], axis=1), axis=0
        ).ravel(),
        "edge_masses": np.insert(share * flow["edge_masses"], ends, 1.0 - share),
    }
