"""Rows that stand for two places of a sentence, with attributes made of the tokens there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data.anchored_texts import SEGMENT, AnchoredTexts, RowFunction, read_row_features
from dualfield.data.attributes import Vocabulary
from dualfield.data.batch import Batch
from dualfield.data.input_forms import opened_tokens

__all__ = ["AnchoredRows", "arc_anchors", "segment_anchors"]


def segment_anchors(lengths: ArrayLike, max_length: int | None = None) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return first and last token of every segment of sentences, and where the segments of each sentence begin.

    Those that begin at the first token come first, the shorter ones before the longer ones.

    Parameters
    ----------
    lengths : array of int
        Numbers of tokens.
    max_length : int, default=None
        Of how many tokens a segment is at most; None: any number.

    Returns
    -------
    anchors : int32 array of shape (n_rows, 2)
        First and last token.
    offsets : int64 array of shape (n_sentences + 1,)
        Where the rows of each sentence begin.

    Examples
    --------
    >>> from dualfield.data.anchored_rows import segment_anchors
    >>> segment_anchors([2, 1])[0].tolist()
    [[0, 0], [0, 1], [1, 1], [0, 0]]
    """

    def block(n: int) -> NDArray[np.int32]:
        counts = n - np.arange(n) if max_length is None else np.minimum(n - np.arange(n), max_length)
        first = np.repeat(np.arange(n), counts)
        shift = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.stack([first, first + shift], axis=1).astype(np.int32)

    return _blocks(lengths, block)


