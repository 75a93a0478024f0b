"""Points inside the domain of a regulariser, for Newton's equations."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

import numpy as np
import scipy.sparse

from dualfield.data.arrays import Floats

__all__ = ["Interior"]

_DENSE = 0.05  # the share of rows that use a column above which sparse products are slower than dense ones


class Interior(Protocol):
    r"""Parameters strictly inside the domain of a regulariser, with multipliers for its constraints.

    They are on the way to the minimiser of :math:`R(w) + \langle \mu, w \rangle + \frac{\gamma}{2} \|w - \bar w\|^2`
    for a :math:`\mu` that itself is on its way. Newton's equations at a point say how w turns when :math:`\mu` does,
    and every multiplier times its slack goes to a common target :math:`\tau`.

    Attributes
    ----------
    w : array of shape (n_parameters,)
        The parameters.
    n_pairs : int
        Number of constraints.
    complementarity : float
        The sum over the constraints of multiplier times slack.
    metric : array of shape (n_parameters,) or None
        The matrix of Newton's equations where it is diagonal; None where it is not.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from dualfield.regularisers import SquaredNorm
    >>> inside = SquaredNorm(2).interior(scipy.sparse.csr_array([[1.0, 2.0]]))
    >>> inside.linearise(np.zeros(2))
    >>> inside.gram()                                # one plane: its slope, squared
    array([[5.]])
    """

    n_pairs: int

    @property
    @abstractmethod
    def w(self) -> Floats:
        """The parameters."""

    @property
    @abstractmethod
    def complementarity(self) -> float:
        """Sum of multipliers times slacks."""

    @property
    @abstractmethod
    def decrement(self) -> float:
        """How far the parameters are from answering the slope: what is left of the gradient, in its own metric."""

    @property
    @abstractmethod
    def metric(self) -> Floats | None:
        """Diagonal of Newton's equations; None where they have more than a diagonal."""

    @abstractmethod
    def linearise(self, slope: Floats) -> None:
        """Set up Newton's equations.

        Parameters
        ----------
        slope : array of shape (n_parameters,)
            μ now.
        """

    @abstractmethod
    def gram(self) -> Floats:
        """Return how the heights of the planes fall with their shares: the planes' slopes, through w, on each other.

        Returns
        -------
        array of shape (m, m)
            A new array, which may be written to.
        """

    @abstractmethod
    def turn(self, change: Floats, target: float) -> Floats:
        """Solve Newton's equations.

        Parameters
        ----------
        change : array of shape (n_parameters,)
            How the slope changes.
        target : float
            What multiplier times slack is to become, τ.

        Returns
        -------
        array of shape (n_parameters,)
            How w changes; the change of the multipliers is kept for :meth:`longest` and :meth:`move`.
        """

    @abstractmethod
    def longest(self) -> float:
        """Return how far the last turn can be followed before a multiplier or a slack is zero.

        Returns
        -------
        float
            A length, possibly infinite.
        """

    @abstractmethod
    def move(self, length: float) -> None:
        """Follow the last turn.

        Parameters
        ----------
        length : float
            Shorter than the longest.
        """


class RowProducts:
    """Products V diag(weights) V' of sparse rows V, for one choice of weights after another.

    Columns that many rows use are multiplied densely, others sparsely.

    Parameters
    ----------
    rows : scipy.sparse.csr_array of shape (m, n)
        V.
    """

    def __init__(self, rows: scipy.sparse.csr_array) -> None:
        uses = np.bincount(rows.indices, minlength=rows.shape[1])
        often = uses > _DENSE * rows.shape[0]
        self._often, self._seldom = np.flatnonzero(often), np.flatnonzero(~often & (uses > 0))
        by_column = rows.tocsc()
        self._full = by_column[:, self._often].toarray()
        self._sparse = by_column[:, self._seldom].tocsr()

    def __call__(self, weights: Floats) -> Floats:
        roots = np.sqrt(weights)
        scaled = self._full * roots[self._often]
        result: Floats = scaled @ scaled.T
        if self._seldom.size:
            few = self._sparse.copy()
            few.data = few.data * roots[self._seldom][few.indices]
            result += (few @ few.T).toarray()
        return result


def room(values: Floats, change: Floats) -> float:
    """Return the length at which the first of positive values is zero."""
    falling = change < 0.0
    return float((values[falling] / -change[falling]).min(initial=np.inf))
