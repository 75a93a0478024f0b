"""What native solvers for kernel machines share: their task, their result, and the look at it in double precision."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.objectives import KernelSoftmax
from dualfield.objectives.certificate import Certificate, certify
from dualfield.solvers.base import KernelPoint, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.trace import Trace, relative_gap

# Up to here the kernel matrix is small, and Newton's method has the best worst case.
SMALL = 2500
# Smaller gaps than this are not aimed at in single precision.
TRUSTED = 1e-4


class Stage(NamedTuple):
    """Where a solver begins, when it stops, whom it tells, and what is wrong about the scores that it computes."""

    start: KernelPoint | None
    rule: StopRule
    callbacks: Callbacks
    correction: Floats | None = None


# Runs a solver in single or double precision.
Run = Callable[[bool, Stage], Solution[KernelPoint]]


def kernel_task(
    objective: KernelSoftmax, stage: Stage, rough: _native.KernelMatrix | None = None
) -> _native.KernelTask:
    """Lay out an objective, where to begin and when to stop, for a native solver."""
    start = stage.start
    bias = None if start is None else objective.solver_bias(start.coefficients, start.bias)
    return _native.KernelTask(
        labels=objective.labels,
        weights=np.ascontiguousarray(objective.weights),
        n_classes=objective.n_classes,
        pinned=objective.pinned,
        with_bias=objective.with_bias,
        label_kernel=objective.label_kernel,
        start=None if start is None else np.ascontiguousarray(start.coefficients),
        start_bias=None if bias is None else np.ascontiguousarray(bias),
        tolerance=stage.rule.tol,
        most_passes=stage.rule.max_passes,
        n_threads=objective.n_threads,
        callbacks=stage.callbacks,
        rough=rough,
        correction=stage.correction,
        noise=objective.noise,
    )


def kernel_solution(result: Any, solver: str) -> Solution[KernelPoint]:
    """Take over what a native solver returns."""
    coefficients, bias, value, gap, outcome, n_iter, rows = result
    return Solution(
        parameters=KernelPoint(coefficients, bias),
        objective=value,
        gap=gap,
        status=Status(outcome),
        n_iter=n_iter,
        trace=Trace.from_rows(rows),
        solver=solver,
    )


def certified(
    objective: KernelSoftmax,
    solution: Solution[KernelPoint],
    rule: StopRule,
    *,
    is_enough: bool = False,
) -> tuple[Solution[KernelPoint], Certificate]:
    """Look at a solution in double precision, kernel values included, as it is returned and as models use it.

    What the solver claims is replaced by what is found, its status too: a gap above the tolerance after all is a stall,
    unless the solver has another rule to stop by, and that is_enough.
    """
    began = time.perf_counter()
    coefficients = _settled(objective, solution.parameters.coefficients)
    bias = np.where(np.isfinite(solution.parameters.bias), solution.parameters.bias, 0.0)
    proof = certify(objective, coefficients, bias, rule.tol)
    status = solution.status
    if relative_gap(proof.objective, proof.gap) <= rule.tol:
        status = Status.CONVERGED
    elif status is Status.CONVERGED and not is_enough:
        status = Status.STALLED
    found = replace(
        solution,
        parameters=KernelPoint(coefficients, proof.bias),
        objective=proof.objective,
        gap=proof.gap,
        status=status,
        trace=solution.trace.ended(proof.objective, proof.dual, proof.gap, 1.0, time.perf_counter() - began),
    )
    return found, proof


def _settled(objective: KernelSoftmax, coefficients: Floats) -> Floats:
    """Coefficients that are numbers, and sum to zero where the solver's matrix has no other way to feel their sum.

    To zero, not nearly: what the kernel matrix was centred by may be 10¹² times what is left of it. Multiples of twice
    the last digit of the largest coefficient have exact sums.
    """
    if not np.isfinite(coefficients).all():
        return np.zeros_like(coefficients)
    if not objective.centred or not coefficients.any():
        return coefficients
    sums = np.abs(coefficients.sum(axis=0)).max()
    if sums > 1e3 * np.finfo(np.float64).eps * np.abs(coefficients).sum():
        coefficients = np.asarray(coefficients - coefficients.mean(axis=0))
    digit = 2.0 * float(np.spacing(np.abs(coefficients).max()))
    settled = np.rint(coefficients / digit) * digit
    largest = np.abs(settled).argmax(axis=0)
    settled[largest, np.arange(settled.shape[1])] -= [math.fsum(column) for column in settled.T]
    return np.asarray(settled)


def better_than_nothing(
    objective: KernelSoftmax, solution: Solution[KernelPoint], rule: StopRule
) -> Solution[KernelPoint]:
    """Where rounding left a point worse than the bias alone, the bias alone is returned."""
    if solution.status is Status.CONVERGED:
        return solution
    nothing = np.zeros_like(solution.parameters.coefficients)
    bias = objective.fit_bias(nothing, np.zeros(objective.n_rows))
    if objective.loss(nothing + bias)[0] >= solution.objective:
        return solution
    return certified(objective, replace(solution, parameters=KernelPoint(nothing, bias)), rule)[0]


def solve_certified(
    objective: KernelSoftmax,
    run: Run,
    first: Stage,
    *,
    single: bool,
    corrections: int = 0,
    is_enough: bool = False,
) -> Solution[KernelPoint]:
    """Run a solver until its aim holds in double precision.

    Where single precision misses it, the rounding errors of its scores are corrected, as often as the solver can use
    that, and it goes on; in the end it goes on in double precision. What was found in between is kept if it is better.
    """
    rule = first.rule
    try:
        best, proof = certified(objective, run(single, first), rule, is_enough=is_enough)
    except _native.SinglePrecisionError:
        single = False
        best, proof = certified(objective, run(False, first), rule, is_enough=is_enough)
    last = best
    for attempt in range(corrections + 1 if single else 0):
        if last.status is not Status.STALLED:
            break
        try:
            if attempt < corrections:
                correction = proof.scores - objective.product(last.parameters.coefficients, single=True)
                if objective.centred:  # a number for each row more or less is the business of the bias
                    correction -= correction.mean(axis=0)
                last = run(True, _next(first, last, correction)).after(last)
            else:
                objective.forget_single()
                last = _run_in_double(run, first, last)
        except _native.SinglePrecisionError:
            continue
        last, proof = certified(objective, last, rule, is_enough=is_enough)
        best = last if last.gap <= best.gap else replace(best, trace=last.trace, n_iter=last.n_iter, status=last.status)
    return better_than_nothing(objective, replace(best, n_iter=max(1, best.n_iter)), rule)


def _next(first: Stage, last: Solution[KernelPoint], correction: Floats | None = None) -> Stage:
    """Return the stage that goes on where the last one ended."""
    end = last.trace.end
    callbacks = first.callbacks.later(end.passes, end.seconds)
    return Stage(last.parameters, first.rule.after(last.trace), callbacks, correction)


def _run_in_double(run: Run, first: Stage, last: Solution[KernelPoint]) -> Solution[KernelPoint]:
    """Go on from what single precision has left, or anew: a start may be at fault where the kernel seems to be."""
    try:
        return run(False, _next(first, last)).after(last)
    except _native.NotPositiveError:
        return run(False, first)
