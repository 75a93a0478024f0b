"""The shapes of sentences of a grammar: their spans and terminals, and trees whose tags may be part of the output."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data.parse_trees.partial_trees import Bracketing
from dualfield.data.parse_trees.tree_cleaning import JOIN, split_unaries
from dualfield.data.parse_trees.trees import ParseTree
from dualfield.structures.parse_trees.span_shape import NO_TAG, SpanShape


class Terminals(NamedTuple):
    """What sentences are made of: names, and their places among these one sentence after another."""

    names: list[str]
    codes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GrammarShape(SpanShape):
    """The sizes of sentences of a grammar, and their tokens; as :class:`SpanShape`.

    Examples
    --------
    >>> from dualfield.structures import Grammar
    >>> shape = Grammar().shape([[("dogs", "NNS"), ("bark", "VBP")]])
    >>> shape.terminals(1).names, shape.n_nodes
    (['NNS', 'VBP'], 3)
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_twins"}  # native objects

    @property
    def word_offsets(self) -> NDArray[np.int64]:
        """Where the words of each sentence begin, shape (n_examples + 1,)."""
        return np.concatenate([[0], np.cumsum(self.n_words)]).astype(np.int64)

    def with_rows(self, offsets: NDArray[np.int64]) -> GrammarShape:
        """Return the shape of sentences that came with features of spans, or raise where their numbers are not those.

        Parameters
        ----------
        offsets : int64 array of shape (n_examples + 1,)
            Where the rows of each sentence begin.

        Returns
        -------
        GrammarShape
            The same shape.
        """
        given = np.diff(offsets)
        if len(given) == self.n_examples and not np.array_equal(given, self.lengths):
            i = int(np.argmax(given != self.lengths))
            raise ValueError(
                f"X[{i}][1] must have {self.lengths[i]} rows, one for each span of {self.n_words[i]} words. Got "
                f"{given[i]} instead."
            )
        return self

    def _check_words(self, read: Bracketing, i: int, place: str) -> None:
        super()._check_words(read, i, place)
        self._check_tags(read, i, place)

    def _check_tags(self, read: Bracketing, i: int, place: str) -> None:
        """Raise an error where words came without the tags that their tree has."""
        for token, tag in zip(self.tokens[i] if self.tokens else (), read.tags or (), strict=False):
            if isinstance(token, str) and tag and tag not in (token, NO_TAG):
                raise ValueError(
                    f"X[{i}] has the word {token!r} without a tag, for which {place} has {tag!r}: a grammar with "
                    "tags='given' needs tokens (word, tag). Use Grammar(tags='predicted') for words alone."
                )

    def terminals(self, column: int) -> Terminals:
        """Return the terminals of all words.

        Parameters
        ----------
        column : int
            Of tokens that are tuples.

        Returns
        -------
        Terminals
            Sorted names, and codes of shape (n_words,).
        """
        if self.tokens is None:
            raise ValueError("The words of the sentences must be known: their shape must have tokens.")
        kept = self.__dict__.setdefault("_terminals", {})
        if column not in kept:
            flat = [_entry(token, column, i) for i, sentence in enumerate(self.tokens) for token in sentence]
            names = sorted(set(flat))
            place = {name: at for at, name in enumerate(names)}
            kept[column] = Terminals(names, np.array([place[name] for name in flat], dtype=np.int64))
        found: Terminals = kept[column]
        return found


def _entry(token: Any, column: int, sentence: int) -> str:
    if isinstance(token, str):
        return token
    if not isinstance(token, (tuple, list)) or not column < len(token) or not isinstance(token[column], str):
        raise ValueError(
            f"X[{sentence}] must have tokens that are str, or tuples of str with a column {column}. Got {token!r:.100}."
        )
    return str(token[column])


@dataclass(frozen=True, eq=False)
class TaggedShape(GrammarShape):
    """The same where tags are part of the output: the label of a word ends in its tag, ``"NN"`` or ``"NP+NN"``."""

    def _check_tags(self, read: Bracketing, i: int, place: str) -> None:
        """Nothing is wrong with words alone."""

    def _read(self, y: Any, name: str, *, is_complete: bool) -> list[Any]:
        return [_with_tags(one) for one in super()._read(y, name, is_complete=is_complete)]

    def _formed(self, form: str, i: int, brackets: list[tuple[str, int, int]]) -> Any:
        if form == "spans" or self.tokens is None or not self.n_words[i]:
            return super()._formed(form, i, brackets)
        n, kept = int(self.n_words[i]), []
        tags = [""] * n
        for label, start, stop in brackets:
            if stop == start + 1:
                label, _, tags[start] = label.rpartition(JOIN)
            if label:
                kept.append((label, start, stop))
        words = [token if isinstance(token, str) else str(token[0]) for token in self.tokens[i]]
        if n == 1 and not kept:
            tree = ParseTree(tags[0], (), words[0])
        else:
            tree = split_unaries(ParseTree.from_constituents(kept, words, tags))
        return tree if form == "tree" else tree.to_brackets() if form == "brackets" else tree.to_nltk()


def _with_tags(read: Any) -> Any:
    """Add tags to what was read of a tree."""
    if not isinstance(read, Bracketing) or read.tags is None:
        return read
    labels = dict(read.labels)
    for at, tag in enumerate(read.tags):
        chain = labels.get((at, at + 1))
        if tag:
            labels[at, at + 1] = f"{chain}{JOIN}{tag}" if chain else tag
    return replace(read, labels=labels)
