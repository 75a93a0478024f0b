"""What native solvers for kernel machines share: their task, their result, a second look in double precision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, xlogy

from dualfield import _native
from dualfield.objectives import KernelSoftmax
from dualfield.solvers.base import Progress, Solution, Start, Status, StopRule, Trace

# Up to here the kernel matrix is small, and Newton's method has the best worst case.
SMALL = 2500
# Gaps that were computed in single precision were within a few percent down to here, and far off at 1e-6 with large C.
TRUSTED = 1e-4
Floats = NDArray[np.float64]


def kernel_task(
    objective: KernelSoftmax,
    rule: StopRule,
    start: Start | None,
    told: Progress | None,
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
        start_bias=None if start is None else np.ascontiguousarray(start.bias),
        tolerance=rule.tol,
        most_passes=rule.max_passes,
        start_passes=float(spent.kernel_passes[-1]) if spent else 0.0,
        start_seconds=float(spent.seconds[-1]) if spent else 0.0,
        n_threads=objective.n_threads,
        told=told,
        interval=getattr(told, "interval", 0.05),
        rough=rough,
        correction=correction,
    )


def kernel_solution(result: Any, solver: str, before: Solution | None = None) -> Solution:
    """Take over what a native solver returns, after what another one did before."""
    coefficients, bias, value, gap, outcome, n_iter, rows = result
    if before is not None:
        rows = np.concatenate([before.trace.rows(), rows])
        n_iter += before.n_iter
    return Solution(coefficients, bias, value, gap, Status(outcome), max(1, n_iter), Trace.from_rows(rows), solver)


def check_exactly(objective: KernelSoftmax, solution: Solution, rule: StopRule) -> tuple[Solution, Floats]:
    """Compute gap and objective of a point of the dual again in double precision, kernel values included.

    The kernel matrix is streamed. The gap is Σ_i c_i KL(p_i ‖ softmax(F_i + b)); where it is above the tolerance after
    all, the status says so. Also returns the scores F.
    """
    points, weights = objective.points, objective.weights[:, None]
    scores = objective.kernel.scores(points, points, solution.coefficients, objective.n_threads)
    bias = objective.fit_bias(scores, solution.bias)
    full, coefficients = scores + bias, solution.coefficients
    if objective.pinned:
        full = np.column_stack([np.zeros(objective.size), full])
        coefficients = np.column_stack([-coefficients, coefficients])
    p = np.clip((np.arange(objective.n_classes) == objective.labels[:, None]) - coefficients / weights, 0.0, 1.0)
    log_q = log_softmax(full, axis=1)
    entropy = float(-(weights * xlogy(p, p)).sum())
    gap = float((weights * (xlogy(p, p) - p * log_q)).sum())
    dual = entropy - 0.5 * float(np.vdot(solution.coefficients, scores))
    status = Status.CONVERGED if dual > 0 and gap <= rule.tol * dual else Status.STALLED
    last = solution.trace.rows()[-1]
    rows = np.vstack([solution.trace.rows(), [dual + gap, dual, gap, last[3] + 1.0, last[4]]])
    exact = replace(solution, bias=bias, objective=dual + gap, gap=gap, status=status, trace=Trace.from_rows(rows))
    return exact, scores


def refuse_label_kernel(objective: KernelSoftmax, solver: str) -> None:
    """Raise if classes share strength."""
    if objective.label_kernel is not None:
        raise ValueError(
            f"solver={solver!r} moves whole points and needs classes that do not share strength: it cannot use a "
            "label_kernel. Use solver='auto', 'newton', 'smo' or 'lbfgs'."
        )
