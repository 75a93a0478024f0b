"""What models of tables of probabilities share that are trained with margins: their parameters, rule and solver."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.checks import check_choice, check_flag, check_integer, check_number
from dualfield.solvers import Simplicial, Solution, Status, StopRule, Trace, prototypes, solver_classes, solver_names

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_DEFAULT_ROUNDS = 10_000.0


def table_solver(model: Any) -> Any:
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
    if hasattr(model.solver, "missing") and model.solver.missing(prototypes.tables()) is None:
        return model.solver
    names = tuple(solver_names(prototypes.tables()))
    check_choice(owner, "solver", model.solver, names, "a solver object that takes a regulariser")
    chosen = solver_classes()[model.solver]
    return Simplicial(model.n_blocks, int(model.max_columns)) if chosen is Simplicial else chosen()


def check_floor(model: Any, reference: Floats, rows: Ints) -> None:
    """Raise unless the floor leaves room in every row (-1: no row), and where there are margins the reference is above.

    The reference is the start of the training, which must obey the floor.
    """
    owner, inside = type(model).__name__, rows >= 0
    longest = int(np.bincount(rows[inside]).max())
    if float(model.floor) * longest >= 1.0:
        raise ValueError(
            f"The 'floor' parameter of {owner} must be below 1 / {longest}: a row has {longest} entries. "
            f"Got {model.floor!r} instead."
        )
    if float(model.eta) == 0.0:
        return
    sums = np.bincount(rows[inside], reference[inside])
    least = float((reference[inside] / sums[rows[inside]]).min())
    if least < float(model.floor):
        name, remedy = ("smoothing", "Raise smoothing") if isinstance(model.prior, str) else ("prior", "Change it")
        raise ValueError(
            f"The {name!r} parameter of {owner} must leave no entry of the reference below floor={model.floor!r} of "
            f"the sum of its row. Got one of {least:.3g}. {remedy}, or lower floor."
        )


def counted(tables: Floats) -> Solution[Floats]:
    """Return tables that need no training as the solution that they are."""
    trace = Trace.from_rows(np.array([[0.0, 0.0, 0.0, 1.0, 0.0]]))
    return Solution(
        parameters=np.log(tables),
        objective=0.0,
        gap=0.0,
        status=Status.CONVERGED,
        n_iter=1,
        trace=trace,
        solver="counting",
    )


def table_rule(model: Any) -> StopRule:
    """Return when training stops."""
    return StopRule(float(model.tol), _DEFAULT_ROUNDS if model.max_iter is None else float(model.max_iter))
