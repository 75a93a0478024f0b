"""Hypergraphs: edges that join any number of nodes, exact by elimination."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data import Batch
from dualfield.data.arrays import Codes, Floats
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure
from dualfield.structures.checks import check_int
from dualfield.structures.graph_input import edge_features
from dualfield.structures.hypergraph_input import HypergraphShape, check_nodes, read_hypergraphs
from dualfield.structures.opened import Opened
from dualfield.structures.scores import Scores

__all__ = ["Hypergraph"]

_BUDGET = 10**9
_MOST_PARTS = 2**31 - 1  # natively parts are int32


class Hypergraph(Structure):
    r"""A graph whose edges join any number of nodes: cliques that are scored together.

    .. math::
        \mathrm{score}(y) = \sum_t \mathrm{node}[t, y_t] +
        \sum_{e = (t_1, \dots, t_m)} \mathrm{table}_e[y_{t_1}, \dots, y_{t_m}]

    Edges with the same number of nodes and the same type share a table of n_labels to the power of that number scores,
    with an axis for each node in the order in which the edge lists them. Edges may overlap as they like, and two nodes
    are an edge as well as five. All answers are exact: nodes are eliminated as in :class:`Graph`, which is faster for
    pairs, and has relaxations for graphs that are too wide. A hypergraph that needs more memory than `budget` is
    refused before anything is allocated.

    In estimators an example of X is a tuple ``(nodes, edges)``, ``(nodes, edges, types)``,
    ``(nodes, edges, edge_features)`` or ``(nodes, edges, types, edge_features)``. Nodes are as for sequences; edges are
    a list of tuples of nodes, counted from 0; types are integers. Edge features are a row of numbers or attributes for
    each edge, and score the labels of its nodes together: edges of different sizes have weights of their own for them.
    With ``pair_features`` the features of the last node of an edge do so, where edges have no features of their own.

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels. None: not known yet, for models that find them in their training data.
    tables : list of int or of (int, int), default=None
        Which tables there are: the number of nodes of an edge, or this and the type of the edge. None: in models those
        that the training data need.
    budget : int, default=10**9
        Bytes that the tables of exact answers may take for one example, for each thread.

    Attributes
    ----------
    tables : tuple of (int, int)
        Number of nodes and type of each table, sorted.

    Examples
    --------
    Three nodes of which an odd number likes to have label 1:

    >>> import numpy as np
    >>> from dualfield.structures import Hypergraph, HypergraphShape, Scores
    >>> odd = np.indices((2, 2, 2)).sum(axis=0) % 2
    >>> shape = HypergraphShape.of_edges([3], [[(0, 1, 2)]])
    >>> scores = Scores([[0.0, 0.5], [0.0, 0.4], [0.6, 0.0]], transition=odd.astype(float), shape=shape)
    >>> Hypergraph(2, [3]).argmax(scores)
    array([1, 0, 0], dtype=int32)

    A model learns such tables:

    >>> from dualfield import CRF
    >>> X = [(np.array([[1.0], [2.0], [3.0]]), [(0, 1, 2)]), (np.array([[3.0], [1.0]]), [(0, 1)])]
    >>> model = CRF("hypergraph").fit(X, [["a", "b", "b"], ["b", "a"]])
    >>> model.structure_.tables, model.predict(X)
    (((2, 0), (3, 0)), [['a', 'b', 'b'], ['b', 'a']])
    """

    name = "hypergraph"
    has_edges = True

    def __init__(self, n_labels: int | None = None, tables: Any = None, *, budget: int = _BUDGET) -> None:
        self.n_labels = 0 if n_labels is None else check_int("Hypergraph", "n_labels", n_labels, 1)
        self.budget = check_int("Hypergraph", "budget", budget, 1)
        self.tables = () if tables is None else _read_tables(tables)
        if self.n_labels:
            self._check_size()

    def _check_size(self) -> None:
        """Refuse tables that no budget allows, before there are arrays of their size."""
        most = min(self.budget // 8, _MOST_PARTS)
        for size, _ in self.tables:
            if self.n_labels**size > most:
                raise ValueError(
                    f"Edges of {size} nodes with {self.n_labels} labels need a table of {self.n_labels}^{size} scores, "
                    f"more than the {most} that the budget allows. Raise it, or cut the edges into smaller ones."
                )

    def __repr__(self) -> str:
        budget = "" if self.budget == _BUDGET else f", budget={self.budget}"
        return f"Hypergraph(n_labels={self.n_labels}, tables={list(self.tables)}{budget})"

    def _settings(self) -> tuple[Any, ...]:
        return self.n_labels, self.tables, self.budget

    def __eq__(self, other: object) -> bool:
        return self._settings() == other._settings() if isinstance(other, Hypergraph) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._settings())

    # Its parts

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        """Where each table begins, and where they end."""
        return np.cumsum([0, *(self.n_labels**size for size, _ in self.tables)])

    @cached_property
    def _rows(self) -> dict[int, int]:
        """Where the parts of edges of each size begin in a row of scores of an edge."""
        sizes = sorted({size for size, _ in self.tables})
        return dict(zip(sizes, np.cumsum([0, *(self.n_labels**size for size in sizes)]).tolist(), strict=False))

    @property
    def n_cliques(self) -> int:
        """Number of scores in all tables."""
        return int(self._begins[-1])

    @property
    def cliques(self) -> Codes:
        """The labels of each clique, with -1 behind those of smaller edges."""
        return self._labels([size for size, _ in self.tables])

    def _labels(self, sizes: list[int]) -> Codes:
        most = max(sizes, default=0)
        found = [np.zeros((0, most), dtype=np.int32)]
        for size in sizes:
            labels = np.indices((self.n_labels,) * size, dtype=np.int32).reshape(size, -1).T
            found.append(np.pad(labels, ((0, 0), (0, most - size)), constant_values=-1))
        return np.concatenate(found)

    def clique_kind(self, clique: int) -> str:
        """Return the type of the edges that have a clique; empty if those of its size have but one type."""
        size, kind = self.tables[int(np.searchsorted(self._begins, clique, side="right")) - 1]
        return f"type {kind}" if sum(size == other for other, _ in self.tables) > 1 else ""

    @property
    def edge_width(self) -> int:
        """Number of own scores of an edge: those of edges of every size."""
        return sum(self.n_labels**size for size in self._rows)

    def edge_names(self, names: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the labels of each part that an edge may have of its own."""
        rows = self._labels(list(self._rows)).tolist()
        return [tuple(names[code] for code in row if code >= 0) for row in rows]

    @property
    def no_pairs(self) -> str | None:
        """Why edges are not pairs of labels."""
        return "needs pairs of labels; a Hypergraph has edges of any number of nodes."

    def _tables_of(self, shape: HypergraphShape) -> NDArray[np.int32]:
        """Return the table of each edge."""
        types = np.zeros(shape.n_edges, dtype=np.int64) if shape.types is None else shape.types
        known = {table: at for at, table in enumerate(self.tables)}
        found = [known.get(one, -1) for one in zip(shape.sizes.tolist(), types.tolist(), strict=True)]
        if -1 in found:
            edge = found.index(-1)
            example = int(np.searchsorted(shape.edge_offsets, edge, side="right")) - 1
            raise ValueError(
                f"Example {example} has an edge of {shape.sizes[edge]} nodes and type {types[edge]}; the tables of "
                f"this hypergraph are, by number of nodes and type, {list(self.tables)}."
            )
        return np.array(found, dtype=np.int32)

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.Structure:
        """Create the native twin for hypergraphs of given shapes."""
        if with_ends:
            raise ValueError("Hypergraph has no ends.")
        return self._exact(shape, with_edges)

    def _exact(self, shape: Shape, with_edges: bool = False) -> _native.HypergraphStructure:
        there = _joined(shape)
        try:
            return _native.HypergraphStructure(
                n_labels=self.n_labels,
                offsets=there.offsets,
                nodes=there.nodes,
                scopes=there.scopes,
                edge_offsets=there.edge_offsets,
                types=self._tables_of(there),
                sizes=np.array([size for size, _ in self.tables], dtype=np.int32),
                with_edges=with_edges,
                budget=self.budget,
            )
        except _native.TooWide as error:
            raise ValueError(str(error)) from None

    def width(self, shape: HypergraphShape) -> int:
        """Return the largest number of neighbours that a node has when it is eliminated.

        Parameters
        ----------
        shape : HypergraphShape
            The shapes of the examples.

        Returns
        -------
        int
            The largest table has n_labels to the power of this plus one entries.
        """
        return int(self._exact(shape).width)

    # Scores

    def _parts(self, scores: Scores) -> tuple[Floats | None, Floats | None]:
        transition, n_edges = scores.transition, _joined(scores.shape).n_edges
        if transition is None:
            return None, None
        whole = [(self.n_labels,) * self.tables[0][0]] if len(self.tables) == 1 else []
        shared = [(self.n_cliques,), *whole]
        if transition.shape in shared:
            if not (transition < np.inf).all():
                raise ValueError("transition must be finite, or -inf for what is forbidden. Got NaN or +inf instead.")
            return transition.ravel(), None
        if transition.shape == (n_edges, self.edge_width):
            return None, transition
        raise ValueError(
            f"transition must have one of the shapes {shared}, shared by all edges of a table, or "
            f"{(n_edges, self.edge_width)}, one row for each edge. Got {transition.shape} instead."
        )

    def edge_scores(self, cliques: Floats, shape: Shape) -> Floats:
        """Return what each edge scores by its table, and 0 for the parts of other sizes."""
        found, tables = np.zeros((_joined(shape).n_edges, self.edge_width)), self._tables_of(_joined(shape))
        for at, (size, _) in enumerate(self.tables):
            own, begin = cliques[self._begins[at] : self._begins[at + 1]], self._rows[size]
            found[tables == at, begin : begin + len(own)] = own
        return found

    def table_of(self, cliques: Floats) -> Floats:
        """Return values of cliques as a table with an axis for each node, if there is but one table."""
        return cliques.reshape((self.n_labels,) * self.tables[0][0]) if len(self.tables) == 1 else cliques

    # Its edges

    def edge_nodes(self, shape: Shape) -> NDArray[np.int64]:
        """Return the last node of each edge."""
        there = _joined(shape)
        return np.repeat(there.offsets[:-1], np.diff(there.edge_offsets)) + there.nodes[there.scopes[1:] - 1]

    def edge_rows(self, shape: Shape) -> NDArray[np.int64]:
        """Return the rows of edges: each has one."""
        return np.arange(_joined(shape).n_edges)

    def edge_offsets(self, shape: Shape) -> NDArray[np.int64]:
        """Return where the edges of each example begin."""
        return _joined(shape).edge_offsets

    def pair_batch(self, nodes: Batch) -> Batch:
        """Return for each edge the features of its last node."""
        return nodes.rows(self.edge_offsets(nodes.shape), self.edge_nodes(nodes.shape))

    # From the input of users

    def open(self, X: Any, lengths: ArrayLike | None = None) -> Opened:
        """Take hypergraphs apart: nodes, edges, types and features of edges.

        Parameters
        ----------
        X : list of hypergraphs
            Tuples ``(nodes, edges)``, followed by types of edges, features of edges, or both.
        lengths : None
            Every hypergraph says how many nodes it has.

        Returns
        -------
        Opened
            As in :meth:`Structure.open`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Hypergraph
        >>> opened = Hypergraph().open([([["a"], ["b"], ["c"]], [(0, 1, 2)])])
        >>> opened.nodes, opened.connect(np.array([0, 3])).nodes
        ([[['a'], ['b'], ['c']]], array([0, 1, 2], dtype=int32))
        """
        if lengths is not None:
            raise ValueError("lengths must be None for hypergraphs: pass a list of them.")
        graphs = read_hypergraphs(X)
        types = [graph.types for graph in graphs if graph.types is not None]

        def connect(offsets: NDArray[np.int64]) -> HypergraphShape:
            check_nodes(graphs, np.diff(offsets))
            flat = np.concatenate(types) if types else None
            return HypergraphShape.of_edges(np.diff(offsets), [graph.edges for graph in graphs], flat)

        return Opened([graph.nodes for graph in graphs], connect=connect, edges=edge_features(graphs))

    def _with_labels(self, n_labels: int, shape: Shape) -> Hypergraph:
        there, tables = _joined(shape), self.tables
        if not tables:
            types = np.zeros(there.n_edges, dtype=np.int64) if there.types is None else there.types
            tables = tuple(sorted(set(zip(there.sizes.tolist(), types.tolist(), strict=True))))
        return Hypergraph(n_labels, tables, budget=self.budget)

    def matched_cliques(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the labels of edges in the tables of a hypergraph with other labels."""
        if not isinstance(old, Hypergraph):
            return super().matched_cliques(old, labels)
        begins = dict(zip(old.tables, old._begins.tolist(), strict=False))
        return self._matched(old, labels, [(size, begins.get((size, kind), -1)) for size, kind in self.tables])

    def matched_edges(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the own parts of edges among those of a hypergraph with other labels."""
        if not isinstance(old, Hypergraph):
            return np.full(self.edge_width, -1, dtype=np.int64)
        return self._matched(old, labels, [(size, old._rows.get(size, -1)) for size in self._rows])

    def _matched(self, old: Hypergraph, labels: NDArray[np.int64], tables: list[tuple[int, int]]) -> NDArray[np.int64]:
        found = [np.zeros(0, dtype=np.int64)]
        for size, begin in tables:
            each = labels[np.indices((self.n_labels,) * size).reshape(size, -1)]
            place = begin + (each * old.n_labels ** np.arange(size)[::-1, None]).sum(axis=0)
            found.append(np.where((each >= 0).all(axis=0) & (begin >= 0), place, -1))
        return np.concatenate(found)

    # Records

    def record(self) -> Fields:
        """Return the record of the hypergraph."""
        sizes, types = ([table[at] for table in self.tables] for at in (0, 1))
        return {**super().record(), "sizes": sizes, "types": types, "budget": self.budget}

    @classmethod
    def from_record(cls, record: Record) -> Hypergraph:
        """Build a hypergraph from its record, which is checked."""
        record.text("kind", (cls.name,))
        n_labels = record.integer("n_labels", 1) if record.has("n_labels") else None
        sizes = record.items("sizes", int)
        types = record.items("types", int, len(sizes))
        most = record.source.most_entries
        small = all(2 <= size < 64 for size in sizes)
        record.check(small, "its edges must have 2 to 63 nodes.")
        total = sum((n_labels or 1) ** size for size in sizes)
        record.check(total <= most, f"it has more than {most} scores in its tables.")
        with record.source.at_fault():
            return cls(n_labels, list(zip(sizes, types, strict=True)), budget=record.integer("budget", 1))


def _read_tables(tables: Any) -> tuple[tuple[int, int], ...]:
    """Return number of nodes and type of each table, sorted."""
    found = set()
    for table in tables:
        size, kind = (table, 0) if np.ndim(table) == 0 else tuple(table)
        found.add((check_int("Hypergraph", "tables", size, 2), check_int("Hypergraph", "tables", kind, 0)))
    return tuple(sorted(found))


def _joined(shape: Shape) -> HypergraphShape:
    if not isinstance(shape, HypergraphShape):
        raise ValueError("Hypergraph needs the edges between the nodes: pass a HypergraphShape.")
    return shape
