"""The posterior distribution of weights: a penalised log-loss read as minus its logarithm."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.objectives import Objective
from dualfield.objectives.log_determinant import FEW_WEIGHTS

_PROBES = 8


class Posterior:
    r"""p(w | data), proportional to N(w; 0, v I) p(y | X, w), for the weights that there are.

    An objective ½|w|² + C Σ losses with log-losses at temperature T is v = C T times its negative logarithm.

    Parameters
    ----------
    objective : Objective
        Log-losses without cost, half the squared norm as penalty.
    C : float
        The factor in the weights of its losses.

    Attributes
    ----------
    variance : float
        v, of each weight in advance.
    places : int array of shape (d,)
        Where the weights are in the vector of parameters; all methods take and return vectors of shape (d,).

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.bayes.posterior import Posterior
    >>> posterior = Posterior(prototypes.objective(temperature=1.0), 1.0)
    >>> value, gradient = posterior.potential(np.zeros(posterior.size))
    >>> round(value, 4), gradient.shape
    (0.6931, (6,))
    """

    def __init__(self, objective: Objective, C: float) -> None:
        self.objective = objective
        self.variance = float(C) * objective.temperature
        self.places: NDArray[np.int64] = np.flatnonzero(objective.score_map.used)

    @property
    def size(self) -> int:
        """Number of weights."""
        return int(self.places.size)

    @property
    def is_small(self) -> bool:
        """Whether a matrix of weights by weights is small enough to be factorised."""
        return self.size <= FEW_WEIGHTS

    @cached_property
    def _whole(self) -> Floats:
        return np.zeros(self.objective.n_parameters)

    def whole(self, x: Floats) -> Floats:
        """Return a vector of parameters with these weights; it is overwritten by the next call."""
        self._whole[self.places] = x
        return self._whole

    def losses(self, x: Floats) -> tuple[float, Floats]:
        """Return minus the log-likelihood, and its gradient."""
        value, gradient = self.objective.loss_and_gradient(self.whole(x))
        return value / self.variance, gradient[self.places] / self.variance

    def losses_around(self, x: Floats, step: Floats) -> tuple[float, Floats, Floats]:
        """Return means over x + step and x - step: of the losses, of gradients, and of gradients with that sign."""
        middle = self.whole(x).copy()
        aside = self.whole(step)
        value, gradient = self.objective.loss_and_gradient(middle + aside)
        other_value, other = self.objective.loss_and_gradient(middle - aside)
        factor = 0.5 / self.variance
        mean, difference = (gradient + other)[self.places], (gradient - other)[self.places]
        return factor * (value + other_value), factor * mean, factor * difference

    def potential(self, x: Floats) -> tuple[float, Floats]:
        """Return minus the log-posterior, up to a constant, and its gradient."""
        value, gradient = self.losses(x)
        return value + float(x @ x) / (2.0 * self.variance), gradient + x / self.variance

    def curvature(self, x: Floats) -> Floats:
        """Return the second derivatives of minus the log-likelihood, shape (d, d); of several points their mean."""
        points = np.zeros((*x.shape[:-1], self.objective.n_parameters))
        points[..., self.places] = x
        return self.objective.hessian(points, self.places) / self.variance

    def curvature_diagonal(self, x: Floats, seed: int = 0) -> Floats:
        """Return their diagonal: exactly for few weights, else by random signs, and at least 0."""
        if self.is_small:
            return np.diag(self.curvature(x)).copy()
        return np.maximum(self.probe(x, seed)[0], 0.0)

    def probe(self, x: Floats, seed: int) -> tuple[Floats, Floats]:
        """Return estimates of the diagonal and of the norms of rows, from products with random signs."""
        rng, point, signs = np.random.default_rng(seed), self.whole(x).copy(), np.zeros(self.objective.n_parameters)
        diagonal, squares = np.zeros(self.size), np.zeros(self.size)
        for _ in range(_PROBES):
            signs[self.places] = rng.choice([-1.0, 1.0], self.size)
            row = self.objective.hessian_product(point, signs)[self.places]
            diagonal += signs[self.places] * row / _PROBES
            squares += row**2 / _PROBES
        return diagonal / self.variance, np.sqrt(squares) / self.variance
