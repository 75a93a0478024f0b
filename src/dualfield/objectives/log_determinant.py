"""The log-determinant of the curvature of a penalised log-loss: exactly for few weights, by random probes for many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from dualfield.data.arrays import Floats
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.objectives.objective import Objective

__all__ = ["LogDeterminant", "log_determinant"]

FEW_WEIGHTS = 2000  # so many have their second derivatives in one matrix
_STEPS, _ENOUGH = 30, 1e-3


@dataclass(frozen=True)
class LogDeterminant:
    """log det(I + H), and how many directions of the weights the data say something about.

    Attributes
    ----------
    value : float
        The logarithm.
    standard_error : float
        Of the random probes; 0 where it is exact.
    n_informed : float
        tr (I + H)^-1 H: a weight that the data determine counts 1, one that only the penalty does counts 0.

    Examples
    --------
    >>> from dualfield.objectives.log_determinant import LogDeterminant
    >>> LogDeterminant(3.0, 0.0, 1.5).value
    3.0
    """

    value: float
    standard_error: float
    n_informed: float


def log_determinant(
    objective: Objective, w: Floats, *, exact: bool | None = None, seed: int = 0, n_probes: int = 8
) -> LogDeterminant:
    """Return log det(I + H) for the second derivatives H of the weighted losses at w.

    For many weights by stochastic Lanczos quadrature (Ubaru, Chen and Saad 2017): the mean over random sign vectors z
    of z' log(I + H) z, each by a Gauss rule from up to 30 products with H.

    Parameters
    ----------
    objective : Objective
        With second derivatives.
    w : array of shape (n_parameters,)
        Where.
    exact : bool, default=None
        Whether all second derivatives are computed; None: up to 2,000 weights.
    seed : int, default=0
        Of the probes.
    n_probes : int, default=8
        How many there are, at least two.

    Returns
    -------
    LogDeterminant
        The value, with its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.objectives.log_determinant import log_determinant
    >>> from dualfield.solvers import prototypes
    >>> objective = prototypes.objective(temperature=1.0)
    >>> round(log_determinant(objective, np.zeros(objective.n_parameters)).value, 6)    # log(1 + 2 / 4)
    0.405465
    """
    places = np.flatnonzero(objective.score_map.used)
    if exact is None:
        exact = places.size <= FEW_WEIGHTS
    if exact:
        return _of_matrix(objective.hessian(w, places))
    rng = np.random.default_rng(seed)
    found = []
    with one_blas_thread():
        for _ in range(n_probes):
            probe = np.zeros_like(w)
            probe[places] = rng.choice([-1.0, 1.0], places.size)
            found.append(_quadrature(objective, w, probe))
    values, informed = np.array(found).T
    return LogDeterminant(float(values.mean()), float(values.std(ddof=1) / np.sqrt(n_probes)), float(informed.mean()))


def _of_matrix(hessian: Floats) -> LogDeterminant:
    """Return that of a matrix, which is overwritten: by its Cholesky factor, and the trace of its inverse."""
    n = len(hessian)
    hessian.flat[:: n + 1] += 1.0
    # Many BLAS threads gain nothing on so few weights, differ in the last bit, and spin for 0.1 s after each product.
    with one_blas_thread():
        factor = scipy.linalg.cholesky(hessian.T, lower=True, overwrite_a=True, check_finite=False)
        value = 2.0 * float(np.log(np.diag(factor)).sum())
        inverse, _ = scipy.linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)
        return LogDeterminant(value, 0.0, n - float(np.vdot(inverse, inverse)))


def _quadrature(objective: Objective, w: Floats, probe: Floats) -> tuple[float, float]:
    """Return z' log(I + H) z and z' (I + H)^-1 H z by Lanczos steps, each orthogonal to all before it.

    Steps end where the last one changed both by less than one part in a thousand: another probe changes more.
    """
    norm = float(np.linalg.norm(probe))
    basis = np.empty((_STEPS, probe.size))
    basis[0] = probe / norm
    diagonal: list[float] = []
    beside: list[float] = []
    found = np.full(2, np.inf)
    for n in range(1, _STEPS + 1):
        row = objective.hessian_product(w, basis[n - 1])
        diagonal.append(float(row @ basis[n - 1]))
        roots, vectors = scipy.linalg.eigh_tridiagonal(diagonal, beside)
        roots, shares = np.maximum(roots, 0.0), norm**2 * vectors[0] ** 2
        before, found = found, np.array([shares @ np.log1p(roots), shares @ (roots / (1.0 + roots))])
        for _ in range(2):  # twice is enough
            row -= (basis[:n] @ row) @ basis[:n]
        size = float(np.linalg.norm(row))
        if (np.abs(found - before) <= _ENOUGH * found).all() or size <= 1e-10 * max(abs(diagonal[0]), 1e-300):
            break
        if n < _STEPS:
            beside.append(size)
            basis[n] = row / size
    return float(found[0]), float(found[1])
