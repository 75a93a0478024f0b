"""One type of clique: a multiclass problem over the label tuples that were seen for it, and its solution."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from dualfield.data.arrays import Floats
from dualfield.data.records import FLOATS, Fields, Record, matrix_record
from dualfield.kernels import Kernel
from dualfield.kernels.mercer import ROUNDING, NotPositiveError, check_curvature, check_mercer, refusals
from dualfield.kernels.summed import SummedKernel
from dualfield.objectives import KernelMargin, KernelSoftmax
from dualfield.objectives.clique_problems import CliqueProblem
from dualfield.solvers.auto import Auto
from dualfield.solvers.base import KernelPoint, Solution, Status, StopRule
from dualfield.solvers.kernel.ascent import KernelAscent
from dualfield.solvers.progress import ProgressLine
from dualfield.solvers.trace import Trace
from dualfield.structures.checks import n_threads as threads_of

__all__ = ["CliqueModel"]


@dataclass(frozen=True, eq=False, kw_only=True)
class CliqueModel:
    """The model of one type of clique.

    Attributes
    ----------
    size : int
        Number of nodes of the clique.
    key : hashable
        What ``tying`` gave: "shared", a position, or a user-defined key.
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

    @property
    def is_summed(self) -> bool:
        """Whether the kernel adds up over nodes, so that a shared input counts once for each."""
        return self.kernel is not None and isinstance(self.kernel.function, SummedKernel)

    def record(self) -> Fields:
        """Return what the model consists of."""
        if self.estimator is not None or self.status is None:
            raise ValueError("The model cannot be saved: it was fitted with a base_estimator, which is code.")
        kernel, points = self.kernel, self.points
        if kernel is not None and isinstance(kernel.function, SummedKernel):
            kernel = kernel.function.kernel
        if self.coefficients is not None and not np.isfinite(self.coefficients).all():
            raise ValueError("The model cannot be saved: it has coefficients that are not finite.")
        if bool(sparse.issparse(points)):  # what is read again must have its columns in order
            points = points.copy()
            points.sum_duplicates()
        return {
            "size": self.size,
            "key": list(self.key) if isinstance(self.key, tuple) else self.key,
            "tuples": self.tuples,
            "n_cliques": int(self.n_cliques),
            "kernel": None if kernel is None else kernel.record(),
            "is_summed": self.is_summed,
            "points": None if points is None else matrix_record(points),
            "coefficients": self.coefficients,
            "objective": float(self.objective),
            "gap": float(self.dual_gap),
            "n_iter": int(self.n_iter),
            "status": self.status.value,
        }

    @classmethod
    def from_record(cls, record: Record, n_states: int) -> CliqueModel:
        """Make a model of its record, which is checked; in a mapped file numbers are checked at their first use."""
        size, found = record.integer("size", 1), record.json("key")
        key: Hashable = tuple(found) if isinstance(found, list) else found
        tuples = record.array("tuples", np.int32, (None, size), check="later")
        record.source.later(lambda: _check_tuples(record, tuples, n_states))
        kernel = points = coefficients = None
        is_summed = record.flag("is_summed")
        names = ("kernel", "points", "coefficients")
        if len({record.has(name) for name in names}) > 1 or (is_summed and not record.has("kernel")):
            raise record.fault("a kernel needs points and coefficients, and these need a kernel.")
        if record.has("kernel"):
            kernel = Kernel.from_record(record.child("kernel"))
            record.check(not kernel.is_precomputed, "it has no kernel 'precomputed'.")
            kernel = Kernel(SummedKernel(kernel, size)) if is_summed else kernel
            coefficients = record.array("coefficients", np.float64, (None, None), finite=True, check="later")
            shape = (len(coefficients), None)
            points = record.matrix("points", shape, FLOATS, finite=True, ordered=True, check="later")
        return cls(
            size=size,
            key=key,
            tuples=tuples,
            n_cliques=record.integer("n_cliques"),
            kernel=kernel,
            points=points,
            coefficients=coefficients,
            objective=record.number("objective"),
            dual_gap=record.number("gap"),
            n_iter=record.integer("n_iter"),
            status=Status(record.text("status", [known.value for known in Status])),
        )


def _check_tuples(record: Record, tuples: NDArray[np.int32], n_states: int) -> None:
    if not len(tuples) or tuples.min() < 0 or tuples.max() >= n_states:
        raise record.fault(f"label tuples must have codes in [0, {n_states}), and there must be one.")
    if len(tuples) > 1:
        # Rows in order and distinct: the first difference to the row before is a rise.
        steps = np.diff(tuples.astype(np.int64), axis=0)
        first = np.take_along_axis(steps, (steps != 0).argmax(axis=1)[:, None], axis=1)
        record.check(not (first <= 0).any(), "label tuples must be distinct and in order.")


