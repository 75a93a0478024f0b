"""What native solvers for kernel machines share: their task, their result, and the look at it in double precision."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.objectives import KernelSoftmax
from dualfield.objectives.certificate import Certificate, certify
from dualfield.solvers.base import Progress, Solution, Start, Status, StopRule, Trace, relative_gap
from dualfield.solvers.callbacks import Callbacks

# Up to here the kernel matrix is small, and Newton's method has the best worst case.
SMALL = 2500
# Smaller gaps than this are not aimed at in single precision.
TRUSTED = 1e-4
Floats = NDArray[np.float64]


def kernel_task(
    objective: KernelSoftmax,
    rule: StopRule,
    start: Start | None,
    callbacks: Progress | None,
    spent: Trace | None = None,
    rough: _native.KernelMatrix | None = None,
    correction: Floats | None = None,
) -> _native.KernelTask:
    """Lay out an objective, where to begin and when to stop, for a native solver."""
    return _native.KernelTask(
        labels=objective.labels,
        weights=np.ascontiguousarray(objective.weights),
        n_classes=objective.n_classes,
        pinned=objective.pinned,
        with_bias=objective.with_bias,
        label_kernel=objective.label_kernel,
        start=None if start is None else np.ascontiguousarray(start.coefficients),
        start_bias=None
        if start is None
        else np.ascontiguousarray(objective.solver_bias(start.coefficients, start.bias)),
        tolerance=rule.tol,
        most_passes=rule.max_passes,
        start_passes=float(spent.kernel_passes[-1]) if spent else 0.0,
        start_seconds=float(spent.seconds[-1]) if spent else 0.0,
        n_threads=objective.n_threads,
        callbacks=Callbacks.of(callbacks),
        rough=rough,
        correction=correction,
        noise=objective.noise,
    )


def kernel_solution(result: Any, solver: str, before: Solution | None = None) -> Solution:
    """Take over what a native solver returns, after what another one did before."""
    coefficients, bias, value, gap, outcome, n_iter, rows = result
    if before is not None:
        rows = np.concatenate([before.trace.rows(), rows])
        n_iter += before.n_iter
    return Solution(coefficients, bias, value, gap, Status(outcome), max(1, n_iter), Trace.from_rows(rows), solver)


def certified(
    objective: KernelSoftmax,
    solution: Solution,
    rule: StopRule,
    *,
    is_enough: bool = False,
) -> tuple[Solution, Certificate]:
    """Look at a solution in double precision, kernel values included, as it is returned and as models use it.

    What the solver claims is replaced by what is found, its status too: a gap above the tolerance after all is a stall,
    unless the solver has another rule to stop by, and that is_enough.
    """
    began = time.perf_counter()
    solution = replace(solution, coefficients=_settled(objective, solution.coefficients))
    bias = np.where(np.isfinite(solution.bias), solution.bias, 0.0)
    proof = certify(objective, solution.coefficients, bias, rule.tol)
    status = solution.status
    if relative_gap(proof.objective, proof.gap) <= rule.tol:
        status = Status.CONVERGED
    elif status is Status.CONVERGED and not is_enough:
        status = Status.STALLED
    passes, seconds = solution.trace.rows()[-1, 3:]
    last = [proof.objective, proof.dual, proof.gap, passes + 1.0, seconds + time.perf_counter() - began]
    trace = Trace.from_rows(np.vstack([solution.trace.rows(), last]))
    found = replace(solution, bias=proof.bias, objective=proof.objective, gap=proof.gap, status=status, trace=trace)
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


def better_than_nothing(objective: KernelSoftmax, solution: Solution, rule: StopRule) -> Solution:
    """Where rounding left a point worse than the bias alone, the bias alone is returned."""
    if solution.status is Status.CONVERGED:
        return solution
    nothing = np.zeros_like(solution.coefficients)
    bias = objective.fit_bias(nothing, np.zeros(objective.n_rows))
    if objective.loss(nothing + bias)[0] >= solution.objective:
        return solution
    return certified(objective, replace(solution, coefficients=nothing, bias=bias), rule)[0]


# Runs a solver in single or double precision, from where it was before, with a correction of the scores.
Run = Callable[[bool, Solution | None, Floats | None], Solution]


def solve_certified(
    objective: KernelSoftmax,
    rule: StopRule,
    run: Run,
    *,
    single: bool,
    corrections: int = 0,
    is_enough: bool = False,
) -> Solution:
    """Run a solver until its aim holds in double precision.

    Where single precision misses it, the rounding errors of its scores are corrected, as often as the solver can use
    that, and it goes on; in the end it goes on in double precision. What was found in between is kept if it is better.
    """
    try:
        best, proof = certified(objective, run(single, None, None), rule, is_enough=is_enough)
    except _native.SinglePrecisionError:
        single = False
        best, proof = certified(objective, run(False, None, None), rule, is_enough=is_enough)
    if not single:
        return better_than_nothing(objective, best, rule)
    last = best
    for attempt in range(corrections + 1):
        if last.status is not Status.STALLED:
            break
        try:
            if attempt < corrections:
                correction = proof.scores - objective.product(last.coefficients, single=True)
                if objective.centred:  # a number for each row more or less is the business of the bias
                    correction -= correction.mean(axis=0)
                last = run(True, last, correction)
            else:
                objective.forget_single()
                last = _run_in_double(run, last)
        except _native.SinglePrecisionError:
            continue
        last, proof = certified(objective, last, rule, is_enough=is_enough)
        best = last if last.gap <= best.gap else replace(best, trace=last.trace, n_iter=last.n_iter, status=last.status)
    return better_than_nothing(objective, best, rule)


def _run_in_double(run: Run, start: Solution) -> Solution:
    """Go on from what single precision has left, or anew: a start may be at fault where the kernel seems to be."""
    try:
        return run(False, start, None)
    except _native.NotPositiveError:
        return run(False, None, None)


def refuse_label_kernel(objective: KernelSoftmax, solver: str) -> None:
    """Raise if classes share strength."""
    if objective.label_kernel is not None:
        raise ValueError(
            f"solver={solver!r} moves whole points and needs classes that do not share strength: it cannot use a "
            "label_kernel. Use solver='auto', 'newton', 'smo' or 'lbfgs'."
        )
