"""One type of clique: a multiclass problem over the label tuples that were seen for it, and its solution."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from dualfield.kernels import Kernel
from dualfield.kernels.mercer import ROUNDING, NotPositiveError, check_curvature, check_mercer, refusals
from dualfield.objectives import KernelMargin, KernelSoftmax
from dualfield.scores.cliques import Index, gather
from dualfield.solvers import Auto, KernelAscent, KernelPoint, Solution, Status, StopRule, Trace
from dualfield.solvers.progress import ProgressLine

__all__ = ["CliqueModel"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CliqueModel:
    """The model of one type of clique.

    Attributes
    ----------
    size : int
        Number of nodes of the clique.
    key : hashable
        What ``tying`` gave: "shared", a position, or a key of your own.
    tuples : int array of shape (n_tuples, size)
        The label tuples seen in training, as indices of ``classes_``; n_classes stands for a blank node.
    n_cliques : int
        How many cliques it was trained on.
    kernel : Kernel or None
        The kernel, with its γ; None where there is none.
    points : array or sparse matrix of shape (n_points, n_features) or None
        The points whose coefficients are not all zero.
    coefficients : array of shape (n_points, n_outputs) or None
        A column for each tuple; with ``features="tied"`` for each node of the clique and label, node by node.
    estimator : object or None
        The fitted classifier, where ``base_estimator`` was given.
    objective, dual_gap : float
        The minimised value, and a bound on its distance from the minimum; NaN where nothing is known about it.
    n_iter : int
        Iterations of the solver.
    status : Status or None
        How it ended; None for classifiers of others.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield import ConditionalGraphicalModel
    >>> X, y = [np.array([[0.0], [1.0], [0.0]])], [["a", "b", "a"]]
    >>> model = ConditionalGraphicalModel(1, loss="squared").fit(X, y)
    >>> model.clique_models_[2, "shared"].tuples
    array([[0, 1],
           [1, 0]], dtype=int32)
    """

    size: int
    key: Hashable
    tuples: NDArray[np.int32]
    n_cliques: int
    kernel: Kernel | None = None
    points: Any = None
    coefficients: Floats | None = None
    estimator: Any = None
    objective: float = 0.0
    dual_gap: float = 0.0
    n_iter: int = 0
    status: Status | None = Status.CONVERGED


@dataclass(frozen=True, eq=False)
class CliqueProblem:
    """What a worker needs to train one type of clique: plain arrays and settings."""

    size: int
    key: Hashable
    tuples: NDArray[np.int32]  # (q, size)
    truth: NDArray[np.int32]  # (n,) rows of tuples
    weights: Floats  # (n,) of the cliques, times C where there is a C
    points: Any
    members: NDArray[np.int32]  # (n, n_slots) rows of points
    kernel: Kernel | None
    loss: str  # "hinge", "tied", "log", "squared", "estimator", "none"
    estimator: Any
    is_weighted: bool
    n_states: int
    rule: StopRule
    cache_bytes: int
    n_threads: int
    seed: int
    verbose: int


def solve_clique(problem: CliqueProblem) -> CliqueModel:
    """Train one type of clique."""
    size, key, tuples, n = problem.size, problem.key, problem.tuples, len(problem.truth)
    if len(tuples) == 1 or problem.loss == "none":  # nothing to decide, or scores come from the nodes
        return CliqueModel(size, key, tuples, n)
    if problem.loss == "estimator":
        fitted = clone(problem.estimator)
        if problem.is_weighted:
            fitted.fit(problem.points, problem.truth, sample_weight=problem.weights)
        else:
            fitted.fit(problem.points, problem.truth)
        return CliqueModel(size, key, tuples, n, estimator=fitted, objective=np.nan, dual_gap=np.nan, status=None)
    assert problem.kernel is not None
    check_mercer(problem.kernel, problem.points, problem.n_threads)
    with ProgressLine("ConditionalGraphicalModel", problem.verbose) as line, refusals(problem.kernel):
        solution = {"log": _solve_log, "squared": _solve_squared}.get(problem.loss, _solve_hinge)(problem, line)
        line.end(f"{solution.status.value}, relative gap {solution.relative_gap:.1e}.")
    used = np.flatnonzero(solution.parameters.coefficients.any(axis=1))
    return CliqueModel(
        size,
        key,
        tuples,
        n,
        problem.kernel,
        problem.points[used],
        np.ascontiguousarray(solution.parameters.coefficients[used]),
        None,
        solution.objective,
        solution.gap,
        solution.n_iter,
        solution.status,
    )


def _solve_hinge(problem: CliqueProblem, line: ProgressLine) -> Solution[Any]:
    """½ ‖w‖² + Σ_i c_i max_o [ 1(o ≠ o_i) + score_i(o) − score_i(o_i) ], tied features slot by slot."""
    assert problem.kernel is not None
    if problem.loss == "tied":
        outputs = problem.tuples + problem.n_states * np.arange(problem.size, dtype=np.int32)
        n_labels = problem.n_states * problem.size
    else:
        n_labels = len(problem.tuples)
        outputs = np.arange(n_labels, dtype=np.int32)[:, None]
    margin = KernelMargin(
        problem.kernel,
        problem.points,
        problem.members,
        np.ascontiguousarray(outputs, dtype=np.int32),
        problem.truth,
        problem.weights,
        n_labels,
        None,
        problem.cache_bytes,
        problem.n_threads,
    )
    return KernelAscent().solve(margin, problem.rule, None, line, problem.seed)


def _solve_log(problem: CliqueProblem, line: ProgressLine) -> Solution[Any]:
    """½ ‖w‖² + Σ_i c_i [ log Σ_o exp score_i(o) − score_i(o_i) ]."""
    assert problem.kernel is not None
    softmax = KernelSoftmax(
        problem.kernel,
        problem.points,
        problem.truth,
        problem.weights,
        len(problem.tuples),
        False,
        False,
        None,
        problem.cache_bytes,
        problem.n_threads,
    )
    return Auto().solve(softmax, problem.rule, None, line, problem.seed)


def _solve_squared(problem: CliqueProblem, line: ProgressLine) -> Solution[Any]:
    """½ ‖w‖² + ½ Σ_i c_i ‖t_i − score_i‖² with t_i the indicator of the true tuple: one system of equations."""
    assert problem.kernel is not None
    n = len(problem.truth)
    if 8 * n * n > problem.cache_bytes:
        raise ValueError(
            f"loss='squared' solves equations with the whole kernel matrix of a clique type. That of {n} cliques has "
            f"{8 * n * n:.2g} bytes, more than cache_size={problem.cache_bytes:.2g}. Raise it, or use loss='hinge'."
        )
    values = problem.kernel.values(problem.points, problem.points, problem.n_threads)
    if not np.isfinite(values).all():
        raise NotPositiveError("Kernel values overflowed or are not numbers.")
    target = np.zeros((n, len(problem.tuples)))
    target[np.arange(n), problem.truth] = 1.0
    ridge = KernelRidge(alpha=1.0, kernel="precomputed").fit(values, target, sample_weight=problem.weights)
    coefficients = np.ascontiguousarray(ridge.dual_coef_)
    scores = values @ coefficients
    penalty = 0.5 * float(np.vdot(coefficients, scores))
    # What these sums are added up from, at most.
    sums = np.sqrt(np.maximum(values.diagonal(), 0.0)) @ np.abs(coefficients)
    check_curvature(penalty, float(sums @ sums))
    objective = penalty + 0.5 * float(problem.weights @ np.square(target - scores).sum(axis=1))
    # Its dual: <a, t> - 1/2 <a, K a> - 1/2 sum_i |a_i|^2 / c_i.
    norms = float(np.square(coefficients).sum(axis=1) @ (1.0 / problem.weights))
    gap = objective - (float(np.vdot(coefficients, target)) - penalty - 0.5 * norms)
    check_curvature(gap, float(sums @ sums) + norms + objective)
    gap = max(0.0, gap) + ROUNDING * (float(sums @ sums) + norms + objective)
    status = Status.CONVERGED if gap <= problem.rule.tol * (objective - gap) else Status.STALLED
    trace = Trace.from_rows(np.array([[objective, objective - gap, gap, 1.0, 0.0]]))
    return Solution(
        parameters=KernelPoint(coefficients, np.zeros(target.shape[1])),
        objective=objective,
        gap=gap,
        status=status,
        n_iter=1,
        trace=trace,
        solver="kernel_ridge",
    )


def tuple_scores(model: CliqueModel, matrix: Any, rows: Index, n_states: int, *, kind: str, n_threads: int) -> Floats:
    """Return the score of each tuple of a model for each clique, shape (n, n_tuples).

    `kind` is "kernel" for scores as they are, "log" for logarithms of a softmax over them, "tied" for sums over the
    nodes, "decision_function" or "predict_proba" for classifiers of others. A model that knows one tuple gives it 0.
    """
    n, q = len(rows), len(model.tuples)
    if model.estimator is not None:
        return _estimator_scores(model, gather(matrix, rows), kind)
    if model.coefficients is None or model.kernel is None:
        return np.zeros((n, q))
    if kind == "tied":
        total = np.zeros((n, q))
        for slot in range(model.size):
            block = model.coefficients[:, slot * n_states : (slot + 1) * n_states]
            used = np.flatnonzero(block.any(axis=1))
            each = model.kernel.scores(
                gather(matrix, rows[:, slot : slot + 1]), model.points[used], block[used], n_threads
            )
            total += each[:, model.tuples[:, slot]]
        return total
    scores = model.kernel.scores(gather(matrix, rows), model.points, model.coefficients, n_threads)
    return np.asarray(log_softmax(scores, axis=1)) if kind == "log" else scores


def _estimator_scores(model: CliqueModel, inputs: Any, kind: str) -> Floats:
    n, q = inputs.shape[0], len(model.tuples)
    if kind == "predict_proba":
        # No probability is so small that it forbids a labelling: estimated zeros are zeros of few samples.
        values = np.asarray(model.estimator.predict_proba(inputs), dtype=np.float64)
        values = np.log(np.maximum(values, np.finfo(np.float64).eps))
    else:
        values = np.asarray(model.estimator.decision_function(inputs), dtype=np.float64)
        if values.shape == (n,) and q == 2:  # the difference of the scores of the two tuples
            values = np.column_stack([-0.5 * values, 0.5 * values])
    if values.shape != (n, q):
        raise ValueError(
            f"{kind} of base_estimator must have a column for each of the {q} label tuples, shape {(n, q)}. "
            f"Got shape {values.shape} instead."
        )
    return values
