"""Graphs whose nodes have types: features and edges by type, and the names of types and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data import Labels
from dualfield.data.arrays import Codes
from dualfield.data.input_forms import form_of_example, unwrapped
from dualfield.data.typed_rows import TypedRows
from dualfield.structures.pairwise import integers
from dualfield.structures.scores import PartSets


class TypeNames(NamedTuple):
    """Names of node types, and of the tables of edges; None: these have numbers."""

    nodes: Labels
    tables: tuple[str, ...] | None


class ByType(NamedTuple):
    """What one graph says of types.

    The type of each node, whether nodes were passed by type, and the name of the table of each edge or None.
    """

    nodes: list[Any]
    is_grouped: bool
    tables: list[str] | None = None


class FlatTypes(NamedTuple):
    """The same of all graphs, one after another, and how many nodes each has."""

    lengths: NDArray[np.int64]
    nodes: NDArray[Any]
    is_grouped: NDArray[np.bool_]
    tables: list[str] | None

    @classmethod
    def none(cls) -> FlatTypes:
        """Return what no graphs say."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=object), np.zeros(0, dtype=bool), None)

    @classmethod
    def of(cls, graphs: Sequence[ByType | None], n_edges: Sequence[int]) -> FlatTypes | None:
        """Put them together; None if no graph has types."""
        known = [one for one in graphs if one is not None]
        if not known:
            return None
        if len(known) < len(graphs):
            raise ValueError(f"X[{graphs.index(None)}] has no node types, as other graphs have.")
        named = [one.tables is not None for one, n in zip(known, n_edges, strict=True) if n]
        if any(named) and not all(named):
            raise ValueError("Edges must be dicts, by the types that they join, in all graphs or in none.")
        tables = [table for one in known for table in one.tables or ()] if any(named) else None
        nodes = np.array([kind for one in known for kind in one.nodes], dtype=object)
        lengths = np.array([len(one.nodes) for one in known], dtype=np.int64)
        return cls(lengths, nodes, np.array([one.is_grouped for one in known]), tables)

    def check(self, known: Labels, place: str) -> None:
        """Raise an error at the first graph with nodes of a type that is not known."""
        wrong = np.flatnonzero(_codes(self.nodes.tolist(), known.classes.tolist()) < 0)
        if wrong.size:
            example = int(np.searchsorted(offsets_of(self.lengths), wrong[0], side="right")) - 1
            raise ValueError(
                f"{place.format(example)} has nodes of type {self.nodes[wrong[0]]!r}; the types of this model are "
                f"{known.classes.tolist()}."
            )

    def encode(
        self, known: Labels | None, tables: tuple[str, ...] | None, edges: Codes, types: Codes | None, bounds: Bounds
    ) -> tuple[Codes, Codes | None, TypeNames]:
        """Return the type of each node and of each edge as codes, with the names that they stand for.

        `known` are the node types, and `tables` the names of edges; None: those that occur. Edges of one name have one
        table. Those without a name or a number have the table of the two types that they join.
        """
        names = checked_types(Labels.fit(self.nodes.tolist(), name="the node types of X") if known is None else known)
        nodes = _codes(self.nodes.tolist(), names.classes.tolist())
        if types is not None:
            return nodes, types, TypeNames(names, None)
        called, of_edge = self._called(names.classes.tolist(), nodes[edges + bounds.of_edges[:, None]].reshape(-1, 2))
        found = tuple(sorted(set(called))) if tables is None else tables
        found_at = _codes(called, found)[of_edge]
        wrong = np.flatnonzero(found_at < 0)
        if wrong.size:
            example, table = bounds.example_of(int(wrong[0])), called[of_edge[wrong[0]]]
            raise ValueError(f"{example} has edges of type {table!r}; the edge types of this model are {list(found)}.")
        return nodes, found_at, TypeNames(names, found or None)

    def _called(self, kinds: list[Any], ends: Codes) -> tuple[list[str], NDArray[Any]]:
        """Return names of tables, and which of them each edge has, given the types of its ends."""
        if self.tables is not None:
            called = sorted(set(self.tables))
            return called, _codes(self.tables, called)
        joined, of_edge = np.unique(ends, axis=0, return_inverse=True)
        return [table_name(kinds[one], kinds[two]) for one, two in joined.tolist()], of_edge.ravel()


