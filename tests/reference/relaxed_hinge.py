"""The hinge on the local polytope of graphs as a quadratic programme with all tables of edges, by cvxpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp


def relaxed_minimum(
    X: Sequence[tuple[Any, ...]],
    y: Sequence[Any],
    n_labels: int,
    *,
    weights: Any = 1.0,
    cost: Any = None,
    n_types: int = 1,
) -> float:
    """The dual: tables of nodes and edges, which sum up to each other, and the weights that belong to them.

    A graph is (nodes, edges, types, features of edges); types and features may be None. Every feature of a node has a
    weight for each label; every type and every feature of an edge has one for each pair of labels.
    """
    k, cost = n_labels, 1.0 - np.eye(n_labels) if cost is None else np.asarray(cost)
    value, constraints, node_weights, type_weights, edge_weights = 0.0, [], 0.0, 0.0, 0.0
    for c, (nodes, edges, types, features), labels in zip(np.broadcast_to(weights, len(X)), X, y, strict=True):
        n, m, truth = len(nodes), len(edges), np.asarray(labels)
        mu = cp.Variable((n, k), nonneg=True)
        constraints.append(cp.sum(mu, axis=1) == 1)
        value += c * cp.sum(cp.multiply(cost[truth], mu))
        node_weights += c * (nodes.T @ (np.eye(k)[truth] - mu))
        if m == 0:
            continue
        pairs = cp.Variable((m, k * k), nonneg=True)
        rows, columns = np.kron(np.eye(k), np.ones((k, 1))), np.kron(np.ones((k, 1)), np.eye(k))
        ends = [sp.csr_array((np.ones(m), (np.arange(m), edges[:, end])), shape=(m, n)) for end in (0, 1)]
        constraints += [pairs @ rows == ends[0] @ mu, pairs @ columns == ends[1] @ mu]
        moved = np.eye(k * k)[truth[edges[:, 0]] * k + truth[edges[:, 1]]] - pairs
        of_type = np.eye(n_types)[np.zeros(m, dtype=int) if types is None else types]
        type_weights += c * (of_type.T @ moved)
        if features is not None:
            edge_weights += c * (features.T @ moved)
    penalty = sum(cp.sum_squares(one) for one in (node_weights, type_weights, edge_weights) if not np.isscalar(one))
    problem = cp.Problem(cp.Maximize(value - 0.5 * penalty), constraints)
    return float(problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10))
