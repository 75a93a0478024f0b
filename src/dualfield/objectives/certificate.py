"""The certificate of a kernel machine: computed in double precision from the coefficients as they are returned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, xlogy

from dualfield.data.arrays import Floats
from dualfield.objectives.kernel_softmax import KernelSoftmax

__all__ = ["Certificate", "certify", "refuse_curvature", "rounding_of_square"]

_EPS = float(np.finfo(np.float64).eps)
# So many times what rounding usually does: no Gram matrix is refused because long sums had bad luck.
_CLEARLY = 1e3


class Certificate(NamedTuple):
    """What is known about a point.

    Attributes
    ----------
    objective : float
        Primal value.
    gap : float
        A bound on its distance from the minimum, what rounding may have done to either included.
    bias : ndarray of shape (n_rows,)
        The best bias.
    scores : ndarray of shape (n, n_rows)
        K B T.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.objectives.certificate import Certificate
    >>> Certificate(3.0, 1.0, np.zeros(1), np.zeros((2, 1))).dual
    2.0
    """

    objective: float
    gap: float
    bias: Floats
    scores: Floats

    @property
    def dual(self) -> float:
        """The lower bound."""
        return self.objective - self.gap


def certify(problem: KernelSoftmax, coefficients: Floats, bias: Floats, tol: float = 0.0) -> Certificate:
    """Return objective, duality gap and best bias of any coefficients, from scores as ``predict`` computes them.

    With the best bias, e = c (D − P) sums to zero and is a point of the dual, and primal(B, b) − dual(e) =
    ½ ⟨B − e, K (B − e) T⟩: a square, so that nothing cancels. It costs a second product. Where B is itself a point of
    the dual, primal(B, b) − dual(B) = Σ_i c_i KL(p_i ‖ softmax(F_i + b)) comes for nothing. To either a bound on
    rounding is added: the gap is never smaller than what is uncertain about the objective.

    Parameters
    ----------
    problem : KernelSoftmax
        The objective.
    coefficients : ndarray of shape (n, n_rows)
        B.
    bias : ndarray of shape (n_rows,)
        Where to begin the search of the best bias.
    tol : float, default=0.0
        On gap / dual value: where B proves that much, e is not asked.

    Returns
    -------
    Certificate
        Objective primal(B, b), gap ≥ primal(B, b) − minimum, best bias, scores K B T.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives import KernelSoftmax
    >>> from dualfield.objectives.certificate import certify
    >>> y = np.array([0, 1], dtype=np.int32)
    >>> problem = KernelSoftmax(
    ...     Kernel("linear"), np.array([[-1.0], [1.0]]), y,
    ...     weights=np.ones(2), n_classes=2, with_bias=True, pinned=True
    ... )
    >>> proof = certify(problem, np.zeros((2, 1)), np.zeros(1))
    >>> round(proof.objective, 4), round(proof.gap, 4)
    (1.3863, 0.5)
    >>> certify(problem, np.array([[-0.25], [0.25]]), np.zeros(1)).gap < 0.04
    True
    """
    scores = problem.scores(coefficients)
    if not (np.isfinite(scores).all() and np.isfinite(problem.diagonal).all()):
        raise ValueError("Kernel values overflowed or are not numbers; scale the features or choose another kernel.")
    # Only differences from a number for each column count where there is a bias: the large part goes first.
    level = scores.mean(axis=0) if problem.with_bias else np.zeros(problem.n_rows)
    moved = problem.fit_bias(scores - level, bias, level)
    loss, witness = problem.loss(scores - level + moved)
    square = float(np.vdot(coefficients, scores - level)) + float(level @ coefficients.sum(axis=0))
    rounding = rounding_of_square(problem, coefficients)
    refuse_curvature(problem, coefficients, square)
    objective = 0.5 * square + loss
    # Sums of losses are rounded, scores are, and the witness sums to zero up to rounding only.
    rounding += _EPS * (loss + float((np.abs(witness) * np.abs(scores)).sum()))
    if problem.with_bias:
        rounding += float(np.abs(witness.sum(axis=0)).sum())
    gap = _own_gap(problem, coefficients, scores - level + moved)
    if not gap <= tol * (objective - gap):
        rest = coefficients - witness
        bent = float(np.vdot(rest, problem.exact_product(rest)))
        refuse_curvature(problem, rest, bent)
        gap = min(gap, 0.5 * (max(bent, 0.0) + rounding_of_square(problem, rest)))
    return Certificate(objective, gap + rounding, moved - level, scores)


def rounding_of_square(problem: KernelSoftmax, coefficients: Floats) -> float:
    """Bound what rounding may do to ⟨B, K B T⟩ in double precision: eps Σ_ij |B_i| √(K_ii K_jj) |B_j T|.

    Parameters
    ----------
    problem : KernelSoftmax
        The objective.
    coefficients : ndarray of shape (n, n_rows)
        B.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives import KernelSoftmax
    >>> from dualfield.objectives.certificate import rounding_of_square
    >>> y = np.array([0, 1], dtype=np.int32)
    >>> problem = KernelSoftmax(Kernel(), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True)
    >>> 0.0 < rounding_of_square(problem, np.ones((2, 1))) < 1e-14
    True
    """
    root = np.sqrt(problem.diagonal)
    left = root @ np.abs(coefficients)
    right = left if problem.label_kernel is None else root @ np.abs(coefficients @ problem.label_kernel)
    return 2.0 * _EPS * float(left @ right)


def refuse_curvature(problem: KernelSoftmax, coefficients: Floats, square: float) -> None:
    """Raise if ⟨B, K B T⟩ is below zero by more than rounding explains, that of given kernel values included.

    Parameters
    ----------
    problem : KernelSoftmax
        The objective.
    coefficients : ndarray of shape (n, n_rows)
        B.
    square : float
        ⟨B, K B T⟩ as computed.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives import KernelSoftmax
    >>> from dualfield.objectives.certificate import refuse_curvature
    >>> y = np.array([0, 1], dtype=np.int32)
    >>> problem = KernelSoftmax(Kernel(), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True)
    >>> refuse_curvature(problem, np.ones((2, 1)), -1e-17)
    >>> refuse_curvature(problem, np.ones((2, 1)), -1.0)
    Traceback (most recent call last):
    ...
    ValueError: The kernel is not positive semidefinite: a direction of negative curvature was found.
    """
    if square >= 0.0:
        return
    spread = coefficients if problem.label_kernel is None else coefficients @ problem.label_kernel
    noise = problem.noise * float(np.abs(coefficients).sum(axis=0) @ np.abs(spread).sum(axis=0))
    if square < -_CLEARLY * (rounding_of_square(problem, coefficients) + noise):
        raise ValueError("The kernel is not positive semidefinite: a direction of negative curvature was found.")


def _own_gap(problem: KernelSoftmax, coefficients: Floats, scores: Floats) -> float:
    """Σ_i c_i KL(p_i ‖ softmax(scores_i)) where B = c (D − p) is a point of the dual; infinite where it is none."""
    weights, labels = problem.weights[:, None], problem.labels[:, None]
    if problem.pinned:
        scores = np.column_stack([np.zeros(problem.size), scores])
        coefficients = np.column_stack([-coefficients, coefficients])
    true = labels == np.arange(problem.n_classes)
    p = np.where(true, 0.0, -coefficients / weights)
    # The share of the label is what the others leave.
    others = p.sum(axis=1)
    own = np.take_along_axis(coefficients, labels, axis=1)[:, 0] / problem.weights
    unsure = 1e3 * _EPS
    if p.min() < 0.0 or others.max() > 1.0 or (np.abs(own - others) > unsure * others).any():
        return np.inf
    off = float(np.abs(coefficients.sum(axis=0)).sum()) if problem.with_bias else 0.0
    if off > unsure * np.abs(coefficients).sum():
        return np.inf
    p[true] = 1.0 - others
    log_q = log_softmax(scores, axis=1)
    # Each term is positive: p log (p / q) − p + q.
    terms = xlogy(p, p) - p * log_q - p + np.exp(log_q)
    return float((weights * np.maximum(terms, 0.0)).sum()) + off * float(1.0 + np.abs(scores).max())
