"""The shapes of sentences whose rows are spans: trees in, trees out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dualfield.data.anchored_rows import segment_anchors
from dualfield.data.labels import Labels
from dualfield.data.parse_trees.brackets import nested
from dualfield.data.parse_trees.partial_trees import Bracketing, read_bracketing
from dualfield.data.parse_trees.tree_cleaning import JOIN, split_unaries
from dualfield.data.parse_trees.trees import ParseTree
from dualfield.data.partial_labels import PartialLabels
from dualfield.data.shapes import Shape, rows_of_examples

__all__ = ["SpanShape"]

EMPTY = ""  # the label of spans that are no brackets
NO_TAG = "XX"  # of words that came without one, in trees
FORMS = ("tree", "brackets", "nltk", "spans", "labels")


@dataclass(frozen=True, eq=False)
class SpanShape(Shape):
    """The sizes of sentences with a row for each span, and their words.

    A sentence of n words has n (n + 1) / 2 rows: first the spans that begin at the first word, the shorter ones before
    the longer ones. The label of a row is that of the bracket there, a unary chain as one label, ``"S+VP"``, or ``""``
    for no bracket. A bracket around one word stands above its tag, which is part of the input.

    Parameters
    ----------
    offsets : int64 array of shape (n_examples + 1,)
        Sentence i has rows ``offsets[i]`` to ``offsets[i + 1] - 1``.
    tokens : sequence, default=None
        The tokens of each sentence: str, or tuples of a word, a tag and further columns. None: not known.
    output : {"tree", "brackets", "nltk", "spans", "labels"}, default=None
        What trees are decoded to: :class:`dualfield.data.ParseTree`, str, trees of NLTK, lists of (start, stop, label),
        or a label for each row. None: trees where words are known, otherwise lists of spans.
    forms : list of str, default=[]
        Takes note of the forms in which labels of these sentences were read.

    Examples
    --------
    >>> from dualfield.structures import SpanShape
    >>> shape = SpanShape.of_words([2], [[("dogs", "NNS"), ("bark", "VBP")]])
    >>> read = shape.read_labels(["(S (NP (NNS dogs)) (VP (VBP bark)))"])
    >>> read.labels.classes.tolist(), read.codes.tolist()  # of the spans (0, 1), (0, 2) and (1, 2)
    (['', 'NP', 'S', 'VP'], [1, 2, 3])
    >>> shape.decode(read.labels, read.codes)
    [ParseTree.from_brackets('(S (NP (NNS dogs)) (VP (VBP bark)))')]
    """

    tokens: Sequence[Any] | None = None
    output: str | None = None
    forms: list[str] = field(default_factory=list)

    @classmethod
    def of_words(cls, n_words: Sequence[int], tokens: Sequence[Any] | None = None, output: str | None = None) -> Self:
        """Make the shape of sentences with given numbers of words.

        Parameters
        ----------
        n_words : sequence of int
            Numbers of words.
        tokens, output
            As for the class.

        Returns
        -------
        SpanShape
            The shape.
        """
        n = np.asarray(n_words, dtype=np.int64)
        return cls(np.concatenate([[0], np.cumsum(n * (n + 1) // 2)]).astype(np.int64), tokens, output)

    @cached_property
    def n_words(self) -> NDArray[np.int64]:
        """Number of words of each sentence."""
        lengths = self.lengths
        found = (np.sqrt(8.0 * lengths + 1.0).astype(np.int64) - 1) // 2
        wrong = np.flatnonzero(found * (found + 1) // 2 != lengths)
        if wrong.size:
            i = int(wrong[0])
            n = int(found[i])
            raise ValueError(
                f"X[{i}] has {lengths[i]} rows; expected n (n + 1) / 2, one for each span of n words, such as "
                f"{n * (n + 1) // 2} for {n} words."
            )
        return np.asarray(found)

    @property
    def n_tokens(self) -> NDArray[np.int64]:
        """Number of words of each sentence: its nodes are spans."""
        return self.n_words

    def checked(self) -> Self:
        """Return the shape itself, or raise an error if a sentence has a number of rows that no sentence has.

        Returns
        -------
        SpanShape
            This one.
        """
        _ = self.n_words
        return self

    @cached_property
    def spans(self) -> NDArray[np.int32]:
        """First word of each row, and the one behind the last; shape (n_rows, 2)."""
        anchors, _ = segment_anchors(self.n_words)
        anchors[:, 1] += 1
        return anchors

    def rows(self, example: int, starts: Any, stops: Any) -> NDArray[np.int64]:
        """Return the rows of spans of a sentence, counted over all sentences.

        Parameters
        ----------
        example : int
            Which sentence.
        starts, stops : array of int
            First words, and those behind the last.

        Returns
        -------
        int array
            Rows.

        Examples
        --------
        >>> from dualfield.structures import SpanShape
        >>> SpanShape.of_words([2, 3]).rows(1, [0, 1], [3, 2])
        array([5, 6])
        """
        i, n = np.asarray(starts, dtype=np.int64), int(self.n_words[example])
        return np.asarray(self.offsets[example] + i * n - i * (i - 1) // 2 + np.asarray(stops) - i - 1)

    def take(self, examples: NDArray[np.int64]) -> Self:
        """Return the shape of some of the sentences."""
        offsets, _ = rows_of_examples(self.offsets, examples)
        tokens = None if self.tokens is None else [self.tokens[i] for i in np.asarray(examples).tolist()]
        return type(self)(offsets, tokens, self.output, self.forms)

    def place(self, node: int) -> str:
        """Return the sentence of a row, and its span there."""
        example = int(np.searchsorted(self.offsets, node, side="right")) - 1
        start, stop = self.spans[node].tolist()
        return f"[{example}] at ({start}, {stop})"

    def node_texts(self) -> list[str] | None:
        """Return the words of each span."""
        if self.tokens is None:
            return None
        words = [[word_of(token) for token in tokens] for tokens in self.tokens]
        owner = np.repeat(np.arange(self.n_examples), self.lengths).tolist()
        return [" ".join(words[i][a:b]) for i, (a, b) in zip(owner, self.spans.tolist(), strict=True)]

    # Labels in

    def read_labels(self, y: Any, known: Labels | None = None, name: str = "y") -> PartialLabels:
        """Read trees, spans or row labels into codes of rows; None and partial trees leave rows open."""
        found = self._read(y, name, is_complete=True)
        with_words = (one for one, n in zip(found, self.n_words, strict=True) if n)
        self.forms.extend(form for form in map(_form_of, with_words) if form in FORMS)
        if known is None:
            if found and all(one is None for one in found):
                raise ValueError(f"{name} must have at least one tree or bracket. Got None everywhere.")
            mentioned = itertools.chain.from_iterable(_labels_of(one) for one in found)
            known = Labels.fit(sorted({EMPTY, *mentioned}), name=name)
        if not all(isinstance(one, Bracketing) and one.is_complete for one in found):
            allowed = self._allowed(found, known, name)
            codes = np.where(allowed.sum(axis=1) == 1, allowed.argmax(axis=1), -1).astype(np.int32)
            return PartialLabels(known, codes, None if (codes >= 0).all() else allowed)
        codes, sets = np.zeros(self.n_nodes, dtype=np.int32), _LabelSets(known, name)
        for i, one in enumerate(found):
            starts, stops = np.array(list(one.labels), dtype=np.int64).reshape(-1, 2).T
            codes[self.rows(i, starts, stops)] = [sets.code(i, span, label) for span, label in one.labels.items()]
        return PartialLabels(known, codes, None)

    def read_known(self, known: Any, labels: Labels, name: str = "known") -> NDArray[np.bool_]:
        """Return which labels rows may have, given brackets that sentences have or do not have."""
        return self._allowed(self._read(known, name, is_complete=False), labels, name)

    def _read(self, y: Any, name: str, *, is_complete: bool) -> list[Any]:
        """Return for each sentence a bracketing, a list of row labels, or None."""
        if y is None or isinstance(y, str):
            raise TypeError(f"{name} must be a list with a tree for each sentence. Got {type(y).__name__} instead.")
        given = list(y)
        if len(given) != self.n_examples:
            raise ValueError(f"{name} has {len(given)} entries; X has {self.n_examples} sentences.")
        found: list[Any] = []
        for i, one in enumerate(given):
            place, n = f"{name}[{i}]", int(self.n_words[i])
            if one is None or self._is_row_labels(one, i):
                found.append(None if one is None else list(one))
                continue
            read = read_bracketing(one, place, is_complete=is_complete)
            self._check_words(read, i, place)
            spans = [*((start, stop, label) for (start, stop), label in read.labels.items()), *read.forbidden]
            for start, stop, _ in spans:
                if not 0 <= start < stop <= n:
                    raise ValueError(f"{place} has a bracket at ({start}, {stop}); its sentence has {n} words.")
            self._check_nested(read, n, place)
            found.append(read)
        return found

    def _is_row_labels(self, one: Any, i: int) -> bool:
        """Tell labels of rows from spans: each is a str, None or a set."""
        if not isinstance(one, (list, tuple, np.ndarray)) or len(one) != self.lengths[i] or not len(one):
            return False
        return all(label is None or isinstance(label, (str, set, frozenset)) for label in one)

    def _check_words(self, read: Bracketing, i: int, place: str) -> None:
        if read.words is None:
            return
        n = int(self.n_words[i])
        if len(read.words) != n:
            raise ValueError(f"{place} has {len(read.words)} words; X[{i}] has {n}.")
        for at, word in enumerate(read.words if self.tokens is not None else ()):
            mine = word_of(self.tokens[i][at]) if self.tokens is not None else word
            if word != mine:
                raise ValueError(f"{place} has the word {word!r} at {at}; X[{i}] has {mine!r} there.")

    @staticmethod
    def _check_nested(read: Bracketing, n: int, place: str) -> None:
        """Raise an error where brackets cross."""
        if not n:
            return
        spans = [(label, start, stop) for (start, stop), label in read.labels.items()]
        try:
            nested([(None, 0, n), *spans], range(n), lambda *_: None)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None

    def _allowed(self, found: list[Any], labels: Labels, name: str) -> NDArray[np.bool_]:
        """Return which labels rows may have."""
        sets = _LabelSets(labels, name)
        allowed = np.ones((self.n_nodes, len(labels)), dtype=bool)
        for i, one in enumerate(found):
            own = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
            if isinstance(one, list):
                for place, label in enumerate(one, start=own.start):
                    if label is not None:
                        names = label if isinstance(label, (set, frozenset)) else (label,)
                        span = tuple(self.spans[place].tolist())
                        allowed[place] = False
                        allowed[place, [sets.code(i, span, each) for each in names]] = True
            elif one is not None:
                if one.is_complete:
                    allowed[own] = sets.empty
                for span, label in one.labels.items():
                    row = self.rows(i, *span)
                    allowed[row] = sets.equal(i, span, label) if one.is_complete else sets.having(i, span, label)
                for start, stop, label in one.forbidden:
                    row = self.rows(i, start, stop)
                    allowed[row] &= ~sets.having(i, (start, stop), label, known=False)
                    if not allowed[row].any():
                        raise ValueError(f"{name}[{i}] has a bracket at ({start}, {stop}) that it also forbids.")
        return allowed

    # Trees out

    def decode(self, labels: Labels, codes: NDArray[np.int32]) -> list[Any]:
        """Return the tree of each sentence, in the form that came in."""
        names = labels.classes.tolist()
        form = self.output or ("spans" if self.tokens is None else "tree")
        if form == "labels":
            return [[names[code] for code in codes[a:b].tolist()] for a, b in itertools.pairwise(self.offsets.tolist())]
        rows = np.flatnonzero(codes > 0)
        cuts = np.searchsorted(rows, self.offsets).tolist()
        spans, found = self.spans[rows].tolist(), [names[code] for code in codes[rows].tolist()]
        decoded = []
        for i, (a, b) in enumerate(itertools.pairwise(cuts)):
            brackets = [(label, start, stop) for label, (start, stop) in zip(found[a:b], spans[a:b], strict=True)]
            decoded.append(self._formed(form, i, brackets))
        return decoded

    def _formed(self, form: str, i: int, brackets: list[tuple[str, int, int]]) -> Any:
        """Return brackets of a sentence, with unary chains as one label, in a form."""
        n = int(self.n_words[i])
        if form == "spans" or self.tokens is None:
            brackets.sort(key=lambda one: (one[1], -one[2]))
            return [(start, stop, label) for chain, start, stop in brackets for label in chain.split(JOIN)]
        if not n:
            return None
        tokens = self.tokens[i]
        if n == 1 and not brackets:  # a tag is a tree
            tree = ParseTree(_tag(tokens[0]), (), word_of(tokens[0]))
        else:
            if not any((start, stop) == (0, n) for _, start, stop in brackets):
                brackets.append((EMPTY, 0, n))
            words, tags = [word_of(one) for one in tokens], [_tag(one) for one in tokens]
            tree = split_unaries(ParseTree.from_constituents(brackets, words, tags))
        return tree if form == "tree" else tree.to_brackets() if form == "brackets" else tree.to_nltk()


class _LabelSets:
    """Sets of labels, unary chains among them, as flags."""

    def __init__(self, labels: Labels, name: str) -> None:
        self._names, self._name = labels.classes.tolist(), name
        self._code = {label: at for at, label in enumerate(self._names)}
        self._chains = [set(label.split(JOIN)) for label in self._names]
        self.empty = np.arange(len(self._names)) == 0

    def code(self, i: int, span: tuple[int, ...], label: Any) -> int:
        """Return the code of a label of a sentence, or raise an error."""
        if label not in self._code:
            raise ValueError(f"{self._name}[{i}] has {label!r} at {span}, a label not seen in training.")
        return self._code[label]

    def equal(self, i: int, span: tuple[int, int], label: str) -> NDArray[np.bool_]:
        """Return the flags of one label."""
        return np.asarray(np.arange(len(self._names)) == self.code(i, span, label))

    def having(self, i: int, span: tuple[int, int], label: str | None, *, known: bool = True) -> NDArray[np.bool_]:
        """Return the flags of the chains that have a label, or any label; there must be one if it is to be known."""
        if label is None:
            return np.asarray(~self.empty)
        wanted = set(label.split(JOIN))
        found = np.array([wanted <= chain for chain in self._chains])
        if known and not found.any():
            self.code(i, span, label)
        return found


def _form_of(one: Any) -> str | None:
    return one.form if isinstance(one, Bracketing) else "labels" if isinstance(one, list) else None


def _labels_of(one: Any) -> list[str]:
    if isinstance(one, list):
        return [each for label in one if label is not None for each in ((label,) if isinstance(label, str) else label)]
    return [] if one is None else [label for label in one.labels.values() if label is not None]


def word_of(token: Any) -> str:
    """Return the word of a token: itself, or its first column."""
    return token if isinstance(token, str) else str(token[0])


def _tag(token: Any) -> str:
    return NO_TAG if isinstance(token, str) or len(token) < 2 or not token[1] else str(token[1])
