"""Hinge losses with any solver, to a point that is never worse than weights of zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.objectives import ChainLoss, ChainPlanes, CustomPlanes
from dualfield.solvers.base import Solution, StopRule
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.planes.course import offered
from dualfield.solvers.primal.relay import never_worse_than_zero

Floats = NDArray[np.float64]


def solve_hinge(
    solver: Any,
    objective: ChainLoss | ChainPlanes | CustomPlanes,
    rule: StopRule,
    start: Floats | None,
    callbacks: FitCallbacks,
    seed: int,
) -> Solution[Floats]:
    """Solve a form of the problem to a point that is never worse than weights of zero."""
    if not isinstance(objective, ChainLoss):  # solvers of planes keep the best point
        start = offered(objective, start)
    solution: Solution[Floats] = solver.solve(objective, rule, start, callbacks, seed)
    return never_worse_than_zero(objective, solution, rule.tol) if isinstance(objective, ChainLoss) else solution
