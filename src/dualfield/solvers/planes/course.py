"""The course of a solver of planes: its best point, its best bound, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.objectives import PlaneProblem, Planes
from dualfield.solvers.base import Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.trace import Trace, relative_gap

State = dict[str, NDArray[Any]]


class Look(NamedTuple):
    """A point with its value, a bound from below on all values, and the passes so far."""

    w: Floats
    primal: float
    dual: float
    passes: float


# A solver yields what it has reached, and returns how it ended where it ends by itself.
Looks = Generator[Look, None, Status]


class PlaneCourse:
    """Follows a solver, keeps the best of both sides, and shows itself to ``callbacks.pass_end`` at every look.

    Parameters
    ----------
    problem : PlaneProblem
        What is minimised.
    rule : StopRule
        When to stop.
    callbacks : Callbacks, callable or None
        Called after each pass with objective, dual, gap, passes and seconds.
    resolution : float, default=0.0
        Of the objective: gaps are not smaller, and one of this size is as good as none.
    """

    def __init__(
        self, problem: PlaneProblem, rule: StopRule, callbacks: Progress | None, resolution: float = 0.0
    ) -> None:
        self._rule, self._callbacks, self._resolution = rule, Callbacks.of(callbacks), resolution
        if self._callbacks.resume is not None:
            raise ValueError("This solver cannot go on from a checkpoint. Use solver='auto' without one.")
        self._pass_end = self._callbacks.pass_end
        self._best, self._primal, self._dual = np.zeros(problem.n_parameters), np.inf, -np.inf
        self._rows: list[tuple[float, float, float, float, float]] = []
        self._began = time.perf_counter()

    @property
    def gap(self) -> float:
        """The best value minus the best bound."""
        return max(self._primal - self._dual, self._resolution) if self._rows else np.inf

    @property
    def primal(self) -> float:
        """The best value."""
        return self._primal

    def follow(self, looks: Looks, name: str) -> Solution[Floats]:
        """Let a solver run until the rule is met, it ends, the monitor asks to stop, or the keyboard interrupts it."""
        status, n_iter = Status.INTERRUPTED, 0
        try:
            while True:
                try:
                    look = next(looks)
                except StopIteration as end:
                    status = end.value
                    break
                n_iter += 1
                ended = self._look(look)
                if ended is not None:
                    status = ended
                    break
        except KeyboardInterrupt:
            pass
        rows = self._rows or [(np.inf, -np.inf, np.inf, 0.0, 0.0)]
        return Solution(
            parameters=self._best,
            objective=self._primal,
            gap=self.gap,
            status=status,
            n_iter=max(1, n_iter),
            trace=Trace.from_rows(np.array(rows)),
            solver=name,
        )

    def _look(self, look: Look) -> Status | None:
        if look.primal < self._primal:
            self._best, self._primal = look.w.copy(), look.primal
        self._dual = max(self._dual, look.dual)
        gap = max(self._primal - self._dual, self._resolution)
        self._rows.append((self._primal, self._dual, gap, look.passes, time.perf_counter() - self._began))
        self._callbacks(*self._rows[-1])
        if relative_gap(self._primal, gap) <= self._rule.tol or gap <= self._resolution:
            return Status.CONVERGED
        if self._pass_end is not None and self._pass_end(self):
            return Status.STOPPED
        return Status.ITERATION_LIMIT if look.passes >= self._rule.max_passes else None

    def progress(self) -> tuple[float, float, float, float, float]:
        """Return objective, dual, gap, passes and seconds of the last look."""
        return self._rows[-1]

    def parameters(self) -> Floats:
        """Return the best weights so far."""
        return self._best

    def state(self) -> State:
        """Say that there is none."""
        raise ValueError("This solver cannot keep its state in a checkpoint. Fit without one.")


def primal_value(problem: PlaneProblem, w: Floats, planes: Planes) -> float:
    """Return P(w), given the highest planes at w."""
    return problem.regulariser.value(w) + float(problem.weights @ planes.losses(w))


def offered(problem: PlaneProblem, start: Floats | None) -> Floats | None:
    """Return a start, or None where weights of zero are better: solvers keep the best point that they have seen."""
    if start is None:
        return None
    values = [primal_value(problem, w, problem.planes(w)) for w in (start, np.zeros_like(start))]
    return start if values[0] <= values[1] else None


def even_groups(n_examples: int, count: int) -> NDArray[np.int64]:
    """Return the group of each example: neighbours, as many in each group as in the others or one more."""
    return np.arange(n_examples) * min(count, n_examples) // max(n_examples, 1)


def group_sums(problem: PlaneProblem, groups: NDArray[np.int64]) -> scipy.sparse.csr_array:
    """Return the matrix that adds up planes of examples, with their weights, to planes of groups."""
    n_groups = int(groups.max(initial=-1)) + 1
    return scipy.sparse.csr_array(
        (problem.weights, (groups, np.arange(problem.n_examples))), shape=(n_groups, problem.n_examples)
    )
