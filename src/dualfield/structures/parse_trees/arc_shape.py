"""Sentences whose rows are the arcs between their words: heads of words to labels of arcs, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Labels
from dualfield.data.arrays import Floats
from dualfield.data.parse_trees.dependency_sentence import DependencySentence
from dualfield.data.parse_trees.heads import Heads, lift_heads, read_heads, refused_heads
from dualfield.data.partial_labels import PartialLabels
from dualfield.data.shapes import Shape, rows_of_examples

__all__ = ["ArcShape", "head_probabilities"]
from dualfield.structures.parse_trees.span_shape import word_of

EMPTY, ARC = "", "arc"  # labels of arcs that are not in the tree, and of those that are where trees have no labels
_ROOT = "ROOT"
NON_PROJECTIVE = ("error", "skip", "lift")


def n_words_of(n_arcs: ArrayLike) -> NDArray[np.int64]:
    """Return the numbers of words of sentences with so many arcs."""
    return np.rint(np.sqrt(np.asarray(n_arcs, dtype=np.float64))).astype(np.int64)


def arc_rows(
    starts: NDArray[np.int64], n: NDArray[np.int64], heads: NDArray[Any], children: NDArray[Any]
) -> NDArray[np.int64]:
    """Return the rows of arcs from heads, counted from 1, to children, counted from 0.

    Those of a sentence of n words begin at `starts`.
    """
    return np.asarray(starts + children * n + heads - (heads > children), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ArcShape(Shape):
    """The sizes of sentences whose nodes are arcs: n words have n² arcs, each from another word or the root to a word.

    Parameters
    ----------
    offsets : int64 array of shape (n_examples + 1,)
        Sentence i has arcs ``offsets[i]`` to ``offsets[i + 1] - 1``: those to its first word first, each from the root,
        then from the other words in their order.
    is_single : bool, default=True
        Whether the root has one child.
    non_projective : {"error", "skip", "lift"}, default="error"
        What becomes of trees to train on whose arcs cross.
    is_labelled : bool, default=None
        Whether trees are given back with labels; None: not known yet.
    sentences : list of DependencySentence, default=None
        The sentences, where they came with more than tokens.
    n_columns : int, default=None
        How many columns tokens have.
    tags : int, default=None
        Which of them has the tags that the default features are made of.
    tokens : list of lists, default=None
        The tokens of sentences, for texts about them.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import ArcShape
    >>> shape = ArcShape(np.array([0, 4]))
    >>> read = shape.read_labels([[2, 0]])
    >>> read.codes.reshape(2, 2)  # to the first word from the root and from the second; to the second from the root
    array([[0, 1],
           [1, 0]], dtype=int32)
    >>> shape.decode(read.labels, read.codes)
    [[2, 0]]
    """

    _: KW_ONLY
    is_single: bool = True
    non_projective: str = "error"
    is_labelled: bool | None = None
    sentences: Sequence[DependencySentence] | None = None
    n_columns: int | None = None
    tags: int | None = None
    tokens: Sequence[Any] | None = None

    @property
    def n_words(self) -> NDArray[np.int64]:
        """Number of words of each sentence."""
        return n_words_of(self.lengths)

    @property
    def n_tokens(self) -> NDArray[np.int64]:
        """Number of words of each sentence: its nodes are arcs."""
        return self.n_words

    def take(self, examples: NDArray[np.int64]) -> Self:
        """Return the shape of some of the sentences."""
        offsets, _ = rows_of_examples(self.offsets, examples)
        chosen = np.asarray(examples).tolist()
        kept = None if self.sentences is None else [self.sentences[i] for i in chosen]
        tokens = None if self.tokens is None else [self.tokens[i] for i in chosen]
        return replace(self, offsets=offsets, sentences=kept, tokens=tokens)

    def place(self, node: int) -> str:
        """Return where users find the word that an arc leads to: its sentence and its place there."""
        example = int(np.searchsorted(self.offsets, node, side="right")) - 1
        return f"[{example}][{(node - int(self.offsets[example])) // int(self.n_words[example])}]"

    def node_texts(self) -> list[str] | None:
        """Return head and child of each arc."""
        if self.tokens is None:
            return None
        found = []
        for tokens in self.tokens:
            words = [_ROOT, *map(word_of, tokens)]
            found += [
                f"{head} → {child}"
                for place, child in enumerate(words[1:], start=1)
                for at, head in enumerate(words)
                if at != place
            ]
        return found

    def read_labels(self, y: Any, known: Labels | None = None, name: str = "y") -> PartialLabels:
        """Read heads, with labels or without: as lists of either, or as sentences of CoNLL-U; arcs must not cross."""
        return replace(self, non_projective="error").read_training(y, known, name)

    def read_training(self, y: Any, known: Labels | None = None, name: str = "y") -> PartialLabels:
        """Read heads as :meth:`read_labels` does; trees whose arcs cross are refused, left out or made projective."""
        read = read_heads(y, self.n_words.tolist(), name)
        read, left_out = self._projective(read, name)
        labels = self._labels_of(read, name) if known is None else known
        codes, allowed = self._coded(read, labels, name)
        return PartialLabels(labels, codes, allowed, left_out)

    def read_known(self, known: Any, labels: Labels, name: str = "known") -> NDArray[np.bool_]:
        """Read heads that are known, with None where they are not."""
        read = self.read_labels(known, labels, name)
        return np.asarray(read.codes[:, None] == np.arange(len(labels))) if read.allowed is None else read.allowed

    def _projective(self, read: Heads, name: str) -> tuple[Heads, NDArray[np.bool_] | None]:
        """Refuse what is no tree; refuse, skip or lift trees whose arcs cross."""
        reasons, crosses = refused_heads(read, self.is_single)
        for i, reason in enumerate(reasons):
            if reason and not crosses[i]:
                more = " Use Dependency(root='any') for trees with several." if "below the root" in reason else ""
                raise ValueError(f"{name}[{i}] is no tree: {reason}{more}")
        wrong = np.flatnonzero(crosses)
        if not wrong.size:
            return read, None
        if self.non_projective == "error":
            what = f"tree{'s' if len(crosses) > 1 else ''} {'is' if wrong.size == 1 else 'are'}"
            raise ValueError(
                f"{wrong.size} of {len(crosses)} {what} not projective, the first is {name}[{wrong[0]}]: "
                f"{reasons[wrong[0]]} Dependency(non_projective='skip') leaves them out of training and calibration, "
                "and 'lift' makes them projective there."
            )
        heads = read.heads.copy()
        for i in wrong.tolist():
            words = slice(*read.offsets[i : i + 2])
            heads[words] = lift_heads(heads[words].tolist())
        return read._replace(heads=heads), crosses if self.non_projective == "skip" else None

    @staticmethod
    def _labels_of(read: Heads, name: str) -> Labels:
        names = {ARC} if read.labels is None else {label for label in read.labels if label is not None}
        if not len(read.heads):
            raise ValueError(f"{name} must have at least one head. Got none.")
        return Labels(np.array(sorted({EMPTY, *names})), "str", read.are_arrays)

    def _coded(self, read: Heads, labels: Labels, name: str) -> tuple[NDArray[np.int32], NDArray[np.bool_] | None]:
        n = np.repeat(self.n_words, self.n_words)
        children = np.arange(len(read.heads)) - np.repeat(read.offsets[:-1], self.n_words)
        starts = np.repeat(self.offsets[:-1], self.n_words)
        wanted = self._label_codes(read, labels, name)
        codes = np.zeros(self.n_nodes, dtype=np.int32)
        known = read.heads >= 0
        rows = arc_rows(starts, n, read.heads, children)
        codes[rows[known]] = wanted[known]
        if known.all() and (wanted >= 0).all():
            return codes, None
        codes[np.repeat(~known, n)] = -1
        allowed = codes[:, None] == np.arange(len(labels))
        allowed[codes < 0] = True
        allowed[rows[known & (wanted < 0)], 0] = False  # in the tree, with any label
        for word in np.flatnonzero(~known).tolist():
            own = slice(starts[word] + children[word] * n[word], starts[word] + (children[word] + 1) * n[word])
            if wanted[word] >= 0:
                allowed[own] = False
                allowed[own, 0] = allowed[own, wanted[word]] = True
            if word in read.choices:
                heads = np.array(sorted(read.choices[word] - {int(children[word]) + 1}), dtype=np.int64)
                others = np.setdiff1d(
                    np.arange(own.start, own.stop), arc_rows(starts[word], n[word], heads, children[word])
                )
                allowed[others, 1:] = False
                codes[others] = 0
        return codes, allowed

    @staticmethod
    def _label_codes(read: Heads, labels: Labels, name: str) -> NDArray[np.int64]:
        """Return the code of the label of the arc to each word; -1 where it is not known."""
        names = labels.classes.tolist()
        alone = 1 if len(names) == 2 else -1  # the one label that an arc may have
        if read.labels is None:
            return np.full(len(read.heads), alone, dtype=np.int64)
        code = {label: at for at, label in enumerate(names)}
        found = np.array([alone if label is None else code.get(label, -2) for label in read.labels], dtype=np.int64)
        for word in np.flatnonzero(found == -2)[:1].tolist():
            i = int(np.searchsorted(read.offsets, word, side="right")) - 1
            place = f"{name}[{i}][{word - int(read.offsets[i])}]"
            raise ValueError(f"{place} has the label {read.labels[word]!r}, which was not seen in training.")
        return found

    def decode(self, labels: Labels, codes: NDArray[np.int32]) -> Any:
        """Return trees: heads, pairs (head, label) where arcs have labels, or sentences where sentences came in."""
        names = labels.classes.tolist()
        labelled = names != [EMPTY, ARC] if self.is_labelled is None else self.is_labelled
        found: list[Any] = []
        for i, n in enumerate(self.n_words.tolist()):
            own = codes[self.offsets[i] : self.offsets[i + 1]].reshape(n, n)
            place = own.argmax(axis=1) if n else np.zeros(0, dtype=np.int64)
            coded = own[np.arange(n), place]
            heads = np.where(coded > 0, place + (place > np.arange(n)), -1)
            given = [None if head < 0 else head for head in heads.tolist()]
            kinds = [names[code] if code > 0 and labelled else None for code in coded.tolist()]
            if self.sentences is not None:
                found.append(self.sentences[i].with_heads(given, kinds))
            elif labelled:
                found.append(list(zip(given, kinds, strict=True)))
            else:
                found.append(heads if labels.arrays else given)
        return found


def head_probabilities(rows: ArrayLike) -> Floats:
    """Return the probability of each head of each word from those of the arcs of a sentence.

    Parameters
    ----------
    rows : array of shape (n², n_labels)
        Probabilities of labels, as ``predict_proba`` gives them for a sentence of n words.

    Returns
    -------
    array of shape (n, n + 1)
        The probability that a word (row) has a head (column): 0 is the root, h is word h, counted from 1. Rows sum to
        1.

    Examples
    --------
    >>> from dualfield.structures import Dependency, head_probabilities
    >>> rows = Dependency(["", "arc"]).marginals([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]).node
    >>> head_probabilities(rows).round(2)
    array([[0.73, 0.  , 0.27],
           [0.27, 0.73, 0.  ]])
    """
    given = np.asarray(rows, dtype=np.float64)
    n = int(n_words_of(len(given)))
    if given.ndim != 2 or n * n != len(given):
        raise ValueError(f"rows must have shape (n * n, n_labels) for n words. Got {given.shape} instead.")
    children, heads = np.divmod(np.arange(n * n), max(n, 1))
    found = np.zeros((n, n + 1))
    found[children, heads + (heads > children)] = given[:, 1:].sum(axis=1)
    return found
