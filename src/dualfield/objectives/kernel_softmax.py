"""Softmax over one node with a kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.kernels import Kernel
from dualfield.kernels.kernel import natural_shift, row_blocks, shifted
from dualfield.objectives.centring import centred_matrix, offset_share, row_means

__all__ = ["KernelSoftmax"]

_EPS = float(np.finfo(np.float64).eps)
# With more than this of the kernel's values in common to all points, solvers get a centred matrix. It costs nothing for
# a linear kernel, and a pass in double precision for others.
_COMMON_LINEAR, _COMMON = 0.5, 0.95


@dataclass(frozen=True, eq=False)
class KernelSoftmax:
    """Softmax over one node with a kernel, the objective of kernel logistic regression.

    With scores F = K B T + b, T the identity unless a label kernel is given::

        primal(B, b) = ½ ⟨B, K B T⟩ + Σ_i c_i [ log Σ_y exp F_iy − F_i,y_i ]
        dual(p)      = −½ ⟨B, K B T⟩ + Σ_i c_i H(p_i),   B_i = c_i (D_i − p_i),   Σ_i B_i = 0 if there is a bias

    (Keerthi et al. 2005, eqs. 2.7, 2.8; Memisevic 2006, eqs. 4, 5, corrected). With two classes the score of the first
    is pinned to zero, which is binary logistic regression with one row of coefficients.

    Parameters
    ----------
    kernel : Kernel
        Its kernel function.
    points : array or sparse matrix of shape (n, n_features)
        Training points, or kernel values for a precomputed kernel.
    labels : int32 array of shape (n,)
        Class of each point.
    weights : array of shape (n,)
        c_i > 0: C times the weight of the point.
    n_classes : int
        Number of classes, each with a point at least.
    with_bias : bool
        Whether there is an unpenalised bias for each class.
    pinned : bool
        Whether the score of class 0 is zero; with two classes only.
    label_kernel : array of shape (n_classes, n_classes), default=None
        T, symmetric positive semidefinite.
    cache_bytes : int, default=4_000_000_000
        Budget for the kernel matrix.
    n_threads : int, default=1
        Number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives import KernelSoftmax
    >>> problem = KernelSoftmax(
    ...     Kernel("linear"), np.array([[-1.0], [1.0]]), np.array([0, 1], dtype=np.int32),
    ...     weights=np.ones(2), n_classes=2, with_bias=True, pinned=True
    ... )
    >>> loss, dual_point = problem.loss(problem.scores(np.zeros((2, 1))))
    >>> round(loss, 4), dual_point.ravel()
    (1.3863, array([-0.5,  0.5]))
    """

    kernel: Kernel
    points: Any
    labels: NDArray[np.int32]
    _: KW_ONLY
    weights: Floats
    n_classes: int
    with_bias: bool
    pinned: bool
    label_kernel: Floats | None = None
    cache_bytes: int = 4_000_000_000
    n_threads: int = 1
    _matrices: dict[tuple[bool, bool], _native.KernelMatrix] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.labels)

    @property
    def n_rows(self) -> int:
        """Number of rows of coefficients: one for each class that is not pinned."""
        return self.n_classes - int(self.pinned)

    @cached_property
    def centred(self) -> bool:
        """Whether solvers get a centred kernel matrix: their scores differ by a number for each row of coefficients."""
        if not self.with_bias:
            return False
        most = _COMMON_LINEAR if self.kernel.function == "linear" else _COMMON
        return offset_share(self.kernel, self.points) > most

    @cached_property
    def _means(self) -> Floats:
        return row_means(self.kernel, self.points, self.n_threads)

    @cached_property
    def diagonal(self) -> Floats:
        """Diagonal of the kernel as scores are computed with it: with a bias, a linear one does not feel a shift."""
        points = self.points
        if self.with_bias and self.kernel.function == "linear":
            points = shifted(points, natural_shift(points))
        return np.maximum(self.kernel.diagonal(points), 0.0)

    @property
    def noise(self) -> float:
        """What may be wrong about any value of the matrix that solvers get, beyond the rounding of its own size."""
        given = self.kernel.is_precomputed and self.points.dtype == np.float32
        if not given and (not self.centred or self.kernel.function == "linear"):
            return 0.0
        return float(np.finfo(np.float32).eps if given else 8.0 * _EPS) * float(self.diagonal.max())

    def solver_bias(self, coefficients: Floats, bias: Floats) -> Floats:
        """Return the bias that goes with scores of the matrix that solvers get.

        Parameters
        ----------
        coefficients : ndarray of shape (n, n_rows)
            B.
        bias : ndarray of shape (n_rows,)
            The bias that goes with scores K B T.

        Returns
        -------
        ndarray of shape (n_rows,)
            The same, or more by the mean of the scores where the matrix is centred.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(
        ...     Kernel("linear"), np.array([[9.0], [11.0]]), y,
        ...     weights=np.ones(2), n_classes=2, with_bias=True, pinned=True
        ... )
        >>> problem.solver_bias(np.array([[-1.0], [1.0]]), np.array([-20.0]))
        array([0.])
        """
        if not self.centred:
            return bias
        level = self._means @ coefficients
        return np.asarray(bias + (level if self.label_kernel is None else level @ self.label_kernel))

    def fits(self, bytes_per_value: int) -> bool:
        """Return whether the kernel matrix fits the budget at so many bytes per value.

        Parameters
        ----------
        bytes_per_value : int
            4 or 8, or 12 for both precisions.

        Returns
        -------
        bool
            True if it fits.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> KernelSoftmax(
        ...     Kernel(), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True, cache_bytes=20
        ... ).fits(8)
        False
        """
        return bytes_per_value * self.size**2 <= self.cache_bytes

    def matrix(self, *, single: bool, stored: bool | None = None) -> _native.KernelMatrix:
        """Return the kernel matrix, computed once for each precision.

        Parameters
        ----------
        single : bool
            Whether in single precision.
        stored : bool, default=None
            False: rows on demand, whatever the budget. None: as the budget says.

        Returns
        -------
        KernelMatrix
            The native matrix.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> KernelSoftmax(
        ...     Kernel(), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True
        ... ).matrix(single=True).single
        True
        """
        key = (single, stored is False)
        exact = self._matrices.get((False, False))
        if key == (True, False) and key not in self._matrices and exact is not None and not exact.single:
            self._matrices[key] = exact.rounded()
        if key not in self._matrices:
            budget = self.cache_bytes if stored is None else min(self.cache_bytes, 4 * self.size**2 - 1)
            make = partial(centred_matrix, self.kernel, means=self._means) if self.centred else self.kernel.matrix
            self._matrices[key] = make(self.points, single=single, budget=budget, n_threads=self.n_threads)
        return self._matrices[key]

    def forget_single(self) -> None:
        """Give the memory of matrices in single precision back, unless there is room for both precisions.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> KernelSoftmax(
        ...     Kernel(), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True
        ... ).forget_single()
        """
        if not self.fits(12):
            for key in [key for key in self._matrices if key[0]]:
                del self._matrices[key]

    def scores(self, coefficients: Floats) -> Floats:
        """Return K B T in double precision, as a model computes it: values are computed anew, block by block.

        Parameters
        ----------
        coefficients : ndarray of shape (n, n_rows)
            B.

        Returns
        -------
        ndarray of shape (n, n_rows)
            The scores without bias.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> KernelSoftmax(
        ...     Kernel("linear"), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True
        ... ).scores(np.array([[1.0], [2.0]]))
        array([[1.],
               [2.]])
        """
        given = np.ascontiguousarray(coefficients)
        # Blocks of the size of a good second's work: an interrupt is heard between them.
        blocks = row_blocks(self.size, self.size) if self.size > 10_000 else [slice(None)]
        scores = np.concatenate(
            [self.kernel.scores(self.points[rows], self.points, given, self.n_threads) for rows in blocks]
        )
        return scores if self.label_kernel is None else scores @ self.label_kernel

    def exact_product(self, coefficients: Floats) -> Floats:
        """Return K B T up to a number for each row, in double precision, from a matrix that is there or else anew.

        Parameters
        ----------
        coefficients : ndarray of shape (n, n_rows)
            B.

        Returns
        -------
        ndarray of shape (n, n_rows)
            Scores.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(
        ...     Kernel("linear"), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True
        ... )
        >>> problem.exact_product(np.array([[1.0], [2.0]]))
        array([[1.],
               [2.]])
        """
        matrix = self._matrices.get((False, False))
        return self.product(coefficients) if matrix is not None and not matrix.single else self.scores(coefficients)

    def product(self, coefficients: Floats, *, single: bool = False) -> Floats:
        """Return K B T, by the matrix that solvers get: up to a number for each row where it is centred.

        Parameters
        ----------
        coefficients : ndarray of shape (n, n_rows)
            B.
        single : bool, default=False
            Whether single precision is enough.

        Returns
        -------
        ndarray of shape (n, n_rows)
            The scores without bias.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> KernelSoftmax(
        ...     Kernel("linear"), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True
        ... ).product(np.array([[1.0], [2.0]]))
        array([[1.],
               [2.]])
        """
        spread = coefficients if self.label_kernel is None else coefficients @ self.label_kernel
        return self.matrix(single=single).product(np.ascontiguousarray(spread), self.n_threads)

    def loss(self, scores: Floats) -> tuple[float, Floats]:
        """Return the weighted loss at scores with bias, and the dual point e = c (D − P) that belongs to them.

        Parameters
        ----------
        scores : ndarray of shape (n, n_rows)
            F + b.

        Returns
        -------
        loss : float
            Σ_i c_i [log Σ_y exp F_iy − F_i,y_i].
        dual_point : ndarray of shape (n, n_rows)
            Coefficients of the witness.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> KernelSoftmax(
        ...     Kernel(), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True
        ... ).loss(np.zeros((2, 1)))[1]
        array([[-0.5],
               [ 0.5]])
        """
        full = np.column_stack([np.zeros(self.size), scores]) if self.pinned else scores
        at, top = np.arange(self.size), full.max(axis=1)
        powers = np.exp(full - top[:, None])
        own, behind = powers[at, self.labels], top - full[at, self.labels]
        powers[at, self.labels] = 0.0
        others = powers.sum(axis=1)
        # Log of (own + others) / own: small losses keep their digits, large ones do not divide by what underflowed.
        likely = others <= own
        losses = np.where(likely, np.log1p(others / np.where(likely, own, 1.0)), np.log(own + others) + behind)
        dual_point = powers * (-self.weights / (own + others))[:, None]
        # The label's as the sum of the others: no difference of nearly equal numbers.
        dual_point[at, self.labels] = -dual_point.sum(axis=1)
        return float(self.weights @ losses), dual_point[:, int(self.pinned) :]

    def fit_bias(self, scores: Floats, bias: Floats, level: Floats | None = None) -> Floats:
        """Return the best bias for given scores without bias, by Newton's method.

        Parameters
        ----------
        scores : ndarray of shape (n, n_rows)
            F = K B T.
        bias : ndarray of shape (n_rows,)
            Where to begin.
        level : ndarray of shape (n_rows,), default=None
            Also begin at bias + level, where that is better.

        Returns
        -------
        ndarray of shape (n_rows,)
            The minimiser; zeros if the model has no bias.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> y = np.array([0, 1, 1, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(
        ...     Kernel(), np.eye(4), y, weights=np.ones(4), n_classes=2, with_bias=True, pinned=True
        ... )
        >>> problem.fit_bias(np.zeros((4, 1)), np.zeros(1)).round(6)   # log 3
        array([1.098612])
        """
        if not self.with_bias:
            return np.zeros(self.n_rows)
        starts = [np.array(bias, dtype=np.float64)] + ([] if level is None else [bias + level])
        bias = min(starts, key=lambda start: self.loss(scores + start)[0])
        value, dual_point = self.loss(scores + bias)
        indicator = self.labels[:, None] == np.arange(int(self.pinned), self.n_classes)
        for _ in range(100):
            slope = -dual_point.sum(axis=0)
            worst = np.abs(slope).max()
            if worst <= 1e-15 * np.abs(dual_point).sum():
                break
            p = indicator - dual_point / self.weights[:, None]
            curvature = np.diag(self.weights @ p) - (p * self.weights[:, None]).T @ p
            step = np.linalg.lstsq(curvature, slope, rcond=1e-13)[0]
            step *= min(1.0, 4.0 / max(np.abs(step).max(), 1e-300))
            for _ in range(40):
                tried, point = self.loss(scores + bias - step)
                # Where the loss no longer shows a difference, its slope still does.
                steady = tried <= value + 1e-13 * abs(value) and np.abs(point.sum(axis=0)).max() < worst
                if steady or tried < value - 1e-13 * abs(value):
                    break
                step /= 2
            else:
                break
            bias, value, dual_point = bias - step, tried, point
        return bias
