"""Losses of a linear chain with an elastic-net penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.objectives.planes_chain import ChainPlanes
from dualfield.scores import LinearScores

__all__ = ["ChainLoss"]

Floats = NDArray[np.float64]
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ChainLoss:
    r"""The objective of conditional random fields on chains.

    .. math::
        P(w) = R(w) + \sum_i c_i [ M_T(A_i w + \Delta_i) - \langle A_i w, u_i \rangle ], \qquad
        R(w) = \tfrac{1 - \rho}{2} \|w\|^2 + \rho \|w\|_1

    For any w the marginals of the model at w are a point of the dual. With v the negative gradient of the losses there
    and E the entropies and costs, which are :math:`\sum_i c_i M_T + \langle w, v \rangle`,

    .. math::
        D(s) = s E - R^*(s v) \le P^* , \qquad 0 \le s \le 1

    since a share s of the way from the truth to that point keeps at least this share of E. P(w) less the largest D(s)
    is the gap. Near the minimum s is 1, and for :math:`\rho = 0` the gap is half the squared norm of the gradient
    there. For :math:`\rho = 1` s is such that :math:`s v` is feasible. The gap is never below what rounding can hide in
    the value. With partly labelled examples the problem is not convex and there is no gap: it is NaN.

    Parameters
    ----------
    score_map : LinearScores
        A of the formula.
    data : Problem
        Examples, from :meth:`LinearScores.bind`.
    l1_ratio : float, default=0.0
        :math:`\rho`.
    convex : bool, default=True
        False for partly labelled examples.
    n_threads : int, default=1
        Number of threads.
    as_planes : ChainPlanes, default=None
        The same objective as planes, for solvers that take turns; at T = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data import Batch
    >>> from dualfield.objectives import ChainLoss
    >>> from dualfield.scores import FeatureTable, LinearScores
    >>> from dualfield.structures import Chain
    >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
    >>> batch = Batch.build([np.array([[1.0], [-1.0]])])
    >>> data = score_map.bind(batch, labels=np.array([0, 1], dtype=np.int32), weights=np.ones(1))
    >>> value, gap = ChainLoss(score_map, data).certify(np.zeros(score_map.n_parameters))
    >>> round(value, 4), round(gap, 4)   # two nodes, each log 2
    (1.3863, 1.0369)
    """

    score_map: LinearScores
    data: _native.Problem
    l1_ratio: float = 0.0
    convex: bool = True
    n_threads: int = 1
    as_planes: ChainPlanes | None = None

    @cached_property
    def _native(self) -> _native.Objective:
        return _native.Objective(self.data, self.n_threads)

    @property
    def temperature(self) -> float:
        """T of the formula."""
        return self.data.temperature

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self.score_map.n_parameters

    def value(self, w: Floats) -> float:
        """Return P(w) without its gradient, which is cheaper.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        float
            Losses and penalty.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> data = score_map.bind(
        ...     Batch.build([np.ones((1, 1))]), labels=np.zeros(1, dtype=np.int32), weights=np.ones(1)
        ... )
        >>> round(ChainLoss(score_map, data).value(np.zeros(score_map.n_parameters)), 4)
        0.6931
        """
        return self._native.loss(w) + self._penalty(w)

    def _penalty(self, w: Floats) -> float:
        ridge, lasso = 1.0 - self.l1_ratio, self.l1_ratio
        return 0.5 * ridge * float(w @ w) + (lasso * float(np.abs(w).sum()) if lasso else 0.0)

    def loss_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return the weighted losses and their gradient, without the penalty.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        loss : float
            The sum of the losses times their weights.
        gradient : array of shape (n_parameters,)
            Its gradient.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> data = score_map.bind(
        ...     Batch.build([np.ones((1, 1))]), labels=np.zeros(1, dtype=np.int32), weights=np.ones(1)
        ... )
        >>> score_map.unpack(ChainLoss(score_map, data).loss_and_gradient(np.zeros(score_map.n_parameters))[1]).node
        array([-0.5,  0.5])
        """
        loss, gradient, _ = self._native.evaluate(w)
        return loss, gradient

    def evaluate(self, w: Floats) -> tuple[float, Floats, float]:
        """Return losses, their gradient, and the magnitude of what the losses are differences of.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        loss, gradient
            As :meth:`loss_and_gradient` returns them.
        magnitude : float
            Σ_i c_i (|maximum| + |score of the truth|), of which rounding takes its share.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> data = score_map.bind(Batch.build([np.ones((1, 1))]), labels=np.zeros(1, np.int32), weights=np.ones(1))
        >>> ChainLoss(score_map, data).evaluate(score_map.pack(np.array([1e9, 0.0]), np.zeros(4)))[::2]
        (0.0, 2000000000.0)
        """
        return self._native.evaluate(w)

    def gap(self, w: Floats, loss: float, gradient: Floats, magnitude: float = 0.0) -> tuple[float, float]:
        """Return primal value and duality gap, given the losses and their gradient at w.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.
        loss, gradient, magnitude
            As :meth:`evaluate` returns them.

        Returns
        -------
        objective : float
            P(w).
        gap : float
            A bound on P(w) - P*; NaN if the problem is not convex.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> data = score_map.bind(
        ...     Batch.build([np.ones((1, 1))]), labels=np.zeros(1, dtype=np.int32), weights=np.ones(1)
        ... )
        >>> objective = ChainLoss(score_map, data)
        >>> w = np.zeros(objective.n_parameters)
        >>> round(objective.gap(w, *objective.loss_and_gradient(w))[1], 12)
        0.25
        """
        ridge, lasso = 1.0 - self.l1_ratio, self.l1_ratio
        value = loss + self._penalty(w)
        if not self.convex:
            return value, float("nan")
        inner = -float(w @ gradient)
        entropy, sizes = loss + inner, np.abs(gradient)
        share = _share(entropy, sizes[sizes > lasso], ridge, lasso)
        if share == 1.0 and lasso == 0.0:
            step = w + gradient  # without the difference of values, which is rounding near the minimum
            gap = 0.5 * float(step @ step)
        else:
            over = np.maximum(share * sizes - lasso, 0.0)
            conjugate = float(over @ over) / (2.0 * ridge) if ridge > 0.0 else 0.0
            gap = value - (share * entropy - conjugate)
        # Far from the minimum the gap is a difference of large numbers; so is the bound, value less gap.
        return value, gap + _ROUNDING * (value + magnitude + float(np.abs(w) @ sizes))

    def certify(self, w: Floats) -> tuple[float, float]:
        """Return primal value and duality gap of any parameters.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        objective, gap : float
            As in :meth:`gap`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> data = score_map.bind(
        ...     Batch.build([np.ones((1, 1))]), labels=np.zeros(1, dtype=np.int32), weights=np.ones(1)
        ... )
        >>> round(ChainLoss(score_map, data, l1_ratio=1.0).certify(np.zeros(score_map.n_parameters))[1], 12)
        0.0
        """
        return self.gap(w, *self.evaluate(w))


def _share(entropy: float, sizes: Floats, ridge: float, lasso: float) -> float:
    """Return the s that makes s E - R*(s v) large; `sizes` are the absolute entries of v beyond `lasso`."""
    if not (entropy > 0.0 and sizes.size):
        return 1.0 if not sizes.size else 0.0
    if ridge == 0.0:
        return min(1.0, lasso / float(sizes.max()))
    share = 1.0
    # The slope E - sum |v| max(s |v| - lasso, 0) / ridge falls with s, ever faster: Newton steps from the right end
    # approach its zero from that side.
    for _ in range(50):
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
