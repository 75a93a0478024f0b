"""Margins of tables on a compiled corpus: planes of groups of blocks, which are read one after another."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data import Batch
from dualfield.data.arrays import Codes, Floats
from dualfield.objectives.planes import Planes
from dualfield.regularisers import Regulariser
from dualfield.scores.tables import TableLayout


class CorpusPlanes:
    r"""What a discriminative HMM minimises on a compiled corpus.

    .. math::
        P(\theta) = R(\theta) + \eta \sum_k \max_s [ \Delta(s_k, s) + \log P(s, o_k) - \log P(s_k, o_k) ]

    An example is a group of neighbouring blocks: the sum of its losses is a maximum of planes, and the highest is
    the sum of the highest planes of its sentences.

    Parameters
    ----------
    layout : TableLayout
        Where the tables are.
    groups : list of ranges
        The blocks of each group.
    read : callable
        Returns the rows of a block, one entry for each stream, and its states.
    eta : float
        Weight of the margins.
    cost : array of shape (n_states, n_states)
        Δ of the formula.
    regulariser : Regulariser
        R of the formula.
    check : callable
        Called with the bytes of the planes of each pass; raises where these are too many.
    n_threads : int
        Number of threads.
    """

    def __init__(
        self,
        layout: TableLayout,
        groups: list[range],
        read: Callable[[int], tuple[Batch, Codes]],
        *,
        eta: float,
        cost: Floats,
        regulariser: Regulariser,
        check: Callable[[int], None],
        n_threads: int,
    ) -> None:
        self._layout, self._groups, self._read, self._cost, self._check = layout, groups, read, cost, check
        self.weights, self.regulariser, self._n_threads = np.full(len(groups), eta), regulariser, n_threads

    @property
    def n_examples(self) -> int:
        """Number of groups."""
        return len(self._groups)

    @property
    def n_parameters(self) -> int:
        """Length of the vector of tables."""
        return self._layout.score_map.n_parameters

    def planes(self, w: Floats, examples: NDArray[np.int64] | None = None) -> Planes:
        """Return the highest plane of each group at w, or of those listed."""
        chosen = np.arange(self.n_examples) if examples is None else np.asarray(examples, dtype=np.int64)
        found = [self._plane(w, self._groups[group]) for group in chosen.tolist()]
        rows, offsets = [row for row, _ in found], np.array([offset for _, offset in found])
        self._check(sum(row.data.nbytes + row.indices.nbytes for row in rows))
        keys: list[Hashable] = [(row.indices.tobytes(), row.data.tobytes()) for row in rows]
        return Planes(chosen, offsets, scipy.sparse.vstack(rows, format="csr"), keys)

    def _plane(self, w: Floats, blocks: range) -> tuple[scipy.sparse.csr_array, float]:
        score_map, offset = self._layout.score_map, 0.0
        slope = scipy.sparse.csr_array((1, self.n_parameters))
        for block in blocks:
            batch, truth = self._read(block)
            scores = score_map.scores(w, batch, n_threads=self._n_threads)
            states = score_map.structure.argmax(scores, cost=self._cost[truth], n_jobs=self._n_threads)
            offset += float(self._cost[truth, states].sum())
            slope = slope + self._layout.differences(batch, states, truth)
        slope.eliminate_zeros()
        return slope, offset
