"""Losses of structured models whose node scores come from a kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data import Batch
from dualfield.data.arrays import Floats
from dualfield.data.shapes import Shape
from dualfield.kernels import Kernel
from dualfield.scores import Expansion, LinearScores
from dualfield.structures import Structure

__all__ = ["KernelObjective"]


@dataclass(frozen=True, eq=False)
class KernelObjective:
    """Losses of structures whose node scores come from a kernel and whose clique scores are weights of their own.

    With node scores F = K B, one row for each node, clique scores s v with weights v and a scale s, and costs D::

        primal(B, v) = ½ ⟨B, K B⟩ + ½ ‖v‖² + Σ_i c_i [ M_T(F_i, s v; D_i) − score of the truth ]
        dual(μ)      = Σ_i c_i [ T H(μ_i) + ⟨D_i, μ_i⟩ ] − ½ ⟨B, K B⟩ − ½ ‖v‖²,   B_i = c_i (u_i − μ_i)

    At T = 1 this is the kernel CRF (Memisevic 2006, section 4.2), at T = 0 the kernel max-margin Markov network.

    Parameters
    ----------
    structure : Structure
        The structure.
    kernel : Kernel
        Its kernel function.
    points : array or sparse matrix of shape (n_nodes, n_features)
        The rows of all nodes, or kernel values for a precomputed kernel.
    offsets : int64 array of shape (n_examples + 1,)
        First row of each example, and the end.
    labels : int32 array of shape (n_nodes,)
        True labels.
    weights : array of shape (n_examples,)
        c_i: C times the weight of the example.
    cost : array of shape (n_labels, n_labels), default=None
        Cost of a label (column) where another one is true (row).
    temperature : float, default=1.0
        T of the formula.
    clique_mask : bool array of shape (n_cliques,), default=None
        Which cliques have a weight; the others score 0. None: all.
    with_ends : bool, default=False
        Whether the first and the last label have weights.
    scale : float, default=1.0
        s of the formula: the smaller it is, the more the scores of cliques and ends are penalised.
    cache_bytes : int, default=4_000_000_000
        Budget for the kernel matrix.
    n_threads : int, default=1
        Number of threads.
    connected : Shape, default=None
        How the nodes of each example are connected; None: one after another.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.objectives import KernelObjective
    >>> from dualfield.solvers import KernelAscent, StopRule
    >>> from dualfield.structures import Chain
    >>> X, y = np.array([[0.0], [1.0], [0.0]]), np.array([0, 1, 0], dtype=np.int32)
    >>> problem = KernelObjective(Chain(2), Kernel(), X, offsets=np.array([0, 2, 3]), labels=y, weights=np.ones(2))
    >>> KernelAscent().solve(problem, StopRule(1e-9)).relative_gap < 1e-9
    True
    """

    structure: Structure
    kernel: Kernel
    points: Any
    _: KW_ONLY
    offsets: NDArray[np.int64]
    labels: NDArray[np.int32]
    weights: Floats
    cost: Floats | None = None
    temperature: float = 1.0
    clique_mask: NDArray[np.bool_] | None = None
    with_ends: bool = False
    scale: float = 1.0
    cache_bytes: int = 4_000_000_000
    n_threads: int = 1
    connected: Shape | None = None

    @property
    def shape(self) -> Shape:
        """The shapes of the examples."""
        return Shape.of(self.offsets) if self.connected is None else self.connected

    def matrix(self, *, single: bool, stored: bool = True) -> _native.KernelMatrix:
        """Return the kernel matrix of the nodes.

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
        >>> from dualfield.objectives import KernelObjective
        >>> from dualfield.structures import Chain
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> KernelObjective(
        ...     Chain(2), Kernel(), np.eye(2), offsets=np.array([0, 2]), labels=y, weights=np.ones(1)
        ... ).matrix(single=True).single
        True
        """
        points, budget, threads = self.points, self.cache_bytes if stored else 0, self.n_threads
        if self.kernel.is_precomputed and not (single or stored):
            points = np.asarray(points, dtype=np.float64)
        return self.kernel.matrix(points, single=single, budget=budget, n_threads=threads, streamed=True)

    @cached_property
    def score_map(self) -> LinearScores:
        """The map from node scores as columns, and weights of cliques and ends, to the scores of the chain."""
        table = Expansion.table(self.structure.n_labels)
        return LinearScores(self.structure, table, None, self.clique_mask, self.with_ends)

    @cached_property
    def _data(self) -> _native.Problem:
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        structure, mask = self.structure.native(self.shape, with_ends=self.with_ends), self.score_map.shared_mask
        return _native.Problem(
            structure, None, None, None, None, mask, self.labels, weights, self.cost, None, float(self.temperature)
        )

    def _ascend(
        self, matrix: _native.KernelMatrix, exact: _native.KernelMatrix | None, start: Any, settings: dict[str, Any]
    ) -> Any:
        """Call the native solver; `exact` has the values in double precision where the matrix does not."""
        coefficients = None if start is None else np.ascontiguousarray(start.coefficients)
        own = None if start is None else np.ascontiguousarray(start.shared)
        return _native.solve_kernel_parts(matrix, exact, self._data, float(self.scale), coefficients, own, **settings)

    def loss(self, node: Floats, weights: Floats) -> float:
        """Return the sum of the losses at given scores.

        Parameters
        ----------
        node : array of shape (n_nodes, n_labels)
            Node scores F.
        weights : array
            Scores of cliques and ends, the ``shared`` ones of a solution.

        Returns
        -------
        float
            Σ_i c_i [ M_T(F_i, s v; D_i) − score of the truth ].

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelObjective
        >>> from dualfield.structures import Chain
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> problem = KernelObjective(
        ...     Chain(2), Kernel(), np.eye(2), offsets=np.array([0, 2]), labels=y, weights=np.ones(1)
        ... )
        >>> round(problem.loss(np.zeros((2, 2)), np.zeros(4)), 4)  # log of 4 labellings
        1.3863
        """
        parameters = self.score_map.pack(np.ones(self.structure.n_labels), *self.unpack(weights))
        batch = Batch(self.shape.offsets, self.structure.n_labels, np.ascontiguousarray(node), connected=self.shape)
        scores = self.score_map.scores(parameters, batch, n_threads=self.n_threads)
        cost = None if self.cost is None else self.cost[self.labels]
        best = self.structure.log_partition(scores, temperature=float(self.temperature), cost=cost)
        return float(self.weights @ (best - self.structure.score(scores, self.labels)))

    def unpack(self, weights: Floats) -> tuple[Floats, Floats | None, Floats | None]:
        """Cut the explicit scores into those of cliques, of the first and of the last label.

        Parameters
        ----------
        weights : array
            The ``shared`` scores of a solution.

        Returns
        -------
        cliques : array of shape (n_cliques,)
            Their scores s v.
        start, stop : array of shape (n_labels,) or None
            None if the ends have no weights.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelObjective
        >>> from dualfield.structures import Chain
        >>> y = np.array([0, 1], dtype=np.int32)
        >>> problem = KernelObjective(
        ...     Chain(2), Kernel(), np.eye(2), offsets=np.array([0, 2]), labels=y, weights=np.ones(1)
        ... )
        >>> problem.unpack(np.zeros(4))[0]
        array([0., 0., 0., 0.])
        """
        return self.score_map.unpack_shared(np.concatenate([np.zeros(self.score_map.shared_begin), weights]))
