"""L-BFGS on the objective of a linear chain, with a duality gap at every point."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from dualfield._native import StateError
from dualfield.objectives import ChainLoss
from dualfield.solvers.base import LinearSolution, Progress, Status, StopRule, Trace, relative_gap
from dualfield.solvers.kept_state import kept_count, kept_numbers, kept_rows
from dualfield.solvers.quasi_newton import LimitedMemory, Point, State

Floats = NDArray[np.float64]
_NOTHING = 1e-14  # a gap of rounding alone, where there is nothing to lose


class ChainDescent:
    """Descends from a start, or goes on from the state that `told` resumes.

    At the end of passes it shows itself to ``told.pass_end``; see :class:`dualfield.solvers.course.PassEnd`.

    Parameters
    ----------
    objective : ChainLoss
        What to minimise.
    memory : int
        Pairs of vectors kept.
    start : array or None
        Where to begin; None: at zero.
    told : callable or None
        Told of the course.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.batch import Batch
    >>> from dualfield.objectives import ChainLoss
    >>> from dualfield.scores import FeatureTable, LinearScores
    >>> from dualfield.solvers import StopRule
    >>> from dualfield.solvers.chain_descent import ChainDescent
    >>> from dualfield.structures import Chain
    >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
    >>> data = score_map.bind(Batch.build([np.ones((1, 1))]), labels=np.zeros(1, np.int32), weights=np.ones(1))
    >>> ChainDescent(ChainLoss(score_map, data), 10, None, None).solve(StopRule(1e-6)).status.value
    'converged'
    """

    def __init__(self, objective: ChainLoss, memory: int, start: Floats | None, told: Progress | None) -> None:
        self._objective, self._told = objective, told
        self._certificates: dict[int, float] = {}
        self._rows: list[tuple[float, float, float, float, float]] = []
        self._began, self._n_iter, self._dual, self._gap = time.perf_counter(), 0, -np.inf, np.inf
        resume: State | None = getattr(told, "resume", None)
        self._resumed = resume is not None
        begin = np.zeros(objective.n_parameters) if start is None else start
        try:
            self._run = LimitedMemory(self._evaluate, begin, memory, objective.l1_ratio, resume)
            self._best = self._run.point
            self._dual_at = self._best.x  # the point whose dual one is the best so far
            if resume is not None:
                self._restore(resume)
        except ValueError as error:
            if resume is None or isinstance(error, StateError):
                raise
            raise StateError(f"a point in it has no objective: {error}") from None

    def _restore(self, resume: State) -> None:
        """Take over where another descent stood; both bounds are computed anew from the points they are claimed for."""
        size = self._objective.n_parameters
        best, self._dual_at = kept_numbers(resume, "best", size), kept_numbers(resume, "dual_at", size)
        value, gap = self._objective.certify(best)
        self._best = Point(best, value, self._best.gradient)
        if not np.array_equal(best, self._dual_at):
            value, gap = self._objective.certify(self._dual_at)
        self._dual = value - gap
        self._gap = max(self._best.value - self._dual, 0.0) if self._objective.convex else float("nan")
        self._n_iter = kept_count(resume, "n_iter")
        self._rows = [(a, b, c, d, e) for a, b, c, d, e in kept_rows(resume, "trace").tolist()]
        self._began -= self._rows[-1][4]

    def solve(self, rule: StopRule) -> LinearSolution:
        """Descend until the rule says so.

        Parameters
        ----------
        rule : StopRule
            When to stop.

        Returns
        -------
        LinearSolution
            The point, its gap and the course.
        """
        pass_end = getattr(self._told, "pass_end", None)
        status: Status | None = None
        while status is None:
            try:
                if not self._resumed:  # a state was kept after the look at its point
                    status = self._look(rule)
                    if status is None and pass_end is not None and pass_end(self):
                        status = Status.STOPPED
                self._resumed = False
                if status is None:
                    if self._run.step():
                        self._n_iter += 1
                    else:
                        status = Status.STALLED
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
        if not self._rows:  # interrupted at once
            self._keep_row()
        trace = Trace.from_rows(np.array(self._rows))
        return LinearSolution(self._best.x, self._best.value, self._gap, status, max(1, self._n_iter), trace, "lbfgs")

    def progress(self) -> tuple[float, float, float, float, float]:
        """Return objective, dual, gap, passes and seconds.

        Returns
        -------
        tuple of float
            Of the last look.
        """
        return self._rows[-1]

    def parameters(self) -> Floats:
        """Return the best weights so far.

        Returns
        -------
        array
            The weights.
        """
        return self._best.x

    def state(self) -> State:
        """Return arrays with which the descent can go on later.

        Returns
        -------
        dict
            Arrays by name.
        """
        return {
            **self._run.state(),
            "best": self._best.x,
            "dual_at": self._dual_at,
            "n_iter": np.array([self._n_iter], dtype=np.uint64),
            "trace": np.array(self._rows),
        }

    def _look(self, rule: StopRule) -> Status | None:
        """Certify where it stands; an end if it is good enough or the passes are spent."""
        point, convex = self._run.point, self._objective.convex
        if point.value <= self._best.value:
            self._best = point
        # Every point has a dual one, and each of them bounds the minimum: the best of both sides counts.
        dual = point.value - self._gap_at(point) if convex else float("nan")
        if not dual <= self._dual:
            self._dual, self._dual_at = dual, point.x
        self._gap = max(self._best.value - self._dual, 0.0) if convex else float("nan")
        self._keep_row()
        if self._told is not None:
            self._told(*self._rows[-1])
        # Without a gap, where the problem is not convex, the gradient must vanish beside the value.
        small = (
            relative_gap(self._best.value, self._gap) <= rule.tol or self._gap <= _NOTHING
            if convex
            else float(np.linalg.norm(point.gradient)) <= rule.tol * max(1.0, abs(point.value))
        )
        if small:
            return Status.CONVERGED
        return Status.ITERATION_LIMIT if self._run.n_evaluations >= rule.max_passes else None

    def _keep_row(self) -> None:
        passes, seconds = float(self._run.n_evaluations), time.perf_counter() - self._began
        self._rows.append((self._best.value, self._dual, self._gap, passes, seconds))

    def _evaluate(self, w: Floats) -> tuple[float, Floats]:
        loss, gradient = self._objective.loss_and_gradient(w)
        value, gap = self._objective.gap(w, loss, gradient)
        gradient += (1.0 - self._objective.l1_ratio) * w
        self._certificates.clear()
        self._certificates[id(gradient)] = gap
        return value, gradient

    def _gap_at(self, point: Point) -> float:
        # The last evaluation is nearly always that of the point; a search that fell back gives another.
        known = self._certificates.get(id(point.gradient))
        return self._objective.certify(point.x)[1] if known is None else known
