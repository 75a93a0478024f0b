"""Draws from a posterior by Hamiltonian Monte Carlo: the reference for few weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
import scipy.linalg

from dualfield.data.arrays import Floats
from dualfield.solvers.bayes.posterior import Posterior

_CHAINS, _BURN, _LEAPS, _WANTED = 4, 200, 12, 0.8


@dataclass(frozen=True, eq=False)
class HamiltonianDraws:
    """Draws of weights, and how far they can be trusted.

    Attributes
    ----------
    draws : array of shape (n_draws, d)
        Those that are kept.
    mean, std : array of shape (d,)
        Of all steps of all chains after they have burnt in.
    r_hat : float
        The largest potential scale reduction of a weight; close to 1 where chains agree.
    acceptance : float
        Share of proposals that were accepted.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.bayes.hamiltonian import HamiltonianDraws
    >>> HamiltonianDraws(np.zeros((4, 2)), np.zeros(2), np.ones(2), r_hat=1.0, acceptance=0.8).draws.shape
    (4, 2)
    """

    draws: Floats
    mean: Floats
    std: Floats
    _: KW_ONLY
    r_hat: float
    acceptance: float


def potential_scale_reduction(chains: Floats) -> float:
    """Return the largest R-hat of a weight (Gelman and Rubin 1992), of chains that are split in the middle.

    Parameters
    ----------
    chains : array of shape (n_chains, n_draws, d)
        Draws.

    Returns
    -------
    float
        1 where all halves have the same mean.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.bayes.hamiltonian import potential_scale_reduction
    >>> bool(potential_scale_reduction(np.random.default_rng(0).normal(size=(4, 500, 3))) < 1.01)
    True
    """
    half = chains.shape[1] // 2
    halves = np.concatenate([chains[:, :half], chains[:, half : 2 * half]])
    within, between = halves.var(axis=1, ddof=1).mean(axis=0), halves.mean(axis=1).var(axis=0, ddof=1)
    return float(np.sqrt((half - 1.0) / half + (between / np.maximum(within, 1e-300))).max())


def draw_hamiltonian(posterior: Posterior, mode: Floats, n_draws: int, seed: int) -> HamiltonianDraws:
    """Draw from a posterior with four chains, in coordinates in which the curvature at the mode is the identity.

    Each draw follows twelve leapfrog steps, whose length is set while the chains burn in.

    Parameters
    ----------
    posterior : Posterior
        The posterior, of at most 2,000 weights.
    mode : array of shape (d,)
        Where it is largest.
    n_draws : int
        Draws of all chains together; each keeps one of several.
    seed : int
        Seed.

    Returns
    -------
    HamiltonianDraws
        Draws and diagnostics.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.bayes.hamiltonian import draw_hamiltonian
    >>> from dualfield.solvers.bayes.posterior import Posterior
    >>> posterior = Posterior(prototypes.objective(temperature=1.0), 1.0)
    >>> draw_hamiltonian(posterior, np.zeros(6), 40, seed=0).draws.shape
    (40, 6)
    """
    precision = posterior.curvature(mode) + np.eye(posterior.size) / posterior.variance
    root = scipy.linalg.cholesky(precision, lower=True)

    def potential(u: Floats) -> tuple[float, Floats]:
        value, gradient = posterior.potential(mode + scipy.linalg.solve_triangular(root, u, lower=True, trans="T"))
        if not np.isfinite(value):
            return np.inf, np.zeros_like(u)
        return value, scipy.linalg.solve_triangular(root, gradient, lower=True)

    per_chain = -(-n_draws // _CHAINS)
    n_steps = max(per_chain, 300)
    kept, accepted = [], []
    for chain in range(_CHAINS):
        walk, share = _chain(potential, posterior.size, n_steps, np.random.default_rng([seed, chain]))
        kept.append(walk)
        accepted.append(share)
    r_hat = potential_scale_reduction(np.array(kept))
    chosen = np.linspace(0, n_steps - 1, per_chain).round().astype(int)

    def weights(u: Floats) -> Floats:
        return np.asarray(mode + scipy.linalg.solve_triangular(root, u.T, lower=True, trans="T").T)

    draws = weights(np.concatenate([walk[chosen] for walk in kept])[:n_draws])
    every = weights(np.concatenate(kept))
    mean, std = every.mean(axis=0), every.std(axis=0, ddof=1)
    return HamiltonianDraws(draws, mean, std, r_hat=r_hat, acceptance=float(np.mean(accepted)))


def _chain(potential: object, size: int, n_steps: int, rng: np.random.Generator) -> tuple[Floats, float]:
    """Return the places of one chain after it has burnt in, and its share of accepted proposals."""
    u = rng.standard_normal(size)
    energy, slope = potential(u)  # type: ignore[operator]
    length, places, n_accepted = 0.3 * size**-0.25, [], 0
    for at in range(_BURN + n_steps):
        momentum = rng.standard_normal(size)
        before = energy + 0.5 * float(momentum @ momentum)
        place, pull, eps = u, slope, length * rng.uniform(0.8, 1.2)
        momentum = momentum - 0.5 * eps * pull
        for leap in range(_LEAPS):
            place = place + eps * momentum
            there, pull = potential(place)  # type: ignore[operator]
            momentum = momentum - (eps if leap + 1 < _LEAPS else 0.5 * eps) * pull
        after = there + 0.5 * float(momentum @ momentum)
        is_accepted = bool(np.isfinite(after)) and np.log(rng.random()) < before - after
        if is_accepted:
            u, energy, slope = place, there, pull
        if at < _BURN:
            length *= np.exp((float(is_accepted) - _WANTED) / np.sqrt(10.0 + at))
        else:
            places.append(u)
            n_accepted += is_accepted
    return np.array(places), n_accepted / n_steps
