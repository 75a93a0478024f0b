"""Graphs as users have them: tuples, NetworkX graphs, adjacency matrices, images, and flat arrays for many at once."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dualfield.structures.pairwise import integers
from dualfield.structures.typed_graphs import ByType, FlatTypes, edges_by_type, kinds_of

__all__ = ["FlatGraphs", "grid_edges"]

_PAIRS = "pairs of nodes, of shape (n_edges, 2), or a square sparse matrix"
_FORMS = (
    "a graph: a tuple (nodes, edges), (nodes, edges, types), (nodes, edges, edge_features) or (nodes, edges, types, "
    "edge_features), a NetworkX graph, or an image of shape (height, width, n_features)"
)


@dataclass(frozen=True, eq=False)
class GraphExample:
    """One graph: features of nodes, pairs of nodes, types and features of edges or None, height and width or None.

    Where nodes have types, features of nodes are a dict with those of each type; so are those of edges with names.
    """

    nodes: Any
    edges: NDArray[np.int32]
    types: NDArray[np.int32] | None = None
    _: KW_ONLY
    features: Any = None
    grid: tuple[int, int] | None = None
    by_type: ByType | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatGraphs:
    """Many graphs as flat arrays, one graph after another: no Python object for each of them.

    Parameters
    ----------
    nodes : array or sparse matrix of shape (n_nodes, n_features), or list of n_nodes items
        Features of all nodes.
    lengths : array of int of shape (n_graphs,)
        How many nodes each graph has.
    edges : array of int of shape (n_edges, 2)
        The node that each edge comes from and the one that it leads to, counted from the first node of its graph.
    edge_lengths : array of int of shape (n_graphs,)
        How many edges each graph has.
    types : array of int of shape (n_edges,), default=None
        The type of each edge; None: all are 0.
    edge_features : array or sparse matrix of shape (n_edges, n_edge_features), or list of n_edges items, default=None
        Features of the edges, which score the pair of labels at their ends.
    node_types : array of str or int of shape (n_nodes,), default=None
        The type of each node, with features and labels of its own; `nodes` may then be a dict with the rows of each
        type. None: all nodes are alike.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield import CRF
    >>> from dualfield.structures import FlatGraphs
    >>> X = FlatGraphs(nodes=np.array([[1.0], [-1.0], [2.0]]), lengths=[2, 1], edges=[[0, 1]], edge_lengths=[1, 0])
    >>> CRF("graph").fit(X, [["up", "down"], ["up"]]).predict(X)
    [['up', 'down'], ['up']]
    """

    nodes: Any
    lengths: ArrayLike
    edges: ArrayLike
    edge_lengths: ArrayLike
    types: ArrayLike | None = None
    edge_features: Any = None
    node_types: ArrayLike | None = None

    def __len__(self) -> int:
        return len(np.atleast_1d(np.asarray(self.lengths)))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the graphs as tuples."""
        lengths, edge_lengths = (np.asarray(one, dtype=np.int64) for one in (self.lengths, self.edge_lengths))
        nodes, edges = ([0, *np.cumsum(one).tolist()] for one in (lengths, edge_lengths))
        pairs = np.reshape(self.edges, (-1, 2))
        columns: list[Any] = [pairs, *(one for one in (self.types, self.edge_features) if one is not None)]
        for own, joined in zip(itertools.pairwise(nodes), itertools.pairwise(edges), strict=True):
            yield self.nodes[slice(*own)], *(column[slice(*joined)] for column in columns)

    def flat_edges(self) -> FlatEdges:
        """Return the edges, checked against each other."""
        edges = integers("edges of FlatGraphs", self.edges, "pairs of nodes, of shape (n_edges, 2)", 2)
        sizes = integers("edge_lengths of FlatGraphs", self.edge_lengths, "integers, one for each graph")
        if len(sizes) != len(self):
            raise ValueError(f"edge_lengths of FlatGraphs has {len(sizes)} entries; lengths has {len(self)}.")
        if (sizes < 0).any() or int(sizes.sum()) != len(edges):
            raise ValueError(f"edge_lengths of FlatGraphs must add up to {len(edges)}, the number of edges.")
        types = None
        if self.types is not None:
            types = integers("types of FlatGraphs", self.types, "integers, one for each edge")
            if len(types) != len(edges):
                raise ValueError(f"types of FlatGraphs has {len(types)} entries for {len(edges)} edges.")
        return FlatEdges(edges, sizes, types, None, self._by_type())

    def _by_type(self) -> FlatTypes | None:
        if self.node_types is None:
            return None
        kinds, n = np.asarray(self.node_types), int(np.sum(self.lengths))
        if kinds.shape != (n,):
            raise ValueError(
                f"node_types of FlatGraphs must have shape ({n},), a type for each node. Got {kinds.shape} instead."
            )
        nodes = np.empty(n, dtype=object)
        nodes[:] = kinds.tolist()
        lengths = np.atleast_1d(np.asarray(self.lengths, dtype=np.int64))
        return FlatTypes(lengths, nodes, np.zeros(len(self), dtype=bool), None)


