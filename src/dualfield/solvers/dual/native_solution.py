"""What native solvers of linear models return, as a solution."""

from __future__ import annotations

from typing import Any

from dualfield.data.arrays import Floats
from dualfield.solvers.base import Solution, Status
from dualfield.solvers.trace import Trace


def native_solution(result: Any, solver: str, dual: Any = None) -> Solution[Floats]:
    """Take over the point of a native solver, its gap and its course, and perhaps its dual point."""
    parameters, value, gap, outcome, n_iter, rows = result
    return Solution(
        parameters=parameters,
        objective=value,
        gap=gap,
        status=Status(outcome),
        n_iter=n_iter,
        trace=Trace.from_rows(rows),
        solver=solver,
        dual=dual,
    )
