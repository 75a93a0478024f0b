"""The online form for a general kernel on pairs of point and label, k((x, y), (x2, y2)), in plain NumPy: small data.

One point at a time, all its dual variables at once (Memisevic 2006, section 3): rows of the joint kernel are computed
when a point is visited, and those used last are kept.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from dualfield.solvers.base import Progress, Solution, Status, StopRule, Trace

__all__ = ["JointKernelProblem", "joint_scores", "solve_joint"]

Floats = NDArray[np.float64]
JointKernel = Callable[[tuple[Any, Any], tuple[Any, Any]], float]


@dataclass(frozen=True, eq=False)
class JointKernelProblem:
    """Points, labels and weights under a joint kernel, with a cache of its rows.

    Parameters
    ----------
    kernel : callable
        ``k((x, y), (x2, y2))``, positive semidefinite on pairs.
    points : ndarray of shape (n, n_features)
        Training points.
    classes : ndarray of shape (n_classes,)
        The labels, as the kernel is given them.
    codes : int array of shape (n,)
        Index of each point's label.
    weights : ndarray of shape (n,)
        c_i > 0.
    cache_bytes : int, default=4_000_000_000
        Budget for rows of the joint kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.joint import JointKernelProblem
    >>> same = lambda a, b: float(a[1] == b[1]) * float(a[0] @ b[0])
    >>> problem = JointKernelProblem(same, np.eye(2), np.array([0, 1]), np.array([0, 1]), np.ones(2))
    >>> problem.rows(0).shape                               # label, point, label of that point
    (2, 2, 2)
    """

    kernel: JointKernel
    points: Floats
    classes: NDArray[Any]
    codes: NDArray[np.intp]
    weights: Floats
    cache_bytes: int = 4_000_000_000
    _cache: OrderedDict[int, Floats] = field(default_factory=OrderedDict, repr=False)

    def rows(self, i: int) -> Floats:
        """Return k((x_i, y), (x_j, y2)) for all y, j, y2.

        Parameters
        ----------
        i : int
            A point.

        Returns
        -------
        ndarray of shape (n_classes, n, n_classes)
            Values of the joint kernel.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers.joint import JointKernelProblem
        >>> same = lambda a, b: float(a[1] == b[1]) * float(a[0] @ b[0])
        >>> JointKernelProblem(same, np.eye(2), np.array([0, 1]), np.array([0, 1]), np.ones(2)).rows(1)[1, 1]
        array([0., 1.])
        """
        if i in self._cache:
            self._cache.move_to_end(i)
            return self._cache[i]
        block = joint_rows(self.kernel, self.points[i], self.points, self.classes)
        most = max(1, int(self.cache_bytes // max(block.nbytes, 1)))
        while len(self._cache) >= most:
            self._cache.popitem(last=False)
        self._cache[i] = block
        return block


def joint_rows(kernel: JointKernel, x: Any, points: Floats, classes: NDArray[Any]) -> Floats:
    """Return k((x, y), (points_j, y2)) for all y, j, y2.

    Parameters
    ----------
    kernel : callable
        The joint kernel.
    x : ndarray of shape (n_features,)
        A point.
    points : ndarray of shape (n, n_features)
        Other points.
    classes : ndarray of shape (n_classes,)
        All labels.

    Returns
    -------
    ndarray of shape (n_classes, n, n_classes)
        Values of the kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.joint import joint_rows
    >>> joint_rows(lambda a, b: float(a[1] == b[1]), np.zeros(1), np.zeros((1, 1)), np.array([0, 1]))[:, 0]
    array([[1., 0.],
           [0., 1.]])
    """
    return np.array([[[float(kernel((x, y), (z, y2))) for y2 in classes] for z in points] for y in classes])


def joint_scores(kernel: JointKernel, X: Floats, points: Floats, classes: NDArray[Any], coefficients: Floats) -> Floats:
    """Return Σ_{j, y2} B_j,y2 k((x, y), (x_j, y2)) for every row x of X and every label y.

    Parameters
    ----------
    kernel : callable
        The joint kernel.
    X : ndarray of shape (n_x, n_features)
        Where to evaluate.
    points : ndarray of shape (n, n_features)
        Training points.
    classes : ndarray of shape (n_classes,)
        All labels.
    coefficients : ndarray of shape (n, n_classes)
        B.

    Returns
    -------
    ndarray of shape (n_x, n_classes)
        Scores.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.joint import joint_scores
    >>> same = lambda a, b: float(a[1] == b[1])
    >>> joint_scores(same, np.zeros((1, 1)), np.zeros((1, 1)), np.array([0, 1]), np.array([[0.5, -0.5]]))
    array([[ 0.5, -0.5]])
    """
    return np.array([np.tensordot(joint_rows(kernel, x, points, classes), coefficients, axes=2) for x in X])


def solve_joint(problem: JointKernelProblem, rule: StopRule, told: Progress) -> Solution:
    """Maximise the dual, point by point in order, until the gap after a sweep is within the tolerance.

    Parameters
    ----------
    problem : JointKernelProblem
        What to solve.
    rule : StopRule
        When to stop.
    told : callable
        Told of progress after every sweep.

    Returns
    -------
    Solution
        Coefficients (n, n_classes), no bias, and the gap as a sum of KL divergences.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import StopRule
    >>> from dualfield.solvers.joint import JointKernelProblem, solve_joint
    >>> same = lambda a, b: float(a[1] == b[1]) * float(a[0] @ b[0])
    >>> problem = JointKernelProblem(same, np.eye(2), np.array([0, 1]), np.array([0, 1]), np.ones(2))
    >>> solve_joint(problem, StopRule(1e-6), lambda *row: None).status.value
    'converged'
    """
    n, n_classes = len(problem.codes), len(problem.classes)
    truth = np.eye(n_classes)[problem.codes]
    p = 0.9 * truth + 0.1 / n_classes
    scores = np.zeros((n, n_classes))
    rows: list[tuple[float, float, float, float, float]] = []
    began = time.perf_counter()
    for i in range(n):
        scores += np.tensordot(problem.weights[i] * (truth[i] - p[i]), problem.rows(i), axes=(0, 0))
    status, sweep = Status.ITERATION_LIMIT, 0
    while True:
        log_q = log_softmax(scores, axis=1)
        gap = float(problem.weights @ (p * (np.log(p) - log_q)).sum(axis=1))
        square = float(np.vdot(problem.weights[:, None] * (truth - p), scores))
        entropy = float(-(problem.weights @ (p * np.log(p)).sum(axis=1)))
        dual = entropy - 0.5 * square
        rows.append((dual + gap, dual, gap, float(sweep + 1), time.perf_counter() - began))
        told(*rows[-1])
        if square < -1e-8 * max(1.0, entropy):
            raise ValueError("The label_kernel is not positive semidefinite on pairs of point and label.")
        if dual > 0 and gap <= rule.tol * dual:
            status = Status.CONVERGED
            break
        if sweep + 1 >= rule.max_passes:
            break
        for i in range(n):
            kernel = problem.rows(i)
            step = _best_point(p[i], scores[i], problem.weights[i], kernel[:, i, :]) - p[i]
            p[i] += step
            scores -= np.tensordot(problem.weights[i] * step, kernel, axes=(0, 0))
        sweep += 1
    coefficients = problem.weights[:, None] * (truth - p)
    return Solution(
        coefficients,
        np.zeros(n_classes),
        rows[-1][0],
        rows[-1][2],
        status,
        max(1, sweep),
        Trace.from_rows(np.array(rows)),
        "online",
    )


def _best_point(p: Floats, scores: Floats, weight: float, own: Floats) -> Floats:
    """Return the p' that maximises the dual with all other points fixed: Newton's method with halving.

    The dual along p' is weight · [H(p') + ⟨p', scores⟩ − ½ weight ⟨p' − p, own (p' − p)⟩] up to a constant.
    """

    def value(q: Floats) -> float:
        d = q - p
        return float(-(q @ np.log(q)) + q @ scores - 0.5 * weight * d @ own @ d)

    q, here = p.copy(), value(p)
    for _ in range(50):
        gradient = scores - np.log(q) - 1.0 - weight * own @ (q - p)
        # On the simplex: (diag(1/q) + weight own) d = gradient − mu, sum d = 0.
        curvature = np.diag(1.0 / q) + weight * own
        both = np.linalg.solve(curvature, np.column_stack([gradient, np.ones_like(q)]))
        step = both[:, 0] - both[:, 1] * (both[:, 0].sum() / both[:, 1].sum())
        down = step < 0
        length = min(1.0, 0.95 * float((-q[down] / step[down]).min())) if down.any() else 1.0
        for _ in range(40):
            tried = np.maximum(q + length * step, 1e-300)
            tried /= tried.sum()
            there = value(tried)
            if there >= here:
                break
            length /= 2
        moved = float(np.abs(tried - q).max())
        q, here = tried, there
        if moved < 1e-13 or float(gradient @ step) < 1e-15:
            break
    return q
