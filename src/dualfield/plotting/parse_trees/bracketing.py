"""Brackets over the words of a sentence: which contain which, and which of them are true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualfield.plotting.labels import label_list

Bracket = tuple[str, int, int]


@dataclass(eq=False, kw_only=True)
class Node:
    """A bracket in a tree, or a word where `label` is None.

    `note` says what is true where it is wrong; `chance` is None where it is not known.
    """

    label: str | None
    start: int
    stop: int
    chance: float | None = None
    is_wrong: bool = False
    note: str = ""
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Yield every node, before its children."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def read_brackets(name: str, brackets: Any, n: int) -> tuple[list[Bracket], list[float] | None]:
    """Return brackets (label, start, stop), and their probabilities where they come with one."""
    found: list[Bracket] = []
    chances: list[float] = []
    given = brackets.constituents() if hasattr(brackets, "constituents") else label_list(brackets)
    for at, one in enumerate(given):
        bracket = tuple(one) if isinstance(one, (tuple, list)) else ()
        sizes = bracket[1:3] if len(bracket) in (3, 4) and isinstance(bracket[0], str) else ()
        if len(sizes) != 2 or not all(isinstance(size, (int, np.integer)) for size in sizes):
            raise ValueError(f"{name}[{at}] must be a bracket (label, start, stop). Got {one!r:.100} instead.")
        start, stop = map(int, sizes)
        if not 0 <= start < stop <= n:
            raise ValueError(f"{name}[{at}] must be a part of the {n} words. Got {one!r:.100} instead.")
        found.append((str(bracket[0]), start, stop))
        chances += [float(bracket[3])] if len(bracket) == 4 else []
    return found, chances if len(chances) == len(found) and found else None


def nested(
    name: str, brackets: Sequence[Bracket], chances: Sequence[float] | None, truth: Sequence[Bracket] | None, n: int
) -> tuple[list[Node], list[Bracket]]:
    """Return the outermost brackets and words, each with what is in it, and the true brackets that are missed."""
    true = list(truth or [])
    order = sorted(range(len(brackets)), key=lambda at: (brackets[at][1], -brackets[at][2], at))
    top = Node(label="", start=0, stop=n)
    stack, nodes = [top], []
    for at in order:
        label, start, stop = brackets[at]
        while not (stack[-1].start <= start and stop <= stack[-1].stop):
            if start < stack[-1].stop:
                other = (stack[-1].label, stack[-1].start, stack[-1].stop)
                raise ValueError(f"{name} must be nested. {brackets[at]} crosses {other}.")
            stack.pop()
        node = Node(label=label, start=start, stop=stop, chance=None if chances is None else float(chances[at]))
        if truth is not None:
            node.is_wrong = brackets[at] not in true
            true = true if node.is_wrong else [one for k, one in enumerate(true) if k != true.index(brackets[at])]
        stack[-1].children.append(node)
        stack.append(node)
        nodes.append(node)
    missed = _told(nodes, true)
    for node in [top, *nodes]:
        node.children = _with_words(node)
    return top.children, missed


def _told(nodes: Sequence[Node], true: Sequence[Bracket]) -> list[Bracket]:
    """Say at wrong brackets which label is true, and return the true brackets of which no bracket says so."""
    wrong = {(node.start, node.stop): node for node in nodes if node.is_wrong}
    missed = []
    for label, start, stop in true:
        node = wrong.pop((start, stop), None)
        if node is None:
            missed.append((label, start, stop))
        else:
            node.note = f"true: {label}"
    for node in wrong.values():
        node.note = "spurious"
    return missed


def _with_words(node: Node) -> list[Node]:
    """Return the children of a bracket, with words where no other child is."""
    children, at = [], node.start
    for child in [*node.children, None]:
        until = node.stop if child is None else child.start
        children += [Node(label=None, start=word, stop=word + 1) for word in range(at, until)]
        if child is not None:
            children.append(child)
            at = child.stop
    return children
