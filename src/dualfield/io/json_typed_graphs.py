"""Graphs whose nodes have types as JSON: objects by type in the place of lists.

``{"nodes": {"word": [...], "text": [...]}, "edges": {"word:text": [[0, 0], ...]}, "labels": {"word": [...], ...}}``: a
key of edges is "type:type", or "type:name:type" where edges have a name; nodes are counted within their types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dualfield.io.json_records import Record, shortened

Rows = Callable[[Record, str, str], tuple[Any, str]]
Labels = Callable[[Record, int, str], list[Any]]


def has_types(record: Record) -> bool:
    """Return whether the nodes of a graph come by type."""
    return isinstance(record.get("nodes"), dict)


def read_typed(record: Record, place: str, rows: Rows) -> tuple[Any, ...]:
    """Return a graph as models take it: dicts of nodes, of edges and, where there are any, of their features.

    `rows` reads the features of nodes or edges of one type, as those of graphs without types.
    """
    nodes = {
        kind: rows({"nodes": items}, "nodes", f"{place}, nodes of type {kind!r}")[0]
        for kind, items in record["nodes"].items()
    }
    if ":" in "".join(nodes) or "" in nodes:
        raise ValueError(f"{place}: node types must be texts without ':'. Got {shortened(list(nodes))} instead.")
    given = _object(record, "edges", place)
    edges = {_key(name, nodes, place): _pairs(name, pairs, nodes, place) for name, pairs in given.items()}
    if record.get("edge_features") is None:
        return nodes, edges
    features = {}
    for name, items in _object(record, "edge_features", place).items():
        key, where = _key(name, nodes, place), f"{place}, edges {name!r}"
        found = rows({"edge_features": items}, "edge_features", where)[0]
        if len(found) != len(edges.get(key, ())):
            raise ValueError(f'{where}: has {len(found)} "edge_features"; expected {len(edges.get(key, ()))}.')
        features[key] = found
    return nodes, edges, features


def read_typed_labels(record: Record, nodes: Mapping[str, Any], place: str, labels: Labels) -> dict[str, list[Any]]:
    """Return the labels of each type; `labels` reads those of one."""
    given = _object(record, "labels", place)
    if set(given) != set(nodes):
        raise ValueError(f'{place}: "labels" has the types {sorted(given)}; expected {sorted(nodes)}, as "nodes" has.')
    return {
        kind: labels({"labels": given[kind]}, len(rows), f"{place}, nodes of type {kind!r}")
        for kind, rows in nodes.items()
    }


def typed_record(example: tuple[Any, ...], labels: Any, place: str, rows: Callable[[Any], list[Any]]) -> Record:
    """Return a graph of dicts as an object of JSON; `rows` makes lists of features."""
    record: Record = {
        "nodes": {str(kind): rows(items) for kind, items in example[0].items()},
        "edges": {":".join(map(str, key)): rows(pairs) for key, pairs in example[1].items()},
    }
    if len(example) > 2 and example[2] is not None:
        record["edge_features"] = {":".join(map(str, key)): rows(items) for key, items in example[2].items()}
    if labels is None:
        return record
    if not isinstance(labels, Mapping):
        raise ValueError(f"{place} must be a dict with the labels of each node type. Got {type(labels).__name__}.")
    record["labels"] = {str(kind): rows(given) for kind, given in labels.items()}
    sizes = ({kind: len(items) for kind, items in record[name].items()} for name in ("nodes", "labels"))
    expected, found = sizes
    if expected != found:
        raise ValueError(f"{place} has {found} labels by type; its graph has {expected} nodes.")
    return record


def _object(record: Record, key: str, place: str) -> dict[str, Any]:
    found = record.get(key)
    if not isinstance(found, dict):
        missing = f'has no "{key}"' if key not in record else f'"{key}" is {shortened(found)}'
        raise ValueError(f"{place}: {missing}; expected an object by type, as its nodes are.")
    return found


def _key(name: str, nodes: Mapping[str, Any], place: str) -> tuple[str, ...]:
    first, _, rest = name.partition(":")
    middle, _, last = rest.rpartition(":")
    if not {first, last} <= set(nodes):
        raise ValueError(
            f'{place}: edges {name!r} must be called "type:type" or "type:name:type", with the types {sorted(nodes)}.'
        )
    return (first, middle, last) if middle else (first, last)


def _pairs(name: str, pairs: Any, nodes: Mapping[str, Any], place: str) -> list[list[int]]:
    sizes = [len(nodes[kind]) for kind in (name.partition(":")[0], name.rpartition(":")[2])]
    if not isinstance(pairs, list):
        raise ValueError(f"{place}, edges {name!r}: must be a list of pairs of nodes. Got {shortened(pairs)} instead.")
    for at, pair in enumerate(pairs):
        is_pair = isinstance(pair, list) and len(pair) == 2 and all(type(node) is int for node in pair)
        if not (is_pair and all(0 <= node < size for node, size in zip(pair, sizes, strict=True))):
            raise ValueError(
                f"{place}, edges {name!r}: edge {at} must be a pair of nodes below {sizes[0]} and {sizes[1]}. "
                f"Got {shortened(pair)}."
            )
    return pairs
