"""How good a Gaussian is as an approximation of a posterior: a lower bound of the evidence."""

from __future__ import annotations

import numpy as np

from dualfield.solvers.bayes.gaussian import Gaussian
from dualfield.solvers.bayes.posterior import Posterior

__all__ = ["lower_bound"]


def lower_bound(posterior: Posterior, gaussian: Gaussian, n_draws: int, seed: int) -> tuple[float, float]:
    r"""Estimate the lower bound of the log-evidence that a Gaussian q gives, with the standard error of the estimate.

    .. math::
        \log p(y \mid X) \ge E_q[\log p(y \mid X, w)] - KL(q \,\|\, N(0, v I)), \qquad
        KL = \tfrac12 \left( \frac{|m|^2 + \mathrm{tr} \Sigma}{v} - d + d \log v - \log |\Sigma| \right)

    The divergence is exact. The expectation is a mean over antithetic pairs of draws, which the error is computed from.
    They must not be those that the Gaussian was fitted to: for these it is too good.

    Parameters
    ----------
    posterior : Posterior
        The posterior.
    gaussian : Gaussian
        Over the same weights.
    n_draws : int
        How many draws; at least two pairs are made.
    seed : int
        Of the draws.

    Returns
    -------
    (float, float)
        The bound and its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.bayes.gaussian import Gaussian
    >>> from dualfield.solvers.bayes.lower_bound import lower_bound
    >>> from dualfield.solvers.bayes.posterior import Posterior
    >>> posterior = Posterior(prototypes.objective(temperature=1.0), 1.0)
    >>> bound, error = lower_bound(posterior, Gaussian(np.zeros(6), np.full(6, 0.8)), 100, 0)
    >>> -1.6 < bound < -1.0, error < 0.05
    (True, True)
    """
    mean, d, v = gaussian.mean, len(gaussian.mean), posterior.variance
    logs = np.array([-posterior.losses(w)[0] for w in gaussian.draws(2 * max(2, n_draws // 2), seed)])
    pairs = logs.reshape(-1, 2).mean(axis=1)
    spread = float(mean @ mean + gaussian.std @ gaussian.std) / v
    divergence = (spread - d + d * np.log(v) - gaussian.log_determinant) / 2.0
    return float(pairs.mean() - divergence), float(pairs.std(ddof=1) / np.sqrt(len(pairs)))
