"""Losses of a linear chain with an elastic-net penalty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.scores import LinearScores

__all__ = ["ChainLoss"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ChainLoss:
    r"""The objective of conditional random fields on chains.

    .. math::
        P(w) = R(w) + \sum_i c_i [ M_T(A_i w + \Delta_i) - \langle A_i w, u_i \rangle ], \qquad
        R(w) = \tfrac{1 - \rho}{2} \|w\|^2 + \rho \|w\|_1

    For any w the marginals of the model at w are a point of the dual, with v the negative gradient of the losses, and

    .. math::
        P(w) - D = R(w) + R^*(v) - \langle w, v \rangle \ge P(w) - P^*

    is the gap; for :math:`\rho = 0` it is half the squared norm of the gradient. For :math:`\rho = 1` the point is
    drawn towards the truth until it is feasible. With partly labelled examples the problem is not convex and there is
    no gap: it is NaN.

    Parameters
    ----------
    score_map : LinearScores
        A of the formula.
    data : ChainData
        Examples, from :meth:`LinearScores.bind`.
    l1_ratio : float, default=0.0
        :math:`\rho`.
    convex : bool, default=True
        False for partly labelled examples.
    n_threads : int, default=1
        Number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.batch import Batch
    >>> from dualfield.objectives import ChainLoss
    >>> from dualfield.scores import FeatureTable, LinearScores
    >>> from dualfield.structures import Chain
    >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
    >>> batch = Batch.build([np.array([[1.0], [-1.0]])])
    >>> data = score_map.bind(batch, labels=np.array([0, 1], dtype=np.int32), weights=np.ones(1))
    >>> value, gap = ChainLoss(score_map, data).certify(np.zeros(score_map.n_parameters))
    >>> round(value, 4), round(gap, 4)   # two nodes, each log 2
    (1.3863, 1.375)
    """

    score_map: LinearScores
    data: _native.ChainData
    l1_ratio: float = 0.0
    convex: bool = True
    n_threads: int = 1

    @cached_property
    def _native(self) -> _native.ChainObjective:
        return _native.ChainObjective(self.data, self.n_threads)

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self.score_map.n_parameters

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
        >>> from dualfield.batch import Batch
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
        return self._native.loss_and_gradient(w)

    def gap(self, w: Floats, loss: float, gradient: Floats) -> tuple[float, float]:
        """Return primal value and duality gap, given the losses and their gradient at w.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.
        loss, gradient
            As :meth:`loss_and_gradient` returns them.

        Returns
        -------
        objective : float
            P(w).
        gap : float
            A bound on P(w) - P*; NaN if the problem is not convex.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.batch import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> data = score_map.bind(
        ...     Batch.build([np.ones((1, 1))]), labels=np.zeros(1, dtype=np.int32), weights=np.ones(1)
        ... )
        >>> objective = ChainLoss(score_map, data)
        >>> w = np.zeros(objective.n_parameters)
        >>> objective.gap(w, *objective.loss_and_gradient(w))[1]
        0.25
        """
        ridge, lasso = 1.0 - self.l1_ratio, self.l1_ratio
        penalty = 0.5 * ridge * float(w @ w) + (lasso * float(np.abs(w).sum()) if lasso else 0.0)
        value = loss + penalty
        if not self.convex:
            return value, float("nan")
        if lasso == 0.0:
            step = w + gradient
            return value, 0.5 * float(step @ step)
        inner = -float(w @ gradient)
        if ridge > 0.0:
            shrunk = np.maximum(np.abs(gradient) - lasso, 0.0)
            return value, penalty + float(shrunk @ shrunk) / (2.0 * ridge) - inner
        # The entropy of the point is loss + inner; a share s of the way from the truth to it keeps that share of it.
        share = min(1.0, lasso / max(float(np.abs(gradient).max()), 1e-300))
        return value, value - share * (loss + inner)

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
        >>> from dualfield.batch import Batch
        >>> from dualfield.objectives import ChainLoss
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> data = score_map.bind(
        ...     Batch.build([np.ones((1, 1))]), labels=np.zeros(1, dtype=np.int32), weights=np.ones(1)
        ... )
        >>> ChainLoss(score_map, data, l1_ratio=1.0).certify(np.zeros(score_map.n_parameters))[1]
        0.0
        """
        return self.gap(w, *self.loss_and_gradient(w))
