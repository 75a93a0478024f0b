"""Losses of structured models whose scores of nodes, of pairs of nodes, or of both come from a kernel."""

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
from dualfield.objectives.kernel_margin import with_exact
from dualfield.scores import Expansion, FeatureTable, LinearScores
from dualfield.structures import Structure

__all__ = ["KernelObjective"]


@dataclass(frozen=True, eq=False)
class KernelObjective:
    """Losses of structures whose scores come from kernels, beside clique scores that are weights of their own.

    With node scores F = K B, one row for each node, clique scores s v with weights v and a scale s, and costs D::

        primal(B, v) = ½ ⟨B, K B⟩ + ½ ‖v‖² + Σ_i c_i [ M_T(F_i, s v; D_i) − score of the truth ]
        dual(μ)      = Σ_i c_i [ T H(μ_i) + ⟨D_i, μ_i⟩ ] − ½ ⟨B, K B⟩ − ½ ‖v‖²,   B_i = c_i (u_i − μ_i)

    At T = 1 this is the kernel CRF (Memisevic 2006, section 4.2), at T = 0 the kernel max-margin Markov network. A
    kernel on pairs of nodes adds scores s K B, a row for each edge and a column for each pair of labels, with the
    penalty ½ ⟨B, K B⟩ and B_i = s c_i (u_i − μ_i). With ``kernel=None`` nodes score nothing but what they cost.

    Parameters
    ----------
    structure : Structure
        The structure.
    kernel : Kernel or None
        The kernel function of nodes.
    points : array or sparse matrix of shape (n_nodes, n_features), or None
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
        s of the formula: the smaller it is, the more the scores of cliques, ends and pairs are penalised.
    cache_bytes : int, default=4_000_000_000
        Budget for the kernel matrices, shared in proportion to their sizes.
    n_threads : int, default=1
        Number of threads.
    connected : Shape, default=None
        How the nodes of each example are connected; None: one after another.
    pair_kernel : Kernel, default=None
        The kernel function of pairs of nodes; None: they have only the scores of cliques.
    pair_points : array or sparse matrix of shape (n_edges, n_pair_features), default=None
        What it sees of each edge, in the order of :meth:`dualfield.structures.Structure.edge_ends`.

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
    kernel: Kernel | None
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
    pair_kernel: Kernel | None = None
    pair_points: Any = None

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
        return self._matrix(self.kernel, self.points, single, stored)

    def pair_matrix(self, *, single: bool, stored: bool = True) -> _native.KernelMatrix:
        """Return the kernel matrix of the pairs of nodes.

        Parameters
        ----------
        single, stored : bool
            As in :meth:`matrix`.

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
        >>> y = np.array([0, 1, 1], dtype=np.int32)
        >>> KernelObjective(
        ...     Chain(2), None, None, offsets=np.array([0, 3]), labels=y, weights=np.ones(1),
        ...     pair_kernel=Kernel(), pair_points=np.eye(2)
        ... ).pair_matrix(single=False).diagonal
        array([1., 1.])
        """
        return self._matrix(self.pair_kernel, self.pair_points, single, stored)

    def _matrix(self, kernel: Kernel | None, points: Any, single: bool, stored: bool) -> _native.KernelMatrix:
        assert kernel is not None
        if kernel.is_precomputed and not (single or stored):
            points = np.asarray(points, dtype=np.float64)
        squares = [float(some.shape[0]) ** 2 for some in (self.points, self.pair_points) if some is not None]
        budget = int(self.cache_bytes * (points.shape[0] ** 2 / sum(squares))) if stored else 0
        return kernel.matrix(points, single=single, budget=budget, n_threads=self.n_threads, streamed=True)

    @property
    def n_points(self) -> int:
        """The larger of the numbers of nodes and of edges that kernels score."""
        return max(int(some.shape[0]) for some in (self.points, self.pair_points) if some is not None)

    @property
    def calls_python(self) -> bool:
        """Whether a kernel is a function of the user's."""
        return any(one is not None and callable(one.function) for one in (self.kernel, self.pair_kernel))

    @cached_property
    def score_map(self) -> LinearScores:
        """The map from scores of nodes and edges as columns, and weights of cliques and ends, to those of examples."""
        n_labels = self.structure.n_labels
        node = FeatureTable.none(n_labels, n_labels) if self.kernel is None else Expansion.table(n_labels)
        pair = None if self.pair_kernel is None else Expansion.table(self.structure.edge_width)
        return LinearScores(self.structure, node, pair, self.clique_mask, self.with_ends)

    def parameters(self, weights: Floats) -> Floats:
        """Return the parameters of the score map with given scores of cliques and ends.

        Parameters
        ----------
        weights : array
            The ``shared`` scores of a solution.

        Returns
        -------
        array of shape (n_parameters,)
            Ones for the columns, and the scores.

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
        >>> problem.score_map.unpack(problem.parameters(np.zeros(4))).node
        array([1., 1.])
        """
        pair = None if self.score_map.pair is None else np.ones(self.score_map.pair.outputs.size)
        return self.score_map.pack(np.ones(self.score_map.node.outputs.size), *self.unpack(weights), pair)

    @cached_property
    def _data(self) -> _native.Problem:
        weights = np.ascontiguousarray(self.weights, dtype=np.float64)
        with_edges, mask = self.pair_kernel is not None, self.score_map.shared_mask
        structure = self.structure.native(self.shape, with_edges=with_edges, with_ends=self.with_ends)
        return _native.Problem(
            structure, None, None, None, None, mask, self.labels, weights, self.cost, None, float(self.temperature)
        )

    def _ascend(self, single: bool, start: Any, settings: dict[str, Any]) -> Any:
        """Call the native solver; return coefficients and weights, and what else it found."""
        nodes: tuple[Any, Any] = (None, None)
        pairs: tuple[Any, Any] = (None, None)
        if self.kernel is not None:
            nodes = with_exact(self.matrix, single)
        if self.pair_kernel is not None:
            pairs = with_exact(self.pair_matrix, single)
        begin: list[Any] = [None, None, None]
        if start is not None:
            pairs_there = None if start.pairs is None else start.pairs / self.scale
            given = (start.coefficients if self.kernel is not None else None, pairs_there, start.shared)
            begin = [None if one is None else np.ascontiguousarray(one) for one in given]
        result: Any = _native.solve_kernel_parts(*nodes, *pairs, self._data, float(self.scale), *begin, **settings)
        found, weights, *rest = result
        coefficients = found[0] if self.kernel is not None else np.zeros((0, self.structure.n_labels))
        # As shared ones, which are scores and not weights, these are coefficients of scores.
        return (coefficients, weights, self.scale * found[-1] if self.pair_kernel is not None else None), *rest

    def loss(self, node: Floats, weights: Floats, pairs: Floats | None = None) -> float:
        """Return the sum of the losses at given scores.

        Parameters
        ----------
        node : array of shape (n_nodes, n_labels)
            Node scores F.
        weights : array
            Scores of cliques and ends, the ``shared`` ones of a solution.
        pairs : array of shape (n_edges, n_labels²), default=None
            Scores of edges, where a kernel gives them any.

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
        batch = Batch(self.shape.offsets, self.structure.n_labels, np.ascontiguousarray(node), connected=self.shape)
        edges = None
        if pairs is not None:
            like = self.structure.pair_batch(batch)
            rows = np.zeros((like.n_nodes, self.structure.edge_width))
            rows[self.structure.edge_rows(self.shape)] = pairs
            edges = Batch(like.offsets, self.structure.edge_width, rows)
        scores = self.score_map.scores(self.parameters(weights), batch, edges, self.n_threads)
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
