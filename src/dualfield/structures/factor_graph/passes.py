"""The two passes over a junction tree: up, which eliminates one node after another, and down, which gives marginals.

All arrays have the examples on their last axis, where they lie next to each other: labels are few, examples many. An
array that is the same for all examples has length 1 there. A part of the scores is a tuple of nodes and an array with
one axis for each of them; parts are added up when the first of their nodes is eliminated, under which they are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dualfield.data.arrays import Codes, Floats
from dualfield.structures.factor_graph.elimination import Step

Part = tuple[tuple[int, ...], Floats]
Parts = dict[int, list[Part]]


def eliminate(
    steps: Sequence[Step], n_labels: Sequence[int], parts: Parts, reduce: Callable[[Floats], Floats]
) -> Floats:
    """Return what is left when all nodes are eliminated; ``reduce`` takes away the first axis of a table.

    The queries differ only in whether it maximises or sums.
    """
    waiting = {node: list(added) for node, added in parts.items()}
    total = np.zeros(1)
    for step in steps:
        message = reduce(_table(step, n_labels, waiting.pop(step.node, [])))
        if step.parent is None:
            total = total + message
        else:
            waiting.setdefault(step.parent, []).append((step.separator, message))
    return total


def choose(choices: list[Codes]) -> Callable[[Floats], Floats]:
    """Return a maximum that keeps which label reached it, the lowest among equals."""

    def reduce(table: Floats) -> Floats:
        choices.append(table.argmax(axis=0).astype(np.int32))
        return np.asarray(table.max(axis=0))

    return reduce


def soften(temperature: float, conditionals: list[Floats] | None = None) -> Callable[[Floats], Floats]:
    """Return T log sum exp(. / T), which keeps the probability of each label given the others if asked to.

    The largest score is taken out before the division, so that no temperature above 0 is too low.
    """

    def reduce(table: Floats) -> Floats:
        top = table.max(axis=0)
        top[top == -np.inf] = 0.0  # nothing is allowed here: all terms are exp(-inf), their sum is 0
        with np.errstate(over="ignore", divide="ignore"):
            table -= top
            table /= temperature
            np.exp(table, out=table)
            total = table.sum(axis=0)
            message = top + temperature * np.log(total)
        if conditionals is not None:
            total[total == 0.0] = 1.0
            table /= total
            conditionals.append(table)
        return np.asarray(message)

    return reduce


def label(steps: Sequence[Step], choices: Sequence[Codes], n_examples: int) -> Codes:
    """Return the best labelling, nodes first: from the last step to the first, each node knows its neighbours."""
    labels = np.zeros((len(steps), n_examples), dtype=np.int32)
    for step, choice in zip(reversed(steps), reversed(choices), strict=True):
        example = np.arange(n_examples) if choice.shape[-1] > 1 else np.zeros(n_examples, dtype=np.intp)
        labels[step.node] = choice[(*(labels[other] for other in step.separator), example)]
    return labels


def spread_down(steps: Sequence[Step], conditionals: list[Floats]) -> dict[int, Floats]:
    """Return the probabilities of each table: p(node, separator) = p(node | separator) p(separator).

    The parent, which is eliminated later, knows the probability of the separator. The list is used up.
    """
    tables: dict[int, Floats] = {}
    members = {step.node: step.members for step in steps}
    for step in reversed(steps):
        table = conditionals.pop()
        if step.parent is not None:
            table = table * sum_out(tables[step.parent], members[step.parent], step.separator)
        tables[step.node] = table
    return tables


def sum_out(table: Floats, members: tuple[int, ...], nodes: tuple[int, ...]) -> Floats:
    """Return the sum of a table over all members but the given nodes, with one axis for each of them in their order."""
    kept = [node for node in members if node in nodes]
    away = tuple(axis for axis, node in enumerate(members) if node not in nodes)
    summed = table.sum(axis=away) if away else table
    return np.asarray(summed.transpose(*(kept.index(node) for node in nodes), len(nodes)))


def _table(step: Step, n_labels: Sequence[int], parts: Sequence[Part]) -> Floats:
    """Return the sum of all scores that depend on the node of a step, in a new array."""
    n_examples = max((values.shape[-1] for _, values in parts), default=1)
    table = np.zeros((*(n_labels[node] for node in step.members), n_examples))
    for nodes, values in parts:
        order = sorted(range(len(nodes)), key=lambda axis: step.members.index(nodes[axis]))
        absent = tuple(slice(None) if node in nodes else None for node in step.members)
        table += values.transpose(*order, len(nodes))[absent]
    return table
