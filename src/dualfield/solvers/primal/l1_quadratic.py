"""Quadratic functions with a penalty on absolute values: the model that a Newton step minimises."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from dualfield.data.arrays import Floats

_EXACT = 1e-9  # of the penalty: what is left of the slope
_ROUNDING = 1e-14  # of the terms of the slope


def pseudo_gradient(x: Floats, gradient: Floats, l1: float) -> Floats:
    """Return the gradient with the penalty, and at kinks the subgradient nearest to zero.

    Parameters
    ----------
    x, gradient : array of shape (n,)
        A point, and the gradient of the smooth part there.
    l1 : float
        Weight of the absolute values.

    Returns
    -------
    array of shape (n,)
        Zero where and only where the point is a minimum of its coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.primal.l1_quadratic import pseudo_gradient
    >>> pseudo_gradient(np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.5, -3.0]), 1.0)
    array([ 1.5,  0. , -2. ])
    """
    if not l1:
        return gradient
    right, left = gradient + l1, gradient - l1
    at_kink = np.where(right < 0.0, right, np.where(left > 0.0, left, 0.0))
    return np.where(x > 0.0, right, np.where(x < 0.0, left, at_kink))


def minimise_l1_quadratic(matrix: Floats, linear: Floats, l1: float, start: Floats, n_rounds: int = 100) -> Floats:
    r"""Minimise :math:`\frac{1}{2} x^\top B x + \langle q, x \rangle + \lambda \|x\|_1`.

    A round goes through the coordinates once, which finds signs, and then moves to the minimum for these signs. Where
    one of them changes on the way, its coordinate stays at zero for the rest of it. Neither raises the value.

    Parameters
    ----------
    matrix : array of shape (n, n)
        B, positive definite.
    linear : array of shape (n,)
        q.
    l1 : float
        :math:`\lambda`.
    start : array of shape (n,)
        Where to begin.
    n_rounds : int, default=100
        Most rounds.

    Returns
    -------
    array of shape (n,)
        The minimum, or where the rounds ended.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.primal.l1_quadratic import minimise_l1_quadratic
    >>> minimise_l1_quadratic(np.eye(2), np.array([-3.0, 0.5]), 1.0, np.zeros(2))
    array([2., 0.])
    """
    x, diagonal = start.copy(), np.diag(matrix).tolist()
    for _ in range(n_rounds):
        slope = matrix @ x + linear
        for j, curvature in enumerate(diagonal):
            pull = curvature * x[j] - slope[j]
            moved = float(np.sign(pull)) * max(abs(pull) - l1, 0.0) / curvature
            if moved != x[j]:
                slope += matrix[:, j] * (moved - x[j])
                x[j] = moved
        n_left = x.size + 1
        while 0 < np.count_nonzero(x) < n_left:
            chosen = np.flatnonzero(x)
            n_left = chosen.size
            x[chosen] = _towards_face_minimum(matrix[np.ix_(chosen, chosen)], linear[chosen], l1, x[chosen])
        left = np.abs(pseudo_gradient(x, matrix @ x + linear, l1))
        if np.all(left <= np.maximum(_EXACT * l1, _ROUNDING * (np.abs(matrix) @ np.abs(x) + np.abs(linear)))):
            break
    return x


def _towards_face_minimum(matrix: Floats, linear: Floats, l1: float, x: Floats) -> Floats:
    """Go to the minimum for the signs of x, or to the first place on the way where one of them changes."""
    signs = np.sign(x)
    try:
        target = scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix), -(linear + l1 * signs))
    except scipy.linalg.LinAlgError:
        return x
    crossing = target * signs < 0.0
    if not l1 or not crossing.any():
        return np.asarray(target)
    ways = np.full(x.size, np.inf)
    ways[crossing] = x[crossing] / (x[crossing] - target[crossing])
    share = float(ways.min())
    moved = x + share * (target - x)
    moved[ways <= share] = 0.0
    return np.asarray(moved)
