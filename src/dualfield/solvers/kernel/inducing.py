"""Inducing points: the model restricted to the span of a few points, certified against the full problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.kernels import Kernel
from dualfield.kernels.landmarks import landmark_root
from dualfield.objectives import KernelSoftmax
from dualfield.solvers.base import KernelPoint, Progress, Solution, StopRule
from dualfield.solvers.kernel.newton import NewtonCG


class ReducedSoftmax(KernelSoftmax):
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
    problem: KernelSoftmax, wanted: int | ArrayLike, rule: StopRule, callbacks: Progress, random: np.random.RandomState
) -> tuple[Any, Solution[KernelPoint]]:
    """Solve the reduced problem to the tolerance, then bound its distance from the minimum of the full one.

    The bound is that of the model which is returned, and costs one pass over the full kernel matrix, streamed.

    Returns
    -------
    points, solution
        The inducing points, and a solution with coefficients on them.
    """
    inducing = _inducing_points(problem, wanted, random)
    root = landmark_root(problem.kernel, inducing, problem.n_threads)
    features = problem.kernel.scores(problem.points, inducing, root, problem.n_threads)
    reduced = ReducedSoftmax(
        Kernel("linear"),  # what the kernel is in these features
        features,
        problem.labels,
        weights=problem.weights,
        n_classes=problem.n_classes,
        with_bias=problem.with_bias,
        pinned=problem.pinned,
        label_kernel=problem.label_kernel,
        cache_bytes=problem.cache_bytes,
        n_threads=problem.n_threads,
    )
    solution = NewtonCG().solve(reduced, rule, None, callbacks)
    coefficients = root @ (features.T @ solution.parameters.coefficients)
    objective, gap, bias = _certified(problem, inducing, coefficients, solution.parameters.bias)
    return inducing, replace(
        solution,
        parameters=KernelPoint(coefficients, bias),
        objective=objective,
        gap=gap,
        trace=solution.trace.ended(objective, objective - gap, gap, passes=1.0),
    )


def _certified(
    problem: KernelSoftmax, inducing: Any, coefficients: Floats, bias: Floats
) -> tuple[float, float, Floats]:
    """Return value, gap and best bias of the model that is returned, from the scores that it predicts with.

    With A the coefficients of the inducing points, F their scores at the training points and e = c (D − P), a point of
    the full dual, primal(A, b) − dual(e) = ½ ⟨A, K A T⟩ − ⟨e, F⟩ + ½ ⟨e, K e T⟩, half the squared distance of the two
    models: b drops out, since e sums to zero. It is a difference of large numbers, so what rounding may have taken away
    is added: for the sums of so many products of size √(k(x, x) k(z, z)), and for what e does not sum to zero.
    """
    kernel, points, threads = problem.kernel, problem.points, problem.n_threads
    label_kernel = np.eye(problem.n_rows) if problem.label_kernel is None else problem.label_kernel
    scores = kernel.scores(points, inducing, coefficients, threads) @ label_kernel
    bias = problem.fit_bias(scores, bias)
    loss, dual_point = problem.loss(scores + bias)
    square = float(np.vdot(coefficients, kernel.scores(inducing, inducing, coefficients, threads) @ label_kernel))
    full = kernel.scores(points, points, dual_point, threads) @ label_kernel
    distance = 0.5 * square - float(np.vdot(dual_point, scores)) + 0.5 * float(np.vdot(dual_point, full))
    lengths = [np.sqrt(np.maximum(kernel.diagonal(some), 0.0)) for some in (inducing, points)]
    size = lengths[0] @ np.abs(coefficients) + lengths[1] @ np.abs(dual_point)
    n_terms = len(lengths[0]) + len(lengths[1]) + int(points.shape[1])
    rounding = n_terms * float(np.finfo(np.float64).eps) * float(size @ np.abs(label_kernel) @ size)
    if problem.with_bias:
        rounding += float(np.abs(dual_point.sum(axis=0)).max()) * (float(np.abs(bias).max()) + np.abs(scores).max())
    return 0.5 * square + loss, max(distance, 0.0) + rounding, bias


def check_inducing(owner: str, wanted: Any) -> None:
    """Raise unless kernel_approx is None, a number of points, or points."""
    good = isinstance(wanted, int | np.integer) and not isinstance(wanted, bool) and wanted >= 1
    if wanted is not None and not good and np.ndim(wanted) != 2 and not sparse.issparse(wanted):
        raise ValueError(
            f"The 'kernel_approx' parameter of {owner} must be None, an int in [1, inf), or points of shape "
            f"(n_points, n_features). Got {wanted!r:.100} instead."
        )


def _inducing_points(problem: KernelSoftmax, wanted: int | ArrayLike, random: np.random.RandomState) -> Any:
    points = problem.points
    if isinstance(wanted, int | np.integer):
        chosen = np.sort(random.permutation(problem.size)[: int(wanted)])
        return points[chosen]
    given = check_array(wanted, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="kernel_approx")
    if given.shape[1] != points.shape[1]:
        raise ValueError(
            f"The points of 'kernel_approx' must have {points.shape[1]} features, as X has. Got {given.shape[1]}."
        )
    return sparse.csr_array(given) if sparse.issparse(points) else given
