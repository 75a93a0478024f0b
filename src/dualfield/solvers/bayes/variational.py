"""The Gaussian that is closest to a posterior: with independent weights for any number of them, or with covariances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize

from dualfield.data.arrays import Floats
from dualfield.solvers.bayes.gaussian import Gaussian, antithetic
from dualfield.solvers.bayes.lower_bound import lower_bound
from dualfield.solvers.bayes.posterior import Posterior

_MOST_ITERATIONS, _FALL = 200, 1e-3  # of the gradient, from that of the start
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

    With the same antithetic draws throughout, this is an ordinary function with an ordinary gradient.

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

    # In units of the curvature at the mode all directions are alike, and L-BFGS needs fewer steps.
    unit = (1.0 / v + posterior.curvature_diagonal(mode, seed)) ** -0.5

    def bound(theta: Floats) -> tuple[float, Floats]:
        mean, std = mode + unit * theta[:d], unit * np.exp(theta[d:])
        value = float(mean @ mean + std @ std) / (2.0 * v) - float(np.log(std).sum())
        gradient = np.concatenate([mean / v, std**2 / v - 1.0])
        for at in range(n_draws):
            z = draws[at // 2] if at % 2 == 0 else -draws[at // 2]
            loss, slope = posterior.losses(mean + std * z)
            value += loss / n_draws
            gradient[:d] += slope / n_draws
            gradient[d:] += slope * z * std / n_draws
        if not np.isfinite(value):  # too far: the line search comes back
            return 1e300, np.zeros_like(theta)
        gradient[:d] *= unit
        return value, gradient

    course: list[float] = []
    first = float(np.abs(bound(np.zeros(2 * d))[1]).max())
    found = scipy.optimize.minimize(
        bound,
        np.zeros(2 * d),
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: course.append(float(intermediate_result.fun)),
        options={"maxiter": _MOST_ITERATIONS, "gtol": _FALL * first, "ftol": 0.0, "maxcor": 10},
    )
    mean, std = mode + unit * found.x[:d], unit * np.exp(found.x[d:])
    gaussian = Gaussian(mean, std)
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