class FlatEdges(NamedTuple):
    """Edges of all graphs, how many each graph has, types or None, height and width of each graph or None.

    And where nodes have types, these, and names of edges.
    """

    edges: NDArray[np.int32]
    sizes: NDArray[np.integer[Any]]
    types: NDArray[np.int32] | None
    grids: NDArray[np.int32] | None = None
    by_type: FlatTypes | None = None

    @classmethod
    def of(cls, graphs: list[GraphExample]) -> FlatEdges:
        """Put the edges of graphs one after another."""
        types = grids = None
        if any(graph.types is not None for graph in graphs):
            types = np.concatenate([np.zeros(0, np.int32) if graph.types is None else graph.types for graph in graphs])
        if any(graph.grid is not None for graph in graphs):
            grids = np.array([graph.grid or (0, 0) for graph in graphs], dtype=np.int32)
        edges = np.concatenate([np.zeros((0, 2), dtype=np.int32), *(graph.edges for graph in graphs)])
        sizes = np.array([len(graph.edges) for graph in graphs], dtype=np.int64)
        by_type = FlatTypes.of([graph.by_type for graph in graphs], sizes.tolist())
        return cls(edges, sizes, types, grids, by_type)

    def check(self, lengths: NDArray[np.int64], place: str) -> None:
        """Raise an error at the first edge to a node that its graph does not have."""
        graph = np.repeat(np.arange(len(self.sizes)), self.sizes)
        wrong = np.flatnonzero(((self.edges < 0) | (self.edges >= lengths[graph, None])).any(axis=1))
        if wrong.size:
            i, edge = int(graph[wrong[0]]), tuple(self.edges[wrong[0]].tolist())
            raise ValueError(f"{place.format(i)} has the edge {edge}; its graph has nodes 0 to {lengths[i] - 1}.")


