"""Mixtures of planes under any regulariser: a concave programme on a product of simplices, from the inside."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from dualfield.data.arrays import Floats, Ints
from dualfield.regularisers import Interior, PlaneRegulariser, Response
from dualfield.regularisers.interior import room
from dualfield.solvers.planes.mixture_systems import ByParameters, ByPlanes

__all__ = ["MixtureMaster"]

_MOST_STEPS = 100
_NOT_TO_THE_END = 0.99  # of the way on which the first share or slack would vanish
_LEAST_TARGET = 1e-4  # beside what is left
_STIR = 0.1  # how much of an even mixture is stirred in to begin with
_NOTHING = 1e-16  # beside the sum of what all shares do
_SHORTEST = 1e-10
_LEAST_WORK = 5e6  # of a step, however small its systems are
_LOOSE = 3.0  # times the tolerance: what the answer to the shares may lack
_MOST_TIGHTER = 6


class MixtureMaster:
    r"""Find the best mixture of planes collected so far.

    .. math::
        \max_\alpha \; G(\alpha) = \langle b, \alpha \rangle
        + \min_w \, [ R(w) + \langle A^\top \alpha, w \rangle + \tfrac{\gamma}{2} \|w - \bar w\|^2 ],
        \qquad \alpha \ge 0, \quad \sum_{j \in \mathrm{block}} \alpha_j \le 1

    What a block lacks to one belongs to the plane 0 of the truth. The method is a primal-dual interior-point method
    with Mehrotra's choice of the target: parameters w and heights :math:`\xi` of the blocks on one side, shares on the
    other, every share times what its plane lacks to :math:`\xi` on the way to a common target that goes to zero.

    Parameters
    ----------
    regulariser : PlaneRegulariser
        R of the formula.
    n_blocks : int
        How many mixtures there are.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from dualfield.regularisers import SquaredNorm
    >>> from dualfield.solvers.planes.mixture_master import MixtureMaster
    >>> master = MixtureMaster(SquaredNorm(2), 1)
    >>> slopes = scipy.sparse.csr_array([[-2.0, 0.0], [0.0, -1.0]])
    >>> master.add(slopes, np.array([1.0, 1.0]), np.zeros(2, dtype=np.int64))
    >>> master.solve(1e-12)
    >>> master.shares.round(6), master.response.w.round(6)
    (array([0.2, 0.8]), array([0.4, 0.8]))
    """

    def __init__(self, regulariser: PlaneRegulariser, n_blocks: int) -> None:
        self.n_blocks, self._regulariser = n_blocks, regulariser
        self._anchor, self._pull = regulariser.origin(), 1.0
        self.slopes = scipy.sparse.csr_array((0, regulariser.n_parameters))
        self.offsets, self.shares, self.blocks = np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)
        self.response = self._respond(self.shares)
        self.work = 0.0  # multiplications in Newton's equations

    @property
    def slope(self) -> Floats:
        """The slope of the mixture: μ of the dual."""
        return np.asarray(self.slopes.T @ self.shares)

    @property
    def offset(self) -> float:
        """The offset of the mixture: ω of the dual."""
        return float(self.offsets @ self.shares)

    @property
    def value(self) -> float:
        """G of the mixture."""
        return self.offset + self.response.value

    def move_anchor(self, anchor: Floats, pull: float) -> None:
        """Change what the parameters are pulled to.

        Parameters
        ----------
        anchor : array of shape (n_parameters,)
            The new anchor.
        pull : float
            γ of the formula.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import TableDivergence
        >>> from dualfield.solvers.planes.mixture_master import MixtureMaster
        >>> master = MixtureMaster(TableDivergence(np.ones(2), np.zeros(2, dtype=np.int64)), 1)
        >>> master.move_anchor(np.log([0.25, 0.75]), 1e9)
        >>> np.exp(master.response.w).round(3)
        array([0.25, 0.75])
        """
        self._anchor, self._pull = anchor, pull
        self.response = self._respond(self.shares)

    def add(self, slopes: scipy.sparse.csr_array, offsets: Floats, blocks: Ints) -> None:
        """Add planes, with shares of zero.

        Parameters
        ----------
        slopes : scipy.sparse.csr_array of shape (m, n_parameters)
            Slopes, times the weights of their examples.
        offsets : array of shape (m,)
            Offsets, times the weights of their examples.
        blocks : int array of shape (m,)
            The block of each.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers.planes.mixture_master import MixtureMaster
        >>> master = MixtureMaster(SquaredNorm(1), 1)
        >>> master.add(scipy.sparse.csr_array([[1.0]]), np.ones(1), np.zeros(1, dtype=np.int64))
        >>> master.shares
        array([0.])
        """
        self.slopes = scipy.sparse.vstack([self.slopes, slopes], format="csr")
        self.offsets = np.concatenate([self.offsets, offsets])
        self.shares = np.concatenate([self.shares, np.zeros(len(offsets))])
        self.blocks = np.concatenate([self.blocks, blocks])

    def begin(self, shares: Floats) -> None:
        """Begin with other shares.

        Parameters
        ----------
        shares : array of shape (n_planes,)
            At least 0, and at most 1 in sum over a block.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers.planes.mixture_master import MixtureMaster
        >>> master = MixtureMaster(SquaredNorm(1), 1)
        >>> master.add(scipy.sparse.csr_array([[1.0]]), np.ones(1), np.zeros(1, dtype=np.int64))
        >>> master.begin(np.array([0.5]))
        >>> master.response.w
        array([-0.5])
        """
        self.shares, self.response = shares.copy(), self._respond(shares)

    def trim(self, most: int, least: float = 0.0) -> bool:
        """Melt planes with the smallest shares into one for each block.

        The mixture stays what it is: Hearn, Lawphongpanich and Ventura (1987).

        Parameters
        ----------
        most : int
            How many planes a block may keep.
        least : float, default=0.0
            Planes with no larger part of the mean share of their block are melted as well.

        Returns
        -------
        bool
            Whether a block had more planes than it may keep.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers.planes.mixture_master import MixtureMaster
        >>> master = MixtureMaster(SquaredNorm(2), 1)
        >>> slopes = scipy.sparse.csr_array([[-2.0, 0.0], [0.0, -1.0]])
        >>> master.add(slopes, np.array([1.0, 1.0]), np.zeros(2, dtype=np.int64))
        >>> master.solve(1e-12)
        >>> master.trim(1)
        True
        >>> master.slopes.toarray().round(6), master.shares.round(6)
        (array([[-0.4, -0.8]]), array([1.]))
        """
        order = np.lexsort((-self.shares, self.blocks))  # the largest shares of each block first
        first = np.searchsorted(self.blocks[order], np.arange(self.n_blocks))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - first[self.blocks[order]]
        # Where margins are hard the plane 0 has nearly everything: small is what is so beside the other planes.
        totals, counts = (np.bincount(self.blocks, one, minlength=self.n_blocks) for one in (self.shares, None))
        small = self.shares <= (least * totals / np.maximum(counts, 1))[self.blocks]
        crowded = np.bincount(self.blocks[~small], minlength=self.n_blocks) >= most
        melting = small | (crowded[self.blocks] & (rank >= most - 1))
        kept, gone = np.flatnonzero(~melting), np.flatnonzero(melting & (self.shares > 0.0))
        share = np.bincount(self.blocks[gone], self.shares[gone], minlength=self.n_blocks)
        melted = np.flatnonzero(share)
        number = np.cumsum(share > 0.0) - 1
        weights = self.shares[gone] / share[self.blocks[gone]]
        sums = scipy.sparse.csr_array(
            (weights, (number[self.blocks[gone]], gone)), shape=(len(melted), len(self.shares))
        )
        self.offsets = np.concatenate([self.offsets[kept], sums @ self.offsets])
        self.slopes = scipy.sparse.vstack([self.slopes[kept], sums @ self.slopes], format="csr")
        self.shares = np.concatenate([self.shares[kept], share[melted]])
        self.blocks = np.concatenate([self.blocks[kept], melted])
        return bool(crowded.any())

    def solve(self, tol: float) -> None:
        """Move the shares until G is about within tol of its maximum.

        Parameters
        ----------
        tol : float
            On what is left of the shares times the distances of their planes from the highest, and of Newton's step.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers.planes.mixture_master import MixtureMaster
        >>> master = MixtureMaster(SquaredNorm(1), 1)
        >>> master.add(scipy.sparse.csr_array([[-0.5]]), np.ones(1), np.zeros(1, dtype=np.int64))
        >>> master.solve(1e-12)
        >>> master.response.w.round(6)
        array([0.5])
        """
        if not len(self.offsets):
            return
        inside = self._regulariser.interior(self.slopes, self.response.w, self._anchor, self._pull)
        way = _Way(inside, self.slopes, self.offsets, self.blocks, self.n_blocks, self.shares)
        # What a share does to the mixture counts, not how small it is: slopes may be large.
        sizes = np.abs(self.offsets) + np.sqrt(np.asarray(self.slopes.multiply(self.slopes).sum(axis=1)))
        # The parameters that answer the shares are not quite those inside: where they turn quickly the way must go on.
        for exactness in tol * 0.1 ** np.arange(_MOST_TIGHTER):
            before = way.n_steps
            arrived = way.go(exactness)
            self.work += (way.n_steps - before) * way.work
            self.shares = np.where(way.shares * sizes > _NOTHING * (way.shares @ sizes), way.shares, 0.0)
            self.response = self._respond(self.shares)
            if self.lack() <= _LOOSE * tol:
                return
            if not arrived:
                break
        self._stay_inside(inside.w)

    def lack(self) -> float:
        """Return how far G is from its maximum at most: the heights of the highest planes less that of the mixture.

        Returns
        -------
        float
            At least 0 up to rounding.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers.planes.mixture_master import MixtureMaster
        >>> master = MixtureMaster(SquaredNorm(1), 1)
        >>> master.add(scipy.sparse.csr_array([[-0.5]]), np.ones(1), np.zeros(1, dtype=np.int64))
        >>> master.lack()
        1.0
        """
        heights = self.offsets + self.slopes @ self.response.w
        highest = np.zeros(self.n_blocks)  # the plane 0 is among them
        np.maximum.at(highest, self.blocks, heights)
        return float(highest.sum() - heights @ self.shares)

    def _stay_inside(self, w: Floats) -> None:
        """Take the parameters inside where planes are lower there than at those that answer the shares.

        Where slopes are large, rounding of the mixture's slope moves the answer by more than planes allow. The bound
        does not suffer: it is that of the shares.
        """
        if not self._regulariser.needs_anchor and self._model(w) < self._model(self.response.w):
            self.response = Response(w, self.response.value)

    def _model(self, w: Floats) -> float:
        """Return R(w) and the heights of the highest planes at w."""
        highest = np.zeros(self.n_blocks)
        np.maximum.at(highest, self.blocks, self.offsets + self.slopes @ w)
        return self._regulariser.value(w) + float(highest.sum())

    def _respond(self, shares: Floats) -> Response:
        return self._regulariser.respond(np.asarray(self.slopes.T @ shares), self._anchor, self._pull)


class _Turn(NamedTuple):
    """Changes of shares, of those of the planes 0, of heights, and of what planes lack to them."""

    shares: Floats
    truth: Floats
    top: Floats
    lack: Floats


class _Way:
    """The way of shares, heights and parameters to the best mixture."""

    def __init__(
        self,
        inside: Interior,
        slopes: scipy.sparse.csr_array,
        offsets: Floats,
        blocks: Ints,
        n_blocks: int,
        shares: Floats,
    ) -> None:
        self._inside, self._slopes, self._offsets = inside, slopes, offsets
        self._columns = slopes.T.tocsr()
        self._blocks, self._n_blocks = blocks, n_blocks
        self._used = np.flatnonzero(np.diff(self._columns.indptr))
        few = len(self._used) <= slopes.shape[0]
        self._dense = np.ascontiguousarray(self._columns[self._used].toarray().T) if few else None
        self.n_steps, rows, columns = 0, float(slopes.shape[0]), float(len(self._used))
        # Of a step: products of slopes, and what eliminates the unknowns.
        self.work = _LEAST_WORK + (columns**2 * (rows + columns) if few else rows**2 * (rows + columns + n_blocks))
        even = 1.0 / (1.0 + self._by_block(np.ones(len(blocks))))
        self._truth = (1.0 - _STIR) * np.maximum(1.0 - self._by_block(shares), 0.0) + _STIR * even
        self.shares = (1.0 - _STIR) * shares + _STIR * even[blocks]
        # Heights a little above the highest planes, by what an exact solution would be expected to lack.
        heights = offsets + slopes @ inside.w
        top = np.zeros(n_blocks)
        np.maximum.at(top, blocks, heights)
        lack = float((top - self._by_block(self.shares * heights)).sum())
        self._top = top + 0.1 * max(lack, 1e-3 * float(np.abs(offsets).sum()), 1e-12) / n_blocks

    def go(self, tol: float) -> bool:
        """Make steps until what is left to gain is within tol; False where rounding leaves no step before that."""
        return any(self._step(tol) for _ in range(_MOST_STEPS)) and self._left <= tol

    def _step(self, tol: float) -> bool:
        """Make one step; True at the end, where there is none to make."""
        inside, shares, truth, top = self._inside, self.shares, self._truth, self._top
        lack = top[self._blocks] - self._offsets - self._slopes @ inside.w
        gap = float(shares @ lack) + float(truth @ top) + inside.complementarity
        inside.linearise(np.asarray(self._columns @ shares))
        self._left = gap + inside.decrement
        if self._left <= tol:
            return True
        self.n_steps += 1
        n_pairs = len(shares) + self._n_blocks + inside.n_pairs
        factor = self._factor(lack / shares, truth / top)
        # Mehrotra: a step that aims at zero tells how far the target can be lowered, and the products of changes.
        turn = self._turn(factor, lack, 0.0, 0.0, 0.0)
        length = min(1.0, _NOT_TO_THE_END * self._longest(turn, lack))
        left = float((shares + length * turn.shares) @ (lack + length * turn.lack))
        left += float((truth + length * turn.truth) @ (top + length * turn.top))
        left += (1.0 - length) * inside.complementarity
        # What is left to gain must not run ahead of what the parameters lack to answer the shares: where slopes are
        # large, stirring has moved them far. Parameters that constraints tie together come back by themselves.
        behind = 0.0 if inside.metric is None else min((1.0 - length) ** 2 * inside.decrement / gap, 1.0)
        target = max(float(np.clip((left / gap) ** 3, _LEAST_TARGET, 0.8)), behind) * gap / n_pairs
        turn = self._turn(factor, lack, target, turn.shares * turn.lack, turn.truth * turn.top)
        length = min(1.0, _NOT_TO_THE_END * self._longest(turn, lack))
        if not length > _SHORTEST:
            return True
        self.shares, self._truth = shares + length * turn.shares, truth + length * turn.truth
        self._top = top + length * turn.top
        inside.move(length)
        total = self._by_block(self.shares) + self._truth
        self.shares, self._truth = self.shares / total[self._blocks], self._truth / total
        return False

    def _factor(self, ratio: Floats, truth_ratio: Floats) -> ByPlanes | ByParameters:
        """Take the smaller of two systems with the same solution: one row for each plane, or for each parameter."""
        metric = self._inside.metric
        if metric is None or self._dense is None:
            return ByPlanes(self._inside.gram(), ratio, truth_ratio, self._blocks, self._n_blocks, self._columns)
        return ByParameters(self._dense, metric[self._used], ratio, truth_ratio, self._blocks, self._n_blocks)

    def _turn(
        self,
        factor: ByPlanes | ByParameters,
        lack: Floats,
        target: float,
        product: Floats | float,
        truth_product: Floats | float,
    ) -> _Turn:
        """Solve Newton's equations: shares times lacks become the target, less products of changes that are known."""
        still = self._inside.turn(np.zeros(self._slopes.shape[1]), target)
        ask = self._slopes @ still + (target - product) / self.shares - lack
        change, change_truth, rise, push = factor.solve(ask, (target - truth_product) / self._truth - self._top)
        turn = self._inside.turn(self._spread(push), target)
        return _Turn(change, change_truth, rise, rise[self._blocks] - self._slopes @ turn)

    def _longest(self, turn: _Turn, lack: Floats) -> float:
        limits = (
            *(room(self.shares, turn.shares), room(self._truth, turn.truth)),
            *(room(self._top, turn.top), room(lack, turn.lack)),
        )
        return min(*limits, self._inside.longest())

    def _spread(self, slope: Floats) -> Floats:
        """Return a slope over all parameters."""
        if len(slope) == self._slopes.shape[1]:
            return slope
        whole = np.zeros(self._slopes.shape[1])
        whole[self._used] = slope
        return whole

    def _by_block(self, values: Floats) -> Floats:
        return np.bincount(self._blocks, values, minlength=self._n_blocks).astype(np.float64)
