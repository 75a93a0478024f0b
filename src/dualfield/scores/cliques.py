"""The cliques of sequences, graphs of fixed size, trees and graphs: which nodes they have, which share a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualfield.data.shapes import Shape
from dualfield.structures import GraphShape, TreeShape

Index = NDArray[np.int64]
Tying = str | Callable[[Any, int], Hashable]


@dataclass(frozen=True, eq=False, kw_only=True)
class Cliques:
    """All cliques of one size in a set of examples.

    ``kinds`` says which entry of ``keys`` each clique has: cliques of one size and key share a model. ``left``
    and ``right`` are the cliques of one node less that begin at its first and at its second node, as rows of their own
    list; ``singles`` are its nodes as cliques of size 1. ``own`` are features of the cliques themselves, which join the
    rows of their nodes.
    """

    size: int
    keys: list[Hashable]
    kinds: Index  # (n,)
    nodes: Index  # (n, size), nodes of all examples one after another, blank ones included
    rows: Index  # (n, size), their rows of the input
    owner: Index  # (n,) the example
    left: Index | None
    right: Index | None
    singles: Index  # (n, size)
    own: Any = None  # (n, n_columns) or None

    def __len__(self) -> int:
        return len(self.kinds)


class ChainLayout:
    """Sequences with their blank nodes, and the windows of neighbouring nodes in them."""

    is_shared_input = False

    def __init__(self, lengths: Index, padding: tuple[int, int], tying: Tying) -> None:
        before, after = padding
        self.tying = tying
        self.lengths = np.asarray(lengths, dtype=np.int64) + before + after
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        self.n_nodes = int(self.offsets[-1])
        self.owner = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.position = np.arange(self.n_nodes) - self.offsets[self.owner]
        self.node_length = self.lengths[self.owner]
        self.is_real = (self.position >= before) & (self.position < self.node_length - after)
        # Blank nodes have the row behind the last one, which holds zeros.
        self.rows = np.where(self.is_real, np.cumsum(self.is_real) - 1, int(np.sum(lengths)))

    @property
    def n_examples(self) -> int:
        """Number of sequences."""
        return len(self.lengths)

    def starts(self, size: int, *, whole: bool = False) -> Index:
        """Return the first node of each window of a size; with `whole`, of those that are a whole sequence."""
        fits = self.position + size <= self.node_length
        return np.flatnonzero(fits & (self.node_length == size) if whole else fits)

    def cliques(self, size: int, *, whole: bool = False) -> Cliques:
        """Return the windows of a size."""
        starts = self.starts(size, whole=whole)
        nodes = starts[:, None] + np.arange(size)
        keys, kinds = self._kinds(starts)
        left = right = None
        if size > 1 and not whole:
            place = np.full(self.n_nodes + 1, -1, dtype=np.int64)
            smaller = self.starts(size - 1)
            place[smaller] = np.arange(len(smaller))
            left, right = place[starts], place[starts + 1]
        return Cliques(
            size=size,
            keys=keys,
            kinds=kinds,
            nodes=nodes,
            rows=self.rows[nodes],
            owner=self.owner[starts],
            left=left,
            right=right,
            singles=nodes,
        )

    def _kinds(self, starts: Index) -> tuple[list[Hashable], Index]:
        if self.tying == "shared":
            return ["shared"], np.zeros(len(starts), dtype=np.int64)
        if self.tying == "position":
            found, kinds = np.unique(self.position[starts], return_inverse=True)
            return found.tolist(), kinds.astype(np.int64).ravel()
        assert callable(self.tying)
        places = np.column_stack([self.position[starts], self.node_length[starts]])
        pairs, each = np.unique(places.reshape(-1, 2), axis=0, return_inverse=True)
        keys: dict[Hashable, int] = {}
        kinds = [keys.setdefault(_key(self.tying, place, length), len(keys)) for place, length in pairs.tolist()]
        return list(keys), np.array(kinds, dtype=np.int64)[each.ravel()]


class GraphLayout:
    """Outputs of a fixed number of nodes, and the cliques of a graph between them."""

    def __init__(self, n: int, n_nodes: int, by_size: dict[int, list[tuple[int, ...]]], tying: Tying, shared: bool):
        self.n_examples, self.n_nodes_each, self.by_size, self.tying = n, n_nodes, by_size, tying
        self.is_shared_input = shared

    def cliques(self, size: int) -> Cliques:
        """Return the cliques of a size: all examples of the first, all examples of the second, and so on."""
        given = self.by_size[size]
        example = np.tile(np.arange(self.n_examples), len(given))
        member = np.repeat(np.array(given, dtype=np.int64).reshape(-1, size), self.n_examples, axis=0)
        nodes = example[:, None] * self.n_nodes_each + member
        rows = np.broadcast_to(example[:, None], nodes.shape) if self.is_shared_input else nodes
        keys: dict[Hashable, int] = {}
        kinds = [keys.setdefault(self.key(clique), len(keys)) for clique in given]
        left = right = None
        if size > 1:
            left, right = self._parts([c[:-1] for c in given]), self._parts([c[1:] for c in given])
        singles = np.full(nodes.shape, -1, dtype=np.int64)
        for slot in range(size):
            found = self._parts([(c[slot],) for c in given])
            if found is not None:
                singles[:, slot] = found
        each = np.repeat(np.array(kinds, dtype=np.int64), self.n_examples)
        return Cliques(
            size=size,
            keys=list(keys),
            kinds=each,
            nodes=nodes,
            rows=rows,
            owner=example,
            left=left,
            right=right,
            singles=singles,
        )

    def _parts(self, wanted: list[tuple[int, ...]]) -> Index | None:
        """Return the rows of smaller cliques in their own list; None if the model has no use for them."""
        known = self.by_size.get(len(wanted[0]), [])
        place = {clique: at for at, clique in enumerate(known)}
        if any(clique not in place for clique in wanted):
            return None
        first = np.array([place[clique] for clique in wanted], dtype=np.int64)
        return (first[:, None] * self.n_examples + np.arange(self.n_examples)).ravel()

    def key(self, clique: tuple[int, ...]) -> Hashable:
        """Return the key of a clique: those of one size and key have a model in common."""
        if self.tying == "shared":
            return "shared"
        return clique if self.tying == "position" else _key(self.tying, clique, self.n_nodes_each)


class ShapeLayout:
    """Trees or graphs, each with edges of its own: the edges are cliques, and so are the nodes.

    Where cliques of one node are not among `sizes`, only nodes without an edge are: nothing else labels them.
    """

    is_shared_input = False

    def __init__(self, shape: Shape, sizes: set[int], tying: Tying, edge_features: Any = None) -> None:
        self.n_examples, self.sizes, self.tying, self.edge_features = shape.n_examples, sizes, tying, edge_features
        self.owner = np.repeat(np.arange(shape.n_examples), shape.lengths)
        self.ends, self.types, self.edge_rows = joined_nodes(shape)
        self.is_alone = np.ones(shape.n_nodes, dtype=bool)
        self.is_alone[self.ends] = False

    def cliques(self, size: int) -> Cliques:
        """Return the nodes, or the edges, with the node that an edge comes from first."""
        if size == 1:
            nodes = np.flatnonzero(self.is_alone | (1 in self.sizes))[:, None]
            types = np.zeros(len(nodes), dtype=np.int64)
        else:
            nodes, types = self.ends, self.types
        keys: list[Hashable] = ["shared"]
        kinds = np.zeros(len(nodes), dtype=np.int64)
        if self.tying == "type":
            found, kinds = np.unique(types, return_inverse=True)
            keys = found.tolist()
        has_parts = size > 1 and 1 in self.sizes  # the rows of nodes among the cliques of one node are the nodes
        return Cliques(
            size=size,
            keys=keys,
            kinds=kinds,
            nodes=nodes,
            rows=nodes,
            owner=self.owner[nodes[:, 0]],
            left=nodes[:, 0] if has_parts else None,
            right=nodes[:, 1] if has_parts else None,
            singles=nodes,
            own=self.edge_features if size > 1 else None,
        )

    def weights(self, by_order: dict[int, float]) -> dict[int, Any]:
        """Return the weights of cliques by size: a node without an edge counts for all orders, as a short sequence."""
        node, edge = by_order.get(0, 0.0), by_order.get(1, 0.0)
        each = (node + edge * self.is_alone)[self.cliques(1).nodes[:, 0]]
        return {1: each, 2: edge} if edge else {1: each}


def joined_nodes(shape: Shape) -> tuple[Index, Index, Index]:
    """Return the nodes that edges join, from and to, counted over all examples; their types; and their rows of scores.

    Edges of trees lead from a parent to its child; there is a row for each node, also for roots.
    """
    if isinstance(shape, TreeShape):
        rows = np.flatnonzero(shape.parents >= 0)
        owner = np.repeat(np.arange(shape.n_examples), shape.lengths)[rows]
        ends = np.column_stack([shape.offsets[owner] + shape.parents[rows], rows])
        types = np.zeros(len(rows), dtype=np.int64) if shape.types is None else shape.types[rows]
    else:
        assert isinstance(shape, GraphShape)
        rows = np.arange(shape.n_edges)
        ends = np.repeat(shape.offsets[:-1], np.diff(shape.edge_offsets))[:, None] + shape.edges
        types = np.zeros(len(rows), dtype=np.int64) if shape.types is None else shape.types
    if types.size and types.min() < 0:
        raise ValueError(f"types of edges must be at least 0. Got {types.min()}.")
    return ends.astype(np.int64), types.astype(np.int64), rows


Layout = ChainLayout | GraphLayout | ShapeLayout


def _key(tying: Tying, place: Any, length: int) -> Hashable:
    assert callable(tying)
    key = tying(place, length)
    try:
        hash(key)
    except TypeError as error:
        raise TypeError(
            f"The 'tying' parameter of ConditionalGraphicalModel must return something hashable. "
            f"Got {key!r} for position {place} and length {length}."
        ) from error
    return key


def with_blank_row(matrix: Any, padding: tuple[int, int]) -> Any:
    """Return the rows of the input, with a row of zeros behind them if there are blank nodes."""
    if not any(padding):
        return matrix
    if not isinstance(matrix, np.ndarray):
        return sparse.csr_array(sparse.vstack([matrix, sparse.csr_array((1, matrix.shape[1]), dtype=matrix.dtype)]))
    return np.concatenate([matrix, np.zeros((1, matrix.shape[1]), dtype=matrix.dtype)])


def gather(matrix: Any, rows: Index, own: Any = None) -> Any:
    """Return the rows of each clique side by side, shape (n, size * n_columns), and its own features behind them."""
    if isinstance(matrix, np.ndarray) and (own is None or isinstance(own, np.ndarray)):
        nodes = matrix[rows].reshape(len(rows), -1)
        return np.ascontiguousarray(nodes if own is None else np.concatenate([nodes, own], axis=1))
    parts = [matrix[rows[:, slot]] for slot in range(rows.shape[1])]
    return sparse.csr_array(sparse.hstack(parts if own is None else [*parts, own], format="csr"))


def graph_cliques(
    graph: Sequence[tuple[int, ...]], weights: dict[int, float] | None, with_parts: bool, with_singles: bool
) -> tuple[dict[tuple[int, ...], float], dict[int, list[tuple[int, ...]]]]:
    """Return the cliques that a labelling's score adds up, with their weights, and all that need a model, by size.

    Weights by order ask for all parts of the cliques that have this many nodes; None for the cliques as they are.
    """
    scored: dict[tuple[int, ...], float] = {}
    if weights is None:
        scored = dict.fromkeys(graph, 1.0)
    else:
        taken = set()
        for size, weight in sorted((order + 1, weight) for order, weight in weights.items()):
            for clique in graph:
                for part in combinations(clique, size):
                    if frozenset(part) not in taken:
                        taken.add(frozenset(part))
                        scored[part] = weight
    needed = dict.fromkeys(scored)
    for clique in scored:
        if with_parts:
            lower = range(1, len(clique))
            needed.update(dict.fromkeys(clique[a : a + size] for size in lower for a in range(len(clique) - size + 1)))
        if with_singles:
            needed.update(dict.fromkeys((node,) for node in clique))
    by_size: dict[int, list[tuple[int, ...]]] = {}
    for clique in sorted(needed, key=lambda one: (len(one), one)):
        by_size.setdefault(len(clique), []).append(clique)
    return scored, by_size


def is_count(value: Any) -> bool:
    """Return whether something is an int of at least 0."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 0


def check_graph(graph: Any, n_nodes: int) -> list[tuple[int, ...]]:
    """Return the cliques of a graph between n_nodes nodes."""
    cliques: list[tuple[int, ...]] = []
    for at, clique in enumerate(graph):
        members = clique if isinstance(clique, (tuple, list, np.ndarray)) else ()
        whole = all(is_count(node) and node < n_nodes for node in members)
        if not len(members) or not whole or len(set(members)) < len(members):
            raise ValueError(
                f"graph[{at}] must be a tuple of distinct nodes in [0, {n_nodes}), the columns of y. "
                f"Got {clique!r} instead."
            )
        cliques.append(tuple(int(node) for node in members))
    if len({frozenset(clique) for clique in cliques}) < len(cliques):
        raise ValueError("graph must not name a clique twice.")
    return cliques


def check_covered(scored: Any, n_nodes: int) -> None:
    """Raise unless every node is in a clique that has a score."""
    covered = {node for clique in scored for node in clique}
    missing = sorted(set(range(n_nodes)) - covered)
    if missing:
        raise ValueError(f"graph and combine must give every node a clique. Node {missing[0]} is in none.")
