"""Flattened power expectation propagation for chains (Qi, Szummer and Minka 2005): the method of the paper.

The numerators of the likelihood, exp(w'phi), are conjugate to a Gaussian; only the partition functions 1 / Z need an
approximation. It is found by power EP with power -1, so that Z itself, not 1 / Z, is averaged over the cavity.
Approximating Z clique by clique in one structure with the weights, instead of as a whole, is what the authors call
flattened.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from dualfield.data.arrays import Floats
from dualfield.solvers.bayes.clique_sites import CliqueSites
from dualfield.solvers.bayes.gaussian import Gaussian
from dualfield.solvers.bayes.posterior import Posterior

_ENOUGH = 1e-4


@dataclass(frozen=True, eq=False)
class PowerEPFit:
    """A Gaussian, and how the sweeps went.

    Attributes
    ----------
    gaussian : Gaussian
        The distribution.
    course : array of shape (n_sweeps,)
        The largest change of a site in each sweep.
    converged : bool
        Whether the last one was below 1e-4.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.bayes.posterior import Posterior
    >>> from dualfield.solvers.bayes.power_ep import fit_power_ep
    >>> fit = fit_power_ep(Posterior(prototypes.objective(temperature=1.0), 1.0), np.zeros(6))
    >>> fit.converged
    True
    """

    gaussian: Gaussian
    course: Floats
    converged: bool


class _PosteriorSites(CliqueSites):
    """The sites of the training examples, and the Gaussian that they make with the prior and the true labels."""

    def __init__(self, posterior: Posterior, mode: Floats) -> None:
        objective = posterior.objective
        super().__init__(objective.score_map, objective.examples.nodes, objective.temperature, mode)
        weights = objective.weights / (posterior.variance / objective.temperature)  # of examples, without C
        self.per_node = np.repeat(weights, np.diff(self.shape.offsets))
        self.per_edge = np.repeat(weights, np.diff(self.edge_offsets))
        # The gradient at weights of zero is what labellings have on average minus what the true ones have.
        even = self.marginals(self.shape, np.zeros_like(self.node_beta), np.zeros_like(self.edge_beta))
        self.truth = self._pulled(*even) - posterior.losses(np.zeros(posterior.size))[1]

    def _pulled(self, node: Floats, edge: Floats) -> Floats:
        """Return the features of rows of marginals, summed with the weights of the examples."""
        total: Floats = np.einsum("t,ta,tad->d", self.per_node, node, self.nodes) + (self.per_edge @ edge) @ self.edges
        return total

    def precision(self, variance: float) -> Floats:
        """Return that of the weights."""
        total = np.eye(self.nodes.shape[2]) / variance
        total += np.einsum("t,tad,tab,tbe->de", self.per_node, self.nodes, self.node_M, self.nodes, optimize=True)
        return np.asarray(total + self.edges.T @ np.einsum("e,eab->ab", self.per_edge, self.edge_M) @ self.edges)

    def shift(self) -> Floats:
        """Return the precision times the mean."""
        return self.truth - self._pulled(self.node_beta, self.edge_beta)


def fit_power_ep(
    posterior: Posterior, mode: Floats, *, damping: float = 0.25, schedule: str = "parallel", max_sweeps: int = 200
) -> PowerEPFit:
    """Fit a Gaussian by flattened power EP, from the curvature at the mode.

    Parameters
    ----------
    posterior : Posterior
        Of chains of order 1, with at most 2,000 weights.
    mode : array of shape (d,)
        Where the posterior is largest.
    damping : float, default=0.25
        The share by which sites move.
    schedule : {"parallel", "serial"}, default="parallel"
        All sites at once, or one sequence after another.
    max_sweeps : int, default=200
        Most sweeps.

    Returns
    -------
    PowerEPFit
        The distribution, which need not have converged.
    """
    sites, n = _PosteriorSites(posterior, mode), posterior.objective.n_examples
    groups = [range(n)] if schedule == "parallel" else [range(i, i + 1) for i in range(n)]
    course: list[float] = []
    with np.errstate(all="ignore"):
        for _ in range(max_sweeps):
            change = 0.0
            for examples in groups:
                covariance = scipy.linalg.inv(sites.precision(posterior.variance), check_finite=False)
                mean = covariance @ sites.shift()
                change = max(change, sites.update(mean, covariance, examples, damping))
            course.append(change)
            if not np.isfinite(change) or change < _ENOUGH:
                break
    precision = sites.precision(posterior.variance)
    if not np.isfinite(precision).all():
        raise RuntimeError(
            "Power EP left the numbers: its sites grew without bound. Use inference='vb', more damping or a smaller C."
        )
    gaussian = Gaussian.of_precision(np.asarray(scipy.linalg.solve(precision, sites.shift())), precision)
    return PowerEPFit(gaussian, np.array(course), bool(course[-1] < _ENOUGH))
