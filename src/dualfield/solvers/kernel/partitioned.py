"""Inducing points with rows in partitions: quasi-Newton steps from the curvature of a sample."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, softmax

from dualfield.data.arrays import Floats
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.kernels import Kernel
from dualfield.objectives.partitioned_softmax import PartitionedSoftmax, SoftmaxValue
from dualfield.objectives.point_facts import PointSample
from dualfield.solvers.base import KernelPoint, Progress, Solution, Status, StopRule
from dualfield.solvers.kernel.inducing import ReducedSoftmax
from dualfield.solvers.kernel.newton import NewtonCG
from dualfield.solvers.trace import Trace, relative_gap

NAME = "sampled_newton"
_MEMORY = 40
_MOST_HALVINGS = 30
# Conjugate gradients on the sample: their work is next to nothing beside a pass over all rows.
_INNER_TOL, _INNER_STEPS = 1e-2, 200
_START_TOL = 1e-3
_BISECTIONS = 12
# Curvature is taken anew when the weights of the rows in it have changed by this share.
_SAME = 0.02


def solve_partitioned(
    problem: PartitionedSoftmax, sample: PointSample, rule: StopRule, callbacks: Progress
) -> Solution[KernelPoint]:
    """Solve the inducing-point problem of rows in partitions to the tolerance.

    The start is the solution for the sample, whose rows weigh as all rows do. Steps are those of L-BFGS, which begins
    with the curvature of the sample in place of a multiple of the identity: they are nearly Newton's, and each is one
    pass over the rows. Every pass gives a point of the dual; the gap is that of the best two.

    Parameters
    ----------
    problem : PartitionedSoftmax
        The problem.
    sample : PointSample
        Rows that stand for all.
    rule : StopRule
        When to stop.
    callbacks : callable
        Progress.

    Returns
    -------
    Solution
        Coefficients of the inducing points; gap of the inducing-point problem.
    """
    with one_blas_thread():  # the last bits must not depend on the machine's threads
        near = _Sample(problem, sample)
        return _Course(problem, rule, callbacks).run(near.start(rule), near)


class _Course:
    """The course of one solve: the best point and the best dual value so far."""

    def __init__(self, problem: PartitionedSoftmax, rule: StopRule, callbacks: Progress) -> None:
        self.problem, self.rule, self.callbacks = problem, rule, callbacks
        self.began = time.perf_counter()
        self.rows: list[tuple[float, float, float, float, float]] = []
        self.best: tuple[float, Floats] = (np.inf, np.zeros(0))
        self.dual = -np.inf

    def look(self, point: Floats) -> SoftmaxValue:
        found = self.problem.evaluate(point)
        if found.objective < self.best[0]:
            self.best = (found.objective, point)
        self.dual = max(self.dual, found.dual)
        objective = self.best[0]
        row = (objective, self.dual, objective - self.dual, float(self.problem.n_passes), self.seconds)
        self.rows.append(row)
        self.callbacks(*row)
        return found

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    @property
    def status(self) -> Status | None:
        """How it ended, if it did."""
        if relative_gap(self.best[0], self.best[0] - self.dual) <= self.rule.tol:
            return Status.CONVERGED
        return Status.ITERATION_LIMIT if self.problem.n_passes >= self.rule.max_passes else None

    def run(self, point: Floats, near: _Sample) -> Solution[KernelPoint]:
        n_steps, pairs = 0, deque[tuple[Floats, Floats]](maxlen=_MEMORY)
        here = self.look(point)
        while (status := self.status) is None:
            try:
                near.look(point)
                direction = -_two_loops(here.gradient, pairs, near)
                slope = float(here.gradient @ direction)
                if not slope < 0.0:  # rounding of what the pairs say
                    pairs.clear()
                    direction = -near.solve(here.gradient)
                    slope = float(here.gradient @ direction)
                found = self.search(point, here, direction, slope, near)
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
                break
            if found is None:
                status = self.status or Status.STALLED
                break
            n_steps += 1
            step, there = found
            change = there.gradient - here.gradient
            if float(step @ change) > 1e-14 * float(np.linalg.norm(step) * np.linalg.norm(change)):
                pairs.append((step, change))
            point, here = point + step, there
        return self.ended(status, n_steps)

    def search(
        self, point: Floats, here: SoftmaxValue, direction: Floats, slope: float, near: _Sample
    ) -> tuple[Floats, SoftmaxValue] | None:
        """Halve the step until the objective falls enough; None where it does not, or passes are used up."""
        length = near.length(point, direction, slope)
        for _ in range(_MOST_HALVINGS):
            step = length * direction
            there = self.look(point + step)
            if there.objective <= here.objective + 1e-4 * length * slope + 1e-14 * abs(here.objective):
                return step, there
            if self.status is not None:
                return None
            length /= 2.0
        return None

    def ended(self, status: Status, n_steps: int) -> Solution[KernelPoint]:
        objective, point = self.best
        bias = self.problem.parted(point)[1]
        return Solution(
            parameters=KernelPoint(self.problem.coefficients(point), bias),
            objective=objective,
            gap=objective - self.dual,
            status=status,
            n_iter=n_steps,
            trace=Trace.from_rows(np.array(self.rows)),
            solver=NAME,
        )


class _Sample:
    """The problem on a sample: where to begin, and the curvature there."""

    def __init__(self, problem: PartitionedSoftmax, sample: PointSample) -> None:
        self.problem, self.sample, task = problem, sample, problem.task
        self.features = task.kernel.scores(sample.X, task.inducing, problem.root, task.n_threads)
        self.softmax = task.softmax(sample.codes, sample.weights)
        self.each: Floats | None = None

    def start(self, rule: StopRule) -> Floats:
        """Return the solution for the sample."""
        problem, pinned = self.problem, self.softmax.pinned
        mixing = problem.mixing
        reduced = ReducedSoftmax(
            Kernel("linear"),
            self.features,
            self.softmax.labels,
            weights=self.softmax.weights,
            n_classes=self.softmax.n_classes,
            with_bias=self.softmax.with_bias,
            pinned=pinned,
            label_kernel=None if np.array_equal(mixing, np.eye(len(mixing))) else mixing @ mixing.T,
            n_threads=problem.task.n_threads,
        )
        found = NewtonCG().solve(reduced, StopRule(max(_START_TOL, rule.tol), rule.max_passes * 100.0)).parameters
        V = self.features.T @ found.coefficients @ mixing
        return np.concatenate([V.ravel(), found.bias])

    def look(self, point: Floats) -> None:
        """Take the curvature at a point, unless it is nearly what it was."""
        V, bias = self.problem.parted(point)
        mixing = self.problem.mixing
        scores = self.features @ V @ mixing.T + bias
        p = expit(scores) if self.softmax.pinned else softmax(scores, axis=1)
        own = self.softmax.weights[:, None] * p * (1.0 - p)
        # 1 − Σ p² is the trace of the curvature of a row, and more than any eigenvalue; exact for one output.
        each = own.sum(axis=1)
        if self.each is not None and np.abs(each - self.each).sum() <= _SAME * self.each.sum():
            return
        self.p, self.each = p, each
        scale = float(np.square(mixing).sum()) / len(mixing)
        bent = self.features.T @ ((scale * each)[:, None] * self.features)
        self.factor = cho_factor(np.eye(self.features.shape[1]) + bent)
        self.slack = np.maximum(own.sum(axis=0), 1e-12 * float(self.softmax.weights.sum()))

    def product(self, vector: Floats) -> Floats:
        """Return the curvature times a vector."""
        V, bias = self.problem.parted(vector)
        with_bias, mixing = self.softmax.with_bias, self.problem.mixing
        scores = self.features @ V @ mixing.T + (bias if with_bias else 0.0)
        bent = self.p * scores
        bent = self.softmax.weights[:, None] * (bent - self.p * bent.sum(axis=1, keepdims=True))
        # Without a little of its own the bias has a direction without curvature: the same for all classes.
        own = bent.sum(axis=0) + 1e-9 * self.slack * bias if with_bias else bias
        return np.concatenate([(V + self.features.T @ bent @ mixing).ravel(), own])

    def solve(self, vector: Floats) -> Floats:
        """Return the inverse of the curvature times a vector, by preconditioned conjugate gradients."""
        found, rest = np.zeros_like(vector), vector.copy()
        ready = self._precondition(rest)
        direction, old = ready.copy(), float(rest @ ready)
        goal = _INNER_TOL**2 * old
        for _ in range(_INNER_STEPS):
            if old <= goal or old <= 0.0:
                break
            bent = self.product(direction)
            length = old / float(direction @ bent)
            found += length * direction
            rest -= length * bent
            ready = self._precondition(rest)
            new = float(rest @ ready)
            direction, old = ready + (new / old) * direction, new
        return found

    def length(self, point: Floats, direction: Floats, slope: float) -> float:
        """Return how far to go: to where the slope of the sample's loss, corrected at the point by the true one, ends.

        That is the whole step at most. Where the loss is far from quadratic, it saves passes over all rows that would
        only find a step too long.
        """
        V, bias = self.problem.parted(point)
        W, tilt = self.problem.parted(direction)
        mixing = self.problem.mixing
        scores, change = self.features @ V @ mixing.T + bias, self.features @ W @ mixing.T + tilt

        def slope_at(length: float) -> float:
            residual = self.softmax.loss(scores + length * change)[1]
            return float(np.vdot(V + length * W, W)) - float(np.vdot(residual, change))

        off, low, high = slope - slope_at(0.0), 0.0, 1.0
        if slope_at(high) + off <= 0.0:
            return high
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope_at(middle) + off <= 0.0 else (low, middle)
        return 0.5 * (low + high)

    def _precondition(self, vector: Floats) -> Floats:
        V, bias = self.problem.parted(vector)
        return np.concatenate([cho_solve(self.factor, V).ravel(), bias / self.slack])


def _two_loops(gradient: Floats, pairs: Any, near: _Sample) -> Floats:
    """Return L-BFGS's inverse curvature times the gradient, which begins with that of the sample."""
    found, shares = gradient.copy(), []
    for step, change in reversed(pairs):
        share = float(step @ found) / float(step @ change)
        found -= share * change
        shares.append(share)
    found = near.solve(found)
    for (step, change), share in zip(pairs, reversed(shares), strict=True):
        found += (share - float(change @ found) / float(step @ change)) * step
    return found
