"""What models of tables of probabilities share that are trained with margins: their parameters, rule and solver."""

from __future__ import annotations

from typing import Any

from dualfield.estimators.checks import check_flag, check_integer, check_number, pick_solver
from dualfield.solvers import Simplicial, StopRule

_DEFAULT_ROUNDS = 10_000.0


def table_solver(model: Any) -> Simplicial:
    """Check the parameters of training, and return the solver; one given by name has the settings of the model."""
    owner = type(model).__name__
    check_number(owner, "eta", model.eta, 0.0)
    check_number(owner, "floor", model.floor, 0.0, open_low=True)
    if model.floor >= 1.0:
        raise ValueError(f"The 'floor' parameter of {owner} must be a float in (0, 1). Got {model.floor!r} instead.")
    check_number(owner, "tol", model.tol, 0.0, open_low=True)
    check_integer(owner, "max_iter", model.max_iter, 1, or_none=True)
    check_integer(owner, "max_columns", model.max_columns, 1)
    if not isinstance(model.n_blocks, str) or model.n_blocks != "auto":
        check_integer(owner, "n_blocks", model.n_blocks, 1)
    check_flag(owner, "warm_start", model.warm_start)
    check_integer(owner, "verbose", model.verbose, 0)
    solver = pick_solver(owner, model.solver, {"simplicial": Simplicial})
    return Simplicial(model.n_blocks, int(model.max_columns)) if isinstance(model.solver, str) else solver


def table_rule(model: Any) -> StopRule:
    """Return when training stops."""
    return StopRule(float(model.tol), _DEFAULT_ROUNDS if model.max_iter is None else float(model.max_iter))
