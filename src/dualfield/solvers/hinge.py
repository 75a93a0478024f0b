"""Hinge losses with any solver, to a point that is never worse than weights of zero."""

from __future__ import annotations

from typing import Any, cast

from dualfield.data.arrays import Floats
from dualfield.objectives import CustomPlanes, Objective
from dualfield.solvers.auto import works_on_planes
from dualfield.solvers.base import Solution, StopRule
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.planes.course import offered
from dualfield.solvers.primal.relay import never_worse_than_zero


def solve_hinge(
    solver: Any,
    objective: Objective | CustomPlanes,
    rule: StopRule,
    start: Floats | Solution[Floats] | None,
    callbacks: FitCallbacks,
    seed: int,
) -> Solution[Floats]:
    """Solve the problem to a point that is never worse than weights of zero."""
    if getattr(solver, "safeguarded", False):
        return cast("Solution[Floats]", solver.solve(objective, rule, start, callbacks, seed))
    keeps_best = isinstance(objective, CustomPlanes) or works_on_planes(solver, objective)
    start = offered(objective, start) if keeps_best and not isinstance(start, Solution) else start
    solution: Solution[Floats] = solver.solve(objective, rule, start, callbacks, seed)
    return solution if keeps_best else never_worse_than_zero(cast(Objective, objective), solution, rule.tol)