def grid_edges(height: int, width: int, neighbours: int = 4) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the edges of a grid, row by row, and their types by direction.

    Parameters
    ----------
    height, width : int
        Size of the grid; node ``i * width + j`` is in row i and column j.
    neighbours : {4, 8}, default=4
        8: with diagonals.

    Returns
    -------
    edges : int32 array of shape (n_edges, 2)
        To the right and downwards; with 8 neighbours also down to the right, and down to the left.
    types : int32 array of shape (n_edges,)
        0, 1, 2 and 3 in that order.

    Examples
    --------
    >>> from dualfield.structures import grid_edges
    >>> edges, types = grid_edges(2, 2)
    >>> edges.tolist(), types.tolist()
    ([[0, 1], [2, 3], [0, 2], [1, 3]], [0, 0, 1, 1])
    """
    if neighbours not in (4, 8):
        raise ValueError(f"neighbours must be 4 or 8. Got {neighbours!r} instead.")
    at = np.arange(height * width, dtype=np.int32).reshape(height, width)
    sides = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    if neighbours == 8:
        sides += [(at[:-1, :-1], at[1:, 1:]), (at[:-1, 1:], at[1:, :-1])]
    edges = [np.column_stack([one.ravel(), two.ravel()]) for one, two in sides]
    types = np.repeat(np.arange(len(edges), dtype=np.int32), [len(each) for each in edges])
    return np.concatenate(edges), types


def read_graphs(X: Any, neighbours: int) -> list[GraphExample]:
    """Return the graphs of a list, checked: all have edge types and edge features, or none has."""
    if isinstance(X, (str, bytes, dict)) or not isinstance(X, Iterable) or _is_network(X):
        raise ValueError(f"X must be a list of graphs. Got {type(X).__name__} instead.")
    found = [_read_graph(f"X[{i}]", example, neighbours) for i, example in enumerate(X)]
    check_alike(found)
    return found


def check_alike(graphs: Sequence[Any]) -> None:
    """Raise an error unless all graphs that have edges have edge types, or none has, and so for edge features."""
    with_edges = [i for i, graph in enumerate(graphs) if len(graph.edges)]
    for what, of in (("edge types", "types"), ("edge features", "features")):
        has = [getattr(graphs[i], of) is not None for i in with_edges]
        if any(has) and not all(has):
            raise ValueError(f"X[{with_edges[has.index(False)]}] has no {what}, as other graphs have.")


def edge_features(graphs: Sequence[Any]) -> Any:
    """Return the features of the edges of each graph, in the form that one with edges has; None if there are none."""
    some: Any = next((graph.features for graph in graphs if graph.features is not None and len(graph.edges)), None)
    if some is None:
        return None
    none: Any = np.zeros((0, some.shape[1])) if np.ndim(some) == 2 and hasattr(some, "shape") else []
    return [graph.features if len(graph.edges) else none for graph in graphs]


def _read_graph(name: str, example: Any, neighbours: int) -> GraphExample:
    if _is_network(example):
        return _read_network(name, example)
    if isinstance(example, np.ndarray) and example.ndim == 3:
        height, width, depth = example.shape
        joined, directions = grid_edges(height, width, neighbours)
        return GraphExample(example.reshape(height * width, depth), joined, directions, grid=(height, width))
    if not isinstance(example, tuple) or len(example) not in (2, 3, 4):
        shape = f" of shape {example.shape}" if isinstance(example, np.ndarray) else ""
        raise ValueError(f"{name} must be {_FORMS}. Got {type(example).__name__}{shape} instead.")
    if isinstance(example[0], Mapping):
        if not isinstance(example[1], Mapping) or len(example) == 4:
            raise ValueError(
                f"{name} must be (nodes, edges) or (nodes, edges, edge_features) with dicts of edges and of their "
                "features, by the types that they join, as its nodes are a dict by type."
            )
        joined, tables, by_table = edges_by_type(name, *example)
        return GraphExample(example[0], joined, features=by_table, by_type=ByType(kinds_of(example[0]), True, tables))
    edges = _read_edges(f"{name}[1]", example[1])
    types, features = read_rest(name, example, len(edges))
    return GraphExample(example[0], edges, types, features=features)


def read_rest(name: str, example: tuple[Any, ...], n_edges: int) -> tuple[NDArray[np.int32] | None, Any]:
    """Return types and features of edges, which stand behind nodes and edges; None where there are none."""
    types: NDArray[np.int32] | None = None
    features = None
    for at, entry in enumerate(example[2:], start=2):
        if at == 2 and (len(example) == 4 or _is_types(entry)):
            types = integers(f"{name}[2]", entry, "integers, one for each edge")
            _check_size(f"{name}[2]", "types", len(types), n_edges, name)
        else:
            features = entry
            n = entry.shape[0] if hasattr(entry, "shape") and entry.shape else len(entry)
            _check_size(f"{name}[{at}]", "rows of edge features", n, n_edges, name)
    return types, features


def _check_size(place: str, what: str, n: int, n_edges: int, name: str) -> None:
    if n != n_edges:
        raise ValueError(f"{place} has {n} {what}; {name}[1] has {n_edges} edges.")


def _is_types(entry: Any) -> bool:
    """Whether the third entry of a tuple are edge types, and not features of edges."""
    if isinstance(entry, np.ndarray):
        return entry.ndim == 1 and np.issubdtype(entry.dtype, np.integer)
    return isinstance(entry, (list, tuple)) and bool(entry) and isinstance(entry[0], numbers.Integral)


def _read_edges(name: str, edges: Any) -> NDArray[np.int32]:
    """Return pairs of nodes; of a symmetric matrix each pair once, from the lower to the higher index."""
    is_matrix: bool = scipy.sparse.issparse(edges)
    if not is_matrix:
        return integers(name, edges, _PAIRS, 2)
    n, m = edges.shape
    if n != m:
        raise ValueError(f"{name} must be {_PAIRS}. Got a matrix of shape {(n, m)} instead.")
    matrix: Any = scipy.sparse.csr_array(edges, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    pattern = matrix != 0
    found = (scipy.sparse.triu(pattern) if (pattern != pattern.T).nnz == 0 else pattern).tocoo()
    pairs = np.column_stack([found.row, found.col]).astype(np.int32)
    return np.ascontiguousarray(pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))])


def _is_network(example: Any) -> bool:
    """Whether it is a graph of NetworkX, which need not be installed."""
    return all(hasattr(example, name) for name in ("nodes", "edges", "adjacency", "is_directed"))


def _read_network(name: str, graph: Any) -> GraphExample:
    """Take the attributes 'features' and 'type' of nodes and edges; nodes are in the graph's order."""
    place = {node: at for at, node in enumerate(graph.nodes)}
    nodes = []
    for node, given in graph.nodes(data=True):
        if "features" not in given:
            raise ValueError(f"{name}: node {node!r} has no attribute 'features'.")
        nodes.append(given["features"])
    links = list(graph.edges(data=True))
    edges = np.array([(place[one], place[two]) for one, two, _ in links], dtype=np.int32).reshape(-1, 2)
    columns = {}
    for what in ("type", "features"):
        known = [what in given for *_, given in links]
        if any(known) and not all(known):
            one, two, _ = links[known.index(False)]
            raise ValueError(f"{name}: edge ({one!r}, {two!r}) has no attribute {what!r}, as other edges have.")
        columns[what] = [given[what] for *_, given in links] if any(known) else None
    types = None
    if columns["type"] is not None:
        types = integers(f"{name}: the attribute 'type' of edges", columns["type"], "integers")
    features = None if columns["features"] is None else _rows(columns["features"])
    kinds = [given.get("type") for _, given in graph.nodes(data=True)]
    if all(kind is None for kind in kinds):
        return GraphExample(_rows(nodes), edges, types, features=features)
    if None in kinds:
        raise ValueError(
            f"{name}: node {list(place)[kinds.index(None)]!r} has no attribute 'type', as other nodes have."
        )
    own = {kind: _rows([row for row, one in zip(nodes, kinds, strict=True) if one == kind]) for kind in set(kinds)}
    return GraphExample(own, edges, types, features=features, by_type=ByType(kinds, False))


def _rows(features: list[Any]) -> Any:
    """Return rows of numbers as a matrix, and attributes as they are."""
    first = features[0] if features else {}
    if isinstance(first, (dict, str)) or not all(isinstance(one, numbers.Number) for one in np.ravel(first).tolist()):
        return features
    return np.asarray(features, dtype=np.float64)
