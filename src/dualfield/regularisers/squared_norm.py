"""Half the squared norm: the regulariser of most models."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.regularisers.base import PlaneRegulariser, Response
from dualfield.regularisers.elastic_net import best_share
from dualfield.regularisers.interior import Interior, RowProducts, room

__all__ = ["SquaredNorm"]


class SquaredNorm(PlaneRegulariser):
    r"""Half the squared norm, with or without weights that must not be negative: the regulariser of most models.

    .. math::
        R(w) = \tfrac{1}{2} \|w\|^2, \quad w_J \ge 0, \qquad
        R^*(v) = \tfrac{1}{2} \|w(v)\|^2, \quad w(v) = v, \; w_J(v) = \max(v_J, 0)

    It is smooth: no anchor is needed, and none is taken.

    Parameters
    ----------
    n_parameters : int
        Length of w.
    positive : bool array of shape (n_parameters,), default=None
        J of the formula; None: no weight.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.regularisers import SquaredNorm
    >>> SquaredNorm(2, np.array([True, False])).respond(np.array([1.0, 1.0])).w
    array([ 0., -1.])
    """

    needs_anchor = False
    resolution = 0.0
    l1_ratio: float = 0.0

    def __init__(self, n_parameters: int, positive: NDArray[np.bool_] | None = None) -> None:
        self.n_parameters, self.positive = n_parameters, positive

    def origin(self) -> Floats:
        """Return zeros.

        Returns
        -------
        array of shape (n_parameters,)
            The minimiser of R.

        Examples
        --------
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(1).origin()
        array([0.])
        """
        return np.zeros(self.n_parameters)

    def nearest(self, w: Floats) -> Floats:
        """Return the parameters with negative ones cut off at 0 where they must not be negative.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        array of shape (n_parameters,)
            Allowed parameters.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(1, np.array([True])).nearest(np.array([-3.0]))
        array([0.])
        """
        return w.copy() if self.positive is None else np.where(self.positive, np.maximum(w, 0.0), w)

    def value(self, w: Floats) -> float:
        """Return half the squared norm.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        float
            R(w).

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(1).value(np.array([2.0]))
        2.0
        """
        return 0.5 * float(w @ w)

    def conjugate(self, v: Floats) -> float:
        """Return half the squared norm of what is left where negative entries are cut off.

        Parameters
        ----------
        v : array of shape (n_parameters,)
            The negative of a slope.

        Returns
        -------
        float
            R*(v).

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(2, np.array([True, False])).conjugate(np.array([-2.0, -2.0]))
        2.0
        """
        return self.value(self.nearest(v))

    def excess(self, w: Floats, v: Floats) -> float:
        """Return R(w) + R*(v) - ⟨w, v⟩ without differences of large numbers, which are rounding near the minimum.

        Parameters
        ----------
        w, v : array of shape (n_parameters,)
            Allowed parameters, and the negative of a slope.

        Returns
        -------
        float
            Half the squared distance of w from what answers the slope, and what signs keep apart.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(1).excess(np.array([3.0]), np.array([1.0]))
        2.0
        """
        answer = self.nearest(v)
        apart = 0.0 if self.positive is None else float(w @ (answer - v))
        return self.value(w - answer) + apart

    def share(self, entropy: float, v: Floats) -> float:
        """Return the s in [0, 1] that makes s E - R*(s v) largest.

        Parameters
        ----------
        entropy : float
            E.
        v : array of shape (n_parameters,)
            The negative of a slope.

        Returns
        -------
        float
            1 near the minimum.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(1).share(1.0, np.array([2.0]))
        0.25
        """
        return best_share(entropy, np.abs(self.nearest(v)), 0.0)

    def respond(self, slope: Floats, anchor: Floats | None = None, pull: float = 0.0) -> Response:
        """Return the minimiser of R(w) + ⟨slope, w⟩.

        Parameters
        ----------
        slope : array of shape (n_parameters,)
            μ of the formula.
        anchor : None
            Not used.
        pull : float
            Not used.

        Returns
        -------
        Response
            The minimiser and the minimum.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(1).respond(np.array([2.0])).w
        array([-2.])
        """
        w = self.nearest(-slope)
        return Response(w, -self.value(w))

    def interior(
        self, rows: scipy.sparse.csr_array, near: Floats | None = None, anchor: Floats | None = None, pull: float = 0.0
    ) -> Interior:
        """Return parameters inside the domain.

        Parameters
        ----------
        rows : scipy.sparse.csr_array of shape (m, n_parameters)
            Slopes of the planes that are asked about.
        near : array of shape (n_parameters,), default=None
            Where to begin; None: at the origin.
        anchor : None
            Not used.
        pull : float
            Not used.

        Returns
        -------
        Interior
            With multipliers for the weights that must not be negative.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(2, np.array([True, False])).interior(scipy.sparse.csr_array([[1.0, 2.0]])).n_pairs
        1
        """
        w = self.origin() if near is None else near.copy()
        if self.positive is None:
            return _InsideNorm(w, np.zeros(0, dtype=np.int64), rows)
        signed = np.flatnonzero(self.positive)
        w[signed] = np.maximum(w[signed], 1e-2 * max(float(np.abs(w).max()), 1e-2))
        return _InsideNorm(w, signed, rows)


class _InsideNorm:
    """Newton's equations of w + μ = z with z the multipliers of the weights that must not be negative."""

    def __init__(self, w: Floats, signed: NDArray[np.int64], rows: scipy.sparse.csr_array) -> None:
        self.w, self.n_pairs = w, len(signed)
        self._signed, self._rows = signed, rows
        self._products: RowProducts | None = None  # where they are asked for
        self._multiplier = np.full(len(signed), max(float(np.abs(w).max()), 1e-2))

    @property
    def complementarity(self) -> float:
        return float(self._multiplier @ self.w[self._signed])

    @property
    def decrement(self) -> float:
        return float(self._residual @ (self._residual / self._metric))

    @property
    def metric(self) -> Floats:
        return self._metric

    def linearise(self, slope: Floats) -> None:
        self._residual = self.w + slope
        self._residual[self._signed] -= self._multiplier
        self._metric = np.ones(len(self.w))
        self._metric[self._signed] += self._multiplier / self.w[self._signed]

    def gram(self) -> Floats:
        if self._products is None:
            self._products = RowProducts(self._rows)
        return self._products(1.0 / self._metric)

    def turn(self, change: Floats, target: float) -> Floats:
        signed = self._signed
        ask = self._residual + change
        missing = target / self.w[signed] - self._multiplier  # what Newton's equation adds to the multiplier if w stays
        ask[signed] -= missing
        self._turn: Floats = -ask / self._metric
        self._turn_multiplier = missing - self._multiplier / self.w[signed] * self._turn[signed]
        return self._turn

    def longest(self) -> float:
        signed = self._signed
        return min(room(self.w[signed], self._turn[signed]), room(self._multiplier, self._turn_multiplier))

    def move(self, length: float) -> None:
        self.w = self.w + length * self._turn
        self._multiplier = self._multiplier + length * self._turn_multiplier
