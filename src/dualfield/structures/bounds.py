"""Labellings with a bound on what a better one could score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Codes, Floats

__all__ = ["BestPoints", "BoundedLabels", "Bounds"]

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Bounds:
    """How good the labellings of some examples are.

    Parameters
    ----------
    score : array of shape (n_examples,)
        The score of each labelling.
    bound : array of shape (n_examples,)
        No labelling of the example has a higher score.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import Bounds
    >>> Bounds(score=np.array([1.0, 3.0]), bound=np.array([1.5, 3.0])).exact
    array([False,  True])
    """

    score: Floats
    bound: Floats

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether score and bound meet, rounding apart: then no labelling is better."""
        return np.asarray(self.bound - self.score <= _ROUNDING * (1.0 + np.abs(self.bound)))


@dataclass(frozen=True, eq=False)
class BoundedLabels:
    """The best labellings that were found.

    Parameters
    ----------
    labels : int array of shape (n_nodes,)
        Label codes.
    bounds : Bounds
        Their scores, and what a better one could have.

    Examples
    --------
    >>> from dualfield.structures import Single
    >>> found = Single(2).bounded_argmax([[0.0, 1.0]])
    >>> found.labels, found.bounds.exact
    (array([1], dtype=int32), array([ True]))
    """

    labels: Codes
    bounds: Bounds


@dataclass(frozen=True, eq=False)
class BestPoints:
    """A point for each example with the highest score: of the marginal polytope, or of a larger one that relaxes it.

    Parameters
    ----------
    node : array of shape (n_nodes, n_labels)
        Shares of the labels of each node: 0 and 1 for a labelling.
    edge : array of shape (n_edges, edge_width)
        Shares of the own parts of each edge; no rows where edges have no scores of their own.
    shared : array of shape (n_examples, n_shared)
        How often shared parts occur.
    bound : array of shape (n_examples,)
        The highest scores, or bounds above them.
    slack : array of shape (n_examples,)
        By how much the points score less; 0 for exact answers.

    Examples
    --------
    >>> from dualfield.structures import Chain, Scores
    >>> found = Chain(2).best_point(Scores([[1.0, 0.0], [0.0, 0.5]]))
    >>> found.bound, found.shared
    (array([1.5]), array([[0., 1., 0., 0.]]))
    """

    node: Floats
    edge: Floats
    shared: Floats
    bound: Floats
    slack: Floats

    @property
    def are_labellings(self) -> bool:
        """Whether all of them are best labellings, rounding apart."""
        whole = ((self.node == 0.0) | (self.node == 1.0)).all()
        return bool(whole and Bounds(self.bound - self.slack, self.bound).exact.all())
