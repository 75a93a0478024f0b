"""A sharper certificate for descents: the best mixture of the dual points of past evaluations."""

from __future__ import annotations

import numpy as np

from dualfield._native import StateError
from dualfield.data.arrays import Floats
from dualfield.data.on_disk import joined
from dualfield.objectives.primal_gap import ROUNDING
from dualfield.regularisers import Regulariser
from dualfield.solvers.kept_state import State, kept_numbers

__all__ = ["Bundle", "best_mixture"]

_MOST_STEPS = 100  # at a time: the best mixture so far is one of the planes, so that no step is lost
_ENOUGH = 1e-10


class Bundle:
    r"""Lower bounds on the minimum from the last M evaluations together, without passes of their own.

    An evaluation at w gives :math:`v = -\nabla L(w)` and :math:`h = L(w) + \langle w, v \rangle`. Since L is convex,
    :math:`L(u) \ge L(w) + \langle u - w, -v \rangle = h - \langle u, v \rangle` for every u. The same holds for sums of
    such planes with weights :math:`\gamma_i \ge 0` that add up to 1, so that

    .. math::
        P^* = \min_u R(u) + L(u) \ge \sum_i \gamma_i h_i + \min_u R(u) - \langle u, \sum_i \gamma_i v_i \rangle
            = \sum_i \gamma_i h_i - R^*\Bigl(\sum_i \gamma_i v_i\Bigr).

    In terms of the dual: a mixture of marginals is a point of the marginal polytope, its entropy is at least the
    mixture of entropies :math:`h_i`, and its weights are the mixture of the :math:`v_i`. With half the squared norm the
    largest bound is a quadratic programme of M variables with the Gram matrix of the :math:`v_i`. The plane h = 0,
    v = 0, that of losses which are never negative, is always one of them, and so is the best mixture so far: bounds
    never get worse.

    Parameters
    ----------
    regulariser : Regulariser
        R of the formula; half the squared norm.
    size : int, default=20
        M, the evaluations that are kept.
    on_disk : bool, default=False
        Whether the planes are in temporary files; the bounds are the same.

    Attributes
    ----------
    best : float
        The largest bound that :meth:`bound` has found so far.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.regularisers import SquaredNorm
    >>> from dualfield.solvers.primal.bundle import Bundle
    >>> bundle = Bundle(SquaredNorm(2))
    >>> bundle.add(1.0, np.array([1.0, 0.0]))
    >>> bundle.add(1.0, np.array([0.0, 1.0]))
    >>> round(bundle.bound(), 12)                             # each alone: 0.5
    0.75
    """

    def __init__(self, regulariser: Regulariser, size: int = 20, on_disk: bool = False) -> None:
        self._regulariser, self._size, self._on_disk = regulariser, size, on_disk
        self._heights: list[float] = []
        self._slopes: list[Floats] = []
        self._gram = np.zeros((0, 0))
        # The best mixture so far is first, once there is one.
        self._has_best = False
        self.best = -np.inf

    def add(self, height: float, slope: Floats, doubt: float = 0.0) -> None:
        """Take the plane of an evaluation.

        Parameters
        ----------
        height : float
            h, of the marginals that made the gradient.
        slope : array of shape (n_parameters,)
            v, the negative gradient of the losses.
        doubt : float, default=0.0
            What rounding may have added to h.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers.primal.bundle import Bundle
        >>> bundle = Bundle(SquaredNorm(1))
        >>> bundle.add(0.5, np.array([0.0]), doubt=0.1)
        >>> round(bundle.bound(), 12)
        0.4
        """
        if len(self._heights) == self._size + self._has_best:
            self._drop(int(self._has_best))
        self._push(len(self._heights), height - doubt, slope)

    def bound(self) -> float:
        """Return the largest lower bound on the minimum so far.

        Returns
        -------
        float
            -inf if there is no plane.

        Examples
        --------
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers.primal.bundle import Bundle
        >>> Bundle(SquaredNorm(1)).bound()
        -inf
        """
        if not self._heights:
            return -np.inf
        shares = best_mixture(np.array(self._heights), self._gram)
        height, slope = 0.0, np.zeros_like(self._slopes[0])
        for share, each, vector in zip(shares.tolist(), self._heights, self._slopes, strict=True):
            if share > 0.0:
                height += share * each
                slope += share * vector
        found = self._value(height, slope)
        if found > self.best:
            if self._has_best:
                self._drop(0)
            self._push(0, height, slope)
            self._has_best, self.best = True, found
        return self.best

    def state(self) -> State:
        """Return what is needed to go on.

        Returns
        -------
        dict
            Arrays by name.

        Examples
        --------
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers.primal.bundle import Bundle
        >>> sorted(Bundle(SquaredNorm(1)).state())
        ['bundle_heights', 'bundle_slopes']
        """
        slopes = joined(self._slopes, self._on_disk)
        return {"bundle_heights": np.array(self._heights), "bundle_slopes": slopes}

    def restore(self, state: State, n_parameters: int, known: list[tuple[Floats, float]]) -> None:
        """Go on from a state, which comes from a file; planes above known losses are refused.

        Parameters
        ----------
        state : dict
            What :meth:`state` has returned after a call of :meth:`bound`.
        n_parameters : int
            Length of a slope.
        known : list of (array, float)
            Points, and the losses there: every plane must be below.

        Raises
        ------
        StateError
            If something is missing, or cannot be.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers.primal.bundle import Bundle
        >>> bundle = Bundle(SquaredNorm(1))
        >>> kept = {"bundle_heights": np.array([3.0]), "bundle_slopes": np.array([0.0])}
        >>> bundle.restore(kept, 1, [(np.zeros(1), 1.0)])
        Traceback (most recent call last):
            ...
        dualfield._native.StateError: bundle_heights[0] is above the losses
        """
        heights = kept_numbers(state, "bundle_heights")
        if not 1 <= heights.size <= self._size + 1:
            raise StateError(f"bundle_heights has {heights.size} entries; expected 1 to {self._size + 1}")
        slopes = kept_numbers(state, "bundle_slopes", heights.size * n_parameters).reshape(-1, n_parameters)
        for at, (height, slope) in enumerate(zip(heights.tolist(), slopes, strict=True)):
            for point, loss in known:
                plane = height - float(point @ slope)
                size = abs(height) + float(np.abs(point) @ np.abs(slope)) + abs(loss)
                if not plane <= loss + 1e3 * ROUNDING * size:
                    raise StateError(f"bundle_heights[{at}] is above the losses")
            self._push(at, height, slope)
        self._has_best, self.best = True, self._value(self._heights[0], self._slopes[0])

    def _value(self, height: float, slope: Floats) -> float:
        curve = self._regulariser.conjugate(slope)
        return height - curve - ROUNDING * (abs(height) + curve)

    def _push(self, at: int, height: float, slope: Floats) -> None:
        self._heights.insert(at, height)
        self._slopes.insert(at, joined([slope], self._on_disk))
        row = np.array([float(slope @ other) for other in self._slopes])
        self._gram = np.insert(np.insert(self._gram, at, 0.0, axis=0), at, 0.0, axis=1)
        self._gram[at], self._gram[:, at] = row, row

    def _drop(self, at: int) -> None:
        del self._heights[at], self._slopes[at]
        self._gram = np.delete(np.delete(self._gram, at, axis=0), at, axis=1)


