"""A kernel machine solved from the solution of an earlier one, and never to a worse point than without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, xlogy

from dualfield.data.arrays import Floats
from dualfield.objectives import KernelSoftmax
from dualfield.solvers.auto import Auto, takes_newton
from dualfield.solvers.base import KernelPoint, Solution, Status, StopRule
from dualfield.solvers.kernel.newton import NewtonCG
from dualfield.solvers.kernel.tasks import SMALL
from dualfield.solvers.kernel.working_set import Online
from dualfield.solvers.primal.lbfgs import LBFGS

__all__ = ["solve_warm"]

_ROUNDS = 8
# How far down a ray is searched, in t: coefficients of so small a share are as good as none.
_LOG_REACH = 25.0


class _Begin(NamedTuple):
    """A point that a solver can begin at, passes to find it, and whether a fit to this very problem ended there."""

    start: KernelPoint | None
    passes: float
    goes_on: bool = False


def solve_warm(
    solver: Any,
    objective: KernelSoftmax,
    rule: StopRule,
    start: KernelPoint,
    callbacks: Any = None,
    random_state: Any = None,
    value_before: float = np.nan,
) -> Solution[KernelPoint]:
    """Solve from a given point if that helps, and from the solver's own point if it does not.

    The start is made admissible first: no bias where none is fitted, coefficients within the box of the dual, moved
    along their ray to the best value. One that is no better than coefficients of zero is dropped. A solver that
    refuses, stalls, ends in numbers that are none, or runs out of passes on another problem than that of the start,
    begins anew without it, and the better of both points is returned.

    Parameters
    ----------
    solver : solver object
        One for kernel machines.
    objective, rule, callbacks, random_state
        As for :meth:`dualfield.solvers.WorkingSet.solve`.
    start : KernelPoint
        Coefficients and bias of an earlier fit.
    value_before : float, default=nan
        What that fit reached. Where the start has this value here, the problem is the same one, and a fit that runs
        out of passes has gone on as it was asked to.

    Returns
    -------
    Solution
        The point, its gap and the course; passes of all attempts are counted.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives import KernelSoftmax
    >>> from dualfield.solvers import KernelPoint, NewtonCG, StopRule
    >>> from dualfield.solvers.kernel.warm_start import solve_warm
    >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
    >>> problem = KernelSoftmax(Kernel(), np.eye(4), y, weights=np.ones(4), n_classes=2, with_bias=False, pinned=True)
    >>> start = KernelPoint(np.ones((4, 1)), np.ones(1))
    >>> solve_warm(NewtonCG(), problem, StopRule(1e-9), start).parameters.bias   # none is fitted
    array([0.])
    """
    begin = _admissible(objective, start, solver, value_before)
    if begin.start is None:
        return _solve(solver, objective, rule, None, callbacks, random_state, begin.passes)
    try:
        warm = _solve(solver, objective, rule, begin.start, callbacks, random_state, begin.passes)
    except (ValueError, ArithmeticError):  # where the problem itself is refused, it is refused again
        return _solve(solver, objective, rule, None, callbacks, random_state, begin.passes)
    ended = (Status.CONVERGED, Status.INTERRUPTED) + ((Status.ITERATION_LIMIT,) if begin.goes_on else ())
    if _is_finite(warm) and warm.status in ended:
        return warm
    return _better(warm, _solve(solver, objective, rule, None, callbacks, random_state))


def _solve(
    solver: Any,
    objective: KernelSoftmax,
    rule: StopRule,
    start: KernelPoint | None,
    callbacks: Any,
    seed: Any,
    spent: float = 0.0,
) -> Solution[KernelPoint]:
    solution: Solution[KernelPoint] = solver.solve(objective, rule, start, callbacks, random_state=seed)
    return replace(solution, trace=solution.trace.spent(spent))


def _admissible(objective: KernelSoftmax, start: KernelPoint, solver: Any, value_before: float) -> _Begin:
    """Return the best point on the ray of a start; none where the solver's own point is no worse."""
    if not (np.isfinite(start.coefficients).all() and np.isfinite(start.bias).all()):
        return _Begin(None, 0.0)
    stored = False if isinstance(solver, Online) else None
    ray = _Ray.through(objective, start.coefficients, stored)
    if ray is None:
        return _Begin(None, 1.0)
    # Scores of the solver's matrix differ by a number for each row where it is centred, and so do biases.
    level = objective.solver_bias(ray.coefficients, np.zeros(objective.n_rows))
    bias = start.bias + level if objective.with_bias else np.zeros(objective.n_rows)
    given = 0.5 * ray.square + objective.loss(ray.scores + bias)[0]
    if np.isclose(given, value_before, rtol=1e-6, atol=0.0):
        return _Begin(KernelPoint(ray.coefficients, bias - level), 1.0, True)
    # What a solver climbs decides where it begins: that takes far fewer passes than the other value would.
    if isinstance(solver, (NewtonCG, LBFGS)) or (isinstance(solver, Auto) and takes_newton(objective)):
        t = ray.highest(lambda t: -ray.value(t, bias)[0])
        value, bias = ray.value(t, bias)
        is_better, passes = value < ray.value(0.0, np.zeros_like(bias))[0], 1.0
    else:
        t = ray.highest(ray.dual)
        bias = ray.value(t, bias)[1]
        own = _Ray.through(objective, _towards_priors(objective), stored)
        is_better, passes = own is None or ray.dual(t) > own.dual(own.highest(own.dual)), 2.0
    return _Begin(KernelPoint(t * ray.coefficients, bias - t * level) if is_better else None, passes)


