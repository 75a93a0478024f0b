"""Small networks with tables and rows of values, drawn at random, and their answers by enumeration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dualfield.structures import Network


@dataclass(frozen=True)
class NetworkProblem:
    network: Network
    theta: Any
    codes: Any
    hidden: Any


@st.composite
def network_problems(draw: Any, *, most_variables: int = 5, most_rows: int = 6, unknown: bool = True) -> NetworkProblem:
    """Networks of a few variables in any order, perhaps with shared tables, and rows with hidden sets of their own."""
    n = draw(st.integers(1, most_variables))
    order = draw(st.permutations(range(n)))
    n_values = [draw(st.integers(1, 3)) for _ in range(n)]
    parents: list[list[int]] = [[] for _ in range(n)]
    for at, v in enumerate(order):
        if at:
            parents[v] = draw(st.lists(st.sampled_from(order[:at]), unique=True, max_size=3))
    tables = list(range(n))
    for v in range(n):
        alike = [o for o in range(v) if shape(n_values, parents, o) == shape(n_values, parents, v)]
        if alike and draw(st.booleans()):
            tables[v] = tables[draw(st.sampled_from(alike))]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    network = Network(n_values, parents, tables)
    rows = draw(st.integers(0, most_rows))
    codes = np.stack([rng.integers(size, size=rows) for size in n_values], axis=1).astype(np.int32)
    hidden = rng.random((rows, n)) < draw(st.sampled_from([0.2, 0.5, 1.0]))
    if unknown:
        codes[~hidden & (rng.random((rows, n)) < 0.15)] = -1
    return NetworkProblem(network, rng.normal(size=network.n_parameters), codes, hidden)


def shape(n_values: list[int], parents: list[list[int]], v: int) -> tuple[int, ...]:
    return (*(n_values[one] for one in parents[v]), n_values[v])


def place(network: Network, v: int, row: Any) -> int | None:
    """The entry that a variable uses, by a walk over the tables; None if a value is missing."""
    first = network.tables.index(network.tables[v])
    start = 0
    for table in range(network.tables[v]):
        start += int(np.prod(network.shape(network.tables.index(table))))
    values = [row[one] for one in network.parents[v]] + [row[v]]
    if min(values) < 0:
        return None
    return start + int(np.ravel_multi_index(values, network.shape(first)))


def uses(network: Network, row: Any) -> Any:
    """n(row) of the formula."""
    counts = np.zeros(network.n_parameters)
    for v in range(network.n_variables):
        at = place(network, v, row)
        if at is not None:
            counts[at] += 1.0
    return counts


def completions(network: Network, row: Any, hidden: Any) -> Any:
    """All rows that agree with a row where it is not hidden."""
    for values in itertools.product(*(range(network.n_values[v]) for v in np.flatnonzero(hidden))):
        other = np.array(row)
        other[np.flatnonzero(hidden)] = values
        yield other
