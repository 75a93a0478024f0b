"""The heads of words in all forms that users pass, as flat arrays; which of them are projective trees."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.input_forms import unwrapped
from dualfield.data.parse_trees.dependency_sentence import DependencySentence

__all__ = ["Heads", "lift_heads", "read_heads"]

UNKNOWN = -1


class Heads(NamedTuple):
    """Heads of the words of sentences, one sentence after another.

    Attributes
    ----------
    offsets : int64 array of shape (n_sentences + 1,)
        Where the words of each sentence begin.
    heads : int32 array of shape (n_words,)
        Counted from 1 in each sentence; 0 for the root, -1 where the head is not known.
    labels : list of str or None, or None
        Labels of the arcs, None where one is not known; None if there are none.
    choices : dict
        From a word whose head is one of several to these.
    are_arrays : bool
        Whether all of them came as arrays.

    Examples
    --------
    >>> from dualfield.data.parse_trees.heads import read_heads
    >>> read_heads([[2, 0], [None]], [2, 1]).is_whole
    array([ True, False])
    """

    offsets: NDArray[np.int64]
    heads: NDArray[np.int32]
    labels: list[str | None] | None
    choices: dict[int, frozenset[int]]
    are_arrays: bool

    @property
    def is_whole(self) -> NDArray[np.bool_]:
        """Which sentences have a head for every word."""
        unknown = np.concatenate([[0], np.cumsum(self.heads < 0)])
        return np.asarray(unknown[self.offsets[1:]] == unknown[self.offsets[:-1]])


def read_heads(y: Any, lengths: Sequence[int], name: str = "y") -> Heads:
    """Read heads as users pass them.

    Parameters
    ----------
    y : list
        For each sentence a list or array of heads, counted from 1, 0 for the root; of pairs (head, label); or a
        :class:`DependencySentence`. A head may be None, or a set of heads, and a label None, where it is not known; so
        may be the whole sentence.
    lengths : sequence of int
        Numbers of words.
    name : str, default="y"
        What errors call them.

    Returns
    -------
    Heads
        All heads, which are in range, but need not be trees.

    Examples
    --------
    >>> from dualfield.data.parse_trees.heads import read_heads
    >>> read_heads([[2, 0, None], [(0, "root")]], [3, 1])[1:3]
    (array([ 2,  0, -1,  0], dtype=int32), [None, None, None, 'root'])
    """
    y = list(y) if isinstance(y, Iterator) else unwrapped(y)
    if isinstance(y, (str, DependencySentence)) or not hasattr(y, "__len__"):
        raise TypeError(f"{name} must be a list with the heads of each sentence. Got {y!r:.100} instead.")
    if len(y) != len(lengths):
        raise ValueError(f"{name} must have the heads of {len(lengths)} sentences. Got {len(y)} instead.")
    reader = _Reader(name)
    for i, (one, n) in enumerate(zip(y, lengths, strict=True)):
        reader.read(i, one, int(n))
    offsets = np.concatenate([[0], np.cumsum(np.asarray(lengths, dtype=np.int64))]).astype(np.int64)
    heads = np.array(reader.heads, dtype=np.int32)
    _check_range(heads, offsets, name)
    labels = reader.labels if any(label is not None for label in reader.labels) else None
    return Heads(offsets, heads, labels, reader.choices, reader.are_arrays and len(y) > 0)


class _Reader:
    """Appends what sentences have."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.heads: list[int] = []
        self.labels: list[str | None] = []
        self.choices: dict[int, frozenset[int]] = {}
        self.are_arrays = True

    def read(self, i: int, one: Any, n: int) -> None:
        place, one = f"{self._name}[{i}]", unwrapped(one)
        self.are_arrays &= isinstance(one, np.ndarray)
        if one is None:
            one = [None] * n
        elif isinstance(one, DependencySentence):
            one = list(zip(one.heads, one.labels, strict=True))
        elif isinstance(one, np.ndarray):
            if one.ndim != 1 or one.dtype.kind not in "iu":
                raise ValueError(f"{place} must be an array of integers, one for each word. Got {one!r:.100} instead.")
            one = one.tolist()
        if not isinstance(one, (list, tuple)):
            raise TypeError(f"{place} must be a list of heads, or of pairs (head, label). Got {one!r:.100} instead.")
        if len(one) != n:
            raise ValueError(f"{place} must have {n} heads, one for each word. Got {len(one)} instead.")
        if all(type(entry) is int and entry >= 0 for entry in one):
            self.heads += one
            self.labels += [None] * n
            return
        for at, entry in enumerate(one):
            self._read_entry(f"{place}[{at}]", entry, n)

    def _read_entry(self, place: str, entry: Any, n: int) -> None:
        head, label = entry if isinstance(entry, (tuple, list)) and len(entry) == 2 else (entry, None)
        if isinstance(head, (set, frozenset)):
            if not head or not all(isinstance(one, (int, np.integer)) and 0 <= one <= n for one in head):
                raise ValueError(f"{place} must be a set of heads in [0, {n}]. Got {head!r} instead.")
            self.choices[len(self.heads)] = frozenset(int(one) for one in head)
            head = None
        is_head = head is None or (isinstance(head, (int, np.integer)) and not isinstance(head, bool))
        if not is_head or not isinstance(label, str | None):
            raise ValueError(f"{place} must be a head, an int or None, or a pair (head, label). Got {entry!r} instead.")
        if label == "":
            raise ValueError(f"{place} has an empty label, which stands for arcs that are not in the tree.")
        if head is not None and head < 0:
            raise ValueError(f"{place} must be a head in [0, {n}]. Got {head} instead.")
        self.heads.append(UNKNOWN if head is None else int(head))
        self.labels.append(label)


