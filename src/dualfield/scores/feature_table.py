"""Which columns have weights for which outputs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data import Batch

__all__ = ["FeatureTable"]

# Dense matrices with more zeros than this are faster as sparse ones.
_MOST_ZEROS = 0.5


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Which columns have a weight for which outputs, as in CSR form.

    Parameters
    ----------
    indptr : int64 array of shape (n_columns + 1,)
        Where the outputs of each column start.
    outputs : int32 array of shape (n_features,)
        Labels, or cliques; rising within a column.
    n_outputs : int
        How many there are.

    Examples
    --------
    >>> from dualfield.scores import FeatureTable
    >>> FeatureTable.all(3, 2).outputs
    array([0, 1, 0, 1, 0, 1], dtype=int32)
    """

    indptr: NDArray[np.int64]
    outputs: NDArray[np.int32]
    n_outputs: int

    @classmethod
    def all(cls, n_columns: int, n_outputs: int, without: int | None = None) -> FeatureTable:
        """Give every column a weight for every output, or for all but one.

        Parameters
        ----------
        n_columns, n_outputs : int
            Sizes.
        without : int, default=None
            An output that has no weights.

        Returns
        -------
        FeatureTable
            With n_columns features for each output that has weights.

        Examples
        --------
        >>> FeatureTable.all(2, 2).indptr
        array([0, 2, 4])
        """
        outputs = np.setdiff1d(np.arange(n_outputs, dtype=np.int32), [] if without is None else [without])
        outputs = outputs.astype(np.int32)
        indptr = outputs.size * np.arange(n_columns + 1, dtype=np.int64)
        return cls(indptr, np.tile(outputs, n_columns), n_outputs)

    @classmethod
    def none(cls, n_columns: int, n_outputs: int) -> FeatureTable:
        """Give no column a weight.

        Parameters
        ----------
        n_columns, n_outputs : int
            Sizes.

        Returns
        -------
        FeatureTable
            Without features.

        Examples
        --------
        >>> FeatureTable.none(2, 2).outputs.size
        0
        """
        return cls(np.zeros(n_columns + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), n_outputs)

    @classmethod
    def observed(cls, batch: Batch, outputs: NDArray[np.int32], n_outputs: int, min_freq: int = 1) -> FeatureTable:
        """Give a column a weight for the outputs that occur with it.

        Parameters
        ----------
        batch : Batch
            Rows of features.
        outputs : int32 array of shape (n_nodes,)
            What occurs at each row; -1 where nothing does.
        n_outputs : int
            How many there are.
        min_freq : int, default=1
            How often an output must occur with a column.

        Returns
        -------
        FeatureTable
            The features found.

        Examples
        --------
        >>> from dualfield.data import Batch
        >>> batch = Batch.build([[["a"], ["a", "b"]]])
        >>> FeatureTable.observed(batch, np.array([0, 1], dtype=np.int32), 2).outputs
        array([0, 1, 1], dtype=int32)
        """
        indptr, found = _native.observe_features(native_rows(batch), outputs, n_outputs, max(min_freq, 1))
        return cls(indptr, found, n_outputs)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.indptr.size - 1

    @property
    def columns(self) -> NDArray[np.int64]:
        """The column of each feature."""
        return np.repeat(np.arange(self.n_columns), np.diff(self.indptr))

    @cached_property
    def _native_map(self) -> _native.LinearMap:
        return _native.LinearMap(self.n_outputs, self.indptr, self.outputs)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_native_map"}


def native_rows(batch: Batch) -> _native.FeatureRows:
    """Create the native twin of the rows of a batch."""
    if batch.dense is None:
        return _native.FeatureRows(batch.indptr, batch.indices, batch.values, None, batch.n_columns)
    dense = np.ascontiguousarray(batch.dense, dtype=np.float64)
    if dense.size and np.count_nonzero(dense) < _MOST_ZEROS * dense.size:
        sparse = scipy.sparse.csr_array(dense)
        indptr, indices = sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32)
        values = None if (sparse.data == 1.0).all() else sparse.data
        return _native.FeatureRows(indptr, indices, values, None, batch.n_columns)
    return _native.FeatureRows(None, None, None, dense, batch.n_columns)
