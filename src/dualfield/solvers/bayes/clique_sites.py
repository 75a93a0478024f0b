"""Gaussian sites for the cliques of chains: the approximation that power EP and predictions by EP share.

The partition function Z(w) is a sum over labellings of a product over cliques. Each clique k gets a site
exp(b_k'w - w'P_k w / 2) with P_k negative semidefinite, found by matching the moments of a cavity times Z, whose labels
have messages along the chain. Rows of a site are the labels of a node, or the pairs of labels of an edge; all formulas
are in the space of these rows, where P_k = - Phi' M Phi and b_k = Phi' beta.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch
from dualfield.data.arrays import Floats
from dualfield.data.shapes import Shape
from dualfield.structures import Scores


class CliqueSites:
    """The sites of all nodes and edges of some chains: rows of features, and M and beta in their space.

    Parameters
    ----------
    score_map : LinearScores
        Of a chain of order 1 whose edges have transitions only.
    batch : Batch
        The chains.
    temperature : float
        By which scores are divided.
    weights : array of shape (d,)
        Sites begin as the expansion of log Z around these.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.bayes.clique_sites import CliqueSites
    >>> objective = prototypes.objective(temperature=1.0)
    >>> sites = CliqueSites(objective.score_map, objective.examples.nodes, 1.0, np.zeros(6))
    >>> sites.node_beta[0].round(2)
    array([0.5, 0.5])
    """

    def __init__(self, score_map: Any, batch: Batch, temperature: float, weights: Floats) -> None:
        self.structure, self.shape = score_map.structure, batch.shape
        self.places: NDArray[np.int64] = np.flatnonzero(score_map.used)
        n_cliques = self.structure.n_cliques
        self.nodes = _node_rows(score_map, batch, self.places) / temperature  # [n_nodes][K][d]
        pairs = self.places - score_map.shared_begin
        known = np.flatnonzero((pairs >= 0) & (pairs < n_cliques))
        self.edges = np.zeros((n_cliques, self.places.size))
        self.edges[pairs[known], known] = 1.0 / temperature
        self.edge_offsets = self.structure.edge_offsets(self.shape)
        n_edges = int(self.edge_offsets[-1])
        node, edge = self.marginals(self.shape, self.nodes @ weights, np.tile(self.edges @ weights, (n_edges, 1)))
        self.node_M, self.edge_M = _spread(node), _spread(edge)
        self.node_beta = node - np.einsum("tab,tb->ta", self.node_M, self.nodes @ weights)
        self.edge_beta = edge - self.edge_M @ (self.edges @ weights)

    def marginals(self, shape: Shape, node: Floats, edge: Floats) -> tuple[Floats, Floats]:
        """Return those of labels and of pairs, under log-potentials of each node and each edge."""
        n = self.structure.n_labels
        transition = edge.reshape(-1, n, n) if len(edge) else None
        found = self.structure.marginals(Scores(node, None, transition, shape=shape), cliques="each")
        assert found.clique is not None
        return found.node, found.clique.reshape(len(edge), n * n)

    def cavities(
        self, mean: Floats, covariance: Floats, rows: slice, edges: slice
    ) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return means and covariances of the scores of nodes and of edges, each in the cavity of its own site."""
        phi, n = self.nodes[rows], edges.stop - edges.start
        G = np.einsum("tad,de,tbe->tab", phi, covariance, phi, optimize=True)
        node = _cavity(G, phi @ mean, self.node_M[rows], self.node_beta[rows])
        G = np.tile(self.edges @ covariance @ self.edges.T, (n, 1, 1))
        edge = _cavity(G, np.tile(self.edges @ mean, (n, 1)), self.edge_M[edges], self.edge_beta[edges])
        return node, edge

    def update(self, mean: Floats, covariance: Floats, examples: range, damping: float) -> float:
        """Move the sites of some examples towards what their cavities say; return the largest change."""
        rows, edges = self.slices(examples)
        node, edge = self.cavities(mean, covariance, rows, edges)
        shape = self.shape.take(np.arange(examples.start, examples.stop))
        r_node, r_edge = self.marginals(shape, potentials(*node), potentials(*edge))
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

    def slices(self, examples: range) -> tuple[slice, slice]:
        """Return the nodes and the edges of some examples."""
        node, edge = self.shape.offsets, self.edge_offsets
        return (
            slice(int(node[examples.start]), int(node[examples.stop])),
            slice(int(edge[examples.start]), int(edge[examples.stop])),
        )


def potentials(mean: Floats, covariance: Floats) -> Floats:
    """Return the logarithms of the means of exp(score), for scores that are Gaussian.

    Parameters
    ----------
    mean : array of shape (n, k)
        Of the scores of each clique.
    covariance : array of shape (n, k, k)
        Theirs.

    Returns
    -------
    array of shape (n, k)
        The mean, and half the variance.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.bayes.clique_sites import potentials
    >>> potentials(np.zeros((1, 2)), np.eye(2)[None])
    array([[0.5, 0.5]])
    """
    return np.asarray(mean + 0.5 * np.einsum("taa->ta", covariance))


def _node_rows(score_map: Any, batch: Batch, places: NDArray[np.int64]) -> Floats:
    """Return the features of each label of each node."""
    # Scores are linear: those of the unit vectors are the features.
    rows = np.empty((batch.n_nodes, score_map.structure.n_labels, places.size))
    for at, place in enumerate(places.tolist()):
        unit = np.zeros(score_map.n_parameters)
        unit[place] = 1.0
        rows[:, :, at] = score_map.scores(unit, batch).node
    return rows


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
