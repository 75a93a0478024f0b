"""Random graphs with scores and evidence for Hypothesis, and every labelling of them, one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from hypothesis import strategies as st

from dualfield.structures import FactorGraph

Labellings = list[tuple[float, tuple[int, ...]]]


@dataclass
class Problem:
    graph: FactorGraph
    tables: list[np.ndarray]
    evidence: np.ndarray | None
    n_examples: int
    found: dict[int, Labellings] = field(default_factory=dict)

    def labellings(self, example: int) -> Labellings:
        """Return all labellings that the scores and the evidence of an example allow, with their scores."""
        if example not in self.found:
            self.found[example] = self._enumerate(example)
        return self.found[example]

    def _enumerate(self, example: int) -> Labellings:
        known = [-1] * self.graph.n_nodes if self.evidence is None else self.evidence[example]
        found = []
        for y in product(*map(range, self.graph.n_labels)):
            score = 0.0
            for clique, table in zip(self.graph.cliques, self.tables, strict=True):
                own = table[example] if table.ndim > len(clique) else table
                score += float(own[tuple(y[node] for node in clique)])
            if score > -math.inf and all(known[v] in (-1, y[v]) for v in range(len(y))):
                found.append((score, y))
        return found

    @property
    def solvable(self) -> bool:
        return all(self.labellings(i) for i in range(self.n_examples))

    def log_partition(self, example: int, temperature: float) -> float:
        scores = [score for score, _ in self.labellings(example)]
        highest = max(scores)
        return highest + temperature * math.log(math.fsum(math.exp((s - highest) / temperature) for s in scores))

    def marginals(self, nodes: tuple[int, ...], temperature: float) -> np.ndarray:
        table = np.zeros((self.n_examples, *(self.graph.n_labels[node] for node in nodes)))
        for i in range(self.n_examples):
            total = self.log_partition(i, temperature)
            for score, y in self.labellings(i):
                table[(i, *(y[node] for node in nodes))] += math.exp((score - total) / temperature)
        return table


@st.composite
def problems(draw, integers=False, evidence=True, dead_end=False, scale=3.0):
    """Nodes, labels, cliques (with loops, repeats, free nodes), which are shared, what is known: all drawn."""
    n_labels = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    nodes = st.permutations(range(len(n_labels)))
    sizes = draw(st.lists(st.integers(1, 4), max_size=7))
    cliques = [tuple(draw(nodes)[:size]) for size in sizes]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_examples = draw(st.integers(1, 4))
    known = None
    if evidence and draw(st.booleans()):
        known = np.array([[rng.integers(-1, size) for size in n_labels] for _ in range(n_examples)])
        known[rng.random(known.shape) < 0.5] = -1
    tables = []
    for clique in cliques:
        shape = tuple(n_labels[node] for node in clique)
        shape = shape if draw(st.booleans()) else (n_examples, *shape)
        table = rng.integers(-1, 2, size=shape).astype(float) if integers else scale * rng.standard_normal(shape)
        if draw(st.booleans()):
            table[rng.random(shape) < 0.2] = -np.inf
        if dead_end and table.ndim > len(clique):
            table[rng.integers(n_examples)] = -np.inf
        tables.append(table)
    if known is None and all(table.ndim == len(clique) for table, clique in zip(tables, cliques, strict=True)):
        n_examples = 1
    return Problem(FactorGraph(n_labels, cliques), tables, known, n_examples)


def grid_edges(rows, columns):
    node = np.arange(rows * columns).reshape(rows, columns)
    across, down = (
        zip(node[:, :-1].flat, node[:, 1:].flat, strict=True),
        zip(node[:-1].flat, node[1:].flat, strict=True),
    )
    return [(int(a), int(b)) for a, b in [*across, *down]]
