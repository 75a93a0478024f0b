"""Objectives with latent variables: a convex term less another one, and its tangents."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from dualfield.data.arrays import Floats

__all__ = ["Completion", "LatentProblem"]


@dataclass(frozen=True, eq=False)
class Completion:
    r"""The truth with its latent variables filled in: a tangent of :math:`g_T` at some weights.

    .. math::
        g_T(w) = \sum_i c_i T \log \sum_h \exp \frac{\langle w, \Phi(x_i, y_i, h) \rangle}{T}
        \ge \langle w, \mathrm{features} \rangle + \mathrm{offset}

    Attributes
    ----------
    states : int array
        Latent variables of all examples: the best ones, also at T > 0.
    features : array of shape (n_parameters,)
        Σ c_i Φ(x_i, y_i, h_i), at T > 0 its expectation over h.
    offset : float
        Zero at T = 0, else T times the weighted entropies.
    temperature : float
        T.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.objectives.latent import Completion
    >>> Completion(np.array([0, 1]), np.array([1.0, 2.0])).at(np.array([1.0, 1.0]))
    3.0
    """

    states: NDArray[Any]
    features: Floats
    offset: float = 0.0
    temperature: float = 0.0

    def at(self, w: Floats) -> float:
        """Return the value of the tangent.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Weights.

        Returns
        -------
        float
            ⟨w, features⟩ + offset.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.objectives.latent import Completion
        >>> Completion(np.array([0]), np.ones(1), offset=0.5).at(np.ones(1))
        1.5
        """
        return float(w @ self.features) + self.offset


class LatentProblem(Protocol):
    r"""What the procedure sees of an objective with latent variables: R(w) = ½|w|² + loss(w) - g(w).

    Examples
    --------
    >>> from dualfield.objectives.latent import LatentProblem
    >>> LatentProblem.__name__
    'LatentProblem'
    """

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Length of w."""

    @abstractmethod
    def loss(self, w: Floats) -> float:
        r"""Return the first term, :math:`\sum_i c_i \max_{y, h} [\langle w, \Phi(x_i, y, h) \rangle + \Delta_i]`.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Weights.

        Returns
        -------
        float
            Its value.

        Examples
        --------
        >>> LatentProblem.loss.__name__
        'loss'
        """

    @abstractmethod
    def complete(self, w: Floats, temperature: float = 0.0) -> Completion:
        """Fill in the latent variables of the truth: the tangent of g at w.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Weights.
        temperature : float, default=0.0
            T.

        Returns
        -------
        Completion
            The tangent.

        Examples
        --------
        >>> LatentProblem.complete.__name__
        'complete'
        """
