"""Units in which a posterior is about equally wide in all directions: for methods that go along its gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.objectives import Objective
from dualfield.solvers.bayes.posterior import Posterior

__all__ = ["Units"]

_TOGETHER, _EXAMPLES = 1000, 200  # weights whose curvature is one matrix, and examples that it is taken from


@dataclass(frozen=True, eq=False)
class Units:
    """A linear map from coordinates to steps of the weights, after which the curvature at the mode is about 1.

    The weights that are known best, those of frequent features, transitions and labels, depend on each other: together
    they can move a hundred times as far as each of them alone. They have a matrix; all others a length each.

    Attributes
    ----------
    scales : array of shape (d,)
        About the standard deviation of each weight, given all others.
    places : int array of shape (b,)
        Weights that have a matrix.
    root : array of shape (b, b)
        The lower Cholesky factor of their precision.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.bayes.posterior import Posterior
    >>> from dualfield.solvers.bayes.units import Units
    >>> posterior = Posterior(prototypes.objective(temperature=1.0), 1.0)
    >>> units = Units.at(posterior, np.zeros(6), 0)
    >>> x, step = np.eye(6)[0], units.step(np.eye(6)[0])
    >>> bool(np.isclose(step @ posterior.curvature(np.zeros(6)) @ step + step @ step, 1.0))
    True
    """

    scales: Floats
    places: NDArray[np.int64]
    root: Floats

    @classmethod
    def at(cls, posterior: Posterior, mode: Floats, seed: int) -> Units:
        """Measure the curvature at the mode.

        Parameters
        ----------
        posterior : Posterior
            The posterior.
        mode : array of shape (d,)
            Where it is largest.
        seed : int
            Of random signs and of the choice of examples, where weights are many.

        Returns
        -------
        Units
            The map.
        """
        prior = 1.0 / posterior.variance
        if posterior.is_small:
            precision = posterior.curvature(mode)
            precision.flat[:: posterior.size + 1] += prior
            diagonal, places = np.diag(precision).copy(), np.arange(posterior.size)
        else:
            # Estimates of the diagonal are off by random terms, and where they are near 0 steps would be much too long.
            # The norm of a row, found with them, is a sum of squares.
            found, norms = posterior.probe(mode, seed)
            diagonal = prior + np.maximum(found, norms / 4.0)
            places = np.sort(np.argsort(-diagonal, kind="stable")[:_TOGETHER])
            some = _some_examples(posterior.objective, seed)
            precision = some.hessian(posterior.whole(mode), posterior.places[places]) / posterior.variance
            # Features that the examples nearly lack are known better than they say.
            own = precision.flat[:: places.size + 1]
            precision.flat[:: places.size + 1] = np.maximum(own + prior, diagonal[places] / 4.0)
        return cls(diagonal**-0.5, places, scipy.linalg.cholesky(precision, lower=True))

    def step(self, x: Floats) -> Floats:
        """Return the step of the weights for coordinates.

        Parameters
        ----------
        x : array of shape (d,)
            Coordinates.

        Returns
        -------
        array of shape (d,)
            The step.
        """
        step = self.scales * x
        step[self.places] = scipy.linalg.solve_triangular(self.root, x[self.places], lower=True, trans="T")
        return step

    def gradient(self, slope: Floats) -> Floats:
        """Return the gradient by the coordinates from that by the weights.

        Parameters
        ----------
        slope : array of shape (d,)
            The gradient by the weights.

        Returns
        -------
        array of shape (d,)
            That by the coordinates.
        """
        moved = self.scales * slope
        moved[self.places] = scipy.linalg.solve_triangular(self.root, slope[self.places], lower=True)
        return moved


def _some_examples(objective: Objective, seed: int) -> Objective:
    """Return the objective of some of the examples, which weigh as much as all."""
    given, n = objective.examples, objective.n_examples
    chosen = np.sort(np.random.default_rng(seed).choice(n, min(n, _EXAMPLES), replace=False))
    some = given.take(chosen)
    share = float(given.weights.sum()) / max(float(some.weights.sum()), np.finfo(float).tiny)
    return Objective(
        objective.score_map,
        replace(some, weights=share * some.weights),
        objective.loss,
        objective.regulariser,
        objective.n_threads,
    )
