"""The input and output records of structures."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.arrays import Codes, Floats
from dualfield.data.shapes import Shape
from dualfield.structures.checks import as_floats


@dataclass(frozen=True, eq=False)
class Scores:
    r"""Scores of the parts of a batch of examples, one after another in flat arrays.

    The score of a labelling y of one example with nodes 0 ... T - 1 is, for a chain of order k,

    .. math::
        \mathrm{score}(y) = \sum_{t} \mathrm{node}[t, y_t] + \sum_{t \ge 1} \mathrm{transition}[y_{t-k}, \dots, y_t]

    and, at the two ends, start[y_0] + stop[y_{T-1}].
    A score of -inf forbids the label or the transition; +inf and NaN are refused.

    Parameters
    ----------
    node : array of shape (n_nodes, n_labels)
        One row for each node, the nodes of an example in order, the examples one after another.
    offsets : array of shape (n_examples + 1,), default=None
        Example i has rows ``offsets[i]`` to ``offsets[i + 1] - 1``. None: all rows are one example.
    transition : array, default=None
        Shared by all edges: shape (n_labels,) * (order + 1), oldest label first, or (n_cliques,) in the order of
        ``Chain.cliques``. One for each edge: shape (n_edges, ...) with either of these behind it; an example of T nodes
        has max(T - 1, 0) edges. None: zeros.
    start, stop : array of shape (n_labels,), default=None
        Added at the first and at the last node of each example.
    shape : Shape, default=None
        How the nodes of each example are connected, for structures that need it; it has the offsets.
    segment : array of shape (n_segments, n_kinds), default=None
        For :class:`SemiMarkov`: of each segment of each kind.

    Examples
    --------
    >>> from dualfield.structures import Scores
    >>> scores = Scores([[1.0, 0.0], [0.0, 2.0], [0.5, 0.0]], offsets=[0, 2, 3])
    >>> scores.n_examples, scores.n_nodes, scores.n_labels
    (2, 3, 2)
    >>> scores.lengths
    array([2, 1])
    """

    node: Floats
    offsets: NDArray[np.int64]
    transition: Floats | None
    _: KW_ONLY
    start: Floats | None
    stop: Floats | None
    shape: Shape
    segment: Floats | None

    def __init__(
        self,
        node: ArrayLike,
        offsets: ArrayLike | None = None,
        transition: ArrayLike | None = None,
        *,
        start: ArrayLike | None = None,
        stop: ArrayLike | None = None,
        shape: Shape | None = None,
        segment: ArrayLike | None = None,
    ) -> None:
        rows = as_floats("node", node, 2)
        if shape is not None:
            cuts = shape.offsets
        else:
            cuts = np.array([0, rows.shape[0]]) if offsets is None else np.asarray(offsets)
        object.__setattr__(self, "node", rows)
        object.__setattr__(self, "offsets", _check_offsets(cuts, rows.shape[0]))
        object.__setattr__(self, "shape", Shape(self.offsets) if shape is None else shape)
        object.__setattr__(self, "transition", None if transition is None else as_floats("transition", transition))
        object.__setattr__(self, "start", None if start is None else as_floats("start", start, 1))
        object.__setattr__(self, "stop", None if stop is None else as_floats("stop", stop, 1))
        object.__setattr__(self, "segment", None if segment is None else as_floats("segment", segment, 2))

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.offsets) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all examples together."""
        return int(self.node.shape[0])

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.node.shape[1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of nodes of each example."""
        return np.diff(self.offsets)

    def only(self, allowed: NDArray[np.bool_]) -> Scores:
        """Return the same scores, with no other labels than those allowed.

        Parameters
        ----------
        allowed : bool array of shape (n_nodes, n_labels)
            Which labels each node may have.

        Returns
        -------
        Scores
            -inf for the others.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Scores
        >>> Scores([[1.0, 2.0]]).only(np.array([[True, False]])).node
        array([[  1., -inf]])
        """
        return replace(self, node=np.where(allowed, self.node, -np.inf))


@dataclass(frozen=True, eq=False)
class Marginals:
    """Marginals of parts, and the log-partition.

    Parameters
    ----------
    node : array of shape (n_nodes, n_labels)
        Probability of each label at each node; rows sum to 1.
    clique : array or None
        Probability of each clique: ``cliques="each"`` gives one row for each edge, ``cliques="sum"`` the sum over
        the edges of each example. For a chain of order 1 a row has shape (n_labels, n_labels), else (n_cliques,).
    log_partition : array of shape (n_examples,)
        The smoothed maximum of the score, as ``log_partition`` returns it.

    Examples
    --------
    >>> from dualfield.structures import Chain, Scores
    >>> chain = Chain(2)
    >>> answer = chain.marginals(Scores([[0.0, 0.0], [0.0, 0.0]]), cliques="sum")
    >>> answer.node
    array([[0.5, 0.5],
           [0.5, 0.5]])
    >>> answer.clique
    array([[[0.25, 0.25],
            [0.25, 0.25]]])
    """

    node: Floats
    clique: Floats | None
    log_partition: Floats


@dataclass(frozen=True, eq=False)
class KBest:
    """The k best labellings of each example, best first.

    Parameters
    ----------
    labels : int array of shape (k, n_nodes)
        Row r holds the labelling of rank r of every example; -1 where an example has fewer than r + 1 labellings.
    scores : array of shape (n_examples, k)
        Their scores; -inf where there is none.

    Examples
    --------
    >>> from dualfield.structures import Single
    >>> best = Single(3).k_best([[0.1, 0.7, 0.2]], k=2)
    >>> best.labels, best.scores
    (array([[1],
           [2]], dtype=int32), array([[0.7, 0.2]]))
    """

    labels: Codes
    scores: Floats


@dataclass(frozen=True, eq=False)
class PartSets:
    """Which parts some examples may have, where their nodes may not have all labels.

    Parameters
    ----------
    nodes : bool array of shape (n_sets, n_labels)
        Sets of labels.
    set_of_node : int array of shape (n_nodes,)
        The set of each node.
    edges : bool array of shape (n_edge_sets, edge_width)
        Sets of the own parts of edges.
    set_of_edge : int array of shape (n_edges,)
        The set of each edge.
    cliques : bool array of shape (n_cliques,)
        Shared parts that some edge may have.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import Graph, GraphShape
    >>> edges, kinds = np.array([[0, 1]], dtype=np.int32), np.array([0, 1], dtype=np.int32)
    >>> shape = GraphShape(np.array([0, 2]), edges, np.array([0, 1]), node_types=kinds)
    >>> Graph(2, label_sets=np.array([[True, False], [True, True]])).part_sets(shape).cliques
    array([ True,  True, False, False])
    """

    nodes: NDArray[np.bool_]
    set_of_node: NDArray[Any]
    edges: NDArray[np.bool_]
    set_of_edge: NDArray[Any]
    cliques: NDArray[np.bool_]


class EdgeKind(str):
    """What tells a clique from another one with the same labels, before which it stands."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class LabellingParts:
    """The parts of some labellings.

    Parameters
    ----------
    edges : int array of shape (n_edges,)
        The part of each edge among its own; -1 for none.
    shared : int array of shape (m,)
        Shared parts, one example after another, each as often as it occurs: cliques, then labels of ends.
    begins : int array of shape (n_examples + 1,)
        Where those of each example begin.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures.scores import LabellingParts
    >>> LabellingParts(np.zeros(0, int), np.array([3, 3, 1]), np.array([0, 2, 3])).owner
    array([0, 0, 1])
    """

    edges: NDArray[np.int64]
    shared: NDArray[np.int64]
    begins: NDArray[np.int64]

    @property
    def owner(self) -> NDArray[np.int64]:
        """The example of each shared part."""
        return np.repeat(np.arange(len(self.begins) - 1), np.diff(self.begins))


def _check_offsets(offsets: NDArray[Any], n_nodes: int) -> NDArray[np.int64]:
    if offsets.ndim != 1 or offsets.size == 0 or not np.issubdtype(offsets.dtype, np.integer):
        raise ValueError(
            f"offsets must be a 1-d array of integers, one more than there are examples. "
            f"Got shape {offsets.shape} and dtype {offsets.dtype} instead."
        )
    cuts = np.ascontiguousarray(offsets, dtype=np.int64)
    if cuts[0] != 0 or cuts[-1] != n_nodes:
        raise ValueError(
            f"offsets must run from 0 to the number of rows of node, {n_nodes}. Got {cuts[0]} to {cuts[-1]} instead."
        )
    falls = np.flatnonzero(np.diff(cuts) < 0)
    if falls.size:
        i = int(falls[0])
        raise ValueError(f"offsets must not decrease. Got offsets[{i}] = {cuts[i]}, offsets[{i + 1}] = {cuts[i + 1]}.")
    return cuts
