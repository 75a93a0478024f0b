"""Marginals of a batch of factor graphs by NumPy, examples on the last axis: what native code is measured against.

Elimination in the logarithmic domain, one array operation for all examples of a chunk; nothing is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

Clique = tuple[int, ...]
NUMBERS_OF_A_CHUNK = 2**18  # enough to hide what Python costs, few enough to stay in a processor's cache


class NumpyGraph:
    """Nodes with numbers of labels of their own, and cliques that have a table of scores for each example."""

    def __init__(self, n_labels: Sequence[int], cliques: Sequence[Clique]) -> None:
        self.n_labels, self.cliques = list(n_labels), list(cliques)
        self.members = self._min_fill()  # the node that is eliminated, then its neighbours in order of elimination
        place = {members[0]: at for at, members in enumerate(self.members)}
        self.members = [(node, *sorted(rest, key=place.__getitem__)) for node, *rest in self.members]
        self.place = place
        self.homes = [min(clique, key=place.__getitem__) for clique in cliques]

    def _min_fill(self) -> list[Clique]:
        near: list[set[int]] = [set() for _ in self.n_labels]
        for clique in self.cliques:
            for node in clique:
                near[node] |= set(clique) - {node}

        def price(node: int) -> tuple[int, int, int]:
            missing = sum(len(near[node] - near[other]) - 1 for other in near[node])
            return missing, prod(self.n_labels[other] for other in (node, *near[node])), node

        left, found = set(range(len(self.n_labels))), []
        while left:
            node = min(left, key=price)
            left.remove(node)
            found.append((node, *near[node]))
            for other in near[node]:
                near[other] = (near[other] | near[node]) - {node, other}
        return found

    def marginals(self, tables: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the probabilities of all labels of each clique, of the shape of its table (n, labels, ...)."""
        n = len(tables[0])
        answers = [np.empty_like(table) for table in tables]
        numbers = sum(prod(self.n_labels[node] for node in members) for members in self.members)
        step = max(1, NUMBERS_OF_A_CHUNK // numbers)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            found = self._spread([np.moveaxis(table[rows], 0, -1) for table in tables])
            for clique, home, answer in zip(self.cliques, self.homes, answers, strict=True):
                answer[rows] = np.moveaxis(_sum_out(found[home], self.members[self.place[home]], clique), -1, 0)
        return answers

    def _spread(self, tables: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
        waiting: dict[int, list[tuple[Clique, np.ndarray]]] = {}
        for clique, home, table in zip(self.cliques, self.homes, tables, strict=True):
            waiting.setdefault(home, []).append((clique, table))
        conditionals = []
        for node, *separator in self.members:
            table = self._table((node, *separator), waiting.pop(node, []), tables[0].shape[-1])
            top = table.max(axis=0)
            top[top == -np.inf] = 0.0
            table -= top
            np.exp(table, out=table)
            total = table.sum(axis=0)
            if separator:
                waiting.setdefault(separator[0], []).append((tuple(separator), top + np.log(total)))
            total[total == 0.0] = 1.0
            table /= total
            conditionals.append(table)
        beliefs: dict[int, np.ndarray] = {}
        for node, *separator in reversed(self.members):
            table = conditionals.pop()
            if separator:
                parent = separator[0]
                table = table * _sum_out(beliefs[parent], self.members[self.place[parent]], tuple(separator))
            beliefs[node] = table
        return beliefs

    def _table(self, members: Clique, parts: Sequence[tuple[Clique, np.ndarray]], n: int) -> np.ndarray:
        table = np.zeros((*(self.n_labels[node] for node in members), n))
        for nodes, values in parts:
            order = sorted(range(len(nodes)), key=lambda axis: members.index(nodes[axis]))
            absent = tuple(slice(None) if node in nodes else None for node in members)
            table += values.transpose(*order, len(nodes))[absent]
        return table


def _sum_out(table: np.ndarray, members: Clique, nodes: Clique) -> np.ndarray:
    """Return the sum over all members but the given nodes, with one axis for each of them in their order."""
    kept = [node for node in members if node in nodes]
    away = tuple(axis for axis, node in enumerate(members) if node not in nodes)
    summed = table.sum(axis=away) if away else table
    return summed.transpose(*(kept.index(node) for node in nodes), len(nodes))
