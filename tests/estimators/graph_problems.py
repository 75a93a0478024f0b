"""Trees and graphs for conditional graphical models, and what fitted ones score, clique by clique in plain Python."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import ConditionalGraphicalModel

COLUMNS, EDGE_COLUMNS, NAMES = 2, 3, "abc"
Pairs = list[tuple[int, int]]


def graphs(seed: int = 0, n: int = 14, *, features: bool = True, most: int = 5) -> tuple[list[Any], list[list[str]]]:
    """Graphs with circles, double edges, nodes without an edge, two types, and labels that depend on neighbours."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        size = int(rng.integers(1, most + 1))
        every = list(itertools.permutations(range(size), 2))
        chosen = rng.choice(len(every), size=min(len(every), int(rng.integers(0, 6))), replace=False) if every else []
        edges = np.array([every[at] for at in chosen], dtype=int).reshape(-1, 2)
        codes = rng.integers(0, 2, size)
        for a, b in edges:  # an edge raises the label of the node that it leads to
            codes[b] = min(2, codes[a] + int(rng.integers(0, 2)))
        nodes = np.eye(3)[codes][:, :COLUMNS] + 0.4 * rng.normal(size=(size, COLUMNS))
        types = rng.integers(0, 2, len(edges))
        own = rng.normal(size=(len(edges), EDGE_COLUMNS))
        X.append((nodes, edges, types, own) if features else (nodes, edges, types))
        y.append([NAMES[code] for code in codes])
    return X, y


def trees(seed: int = 0, n: int = 14) -> tuple[list[Any], list[list[str]]]:
    """Trees with one or more roots, nodes in any order, two types, and labels that depend on those of parents."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        size = int(rng.integers(1, 6))
        order, codes, parents = rng.permutation(size), rng.integers(0, 3, size), np.full(size, -1)
        for at in range(1, size):
            if rng.random() < 0.85:
                parents[order[at]] = order[rng.integers(0, at)]
                codes[order[at]] = (codes[parents[order[at]]] + int(rng.integers(0, 2))) % 3
        nodes = np.eye(3)[codes][:, :COLUMNS] + 0.4 * rng.normal(size=(size, COLUMNS))
        X.append((nodes, parents, rng.integers(0, 2, size)))
        y.append([NAMES[code] for code in codes])
    return X, y


def edges_of(example: Any) -> tuple[Pairs, list[int], Any]:
    """From and to, types, and features of the edges of one example."""
    _, joined, types, *own = example
    if np.ndim(joined) == 1:
        children = [t for t, parent in enumerate(joined) if parent >= 0]
        return [(int(joined[t]), t) for t in children], [int(types[t]) for t in children], None
    return [tuple(edge) for edge in np.asarray(joined).tolist()], list(map(int, types)), own[0] if own else None


def inputs_of(example: Any, clique: tuple[int, ...], own: Any) -> np.ndarray:
    parts = [example[0][node] for node in clique]
    return np.concatenate(parts if own is None else [*parts, own])[None]


class Enumeration:
    """The scores of all labellings of an example."""

    def __init__(self, model: ConditionalGraphicalModel, weights: dict[int, float]) -> None:
        self.model, self.weights = model, weights

    def seen(self, example: Any, clique: tuple[int, ...], key: Any, own: Any) -> dict[tuple[int, ...], float] | None:
        one = self.model.clique_models_.get((len(clique), key))
        if one is None:
            return None
        values = np.zeros(len(one.tuples))
        if one.coefficients is not None:
            inputs = inputs_of(example, clique, own)
            values = (rbf_kernel(inputs, one.points, 8.0 / inputs.shape[1]) @ one.coefficients)[0]
        values = log_softmax(values) if self.model.loss == "log" else values
        return {tuple(t): float(v) for t, v in zip(one.tuples.tolist(), values, strict=True)}

    def relative(self, seen: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
        best = 0.0 if self.model.loss == "log" else max(seen.values())
        return {labels: value - best for labels, value in seen.items()}

    def value(self, example: Any, clique: tuple[int, ...], key: Any, own: Any, labels: tuple[int, ...]) -> float:
        seen, unseen, cost = self.seen(example, clique, key, own), self.model.unseen, self.model.backoff_cost
        if unseen != "backoff":
            known = {t for (size, _), one in self.model.clique_models_.items() for t in map(tuple, one.tuples.tolist())}
            if seen is None:
                return 0.0 if labels in known else float(unseen)
            return seen.get(labels, float(unseen))
        found = self.relative(seen) if seen is not None else {}
        if labels in found:
            return found[labels]
        node_key = "shared" if self.model.tying == "shared" else 0
        if len(clique) == 1:
            return min(found.values(), default=0.0) - 1.0 - cost
        a, b = (self.value(example, (node,), node_key, None, (y,)) for node, y in zip(clique, labels, strict=True))
        return a + b - max(a, b, 0.0) - cost

    def scores(self, example: Any) -> dict[tuple[int, ...], float]:
        pairs, types, own = edges_of(example)
        joined = {node for pair in pairs for node in pair}
        shared = self.model.tying == "shared"
        cliques = []
        for node in range(len(example[0])):
            weight = self.weights.get(0, 0.0) + (0.0 if node in joined else self.weights.get(1, 0.0))
            cliques.append(((node,), "shared" if shared else 0, None, weight))
        for at, pair in enumerate(pairs):
            key = "shared" if shared else types[at]
            cliques.append((pair, key, None if own is None else own[at], self.weights.get(1, 0.0)))
        tables = [
            (
                clique,
                {t: self.value(example, clique, key, row, t) for t in itertools.product(*[range(3)] * len(clique))},
                w,
            )
            for clique, key, row, w in cliques
            if w > 0.0
        ]
        return {
            y: float(sum(w * table[tuple(y[node] for node in clique)] for clique, table, w in tables))
            for y in itertools.product(range(3), repeat=len(example[0]))
        }


def marginals(scores: dict[tuple[int, ...], float]) -> np.ndarray:
    each, values = np.array(list(scores)), np.array(list(scores.values()))
    chances = np.exp(values - values.max())
    found = [[chances[each[:, node] == label].sum() for label in range(3)] for node in range(each.shape[1])]
    return np.array(found) / chances.sum()
