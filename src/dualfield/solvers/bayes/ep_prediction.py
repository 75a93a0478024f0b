"""Predictions of new chains by expectation propagation, with messages of single labels: no draws of weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from dualfield.data import Batch
from dualfield.data.arrays import Floats
from dualfield.solvers.bayes.clique_sites import CliqueSites, potentials
from dualfield.solvers.bayes.gaussian import Gaussian
from dualfield.solvers.convergence import warn_of_convergence
from dualfield.structures import Scores

_DAMPING, _MOST_SWEEPS, _ENOUGH = 0.15, 500, 1e-5  # larger steps leave sites swinging where weights vary much
_PORTION = 2**23  # numbers in the features of the nodes that are worked on together
_NOT_CONVERGED = (
    "Prediction by EP did not converge in {} sweeps: the last one moved a site by {:.2g}. Use prediction='draws'."
)


def predictive_scores(score_map: Any, batch: Batch, gaussian: Gaussian, temperature: float) -> Scores:
    r"""Return scores of new chains whose probabilities are those of an average over a Gaussian of weights.

    .. math::
        p(y \mid x) = \int q(w) \prod_k \exp(w'\varphi_k(y_k)) / Z(w) \, dw

    Each clique and each factor of Z get a Gaussian site with messages of single labels. They cancel, so that q stays
    what it is, and a clique has the score log E exp(w'phi_k) in the cavity q / site.

    Parameters
    ----------
    score_map : LinearScores
        Of a chain of order 1 whose edges have transitions only.
    batch : Batch
        The new chains.
    gaussian : Gaussian
        Of the weights that there are.
    temperature : float
        By which scores are divided.

    Returns
    -------
    Scores
        To be divided by the temperature again.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.bayes.ep_prediction import predictive_scores
    >>> from dualfield.solvers.bayes.gaussian import Gaussian
    >>> objective = prototypes.objective(temperature=1.0)
    >>> gaussian = Gaussian(np.zeros(6), np.ones(6))
    >>> scores = predictive_scores(objective.score_map, objective.examples.nodes, gaussian, 1.0)
    >>> objective.score_map.structure.marginals(scores).node[0]
    array([0.5, 0.5])
    """
    covariance, structure = _covariance(gaussian), score_map.structure
    n = structure.n_labels
    node, edge = np.empty((batch.n_nodes, n)), np.empty((int(structure.edge_offsets(batch.shape)[-1]), n * n))
    node_at, edge_at, changes = 0, 0, [0.0]
    for begin, end in _portions(batch, n * gaussian.mean.size):
        sites = CliqueSites(score_map, batch[np.arange(begin, end)], temperature, gaussian.mean)
        whole = range(end - begin)
        for _ in range(_MOST_SWEEPS):
            change = sites.update(gaussian.mean, covariance, whole, _DAMPING)
            if change < _ENOUGH:
                break
        changes.append(change)
        found = [potentials(*one) for one in sites.cavities(gaussian.mean, covariance, *sites.slices(whole))]
        node[node_at : node_at + len(found[0])], edge[edge_at : edge_at + len(found[1])] = found
        node_at, edge_at = node_at + len(found[0]), edge_at + len(found[1])
    if max(changes) >= _ENOUGH:
        warn_of_convergence(_NOT_CONVERGED.format(_MOST_SWEEPS, max(changes)))
    transition = temperature * edge if len(edge) else None
    return Scores(temperature * node, None, transition, shape=batch.shape)


def _covariance(gaussian: Gaussian) -> Floats:
    """Return the matrix of covariances."""
    if gaussian.root is None:
        return np.diag(gaussian.std**2)
    return np.asarray(scipy.linalg.cho_solve((gaussian.root, True), np.eye(len(gaussian.mean))))


def _portions(batch: Batch, row_size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of chains whose features fit into a portion, or single ones."""
    portion = batch.shape.offsets[:-1] * row_size // _PORTION
    cuts = [0, *(np.flatnonzero(np.diff(portion)) + 1).tolist(), batch.n_examples]
    yield from ((begin, end) for begin, end in itertools.pairwise(cuts) if begin < end)
