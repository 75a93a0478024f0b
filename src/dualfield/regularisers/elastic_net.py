"""The elastic net: squares and absolute values of weights, for sparse models."""

from __future__ import annotations

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.regularisers.base import Regulariser

__all__ = ["ElasticNet"]

_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
_MOST_STEPS = 50


class ElasticNet(Regulariser):
    r"""Squares and absolute values of weights.

    .. math::
        R(w) = \tfrac{1 - \rho}{2} \|w\|^2 + \rho \|w\|_1, \qquad
        R^*(v) = \tfrac{1}{2 (1 - \rho)} \sum_j \max(|v_j| - \rho, 0)^2

    For :math:`\rho = 1` the conjugate is 0 if no :math:`|v_j|` exceeds 1, and else infinite.

    Parameters
    ----------
    l1_ratio : float
        :math:`\rho`, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.regularisers import ElasticNet
    >>> ElasticNet(0.5).value(np.array([2.0, -2.0]))
    4.0
    """

    l1_ratio: float

    def __init__(self, l1_ratio: float) -> None:
        if not 0.0 <= l1_ratio <= 1.0:
            raise ValueError(f"l1_ratio must be a float in [0, 1]. Got {l1_ratio!r} instead.")
        self.l1_ratio = l1_ratio

    def value(self, w: Floats) -> float:
        """Return R(w).

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        float
            R(w).
        """
        lasso = self.l1_ratio
        return 0.5 * (1.0 - lasso) * float(w @ w) + (lasso * float(np.abs(w).sum()) if lasso else 0.0)

    def conjugate(self, v: Floats) -> float:
        """Return R*(v).

        Parameters
        ----------
        v : array of shape (n_parameters,)
            The negative of a slope.

        Returns
        -------
        float
            R*(v); for ρ = 1 zero or infinite, up to rounding.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import ElasticNet
        >>> ElasticNet(0.5).conjugate(np.array([1.5, 0.5])), ElasticNet(1.0).conjugate(np.array([1.5]))
        (1.0, inf)
        """
        over = np.maximum(np.abs(v) - self.l1_ratio, 0.0)
        if self.l1_ratio == 1.0:
            return np.inf if (over > _ROUNDING).any() else 0.0
        return float(over @ over) / (2.0 * (1.0 - self.l1_ratio))

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
            1 near the minimum; for ρ = 1 such that s v is feasible.
        """
        return best_share(entropy, np.abs(v), self.l1_ratio)


def best_share(entropy: float, sizes: Floats, lasso: float) -> float:
    """Return the s in [0, 1] that makes s E - R*(s v) largest for an elastic net; `sizes` are absolute entries of v."""
    sizes, ridge = sizes[sizes > lasso], 1.0 - lasso
    if not (entropy > 0.0 and sizes.size):
        return 1.0 if not sizes.size else 0.0
    if ridge == 0.0:
        return min(1.0, lasso / float(sizes.max()))
    share = 1.0
    # The slope E - sum |v| max(s |v| - lasso, 0) / ridge falls with s, ever faster: Newton steps from the right end
    # approach its zero from that side.
    for _ in range(_MOST_STEPS):
        over = share * sizes - lasso
        rising = over > 0.0
        excess = float(sizes[rising] @ over[rising]) - ridge * entropy
        if excess <= 0.0:
            break
        nearer = share - excess / float(sizes[rising] @ sizes[rising])
        if not nearer < share:
            break
        share = nearer
    return max(share, 0.0)
