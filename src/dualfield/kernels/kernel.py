"""Mercer kernels between points: linear, polynomial, RBF, Laplacian, sigmoid, precomputed, or user-defined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.data.records import Fields, Record

__all__ = ["Kernel"]

Points = Any  # a dense matrix or scipy's compressed rows, checked by whoever hands them in

KERNEL_NAMES = ("linear", "poly", "rbf", "laplacian", "sigmoid", "precomputed")

# Compressed rows are unpacked where this many times their memory is affordable: dense code is that much faster.
_UNPACK = 32
_UNPACK_BYTES = 2**31
# Values of so many bits are computed faster than fresh memory is made ready for them, if there are so many bytes.
_STREAM_BITS, _STREAM_FROM = 384, 2**24

# Compressed rows of zeros and ones become bits all the same up to this many features, four words for each point.
_FEW_FEATURES = 256
# What is computed block by block needs no more memory than this for a block.
_BLOCK_BYTES = 2**26


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel function with its parameters.

    The functions are those of :mod:`sklearn.metrics.pairwise`: ``linear`` ⟨x, z⟩; ``poly`` (γ⟨x, z⟩ + coef0)^degree;
    ``rbf`` exp(−γ‖x − z‖²); ``laplacian`` exp(−γ‖x − z‖₁); ``sigmoid`` tanh(γ⟨x, z⟩ + coef0). ``precomputed`` takes
    kernel values in place of points; a callable gets two sets of points and returns the matrix of values.

    Points whose features are all 0 or 1 are bit-packed. The value then depends only on a count, of features that differ
    or that both points have, and is looked up in a table: several times faster, and exact up to the rounding of the
    function itself.

    Parameters
    ----------
    function : str or callable
        One of ``KERNEL_NAMES``, or ``f(X, Y, **params)`` that returns an array of shape (n_x, n_y).
    gamma : float, default=1.0
        γ in the formulas above.
    coef0 : float, default=0.0
        Constant of ``poly`` and ``sigmoid``.
    degree : float, default=3.0
        Exponent of ``poly``.
    params : mapping, default={}
        Keyword arguments for a callable.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels.kernel import Kernel
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> Kernel("rbf", gamma=0.5).values(X, X).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    """

    function: str | Callable[..., Any] = "rbf"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: float = 3.0
    params: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not callable(self.function) and self.function not in KERNEL_NAMES:
            raise ValueError(
                f"The 'kernel' parameter must be a callable or one of {list(KERNEL_NAMES)}. "
                f"Got {self.function!r} instead."
            )

    @property
    def is_precomputed(self) -> bool:
        """Whether points are rows of kernel values."""
        return self.function == "precomputed"

    @property
    def is_mercer(self) -> bool:
        """Whether the kernel is positive semidefinite by its formula."""
        if callable(self.function):
            return bool(getattr(self.function, "is_mercer", False))
        if self.function == "poly":
            return self.gamma >= 0.0 and self.coef0 >= 0.0 and float(self.degree).is_integer() and self.degree >= 0.0
        return self.function in ("linear", "rbf", "laplacian")

    def record(self) -> Fields:
        """Return the record of the kernel."""
        if callable(self.function):
            raise ValueError("The model cannot be saved: it was fitted with a user-defined kernel, which is code.")
        numbers = {"gamma": float(self.gamma), "coef0": float(self.coef0), "degree": float(self.degree)}
        return {"function": str(self.function), **numbers}

    @classmethod
    def from_record(cls, record: Record) -> Kernel:
        """Build a kernel from its record, which is checked."""
        function, gamma = record.text("function", KERNEL_NAMES), record.number("gamma", above=0.0)
        return cls(function, gamma, record.number("coef0", finite=True), record.number("degree", 0.0, finite=True))

    def _twin(self) -> _native.KernelFunction:
        return _native.KernelFunction(str(self.function), self.gamma, self.coef0, self.degree)

    def values(self, X: Points, Y: Points, n_threads: int = 1) -> Floats:
        """Return the matrix of kernel values between two sets of points.

        Parameters
        ----------
        X, Y : arrays or sparse matrices of shape (n_x, n_features), (n_y, n_features)
            The points; for a precomputed kernel X holds the values already.
        n_threads : int, default=1
            Number of threads.

        Returns
        -------
        ndarray of shape (n_x, n_y)
            k(x, y) for every pair.

        Examples
        --------
        >>> from dualfield.kernels.kernel import Kernel
        >>> Kernel("linear").values([[1.0, 2.0]], [[3.0, 4.0]])
        array([[11.]])
        """
        if self.is_precomputed:
            return np.ascontiguousarray(X, dtype=np.float64)
        if callable(self.function):
            return _returned(self.function(X, Y, **self.params), (_length(X), _length(Y)))
        left, right = self._forms(X, Y)
        return _native.kernel_values(left, right, self._twin(), n_threads)

    def scores(self, X: Points, points: Points, coefficients: Floats, n_threads: int = 1) -> Floats:
        """Return K(X, points) @ coefficients; for the named functions no kernel matrix is kept.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Where to evaluate; for a precomputed kernel the values (n, n_points).
        points : array or sparse matrix of shape (n_points, n_features)
            The points of the expansion; unused for a precomputed kernel.
        coefficients : ndarray of shape (n_points, n_outputs)
            Their coefficients.
        n_threads : int, default=1
            Number of threads.

        Returns
        -------
        ndarray of shape (n, n_outputs)
            The expansion at every row of X.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels.kernel import Kernel
        >>> Kernel("linear").scores([[1.0, 2.0]], [[3.0, 4.0]], np.array([[10.0]]))
        array([[110.]])
        """
        if self.function == "linear":
            return _linear_scores(X, points, coefficients)
        if self.is_precomputed or callable(self.function):
            blocks = row_blocks(_length(X), len(coefficients))
            return np.concatenate([self.values(X[rows], points) @ coefficients for rows in blocks])
        right, left = self._forms(points, X)
        return _native.kernel_scores(right, left, np.ascontiguousarray(coefficients), self._twin(), n_threads)

    def diagonal(self, X: Points) -> Floats:
        """Return k(x, x) for every point.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Points, or (n, n) kernel values.

        Returns
        -------
        ndarray of shape (n,)
            The diagonal of the kernel matrix.

        Examples
        --------
        >>> from dualfield.kernels.kernel import Kernel
        >>> Kernel("linear").diagonal([[1.0, 2.0], [3.0, 4.0]])
        array([ 5., 25.])
        """
        if self.is_precomputed:
            return np.array(X.diagonal(), dtype=np.float64)
        if self.function in ("rbf", "laplacian"):
            return np.ones(_length(X))
        if callable(self.function):  # in small squares: a call for each point takes long
            squares = [slice(first, first + 64) for first in range(0, _length(X), 64)]
            return np.concatenate([self.values(X[rows], X[rows]).diagonal() for rows in squares])
        with np.errstate(over="ignore"):
            if _is_sparse(X):
                products = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
            else:
                products = np.square(np.asarray(X), dtype=np.float64).sum(axis=1)
            if self.function == "poly":
                return np.asarray((self.gamma * products + self.coef0) ** self.degree)
            return products if self.function == "linear" else np.tanh(self.gamma * products + self.coef0)

    def matrix(
        self, X: Points, *, single: bool, budget: int | None, n_threads: int, streamed: bool = False
    ) -> _native.KernelMatrix:
        """Return the kernel matrix of training points as solvers want it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Training points, or (n, n) kernel values.
        single : bool
            Whether single precision is enough. Precomputed values that have no more keep it beyond the budget.
        budget : int or None
            Bytes; beyond that rows are computed when they are needed, and those used last are kept. None: no limit.
            Of points of zeros and ones the counts are kept where they fit, one or two bytes for each pair.
        n_threads : int
            Number of threads.
        streamed : bool, default=False
            Whether the solver can do with values that are computed where it uses them, which takes less time than
            memory does where points are bits and there are many.

        Returns
        -------
        KernelMatrix
            The native matrix.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels.kernel import Kernel
        >>> K = Kernel("rbf").matrix(np.eye(3), single=False, budget=None, n_threads=1)
        >>> K.diagonal
        array([1., 1., 1.])
        """
        n = _length(X)
        if self.is_precomputed:
            # Values that have single precision only are copied where there is room for it.
            small = single or (X.dtype == np.float32 and budget is not None and 8 * n * n > budget)
            return _native.KernelMatrix.from_array(np.ascontiguousarray(X, dtype=np.float32 if small else np.float64))
        if callable(self.function):
            if budget is None or 8 * n * n <= budget:
                values = self.values(X, X)
                return _native.KernelMatrix.from_array(values.astype(np.float32) if single else values)
            diagonal = np.array([self.values(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(n)])
            return _native.KernelMatrix.from_function(lambda rows: self.values(X[rows], X), diagonal, budget)
        form, _ = self._forms(X, X)
        if streamed and isinstance(form, _native.BitMatrix) and X.shape[1] <= _STREAM_BITS and 4 * n * n > _STREAM_FROM:
            return _native.KernelMatrix.streamed(form, self._twin(), single)
        return _native.KernelMatrix.from_points(form, self._twin(), single, budget, n_threads)

    def _forms(self, X: Points, Y: Points) -> tuple[Any, Any]:
        """Both sets in the same native form: bits if they hold only zeros and ones, else dense.

        If the first is sparse and would be much larger unpacked, it stays compressed.
        """
        keep = False
        if _is_sparse(X) and self.function != "laplacian":
            size = X.shape[0] * X.shape[1]
            keep = size > _UNPACK * max(X.nnz, 1) or 8 * size > _UNPACK_BYTES
        if not keep or X.shape[1] <= _FEW_FEATURES:
            left = _bits(X)
            right = left if Y is X or left is None else _bits(Y)
            if right is not None:
                return left, right
        if not keep:
            return _dense(X), _dense(Y)
        if self.function == "rbf":  # distances do not feel a shift, and their rounding does
            both, X = Y is X, sparse.csr_array(X)
            shift = natural_shift(X)
            X = shifted(X, shift)
            Y = X if both else shifted(sparse.csr_array(Y), shift)
        return _compressed(X), _compressed(Y)


def row_blocks(n: int, width: int) -> list[slice]:
    """Split n rows of `width` numbers into blocks that need little memory.

    Parameters
    ----------
    n, width : int
        Rows, and numbers in each.

    Returns
    -------
    list of slice
        One at least.

    Examples
    --------
    >>> from dualfield.kernels.kernel import row_blocks
    >>> row_blocks(10, 3)
    [slice(0, 10, None)]
    """
    step = max(1, _BLOCK_BYTES // (8 * max(width, 1)))
    return [slice(first, min(first + step, n)) for first in range(0, max(n, 1), step)]


def natural_shift(points: Points) -> Floats:
    """Return what to subtract from points so that rounding hurts least where only differences count: their mean.

    Columns of compressed rows that are not half full would fill up, and are left as they are.

    Parameters
    ----------
    points : array or sparse matrix of shape (n, n_features)
        The points.

    Returns
    -------
    ndarray of shape (n_features,)
        The mean, or zero, of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels.kernel import natural_shift
    >>> natural_shift(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([2., 2.])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if _is_sparse(points):
            mean = np.asarray(points.sum(axis=0), dtype=np.float64).ravel() / points.shape[0]
            mean[2 * np.bincount(points.indices, minlength=points.shape[1]) <= points.shape[0]] = 0.0
        else:
            mean = np.asarray(points).mean(axis=0, dtype=np.float64)
    return np.where(np.isfinite(mean), mean, 0.0)


def shifted(points: Points, shift: Floats) -> Points:
    """Return points minus a shift; columns of compressed rows that have one come first.

    Parameters
    ----------
    points : array or compressed rows of shape (n, n_features)
        The points.
    shift : ndarray of shape (n_features,)
        Subtracted from each.

    Returns
    -------
    array or compressed rows of shape (n, n_features)
        In double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels.kernel import shifted
    >>> shifted(np.array([[1.0, 2.0]]), np.array([1.0, 0.0]))
    array([[0., 2.]])
    """
    if not _is_sparse(points):
        return np.asarray(points, dtype=np.float64) - shift
    full = np.flatnonzero(shift)
    if len(full) == 0:
        return points
    columns = sparse.csc_array(points, dtype=np.float64)
    first = sparse.csr_array(columns[:, full].toarray() - shift[full])
    return sparse.csr_array(sparse.hstack([first, columns[:, np.flatnonzero(shift == 0.0)]]))


def _linear_scores(X: Points, points: Points, coefficients: Floats) -> Floats:
    """Σ_j B_j ⟨x_j, x⟩ = ⟨w, x − m⟩ + ⟨w, m⟩ + s ⟨x, m⟩ with w = Σ_j B_j (x_j − m), s = Σ_j B_j, m the mean point.

    Coefficients of a model with a bias sum to zero: features far from zero cost no digits.
    """
    points = sparse.csr_array(points) if _is_sparse(points) else np.asarray(points)
    X = sparse.csr_array(X) if _is_sparse(points) else X if _is_sparse(X) else np.asarray(X)
    shift = natural_shift(points)
    order = np.concatenate([np.flatnonzero(shift), np.flatnonzero(shift == 0.0)]) if _is_sparse(points) else slice(None)
    mean, blocks = shift[order], row_blocks(_length(points), points.shape[1])
    weights = np.zeros((points.shape[1], coefficients.shape[1]))
    for rows in blocks:
        weights += shifted(points[rows], shift).T @ coefficients[rows]
    # Next to nothing, and multiplied by the square of the mean: the sum must be exact.
    total = np.array([math.fsum(column) for column in coefficients.T.tolist()])
    constant = mean @ weights + (mean @ mean) * total
    weights += np.outer(mean, total)
    scores = [
        shifted(X[rows].toarray() if _is_sparse(X) and not _is_sparse(points) else X[rows], shift) @ weights
        for rows in row_blocks(_length(X), X.shape[1])
    ]
    return np.asarray(np.concatenate(scores) + constant)


def _returned(values: Any, shape: tuple[int, int]) -> Floats:
    """Check the result of a user-defined kernel function, and return it."""
    expected = f"The 'kernel' function must return a dense array of finite numbers of shape {shape}."
    if _is_sparse(values):
        raise ValueError(f"{expected} Got a sparse matrix: use its toarray().")
    try:
        block = np.asarray(values)
        if np.iscomplexobj(block):
            raise TypeError("complex numbers")
        block = np.ascontiguousarray(block, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected} Got {type(values).__name__}: {error}") from None
    if block.shape != shape:
        raise ValueError(f"{expected} Got shape {block.shape} instead.")
    if not np.isfinite(block).all():
        i, j = np.argwhere(~np.isfinite(block))[0]
        raise _native.NotPositiveError(f"{expected} Got {block[i, j]} at [{i}, {j}].")
    return block


def _length(X: Points) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _is_sparse(X: Points) -> bool:
    return bool(sparse.issparse(X))


def _bits(X: Points) -> _native.BitMatrix | None:
    """One bit for each feature, or None if there is a value other than 0 and 1."""
    if _is_sparse(X):
        return _native.BitMatrix.pack(_compressed(X))
    array = np.asarray(X)
    if array.dtype in (np.bool_, np.uint8):  # no copy in floating point
        return _native.BitMatrix.pack(np.ascontiguousarray(array).view(np.uint8))
    return _native.BitMatrix.pack(_dense(array))


def _dense(X: Points) -> NDArray[Any]:
    array = X.toarray() if _is_sparse(X) else np.asarray(X)
    return np.ascontiguousarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)


def _compressed(X: Points) -> tuple[Any, Any, Any, int]:
    rows = sparse.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()  # the caller's arrays are not ours to sort, and may lie in a file
        rows.sum_duplicates()
    values = rows.data.astype(np.float32 if rows.dtype == np.float32 else np.float64)
    return values, rows.indices.astype(np.int32), rows.indptr.astype(np.int64), int(rows.shape[1])
