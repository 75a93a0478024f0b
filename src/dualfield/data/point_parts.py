"""Points in partitions: arrays, functions that make them, delayed values or futures, read where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from dualfield.data.arrays import Floats

_WHAT = (
    "a pair (X, y) or triple (X, y, sample_weight) of arrays, a function without arguments that returns one, a path, "
    "a delayed value or a future"
)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one partition that count: those with a weight above zero.

    Parameters
    ----------
    index : int
        Which partition it is.
    name : str
        What errors call it.
    X : array or sparse array of shape (n, n_features)
        Points.
    y : array of shape (n,)
        Labels.
    weights : array of shape (n,)
        Above zero.
    """

    index: int
    name: str
    X: Any
    y: NDArray[Any]
    weights: Floats

    @property
    def n_bytes(self) -> int:
        """Memory of the points."""
        X = self.X
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if bool(sparse.issparse(X)) else int(X.nbytes)


@dataclass(frozen=True, eq=False)
class PointPart:
    """A partition that has not been read.

    Parameters
    ----------
    index : int
        Its place among all.
    name : str
        What errors call it.
    source : object
        Where the rows come from.
    """

    index: int
    name: str
    source: Any

    @property
    def is_here(self) -> bool:
        """Whether the rows are arrays in the memory of this process."""
        return isinstance(self.source, tuple) and all(hasattr(one, "dtype") for one in self.source)

    @property
    def is_slow(self) -> bool:
        """Whether reading takes much longer than reading arrays, as that of text does."""
        return hasattr(type(self.source), "is_slow") and bool(self.source.is_slow)

    @property
    def is_future(self) -> bool:
        """Whether a cluster has, or will have, the rows."""
        return _is_future(self.source)


def point_parts(
    X: Any, y: Any = None, opened: Callable[[str], Callable[[], Any]] | None = None, *, of_sequences: bool = False
) -> list[PointPart] | None:
    """Return the partitions that are meant by what was passed as X and y, or None if that is one set of points.

    Parameters
    ----------
    X : object
        A list of partitions; or a Dask array, with y another: its blocks of rows.
    y : object, default=None
        Labels are in the partitions, unless X is a Dask array.
    opened : callable, default=None
        Makes a function that reads a file, of its path.
    of_sequences : bool, default=False
        Whether partitions are pairs of sequences and their labels, which stay lists.

    Returns
    -------
    list of PointPart or None
        None for a matrix, or numbers in lists.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data.point_parts import point_parts
    >>> [part.name for part in point_parts([(np.zeros((2, 1)), [0, 1]), (np.ones((3, 1)), [1, 1, 0])])]
    ['parts[0]', 'parts[1]']
    >>> point_parts([[0.0], [1.0]], [0, 1]) is None
    True
    """
    if _is_dask_array(X) and _is_dask_array(y):
        return _blocks(X, y)
    if y is not None or not isinstance(X, Sequence) or isinstance(X, str) or not len(X):
        return None
    sources = [_source(one, opened, of_sequences) for one in X]
    if not any(source is not None for source in sources):
        return None
    for index, source in enumerate(sources):
        if source is None:
            raise ValueError(f"parts[{index}] must be {_WHAT}. Got {type(X[index]).__name__}.")
    return [PointPart(index, _name(X[index], index), source) for index, source in enumerate(sources)]


def client_of_parts(parts: Sequence[PointPart]) -> Any:
    """Return the client of the cluster that has the partitions, if they are futures; else None."""
    return parts[0].source.client if parts and parts[0].is_future else None


def read_rows(part: PointPart | Rows) -> Rows:
    """Read a partition, check it, and leave out rows of weight zero.

    Parameters
    ----------
    part : PointPart or Rows
        The partition; rows that have been read are returned as they are.

    Returns
    -------
    Rows
        What counts.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data.point_parts import PointPart, read_rows
    >>> read_rows(PointPart(0, "parts[0]", (np.eye(2), ["a", "b"], [0.0, 1.0]))).y
    array(['b'], dtype='<U1')
    """
    if isinstance(part, Rows):
        return part
    return rows_of_values(computed(part.source), part.index, part.name)


