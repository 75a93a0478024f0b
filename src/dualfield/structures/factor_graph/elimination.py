"""In which order the nodes of a graph are eliminated, and the tables that this takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

# NumPy 1.26 has arrays of up to 32 axes; one of them counts examples.
MOST_NODES_OF_A_TABLE = 31


@dataclass(frozen=True)
class Step:
    """The elimination of one node.

    Its table has an axis for each of ``members``: the node itself, then the neighbours it has at that time, in the
    order of their own elimination. Node and neighbours are a clique of the junction tree; the neighbours are what it
    shares with its parent, the clique of the first of them.
    """

    node: int
    members: tuple[int, ...]
    cliques: tuple[int, ...]  # the cliques of the graph whose scores are added to this table

    @property
    def separator(self) -> tuple[int, ...]:
        """The members without the node: what the table still depends on when the node is gone."""
        return self.members[1:]

    @property
    def parent(self) -> int | None:
        """The node whose table takes in what is left of this one; None for the last one of a component."""
        return self.members[1] if len(self.members) > 1 else None


def plan_elimination(n_labels: Sequence[int], cliques: Sequence[tuple[int, ...]], max_table: int) -> tuple[Step, ...]:
    """Return the steps in order, or raise an error if one of them needs a table of more than max_table numbers."""
    found = _min_fill(n_labels, cliques)
    place = {node: at for at, (node, _) in enumerate(found)}
    # Every clique of the graph lies inside the clique of its member that is eliminated first.
    homes: list[list[int]] = [[] for _ in n_labels]
    for index, clique in enumerate(cliques):
        homes[min(clique, key=place.__getitem__)].append(index)
    steps = tuple(
        Step(node, (node, *sorted(neighbours, key=place.__getitem__)), tuple(homes[node])) for node, neighbours in found
    )
    _check_width(steps, n_labels, max_table)
    return steps


def _check_width(steps: Sequence[Step], n_labels: Sequence[int], max_table: int) -> None:
    def numbers(step: Step) -> int:
        return prod(n_labels[node] for node in step.members)

    widest = max(steps, key=lambda step: (numbers(step), len(step.members)))
    if numbers(widest) > max_table:
        raise ValueError(
            f"FactorGraph is too wide for exact answers: its elimination has width {len(widest.members) - 1} and needs "
            f"a table of {len(widest.members)} nodes and {numbers(widest)} numbers, more than max_table={max_table}. "
            f"Use fewer or smaller cliques, such as the edges of a spanning tree (dualfield.structures.spanning_tree), "
            f"or raise max_table where memory holds several tables of {8 * numbers(widest)} bytes."
        )
    longest = max(len(step.members) for step in steps)
    if longest > MOST_NODES_OF_A_TABLE:
        raise ValueError(
            f"FactorGraph is too wide for exact answers: its elimination has width {longest - 1} and needs a table of "
            f"{longest} nodes, more than the {MOST_NODES_OF_A_TABLE} that an array has axes for. Use fewer or smaller "
            f"cliques; nodes with one label can be left out."
        )


def _min_fill(n_labels: Sequence[int], cliques: Sequence[tuple[int, ...]]) -> list[tuple[int, list[int]]]:
    """Return each node with its neighbours at the time when it goes.

    The next node is the one that adds the fewest edges between its neighbours, then the one with the smallest table,
    then the lowest. Sets of nodes are the bits of an integer, so that the hub of a large star costs little.
    """
    near = [0] * len(n_labels)
    for clique in cliques:
        bits = sum(1 << node for node in clique)
        for node in clique:
            near[node] |= bits & ~(1 << node)

    def price(node: int) -> tuple[int, int, int]:
        around = _nodes(near[node])
        missing = sum((near[node] & ~near[other]).bit_count() - 1 for other in around)  # each edge from both its ends
        return missing, n_labels[node] * prod(n_labels[other] for other in around), node

    prices = {node: price(node) for node in range(len(n_labels))}
    found = []
    while prices:
        missing, _, node = min(prices.values())
        del prices[node]
        around = _nodes(near[node])
        found.append((node, around))
        changed = near[node]
        for other in around:
            near[other] = (near[other] | near[node]) & ~(1 << other) & ~(1 << node)
            if missing:  # new edges also change the price of those who know both their ends
                changed |= near[other]
        for other in _nodes(changed):
            prices[other] = price(other)
    return found


def _nodes(bits: int) -> list[int]:
    """Return the places of the ones in an integer, lowest first."""
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
