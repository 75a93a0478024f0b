"""Graphs in JSON: how they are recognised, and which line a node is in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualfield.io.json_graphs import JsonGraphReader
    from dualfield.io.text_lines import Source

GRAPHS = {"graphs": "graphs in JSON"}

_OBJECT = re.compile(r'\s*(?:\[\s*)?\{\s*"')
_NODES = re.compile(r'"nodes"\s*:\s*\[')
_TEXT = re.compile(r'"(?:text|tokens)"\s*:')


def is_graphs(begin: str) -> bool:
    """Tell by the beginning of a text whether it has graphs."""
    first = begin.removeprefix("\ufeff")
    return bool(_OBJECT.match(first) and _NODES.search(first)) and not _TEXT.search(first.partition("\n")[0])


def read_graph_data(source: Source, name: str, read: JsonGraphReader) -> tuple[list[Any], list[list[Any]]]:
    """Return labelled graphs as models take them; those without nodes are left out."""
    from dualfield.io.json_records import iter_json_records

    X, y = [], []
    for number, record in iter_json_records(source):
        place = f"{name}, line {number}"
        graph = read(record, place, labelled=True)
        example = read.example(graph, place)
        if graph.labels:
            X.append(example)
            y.append(graph.labels)
    return X, y


def node_lines(source: Source) -> Iterator[int]:
    """Yield the line of each node."""
    from dualfield.io.json_records import iter_json_records

    for number, record in iter_json_records(source):
        yield from [number] * len(record["labels"])


@contextmanager
def naming_examples(place: Callable[[int], str]) -> Iterator[None]:
    """Let errors about one of many graphs name its line, and options of the command line."""
    try:
        yield
    except ValueError as error:
        at = re.match(r"Example (\d+) ", str(error))
        if at is None:
            raise
        text = re.sub(r"inference='(\w+)'", r"--inference \1", str(error)[at.end() :]).replace("the budget", "--budget")
        raise ValueError(f"{place(int(at[1]))}: {text}") from error


def count_edges(X: list[Any], structure: str) -> int:
    """Return how many edges there are."""
    return sum(sum(up >= 0 for up in one[1]) if structure == "tree" else len(one[1]) for one in X)
