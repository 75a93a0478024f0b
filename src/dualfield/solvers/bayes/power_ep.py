"""Flattened power expectation propagation for chains (Qi, Szummer and Minka 2005): the method of the paper.

The numerators of the likelihood, exp(w'phi), are conjugate to a Gaussian; only the partition functions 1 / Z need an
approximation. Z is a sum over labellings of a product over cliques. Each clique k of each sequence gets a site
exp(b_k'w - w'P_k w / 2) with P_k negative semidefinite, found by power EP with power -1, so that Z itself, not 1 / Z,
is averaged over the cavity. Approximating Z clique by clique in one structure with the weights, instead of as a whole,
is what the authors call flattened. Rows of a site are the labels of a node, or the pairs of labels of an edge; all
formulas are in the space of these rows, where P_k = - Phi' M Phi and b_k = Phi' beta.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from dualfield.data.arrays import Floats
from dualfield.data.shapes import Shape
from dualfield.solvers.bayes.gaussian import Gaussian
from dualfield.solvers.bayes.posterior import Posterior
from dualfield.structures import Scores

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


class _Sites:
    """The sites of all nodes and edges: rows of features, and M and beta in their space."""

    def __init__(self, posterior: Posterior, mode: Floats) -> None:
        objective = posterior.objective
        score_map, given = objective.score_map, objective.examples
        self.structure, self.shape = score_map.structure, given.nodes.shape
        self.n_labels, self.temperature = self.structure.n_labels, objective.temperature
        self.nodes = _node_rows(posterior)  # [n_nodes][K][d]
        place = np.full(objective.n_parameters, -1)
        place[posterior.places] = np.arange(posterior.size)
        self.pairs = place[score_map.shared_begin : score_map.shared_begin + self.structure.n_cliques]  # -1: no weight
        known = np.flatnonzero(self.pairs >= 0)
        self.edges = np.zeros((self.structure.n_cliques, posterior.size))
        self.edges[known, self.pairs[known]] = 1.0 / self.temperature
        offsets = self.shape.offsets
        self.weights = objective.weights / (posterior.variance / self.temperature)  # of examples, without C
        self.edge_of = np.concatenate([np.arange(a + 1, b) for a, b in itertools.pairwise(offsets)])
        self.edge_offsets = self.structure.edge_offsets(self.shape)
        node, edge = self._marginals(self.nodes @ mode, np.tile(self.edges @ mode, (len(self.edge_of), 1)))
        self.node_M, self.edge_M = _spread(node), _spread(edge)
        self.node_beta = node - np.einsum("tab,tb->ta", self.node_M, self.nodes @ mode)
        self.edge_beta = edge - self.edge_M @ (self.edges @ mode)
        self.truth = -posterior.losses(np.zeros(posterior.size))[1] + self._expected_at_zero()

    def _expected_at_zero(self) -> Floats:
        """Return the expected features of all labellings at weights of zero, so that those of the truth are known."""
        n_cliques = self.structure.n_cliques
        node, edge = self._marginals(
            np.zeros((self.shape.n_nodes, self.n_labels)), np.zeros((len(self.edge_of), n_cliques))
        )
        return self._pulled(node, edge)

    def _pulled(self, node: Floats, edge: Floats) -> Floats:
        """Return the features of rows of marginals, summed with the weights of the examples."""
        per_node = np.repeat(self.weights, np.diff(self.shape.offsets))
        per_edge = np.repeat(self.weights, np.diff(self.edge_offsets))
        total: Floats = np.einsum("t,ta,tad->d", per_node, node, self.nodes) + (per_edge @ edge) @ self.edges
        return total

    def _marginals(self, node: Floats, edge: Floats) -> tuple[Floats, Floats]:
        """Return those of labels and of pairs, under log-potentials of each node and each edge."""
        return self._marginals_of(self.shape, node, edge)

    def _marginals_of(self, shape: Shape, node: Floats, edge: Floats) -> tuple[Floats, Floats]:
        n = self.n_labels
        transition = edge.reshape(-1, n, n) if len(edge) else None
        found = self.structure.marginals(Scores(node, None, transition, shape=shape), cliques="each")
        assert found.clique is not None
        return found.node, found.clique.reshape(len(edge), n * n)

    def precision(self, variance: float) -> Floats:
        """Return that of the weights."""
        per_node = np.repeat(self.weights, np.diff(self.shape.offsets))
        per_edge = np.repeat(self.weights, np.diff(self.edge_offsets))
        total = np.eye(self.nodes.shape[2]) / variance
        total += np.einsum("t,tad,tab,tbe->de", per_node, self.nodes, self.node_M, self.nodes, optimize=True)
        return np.asarray(total + self.edges.T @ np.einsum("e,eab->ab", per_edge, self.edge_M) @ self.edges)

    def shift(self) -> Floats:
        """Return the precision times the mean."""
        return self.truth - self._pulled(self.node_beta, self.edge_beta)

    def update(self, mean: Floats, covariance: Floats, examples: range, damping: float) -> float:
        """Move the sites of some examples towards what their cavities say; return the largest change."""
        rows = slice(int(self.shape.offsets[examples.start]), int(self.shape.offsets[examples.stop]))
        edges = slice(int(self.edge_offsets[examples.start]), int(self.edge_offsets[examples.stop]))
        phi = self.nodes[rows]
        node_G = np.einsum("tad,de,tbe->tab", phi, covariance, phi, optimize=True)
        edge_G = self.edges @ covariance @ self.edges.T
        node = _cavity(node_G, phi @ mean, self.node_M[rows], self.node_beta[rows])
        n = edges.stop - edges.start
        edge = _cavity(
            np.tile(edge_G, (n, 1, 1)), np.tile(self.edges @ mean, (n, 1)), self.edge_M[edges], self.edge_beta[edges]
        )
        potentials = [m + 0.5 * np.einsum("taa->ta", G) for m, G in (node, edge)]
        shape = self.shape.take(np.arange(examples.start, examples.stop))
        r_node, r_edge = self._marginals_of(shape, *potentials)
        change = 0.0
        for r, (m, G), own_M, own_beta in (
            (r_node, node, self.node_M[rows], self.node_beta[rows]),
            (r_edge, edge, self.edge_M[edges], self.edge_beta[edges]),
        ):
            if not len(r):
                continue
            spread = _spread(r)
            new_M = spread @ np.linalg.inv(np.eye(r.shape[1]) + G @ spread)
            new_M = (new_M + new_M.transpose(0, 2, 1)) / 2.0
            new_beta = r - np.einsum("tab,tb->ta", new_M, m + np.einsum("tab,tb->ta", G, r))
            change = max(change, float(np.abs(new_beta - own_beta).max()))
            own_M += damping * (new_M - own_M)
            own_beta += damping * (new_beta - own_beta)
        return change


def _node_rows(posterior: Posterior) -> Floats:
    """Return the features of each label of each node, divided by the temperature."""
    objective = posterior.objective
    score_map, batch = objective.score_map, objective.examples.nodes
    # Scores are linear: those of the unit vectors are the features.
    rows = np.empty((batch.n_nodes, score_map.structure.n_labels, posterior.size))
    for at in range(posterior.size):
        unit = np.zeros(posterior.size)
        unit[at] = 1.0
        rows[:, :, at] = score_map.scores(posterior.whole(unit).copy(), batch).node
    return rows / objective.temperature


def _spread(p: Floats) -> Floats:
    """Return the covariance of one label of each row of probabilities."""
    return np.asarray(np.einsum("ta,ab->tab", p, np.eye(p.shape[1])) - np.einsum("ta,tb->tab", p, p))


def _cavity(G: Floats, mean: Floats, M: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Return means and covariances of the scores of rows in the cavity.

    The posterior has 1 / Z, so that taking Z out of it adds to the precision once more: the cavity is always proper.
    """
    left = np.linalg.inv(np.eye(G.shape[1]) + G @ M)
    without = left @ G
    return np.einsum("tab,tb->ta", left, mean) - np.einsum("tab,tb->ta", without, beta), without


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
    sites, n = _Sites(posterior, mode), posterior.objective.n_examples
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