class Bounds(NamedTuple):
    """Where the nodes and edges of each example begin, and what errors call an example."""

    nodes: NDArray[np.int64]
    edges: NDArray[np.int64]
    place: str

    @property
    def of_edges(self) -> NDArray[np.int64]:
        """The first node of the example of each edge."""
        return np.repeat(self.nodes[:-1], np.diff(self.edges))

    def example_of(self, edge: int) -> str:
        """Return what errors call the example of an edge."""
        return self.place.format(int(np.searchsorted(self.edges, edge, side="right")) - 1)


def table_name(one: Any, two: Any) -> str:
    """Return what the table of edges from one type to another is called, where it has no name of its own."""
    return f"{one}-{two}"


def checked_types(names: Labels) -> Labels:
    """Return the names of types, which are str or int: ":" stands between a type and its attributes."""
    kinds = names.classes.tolist()
    for kind in kinds:
        if isinstance(kind, bool) or ":" in str(kind) or not str(kind):
            raise ValueError(f"Node types must be int, or str without ':'. Got {kind!r} instead.")
    if len({table_name(one, two) for one in kinds for two in kinds}) < len(kinds) ** 2:
        raise ValueError(f"Pairs of node types must have different names, type-type. Got the types {kinds}.")
    return names


def _codes(values: Sequence[Any], known: Sequence[Any]) -> NDArray[np.int32]:
    """Return the place of each value among those known; -1 where it is none of them."""
    place = {value: at for at, value in enumerate(known)}
    return np.array([place.get(value, -1) for value in values], dtype=np.int32)