def best_mixture(heights: Floats, gram: Floats, most_steps: int = _MOST_STEPS) -> Floats:
    r"""Maximise :math:`\langle \gamma, h \rangle - \gamma^\top G \gamma / 2` over weights that add up to at most 1.

    By pairwise steps of Frank and Wolfe, each of the best length: weight moves from the worst plane that has some to
    the best one. What the weights lack to 1 is that of the plane h = 0, v = 0.

    Parameters
    ----------
    heights : array of shape (m,)
        h.
    gram : array of shape (m, m)
        G, the inner products of the slopes.
    most_steps : int, default=100
        How many steps are made at most.

    Returns
    -------
    array of shape (m,)
        Weights of at least 0. Any such weights give a valid bound; these a good one.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.primal.bundle import best_mixture
    >>> best_mixture(np.array([1.0, 1.0]), np.eye(2)).round(6)
    array([0.5, 0.5])
    """
    h = np.append(heights, 0.0)
    matrix = np.zeros((h.size, h.size))
    matrix[:-1, :-1] = gram
    shares = np.zeros(h.size)
    shares[int(np.argmax(h - 0.5 * np.diag(matrix)))] = 1.0
    for _ in range(most_steps):
        slope = h - matrix @ shares
        up, held = int(np.argmax(slope)), np.flatnonzero(shares > 0.0)
        down = int(held[np.argmin(slope[held])])
        gain = slope[up] - slope[down]
        if not gain > _ENOUGH * max(abs(float(h @ shares)), 1e-300):
            break
        curve = matrix[up, up] + matrix[down, down] - 2.0 * matrix[up, down]
        step = min(float(shares[down]), float(gain / curve) if curve > 0.0 else np.inf)
        shares[up] += step
        shares[down] = 0.0 if step == shares[down] else shares[down] - step
    total = float(shares.sum())
    return np.asarray(shares[:-1] / max(total, 1.0))
