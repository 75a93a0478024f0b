"""Sentences with dependency trees, in the columns of CoNLL-U."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

__all__ = ["DependencySentence"]

ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL = range(8)
N_COLUMNS = 10


@dataclass(frozen=True)
class DependencySentence:
    """A sentence of CoNLL-U: its words with heads and labels of arcs, and all that stands between them.

    As an example of X it stands for its words, and predictions for it are sentences with other heads; as an example of
    y it stands for its tree.

    Parameters
    ----------
    rows : tuple of tuple of str
        The ten columns of each line: words, ranges of words such as ``2-4``, and empty nodes such as ``5.1``.
    comments : tuple of str, default=()
        The lines before them, with their ``#``.

    See Also
    --------
    dualfield.io.read_conllu : Read them from files.

    Examples
    --------
    >>> from dualfield.data.parse_trees.dependency_sentence import DependencySentence
    >>> row = ("1", "Stop", "stop", "VERB", "VB", "_", "0", "root", "_", "_")
    >>> sentence = DependencySentence((row,))
    >>> sentence.tokens, sentence.heads, sentence.labels
    ([('Stop', 'VERB', 'VB', 'stop', '_')], [0], ['root'])
    """

    rows: tuple[tuple[str, ...], ...]
    comments: tuple[str, ...] = ()

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[str | Sequence[str]],
        heads: Sequence[int | None] | None = None,
        labels: Sequence[str | None] | None = None,
    ) -> DependencySentence:
        """Make a sentence of tokens.

        Parameters
        ----------
        tokens : sequence of str, or of tuples of str
            Forms; or form, universal tag, tag of the language, lemma and features, as in :attr:`tokens`, or the first
            few of them.
        heads : sequence of int or None, default=None
            The head of each word, counted from 1, 0 for the root; None: not known.
        labels : sequence of str or None, default=None
            Labels of the arcs.

        Returns
        -------
        DependencySentence
            The sentence.

        Examples
        --------
        >>> from dualfield.data import DependencySentence
        >>> DependencySentence.from_tokens(["Stop", "it"], [0, 1]).rows[1]
        ('2', 'it', '_', '_', '_', '_', '1', '_', '_', '_')
        """
        rows = []
        for number, token in enumerate(tokens, start=1):
            columns = (token,) if isinstance(token, str) else tuple(token)
            form, upos, xpos, lemma, feats = (*columns[:5], *["_"] * (5 - len(columns)))
            rows.append((str(number), form, lemma, upos, xpos, feats, "_", "_", "_", "_"))
        made = cls(tuple(rows))
        return made if heads is None else made.with_heads(heads, labels)

    @cached_property
    def _places(self) -> list[int]:
        """The lines of words."""
        return [at for at, row in enumerate(self.rows) if row[ID].isdecimal()]

    def __len__(self) -> int:
        return len(self._places)

    @property
    def words(self) -> list[tuple[str, ...]]:
        """The lines of words, without ranges and empty nodes."""
        return [self.rows[at] for at in self._places]

    @property
    def tokens(self) -> list[tuple[str, ...]]:
        """Columns that features are made of: form, universal tag, tag of the language, lemma, and features."""
        return [tuple(row[column] for column in (FORM, UPOS, XPOS, LEMMA, FEATS)) for row in self.words]

    @property
    def heads(self) -> list[int | None]:
        """The head of each word, counted from 1; 0 for the root, None where it is not known."""
        return [None if row[HEAD] == "_" else int(row[HEAD]) for row in self.words]

    @property
    def labels(self) -> list[str | None]:
        """The label of the arc to each word; None where it is not known."""
        return [None if row[DEPREL] == "_" else row[DEPREL] for row in self.words]

    def with_heads(self, heads: Sequence[int | None], labels: Sequence[str | None] | None = None) -> DependencySentence:
        """Return the sentence with another tree.

        Parameters
        ----------
        heads : sequence of int or None
            One for each word.
        labels : sequence of str or None, default=None
            Labels of the arcs; None: there are none.

        Returns
        -------
        DependencySentence
            With everything else as it is.

        Examples
        --------
        >>> from dualfield.data.parse_trees.dependency_sentence import DependencySentence
        >>> row = ("1", "Stop", "stop", "VERB", "VB", "_", "_", "_", "_", "_")
        >>> DependencySentence((row,)).with_heads([0], ["root"]).rows[0][6:8]
        ('0', 'root')
        """
        if len(heads) != len(self):
            raise ValueError(f"heads must have {len(self)} entries, one for each word. Got {len(heads)} instead.")
        given = [None] * len(self) if labels is None else list(labels)
        if len(given) != len(self):
            raise ValueError(f"labels must have {len(self)} entries, one for each word. Got {len(given)} instead.")
        rows = list(self.rows)
        for at, head, label in zip(self._places, heads, given, strict=True):
            tree = ("_" if head is None else str(head), "_" if label is None else label)
            rows[at] = (*rows[at][:HEAD], *tree, *rows[at][HEAD + 2 :])
        return replace(self, rows=tuple(rows))
