"""The online form for a general kernel on pairs of point and label, k((x, y), (x2, y2)), in plain NumPy: small data.

One point at a time, all its dual variables at once (Memisevic 2006, section 3): rows of the joint kernel are computed
when a point is visited, and those used last are kept.
"""

from __future__ import annotations

import numbers
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from dualfield.data.arrays import Floats
from dualfield.solvers.base import KernelPoint, Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver
from dualfield.solvers.trace import Trace

__all__ = ["JointKernelProblem", "JointOnline", "joint_scores"]

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
    >>> from dualfield.solvers.kernel.joint import JointKernelProblem
    >>> same = lambda a, b: float(a[1] == b[1]) * float(a[0] @ b[0])
    >>> problem = JointKernelProblem(same, np.eye(2), np.array([0, 1]), codes=np.array([0, 1]), weights=np.ones(2))
    >>> problem.rows(0).shape                               # label, point, label of that point
    (2, 2, 2)
    """

    kernel: JointKernel
    points: Floats
    classes: NDArray[Any]
    _: KW_ONLY
    codes: NDArray[np.intp]
    weights: Floats
    cache_bytes: int = 4_000_000_000
    _cache: OrderedDict[int, Floats] = field(default_factory=OrderedDict, repr=False)

    @property
    def has_all_rows(self) -> bool:
        """Whether no value of the kernel has to be computed any more."""
        return len(self._cache) == len(self.points)

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
        >>> from dualfield.solvers.kernel.joint import JointKernelProblem
        >>> same = lambda a, b: float(a[1] == b[1]) * float(a[0] @ b[0])
        >>> JointKernelProblem(
        ...     same, np.eye(2), np.array([0, 1]), codes=np.array([0, 1]), weights=np.ones(2)
        ... ).rows(1)[1, 1]
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
    >>> from dualfield.solvers.kernel.joint import joint_rows
    >>> joint_rows(lambda a, b: float(a[1] == b[1]), np.zeros(1), np.zeros((1, 1)), np.array([0, 1]))[:, 0]
    array([[1., 0.],
           [0., 1.]])
    """
    rows = np.empty((len(classes), len(points), len(classes)))
    for place in np.ndindex(rows.shape):
        y, z, y2 = classes[place[0]], points[place[1]], classes[place[2]]
        value = kernel((x, y), (z, y2))
        if isinstance(value, np.ndarray) and value.size == 1:
            value = value.item()
        if not isinstance(value, numbers.Real) or not np.isfinite(value):
            raise ValueError(
                f"The 'label_kernel' function must return a finite number for each two pairs of point and label. "
                f"Got {value!r:.100} for the labels {y!r} and {y2!r}."
            )
        rows[place] = value
    return rows


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
    >>> from dualfield.solvers.kernel.joint import joint_scores
    >>> same = lambda a, b: float(a[1] == b[1])
    >>> joint_scores(same, np.zeros((1, 1)), np.zeros((1, 1)), np.array([0, 1]), np.array([[0.5, -0.5]]))
    array([[ 0.5, -0.5]])
    """
    return np.array([np.tensordot(joint_rows(kernel, x, points, classes), coefficients, axes=2) for x in X])


@register
@dataclass(frozen=True)
class JointOnline(Solver):
    """The online form for a kernel on pairs of point and label: one point at a time, all its dual variables at once.

    Memory is that of the rows of the kernel that are kept. In plain NumPy, for small data.

    Examples
    --------
    >>> from dualfield.solvers import JointOnline
    >>> JointOnline()
    JointOnline()
    """

    name: ClassVar[str] = "joint_online"

    def missing(self, objective: Any) -> str | None:
        """Say what an objective lacks for this solver.

        Parameters
        ----------
        objective : objective
            What is to be minimised.

        Returns
        -------
        str or None
            A sentence; None if nothing is missing.

        Examples
        --------
        >>> from dualfield.solvers import JointOnline, prototypes
        >>> JointOnline().missing(prototypes.kernel_softmax())
        'Its kernel is not one on pairs of point and label (label_kernel).'
        """
        if isinstance(objective, JointKernelProblem):
            return None
        return "Its kernel is not one on pairs of point and label (label_kernel)."

    def solve(
        self,
        objective: JointKernelProblem,
        rule: StopRule,
        start: KernelPoint | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[KernelPoint]:
        """Maximise the dual, point by point in order, until the gap after a sweep is within the tolerance.

        Parameters
        ----------
        objective : JointKernelProblem
            What to solve.
        rule : StopRule
            When to stop.
        start : KernelPoint, default=None
            Not used.
        callbacks : Callbacks or callable, default=None
            Called after every sweep with objective, dual, gap, passes and seconds.
        random_state : None
            Not used: nothing is random.

        Returns
        -------
        Solution
            Coefficients (n, n_classes), no bias, and the gap as a sum of KL divergences.

        Examples
        --------
        >>> from dualfield.solvers import JointOnline, StopRule, prototypes
        >>> JointOnline().solve(prototypes.joint_kernel(), StopRule(1e-6)).status.value
        'converged'
        """
        suited(self, objective)
        report = Callbacks.of(callbacks)
        began, passes = time.perf_counter(), 1.0
        point = _DualPoint(objective)
        rows: list[tuple[float, float, float, float, float]] = []

        def look() -> bool:
            """Return whether the gap is within the tolerance."""
            dual, gap = point.measure()
            rows.append((dual + gap, dual, gap, passes, time.perf_counter() - began))
            report(*rows[-1])
            return dual > 0 and gap <= rule.tol * dual

        status, sweep = Status.ITERATION_LIMIT, 0
        try:
            while True:
                if look():
                    status = Status.CONVERGED
                if status is Status.CONVERGED and not point.is_fresh:
                    # Scores were corrected at every step; what is claimed is computed from the coefficients.
                    point.refresh()
                    passes += 1.0
                    status = Status.CONVERGED if look() else Status.ITERATION_LIMIT
                if status is Status.CONVERGED or sweep + 1 >= rule.max_passes:
                    break
                point.sweep()
                sweep, passes = sweep + 1, passes + 1.0
        except KeyboardInterrupt:
            if not rows:
                raise
            status = Status.INTERRUPTED
        if not point.is_fresh and (status is not Status.INTERRUPTED or objective.has_all_rows):
            point.refresh()
            passes += 1.0
        if status is not Status.CONVERGED:
            look()
        return Solution(
            parameters=KernelPoint(point.coefficients, np.zeros(len(objective.classes))),
            objective=rows[-1][0],
            gap=rows[-1][2],
            status=status,
            n_iter=max(1, sweep),
            trace=Trace.from_rows(np.array(rows)),
            solver=self.name,
        )


class _DualPoint:
    """Probabilities p_i of the labels at each point, by their logarithms: they may be smaller than any number.

    Scores are those of the coefficients B_i = c_i (D_i − p_i).
    """

    def __init__(self, problem: JointKernelProblem) -> None:
        self.problem = problem
        n_classes = len(problem.classes)
        self.truth = np.eye(n_classes)[problem.codes]
        # Between the truth and all labels alike, where the dual is largest: one product serves the whole line.
        self.log_p = np.full(self.truth.shape, -np.log(n_classes))
        self.refresh()
        mass, square = float(problem.weights.sum()), float(np.vdot(self.coefficients, self.scores))

        def minus_dual(log_share: float) -> float:
            wrong = np.exp(log_share) / n_classes
            right = 1.0 - (n_classes - 1) * wrong
            entropy = -mass * (right * np.log(right) + (n_classes - 1) * wrong * np.log(wrong))
            return float(0.5 * np.exp(2.0 * log_share) * square - entropy)

        share = float(np.exp(minimize_scalar(minus_dual, bounds=(-40.0, 0.0)).x))
        self.log_p = np.log((1.0 - share) * self.truth + share / n_classes)
        self.scores *= share

    @property
    def coefficients(self) -> Floats:
        """B, each label's as minus the sum of the others: no difference of nearly equal numbers."""
        wrong = np.where(self.truth > 0, 0.0, np.exp(self.log_p))
        return np.asarray(self.problem.weights[:, None] * (self.truth * wrong.sum(axis=1, keepdims=True) - wrong))

    def refresh(self) -> None:
        """Compute the scores anew."""
        coefficients = self.coefficients
        scores = np.zeros_like(coefficients)
        for i, row in enumerate(coefficients):
            scores += np.tensordot(row, self.problem.rows(i), axes=(0, 0))
        self.scores, self.is_fresh = scores, True

    def measure(self) -> tuple[float, float]:
        """Return the dual value and the gap, a sum of KL divergences, each of them a sum of squares in the limit."""
        weights, p = self.problem.weights, np.exp(self.log_p)
        gap = float(weights @ np.maximum((p * (self.log_p - log_softmax(self.scores, axis=1))).sum(axis=1), 0.0))
        entropy = float(-(weights @ (p * self.log_p).sum(axis=1)))
        products = self.coefficients * self.scores
        square, size = float(products.sum()), float(np.abs(products).sum())
        if not np.isfinite(square):
            raise ValueError("The label_kernel has values that overflow in the scores: scale it, or lower C.")
        if square < -1e-8 * max(size, float(np.finfo(np.float64).tiny)):
            raise ValueError("The label_kernel is not positive semidefinite on pairs of point and label.")
        return entropy - 0.5 * square, gap

    def sweep(self) -> None:
        """Give every point the best probabilities beside those of the others."""
        for i, weight in enumerate(self.problem.weights):
            kernel = self.problem.rows(i)
            before = np.exp(self.log_p[i])
            log_p = _best_point(self.log_p[i], self.scores[i], float(weight), kernel[:, i, :])
            scores = self.scores - np.tensordot(weight * (np.exp(log_p) - before), kernel, axes=(0, 0))
            self.log_p[i], self.scores, self.is_fresh = log_p, scores, False


