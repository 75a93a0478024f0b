"""Graphs of any shape: exact by elimination, bounded by trees, or cut by maximum flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data import Batch
from dualfield.data.arrays import Codes, Floats
from dualfield.data.checks import check_choice
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.checks import add_cost, check_int, n_threads
from dualfield.structures.graph_input import FlatEdges, FlatGraphs, edge_features, read_graphs
from dualfield.structures.graph_shape import GraphShape
from dualfield.structures.label_sets import LabelSets
from dualfield.structures.max_flow_oracle import NO_SUMS, BestByFlow, MaxFlowOracle
from dualfield.structures.opened import Opened
from dualfield.structures.pairwise import Pairwise
from dualfield.structures.scores import PartSets, Scores
from dualfield.structures.typed_graphs import (
    Bounds,
    FlatTypes,
    flat_typed_rows,
    offsets_of,
    part_sets,
    typed_rows,
)

__all__ = ["Graph"]

_BUDGET = 10**9
_INFERENCE = ("auto", "exact", "trw", "max_flow")


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
    max_marginals are refused. Memory: n_labels squared for each edge, where edges have scores of their own six times.

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
    - a tuple ``(nodes, edges)`` or ``(nodes, edges, edge_features)`` of dicts, where nodes have types: nodes by type,
      edges by ``(type, type)`` or ``(type, name, type)``, their nodes counted within their types. Labels and
      predictions are dicts by type;
    - a NetworkX graph, whose nodes have the attribute ``features``, and perhaps ``type``, and whose edges may have
      ``features`` and ``type``;
    - an image, an array of shape (height, width, n_features), whose pixels are joined to their neighbours, with an edge
      type for each direction; labels and predictions have shape (height, width);

    or X is a :class:`FlatGraphs`. With ``pair_features`` the features of the node that an edge leads to also score the
    pair of its labels, where edges have no features of their own.

    Types of nodes have features of their own, which never share a weight, and label sets of their own: a node has no
    label that is not in the set of its type. Edges between types have a table for each pair of them, unless they have
    names or numbers, of which each has a table.

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
        budget is enough for all examples of the question, else by tree-reweighted bounds; but best labellings with two
        labels, if all pairs attract, by maximum flow.
    budget : int, default=10**9
        Bytes that the tables of exact answers may take for one example, for each thread.
    neighbours : {4, 8}, default=4
        Of a pixel, where examples are images.
    label_sets : dict, or bool array of shape (n_node_types, n_labels), default=None
        The labels of each node type, as lists. None: where nodes have types, those that occur in the training data.

    Attributes
    ----------
    tables : tuple of str or None
        What the tables of edges are called, where they have names.

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

    Two words and their text, which have label sets of their own:

    >>> nodes = {"word": [["the"], ["dog"]], "text": [[1.0]]}
    >>> from dualfield import CRF
    >>> X, y = [(nodes, {("word", "text"): [(0, 0), (1, 0)]})], [{"word": ["D", "N"], "text": ["pets"]}]
    >>> CRF(Graph(label_sets={"word": ["D", "N"], "text": ["pets"]})).fit(X, y).predict(X)
    [{'text': ['pets'], 'word': ['D', 'N']}]
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
        label_sets: Any = None,
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
        self.label_sets = None if label_sets is None else LabelSets.of(label_sets, n_labels)
        self.tables: tuple[str, ...] | None = None  # names of the edge types, where they have some

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
        how += "" if self.budget == _BUDGET else f", budget={self.budget}"
        sets = "" if self.label_sets is None else f", label_sets={self.label_sets.by_type}"
        return f"Graph(n_labels={self.n_labels}, n_types={self.n_types}{how}{sets})"

    def _typed(self, n_types: int, label_sets: LabelSets, tables: tuple[str, ...] | None) -> Graph:
        """Return the same with label sets, and with names of edge types."""
        found = self._like(self.n_labels, n_types, self.allowed)
        found.label_sets, found.tables = label_sets, tables
        return found

    def _settings(self) -> tuple[Any, ...]:
        how = self.inference, self.budget, self.neighbours
        return *super()._settings(), *how, self.label_sets, self.tables

    @property
    def is_free(self) -> bool:
        """Whether every labelling is allowed."""
        return super().is_free and (self.label_sets is None or bool(self.label_sets.flags.all()))

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
            "label_sets": None if self.label_sets is None else self.label_sets.record(),
            "tables": None if self.tables is None else list(self.tables),
        }

    @classmethod
    def from_record(cls, record: Record) -> Graph:
        """Build a graph from its record, which is checked."""
        record.text("kind", (cls.name,))
        inference, neighbours = record.text("inference", _INFERENCE), record.integer("neighbours", 4)
        record.check(neighbours in (4, 8), f"its pixels must have 4 or 8 neighbours. Got {neighbours}.")
        tables, budget = cls._read_tables(record), record.integer("budget", 1)
        sets = LabelSets.from_record(record.child("label_sets")) if record.has("label_sets") else None
        fits = sets is None or tables[0] in (None, sets.flags.shape[1])
        record.check(fits, f"its label sets must be of {tables[0]} labels.")
        found = cls(*tables, inference=inference, budget=budget, neighbours=neighbours, label_sets=sets)
        if record.has("tables"):
            names = record.items("tables", str, found.n_types)
            record.check(sets is not None and len(set(names)) == len(names), "its edge types must have distinct names.")
            found.tables = tuple(names)
        return found

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.Structure:
        """Create the native twin for graphs of given shapes."""
        if with_ends:
            raise ValueError("Graph has no ends.")
        inner = self._of_all_labels(shape, with_edges)
        if self.label_sets is None:
            return inner
        flags = np.ascontiguousarray(self.label_sets.flags, dtype=np.uint8)
        return _native.MaskedStructure(inner, flags, self._node_types(shape))

    def _of_all_labels(self, shape: Shape, with_edges: bool) -> _native.GraphStructure | _native.RelaxedGraphStructure:
        """Create the native twin of graphs whose nodes may have all labels."""
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
        shape, node = _connected(batch.shape), add_cost(batch.node, cost)
        self._check_types(shape.types)
        if self.label_sets is not None:
            node = np.where(self.label_sets.flags[self._node_types(shape)], node, -np.inf)
        return MaxFlowOracle(self, shape, node, *self._parts(batch), n_threads(n_jobs))

    def _improved(
        self, oracle: _native.Oracle, native: _native.Structure, scores: Scores, own: list[Floats | None]
    ) -> Any:
        """Let maximum flow find the best labellings of wide graphs with two labels, if all pairs attract."""
        if not self._may_cut or not isinstance(native, _native.RelaxedGraphStructure):
            return oracle
        (shared, per_edge), node = self._parts(scores), own[0]
        assert node is not None
        pairs = next((one.reshape(-1, 4) for one in (shared, per_edge) if one is not None), np.zeros((0, 4)))
        # NaN and infinite scores are left to the native oracle, which explains them.
        if not (np.isfinite(pairs).all() and (pairs[:, 0] + pairs[:, 3] >= pairs[:, 1] + pairs[:, 2]).all()):
            return oracle
        return BestByFlow(oracle, lambda: MaxFlowOracle(self, scores.shape, node, shared, per_edge, 1))

    @property
    def _may_cut(self) -> bool:
        return self.inference == "auto" and self.n_labels == 2 and self.label_sets is None

    def tags_natively(self, shape: Shape) -> bool:
        """Return whether native code finds the best labellings: not where a maximum flow may."""
        return self.is_native and not (self._may_cut and self.relaxation(shape) is not None)

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

    def _node_types(self, shape: Shape) -> NDArray[np.int32]:
        assert self.label_sets is not None
        types, n = _connected(shape).node_types, len(self.label_sets.types)
        if types is None:
            raise ValueError("A Graph with label_sets needs the types of the nodes: pass a GraphShape with node_types.")
        if types.size and not (types.min() >= 0 and types.max() < n):
            raise ValueError(f"node_types must be in [0, {n}), the node types of label_sets.")
        return types

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
        return "trw" if isinstance(self._of_all_labels(shape, False), _native.RelaxedGraphStructure) else None

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> Graph:
        """Return the graph for the labels, edge types and label sets of training data.

        `constraints` is a boolean array of shape (n_labels, n_labels): which labels the two ends of an edge may have.
        """
        found, there = super().for_labels(names, codes, shape, constraints, owner), _connected(shape)
        if there.node_types is None or there.names is None:
            return found
        if self.label_sets is None:
            sets = LabelSets.seen(there.names.nodes, names, codes, there.node_types)
        else:
            sets = self.label_sets if self.n_labels else self.label_sets.for_labels(names)
        sets.check(names, codes, there.node_types, there)
        tables = there.names.tables
        n_types = found.n_types if tables is None else max(len(tables), 1)
        if self.n_types not in (0, n_types):
            raise ValueError(
                f"n_types of Graph must be {n_types}, as edges have the types {tables}. Got {self.n_types}."
            )
        return found._typed(n_types, sets, tables)

    def over_states(self, label: NDArray[np.int64]) -> Graph:
        """Return the graph over states that belong to labels."""
        found = super().over_states(label)
        if self.label_sets is None:
            return found
        return found._typed(self.n_types, self.label_sets.over_states(label), self.tables)

    def _matched_types(self, old: Pairwise) -> NDArray[np.int64]:
        if self.tables is None or not isinstance(old, Graph) or old.tables is None:
            return super()._matched_types(old)
        place = {table: at for at, table in enumerate(old.tables)}
        return np.array([place.get(table, -1) for table in self.tables], dtype=np.int64)

    def clique_kind(self, clique: int) -> str:
        """Return the name of the type of the edges that have a clique."""
        if self.tables is None:
            return super().clique_kind(clique)
        return self.tables[clique // self.edge_width] if len(self.tables) > 1 else ""

    def part_sets(self, shape: Shape) -> PartSets | None:
        """Return which labels nodes may have, and which pairs of labels edges."""
        if self.label_sets is None:
            return None
        there, kinds = _connected(shape), self._node_types(shape)
        begins = np.repeat(there.offsets[:-1], np.diff(there.edge_offsets))
        ends = kinds[there.edges + begins[:, None]].reshape(-1, 2)
        return part_sets(self.label_sets.flags, kinds, ends, there.types, self.n_types)

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

    def edge_ends(self, shape: Shape) -> NDArray[np.int64]:
        """Return the node that each edge comes from, and the one that it leads to."""
        there = _connected(shape)
        return np.repeat(there.offsets[:-1], np.diff(there.edge_offsets))[:, None] + there.edges

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
            flat = X.flat_edges()
            connect = self._connecting(flat, "edges of FlatGraphs, graph {},")
            edge_lengths = None if X.edge_features is None else X.edge_lengths
            if flat.by_type is None:
                return Opened(X.nodes, X.lengths, connect, X.edge_features, edge_lengths)
            rows = flat_typed_rows(X.nodes, flat.by_type.nodes, flat.by_type.lengths)
            return Opened(rows, None, connect, X.edge_features, edge_lengths)
        graphs = read_graphs(X, self.neighbours)
        flat = FlatEdges.of(graphs)
        if not graphs and self.label_sets is not None:
            flat = flat._replace(by_type=FlatTypes.none())
        connect, features = self._connecting(flat, "X[{}][1]"), edge_features(graphs)
        if flat.by_type is None:
            return Opened([graph.nodes for graph in graphs], connect=connect, edges=features)
        kinds, tables = flat.by_type.nodes.tolist(), flat.by_type.tables
        nodes = typed_rows([graph.nodes for graph in graphs], kinds, offsets_of(flat.by_type.lengths))
        if features is not None and tables is not None:
            features = typed_rows([graph.features or {} for graph in graphs], tables, offsets_of(flat.sizes))
        return Opened(nodes, connect=connect, edges=features)

    def _connecting(self, flat: FlatEdges, place: str) -> Callable[[NDArray[np.int64]], GraphShape]:
        """Return what makes a shape of the edges, once the nodes are known."""
        if flat.by_type is None and self.label_sets is not None:
            raise ValueError(f"X must have node types, as label_sets of the graph says: {self.label_sets.by_type}.")
        if flat.by_type is not None and self.label_sets is None and self.n_labels:
            raise ValueError("X has node types, but this graph has no label_sets: its training data had no types.")

        example = place.removeprefix("edges of ").removesuffix(",").removesuffix("[1]")
        if flat.by_type is not None and self.label_sets is not None:
            flat.by_type.check(self.label_sets.types, example)

        def connect(offsets: NDArray[np.int64]) -> GraphShape:
            flat.check(np.diff(offsets), place)
            edge_offsets = offsets_of(flat.sizes)
            if flat.by_type is None:
                return GraphShape(offsets, flat.edges, edge_offsets, types=flat.types, grids=flat.grids)
            types = flat.types
            if self.n_labels and self.tables is None and flat.by_type.tables is not None:
                raise ValueError("Edges must have numbers as types: this graph has no names for them.")
            if types is not None and self.tables is not None:
                raise ValueError(f"Edges must have no numbers as types: those of this graph are called {self.tables}.")
            if self.n_labels and self.tables is None and types is None:
                types = np.zeros(len(flat.edges), dtype=np.int32)
            known = None if self.label_sets is None else self.label_sets.types
            bounds = Bounds(offsets, edge_offsets, example)
            kinds, types, names = flat.by_type.encode(known, self.tables, flat.edges, types, bounds)
            grouped = flat.by_type.is_grouped
            return GraphShape(
                offsets, flat.edges, edge_offsets, types=types, node_types=kinds, names=names, is_grouped=grouped
            )

        return connect


def _connected(shape: Shape) -> GraphShape:
    if not isinstance(shape, GraphShape):
        raise ValueError("Graph needs the edges between the nodes: pass a GraphShape.")
    return shape
