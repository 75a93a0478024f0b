"""What a structural SVM is told beside its data: costs, signs of weights, and which solver to use."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch, Labels
from dualfield.objectives import CustomPlanes, Objective
from dualfield.scores import LinearScores
from dualfield.solvers import Solution, StopRule
from dualfield.solvers.auto import works_on_planes
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.planes.course import offered
from dualfield.solvers.primal.relay import never_worse_than_zero

Floats = NDArray[np.float64]
_DEFAULT_PASSES = 10_000.0


def solve_hinge(
    solver: Any,
    objective: Objective | CustomPlanes,
    rule: StopRule,
    start: Floats | None,
    callbacks: FitCallbacks,
    seed: int,
) -> Solution[Floats]:
    """Solve the problem to a point that is never worse than weights of zero."""
    if getattr(solver, "safeguarded", False):
        return cast("Solution[Floats]", solver.solve(objective, rule, start, callbacks, seed))
    keeps_best = isinstance(objective, CustomPlanes) or works_on_planes(solver, objective)
    start = offered(objective, start) if keeps_best else start
    solution: Solution[Floats] = solver.solve(objective, rule, start, callbacks, seed)
    return solution if keeps_best else never_worse_than_zero(cast(Objective, objective), solution, rule.tol)


def margin_rule(solver: Any, tol: float, max_iter: int | None) -> StopRule:
    """Return when training stops."""
    endless = getattr(solver, "makes_epochs", False)
    return StopRule(tol, (np.inf if endless else _DEFAULT_PASSES) if max_iter is None else float(max_iter))


def margin_cost(owner: str, cost: Any, labels: Labels) -> Floats:
    """Return the cost of each label by true label."""
    n, kinds = len(labels), "'hamming', an array or a callable"
    if isinstance(cost, str) and cost == "hamming":
        return 1.0 - np.eye(n)
    if cost is None or isinstance(cost, str):
        raise ValueError(f"The 'cost' parameter of {owner} must be {kinds}. Got {cost!r} instead.")
    names = labels.classes.tolist()
    table = np.array([[cost(a, b) for b in names] for a in names]) if callable(cost) else np.asarray(cost)
    try:
        table = np.ascontiguousarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The 'cost' parameter of {owner} must be {kinds}. Got {cost!r} instead.") from error
    if table.shape != (n, n) or not np.isfinite(table).all() or np.diag(table).any() or (table < 0.0).any():
        raise ValueError(
            f"The 'cost' parameter of {owner} must be finite numbers of at least 0 of shape {(n, n)} with zeros on the "
            f"diagonal. Got shape {table.shape}."
        )
    return table


def check_signs(owner: str, positive: Any, n_parameters: int) -> NDArray[np.bool_] | None:
    """Return which parameters of an output space of the user's own must not be negative."""
    if positive is None:
        return None
    if positive is True:
        return np.ones(n_parameters, dtype=bool)
    mask = np.asarray(positive)
    if mask.dtype != np.bool_ or mask.shape != (n_parameters,):
        raise ValueError(
            f"The 'positive' parameter of {owner} must be None, True or a boolean array of shape ({n_parameters},). "
            f"Got {positive!r} instead."
        )
    return mask


def positive_weights(
    owner: str, positive: Any, score_map: LinearScores, nodes: Batch, labels: Labels
) -> NDArray[np.bool_] | None:
    """Return which parameters of a chain must not be negative."""
    if positive is None:
        return None
    if positive is True:
        return np.ones(score_map.n_parameters, dtype=bool)
    shape = (len(labels), nodes.n_columns)
    flags = np.zeros(shape, dtype=bool)
    if isinstance(positive, np.ndarray) and positive.dtype == np.bool_:
        if positive.shape != shape:
            raise ValueError(
                f"The 'positive' parameter of {owner} must have shape {shape}, as coef_, if it is a boolean array. "
                f"Got shape {positive.shape} instead."
            )
        flags = positive
    elif isinstance(positive, (list, tuple)):
        names = labels.classes.tolist()
        for item in positive:
            column, label = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
            if label is not None and label not in names:
                raise ValueError(f"The 'positive' parameter of {owner} names {label!r}, which is no label of y.")
            rows = slice(None) if label is None else names.index(label)
            flags[rows, _columns(owner, column, nodes)] = True
    else:
        raise ValueError(
            f"The 'positive' parameter of {owner} must be None, True, a boolean array, or a list of columns or of "
            f"(column, label). Got {positive!r} instead."
        )
    table = score_map.node
    return (
        score_map.pack(flags[table.outputs, table.columns].astype(float), np.zeros(score_map.structure.n_cliques)) > 0.0
    )


def _columns(owner: str, column: Any, nodes: Batch) -> NDArray[np.int64]:
    """Return the columns that a selector stands for: attributes that begin with a string, or a number."""
    if isinstance(column, str) and nodes.vocabulary is not None:
        found = [at for at, name in enumerate(nodes.vocabulary) if name.startswith(column)]
    elif isinstance(column, (int, np.integer)) and not isinstance(column, bool) and nodes.vocabulary is None:
        found = [int(column)] if 0 <= column < nodes.n_columns else []
    else:
        found = []
    if not found:
        kind = f"a column in [0, {nodes.n_columns})" if nodes.vocabulary is None else "the beginning of an attribute"
        raise ValueError(f"The 'positive' parameter of {owner} names {column!r}, which is not {kind}.")
    return np.array(found, dtype=np.int64)
