"""What keeps parameters small or near a reference: R of the formula, with its conjugate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.regularisers.interior import Interior

__all__ = ["PlaneRegulariser", "Regulariser", "Response"]


class Response(NamedTuple):
    r"""The parameters that answer a slope.

    Attributes
    ----------
    w : array of shape (n_parameters,)
        The minimiser of :math:`R(w) + \langle \mu, w \rangle + \frac{\gamma}{2} \|w - \bar w\|^2`.
    value : float
        The minimum, a concave function of :math:`\mu` whose gradient is w.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.regularisers import SquaredNorm
    >>> SquaredNorm(2).respond(np.array([1.0, -2.0])).value
    -2.5
    """

    w: Floats
    value: float


class Regulariser(ABC):
    r"""A convex function R of the parameters, with its conjugate :math:`R^*(v) = \max_u \langle u, v \rangle - R(u)`.

    Both together certify any parameters: with v the negative gradient of the losses at w, the objective there is at
    most :math:`R(w) + R^*(v) - \langle w, v \rangle` above its minimum.

    Attributes
    ----------
    l1_ratio : float or None
        The share of absolute values in an elastic net, 0 for half the squared norm; None: R is something else.
    positive : bool array of shape (n_parameters,) or None
        Weights that must be at least 0; None: no weight.

    Examples
    --------
    >>> from dualfield.regularisers import ElasticNet, SquaredNorm, TableDivergence   # three of them
    """

    l1_ratio: float | None = None
    positive: NDArray[np.bool_] | None = None

    @abstractmethod
    def value(self, w: Floats) -> float:
        """Return R(w).

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Allowed parameters.

        Returns
        -------
        float
            R(w).

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(2).value(np.array([3.0, 4.0]))
        12.5
        """

    @abstractmethod
    def conjugate(self, v: Floats) -> float:
        """Return R*(v).

        Parameters
        ----------
        v : array of shape (n_parameters,)
            The negative of a slope.

        Returns
        -------
        float
            R*(v), possibly infinite; its negative is the minimum of R(w) - ⟨v, w⟩.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(1).conjugate(np.array([2.0]))
        2.0
        """

    def excess(self, w: Floats, v: Floats) -> float:
        """Return R(w) + R*(v) - ⟨w, v⟩, which is never negative.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Allowed parameters.
        v : array of shape (n_parameters,)
            The negative of a slope.

        Returns
        -------
        float
            Zero where w answers the slope -v.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import ElasticNet
        >>> ElasticNet(0.5).excess(np.array([1.0]), np.array([1.0]))
        0.0
        """
        return self.value(w) + self.conjugate(v) - float(w @ v)

    def share(self, entropy: float, v: Floats) -> float:
        """Return an s in [0, 1] that makes the bound s E - R*(s v) large.

        Parameters
        ----------
        entropy : float
            E: entropies and costs at a dual point.
        v : array of shape (n_parameters,)
            The negative gradient of the losses there.

        Returns
        -------
        float
            How far to go from the truth to the dual point.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import ElasticNet
        >>> ElasticNet(1.0).share(1.0, np.array([2.0]))   # then s v is feasible
        0.5
        """
        return 1.0


class PlaneRegulariser(Regulariser):
    r"""A regulariser that can be minimised together with something linear: what ``simplicial`` knows of a model.

    The dual of :math:`\min_w R(w) + \sum_i c_i \max_y [ b_i(y) + \langle a_i(y), w \rangle ]` is the maximum of

    .. math::
        \omega + \min_w \, [ R(w) + \langle \mu, w \rangle ] = \omega - R^*(-\mu)

    over the mixtures :math:`(\mu, \omega)` of planes.

    Attributes
    ----------
    n_parameters, needs_anchor : int, bool
        Length of w; whether the minimum is smooth only with the term :math:`\frac{\gamma}{2} \|w - \bar w\|^2`.
    resolution : float
        What rounding makes of R where it is zero: smaller gaps mean nothing.

    Examples
    --------
    >>> from dualfield.regularisers import SquaredNorm, TableDivergence   # two of them
    """

    n_parameters: int
    needs_anchor: bool

    @property
    @abstractmethod
    def resolution(self) -> float:
        """What rounding makes of R where it is zero."""

    @abstractmethod
    def origin(self) -> Floats:
        """Return the parameters that minimise R.

        Returns
        -------
        array of shape (n_parameters,)
            Where a solver begins.

        Examples
        --------
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(2).origin()
        array([0., 0.])
        """

    @abstractmethod
    def nearest(self, w: Floats) -> Floats:
        """Return the allowed parameters nearest to given ones.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        array of shape (n_parameters,)
            The point of the domain of R with the least Euclidean distance.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(2, np.array([True, False])).nearest(np.array([-1.0, -1.0]))
        array([ 0., -1.])
        """

    @abstractmethod
    def respond(self, slope: Floats, anchor: Floats | None = None, pull: float = 0.0) -> Response:
        """Return the minimiser of R(w) + ⟨slope, w⟩ and half the pull times the squared distance from the anchor.

        Parameters
        ----------
        slope : array of shape (n_parameters,)
            μ of the formula.
        anchor : array of shape (n_parameters,), default=None
            Where the parameters are pulled to; needed if ``needs_anchor``.
        pull : float, default=0.0
            How strongly; above 0 if ``needs_anchor``.

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

    @abstractmethod
    def interior(
        self, rows: scipy.sparse.csr_array, near: Floats | None = None, anchor: Floats | None = None, pull: float = 0.0
    ) -> Interior:
        """Return parameters inside the domain, for Newton's equations.

        Parameters
        ----------
        rows : scipy.sparse.csr_array of shape (m, n_parameters)
            Slopes of the planes that are asked about.
        near : array of shape (n_parameters,), default=None
            Where to begin; None: at the origin.
        anchor, pull
            As in :meth:`respond`.

        Returns
        -------
        Interior
            A point with multipliers.

        Examples
        --------
        >>> import scipy.sparse
        >>> from dualfield.regularisers import SquaredNorm
        >>> SquaredNorm(2).interior(scipy.sparse.csr_array([[1.0, 2.0]])).w
        array([0., 0.])
        """
