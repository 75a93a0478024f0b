"""Graphs of any shape: exact by elimination, bounded by trees, or cut by maximum flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data import Batch
from dualfield.data.checks import check_choice
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape, rows_of_examples
from dualfield.structures.checks import add_cost, check_int, n_threads
from dualfield.structures.graph_input import FlatEdges, FlatGraphs, GraphExample, read_graphs
from dualfield.structures.max_flow_oracle import NO_SUMS, MaxFlowOracle
from dualfield.structures.opened import Opened
from dualfield.structures.pairwise import Pairwise
from dualfield.structures.scores import Scores

__all__ = ["Graph", "GraphShape"]

_BUDGET = 10**9
_INFERENCE = ("auto", "exact", "trw", "max_flow")


@dataclass(frozen=True, eq=False)
class GraphShape(Shape):
    """How the nodes of graphs are connected.

    Parameters
    ----------
    offsets : int64 array of shape (n_examples + 1,)
        Example i has nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    edges : int32 array of shape (n_edges, 2)
        The node that each edge comes from, and the one that it leads to, counted from the first node of their example.
    edge_offsets : int64 array of shape (n_examples + 1,)
        Example i has edges ``edge_offsets[i]`` to ``edge_offsets[i + 1] - 1``.
    types : int32 array of shape (n_edges,), default=None
        The type of each edge; None: all are 0.
    grids : int32 array of shape (n_examples, 2), default=None
        Height and width of examples that are images, whose labels are arranged so; 0 for the others.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import GraphShape
    >>> triangle = np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32)
    >>> GraphShape(np.array([0, 3]), triangle, np.array([0, 3])).n_edges
    3
    """

    edges: NDArray[np.int32]
    edge_offsets: NDArray[np.int64]
    types: NDArray[np.int32] | None = None
    grids: NDArray[np.int32] | None = None

    @property
    def n_edges(self) -> int:
        """Number of edges of all examples together."""
        return len(self.edges)

    def take(self, examples: NDArray[np.int64]) -> Self:
        """Return the shape of some of the examples."""
        offsets, _ = rows_of_examples(self.offsets, examples)
        edge_offsets, rows = rows_of_examples(self.edge_offsets, examples)
        types = None if self.types is None else self.types[rows]
        grids = None if self.grids is None else self.grids[examples]
        return type(self)(offsets, self.edges[rows], edge_offsets, types, grids)

    def flat_labels(self, y: Any) -> Any:
        """Return the labels of images, of shape (height, width), row by row, and those of other graphs as they are."""
        if self.grids is None or len(y) != self.n_examples:
            return y
        found = list(y)
        for i, (height, width) in enumerate(self.grids.tolist()):
            if height and np.ndim(found[i]) != 1:
                labels = np.asarray(found[i])
                if labels.shape != (height, width):
                    raise ValueError(
                        f"y[{i}] must have shape {(height, width)}, as its image. Got {labels.shape} instead."
                    )
                found[i] = labels.ravel()
        return found

    def arranged(self, rows: Any) -> Any:
        """Return what images have for each pixel as an array of their height and width."""
        if self.grids is None:
            return rows
        return [
            np.reshape(one, (height, width, *np.shape(one)[1:])) if height else one
            for one, (height, width) in zip(rows, self.grids.tolist(), strict=True)
        ]


class Graph(Pairwise):
    r"""A graph in which labels of neighbours depend on each other.

    .. math::
        \mathrm{score}(y) = \sum_t \mathrm{node}[t, y_t] +
        \sum_{e = (s, t)} \mathrm{transition}[\mathrm{type}_e, y_s, y_t]

    Every example has a shape of its own: circles, several edges between two nodes, and parts that are not connected are
    fine. Edges have a direction, and the labels of a table are [from][to]. Trees are faster as :class:`Tree`.

    *Exact* answers eliminate the nodes one after another, the next one being that which joins the fewest pairs of its
    neighbours (min-fill). Time and memory are proportional to the sum over the steps of n_labels to the power of the
    number of neighbours plus one; a graph that needs more memory than `budget` is refused before anything is allocated.

    *Tree-reweighted* answers are for graphs that are wider. The edges are dealt out to N forests, on which sums and
    maxima are exact, and the smoothed maximum of the score is at most

    .. math::
        \max_{\mu \in L} \langle \theta, \mu \rangle + T \Bigl[ \sum_v H_v(\mu) - \tfrac{1}{N} \sum_e I_e(\mu) \Bigr]

    over the local polytope L, beliefs of edges that sum up to those of their nodes. ``log_partition`` is this upper
    bound, ``marginals`` are its beliefs, which are not probabilities; ``argmax`` is the best labelling that was found,
    and :meth:`bounded_argmax` says how far from the best one it may be. Forests are exact; k_best, sample, entropy and
    max_marginals are refused. Memory: n_labels squared for each edge, where edges have scores of their own four times.

    *Maximum flow* finds best labellings only. With two labels, and pairs that attract,

    .. math::
        \theta_e(0, 0) + \theta_e(1, 1) \ge \theta_e(0, 1) + \theta_e(1, 0) \quad \text{for all edges } e,

    or do so after flipping the labels of some nodes, as on trees, the best labelling is a minimum cut, and exact for
    graphs of any width. With other pairs the same flow on two copies of the graph gives the maximum over L with
    beliefs 0, 1/2 and 1: labels that are 0 or 1 there are those of a best labelling, the others are filled in by
    tree-reweighted sweeps and local search, and ``bounded_argmax`` says how good the result is. With more labels,
    expansions improve the labelling of the sweeps, whose bound is reported. Everything that needs sums over labellings
    is refused. Forbidden labels are fine; forbidden pairs are refused. Flows are SciPy's, in one thread.

    In estimators an example of X is one of

    - a tuple ``(nodes, edges)``, ``(nodes, edges, types)``, ``(nodes, edges, edge_features)`` or
      ``(nodes, edges, types, edge_features)``. Nodes are as for sequences. Edges are an array of shape (n_edges, 2) or
      a sparse adjacency matrix, row by row; a symmetric one gives each pair once, from the lower index to the higher.
      Types are integers. Edge features are a row of numbers or attributes for each edge, and score the pair of labels
      at its ends;
    - a NetworkX graph, whose nodes have the attribute ``features``, and whose edges may have ``features`` and ``type``;
    - an image, an array of shape (height, width, n_features), whose pixels are joined to their neighbours, with an edge
      type for each direction; labels and predictions have shape (height, width);

    or X is a :class:`FlatGraphs`. With ``pair_features`` the features of the node that an edge leads to also score the
    pair of its labels, where edges have no features of their own.

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels. None: not known yet, for models that find them in their training data.
    n_types : int, default=None
        Number of edge types, which have tables of their own. None: 1, or in models as many as the training data have.
    allowed : bool array of shape (n_labels, n_labels) or (n_types, n_labels, n_labels), default=None
        Which labels an edge may join, that of the node it comes from first (row). None: all.
    inference : {"auto", "exact", "trw", "max_flow"}, default="auto"
        How questions are answered: exactly, by tree-reweighted bounds, by maximum flow, or ("auto") exactly if the
        budget is enough for all examples of the question, else by tree-reweighted bounds.
    budget : int, default=10**9
        Bytes that the tables of exact answers may take for one example, for each thread.
    neighbours : {4, 8}, default=4
        Of a pixel, where examples are images.

    Examples
    --------
    A triangle whose nodes like to have the same label:

    >>> import numpy as np
    >>> from dualfield.structures import Graph, GraphShape, Scores
    >>> triangle = np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32)
    >>> shape = GraphShape(np.array([0, 3]), triangle, np.array([0, 3]))
    >>> scores = Scores([[0.0, 1.5], [0.5, 0.0], [0.0, 0.0]], transition=[[1.0, 0.0], [0.0, 1.0]], shape=shape)
    >>> Graph(2).argmax(scores)
    array([1, 1, 1], dtype=int32)
    >>> Graph(2).width(shape)
    2
    >>> Graph(2, inference="max_flow").bounded_argmax(scores).bounds
    Bounds(score=array([4.5]), bound=array([4.5]))
    """

    name = "graph"

    def __init__(
        self,
        n_labels: int | None = None,
        n_types: int | None = None,
        allowed: ArrayLike | None = None,
        *,
        inference: str = "auto",
        budget: int = _BUDGET,
        neighbours: int = 4,
    ) -> None:
        super().__init__(n_labels, n_types, allowed)
        check_choice("Graph", "inference", inference, _INFERENCE)
        self.inference = inference
        if inference in ("trw", "max_flow") and allowed is not None:
            raise ValueError(
                f"allowed must be None with inference={inference!r}: its beliefs may have a share of every pair."
            )
        self.budget = check_int("Graph", "budget", budget, 1)
        if neighbours not in (4, 8):
            raise ValueError(f"The 'neighbours' parameter of Graph must be 4 or 8. Got {neighbours!r} instead.")
        self.neighbours = int(neighbours)

    def _like(self, n_labels: int, n_types: int, allowed: ArrayLike | None) -> Graph:
        return Graph(
            n_labels,
            n_types,
            allowed,
            inference=self.inference,
            budget=self.budget,
            neighbours=self.neighbours,
        )

    def __repr__(self) -> str:
        how = "" if self.inference == "auto" else f", inference={self.inference!r}"
        return f"Graph(n_labels={self.n_labels}, n_types={self.n_types}{how})"

    def _types(self, shape: Shape) -> NDArray[np.int32] | None:
        return shape.types if isinstance(shape, GraphShape) else None

    def _n_edges(self, shape: Shape) -> int:
        return _connected(shape).n_edges

    def record(self) -> Fields:
        """Return the record of the graph."""
        return {
            **super().record(),
            "inference": self.inference,
            "budget": self.budget,
            "neighbours": self.neighbours,
        }

    @classmethod
    def from_record(cls, record: Record) -> Graph:
        """Build a graph from its record, which is checked."""
        record.text("kind", (cls.name,))
        inference, neighbours = record.text("inference", _INFERENCE), record.integer("neighbours", 4)
        record.check(neighbours in (4, 8), f"its pixels must have 4 or 8 neighbours. Got {neighbours}.")
        tables, budget = cls._read_tables(record), record.integer("budget", 1)
        return cls(*tables, inference=inference, budget=budget, neighbours=neighbours)

    def native(
        self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False
    ) -> _native.GraphStructure | _native.RelaxedGraphStructure:
        """Create the native twin for graphs of given shapes."""
        if with_ends:
            raise ValueError("Graph has no ends.")
        if self.inference in ("auto", "exact"):
            try:
                return self._exact(shape, with_edges)
            except _native.TooWide as error:
                if self.inference == "exact" or self.allowed is not None:
                    raise ValueError(str(error)) from None
        return _native.RelaxedGraphStructure(**self._native_arguments(shape, with_edges))

    def _bind(
        self,
        scores: Scores | ArrayLike,
        cost: ArrayLike | None,
        temperature: float,
        n_jobs: int | None,
        with_edges: bool = False,
    ) -> Any:
        """Hand out the oracle for scores: the native one, or that of maximum flow."""
        if self.is_native:
            return super()._bind(scores, cost, temperature, n_jobs, with_edges)
        batch = self._read_scores(scores)
        self._ends(batch)
        shape = _connected(batch.shape)
        self._check_types(shape.types)
        return MaxFlowOracle(self, shape, add_cost(batch.node, cost), *self._parts(batch), n_threads(n_jobs))

    @property
    def is_native(self) -> bool:
        """Whether native code answers every question: maximum flow is SciPy's."""
        return self.inference != "max_flow"

    @property
    def no_sums(self) -> str | None:
        """Why there are no sums over labellings."""
        return None if self.is_native else NO_SUMS

    def _exact(self, shape: Shape, with_edges: bool = False) -> _native.GraphStructure:
        return _native.GraphStructure(**self._native_arguments(shape, with_edges), budget=self.budget)

    def _native_arguments(self, shape: Shape, with_edges: bool) -> dict[str, Any]:
        there = _connected(shape)
        self._check_types(there.types)
        return {
            "n_labels": self.n_labels,
            "offsets": there.offsets,
            "edges": there.edges,
            "edge_offsets": there.edge_offsets,
            "types": there.types,
            "n_types": self.n_types,
            "with_edges": with_edges,
            "limits": self._limits(),
        }

    def relaxation(self, shape: Shape) -> str | None:
        """Return "trw" or "max_flow" if questions about graphs of given shapes are answered by bounds."""
        if self.inference == "max_flow":
            return "max_flow"
        return "trw" if isinstance(self.native(shape), _native.RelaxedGraphStructure) else None

    def width(self, shape: Shape) -> int:
        """Return the largest number of neighbours that a node has when it is eliminated.

        Parameters
        ----------
        shape : GraphShape
            The shapes of the examples.

        Returns
        -------
        int
            1 for trees; the largest table has n_labels to the power of this plus one entries.
        """
        try:
            return int(self._exact(shape).width)
        except _native.TooWide as error:
            raise ValueError(str(error)) from None

    def edge_nodes(self, shape: Shape) -> NDArray[np.int64]:
        """Return the node that each edge leads to."""
        there = _connected(shape)
        begins = np.repeat(there.offsets[:-1], np.diff(there.edge_offsets))
        return begins + there.edges[:, 1]

    def edge_rows(self, shape: Shape) -> NDArray[np.int64]:
        """Return the rows of edges: each has one."""
        return np.arange(_connected(shape).n_edges)

    def pair_batch(self, nodes: Batch) -> Batch:
        """Return for each edge the features of the node that it leads to."""
        return nodes.rows(self.edge_offsets(nodes.shape), self.edge_nodes(nodes.shape))

    def edge_offsets(self, shape: Shape) -> NDArray[np.int64]:
        """Return where the edges of each example begin."""
        return _connected(shape).edge_offsets

    def open(self, X: Any, lengths: ArrayLike | None = None) -> Opened:
        """Take graphs apart: nodes, edges, types and features of edges.

        Parameters
        ----------
        X : list of graphs, array of images of shape (n, height, width, n_features), or FlatGraphs
            A graph is a tuple ``(nodes, edges)``, followed by types of edges, features of edges, or both; a NetworkX
            graph; or an image of shape (height, width, n_features).
        lengths : None
            Every graph says how many nodes it has.

        Returns
        -------
        Opened
            As in :meth:`Structure.open`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Graph
        >>> opened = Graph().open([([["a"], ["b"]], [(0, 1)])])
        >>> opened.nodes, opened.connect(np.array([0, 2])).edges
        ([[['a'], ['b']]], array([[0, 1]], dtype=int32))
        >>> Graph().open([np.zeros((2, 3, 1))]).connect(np.array([0, 6])).grids
        array([[2, 3]], dtype=int32)
        """
        if lengths is not None:
            raise ValueError("lengths must be None for graphs: pass a list of them, or FlatGraphs.")
        if isinstance(X, FlatGraphs):
            connect = _connecting(X.flat_edges(), "edges of FlatGraphs, graph {},")
            edge_lengths = None if X.edge_features is None else X.edge_lengths
            return Opened(X.nodes, X.lengths, connect, X.edge_features, edge_lengths)
        graphs = read_graphs(X, self.neighbours)
        return Opened(
            [graph.nodes for graph in graphs],
            connect=_connecting(FlatEdges.of(graphs), "X[{}][1]"),
            edges=_edge_features(graphs),
        )


def _connecting(flat: FlatEdges, place: str) -> Callable[[NDArray[np.int64]], GraphShape]:
    """Return what makes a shape of the edges, once the nodes are known."""

    def connect(offsets: NDArray[np.int64]) -> GraphShape:
        flat.check(np.diff(offsets), place)
        edge_offsets = np.concatenate([[0], np.cumsum(flat.sizes)]).astype(np.int64)
        return GraphShape(offsets, flat.edges, edge_offsets, flat.types, flat.grids)

    return connect


def _edge_features(graphs: list[GraphExample]) -> list[Any] | None:
    """Return the features of the edges of each graph, in the form that one with edges has; None if there are none."""
    some: Any = next((graph.features for graph in graphs if graph.features is not None and len(graph.edges)), None)
    if some is None:
        return None
    none: Any = np.zeros((0, some.shape[1])) if np.ndim(some) == 2 and hasattr(some, "shape") else []
    return [graph.features if len(graph.edges) else none for graph in graphs]


def _connected(shape: Shape) -> GraphShape:
    if not isinstance(shape, GraphShape):
        raise ValueError("Graph needs the edges between the nodes: pass a GraphShape.")
    return shape