def solve_cliques(
    problems: Sequence[CliqueProblem], rule: StopRule, n_jobs: int | None, verbose: int
) -> dict[tuple[int, Hashable], CliqueModel]:
    """Solve the problems of all types of cliques, side by side through joblib."""
    if sum(not problem.is_trivial for problem in problems) == 1:
        # Threads inside the only problem, which may also show its progress.
        models = [solve_clique(problem, rule, threads_of(n_jobs), verbose) for problem in problems]
    else:
        # Solvers release the interpreter, so threads will do, unless a joblib context wants something else.
        # A problem is one record, not a list of arrays: dask would send arrays ahead, and lose them with a worker.
        prefer = "threads" if all(problem.loss != "estimator" for problem in problems) else None
        tasks = (joblib.delayed(solve_clique)(problem, rule) for problem in problems)
        models = joblib.Parallel(n_jobs=n_jobs, prefer=prefer)(tasks)
    return {(one.size, one.key): one for one in models}


def summary(models: Sequence[CliqueModel]) -> tuple[float, float, int, Status | None]:
    """Return objective and gap, summed over all types, the most iterations, and the first status that is not good.

    The status is None where classifiers of others were trained.
    """
    late = [model.status for model in models if model.status is not Status.CONVERGED]
    return (
        float(sum(model.objective for model in models)),
        float(sum(model.dual_gap for model in models)),
        max(model.n_iter for model in models),
        late[0] if late else Status.CONVERGED,
    )


def solve_clique(problem: CliqueProblem, rule: StopRule, n_threads: int = 1, verbose: int = 0) -> CliqueModel:
    """Train one type of clique."""
    model = CliqueModel(size=problem.size, key=problem.key, tuples=problem.tuples, n_cliques=len(problem.truth))
    if problem.is_trivial:
        return model
    if problem.loss == "estimator":
        fitted = clone(problem.estimator)
        if problem.is_weighted:
            fitted.fit(problem.points, problem.truth, sample_weight=problem.weights)
        else:
            fitted.fit(problem.points, problem.truth)
        return replace(model, estimator=fitted, objective=np.nan, dual_gap=np.nan, status=None)
    assert problem.kernel is not None
    check_mercer(problem.kernel, problem.points, n_threads)
    solve = {"log": _solve_log, "squared": _solve_squared}.get(problem.loss, _solve_hinge)
    with ProgressLine("ConditionalGraphicalModel", verbose) as line, refusals(problem.kernel):
        solution = solve(problem, rule, n_threads, line)
        line.end(f"{solution.status.value}, relative gap {solution.relative_gap:.1e}.")
    used = np.flatnonzero(solution.parameters.coefficients.any(axis=1))
    return replace(
        model,
        kernel=problem.kernel,
        points=problem.points[used],
        coefficients=np.ascontiguousarray(solution.parameters.coefficients[used]),
        objective=solution.objective,
        dual_gap=solution.gap,
        n_iter=solution.n_iter,
        status=solution.status,
    )


def _solve_hinge(problem: CliqueProblem, rule: StopRule, n_threads: int, line: ProgressLine) -> Solution[Any]:
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
        outputs=np.ascontiguousarray(outputs, dtype=np.int32),
        truth=problem.truth,
        weights=problem.weights,
        n_labels=n_labels,
        cost=None,
        cache_bytes=problem.cache_bytes,
        n_threads=n_threads,
    )
    return KernelAscent().solve(margin, rule, None, line, problem.seed)


def _solve_log(problem: CliqueProblem, rule: StopRule, n_threads: int, line: ProgressLine) -> Solution[Any]:
    """½ ‖w‖² + Σ_i c_i [ log Σ_o exp score_i(o) − score_i(o_i) ]."""
    assert problem.kernel is not None
    softmax = KernelSoftmax(
        problem.kernel,
        problem.points,
        problem.truth,
        weights=problem.weights,
        n_classes=len(problem.tuples),
        with_bias=False,
        pinned=False,
        label_kernel=None,
        cache_bytes=problem.cache_bytes,
        n_threads=n_threads,
    )
    return Auto().solve(softmax, rule, None, line, problem.seed)


def _solve_squared(problem: CliqueProblem, rule: StopRule, n_threads: int, line: ProgressLine) -> Solution[Any]:
    """½ ‖w‖² + ½ Σ_i c_i ‖t_i − score_i‖² with t_i the indicator of the true tuple: one system of equations."""
    assert problem.kernel is not None
    n = len(problem.truth)
    if 8 * n * n > problem.cache_bytes:
        raise ValueError(
            f"loss='squared' solves equations with the whole kernel matrix of a clique type. That of {n} cliques has "
            f"{8 * n * n:.2g} bytes, more than cache_size={problem.cache_bytes:.2g}. Raise it, or use loss='hinge'."
        )
    values = problem.kernel.values(problem.points, problem.points, n_threads)
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
    status = Status.CONVERGED if gap <= rule.tol * (objective - gap) else Status.STALLED
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
