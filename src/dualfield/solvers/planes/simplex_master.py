"""Mixtures of planes: a concave quadratic programme on a product of simplices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats, Ints
from dualfield.regularisers import SquaredNorm
from dualfield.solvers.planes.mixture_master import MixtureMaster

__all__ = ["SimplexMaster"]

_RIDGE = 1e-13  # beside the largest entry of the diagonal: planes may depend on each other
_MOST_STEPS, _LAST_STEPS = 1000, 50  # in all, and after the way through the inside: what is left then is rounding
_PATIENCE, _LEAST_PATIENCE = 20, 2  # steps before a way through the inside is tried
_INSIDE = 0.2  # of the tolerance is left to it
_NOTHING = 1e-13
_ROUNDING = 1e-15


class SimplexMaster:
    r"""Find the best mixture of planes collected so far.

    .. math::
        \max_\alpha \; D(\alpha) = \langle b, \alpha \rangle - \tfrac{1}{2} \| w(\alpha) \|^2, \qquad
        w(\alpha) = - A^\top \alpha, \qquad \alpha \ge 0, \quad \sum_{j \in \mathrm{block}} \alpha_j \le 1

    What a block lacks to one belongs to the plane 0 of the truth. Weights that must not be negative are cut off at zero
    in :math:`w(\alpha)`. Steps are Newton's on the shares that are not zero or whose plane is higher than that of the
    largest share of its block, to the maximum on their line or to where the first share vanishes. Where the exchange of
    share between one pair of planes gains more, that is the step. Where there are many steps, the way leads through the
    inside of the simplices instead, as in :class:`dualfield.solvers.planes.mixture_master.MixtureMaster`.

    Parameters
    ----------
    n_parameters : int
        Length of w.
    n_blocks : int, default=1
        How many mixtures there are.
    positive : bool array of shape (n_parameters,), default=None
        Weights that must be at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from dualfield.solvers.planes.simplex_master import SimplexMaster
    >>> master = SimplexMaster(2)
    >>> slopes = scipy.sparse.csr_array([[-2.0, 0.0], [0.0, -1.0]])
    >>> master.add(slopes, np.array([1.0, 1.0]), np.zeros(2, dtype=np.int64))
    >>> master.solve(1e-12)
    >>> master.shares, master.w, master.dual
    (array([0.2, 0.8]), array([0.4, 0.8]), 0.6...)
    """

    def __init__(self, n_parameters: int, n_blocks: int = 1, positive: NDArray[np.bool_] | None = None) -> None:
        self.n_blocks, self._positive = n_blocks, positive
        self.slopes = scipy.sparse.csr_array((0, n_parameters))
        self.offsets, self.shares = np.zeros(0), np.zeros(0)
        self.blocks, self._norms = np.zeros(0, dtype=np.int64), np.zeros(0)  # norms of the slopes
        self._patience = _PATIENCE
        self._gram = np.zeros((1, 1))  # the last row and column are those of the plane 0

    @property
    def w(self) -> Floats:
        """The weights of the mixture."""
        w: Floats = -np.asarray(self.slopes.T @ self.shares)
        if self._positive is not None:
            w[self._positive] = np.maximum(w[self._positive], 0.0)
        return w

    @property
    def dual(self) -> float:
        """The value D of the mixture."""
        w = self.w
        return float(self.offsets @ self.shares) - 0.5 * float(w @ w)

    def add(self, slopes: scipy.sparse.csr_array, offsets: Floats, blocks: Ints) -> None:
        """Add planes, with shares of zero.

        Parameters
        ----------
        slopes : scipy.sparse.csr_array of shape (m, n_parameters)
            Slopes, times the weight of their example.
        offsets : array of shape (m,)
            Offsets, times the weight of their example.
        blocks : int array of shape (m,)
            The block of each.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.solvers.planes.simplex_master import SimplexMaster
        >>> master = SimplexMaster(1)
        >>> master.add(scipy.sparse.csr_array([[1.0]]), np.ones(1), np.zeros(1, dtype=np.int64))
        >>> master.shares
        array([0.])
        """
        old, new = self.slopes.shape[0], slopes.shape[0]
        if self._positive is None:
            gram = np.zeros((old + new + 1, old + new + 1))
            gram[:old, :old] = self._gram[:old, :old]
            gram[old : old + new, :old] = _dense(slopes @ self.slopes.T)
            gram[:old, old : old + new] = gram[old : old + new, :old].T
            gram[old : old + new, old : old + new] = _dense(slopes @ slopes.T)
            self._gram = gram
        self.slopes = scipy.sparse.vstack([self.slopes, slopes], format="csr")
        self.offsets = np.concatenate([self.offsets, offsets])
        self.shares = np.concatenate([self.shares, np.zeros(new)])
        self.blocks = np.concatenate([self.blocks, blocks])
        self._norms = np.concatenate([self._norms, np.sqrt(np.asarray(slopes.multiply(slopes).sum(axis=1)))])

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Forget the other planes, which must have no share.

        Parameters
        ----------
        chosen : bool array of shape (n_planes,)
            The planes to keep.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.solvers.planes.simplex_master import SimplexMaster
        >>> master = SimplexMaster(1)
        >>> master.add(scipy.sparse.csr_array([[1.0], [2.0]]), np.ones(2), np.zeros(2, dtype=np.int64))
        >>> master.keep(np.array([False, True]))
        >>> master.slopes.toarray()
        array([[2.]])
        """
        self.slopes, self.offsets, self.shares = self.slopes[chosen], self.offsets[chosen], self.shares[chosen]
        self.blocks, self._norms = self.blocks[chosen], self._norms[chosen]
        if self._positive is None:
            whole = np.append(chosen, True)
            self._gram = self._gram[np.ix_(whole, whole)]

    def values(self) -> Floats:
        """Return the heights of all planes at the weights of the mixture: the gradient of D.

        Returns
        -------
        array of shape (n_planes,)
            b + ⟨a, w⟩.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.solvers.planes.simplex_master import SimplexMaster
        >>> master = SimplexMaster(1)
        >>> master.add(scipy.sparse.csr_array([[1.0]]), np.ones(1), np.zeros(1, dtype=np.int64))
        >>> master.values()
        array([1.])
        """
        if self._positive is None:
            return np.asarray(self.offsets - self._gram[:-1, :-1] @ self.shares)
        return np.asarray(self.offsets + self.slopes @ self.w)

    def solve(self, tol: float) -> None:
        """Move the shares until D is within tol of its maximum.

        Parameters
        ----------
        tol : float
            On the distance from the maximum over these planes, by a bound like the duality gap.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.solvers.planes.simplex_master import SimplexMaster
        >>> master = SimplexMaster(1)
        >>> master.add(scipy.sparse.csr_array([[-0.5]]), np.ones(1), np.zeros(1, dtype=np.int64))
        >>> master.solve(1e-12)
        >>> master.w
        array([0.5])
        """
        most = _MOST_STEPS
        for step in range(_MOST_STEPS):
            heights, slack = self.values(), self._slack()
            highest = np.zeros(self.n_blocks)  # the plane 0 is among them
            np.maximum.at(highest, self.blocks, heights)
            rounding = _ROUNDING * float(highest.sum() + self._norms.max(initial=0.0) * (self._norms @ self.shares))
            is_done = step >= most or float(highest.sum() - heights @ self.shares) <= max(tol, rounding)
            if is_done or not self._step(heights, slack):
                return
            if step + 1 == self._patience:
                self._cross(_INSIDE * max(tol, rounding))
                most = step + _LAST_STEPS
                # What was needed once will be needed again: the next planes are like these.
                self._patience = max(self._patience // 2, _LEAST_PATIENCE)

    def _cross(self, tol: float) -> None:
        """Go through the inside of the simplices, if that leads higher.

        Where features have offsets or different scales, planes are nearly parallel: the first share that vanishes ends
        a step soon, and there are as many steps as there are faces on the way.
        """
        inside = MixtureMaster(SquaredNorm(self.slopes.shape[1], self._positive), self.n_blocks)
        inside.add(self.slopes, self.offsets, self.blocks)
        inside.begin(self.shares)
        inside.solve(tol)
        before, dual = self.shares, self.dual
        self.shares = inside.shares
        if self.dual < dual:
            self.shares = before

    def _slack(self) -> Floats:
        filled = np.bincount(self.blocks, self.shares, minlength=self.n_blocks)
        return np.asarray(np.maximum(1.0 - filled, 0.0), dtype=np.float64)

    def _step(self, heights: Floats, slack: Floats) -> bool:
        """Go to the best point on a line: Newton's, that of one pair, or Frank and Wolfe's; False where none leads up.

        Where planes depend on each other, a tiny share may end Newton's step at once, and another the next one, without
        end, and so may that of the worst plane of a pair. From the whole mixture of a block to its highest plane there
        is always room; that way is taken where the others get nowhere. Shares are those of the planes and behind them
        those of the plane 0 in each block.
        """
        m = len(heights)
        share, height = np.append(self.shares, slack), np.append(heights, np.zeros(self.n_blocks))
        block = np.append(self.blocks, np.arange(self.n_blocks))
        best, most = share, 0.0
        for way, handicap in ((self._newton_change, 1.0), (self._pair_change, 1.0), (self._mixture_change, 100.0)):
            change = way(share, height, block)
            falling = change < 0.0
            if not falling.any():
                continue
            limits = np.full(len(share), np.inf)
            limits[falling] = -share[falling] / change[falling]
            slope = float(height @ change)
            length = self._length(change[:m], float(limits.min()), slope)
            rise = self._rise(length * change[:m], length * slope)
            if rise > handicap * most:
                best, most = share + length * change, rise
                best[falling & (limits <= length * (1.0 + 1e-12))] = 0.0
        best[best <= _NOTHING] = 0.0  # a share this small would end the next step at once
        sums = np.bincount(block, best, minlength=self.n_blocks)
        self.shares = (best / sums[block])[:m]
        return most > 0.0

    def _newton_change(self, share: Floats, height: Floats, block: Ints) -> Floats:
        """Return the way to Newton's point; the largest share of a block is its pivot, and others move against it."""
        m = len(self.shares)
        pivot = np.empty(self.n_blocks, dtype=np.int64)
        order = np.argsort(share, kind="stable")
        pivot[block[order]] = order  # the last one written has the largest share
        gain = height - height[pivot[block]]
        free = (share > 0.0) | (gain > 0.0)
        free[pivot] = False
        movers = np.flatnonzero(free)
        gram = self._gram if self._positive is None else self._masked_gram()
        in_gram = np.append(np.arange(m), np.full(self.n_blocks, m))
        change = np.zeros(len(share))
        while len(movers) and np.abs(gain[movers]).max() > 0.0:
            mine, partner = in_gram[movers], in_gram[pivot[block[movers]]]
            hessian = gram[np.ix_(mine, mine)] - gram[np.ix_(mine, partner)]
            hessian = hessian - gram[np.ix_(partner, mine)] + gram[np.ix_(partner, partner)]
            direction = _newton(hessian, gain[movers])
            blocked = (share[movers] <= 0.0) & (direction < 0.0)
            if not blocked.any():
                change[movers] = direction
                change[pivot] = -np.bincount(block[movers], direction, minlength=self.n_blocks)
                break
            movers = movers[~blocked]  # they would leave at once
        return change

    def _pair_change(self, share: Floats, height: Floats, block: Ints) -> Floats:
        """Return the way from the lowest plane with a share to the highest one, in the block where they differ most."""
        high, low = np.full(self.n_blocks, -np.inf), np.full(self.n_blocks, np.inf)
        np.maximum.at(high, block, height)
        used = share > 0.0
        np.minimum.at(low, block[used], height[used])
        widest = int((high - low).argmax())
        inside = block == widest
        change = np.zeros(len(share))
        change[int(np.where(inside, height, -np.inf).argmax())] += 1.0
        change[int(np.where(inside & used, height, np.inf).argmin())] -= 1.0
        return change

    def _mixture_change(self, share: Floats, height: Floats, block: Ints) -> Floats:
        """Return the way from the mixture of a block to its highest plane, in the block where they differ most."""
        high = np.full(self.n_blocks, -np.inf)
        np.maximum.at(high, block, height)
        widest = int((high - np.bincount(block, share * height, minlength=self.n_blocks)).argmax())
        inside = block == widest
        change = np.where(inside, -share, 0.0)
        change[int(np.where(inside, height, -np.inf).argmax())] += 1.0
        return change

    def _rise(self, change: Floats, slope: float) -> float:
        """Return how much D rises: its slope less how far the weights turn, not a difference of large numbers."""
        turn: Floats = -np.asarray(self.slopes.T @ change)
        if self._positive is None:
            return slope - 0.5 * float(turn @ turn)
        start = self.w
        free: Floats = turn - np.asarray(self.slopes.T @ self.shares)
        end = np.where(self._positive, np.maximum(free, 0.0), free)
        return slope - 0.5 * float((end - start) @ (end - start)) - float(start @ (end - free))

    def _length(self, change: Floats, longest: float, slope: float) -> float:
        """Return the step to the maximum on the line, at most the longest."""
        turn: Floats = -np.asarray(self.slopes.T @ change)
        if self._positive is None:
            curvature = float(turn @ turn)
            return longest if curvature * longest <= slope else slope / curvature
        start: Floats = -np.asarray(self.slopes.T @ self.shares)
        gain = float(self.offsets @ change)

        def derivative(length: float) -> float:
            w: Floats = start + length * turn
            w[self._positive] = np.maximum(w[self._positive], 0.0)
            return gain - float(w @ turn)

        if np.isfinite(longest) and derivative(longest) >= 0.0:
            return longest
        low, high = 0.0, longest if np.isfinite(longest) else 1.0
        while derivative(high) > 0.0:
            low, high = high, 2.0 * high
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if derivative(middle) > 0.0 else (low, middle)
            if high - low <= 1e-15 * high:
                break
        return low

    def _masked_gram(self) -> Floats:
        """Inner products over the weights that are not cut off at zero."""
        w = self.w
        used = np.flatnonzero((w > 0.0) | ~np.asarray(self._positive))
        rows = self.slopes[:, used]
        gram = np.zeros((rows.shape[0] + 1, rows.shape[0] + 1))
        gram[:-1, :-1] = _dense(rows @ rows.T)
        return gram


def _newton(hessian: Floats, gain: Floats) -> Floats:
    scale = float(hessian.diagonal().max())
    if not scale > 0.0:
        return gain
    for ridge in (_RIDGE, 1e-10, 1e-7):
        try:
            factor = scipy.linalg.cho_factor(hessian + ridge * scale * np.eye(len(gain)), check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        direction: Floats = scipy.linalg.cho_solve(factor, gain, check_finite=False)
        if float(direction @ gain) > 0.0:
            return direction
    return gain / scale


def _dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray(), dtype=np.float64)
