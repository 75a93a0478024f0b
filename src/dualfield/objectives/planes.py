"""Losses that are maxima of planes: all that solvers of structural support vector machines see."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.regularisers import Regulariser

__all__ = ["PlaneProblem", "Planes"]


@dataclass(frozen=True, eq=False)
class Planes:
    r"""One plane b + ⟨a, w⟩ for each of some examples: what a labelling of it costs, and how its score differs.

    With margins rescaled, b = Δ(y_i, y) and a = F(x_i, y) - F(x_i, y_i); with slacks rescaled, both times Δ(y_i, y).

    Parameters
    ----------
    examples : int array of shape (m,)
        Which examples they belong to.
    offsets : array of shape (m,)
        b of each.
    slopes : scipy.sparse.csr_array of shape (m, n_parameters)
        a of each.
    keys : list
        Equal for equal planes of one example; hashable.
    slack : array of shape (m,), default=None
        Where the structure is a relaxation: how far the loss may be above the plane, at the weights where it was asked
        for. Its planes may be those of fractional points. None: planes reach the losses.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from dualfield.objectives import Planes
    >>> planes = Planes(np.array([0]), np.array([1.0]), scipy.sparse.csr_array([[0.0, 2.0]]), [b"y"])
    >>> planes.values(np.array([5.0, 3.0]))
    array([7.])
    """

    examples: NDArray[np.int64]
    offsets: Floats
    slopes: scipy.sparse.csr_array
    keys: list[Hashable]
    slack: Floats | None = None

    def values(self, w: Floats) -> Floats:
        """Return b + ⟨a, w⟩ of each plane.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        array of shape (m,)
            The heights of the planes at w.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.objectives import Planes
        >>> Planes(np.array([3]), np.array([1.0]), scipy.sparse.csr_array([[2.0]]), [0]).values(np.ones(1))
        array([3.])
        """
        return np.asarray(self.offsets + self.slopes @ w)

    def losses(self, w: Floats) -> Floats:
        """Return the losses of the examples at w, where these are the highest planes; with a slack, bounds above them.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        array of shape (m,)
            Numbers of at least 0: the truth has the plane 0.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.objectives import Planes
        >>> slope, slack = scipy.sparse.csr_array([[2.0]]), np.array([0.5])
        >>> Planes(np.array([3]), np.array([1.0]), slope, [0], slack).losses(np.ones(1))
        array([3.5])
        """
        heights = self.values(w)
        return np.maximum(heights if self.slack is None else heights + self.slack, 0.0)


class PlaneProblem(Protocol):
    r"""A sum of losses, each a maximum of planes, and a regulariser.

    .. math::
        P(w) = R(w) + \sum_i c_i \max_y \, [ b_i(y) + \langle a_i(y), w \rangle ]

    The plane of the truth is zero, so that losses are at least 0. A point of the dual is a mixture of planes for each
    example, :math:`\alpha_i`, and

    .. math::
        v(\alpha) = - \sum_i c_i \sum_y \alpha_i(y) \, a_i(y), \qquad
        D(\alpha) = \sum_i c_i \langle b_i, \alpha_i \rangle - R^*(v(\alpha)) \le P^* .

    For half the squared norm w is v, with what must not be negative cut off at zero.

    Attributes
    ----------
    n_examples, n_parameters : int
        Sizes.
    weights : array of shape (n_examples,)
        c_i of the formula.
    regulariser : Regulariser
        R of the formula.

    Examples
    --------
    >>> from dualfield.objectives import CustomPlanes, NetworkPlanes, Objective   # three of them
    """

    @property
    @abstractmethod
    def n_examples(self) -> int:
        """Number of losses."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Length of w."""

    @property
    @abstractmethod
    def weights(self) -> Floats:
        """Weight of each loss."""

    @property
    @abstractmethod
    def regulariser(self) -> Regulariser:
        """R of the formula."""

    @abstractmethod
    def planes(self, w: Floats, examples: NDArray[np.int64] | None = None) -> Planes:
        """Return the highest plane of each example at w, or of those listed.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.
        examples : int array of shape (m,), default=None
            Which examples; None: all, in their order.

        Returns
        -------
        Planes
            One plane for each.
        """
