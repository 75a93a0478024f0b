"""Latent sub-states of chains, completed: an ordinary structural SVM over states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.objectives.latent import Completion
from dualfield.objectives.latent_chain import StateProblem
from dualfield.solvers.base import Solution, Status, StopRule
from dualfield.solvers.dual.flow_swap import FlowSwap
from dualfield.solvers.latent.records import InnerSolver


class StateSolver:
    """Minimises the bound of completed states by flow swaps: an ordinary structural SVM over states.

    The flow of one step is where the next one begins: it stays feasible whatever the completed states are. Soft
    completions, which are no labelling, are left to another solver, and so are problems that take too many passes.
    """

    def __init__(self, problem: StateProblem, otherwise: InnerSolver, patience: float = np.inf) -> None:
        self._problem, self._otherwise, self._patience = problem, otherwise, patience
        self._last: Solution[Floats] | None = None

    def minimise(self, completion: Completion, start: Floats | None, rule: StopRule, seed: int) -> Solution[Floats]:
        """Solve the convex problem of a completion."""
        if completion.temperature > 0.0:
            return self._otherwise.minimise(completion, start, rule, seed)
        objective, patient = self._problem.objective(completion.states), min(self._patience, rule.max_passes)
        begin = start if self._last is None or start is None else replace(self._last, parameters=start)
        self._last = solution = FlowSwap().solve(objective, StopRule(rule.tol, patient), begin, None, seed)
        if solution.status in (Status.CONVERGED, Status.INTERRUPTED) or patient == rule.max_passes:
            return solution
        return self._otherwise.minimise(completion, solution.parameters, rule, seed)
