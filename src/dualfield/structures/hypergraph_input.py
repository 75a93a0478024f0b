"""How the nodes of hypergraphs are connected, and hypergraphs as users pass them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dualfield.data.shapes import Shape, rows_of_examples
from dualfield.structures.graph_input import check_alike, read_rest

__all__ = ["HypergraphShape"]


@dataclass(frozen=True, eq=False)
class HypergraphShape(Shape):
    """Which nodes the edges of hypergraphs join.

    Parameters
    ----------
    offsets : int64 array of shape (n_examples + 1,)
        Example i has nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    nodes : int32 array
        The nodes of one edge after another, counted from the first node of their example.
    scopes : int64 array of shape (n_edges + 1,)
        Edge e has the entries ``scopes[e]`` to ``scopes[e + 1] - 1`` of `nodes`.
    edge_offsets : int64 array of shape (n_examples + 1,)
        Example i has edges ``edge_offsets[i]`` to ``edge_offsets[i + 1] - 1``.
    types : int32 array of shape (n_edges,), default=None
        The type of each edge; None: all are 0.

    Examples
    --------
    >>> from dualfield.structures import HypergraphShape
    >>> shape = HypergraphShape.of_edges([3], [[(0, 1, 2), (0, 2)]])
    >>> shape.sizes, shape.n_edges
    (array([3, 2]), 2)
    """

    nodes: NDArray[np.int32]
    scopes: NDArray[np.int64]
    _: KW_ONLY
    edge_offsets: NDArray[np.int64]
    types: NDArray[np.int32] | None = None

    @classmethod
    def of_edges(cls, lengths: Any, edges: list[list[Any]], types: Any = None) -> HypergraphShape:
        """Make the shape of hypergraphs whose edges are lists.

        Parameters
        ----------
        lengths : sequence of int
            How many nodes each hypergraph has.
        edges : list of lists of tuples of int
            The nodes of each edge of each hypergraph.
        types : int array of shape (n_edges,), default=None
            The type of each edge.

        Returns
        -------
        HypergraphShape
            The shape.

        Examples
        --------
        >>> from dualfield.structures import HypergraphShape
        >>> HypergraphShape.of_edges([3, 2], [[(2, 1, 0)], [(0, 1)]]).nodes
        array([2, 1, 0, 0, 1], dtype=int32)
        """
        flat = [edge for one in edges for edge in one]
        return cls(
            _offsets(lengths),
            np.array([node for edge in flat for node in edge], dtype=np.int32),
            _offsets([len(edge) for edge in flat]),
            edge_offsets=_offsets([len(one) for one in edges]),
            types=None if types is None else np.asarray(types, dtype=np.int32),
        )

    @property
    def n_edges(self) -> int:
        """Number of edges of all examples together."""
        return len(self.scopes) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many nodes each edge has."""
        return np.diff(self.scopes)

    def take(self, examples: NDArray[np.int64]) -> Self:
        """Return the shape of some of the examples."""
        offsets, _ = rows_of_examples(self.offsets, examples)
        edge_offsets, edges = rows_of_examples(self.edge_offsets, examples)
        scopes, places = rows_of_examples(self.scopes, edges)
        types = None if self.types is None else self.types[edges]
        return type(self)(offsets, self.nodes[places], scopes, edge_offsets=edge_offsets, types=types)


@dataclass(frozen=True, eq=False)
class HypergraphExample:
    """One hypergraph: features of nodes, the nodes of each edge, types and features of edges or None."""

    nodes: Any
    edges: list[tuple[int, ...]]
    types: NDArray[np.int32] | None
    features: Any


def read_hypergraphs(X: Any) -> list[HypergraphExample]:
    """Return the hypergraphs of a list, checked: all have edge types and edge features, or none has."""
    if isinstance(X, (str, bytes, dict)) or not isinstance(X, Iterable):
        raise ValueError(f"X must be a list of hypergraphs. Got {type(X).__name__} instead.")
    found = [_read(f"X[{i}]", example) for i, example in enumerate(X)]
    check_alike(found)
    return found


def _read(name: str, example: Any) -> HypergraphExample:
    if not isinstance(example, tuple) or len(example) not in (2, 3, 4):
        raise ValueError(
            f"{name} must be a hypergraph: a tuple (nodes, edges), (nodes, edges, types), (nodes, edges, "
            f"edge_features) or (nodes, edges, types, edge_features). Got {type(example).__name__} instead."
        )
    edges = [_read_edge(f"{name}[1][{at}]", edge) for at, edge in enumerate(example[1])]
    return HypergraphExample(example[0], edges, *read_rest(name, example, len(edges)))


def _read_edge(name: str, edge: Any) -> tuple[int, ...]:
    nodes = np.asarray(edge)
    if nodes.ndim != 1 or len(nodes) < 2 or not np.issubdtype(nodes.dtype, np.integer):
        raise ValueError(f"{name} must be the two or more nodes that an edge joins, as integers. Got {edge!r:.100}.")
    found = tuple(nodes.tolist())
    if len(set(found)) < len(found):
        raise ValueError(f"{name} must be different nodes. Got {found}.")
    return found


def check_nodes(graphs: list[HypergraphExample], lengths: NDArray[np.int64]) -> None:
    """Raise an error at the first edge to a node that its hypergraph does not have."""
    for i, (graph, n) in enumerate(zip(graphs, lengths.tolist(), strict=True)):
        for at, edge in enumerate(graph.edges):
            if min(edge) < 0 or max(edge) >= n:
                raise ValueError(f"X[{i}][1][{at}] is the edge {edge}; its hypergraph has nodes 0 to {n - 1}.")


def _offsets(lengths: Any) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