def _towards_priors(objective: KernelSoftmax) -> Floats:
    """Return the coefficients on whose ray the dual solvers begin: all points have the shares of the classes."""
    masses = np.bincount(objective.labels, objective.weights, objective.n_classes)
    indicator = objective.labels[:, None] == np.arange(objective.n_classes)
    coefficients = objective.weights[:, None] * (indicator - masses / masses.sum())
    return np.ascontiguousarray(coefficients[:, int(objective.pinned) :])


@dataclass(frozen=True, eq=False)
class _Ray:
    """All positive multiples t of coefficients in the dual, and the values there, which need one product.

    A coefficient is a mass c_i p_iy of a wrong label. t times the coefficients are a point of the dual as long as no
    point has more than c_i of them.
    """

    objective: KernelSoftmax
    coefficients: Floats
    shares: Floats  # p_iy of wrong labels
    scores: Floats

    @classmethod
    def through(cls, objective: KernelSoftmax, coefficients: Floats, stored: bool | None) -> _Ray | None:
        """Return the ray of coefficients, clipped to the box of the dual; None if there is none."""
        at, weights = np.arange(objective.size), objective.weights[:, None]
        signs = np.where(objective.labels == 1, 1.0, -1.0)[:, None] if objective.pinned else -1.0
        masses = signs * coefficients
        if not objective.pinned:
            masses[at, objective.labels] = 0.0
        shares = np.maximum(masses, 0.0) / weights
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        clipped = signs * weights * shares
        if not objective.pinned:
            clipped[at, objective.labels] = -clipped.sum(axis=1)
        spread = clipped if objective.label_kernel is None else clipped @ objective.label_kernel
        matrix = objective.matrix(single=objective.size > SMALL, stored=stored)
        scores = matrix.product(np.ascontiguousarray(spread), objective.n_threads)
        is_ray = shares.any() and np.isfinite(scores).all() and np.vdot(clipped, scores) >= 0.0
        return cls(objective, clipped, shares, scores) if is_ray else None

    @cached_property
    def square(self) -> float:
        """⟨B, K B T⟩."""
        return float(np.vdot(self.coefficients, self.scores))

    @cached_property
    def wrong(self) -> Floats:
        """Share of wrong labels at each point."""
        return np.asarray(self.shares.sum(axis=1))

    def highest(self, height: Callable[[float], float]) -> float:
        """Return the t of the largest height, or 1 where that is as good: a solution stays what it was."""
        end = -float(np.log(self.wrong.max()))
        found = minimize_scalar(
            lambda log_t: -height(float(np.exp(log_t))), bounds=(end - _LOG_REACH, end), options={"xatol": 0.02}
        )
        here = height(1.0)
        return float(np.exp(found.x)) if -found.fun > here + 1e-6 * abs(here) else 1.0

    @cached_property
    def spread(self) -> float:
        """Σ c_i p_iy log p_iy over wrong labels."""
        return float(self.objective.weights @ xlogy(self.shares, self.shares).sum(axis=1))

    def value(self, t: float, bias: Floats) -> tuple[float, Floats]:
        """Return the primal value with a good bias, searched from the given one, and that bias."""
        best = _scaled_bias(self.objective, t * self.scores, bias)
        return 0.5 * t * t * self.square + self.objective.loss(t * self.scores + best)[0], best

    def dual(self, t: float) -> float:
        """Return the dual value."""
        weights, right = self.objective.weights, np.maximum(1.0 - t * self.wrong, 0.0)
        wrong = t * self.spread + float(xlogy(t, t)) * float(weights @ self.wrong)
        return -wrong - float(weights @ xlogy(right, right)) - 0.5 * t * t * self.square


def _scaled_bias(objective: KernelSoftmax, scores: Floats, bias: Floats) -> Floats:
    """Return a bias that is as good as the given one or better, by rounds of iterative scaling.

    Each round gives every class the mass that it has among the labels. Scores may be of any size, where Newton's
    method would need a curvature.
    """
    if not objective.with_bias:
        return bias
    full = np.column_stack([np.zeros(objective.size), scores]) if objective.pinned else scores
    b = np.concatenate([np.zeros(int(objective.pinned)), bias])
    wanted = np.log(np.bincount(objective.labels, objective.weights, objective.n_classes))
    for _ in range(_ROUNDS):
        b = b + wanted - logsumexp(log_softmax(full + b, axis=1), axis=0, b=objective.weights[:, None])
        b -= b[0]
    return b[int(objective.pinned) :]


def _is_finite(solution: Solution[KernelPoint]) -> bool:
    numbers = (solution.objective, solution.gap, solution.parameters.coefficients, solution.parameters.bias)
    return all(bool(np.isfinite(one).all()) for one in numbers)


def _better(first: Solution[KernelPoint], second: Solution[KernelPoint]) -> Solution[KernelPoint]:
    """Return the point that converged, or the one with the smaller value, with the course of both before it."""

    def rank(solution: Solution[KernelPoint]) -> tuple[bool, bool, float]:
        return not _is_finite(solution), solution.status is not Status.CONVERGED, solution.objective

    worse, best = (second, first) if rank(first) <= rank(second) else (first, second)
    return best.after(worse)
