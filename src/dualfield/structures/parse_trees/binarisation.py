"""Rules of trees: brackets with more than two parts are made of two at a time, by symbols that have no label."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.structures.parse_trees.grammar_rules import GrammarRules, RuleBuilder
from dualfield.structures.parse_trees.grammar_shape import GrammarShape, Terminals


class Node(NamedTuple):
    """A bracket, or a word, whose span has one word."""

    label: str
    start: int
    stop: int
    children: list[Node]


def nested_spans(spans: Sequence[tuple[int, int, str]], n_words: int) -> Node | None:
    """Return brackets as a tree; None if they cross.

    `spans` are (start, stop, label) of two words or more, sorted by start, then from the longest to the shortest. Words
    become nodes without children; a bracket without a label is put around all words where there is none.
    """
    whole = bool(spans) and spans[0][:2] == (0, n_words)
    root = Node(spans[0][2] if whole else "", 0, n_words, [])
    stack, at = [root], 0

    def add_words(node: Node, stop: int) -> None:
        nonlocal at
        node.children.extend(Node("", word, word + 1, []) for word in range(at, stop))
        at = max(at, stop)

    for start, stop, label in spans[whole:]:
        while stack[-1].stop <= start:
            done = stack.pop()
            add_words(done, done.stop)
        if stop > stack[-1].stop:
            return None
        add_words(stack[-1], start)
        node = Node(label, start, stop, [])
        stack[-1].children.append(node)
        stack.append(node)
    while stack:
        done = stack.pop()
        add_words(done, done.stop)
    return root


@dataclass
class Binarisation:
    """Reads rules off trees.

    Parameters
    ----------
    side : {"right", "left"}
        Whether parts behind the first one, or before the last one, are made one by one.
    horizontal : int or None
        How many parts a symbol remembers that joins the others; None: all.
    vertical : int
        How many labels from a bracket upwards its symbol has.
    tags : {"given", "predicted"}
        Whether terminals are tags, or the label of a word ends in its tag.
    """

    side: Literal["right", "left"]
    horizontal: int | None
    vertical: int
    tags: Literal["given", "predicted"]
    builder: RuleBuilder = field(default_factory=RuleBuilder)

    def add(self, spans: Sequence[tuple[int, int, str]], word_labels: Sequence[str], terminals: Sequence[str]) -> bool:
        """Add the rules of a tree; False, with nothing added, if its brackets cross."""
        n = len(terminals)
        if n == 1:
            self.builder.add_root(self._word(word_labels[0], terminals[0], ()))
            return True
        tree = nested_spans(spans, n)
        if tree is None:
            return False
        top = self._bracket(tree.label, ())
        self.builder.add_root(top)
        todo: list[tuple[Node, Hashable, tuple[str, ...]]] = [(tree, top, ())]
        while todo:
            node, symbol, above = todo.pop()
            around = (node.label, *above)[: self.vertical - 1]
            parts = []
            for child in node.children:
                if child.stop == child.start + 1:
                    parts.append(self._word(word_labels[child.start], terminals[child.start], around))
                else:
                    parts.append(self._bracket(child.label, around))
                    todo.append((child, parts[-1], around))
            self._join(symbol, parts)
        return True

    def read(
        self, labels: Sequence[str], codes: NDArray[np.int32], shape: GrammarShape, terminals: Terminals
    ) -> GrammarRules:
        """Return the rules of the sentences whose labels are all known."""
        names, words, n_known = terminals.names, shape.word_offsets, 0
        is_word = shape.spans[:, 1] - shape.spans[:, 0] == 1
        for i in range(shape.n_examples):
            rows = slice(shape.offsets[i], shape.offsets[i + 1])
            mine, alone = codes[rows], is_word[rows]
            if not len(mine) or mine.min() < 0:
                continue
            n_known += 1
            found = np.flatnonzero((mine > 0) & ~alone)
            spans = zip(shape.spans[rows][found].tolist(), mine[found].tolist(), strict=True)
            brackets = sorted(((a, b, labels[code]) for (a, b), code in spans), key=lambda one: (one[0], -one[1]))
            its_words = [names[at] for at in terminals.codes[words[i] : words[i + 1]].tolist()]
            if not self.add(brackets, [labels[code] for code in mine[alone].tolist()], its_words):
                raise ValueError(f"y[{i}] has brackets that cross.")
        if self.tags == "predicted":
            self.builder.share_tags()
        if not n_known:
            raise ValueError("y must have a tree that is known as a whole, to read rules off it. Got none.")
        return self.builder.finish(labels)

    def _bracket(self, label: str, around: tuple[str, ...]) -> Hashable:
        return self.builder.symbol(("bracket", label, *around), "^".join((label, *around)), label)

    def _word(self, label: str, terminal: str, around: tuple[str, ...]) -> Hashable:
        chain, tag = (label, terminal) if self.tags == "given" else _chain_and_tag(label)
        symbol = self._bracket(chain, around) if chain else self.builder.symbol(("tag", tag), tag, "")
        self.builder.add_lexical(terminal, symbol, label)
        return symbol

    def _join(self, symbol: Hashable, parts: list[Hashable]) -> None:
        """Add the rules by which a bracket is made of its parts."""
        parts = parts if self.side == "right" else parts[::-1]
        parent, done = symbol, 0
        while True:
            first, last = parts[done], len(parts) == done + 2
            rest = parts[done + 1] if last else self._rest(symbol, parts[: done + 1])
            self.builder.add_binary(parent, *((first, rest) if self.side == "right" else (rest, first)))
            if last:
                return
            parent, done = rest, done + 1

    def _rest(self, symbol: Hashable, before: list[Hashable]) -> Hashable:
        """Return the symbol that joins the parts behind some others."""
        kept = before if self.horizontal is None else before[len(before) - min(self.horizontal, len(before)) :]
        name = self.builder.name(symbol)
        memory = ",".join(self.builder.name(one) for one in kept)
        return self.builder.symbol(("rest", symbol, *kept), f"@{name}|{memory}" if memory else f"@{name}", "")


def _chain_and_tag(label: str) -> tuple[str, str]:
    chain, _, tag = label.rpartition("+")
    return chain, tag
