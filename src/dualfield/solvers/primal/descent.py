"""Descent on the objective of linear scores, with a duality gap at every point.

L-BFGS, or OWL-QN where absolute values are penalised. Where that takes long and there are few weights, Newton's method
goes on, which is dearer by the step but crawls neither along kinks nor where features differ much in size.
"""

from __future__ import annotations

import time

import numpy as np

from dualfield._native import StateError
from dualfield.data.arrays import Floats
from dualfield.objectives import Objective, PartitionedObjective
from dualfield.objectives.primal_gap import ROUNDING as _ROUNDING
from dualfield.solvers.base import Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.kept_state import kept_count, kept_numbers, kept_rows
from dualfield.solvers.primal.bundle import Bundle
from dualfield.solvers.primal.l1_quadratic import pseudo_gradient
from dualfield.solvers.primal.proximal_newton import ProximalNewton
from dualfield.solvers.primal.quasi_newton import ROUNDING, LimitedMemory, Point, State
from dualfield.solvers.trace import Trace, relative_gap

_MOST_FREE = 1000  # weights that Newton's method takes
_TRIAL, _TRIAL_FREE = 50, 2  # passes that L-BFGS has before: these, and so many for each weight


class _SpentError(Exception):
    """The passes are spent."""


class Descent:
    """Descends from a start, or goes on from the state that `callbacks` resumes.

    At the end of passes it shows itself to ``callbacks.pass_end``; see :class:`dualfield.solvers.callbacks.PassEnd`.

    Parameters
    ----------
    objective : Objective or PartitionedObjective
        What to minimise. On partitions, where a pass is an exchange with all of them, past evaluations certify
        together, see :class:`dualfield.solvers.primal.bundle.Bundle`, unless absolute values are penalised.
    memory : int
        Pairs of vectors kept.
    start : array or None
        Where to begin; None: at zero.
    callbacks : Callbacks, callable or None
        Called after each pass with objective, dual, gap, passes and seconds.
    in_memory : float, default=inf
        Where pairs and points of the certificate would take more bytes, all of them are in temporary files.

    Examples
    --------
    >>> from dualfield.solvers import StopRule, prototypes
    >>> from dualfield.solvers.primal.descent import Descent
    >>> Descent(prototypes.objective(temperature=1.0), 10, None, None).solve(StopRule(1e-6)).status.value
    'converged'
    """

    def __init__(
        self,
        objective: Objective | PartitionedObjective,
        memory: int,
        start: Floats | None,
        callbacks: Progress | None,
        in_memory: float = np.inf,
    ) -> None:
        self._objective, self._callbacks = objective, Callbacks.of(callbacks)
        self._l1 = objective.regulariser.l1_ratio or 0.0
        self._certificates: dict[int, float] = {}
        self._rows: list[tuple[float, float, float, float, float]] = []
        self._began, self._n_iter, self._gap = time.perf_counter(), 0, np.inf
        self._dual = self._callbacks.bound  # what is known before
        self._most, self._n_evaluations = np.inf, 0
        resume = self._callbacks.resume
        self._resumed = self._is_resuming = resume is not None
        # The point whose dual one is the best so far; empty where what is known before is better.
        self._dual_at = np.zeros(0)
        self._steepest, self._first = np.zeros(objective.n_parameters), 0.0  # |gradient| at most; the first value
        size = getattr(objective, "bundle_size", 0)
        is_bundled = size > 0 and not self._l1
        n_vectors = 2 * memory + (size + 1 if is_bundled else 0)
        on_disk = 8 * n_vectors * objective.n_parameters > in_memory
        self._bundle = Bundle(objective.regulariser, size, on_disk) if is_bundled else None
        self._run: LimitedMemory | ProximalNewton
        if resume is not None:
            self._resume(resume, memory, on_disk)
            return
        begin = np.zeros(objective.n_parameters) if start is None else start
        self._run = LimitedMemory(self._evaluate, begin, memory, self._l1, on_disk=on_disk)
        self._best = self._run.point

    def _resume(self, state: State, memory: int, on_disk: bool) -> None:
        """Take over where another descent stood; both bounds are computed anew from the points they are claimed for."""
        size, l1 = self._objective.n_parameters, self._l1
        self._steepest, self._first = (
            kept_numbers(state, "steepest", size),
            float(kept_numbers(state, "first_value", 1)[0]),
        )
        self._n_evaluations = n_evaluations = max(kept_count(state, "n_evaluations"), 1)
        best, self._dual_at = kept_numbers(state, "best", size), kept_numbers(state, "dual_at")
        try:
            if "hessian" in state:
                self._run = ProximalNewton(self._evaluate, state, l1, self._reach())
            else:
                self._run = LimitedMemory(self._evaluate, np.zeros(size), memory, l1, state, on_disk)
            self._best = Point(best, self._objective.certify(best)[0], self._run.point.gradient)
            if self._dual_at.size and self._objective.convex:
                value, gap = self._objective.certify(kept_numbers(state, "dual_at", size))
                self._bound(self._dual_at, value - gap)
        except ValueError as error:
            if isinstance(error, StateError):
                raise
            raise StateError(f"a point in it has no objective: {error}") from None
        if self._bundle is not None:
            points = (self._best, self._run.point)
            penalty = self._objective.regulariser.value
            self._bundle.restore(state, size, [(point.x, point.value - penalty(point.x)) for point in points])
        if not (np.isfinite(self._best.value) and np.isfinite(self._run.point.value)):
            raise StateError("a point in it has no objective")
        self._n_evaluations, self._n_iter = n_evaluations, kept_count(state, "n_iter")
        self._rows = [(a, b, c, d, e) for a, b, c, d, e in kept_rows(state, "trace").tolist()]
        self._began -= self._rows[-1][4]
        self._is_resuming = False
        self._compare()

    def solve(self, rule: StopRule) -> Solution[Floats]:
        """Descend until the rule says so.

        Parameters
        ----------
        rule : StopRule
            When to stop.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.
        """
        pass_end = self._callbacks.pass_end
        self._most = rule.max_passes
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
                    elif not self._go_on_with_newton():
                        status = Status.STALLED
                    if self._is_crawling():
                        self._go_on_with_newton()
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
            except _SpentError:
                status = Status.ITERATION_LIMIT
        self._compare()
        if not self._rows or self._best.value != self._rows[-1][0]:  # interrupted, or spent, between two looks
            self._keep_row()
        return Solution(
            parameters=self._best.x,
            objective=self._best.value,
            gap=self._gap,
            status=status,
            n_iter=max(1, self._n_iter),
            trace=Trace.from_rows(np.array(self._rows)),
            solver="lbfgs",
        )

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
            "n_evaluations": np.array([self._n_evaluations], dtype=np.uint64),
            "steepest": self._steepest,
            "first_value": np.array([self._first]),
            "n_iter": np.array([self._n_iter], dtype=np.uint64),
            "trace": np.array(self._rows),
            **({} if self._bundle is None else self._bundle.state()),
        }

    def _look(self, rule: StopRule) -> Status | None:
        """Certify where it stands; an end if it is good enough or the passes are spent."""
        point = self._run.point
        # Where there is no gap, slopes judge a point, and values within rounding do not.
        slack = 0.0 if self._objective.convex else ROUNDING * abs(self._best.value)
        if point.value <= self._best.value + slack:
            self._best = point
        if self._objective.convex:
            # Every point has a dual one, and each of them bounds the minimum: the best of both sides counts.
            self._bound(point.x, point.value - self._gap_at(point))
        if self._bundle is not None:
            self._bundle.bound()
        self._compare()
        self._keep_row()
        self._callbacks(*self._rows[-1])
        if self._is_good_enough(point, rule.tol):
            return Status.CONVERGED
        return Status.ITERATION_LIMIT if self._n_evaluations >= rule.max_passes else None

    def _compare(self) -> None:
        """Compute the gap of the best values of both sides."""
        if not self._objective.convex:
            self._dual = self._gap = float("nan")
            return
        if self._bundle is not None:
            self._dual = max(self._dual, self._bundle.best)
        # Losses are differences of scores, whose size is about that of the weights times their largest slopes.
        terms = abs(self._best.value) + float(np.abs(self._best.x) @ self._steepest)
        self._gap = max(self._best.value - self._dual, _ROUNDING * terms)

    def _is_good_enough(self, point: Point, tol: float) -> bool:
        if self._objective.convex:
            return relative_gap(self._best.value, self._gap) <= tol
        # Without a gap, where the problem is not convex, the slope must vanish beside the value.
        slope = pseudo_gradient(point.x, point.gradient, self._l1)
        return float(np.linalg.norm(slope)) <= tol * abs(point.value)

    def _is_crawling(self) -> bool:
        """Whether L-BFGS has had the passes that Newton's method would about need."""
        if isinstance(self._run, ProximalNewton) or self._n_evaluations < _TRIAL:
            return False
        return self._n_evaluations >= _TRIAL + _TRIAL_FREE * self._n_free()

    def _go_on_with_newton(self) -> bool:
        """Change the method, where that is possible."""
        if isinstance(self._run, ProximalNewton) or not self._objective.convex or self._n_free() > _MOST_FREE:
            return False
        self._run = ProximalNewton(self._evaluate, self._run.point, self._l1, self._reach())
        return True

    def _n_free(self) -> int:
        """Count the weights that are not zero, or do not stay there."""
        point = self._run.point
        return int(((point.x != 0.0) | (np.abs(point.gradient) > self._l1)).sum())

    def _reach(self) -> Floats:
        """Tell the size of features from the largest gradient that each has had: losses were some units for a node."""
        return np.where(self._steepest > 0.0, self._steepest / max(self._first, 1e-300), 1.0)

    def _keep_row(self) -> None:
        passes, seconds = float(self._n_evaluations), time.perf_counter() - self._began
        self._rows.append((self._best.value, self._dual, self._gap, passes, seconds))

    def _evaluate(self, w: Floats) -> tuple[float, Floats]:
        if self._n_evaluations >= self._most:
            raise _SpentError
        loss, gradient, *doubt = self._objective.evaluate(w)
        value, gap = self._objective.gap(w, loss, gradient, *doubt)
        if self._bundle is not None and not self._is_resuming:
            self._add_plane(w, value, loss, gradient, *doubt)
        gradient += (1.0 - self._l1) * w
        if not self._n_evaluations:
            self._first = value
        self._n_evaluations += 1
        np.fmax(self._steepest, np.abs(gradient), out=self._steepest)
        self._certificates.clear()
        self._certificates[id(gradient)] = gap
        # A line search may look further after a better point, and the passes may end before it does.
        if self._rows and isinstance(self._run, LimitedMemory) and value < self._best.value:
            self._best = Point(w, value, gradient)
            self._bound(w, value - gap)
        return value, gradient

    def _add_plane(
        self, w: Floats, value: float, loss: float, gradient: Floats, magnitude: float, slack: float
    ) -> None:
        """Let the bundle have what an evaluation says about all points."""
        assert self._bundle is not None
        v = -gradient
        doubt = _ROUNDING * (value + magnitude + float(np.abs(w) @ np.abs(v)))
        self._bundle.add(loss + float(w @ v) - slack, v, doubt)

    def _bound(self, w: Floats, dual: float) -> None:
        if dual > self._dual:
            self._dual, self._dual_at = dual, w

    def _gap_at(self, point: Point) -> float:
        # The last evaluation is nearly always that of the point; a search that fell back gives another.
        known = self._certificates.get(id(point.gradient))
        return self._objective.certify(point.x)[1] if known is None else known
