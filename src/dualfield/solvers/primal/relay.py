"""Solvers one after another, as if they were one, to a result that is never worse than where they could have begun.

A start that is worse than weights of zero is dropped. Where a solver stalls or is too slow, the next one goes on from
the best weights so far; after a start, the last one also begins anew, so that warm fits do not end worse than cold
ones. What is still worse than zero is drawn back towards it. All this is counted work: the same data give the same
model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from dualfield._native import StateError
from dualfield.data.arrays import Floats
from dualfield.objectives import Objective, PartitionedObjective, StreamedObjective
from dualfield.solvers.base import Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks, PassEnd, State
from dualfield.solvers.kept_state import kept_count, kept_numbers, kept_rows
from dualfield.solvers.trace import Trace, relative_gap

_UNFINISHED = (Status.STALLED, Status.TOO_SLOW)
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
_MOST_CUTS = 60


class TurnTaker(Protocol):
    """What takes part: it lowers an objective."""

    def solve(
        self,
        objective: Any,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective."""


def solve_in_turn(
    solvers: Sequence[TurnTaker],
    objective: Objective | PartitionedObjective | StreamedObjective,
    rule: StopRule,
    start: Floats | None = None,
    callbacks: Progress | None = None,
    random_state: Any = None,
) -> Solution[Floats]:
    """Solve an objective with the first solver, and the others where it does not get there.

    Parameters
    ----------
    solvers : sequence of solvers
        In their order.
    objective, rule, start, callbacks, random_state
        As for :meth:`BlockDual.solve`.

    Returns
    -------
    Solution
        The best point, its gap, and the whole course. Looks at values without a gradient are not counted as passes.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import LBFGS, StopRule, prototypes
    >>> from dualfield.solvers.primal.relay import solve_in_turn
    >>> objective = prototypes.objective(temperature=1.0)
    >>> bad = np.full(objective.n_parameters, 1e9)
    >>> solve_in_turn([LBFGS()], objective, StopRule(1e-6), bad).status.value
    'converged'
    """
    whole = Callbacks.of(callbacks)
    resume = whole.resume
    if start is not None and not objective.value(start) <= objective.value(np.zeros_like(start)):
        start = None
    turns = [*solvers, solvers[-1]] if start is not None else list(solvers)
    before = _Before.of(resume, len(turns), objective.n_parameters)
    while True:
        turn = before.n_turns
        is_anew = turn == len(solvers)
        begin = None if is_anew else before.parameters if before.parameters is not None else start
        rest = StopRule(rule.tol, max(rule.max_passes - before.passes, 1.0))
        solution = turns[turn].solve(objective, rest, begin, _Turn(whole, before, resume), random_state)
        solution = never_worse_than_zero(objective, before.with_all(solution), rule.tol)
        if solution.status not in _UNFINISHED or turn + 1 == len(turns) or rule.max_passes <= _passes(solution):
            return solution
        before, resume = _Before.after(solution, turn + 1), None


def _passes(solution: Solution[Floats]) -> float:
    return float(solution.trace.passes[-1])


def never_worse_than_zero(
    objective: Objective | PartitionedObjective | StreamedObjective, solution: Solution[Floats], tol: float
) -> Solution[Floats]:
    """Draw weights back towards zero until they are better than that; predictions stay as they are.

    Parameters
    ----------
    objective : Objective or StreamedObjective
        What was minimised.
    solution : Solution[Floats]
        What a solver found; one that has converged is returned as it is.
    tol : float
        On the relative gap.

    Returns
    -------
    Solution
        Its objective is at most that of zero weights; the gap goes with it.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import Solution, Status, Trace, prototypes
    >>> from dualfield.solvers.primal.relay import never_worse_than_zero
    >>> loss = prototypes.objective(temperature=1.0)
    >>> w = np.zeros(loss.n_parameters)
    >>> w[:2] = -8.0, 8.0
    >>> course = Trace.from_rows(np.array([[loss.value(w), 0.0, loss.value(w), 1.0, 0.1]]))
    >>> value = loss.value(w)
    >>> far = Solution(
    ...     parameters=w, objective=value, gap=value, status=Status.STALLED, n_iter=1, trace=course, solver="lbfgs"
    ... )
    >>> bool(never_worse_than_zero(loss, far, 1e-3).objective <= np.log(2.0))
    True
    """
    if solution.status is Status.CONVERGED:
        return solution
    value, dual = solution.objective, _bound(solution)
    at_zero = objective.value(np.zeros_like(solution.parameters))
    if value <= at_zero:
        return _end(solution, solution.parameters, value, dual, tol)
    drawn = solution.parameters
    for _ in range(_MOST_CUTS):
        drawn = 0.25 * drawn
        if objective.value(drawn) <= at_zero:
            break
    else:
        drawn = np.zeros_like(drawn)
    value, gap = objective.certify(drawn)
    return _end(solution, drawn, value, max(dual, value - gap), tol)