def _best_point(log_p: Floats, scores: Floats, weight: float, own: Floats) -> Floats:
    """Return the logarithms of the p' that maximises the dual with all other points fixed.

    The dual along p' is weight · [H(p') + ⟨p', scores⟩ − ½ weight ⟨p' − p, own (p' − p)⟩] up to a constant. Newton's
    method with halving on log p': there p' > 0 needs no barrier, and the system is never worse than own.
    """
    p = np.exp(log_p)

    def value(log_q: Floats) -> float:
        q = np.exp(log_q)
        return float(q @ (scores - log_q) - 0.5 * weight * (q - p) @ own @ (q - p))

    log_q, here = log_p, value(log_p)
    for _ in range(100):
        q = np.exp(log_q)
        # Zero up to a constant at the best point: log q = scores − weight own (q − p) + constant.
        rest = scores - log_q - weight * own @ (q - p)
        rest = rest - q @ rest
        spread = np.diag(q) - np.outer(q, q)
        step = np.linalg.solve(np.eye(len(q)) + weight * own @ spread, rest)
        for _ in range(60):
            tried = log_softmax(log_q + step)
            there = value(tried)
            if there >= here:
                break
            step = step / 2
        else:
            return log_q
        gained, log_q, here = there - here, tried, there
        if gained <= 1e-15 * (abs(here) + float(np.abs(q * scores).sum())):
            break
    return log_q
