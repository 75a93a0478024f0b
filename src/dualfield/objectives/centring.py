"""Kernel matrices without what all their entries share.

Where a bias makes coefficients sum to zero, ⟨B, K B⟩ and differences of scores do not feel a number that is added to a
row and to its column: K − r 1' − 1 r' is as good a matrix as K, for any r. With r from the means of the rows, features
far from zero, the constant of a polynomial or a wide bell cost no digits, and steps that move a few coefficients go
further.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.kernels import Kernel
from dualfield.kernels.kernel import Points, natural_shift, row_blocks, shifted

__all__ = ["centred_matrix", "offset_share", "row_means"]

_SAMPLE = 256


def offset_share(kernel: Kernel, points: Points) -> float:
    """Estimate how much of the kernel's values is common to all: their mean divided by that of the diagonal.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    points : array or sparse matrix of shape (n, n_features)
        Points, or (n, n) kernel values; some of them are looked at.

    Returns
    -------
    float
        Between 0 and 1 for a positive semidefinite kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives.centring import offset_share
    >>> [offset_share(Kernel("linear"), np.array(X)) for X in ([[-1.0], [1.0]], [[9.0], [9.0]])]
    [0.0, 1.0]
    """
    n = int(points.shape[0])
    some = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp))
    if kernel.is_precomputed:
        values = np.asarray(points[some][:, some], dtype=np.float64)
    else:
        values = kernel.values(points[some], points[some])
    with np.errstate(over="ignore", invalid="ignore"):
        own = float(values.diagonal().mean())
        return float(values.mean()) / own if own > 0.0 else 0.0


def row_means(kernel: Kernel, points: Points, n_threads: int) -> Floats:
    """Return the mean of every row of the kernel matrix.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    points : array or sparse matrix of shape (n, n_features)
        Points, or (n, n) kernel values.
    n_threads : int
        Number of threads.

    Returns
    -------
    ndarray of shape (n,)
        Means.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives.centring import row_means
    >>> row_means(Kernel("linear"), np.array([[1.0], [3.0]]), 1)
    array([2., 6.])
    """
    n = int(points.shape[0])
    if kernel.function == "linear":
        return np.asarray(points @ np.asarray(points.mean(axis=0), dtype=np.float64).ravel())
    blocks = (kernel.values(points[rows], points, n_threads) for rows in row_blocks(n, n))
    return np.concatenate([block.mean(axis=1) for block in blocks])


def centred_matrix(
    kernel: Kernel, points: Points, *, means: Floats, single: bool, budget: int, n_threads: int
) -> _native.KernelMatrix:
    """Return the kernel matrix with rows and columns centred; rows on demand beyond the budget.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    points : array or sparse matrix of shape (n, n_features)
        Points, or (n, n) kernel values.
    means : ndarray of shape (n,)
        From :func:`row_means`.
    single : bool
        Whether single precision is enough; values are computed and centred in double precision all the same.
    budget : int
        Bytes for the matrix.
    n_threads : int
        Number of threads.

    Returns
    -------
    KernelMatrix
        The native matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives.centring import centred_matrix, row_means
    >>> kernel, X = Kernel("poly", degree=1), np.array([[9.0], [11.0]])
    >>> centred_matrix(kernel, X, means=row_means(kernel, X, 1), single=False, budget=100, n_threads=1).diagonal
    array([1., 1.])
    """
    if kernel.function == "linear":  # the same, without a difference of large numbers
        return kernel.matrix(shifted(points, natural_shift(points)), single=single, budget=budget, n_threads=n_threads)
    n, middle = len(means), float(means.mean())

    def centred(rows: slice | NDArray[np.int32]) -> Floats:
        values = kernel.values(points[rows], points, n_threads)
        return np.ascontiguousarray((values - means[rows, None]) - (means - middle))

    if (4 if single else 8) * n * n > budget:
        diagonal = kernel.diagonal(points) - means - (means - middle)
        return _native.KernelMatrix.from_function(centred, diagonal, budget)
    values = np.empty((n, n), dtype=np.float32 if single else np.float64)
    for rows in row_blocks(n, n):
        values[rows] = centred(rows)
    return _native.KernelMatrix.from_array(values)
