"""Graphs as JSON Lines: {"nodes": [...], "edges": [[0, 1], ...], "labels": [...]}, with "types" and "edge_features".

Types, features of edges and labels need not be there. What all graphs must have alike is held against the first one, so
that an error names a line and not an index.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from dualfield.io.json_records import Record, checked_text, iter_json_records, shortened
from dualfield.io.json_typed_graphs import has_types, read_typed, read_typed_labels, typed_record
from dualfield.io.text_lines import Source, Target, source_name, write_lines

_ITEM = "a list of numbers, a list of strings, or an object from strings to values"
_NO_EDGES = "no features"


class JsonGraph(NamedTuple):
    """One graph: features of nodes, pairs of nodes, types and features of edges or None, labels or None."""

    nodes: Any
    edges: list[list[int]]
    types: list[int] | None
    features: Any
    labels: list[Any] | None

    @property
    def example(self) -> tuple[Any, ...]:
        """The graph as models with structure="graph" take it."""
        pairs = np.array(self.edges, dtype=np.int32).reshape(-1, 2)
        found = [self.nodes, pairs]
        found += [] if self.types is None else [np.array(self.types, dtype=np.int32)]
        return tuple(found if self.features is None else [*found, self.features])

    def tree(self, place: str) -> tuple[Any, ...]:
        """Return the graph as models with structure="tree" take it: edges lead from a parent to its child."""
        if self.features is not None and self.edges:
            raise ValueError(f'{place}: has "edge_features", which trees do not take; expected those of nodes alone.')
        parents, types = [-1] * len(self.nodes), [0] * len(self.nodes)
        for at, (parent, child) in enumerate(self.edges):
            if parents[child] >= 0:
                raise ValueError(
                    f"{place}: edge {at}, {[parent, child]}, gives node {child} a second parent after {parents[child]};"
                    " a tree has one parent at most for each node."
                )
            parents[child], types[child] = parent, 0 if self.types is None else self.types[at]
        if (looped := _on_a_circle(parents)) is not None:
            raise ValueError(f"{place}: the edges lead from node {looped} back to it; a tree has no circles.")
        return (self.nodes, parents) if self.types is None else (self.nodes, parents, types)


@dataclass
class JsonGraphReader:
    """Reads graphs, and holds each against what the first had, or against what a model was trained on.

    Parameters
    ----------
    structure : {"graph", "tree"}, default="graph"
        What examples are read as.
    nodes, edges : str, default=""
        What nodes and edges must have, such as "3 numbers"; empty: as the first graph.
    typed : bool, default=None
        Whether edges must have types; None: as in the first graph.
    as_in : str, default=""
        Where they have it.
    n_types : int, default=None
        How many edge types there are; None: any number.

    Examples
    --------
    >>> from dualfield.io.json_graphs import JsonGraphReader
    >>> read = JsonGraphReader()
    >>> read({"nodes": [[0.5], [1.5]], "edges": [[0, 1]]}, "line 1").labels is None
    True
    >>> read({"nodes": [["a"]], "edges": []}, "line 2")
    Traceback (most recent call last):
        ...
    ValueError: line 2: its nodes have attributes; expected 1 number, as in line 1.
    """

    structure: str = "graph"
    _: KW_ONLY
    nodes: str = ""
    edges: str = ""
    typed: bool | None = None
    as_in: str = ""
    n_types: int | None = None

    def __call__(self, record: Record, place: str, *, labelled: bool = False) -> JsonGraph:
        """Return the graph of an object; its labels only if it must have them."""
        nodes, form = _features(record, "nodes", place)
        n_nodes = len(nodes)
        edges = _edges(record, n_nodes, place)
        types = self._types(record, edges, place)
        features, edge_form = None, _NO_EDGES
        if record.get("edge_features") is not None:
            features, edge_form = _features(record, "edge_features", place)
            _check_number("edge_features", len(features), len(edges), "edges", place)
        if n_nodes:
            self._compare("nodes", form, place)
        if edges:
            self._compare("edges", edge_form, place)
        labels = _labels(record, n_nodes, place) if labelled else None
        return JsonGraph(nodes, edges, types, features if edges else None, labels)

    def example(self, graph: JsonGraph, place: str) -> tuple[Any, ...]:
        """Return a graph as models take it."""
        return graph.tree(place) if self.structure == "tree" else graph.example

    def _compare(self, what: str, form: str, place: str) -> None:
        """Take note of the first form; refuse another one."""
        expected = getattr(self, what)
        if not expected:
            setattr(self, what, form)
            self.as_in = self.as_in or place
        elif form != expected:
            raise ValueError(f"{place}: its {what} have {form}; expected {expected}, as in {self.as_in}.")

    def _types(self, record: Record, edges: list[list[int]], place: str) -> list[int] | None:
        found = record.get("types")
        if found is not None and not (isinstance(found, list) and all(_is_whole(one) for one in found)):
            raise ValueError(f'{place}: "types" must be a list of whole numbers. Got {shortened(found)} instead.')
        if found is not None:
            _check_number("types", len(found), len(edges), "edges", place)
        if not edges:
            return None
        most = 2**31 if self.n_types is None else self.n_types
        for at, kind in enumerate(found or ()):
            if not 0 <= kind < most:
                known = "0 or above" if self.n_types is None else f"0 to {most - 1}, as in {self.as_in}"
                raise ValueError(f"{place}: edge {at}, {edges[at]}, has the type {kind}; expected {known}.")
        if self.typed is None:
            self.typed = found is not None
        elif self.typed and found is None:
            raise ValueError(f'{place}: has no "types" of edges; expected them, as in {self.as_in}.')
        elif not self.typed and found is not None and self.n_types is None:
            raise ValueError(f'{place}: has "types" of edges; expected none, as in {self.as_in}.')
        return found


def read_json_graphs(source: Source, *, structure: str = "graph") -> tuple[list[Any], list[Any] | None]:
    """Read graphs, one in each line: ``{"nodes": [...], "edges": [[0, 1], ...], "labels": [...]}``.

    A node is a list of numbers, a list of attributes, or an object from attributes to values. Edges lead from the
    first node to the second. ``"types"``, a whole number for each edge, and ``"edge_features"``, an item for each edge
    in the forms of nodes, need not be there. Where nodes have types, nodes, edges, features and labels are objects by
    type: ``{"nodes": {"word": [...], "text": [...]}, "edges": {"word:text": [[0, 0], ...]}, "labels": {...}}``; edges
    with a name are called ``"word:name:text"``.

    Parameters
    ----------
    source : path, open file, or iterable of str
        JSON Lines, or a JSON list; a path may lead to a gzip file.
    structure : {"graph", "tree"}, default="graph"
        "tree": return ``(nodes, parents)`` and types, if there are any; edges lead from a parent to its child.

    Returns
    -------
    X : list of tuples
        Examples as models take them, see :class:`dualfield.structures.Graph` and :class:`dualfield.structures.Tree`.
    y : list of lists or dicts, or None
        Labels: strings, whole numbers or booleans. None if the first graph has none.

    Raises
    ------
    ValueError
        If a line is no such graph, or has other features than the first. The message names file, line and edge.

    See Also
    --------
    write_json_graphs : The way back.

    Examples
    --------
    >>> from dualfield.io import read_json_graphs
    >>> X, y = read_json_graphs(['{"nodes": [["a"], ["b"]], "edges": [[0, 1]], "labels": ["x", "y"]}'])
    >>> X[0][0], X[0][1].tolist(), y
    ([['a'], ['b']], [[0, 1]], [['x', 'y']])
    >>> read_json_graphs(['{"nodes": [["a"], ["b"]], "edges": [[0, 2]]}'])
    Traceback (most recent call last):
        ...
    ValueError: lines, line 1: edge 0, [0, 2], leads to node 2; expected nodes from 0 to 1.
    """
    if structure not in ("graph", "tree"):
        raise ValueError(f"structure must be 'graph' or 'tree'. Got {structure!r} instead.")
    name, read = source_name(source), JsonGraphReader(structure)
    X: list[Any] = []
    y: list[Any] = []
    labelled: bool | None = None
    for number, record in iter_json_records(source):
        place = f"{name}, line {number}"
        labelled = "labels" in record if labelled is None else labelled
        if structure == "graph" and has_types(record):
            X.append(read_typed(record, place, _features))
            y.append(read_typed_labels(record, X[-1][0], place, _labels) if labelled else {})
            continue
        graph = read(record, place, labelled=labelled)
        X.append(read.example(graph, place))
        y.append(graph.labels or [])
    return X, y if labelled else None


def write_json_graphs(X: Iterable[Any], y: Iterable[Any] | None, target: Target) -> None:
    """Write graphs as JSON Lines.

    Parameters
    ----------
    X : iterable of graphs
        In any form that models with ``structure="graph"`` take: tuples, dicts by node type, NetworkX graphs without
        node types, images.
    y : iterable of sequences of labels, or None
        A label for each node; those of an image may be of shape (height, width), those of node types are dicts. None:
        no labels are written.
    target : path or open text file
        A path is written atomically; one that ends in ``.gz`` gets a gzip file.

    Raises
    ------
    ValueError
        If there is not one label for each node, or a value cannot be written.

    See Also
    --------
    read_json_graphs : The way back.

    Examples
    --------
    >>> import sys
    >>> from dualfield.io import write_json_graphs
    >>> write_json_graphs([([[0.5], [1.5]], [(0, 1)])], [["x", "y"]], sys.stdout)
    {"nodes": [[0.5], [1.5]], "edges": [[0, 1]], "labels": ["x", "y"]}
    """
    from dualfield.structures.graph_input import read_graphs  # slow to import, and not needed to read

    examples = list(X)
    graphs = read_graphs(examples, 4)
    labels = [None] * len(graphs) if y is None else list(y)
    if len(labels) != len(graphs):
        raise ValueError(f"y has labels of {len(labels)} graphs; X has {len(graphs)}.")
    write_lines(target, _lines(examples, graphs, labels))


def _lines(examples: list[Any], graphs: list[Any], labels: list[Any]) -> Iterator[str]:
    for at, (example, graph, given) in enumerate(zip(examples, graphs, labels, strict=True)):
        if graph.by_type is None:
            record = _record(graph, given, f"y[{at}]")
        elif graph.by_type.is_grouped:
            record = typed_record(example, given, f"y[{at}]", _rows)
        else:
            raise ValueError(f"X[{at}] must have its nodes by type, as dicts, to be written: a network has them mixed.")
        try:
            yield json.dumps(record, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X[{at}] cannot be written as JSON: {error}.") from error


def _record(graph: Any, labels: Any, place: str) -> Record:
    nodes = _rows(graph.nodes)
    record: Record = {"nodes": nodes, "edges": graph.edges.tolist()}
    if graph.types is not None:
        record["types"] = graph.types.tolist()
    if graph.features is not None:
        record["edge_features"] = _rows(graph.features)
    if labels is not None:
        record["labels"] = np.ravel(labels).tolist() if isinstance(labels, np.ndarray) else list(labels)
        _check_number("labels", len(record["labels"]), len(nodes), "nodes", place)
    return record


def _rows(features: Any) -> list[Any]:
    is_sparse: bool = scipy.sparse.issparse(features)
    if is_sparse:
        features = features.toarray()
    return features.tolist() if isinstance(features, np.ndarray) else [_row(one) for one in features]


def _row(item: Any) -> Any:
    return item.tolist() if isinstance(item, np.ndarray) else item


def _features(record: Record, key: str, place: str) -> tuple[Any, str]:
    """Return rows of numbers as a matrix and attributes as they are, and in words which of the two they are."""
    found = record.get(key)
    what = "node" if key == "nodes" else "edge"
    if not isinstance(found, list):
        missing = f'has no "{key}"' if key not in record else f'"{key}" is {shortened(found)}'
        raise ValueError(f"{place}: {missing}; expected a list, with {_ITEM} for each {what}.")
    numbers = [isinstance(item, list) and bool(item) and not isinstance(item[0], str) for item in found]
    if not any(numbers):
        for at, item in enumerate(found):
            _check_attributes(item, f'{place}: "{key}"[{at}]')
        return found, "attributes"
    width = len(found[numbers.index(True)])
    for at, item in enumerate(found):
        good = isinstance(item, list) and len(item) == width and all(map(_is_number, item))
        if not good:
            expected = f"{_counted(width, 'number')}, as {what} {numbers.index(True)} has"
            raise ValueError(f'{place}: "{key}"[{at}] must be {expected}. Got {shortened(item)} instead.')
    return np.array(found, dtype=np.float64), _counted(width, "number")


def _check_attributes(item: Any, place: str) -> None:
    if isinstance(item, list):
        for at, attribute in enumerate(item):
            checked_text(attribute, f"entry {at}", place)
        return
    if not isinstance(item, dict):
        raise ValueError(f"{place} must be {_ITEM}. Got {shortened(item)} instead.")
    for name, value in item.items():
        checked_text(name, "a name", place)
        if isinstance(value, str):
            checked_text(value, f"{shortened(name)}", place)
        elif not isinstance(value, bool) and not _is_number(value):
            raise ValueError(f"{place} has {shortened(value)} at {name!r}; expected a number, a string or a boolean.")


def _edges(record: Record, n_nodes: int, place: str) -> list[list[int]]:
    found = record.get("edges")
    if not isinstance(found, list):
        missing = 'has no "edges"' if "edges" not in record else f'"edges" is {shortened(found)}'
        raise ValueError(f"{place}: {missing}; expected a list of pairs of nodes, such as [[0, 1], [1, 2]].")
    for at, edge in enumerate(found):
        if not (isinstance(edge, list) and len(edge) == 2 and all(map(_is_whole, edge))):
            raise ValueError(f"{place}: edge {at} must be a pair of nodes, such as [0, 1]. Got {shortened(edge)}.")
        for verb, node in zip(("comes from", "leads to"), edge, strict=True):
            if not 0 <= node < n_nodes:
                known = f"expected nodes from 0 to {n_nodes - 1}" if n_nodes else "there are no nodes"
                raise ValueError(f"{place}: edge {at}, {edge}, {verb} node {node}; {known}.")
        if edge[0] == edge[1]:
            raise ValueError(f"{place}: edge {at}, {edge}, joins a node with itself; expected two nodes.")
    return found


def _labels(record: Record, n_nodes: int, place: str) -> list[Any]:
    found = record.get("labels")
    if not isinstance(found, list):
        missing = 'has no "labels"' if "labels" not in record else f'"labels" is {shortened(found)}'
        raise ValueError(f"{place}: {missing}; expected a list, with a label for each node.")
    _check_number("labels", len(found), n_nodes, "nodes", place)
    for at, label in enumerate(found):
        if isinstance(label, str):
            checked_text(label, f'"labels"[{at}]', place)
        elif not isinstance(label, bool) and not _is_whole(label):
            expected = "a string, a whole number or a boolean"
            raise ValueError(f'{place}: "labels"[{at}] must be {expected}. Got {shortened(label)} instead.')
    return found


def _check_number(key: str, n: int, expected: int, of: str, place: str) -> None:
    if n != expected:
        raise ValueError(f'{place}: has {n} "{key}"; expected {expected}, one for each of its {of}.')


def _on_a_circle(parents: list[int]) -> int | None:
    """Return a node whose ancestors lead back to it; None if there is none."""
    done = [False] * len(parents)
    for start in range(len(parents)):
        path, seen, node = [], set[int](), start
        while node >= 0 and not done[node]:
            if node in seen:
                return node
            seen.add(node)
            path.append(node)
            node = parents[node]
        for one in path:
            done[one] = True
    return None


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
