"""Kernel logistic regression solved the slow and obvious way: what the estimator is held against.

A Gram matrix K is factored into features, K = Φ Φᵀ, a label kernel into T = A Aᵀ. Then the problem is an ordinary
logistic regression with weights W,

    two classes    ½ ‖w‖² + Σ_i c_i log(1 + exp(-y_i s_i)),              s = Φ w + b,        y_i = ±1
    more           ½ ‖W‖² + Σ_i c_i [log Σ_c exp S_ic - S_i,y_i],        S = Φ W Aᵀ + b,

with c_i = C times the weight of point i, and is minimised by Newton's method with a dense Hessian and a line search, in
float64. Nothing here is shared with the library.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit, logsumexp, softmax


@dataclass
class Optimum:
    """The minimiser: scores and bias of the given points, their probabilities, dual_coef as in the estimator."""

    objective: float
    scores: np.ndarray  # (n,) for two classes, else (n, n_classes); with the bias
    bias: np.ndarray  # (1,) or (n_classes,); sums to zero over classes
    proba: np.ndarray  # (n, n_classes)
    dual_coef: np.ndarray  # (1, n) or (n_classes, n)
    slope: float  # the largest entry of the gradient where Newton's method ended


def factor(matrix: np.ndarray) -> np.ndarray:
    """Return Φ with Φ Φᵀ = matrix; directions of no weight are left out."""
    values, vectors = np.linalg.eigh(matrix)
    keep = values > 1e-15 * max(values[-1], 1e-300)
    return vectors[:, keep] * np.sqrt(values[keep])


def newton(value, derivatives, start: np.ndarray) -> tuple[np.ndarray, float]:
    """Minimise a smooth convex function. ``derivatives`` returns gradient and Hessian; the result, and its slope."""
    at, best = start, np.inf
    for _ in range(500):
        gradient, hessian = derivatives(at)
        step = -np.linalg.lstsq(hessian, gradient, rcond=1e-15)[0]
        decrement = -gradient @ step
        size = 1.0
        if decrement > 1e-13 * abs(value(at)):
            while size > 1e-12 and value(at + size * step) > value(at) - 1e-4 * size * decrement:
                size /= 2
        elif np.abs(gradient).max() < best:  # values no longer differ, gradients do: full steps while these fall
            best, kept = np.abs(gradient).max(), at
        else:
            return kept, float(best)
        at = at + size * step
    raise RuntimeError("Newton's method did not end: the reference is of no use here.")


def binary(K: np.ndarray, codes: np.ndarray, c: np.ndarray | float, bias: bool) -> Optimum:
    """Two classes, Keerthi et al. 2005. ``codes`` are 0 and 1, ``c`` is C times the weight of each point."""
    c = np.broadcast_to(np.asarray(c, dtype=float), codes.shape)
    y = np.where(codes == 1, 1.0, -1.0)
    features = factor(K)
    columns = np.column_stack([features, np.ones(len(y))]) if bias else features
    penalty = np.ones(columns.shape[1])
    penalty[features.shape[1] :] = 0.0

    def value(w):
        return 0.5 * penalty @ w**2 + c @ np.logaddexp(0.0, -y * (columns @ w))

    def derivatives(w):
        s = columns @ w
        gradient = penalty * w - columns.T @ (c * y * expit(-y * s))
        curvature = c * expit(s) * expit(-s)
        return gradient, np.diag(penalty) + columns.T @ (curvature[:, None] * columns)

    w, slope = newton(value, derivatives, np.zeros(columns.shape[1]))
    s = columns @ w
    return Optimum(
        objective=float(value(w)),
        scores=s,
        bias=w[features.shape[1] :] if bias else np.zeros(1),
        proba=np.column_stack([expit(-s), expit(s)]),
        dual_coef=(c * y * expit(-y * s))[None],
        slope=slope,
    )


def multiclass(
    K: np.ndarray, codes: np.ndarray, c: np.ndarray | float, bias: bool, label_kernel: np.ndarray | None = None
) -> Optimum:
    """Softmax over the classes 0, 1, ..., Memisevic 2006 with C = 1/λ; two classes are allowed here as well."""
    c = np.broadcast_to(np.asarray(c, dtype=float), codes.shape)
    n_classes = int(codes.max()) + 1
    truth = np.eye(n_classes)[codes]
    features = factor(K)
    mix = np.eye(n_classes) if label_kernel is None else factor(label_kernel)
    # One row for each pair of a point and a class, so that S.ravel() = rows @ W.ravel().
    rows = np.einsum("ir,cq->icrq", features, mix).reshape(len(codes) * n_classes, -1)
    n_weights = rows.shape[1]
    if bias:
        rows = np.hstack([rows, np.tile(np.eye(n_classes), (len(codes), 1))])
    penalty = np.where(np.arange(rows.shape[1]) < n_weights, 1.0, 0.0)

    def scores(w):
        return (rows @ w).reshape(truth.shape)

    def value(w):
        s = scores(w)
        return 0.5 * penalty @ w**2 + c @ (logsumexp(s, axis=1) - (truth * s).sum(axis=1))

    def derivatives(w):
        p = softmax(scores(w), axis=1)
        gradient = penalty * w - rows.T @ (c[:, None] * (truth - p)).ravel()
        flat = (np.sqrt(c)[:, None] * p).ravel()
        hessian = np.diag(penalty) + rows.T @ ((c[:, None] * p).ravel()[:, None] * rows)
        mean = np.add.reduceat(flat[:, None] * rows, np.arange(0, len(rows), n_classes))
        hessian -= mean.T @ mean
        # The loss does not feel a number added to all biases: fix their sum, or the Hessian is singular.
        hessian[n_weights:, n_weights:] += 1.0 if bias else 0.0
        return gradient, hessian

    w, slope = newton(value, derivatives, np.zeros(rows.shape[1]))
    p = softmax(scores(w), axis=1)
    return Optimum(
        objective=float(value(w)),
        scores=scores(w),
        bias=w[n_weights:] if bias else np.zeros(n_classes),
        proba=p,
        dual_coef=(c[:, None] * (truth - p)).T,
        slope=slope,
    )


def solve(K, codes, c, bias, label_kernel=None) -> Optimum:
    """Return the optimum in the form that the estimator uses for this number of classes."""
    if codes.max() == 1 and label_kernel is None:
        return binary(K, codes, c, bias)
    return multiclass(K, codes, c, bias, label_kernel)


def primal(K, codes, c, coef, intercept, label_kernel=None, cross=None) -> float:
    """Return the objective at dual_coef and intercept; ``cross`` is K(X, points) where points are not the data."""
    cross = K if cross is None else cross
    c = np.broadcast_to(np.asarray(c, dtype=float), codes.shape)
    if len(coef) == 1:
        s = cross @ coef[0] + intercept[0]
        return float(0.5 * coef[0] @ K @ coef[0] + c @ np.logaddexp(0.0, np.where(codes == 1, -s, s)))
    mix = np.eye(len(coef)) if label_kernel is None else label_kernel
    s = cross @ coef.T @ mix + intercept
    norm = ((coef @ K) * (mix @ coef)).sum()
    return float(0.5 * norm + c @ (logsumexp(s, axis=1) - s[np.arange(len(codes)), codes]))


def dual(K, codes, c, coef, label_kernel=None) -> float:
    """Return the dual value at dual_coef; -inf outside its domain. With a bias, rows of ``coef`` must also sum to 0."""
    c = np.broadcast_to(np.asarray(c, dtype=float), codes.shape)
    if len(coef) == 1:
        share = np.where(codes == 1, 1.0, -1.0) * coef[0] / c
        share = np.column_stack([share, 1.0 - share])
        norm = coef[0] @ K @ coef[0]
    else:
        mix = np.eye(len(coef)) if label_kernel is None else label_kernel
        share = np.eye(len(coef))[codes] - coef.T / c[:, None]
        norm = ((coef @ K) * (mix @ coef)).sum()
    if share.min() < -1e-9 or np.abs(share.sum(axis=1) - 1.0).max() > 1e-9:
        return -np.inf
    return float(c @ entr(np.clip(share, 0.0, 1.0)).sum(axis=1) - 0.5 * norm)


def witness(codes, c, scores, bias: bool) -> np.ndarray:
    """Return the dual point C v (D - P) that belongs to scores without a bias; the best bias makes it feasible."""
    c = np.broadcast_to(np.asarray(c, dtype=float), codes.shape)
    table = scores if scores.ndim == 2 else np.column_stack([np.zeros(len(codes)), scores])
    truth = np.eye(table.shape[1])[codes]
    b = np.zeros(table.shape[1])

    def value(b):
        return c @ (logsumexp(table + b, axis=1) - ((table + b) * truth).sum(axis=1))

    def derivatives(b):
        p = softmax(table + b, axis=1)
        return (c[:, None] * (p - truth)).sum(axis=0), np.diag(c @ p) - p.T @ (c[:, None] * p) + 1.0

    if bias:
        b, _ = newton(value, derivatives, b)
    coef = (c[:, None] * (truth - softmax(table + b, axis=1))).T
    return coef if scores.ndim == 2 else coef[1:]


def gap(K, codes, c, coef, intercept, bias: bool, label_kernel=None) -> tuple[float, float]:
    """Return primal value and duality gap of a fitted model, from the data alone.

    Two dual points certify it: its own coefficients where they are feasible, and C v (D - P) of its scores. The better
    one counts.
    """
    above = primal(K, codes, c, coef, intercept, label_kernel)
    scores = (
        K @ coef[0] if len(coef) == 1 else K @ coef.T @ (np.eye(len(coef)) if label_kernel is None else label_kernel)
    )
    below = dual(K, codes, c, witness(codes, c, scores, bias), label_kernel)
    # A sum of e moves the bound by at most e times the largest bias, which is far below what is measured here.
    if not bias or np.abs(coef.sum(axis=1)).max() <= 1e-10 * np.abs(coef).sum():
        below = max(below, dual(K, codes, c, coef, label_kernel))
    return above, above - below
