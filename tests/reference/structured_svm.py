"""Structural SVMs by enumeration: every output of every example is a constraint of one programme for cvxpy."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy
import numpy as np

from tests.reference.chain_crf import ChainCRF, Example

TIGHT = {"solver": "CLARABEL", "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


@dataclass
class PlaneTable:
    """All planes of one example: b [m], a [m][p], and the weight of its loss. The truth is among them."""

    offsets: np.ndarray
    slopes: np.ndarray
    weight: float = 1.0

    def loss(self, w: np.ndarray) -> float:
        return float((self.offsets + self.slopes @ w).max())


def value(tables: list[PlaneTable], w: np.ndarray) -> float:
    return 0.5 * float(w @ w) + sum(table.weight * table.loss(w) for table in tables)


def minimum(tables: list[PlaneTable], positive: np.ndarray | None = None) -> tuple[float, np.ndarray]:
    """The primal with a slack for each example; weights that `positive` marks are at least 0."""
    w, slacks = cvxpy.Variable(tables[0].slopes.shape[1]), cvxpy.Variable(len(tables))
    constraints = [slacks[i] >= one.offsets + one.slopes @ w for i, one in enumerate(tables)]
    if positive is not None and positive.any():
        constraints.append(w[np.flatnonzero(positive)] >= 0)
    weights = np.array([table.weight for table in tables])
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + weights @ slacks), constraints)
    problem.solve(**TIGHT)
    return float(problem.value), w.value


def chain_tables(
    model: ChainCRF, examples: list[Example], cost: np.ndarray, rescaling: str = "margin"
) -> list[PlaneTable]:
    """Planes of all labellings of chains."""
    tables = []
    for example in examples:
        truth = model.features(example, tuple(example.truth))
        labellings = model.labellings(len(example.x))
        slopes = np.array([model.features(example, y) - truth for y in labellings]).reshape(len(labellings), -1)
        costs = np.array([sum(cost[a, b] for a, b in zip(example.truth, y, strict=True)) for y in labellings], float)
        scale = costs if rescaling == "slack" else np.ones(len(costs))
        tables.append(PlaneTable(costs, scale[:, None] * slopes, example.weight))
    return tables


def crammer_singer(X: np.ndarray, y: np.ndarray, W: np.ndarray, C: float) -> float:
    """The multiclass objective as its authors write it, without a bias."""
    scores = X @ W.T
    true = scores[np.arange(len(y)), y]
    margins = scores + 1.0 - np.eye(len(W))[y]
    return 0.5 * float((W**2).sum()) + C * float((margins.max(axis=1) - true).sum())
