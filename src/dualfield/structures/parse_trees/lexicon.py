"""What the words of sentences are to a grammar: terminals."""

from __future__ import annotations

from collections.abc import Container
from typing import Literal, NamedTuple

import numpy as np

from dualfield.data.arrays import Codes
from dualfield.data.word_shapes import word_shape
from dualfield.structures.parse_trees.grammar_rules import GrammarRules
from dualfield.structures.parse_trees.grammar_shape import GrammarShape, Terminals

ANY = "*"  # the terminal of all words where every word may have every tag


class Lexicon(NamedTuple):
    """How tokens become terminals.

    Attributes
    ----------
    tags : {"given", "predicted"}
        Whether terminals are tags, or words.
    kind : {"open", "seen"}
        Whether all words are one terminal, or those are told apart that were seen at least twice.
    column : int
        Of tokens that are tuples, where tags are given.
    """

    tags: Literal["given", "predicted"]
    kind: Literal["open", "seen"]
    column: int

    def _names(self, shape: GrammarShape) -> Terminals:
        return shape.terminals(self.column if self.tags == "given" else 0)

    def terminal(self, name: str, known: Container[str]) -> str:
        """Return the terminal that a word or tag is."""
        if self.tags == "given" or name in known:
            return name
        return ANY if self.kind == "open" else f"<{word_shape(name)}>"

    def hint(self, shape: GrammarShape) -> str:
        """Return what may be wrong where a terminal is not known: words that came without the tags that are given."""
        if self.tags == "predicted" or not any(isinstance(token, str) for one in shape.tokens or () for token in one):
            return ""
        return (
            "; a token that is a str is its own tag: pass (word, tag), or use Grammar(tags='predicted') for words alone"
        )

    def of_training(self, shape: GrammarShape) -> Terminals:
        """Return the terminals of training data."""
        names, codes = self._names(shape)
        counts = np.bincount(codes, minlength=len(names)).tolist()
        many = set() if self.kind == "open" else {name for name, n in zip(names, counts, strict=True) if n > 1}
        return Terminals([self.terminal(name, many) for name in names], codes)

    def codes(self, shape: GrammarShape, rules: GrammarRules) -> tuple[Codes, list[str]]:
        """Return the terminal of each word, negative for those that no rule has, and the names of these."""
        names, codes = self._names(shape)
        unknown: list[str] = []
        table = np.zeros(max(len(names), 1), dtype=np.int32)
        for at, name in enumerate(names):
            table[at] = rules.terminal_codes.get(self.terminal(name, rules.terminal_codes), -1)
            if table[at] < 0:
                unknown.append(name)
                table[at] = -len(unknown)
        return table[codes], unknown
