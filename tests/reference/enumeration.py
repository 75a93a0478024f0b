"""Every labelling of a short sequence, one by one: what the oracles are held against. Plain Python on purpose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product


@dataclass
class Sequence:
    """One example. ``window(t, labels)`` scores the labels t - order ... t (fewer at the start); None: forbidden."""

    node: list[list[float]]
    window: object
    order: int = 1
    start: list[float] | None = None
    stop: list[float] | None = None

    def score(self, labels: tuple[int, ...]) -> float:
        total = sum(self.node[t][label] for t, label in enumerate(labels))
        if labels:
            total += self.start[labels[0]] if self.start else 0.0
            total += self.stop[labels[-1]] if self.stop else 0.0
        for t in range(1, len(labels)):
            part = self.window(t, labels[max(0, t - self.order) : t + 1])
            if part is None:
                return -math.inf
            total += part
        return total

    def labellings(self) -> list[tuple[float, tuple[int, ...]]]:
        n_labels = len(self.node[0]) if self.node else 0
        everything = product(range(n_labels), repeat=len(self.node))
        return [(score, y) for y in everything if (score := self.score(y)) > -math.inf]


def log_partition(sequence: Sequence, temperature: float) -> float:
    scores = [score for score, _ in sequence.labellings()]
    highest = max(scores)
    if temperature == 0:
        return highest
    return highest + temperature * math.log(math.fsum(math.exp((s - highest) / temperature) for s in scores))


def probabilities(sequence: Sequence, temperature: float) -> list[tuple[float, tuple[int, ...]]]:
    total = log_partition(sequence, temperature)
    return [(math.exp((score - total) / temperature), y) for score, y in sequence.labellings()]


def node_marginals(sequence: Sequence, temperature: float) -> list[list[float]]:
    table = [[0.0] * len(row) for row in sequence.node]
    for p, labels in probabilities(sequence, temperature):
        for t, label in enumerate(labels):
            table[t][label] += p
    return table


def window_marginals(sequence: Sequence, temperature: float) -> list[dict[tuple[int, ...], float]]:
    """For each node but the first, the probability of each window of labels that ends there."""
    tables: list[dict[tuple[int, ...], float]] = [{} for _ in sequence.node[1:]]
    for p, labels in probabilities(sequence, temperature):
        for t in range(1, len(labels)):
            window = labels[max(0, t - sequence.order) : t + 1]
            tables[t - 1][window] = tables[t - 1].get(window, 0.0) + p
    return tables


def entropy(sequence: Sequence, temperature: float) -> float:
    return -math.fsum(p * math.log(p) for p, _ in probabilities(sequence, temperature) if p > 0)


def max_marginals(sequence: Sequence) -> list[list[float]]:
    table = [[-math.inf] * len(row) for row in sequence.node]
    for score, labels in sequence.labellings():
        for t, label in enumerate(labels):
            table[t][label] = max(table[t][label], score)
    return table


def best_first(sequence: Sequence) -> list[tuple[float, tuple[int, ...]]]:
    """All labellings, best first; ties by last label, then the one before, as the oracles promise."""
    return sorted(sequence.labellings(), key=lambda item: (-item[0], item[1][::-1]))
