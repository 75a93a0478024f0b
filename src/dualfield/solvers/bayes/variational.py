"""The Gaussian that is closest to a posterior: with independent weights for any number of them, or with covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from dualfield.data.arrays import Floats
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.solvers.bayes.gaussian import Gaussian, antithetic
from dualfield.solvers.bayes.lower_bound import lower_bound
from dualfield.solvers.bayes.posterior import Posterior
from dualfield.solvers.bayes.units import Units

_MOST_ITERATIONS, _FALL = 200, 2e-3  # of the gradient in units of the curvature, from that of the start
_FEW = 4  # draws that the fit of independent weights begins with
_FULL_STEPS, _FULL_ENOUGH = 50, 5e-3
_FEWEST, _MOST, _WORTH = 32, 256, 20_000  # draws for all covariances: more where weights are few
_NOT_CONVERGED = (
    "The full covariance did not converge in {} steps: the last one moved a weight by {:.2g} standard deviations. "
    "Use covariance='diagonal', a smaller C, or one temperature by calibrate(X, y, cv=5)."
)


@dataclass(frozen=True, eq=False)
class VariationalFit:
    """A Gaussian, and how it was found.

    Attributes
    ----------
    gaussian : Gaussian
        The distribution.
    elbo, elbo_error : float
        A lower bound on the log-evidence, estimated by draws that the fit has not seen, and its standard error.
    course : array
        The largest entry of the gradient in the course of the fit, or how far the mean moved in standard deviations.
    converged : bool
        Whether it ended at its tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.bayes.posterior import Posterior
    >>> from dualfield.solvers.bayes.variational import fit_diagonal
    >>> fit = fit_diagonal(Posterior(prototypes.objective(temperature=1.0), 1.0), np.zeros(6), 12, 0)
    >>> fit.converged, bool((fit.gaussian.std <= 1.0).all())
    (True, True)
    """

    gaussian: Gaussian
    elbo: float
    elbo_error: float
    course: Floats
    converged: bool


def fit_diagonal(posterior: Posterior, mode: Floats, n_draws: int, seed: int) -> VariationalFit:
    r"""Fit independent weights, w_j = m_j + s_j z_j, by L-BFGS on fixed draws z (Giordano, Ingram, Broderick 2024).

    .. math::
        \min_{m, s} \; \tfrac{1}{S} \sum_k \mathrm{losses}(m + s z_k) + \tfrac{|m|^2 + |s|^2}{2 v} - \sum_j \log s_j

    With the same antithetic draws throughout, this is an ordinary function with an ordinary gradient. Most steps go
    into finding the mean, for which the first four draws are nearly as good as all: at their minimum all draws begin.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    mode : array of shape (d,)
        Where it is largest: the start.
    n_draws : int
        S.
    seed : int
        Of the draws.

    Returns
    -------
    VariationalFit
        The distribution.
    """
    d, v = posterior.size, posterior.variance
    draws = list(antithetic(n_draws, d, seed))[::2]  # their negatives follow from them

    units = Units.at(posterior, mode, seed)

    def bound(x: Floats, n: int) -> tuple[float, Floats]:
        mean, std = mode + units.step(x[:d]), units.scales * np.exp(x[d:])
        value = float(mean @ mean + std @ std) / (2.0 * v) - float(np.log(std).sum())
        by_mean, by_log = mean / v, std**2 / v - 1.0
        for z in draws[: n // 2]:
            step = std * z
            loss, slope, aside = posterior.losses_around(mean, step)
            value += 2.0 / n * loss
            by_mean += 2.0 / n * slope
            by_log += 2.0 / n * (aside * step)
        if n % 2:  # the last one has no counterpart
            step = std * draws[n // 2]
            loss, slope = posterior.losses(mean + step)
            value += loss / n
            by_mean += slope / n
            by_log += slope * step / n
        if not np.isfinite(value):  # too far: the line search comes back
            return 1e300, np.zeros_like(x)
        return value, np.concatenate([units.gradient(by_mean), by_log])

    course: list[float] = []
    few = min(_FEW, n_draws)

    def minimise(start: Floats, n: int, tol: float, see: Any = None) -> Any:
        return scipy.optimize.minimize(
            bound,
            start,
            args=(n,),
            jac=True,
            method="L-BFGS-B",
            callback=see,
            options={"maxiter": _MOST_ITERATIONS, "gtol": tol, "ftol": 0.0, "maxcor": 10},
        )

    with one_blas_thread():
        start = np.zeros(2 * d)
        enough = _FALL * float(np.abs(bound(start, few)[1]).max())
        if few < n_draws:
            start = minimise(start, few, 2.0 * enough).x
        found = minimise(
            start, n_draws, enough, lambda intermediate_result: course.append(float(intermediate_result.fun))
        )
    gaussian = Gaussian(mode + units.step(found.x[:d]), units.scales * np.exp(found.x[d:]))
    bound_and_error = lower_bound(posterior, gaussian, n_draws, seed + 2)
    return VariationalFit(gaussian, *bound_and_error, np.array(course), bool(found.status == 0))


def fit_full(posterior: Posterior, mode: Floats, n_draws: int, seed: int) -> VariationalFit:
    """Fit a mean and all covariances by Newton steps, from the fit of independent weights.

    At the optimum the precision is the mean curvature, and the mean gradient is 0 (Opper and Archambeau 2009). Steps of
    the mean have at most the length of one standard deviation of any weight, and the precision moves half way.

    Parameters
    ----------
    posterior : Posterior
        The posterior, of at most 2,000 weights.
    mode, n_draws, seed
        As in :func:`fit_diagonal`, for the start.

    Returns
    -------
    VariationalFit
        The distribution.

    Raises
    ------
    RuntimeError
        If it does not converge.
    """
    start = fit_diagonal(posterior, mode, n_draws, seed).gaussian
    mean, precision, v = start.mean, np.diag(start.std**-2.0), posterior.variance
    n_full = max(_FEWEST, min(_MOST, _WORTH // max(posterior.size, 1)))
    draws = list(antithetic(n_full, posterior.size, seed + 1))
    course: list[float] = []
    for _ in range(_FULL_STEPS):
        now = Gaussian.of_precision(mean, precision)
        gradient, points = mean / v, np.array([now.at(z) for z in draws])
        for point in points:
            gradient = gradient + posterior.losses(point)[1] / len(draws)
        if not np.isfinite(gradient).all():
            break
        curvature = posterior.curvature(points) + np.eye(posterior.size) / v
        if not np.isfinite(curvature).all():
            break
        step = -scipy.linalg.solve(curvature, gradient, assume_a="pos")
        far = float(np.max(np.abs(step) / now.std))
        mean = mean + 0.7 * min(1.0, 1.0 / far if far > 0.0 else 1.0) * step
        precision = (precision + curvature) / 2.0
        course.append(far)
        if far < _FULL_ENOUGH:
            gaussian = Gaussian.of_precision(mean, precision)
            return VariationalFit(gaussian, *lower_bound(posterior, gaussian, n_full, seed + 2), np.array(course), True)
    raise RuntimeError(_NOT_CONVERGED.format(_FULL_STEPS, course[-1] if course else np.nan))