def arc_anchors(lengths: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return head and child of every arc of sentences, and where the arcs of each sentence begin.

    Those to the first token come first, the root, which is -1, before other heads.

    Parameters
    ----------
    lengths : array of int
        Numbers of tokens.

    Returns
    -------
    anchors : int32 array of shape (n_rows, 2)
        Head and child.
    offsets : int64 array of shape (n_sentences + 1,)
        Where the rows of each sentence begin.

    Examples
    --------
    >>> from dualfield.data.anchored_rows import arc_anchors
    >>> arc_anchors([2])[0].tolist()
    [[-1, 0], [1, 0], [-1, 1], [0, 1]]
    """

    def block(n: int) -> NDArray[np.int32]:
        child, head = np.divmod(np.arange(n * n), max(n, 1))
        return np.stack([head - (head <= child), child], axis=1).astype(np.int32)

    return _blocks(lengths, block)


def _blocks(
    lengths: ArrayLike, block: Callable[[int], NDArray[np.int32]]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Put the anchors of sentences together; sentences of the same length have the same, which are made once."""
    given = np.asarray(lengths, dtype=np.int64).tolist()
    made = {n: block(n) for n in set(given)}
    offsets = _begins(np.array([len(made[n]) for n in given], dtype=np.int64))
    return np.concatenate([np.zeros((0, 2), dtype=np.int32), *(made[n] for n in given)]), offsets


class AnchoredRows:
    """Rows with two anchors in a sentence, and what makes their attributes.

    A structure returns them as nodes or edges of :class:`~dualfield.structures.Opened`: its candidates, such as all
    segments, spans or arcs. Values of tokens are numbered when an object is made; texts are composed only to be looked
    up, in native code.

    Parameters
    ----------
    sentences : list of sentences
        Lists of tokens: str, or tuples or lists of str, all of the same width.
    anchors : list of int arrays of shape (n_rows, 2), or one such array with `offsets`
        First and last token of each row, or head and child, a head of -1 for the root.
    features : AnchoredTexts, list of str, or callable
        Texts with macros. Or a function that returns attributes, as items have them: of (sentence, start, stop), stop
        behind the last token, or of (sentence, head, child).
    offsets : int64 array of shape (n_sentences + 1,), default=None
        Where the rows of each sentence begin.
    names : tuple of str, default=("first", "last")
        What texts call the anchors, these or ("head", "child").
    name : str, default="X"
        What errors call the sentences.

    Attributes
    ----------
    anchors, offsets
        As above, of all sentences in a row.
    texts : AnchoredTexts or None
        The texts; None where a function makes attributes.

    Examples
    --------
    >>> from dualfield.data.anchored_rows import AnchoredRows, segment_anchors
    >>> anchors, offsets = segment_anchors([2])
    >>> batch = AnchoredRows([["New", "York"]], anchors, ["%x[all]/%n"], offsets=offsets).build()
    >>> list(batch.vocabulary)
    ['S0:New/1', 'S0:New York/2', 'S0:York/1']
    """

    def __init__(
        self,
        sentences: Sequence[Any],
        anchors: Any,
        features: AnchoredTexts | RowFunction | Sequence[str] | Callable[[Any, int, int], Any],
        *,
        offsets: NDArray[np.int64] | None = None,
        names: tuple[str, str] = SEGMENT,
        name: str = "X",
    ) -> None:
        if offsets is None:
            parts = [np.asarray(one, dtype=np.int32).reshape(-1, 2) for one in anchors]
            offsets = _begins(np.array([len(one) for one in parts], dtype=np.int64))
            anchors = np.concatenate(parts) if parts else np.zeros((0, 2), dtype=np.int32)
        self.anchors = np.ascontiguousarray(anchors, dtype=np.int32)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        if len(self.offsets) != len(sentences) + 1:
            raise ValueError(f"There are anchors for {len(self.offsets) - 1} sentences of {len(sentences)}.")
        found = read_row_features(features, names)
        if found is None:
            raise ValueError("features must be texts or a function. Got None instead.")
        self._names, self._made, self._native = names, None, None
        self.texts = found if isinstance(found, AnchoredTexts) else None
        if isinstance(found, AnchoredTexts):
            self._names = found.names
            self._native = _native.AnchoredRows(
                sentences=sentences,
                opened=opened_tokens,
                anchors=self.anchors,
                offsets=self.offsets,
                pieces=found.pieces,
                macros=found.macros,
                n_texts=len(found.texts),
                are_arcs=found.are_arcs,
                owner=found.argument[:1].lower() + found.argument[1:],
                name=name,
            )
        else:
            self._function, self._made = found, self._called(sentences, found)

    @property
    def n_rows(self) -> int:
        """Number of rows of all sentences together."""
        return int(self.offsets[-1])

    def _called(self, sentences: Sequence[Any], function: RowFunction) -> list[list[Any]]:
        behind = 1 if self._names == SEGMENT else 0
        places = self.anchors.tolist()
        return [
            [function(sentence, one, two + behind) for one, two in places[start:stop]]
            for sentence, (start, stop) in zip(sentences, itertools.pairwise(self.offsets.tolist()), strict=True)
        ]

    def build(
        self,
        *,
        vocabulary: Vocabulary | None = None,
        grow: bool | NDArray[np.bool_] = False,
        n_columns: int | None = None,
        name: str = "X",
        n_jobs: int = 1,
    ) -> Batch:
        """Lay out the rows.

        Parameters
        ----------
        vocabulary : Vocabulary, default=None
            The attributes to use; others are left out and counted. None: a new one.
        grow : bool, or bool array of shape (n_rows,), default=False
            Whether attributes that are not in the vocabulary are added to it: those of all rows, or those of the rows
            where the array is True. Other rows then have the attributes that some of these rows have. With a new
            vocabulary False stands for True.
        n_columns : int, default=None
            The width that numbers must have, if a function returns numbers.
        name : str, default="X"
            What errors call the rows.
        n_jobs : int, default=1
            Threads for lookups. The result does not depend on it.

        Returns
        -------
        Batch
            With a row for each pair of anchors.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data.anchored_rows import AnchoredRows, segment_anchors
        >>> anchors, offsets = segment_anchors([2])
        >>> rows = AnchoredRows([["New", "York"]], anchors, ["%x[first]", "%x[last]"], offsets=offsets)
        >>> batch = rows.build(grow=np.array([False, True, False]))
        >>> list(batch.vocabulary), batch.indices.tolist(), batch.n_unknown
        (['S0:New', 'S1:York'], [0, 0, 1, 1], 2)
        """
        mask = None
        if isinstance(grow, np.ndarray):
            if grow.dtype != np.bool_ or grow.shape != (self.n_rows,):
                raise ValueError(
                    f"grow must be a bool, or a bool array of shape ({self.n_rows},), one for each row of {name}. Got "
                    f"an array of {grow.dtype} of shape {grow.shape} instead."
                )
            mask, grow = np.ascontiguousarray(grow), False
        elif vocabulary is None:
            grow = True
        if self._native is None:
            return self._from_items(vocabulary, grow, mask, n_columns, name)
        if n_columns is not None:
            raise ValueError(f"{name} has rows with attributes; the training data had {n_columns} columns of numbers.")
        words = Vocabulary() if vocabulary is None else vocabulary
        indptr, indices, n_unknown = self._native.read(vocabulary=words._native, grow=grow, mask=mask, n_threads=n_jobs)
        return Batch(self.offsets, len(words), indptr=indptr, indices=indices, vocabulary=words, n_unknown=n_unknown)

    def _from_items(
        self,
        vocabulary: Vocabulary | None,
        grow: bool,
        mask: NDArray[np.bool_] | None,
        n_columns: int | None,
        name: str,
    ) -> Batch:
        """Lay out what a function has returned."""
        made, name = self._made, self._function.returned_for(name)
        assert made is not None
        if mask is not None:
            rows = itertools.chain.from_iterable(made)
            chosen = [row for row, is_chosen in zip(rows, mask.tolist(), strict=True) if is_chosen]
            seen = Batch.build([chosen], vocabulary=vocabulary, grow=True, n_columns=n_columns, name=name)
            vocabulary = seen.vocabulary
        return Batch.build(made, vocabulary=vocabulary, grow=grow, n_columns=n_columns, name=name)


def _begins(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