def _bound(solution: Solution[Floats]) -> float:
    """Return the dual value; where the primal one is large, a difference from it has lost the digits of small ones."""
    return float(solution.trace.dual[-1]) - _ROUNDING * abs(solution.objective)


def _end(solution: Solution[Floats], parameters: Floats, value: float, dual: float, tol: float) -> Solution[Floats]:
    """Put the better of the known values in a solution, and at the end of its course."""
    gap = max(value - dual, _ROUNDING * abs(value))
    if not (value < solution.objective or gap < solution.gap):
        return solution
    reached = solution.status in _UNFINISHED and relative_gap(value, gap) <= tol
    return replace(
        solution,
        parameters=parameters,
        objective=value,
        gap=gap,
        status=Status.CONVERGED if reached else solution.status,
        trace=solution.trace.ended(value, dual, gap),
    )


class _Before(NamedTuple):
    """What the solvers so far have come to."""

    n_turns: int
    trace: Trace
    n_iter: int
    parameters: Floats | None

    @classmethod
    def of(cls, resume: State | None, n_turns: int, n_parameters: int) -> _Before:
        """Begin, or go on from a state."""
        if resume is None or "rows_before" not in resume:
            return cls(0, Trace.from_rows(np.zeros((0, 5))), 0, None)
        rows, parameters = kept_rows(resume, "rows_before"), kept_numbers(resume, "parameters_before", n_parameters)
        turns = kept_count(resume, "turns_before")
        if not 0 < turns < n_turns:
            raise StateError(f"turns_before must be a number from 1 to {n_turns - 1}")
        return cls(turns, Trace.from_rows(rows), kept_count(resume, "n_iter_before"), parameters)

    @classmethod
    def after(cls, solution: Solution[Floats], n_turns: int) -> _Before:
        return cls(n_turns, solution.trace, solution.n_iter, solution.parameters)

    @property
    def passes(self) -> float:
        return float(self.trace.passes[-1]) if len(self.trace) else 0.0

    @property
    def seconds(self) -> float:
        return float(self.trace.seconds[-1]) if len(self.trace) else 0.0

    @property
    def bound(self) -> float:
        return float(self.trace.dual[-1]) if len(self.trace) else -np.inf

    def state(self) -> State:
        if self.parameters is None:
            return {}
        counts = {"turns_before": self.n_turns, "n_iter_before": self.n_iter}
        arrays = {name: np.array([count], dtype=np.uint64) for name, count in counts.items()}
        return {**arrays, "rows_before": self.trace.rows(), "parameters_before": self.parameters}

    def with_all(self, solution: Solution[Floats]) -> Solution[Floats]:
        """Put what was before in front of a solution; the better weights count."""
        if self.parameters is None:
            return solution
        whole = replace(solution, n_iter=self.n_iter + solution.n_iter, trace=self.trace.then(solution.trace))
        value, dual = self.trace.end.objective, max(self.bound, _bound(solution))
        return _end(whole, self.parameters, value, dual, 0.0) if value < solution.objective else whole


class _Turn(Callbacks):
    """Tells of a solver as if all before it were part of it."""

    def __init__(self, callbacks: Callbacks, before: _Before, resume: State | None) -> None:
        self._callbacks, self._before, self.resume, self.bound = callbacks, before, resume, before.bound
        self.interval = callbacks.interval
        self._pass_end = callbacks.pass_end
        self.pass_end = None if self._pass_end is None else self._tell_pass_end

    def __call__(self, objective: float, dual: float, gap: float, passes: float, seconds: float) -> None:
        self._callbacks(objective, dual, gap, self._before.passes + passes, self._before.seconds + seconds)

    def _tell_pass_end(self, end: PassEnd) -> bool:
        assert self._pass_end is not None
        return bool(self._pass_end(_LaterPassEnd(end, self._before)))


class _LaterPassEnd:
    def __init__(self, end: PassEnd, before: _Before) -> None:
        self._end, self._before = end, before

    def progress(self) -> tuple[float, float, float, float, float]:
        objective, dual, gap, passes, seconds = self._end.progress()
        return objective, dual, gap, self._before.passes + passes, self._before.seconds + seconds

    def parameters(self) -> Floats:
        return self._end.parameters()

    def state(self) -> State:
        return {**self._end.state(), **self._before.state()}
