"""Trees of a grammar whose symbols have sub-states, in plain Python: every tree with every choice of sub-states."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from dualfield.structures import Grammar


class StateTree(NamedTuple):
    """A tree of states."""

    rules: tuple[str, ...]  # as text, in the names of states
    labels: dict[tuple[int, int], str]  # of its brackets
    states: dict[tuple[int, int], str]


def state_trees(grammar: Grammar, tags: list[str], sizes: dict[str, int]) -> list[StateTree]:
    """All trees of a grammar whose terminals are tags; `sizes` are sub-states of labels, others have one."""
    rules: Any = grammar.rules
    names, label = (
        rules.symbols,
        {name: rules.labels[k] for name, k in zip(rules.symbols, rules.symbol_labels, strict=True)},
    )
    binary: dict[str, list[tuple[str, str]]] = {}
    for a, b, c in rules.binary.T.tolist():
        binary.setdefault(names[a], []).append((names[b], names[c]))
    lexical = {(names[a], rules.terminals[t]) for t, a, _ in rules.lexical.T.tolist()}

    def states(symbol: str) -> list[str]:
        n = sizes.get(label[symbol], 1) if label[symbol] else 1
        return [symbol] if n == 1 else [f"{symbol}/{h}" for h in range(n)]

    def below(symbol: str, start: int, stop: int) -> list[tuple[str, StateTree]]:
        """The trees of a symbol, each behind its state."""
        mine = [(one, {(start, stop): label[symbol]} if label[symbol] else {}) for one in states(symbol)]
        found = []
        if stop == start + 1:
            if (symbol, tags[start]) not in lexical:
                return []
            return [
                (one, StateTree((f"{one} -> '{tags[start]}'",), dict(own), dict.fromkeys(own, one)))
                for one, own in mine
            ]
        for left, right in binary.get(symbol, []):
            for cut in range(start + 1, stop):
                for (b, first), (c, second) in itertools.product(below(left, start, cut), below(right, cut, stop)):
                    for one, own in mine:
                        found.append(
                            (
                                one,
                                StateTree(
                                    (f"{one} -> {b} {c}", *first.rules, *second.rules),
                                    own | first.labels | second.labels,
                                    dict.fromkeys(own, one) | first.states | second.states,
                                ),
                            )
                        )
        return found

    roots = [names[a] for a in rules.roots.tolist()]
    return [
        tree._replace(rules=(*tree.rules, f"-> {one}")) for root in roots for one, tree in below(root, 0, len(tags))
    ]


def rule_counts(tree: StateTree, rule_names: list[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How often a tree has each rule."""
    place = {name: at for at, name in enumerate(rule_names)}
    found = np.zeros(len(rule_names))
    for rule in tree.rules:
        found[place[rule]] += 1.0
    return found
