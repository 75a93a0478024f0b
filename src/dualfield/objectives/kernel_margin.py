"""Hinge losses over a table of outputs, with a kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.kernels import Kernel

__all__ = ["KernelMargin"]


@dataclass(frozen=True, eq=False)
class KernelMargin:
    """Hinge losses over a table of outputs whose scores are sums of kernel expansions.

    An example has a point for each slot, and an output gives each slot a label::

        F = K B,   score_i(o) = Σ_s F[members[i, s], outputs[o, s]]
        primal(B) = ½ ⟨B, K B⟩ + Σ_i c_i max_o [ cost(truth_i, o) + score_i(o) − score_i(truth_i) ]
        dual(α)   = Σ_i c_i Σ_o α_io cost(truth_i, o) − ½ ⟨B, K B⟩,   B = Σ_i c_i (u_i − Σ_o α_io u_o)

    where u are the indicators of labels at the points of an example. With one slot whose labels are the outputs this is
    the multiclass machine of Crammer and Singer.

    Parameters
    ----------
    kernel : Kernel
        Its kernel function.
    points : array or sparse matrix of shape (n_points, n_features)
        Training points, or kernel values for a precomputed kernel.
    members : int32 array of shape (n, n_slots)
        The points of each example, none twice.
    outputs : int32 array of shape (n_outputs, n_slots)
        The label of each slot in each output.
    truth : int32 array of shape (n,)
        The true output of each example.
    weights : array of shape (n,)
        c_i > 0: C times the weight of the example.
    n_labels : int
        Number of labels, those of all slots together.
    cost : array of shape (n_outputs, n_outputs), default=None
        By true output (row) and output (column), zeros on the diagonal. None: 1 for every wrong output.
    cache_bytes : int, default=4_000_000_000
        Budget for the kernel matrix.
    n_threads : int, default=1
        Number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives import KernelMargin
    >>> from dualfield.solvers import KernelAscent, StopRule
    >>> one = np.arange(2, dtype=np.int32)
    >>> problem = KernelMargin(
    ...     Kernel("rbf"), np.array([[-1.0], [1.0]]), one[:, None], outputs=one[:, None], truth=one,
    ...     weights=np.ones(2), n_labels=2
    ... )
    >>> KernelAscent().solve(problem, StopRule(1e-9)).parameters.coefficients.round(3)
    array([[ 0.509, -0.509],
           [-0.509,  0.509]])
    """

    kernel: Kernel
    points: Any
    members: NDArray[np.int32]
    _: KW_ONLY
    outputs: NDArray[np.int32]
    truth: NDArray[np.int32]
    weights: Floats
    n_labels: int
    cost: Floats | None = None
    cache_bytes: int = 4_000_000_000
    n_threads: int = 1

    def matrix(self, *, single: bool, stored: bool = True) -> _native.KernelMatrix:
        """Return the kernel matrix.

        Parameters
        ----------
        single : bool
            Whether in single precision.
        stored : bool, default=True
            False: values on demand, for products now and then; in double precision if that is asked for.

        Returns
        -------
        KernelMatrix
            The native matrix.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelMargin
        >>> one = np.arange(2, dtype=np.int32)
        >>> problem = KernelMargin(
        ...     Kernel(), np.eye(2), one[:, None], outputs=one[:, None], truth=one, weights=np.ones(2), n_labels=2
        ... )
        >>> problem.matrix(single=True).single
        True
        """
        points, budget, threads = self.points, self.cache_bytes if stored else 0, self.n_threads
        if self.kernel.is_precomputed and not (single or stored):
            points = np.asarray(points, dtype=np.float64)
        return self.kernel.matrix(points, single=single, budget=budget, n_threads=threads, streamed=True)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return int(self.points.shape[0])

    @property
    def calls_python(self) -> bool:
        """Whether the kernel is a function of the user's."""
        return callable(self.kernel.function)

    def _ascend(self, single: bool, start: Any, settings: dict[str, Any]) -> Any:
        """Call the native solver; return coefficients and weights, and what else it found."""
        coefficients = None if start is None else np.ascontiguousarray(start.coefficients)
        result: Any = _native.solve_kernel_table(
            *with_exact(self.matrix, single),
            np.ascontiguousarray(self.members, dtype=np.int32),
            np.ascontiguousarray(self.outputs, dtype=np.int32),
            np.ascontiguousarray(self.truth, dtype=np.int32),
            np.ascontiguousarray(self.weights, dtype=np.float64),
            self.n_labels,
            self.cost,
            coefficients,
            **settings,
        )
        (found,), weights, *rest = result
        return (found, weights), *rest


def with_exact(matrix: Any, single: bool) -> tuple[_native.KernelMatrix, _native.KernelMatrix | None]:
    """Return a kernel matrix to work with, and its values on demand in double precision where it does not have it."""
    found = matrix(single=single)
    return found, matrix(single=False, stored=False) if found.single else None
