"""How often columns occur with labels, and labels behind each other: what features of a model are chosen by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.batch import Batch

__all__ = ["FeatureCounts"]

_MOST_DENSE = 1 << 24  # pairs of labels that are counted in a table


@dataclass(frozen=True, eq=False)
class FeatureCounts:
    """How often each column occurs with each output, as in CSR form.

    Parameters
    ----------
    indptr : int64 array of shape (n_columns + 1,)
        Where the outputs of each column start.
    outputs : int32 array of shape (n_features,)
        Labels, or pairs of labels as ``first * n_labels + second``; rising within a column.
    counts : int64 array of shape (n_features,)
        In how many entries of rows the column has this output; entries of weight 0 do not count.
    n_outputs : int
        How many outputs there are.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data import Batch, FeatureCounts
    >>> batch = Batch.build([[["a"], ["a", "b"], ["a"]]])
    >>> counts = FeatureCounts.of(batch, np.array([0, 1, 1], dtype=np.int32), 2)
    >>> counts.indptr.tolist(), counts.outputs.tolist(), counts.counts.tolist()
    ([0, 2, 3], [0, 1, 1], [1, 2, 1])
    >>> indptr, outputs = counts.at_least(2)
    >>> indptr.tolist(), outputs.tolist()
    ([0, 1, 1], [1])
    """

    indptr: NDArray[np.int64]
    outputs: NDArray[np.int32]
    counts: NDArray[np.int64]
    n_outputs: int

    @classmethod
    def of(cls, batch: Batch, outputs: NDArray[np.int32], n_outputs: int) -> FeatureCounts:
        """Count the outputs that occur with each column.

        Parameters
        ----------
        batch : Batch
            Sparse rows.
        outputs : int32 array of shape (n_nodes,)
            What occurs at each row; -1 where nothing does.
        n_outputs : int
            How many outputs there are.

        Returns
        -------
        FeatureCounts
            With a row for each column of the batch.
        """
        assert batch.indptr is not None
        assert batch.indices is not None
        found = _native.count_outputs(batch.indptr, batch.indices, batch.values, outputs, batch.n_columns, n_outputs)
        return cls(*found, n_outputs)

    @classmethod
    def sum(cls, parts: Sequence[FeatureCounts], maps: Sequence[NDArray[np.int32]], n_columns: int) -> FeatureCounts:
        """Add up counts of the same outputs whose columns have other numbers.

        Parameters
        ----------
        parts : sequence of FeatureCounts
            The counts.
        maps : sequence of int32 arrays
            For each of them, what its columns are called in the sum.
        n_columns : int
            Columns of the sum.

        Returns
        -------
        FeatureCounts
            The sum.
        """
        n_outputs = max((part.n_outputs for part in parts), default=0)
        shape = (n_columns, max(n_outputs, 1))
        # Like with like, as in a merge sort, so that no sum is made again and again, nor all parts held at once.
        waiting: list[tuple[int, scipy.sparse.csr_array]] = []
        for part, names in zip(parts, maps, strict=True):
            places = np.repeat(names, np.diff(part.indptr)), part.outputs
            total, level = scipy.sparse.coo_array((part.counts, places), shape=shape).tocsr(), 0
            while waiting and waiting[-1][0] == level:
                total, level = waiting.pop()[1] + total, level + 1
            waiting.append((level, total))
        total = scipy.sparse.csr_array(shape, dtype=np.int64)
        while waiting:
            total = waiting.pop()[1] + total
        total.sort_indices()
        return cls(total.indptr.astype(np.int64), total.indices.astype(np.int32), total.data, n_outputs)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.indptr.size - 1

    def at_least(self, min_freq: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the features that occur often enough.

        Parameters
        ----------
        min_freq : int
            How often an output must occur with a column; 0 counts as 1.

        Returns
        -------
        indptr, outputs : int64 array of shape (n_columns + 1,), int32 array
            As in :class:`~dualfield.scores.FeatureTable`, of which they are the first two arguments.
        """
        if min_freq <= 1:
            return np.asarray(self.indptr), np.asarray(self.outputs)
        keep = self.counts >= min_freq
        before = np.concatenate([[0], np.cumsum(keep)])
        return before[self.indptr].astype(np.int64), self.outputs[keep]


def pair_codes(codes: NDArray[np.int32], offsets: NDArray[np.int64], n_labels: int) -> NDArray[np.int32]:
    """Return for each node the pair of labels that ends there, ``first * n_labels + second``; -1 at first nodes."""
    pairs = np.full(codes.size, -1, dtype=np.int32)
    if codes.size:
        pairs[1:] = codes[:-1] * np.int32(n_labels) + codes[1:]
        starts = offsets[:-1]
        pairs[starts[starts < codes.size]] = -1
    return pairs


def count_pairs(pairs: NDArray[np.int32], n_labels: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of labels that occur, rising, and how often each does."""
    pairs = pairs[pairs >= 0]
    if n_labels**2 > _MOST_DENSE:
        distinct, times = np.unique(pairs, return_counts=True)
        return distinct.astype(np.int64), times.astype(np.int64)
    counts = np.bincount(pairs, minlength=n_labels**2)
    found = np.flatnonzero(counts)
    return found.astype(np.int64), counts[found].astype(np.int64)