def _check_range(heads: NDArray[np.int32], offsets: NDArray[np.int64], name: str) -> None:
    n = np.repeat(np.diff(offsets), np.diff(offsets))
    own = np.arange(len(heads)) - np.repeat(offsets[:-1], np.diff(offsets)) + 1
    for wrong, what in ((heads > n, "must be a head in [0, {n}]"), (heads == own, "must be another word or 0")):
        for word in np.flatnonzero(wrong)[:1].tolist():
            i = int(np.searchsorted(offsets, word, side="right")) - 1
            place = f"{name}[{i}][{word - int(offsets[i])}]"
            raise ValueError(f"{place} {what.format(n=n[word])}. Got {heads[word]} instead.")


class Refused(NamedTuple):
    """Why sentences have no projective tree: a reason for each, and which are trees whose arcs cross."""

    reasons: list[str]
    crosses: NDArray[np.bool_]


def refused_heads(read: Heads, is_single: bool) -> Refused:
    """Find what is wrong with the heads of whole sentences; those of others are not looked at."""
    reasons, crosses = _native.head_refusals(read.heads, read.offsets, is_single)
    whole = read.is_whole
    kept = [reason if is_whole else "" for reason, is_whole in zip(reasons, whole.tolist(), strict=True)]
    return Refused(kept, np.asarray(crosses, dtype=bool) & whole)


def lift_heads(heads: Sequence[int]) -> list[int]:
    """Make a tree projective: arcs that cross others are moved up to the head of their head, the shortest first.

    That is the baseline of pseudo-projective parsing (Nivre and Nilsson, 2005); labels of arcs stay as they are.

    Parameters
    ----------
    heads : sequence of int
        The head of each word, counted from 1; 0 for the root. A tree.

    Returns
    -------
    list of int
        The same for a projective tree.

    Examples
    --------
    >>> from dualfield.data.parse_trees.heads import lift_heads
    >>> lift_heads([3, 4, 0, 3])  # the arc from 4 to 2 crosses that from 3 to 1
    [3, 3, 0, 3]
    """
    lifted = [0, *map(int, heads)]
    while True:
        crossing = _shortest_crossing(lifted)
        if crossing is None:
            return lifted[1:]
        lifted[crossing] = lifted[lifted[crossing]]


def _shortest_crossing(heads: list[int]) -> int | None:
    """Return the child of the shortest arc that spans a word which is not below its head; None if there is none."""
    found: tuple[int, int] | None = None
    for child in range(1, len(heads)):
        head = heads[child]
        inside = range(min(head, child) + 1, max(head, child))
        if any(not _is_below(heads, word, head) for word in inside):
            found = min(found or (len(heads), 0), (abs(head - child), child))
    return None if found is None else found[1]


def _is_below(heads: list[int], word: int, head: int) -> bool:
    above = itertools.takewhile(lambda one: one > 0, _path(heads, word))
    return head == 0 or head in above


def _path(heads: list[int], word: int) -> Iterator[int]:
    while True:
        yield word
        word = heads[word]