def rows_of_values(given: Any, index: int, name: str) -> Rows:
    """Return the rows of a pair or triple of arrays, checked."""
    if callable(given) and not hasattr(given, "dtype"):  # a future, or delayed value, of a function that reads
        given = computed(given)
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= 3:
        raise ValueError(f"{name} must be {_WHAT}. Got {type(given).__name__}.")
    X, y = computed(given[0]), computed(given[1])
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_min_samples=0,
        ensure_min_features=0,
        input_name=f"X of {name}",
    )
    if y is None:
        raise ValueError(f"{name} has no labels: y is None.")
    y = column_or_1d(y)
    if len(y) != X.shape[0]:
        raise ValueError(f"{name} must have a label for each row. Got {X.shape[0]} rows and {len(y)} labels.")
    if len(y):
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise ValueError(f"y of {name}: {error}") from None
    weights = np.ones(len(y)) if len(given) < 3 or given[2] is None else _weights(computed(given[2]), len(y), name)
    X = _canonical(X) if sparse.issparse(X) else X
    if (weights > 0.0).all():
        return Rows(index, name, X, y, weights)
    counted = np.flatnonzero(weights > 0.0)
    return Rows(index, name, X[counted], y[counted], weights[counted])


def _canonical(X: Any) -> Any:
    """Return compressed rows without entries that are there twice; the caller's arrays stay as they are."""
    rows = sparse.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _weights(given: Any, n: int, name: str) -> Floats:
    weights = np.asarray(given, dtype=np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0.0).any():
        raise ValueError(f"sample_weight of {name} must be {n} finite numbers of at least 0.")
    return weights


def computed(given: Any) -> Any:
    """Return what a delayed value or a function without arguments stands for."""
    if hasattr(given, "__dask_graph__"):
        return given.compute(scheduler="synchronous")  # inside a task, or in this process
    return given() if callable(given) and not hasattr(given, "dtype") else given


def _source(given: Any, opened: Callable[[str], Callable[[], Any]] | None, of_sequences: bool) -> Any:
    """Return where the rows of a partition come from; None if this is no partition."""
    if isinstance(given, str) or hasattr(given, "__fspath__"):
        return None if opened is None else opened(str(given))
    if of_sequences and isinstance(given, tuple):
        return given if len(given) == 2 else None
    if isinstance(given, tuple) and 2 <= len(given) <= 3 and np.ndim(given[0]) != 0:
        # Lists become arrays once, and not at every reading.
        return tuple(one if one is None or hasattr(one, "dtype") else np.asarray(one) for one in given)
    is_lazy = hasattr(given, "__dask_graph__") or _is_future(given)
    return given if is_lazy or (callable(given) and not hasattr(given, "dtype")) else None


def _is_future(given: Any) -> bool:
    # Delayed values have any attribute that they are asked for.
    return not hasattr(given, "__dask_graph__") and hasattr(given, "key") and hasattr(given, "client")


def _name(given: Any, index: int) -> str:
    is_path = isinstance(given, str) or hasattr(given, "__fspath__")
    return str(given) if is_path else f"parts[{index}]"


def _is_dask_array(given: Any) -> bool:
    return hasattr(given, "__dask_graph__") and hasattr(given, "to_delayed") and hasattr(given, "chunks")


def _blocks(X: Any, y: Any) -> list[PointPart]:
    """Return the blocks of rows of two Dask arrays."""
    if X.ndim != 2 or y.ndim != 1:
        raise ValueError(f"X and y must have 2 and 1 dimensions. Got {X.ndim} and {y.ndim}.")
    X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
    if X.chunks[0] != y.chunks[0]:
        raise ValueError(
            "X and y must have the same blocks of rows: use y.rechunk({0: X.chunks[0]}). "
            f"Got {len(X.chunks[0])} and {len(y.chunks[0])} blocks."
        )
    pairs = zip(X.to_delayed()[:, 0], y.to_delayed(), strict=True)
    return [PointPart(index, f"block {index}", pair) for index, pair in enumerate(pairs)]
