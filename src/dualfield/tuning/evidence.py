"""C by the evidence of the training data: no folds, no held-out data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dualfield.data.checks import check_choice
from dualfield.models.bayes.evidence import Evidence, EvidenceTable, laplace_evidence
from dualfield.models.training_data import TrainingData
from dualfield.tuning.grid import Grid
from dualfield.tuning.path import fit_path

__all__ = ["evidence_path", "evidence_search"]

DECADES = (0.1, 1.0, 10.0, 100.0, 1000.0)
_MOST_STEPS, _ENOUGH = 20, 0.05  # of the fixed point, and the last change of log C


def check_evidence(
    estimator: Any, data: TrainingData, what: str = "evidence of CRF", instead: str = "Choose C by CRFCV"
) -> None:
    """Refuse what has no evidence, or none that Laplace's approximation gives; so of posteriors."""
    reason = ""
    if not getattr(estimator._check_parameters(), "certifies", True):
        reason = f"a solver that minimises the objective: the weights of solver={estimator.solver!r} are no mode"
    elif estimator.kernel is not None:
        reason = "kernel=None: weights of columns have a prior"
    elif estimator.l1_ratio > 0.0:
        reason = "l1_ratio=0.0: an absolute value has no second derivative at 0"
    elif data.cost is not None:
        reason = "cost=None: with a cost the losses are not log-likelihoods"
    elif data.allowed is not None:
        reason = "labels that are all known: otherwise the problem is not convex"
    elif not estimator._objective(data).has_hessian:
        reason = f"covariances of parts, which {data.structure!r} does not have"
    if reason:
        raise ValueError(f"The {what} needs {reason}. {instead} instead.")


def evidence_path(estimator: Any, data: TrainingData, Cs: Sequence[float]) -> Iterator[tuple[Any, Evidence]]:
    """Fit an estimator for each C, and compute the evidence there.

    Parameters
    ----------
    estimator : CRF
        Whose other parameters all fits have; it is not changed.
    data : TrainingData
        Read for this estimator with C = 1.
    Cs : sequence of float
        In rising order.

    Yields
    ------
    (estimator, Evidence)
        A fitted one for each C, and its evidence.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.tuning.evidence import evidence_path
    >>> model = CRF()
    >>> data = model._read([[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]], None, None)
    >>> [round(found.log_evidence, 2) for _, found in evidence_path(model, data, [0.1, 1.0])]
    [-2.04, -1.87]
    """
    check_evidence(estimator, data)
    for fitted in fit_path(estimator, data, Cs):
        C = float(fitted.C)
        objective = fitted._objective(replace(data, weights=C * data.weights))
        yield fitted, laplace_evidence(objective, fitted.parameters_, C)


def evidence_search(
    estimator: Any, data: TrainingData, Cs: Any = None, method: str = "grid"
) -> tuple[EvidenceTable, Any]:
    """Return the evidences of several C, and the estimator fitted with the best one.

    Parameters
    ----------
    estimator : CRF
        Whose other parameters all fits have; it is not changed.
    data : TrainingData
        Read for this estimator with C = 1.
    Cs : int or list of float, default=None
        Values of C as for CRFCV; None: decades from 0.1 to 1000, then half decades beside the best.
    method : {"grid", "fixed_point"}, default="grid"
        "fixed_point" moves C to |w|^2 / (T n_informed) until it stays where it is (MacKay 1992).

    Returns
    -------
    (EvidenceTable, estimator)
        All that was computed, and the best.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.tuning.evidence import evidence_search
    >>> model = CRF()
    >>> data = model._read([[["a"], ["b"]], [["b"]]] * 9, [["x", "y"], ["y"]] * 9, None, None)
    >>> table, fitted = evidence_search(model, data, [0.1, 1.0, 10.0])
    >>> table.best.C == fitted.C
    True
    """
    check_choice("evidence", "method", method, ("grid", "fixed_point"))
    if method == "fixed_point":
        found = list(_fixed_point(estimator, data))
    else:
        values = DECADES if Cs is None else Grid.read("evidence", Cs).Cs
        found = list(evidence_path(estimator, data, values))
        if Cs is None:
            best = max(found, key=lambda pair: pair[1].log_evidence)[1].C
            near = [C for C in (best / math.sqrt(10.0), best * math.sqrt(10.0)) if DECADES[0] < C < DECADES[-1]]
            found += evidence_path(estimator, data, near)
    fitted = max(found, key=lambda pair: pair[1].log_evidence)[0]
    return EvidenceTable(tuple(sorted((row for _, row in found), key=lambda row: row.C))), fitted


def _fixed_point(estimator: Any, data: TrainingData) -> Iterator[tuple[Any, Evidence]]:
    """Yield C after C, each from the weights of the one before."""
    C, T = 1.0, float(estimator.temperature)
    for _ in range(_MOST_STEPS):
        fitted, row = next(evidence_path(estimator, data, [C]))
        yield fitted, row
        if not row.squared_norm > 0.0 or not row.n_informed > 0.0:
            return
        moved = row.squared_norm / (T * row.n_informed)
        if abs(math.log(moved / C)) <= _ENOUGH:
            return
        C = moved
