"""Inducing points: the model restricted to the span of a few points, certified against the full problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

from dualfield import _native
from dualfield.estimators.landmarks import landmark_root
from dualfield.kernels import Kernel
from dualfield.objectives import KernelSoftmax
from dualfield.solvers import NewtonCG, Solution, StopRule, Trace
from dualfield.solvers.base import Progress

Floats = NDArray[np.float64]


class _Reduced(KernelSoftmax):
    """The same objective with the kernel Φ Φ', Φ = K(points, inducing) K(inducing, inducing)^(-1/2) (Nyström)."""

    def matrix(self, *, single: bool, stored: bool | None = None) -> _native.KernelMatrix:
        """Return the factored matrix; products only."""
        key = (single, False)
        if key not in self._matrices:
            features = self.points.astype(np.float32 if single else np.float64)
            self._matrices[key] = _native.KernelMatrix.from_features(np.ascontiguousarray(features))
        return self._matrices[key]

    def fits(self, bytes_per_value: int) -> bool:
        """Return True: the features are all that is kept."""
        return True


def solve_with_inducing_points(
    problem: KernelSoftmax, wanted: int | ArrayLike, rule: StopRule, told: Progress, random: np.random.RandomState
) -> tuple[Any, Solution]:
    """Solve the reduced problem to the tolerance, then bound its distance from the minimum of the full one.

    The bound is primal(reduced) − dual(e) with e = c (D − P), a point of the full dual; it costs one pass over the full
    kernel matrix, streamed.

    Returns
    -------
    points, solution
        The inducing points, and a solution with coefficients on them.
    """
    inducing = _inducing_points(problem, wanted, random)
    root = landmark_root(problem.kernel, inducing, problem.n_threads)
    features = problem.kernel.scores(problem.points, inducing, root, problem.n_threads)
    reduced = _Reduced(
        Kernel("linear"),  # what the kernel is in these features
        features,
        problem.labels,
        problem.weights,
        problem.n_classes,
        problem.with_bias,
        problem.pinned,
        problem.label_kernel,
        problem.cache_bytes,
        problem.n_threads,
    )
    solution = NewtonCG().solve(reduced, rule, None, told)
    scores = reduced.product(solution.coefficients)
    bias = reduced.fit_bias(scores, solution.bias)
    loss, dual_point = reduced.loss(scores + bias)
    objective = 0.5 * float(np.vdot(solution.coefficients, scores)) + loss
    # dual(e) = −½ ⟨e, K e T⟩ + Σ c H(P), and Σ c H(P) = loss + ⟨e, F⟩ since b drops out where e sums to zero.
    full = problem.kernel.scores(problem.points, problem.points, dual_point, problem.n_threads)
    if problem.label_kernel is not None:
        full = full @ problem.label_kernel
    dual = loss + float(np.vdot(dual_point, scores)) - 0.5 * float(np.vdot(dual_point, full))
    gap = objective - dual
    last = solution.trace.rows()[-1]
    rows = np.vstack([solution.trace.rows(), [objective, dual, gap, last[3] + 1.0, last[4]]])
    return inducing, Solution(
        root @ (features.T @ solution.coefficients),
        bias - (bias.mean() if len(bias) > 1 else 0.0),
        objective,
        gap,
        solution.status,
        solution.n_iter,
        Trace.from_rows(rows),
        "newton",
    )


def _inducing_points(problem: KernelSoftmax, wanted: int | ArrayLike, random: np.random.RandomState) -> Any:
    points = problem.points
    if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool):
        if wanted < 1:
            raise ValueError(
                f"The 'kernel_approx' parameter must be an int in [1, inf) or points. Got {wanted!r} instead."
            )
        chosen = np.sort(random.permutation(problem.size)[: int(wanted)])
        return points[chosen]
    given = check_array(wanted, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="kernel_approx")
    if given.shape[1] != points.shape[1]:
        raise ValueError(
            f"The points of 'kernel_approx' must have {points.shape[1]} features, as X has. Got {given.shape[1]}."
        )
    return sparse.csr_array(given) if sparse.issparse(points) else given
