"""Landmarks: a few points in whose span a kernel model is sought."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice
from dualfield.kernels.kernel import Kernel

METHODS = ("k-means++", "greedy", "leverage", "random")


def check_landmarks(owner: str, wanted: Any) -> None:
    """Raise unless kernel_approx is None, a number of points, a pair of number and method, or points."""
    if wanted is None:
        return
    number, method = wanted if isinstance(wanted, tuple) and len(wanted) == 2 else (wanted, METHODS[0])
    if isinstance(number, (int, np.integer)) and not isinstance(number, bool):
        if number < 1:
            raise ValueError(
                f"The 'kernel_approx' parameter of {owner} must be an int in [1, inf), (int, method) or points. "
                f"Got {wanted!r} instead."
            )
        check_choice(owner, "kernel_approx", method, METHODS, "None, an int, a pair of int and method, or points")
    elif np.ndim(number) != 2 and not hasattr(number, "toarray"):
        raise ValueError(
            f"The 'kernel_approx' parameter of {owner} must be None, an int in [1, inf), (int, method) or points of "
            f"shape (n, n_columns). Got {wanted!r:.100} instead."
        )


def choose_landmarks(kernel: Kernel, points: Any, wanted: Any, seed: int, n_threads: int) -> Any:
    """Return the landmarks, rows of the training points unless they are given."""
    number, method = wanted if isinstance(wanted, tuple) and len(wanted) == 2 else (wanted, METHODS[0])
    if not isinstance(number, (int, np.integer)):
        given = number if hasattr(number, "toarray") else np.asarray(number, dtype=np.float64)
        if given.shape[1] != points.shape[1]:
            raise ValueError(
                f"The points of 'kernel_approx' must have {points.shape[1]} columns, as X has. Got {given.shape[1]}."
            )
        return given
    random, n = np.random.default_rng(seed), points.shape[0]
    number = min(int(number), n)
    if method == "random" or number == n:
        chosen = random.permutation(n)[:number]
    elif method == "leverage":
        chosen = _by_leverage(kernel, points, number, random, n_threads)
    else:
        chosen = _one_by_one(kernel, points, number, random if method == "k-means++" else None, n_threads)
    return points[np.sort(chosen)]


def landmark_root(kernel: Kernel, landmarks: Any, n_threads: int) -> Floats:
    """Return K(landmarks, landmarks)^(-1/2), of shape (n, rank), without directions that the kernel does not have."""
    own = kernel.values(landmarks, landmarks, n_threads)
    if not np.isfinite(own).all():
        raise ValueError(
            "The kernel has values on the inducing points that overflow or are not numbers; scale the features or "
            "choose another kernel."
        )
    eigenvalues, vectors = np.linalg.eigh((own + own.T) / 2)
    kept = eigenvalues > max(eigenvalues[-1], 0.0) * 1e-10
    if not kept.any():
        raise ValueError("The kernel is not positive semidefinite, or zero, on the inducing points.")
    return np.asarray(vectors[:, kept] / np.sqrt(eigenvalues[kept]))


def _one_by_one(
    kernel: Kernel, points: Any, number: int, random: np.random.Generator | None, n_threads: int
) -> NDArray[np.intp]:
    """Choose points one by one: k-means++ in the space of the kernel, or greedily.

    Greedily the next one is the point that the span of those chosen describes worst: pivoted Cholesky, whose residuals
    on the diagonal are the squared distances from the span. k-means++ draws in proportion to the squared distance from
    the nearest one.
    """
    n, own = points.shape[0], kernel.diagonal(points)
    chosen: list[int] = []
    rest = own.copy()
    factor = np.empty((0 if random is not None else number, n))
    for step in range(number):
        rest[chosen] = 0.0
        rest = np.maximum(rest, 0.0)
        if not rest.any():
            break
        at = int(rest.argmax()) if random is None else int(random.choice(n, p=rest / rest.sum()))
        row = kernel.values(points[at : at + 1], points, n_threads)[0]
        if random is None:
            row = (row - factor[:step, at] @ factor[:step]) / np.sqrt(rest[at])
            factor[step] = row
            rest = rest - row**2
        else:
            distance = own + own[at] - 2.0 * row
            rest = distance if step == 0 else np.minimum(rest, distance)
        chosen.append(at)
    return np.array(chosen, dtype=np.intp)


def _by_leverage(
    kernel: Kernel, points: Any, number: int, random: np.random.Generator, n_threads: int
) -> NDArray[np.intp]:
    """Draw in proportion to ridge leverage scores, estimated from a first uniform draw.

    With S the first draw and a ridge r such that the scores sum to about the number of landmarks, the score of x is
    (k(x, x) − k(x, S) (K_SS + r I)⁻¹ k(S, x)) / r.
    """
    n, first = points.shape[0], random.permutation(points.shape[0])[:number]
    own = kernel.values(points[first], points[first], n_threads)
    ridge = float(np.trace(own)) / number
    root = np.linalg.inv(np.linalg.cholesky(own + ridge * np.eye(number)))
    described = kernel.scores(points, points[first], root.T, n_threads)
    scores = np.maximum(kernel.diagonal(points) - (described**2).sum(axis=1), 1e-12) / ridge
    return random.choice(n, size=number, replace=False, p=scores / scores.sum())