def offsets_of(lengths: Any) -> NDArray[np.int64]:
    """Return where each of some examples begins, given how long they are."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def n_rows(rows: Any) -> int:
    """Return how many rows a matrix or list has."""
    return int(rows.shape[0]) if hasattr(rows, "shape") and rows.shape else len(rows)


def kinds_of(nodes: Mapping[Any, Any]) -> list[Any]:
    """Return the type of each node, where nodes are passed by type: all of one type, then all of the next, sorted."""
    return [kind for kind in sorted(nodes, key=str) for _ in range(n_rows(nodes[kind]))]


def edges_by_type(
    name: str, nodes: Mapping[Any, Any], edges: Mapping[Any, Any], features: Any = None
) -> tuple[NDArray[np.int32], list[str], dict[str, Any] | None]:
    """Return edges that are passed by the types that they join: pairs of nodes, tables, and features by table.

    A key is (type, type), which has a table of its own, or (type, name, type), which has that of this name.
    """
    sizes = {kind: n_rows(nodes[kind]) for kind in sorted(nodes, key=str)}
    begins = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    if features is not None and (not isinstance(features, Mapping) or set(features) - set(edges)):
        raise ValueError(f"{name}[2] must be a dict of edge features, with keys that {name}[1] has.")
    found, tables = [np.zeros((0, 2), dtype=np.int32)], list[str]()
    pieces = dict[str, list[Any]]()
    for key, pairs in edges.items():
        if not isinstance(key, tuple) or len(key) not in (2, 3) or not {key[0], key[-1]} <= set(sizes):
            raise ValueError(
                f"{name}[1] must have keys (type, type) or (type, name, type) of the node types {list(sizes)}. "
                f"Got {key!r} instead."
            )
        place, table = f"{name}[1][{key!r}]", str(key[1]) if len(key) == 3 else table_name(*key)
        own = integers(place, pairs, "pairs of nodes, of shape (n_edges, 2)", 2)
        most = np.array([sizes[key[0]], sizes[key[-1]]])
        wrong = np.flatnonzero(((own < 0) | (own >= most)).any(axis=1))
        if wrong.size:
            raise ValueError(
                f"{place} has the edge {tuple(own[wrong[0]].tolist())}; its graph has {most[0]} nodes of type "
                f"{key[0]!r} and {most[1]} of type {key[-1]!r}, counted from 0."
            )
        found.append(own + np.array([begins[key[0]], begins[key[-1]]], dtype=np.int32))
        tables += [table] * len(own)
        if features is not None and key in features:
            rows = features[key]
            if n_rows(rows) != len(own):
                raise ValueError(
                    f"{name}[2][{key!r}] has {n_rows(rows)} rows of edge features; {place} has {len(own)} edges."
                )
            pieces.setdefault(table, []).append(rows)
    joined = {table: _joined(rows) for table, rows in pieces.items()}
    return np.concatenate(found), tables, joined or None


def _joined(pieces: list[Any]) -> Any:
    """Return rows of several matrices, or items of several lists, one after another."""
    if len(pieces) == 1:
        return pieces[0]
    if any(scipy.sparse.issparse(one) for one in pieces):
        return scipy.sparse.vstack(pieces)
    if all(form_of_example(unwrapped(one)) == "numbers" for one in pieces):
        return np.concatenate([np.asarray(one) for one in pieces])
    return [item for one in pieces for item in one]


def typed_rows(by_type: Sequence[Mapping[Any, Any]], types: Sequence[Any], offsets: NDArray[np.int64]) -> TypedRows:
    """Return the rows of graphs, each of which has them by type, in the order in which `types` has their types."""
    kinds = sorted({kind for one in by_type for kind in one}, key=str)
    rows = {str(kind): ([one.get(kind, []) for one in by_type], None) for kind in kinds}
    return TypedRows(rows=rows, types=[str(kind) for kind in types], offsets=offsets)


def flat_typed_rows(nodes: Any, types: NDArray[Any], lengths: NDArray[np.int64]) -> TypedRows:
    """Return the rows of flat graphs: by type, or all together."""
    example = np.repeat(np.arange(len(lengths)), lengths)
    rows = {}
    for kind in sorted(set(types.tolist()), key=str):
        at = np.flatnonzero(types == kind)
        if isinstance(nodes, Mapping):
            if kind not in nodes:
                raise ValueError(f"nodes of FlatGraphs has no rows for nodes of type {kind!r}.")
            own = nodes[kind]
        else:
            own = [nodes[place] for place in at.tolist()] if isinstance(nodes, (list, tuple)) else nodes[at]
        rows[str(kind)] = (own, np.bincount(example[at], minlength=len(lengths)))
    return TypedRows(rows=rows, types=[str(kind) for kind in types.tolist()], offsets=offsets_of(lengths))


def labels_together(name: str, labels: Any, places: dict[Any, NDArray[np.int64]], partly: bool = False) -> Any:
    """Return labels that come by type in the order of the nodes; an array if all of them come as arrays.

    `places` are the nodes of each type. Types may be left out if labels are known `partly`.
    """
    if partly and (labels is None or isinstance(labels, Mapping)):
        labels = {kind: [None] * len(at) for kind, at in places.items()} | dict(labels or {})
    if not isinstance(labels, Mapping):
        raise ValueError(
            f"{name} must be a dict with the labels of each node type, {list(places)}, as its nodes are. "
            f"Got {type(labels).__name__} instead."
        )
    for kind in [*places, *labels]:
        n, given = len(places.get(kind, ())), len(labels.get(kind, ()))
        if n != given:
            raise ValueError(f"{name} has {given} labels for {n} nodes of type {kind!r}.")
    flat: list[Any] = [None] * sum(map(len, places.values()))
    for kind, at in places.items():
        for place, label in zip(at.tolist(), labels[kind], strict=True):
            flat[place] = label
    return np.array(flat) if all(isinstance(one, np.ndarray) for one in labels.values()) else flat


def labels_apart(rows: Any, places: dict[Any, NDArray[np.int64]]) -> dict[Any, Any]:
    """Return what there is for each node by type."""
    if isinstance(rows, np.ndarray):
        return {kind: rows[at] for kind, at in places.items()}
    return {kind: [rows[place] for place in at.tolist()] for kind, at in places.items()}


def part_sets(flags: NDArray[np.bool_], kinds: Codes, ends: Codes, types: Codes | None, n_types: int) -> PartSets:
    """Return which labels nodes may have, and which pairs edges, given label sets, node types, and types of ends."""
    width = flags.shape[1] ** 2
    joined, set_of = np.unique(ends, axis=0, return_inverse=True)
    pairs = (flags[joined[:, 0], :, None] & flags[joined[:, 1], None, :]).reshape(len(joined), width)
    cliques = np.zeros((n_types, width), dtype=bool)
    tables = np.zeros(len(ends), dtype=np.int64) if types is None else types
    for table, one in np.unique(np.column_stack([tables, set_of.ravel()]), axis=0).tolist():
        cliques[table] |= pairs[one]
    return PartSets(flags, kinds, pairs, set_of.ravel(), cliques.ravel())
