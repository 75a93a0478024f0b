"""Templates: lines of text that say which attributes a token has."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data import Batch, Vocabulary
from dualfield.data.input_forms import opened_tokens, unwrapped
from dualfield.data.records import Fields, Record
from dualfield.features.standard import chunking_text, default_text

__all__ = ["Template", "TemplateRows"]

Syntax = Literal["auto", "crf++", "wapiti"]


class TemplateRows(NamedTuple):
    r"""What a template makes of sentences: attributes of tokens, and of pairs of neighbouring tokens.

    Attributes
    ----------
    nodes : Batch
        A row for each token, with a column for each attribute that its vocabulary holds.
    pairs : Batch or None
        The same for attributes that are combined with pairs of labels, with a separate vocabulary: row
        ``t`` describes token ``t`` together with the one before it, and is empty for the first token of a sentence.
        None if the template has no such line.

    Examples
    --------
    >>> from dualfield.features import Template
    >>> rows = Template("U:%x[0,0]\nB:%x[0,0]").read([["a", "b"]])
    >>> list(rows.nodes.vocabulary), list(rows.pairs.vocabulary)
    (['U:a', 'U:b'], ['B:b'])
    >>> rows.pairs.to_csr().toarray()
    array([[0.],
           [1.]])
    """

    nodes: Batch
    pairs: Batch | None


@dataclass(frozen=True, repr=False)
class Template:
    r"""Lines of text that turn rows of raw columns into attributes.

    Each line is an attribute, written once for all tokens: text in which macros such as ``%x[-1,0]`` stand for values
    of the table, here for column 0 of the token before. Templates of CRF++ and patterns of Wapiti can be used
    unchanged::

        # words and tags
        U00:%x[0,0]
        U01:%x[-1,1]/%x[0,1]
        B

    A line that starts with ``U`` gives attributes that are combined with the label of a token, ``B`` with the labels
    of a pair of neighbours; ``B`` alone stands for plain transitions. Wapiti writes small letters, and ``*`` for both
    at once. Macros are the same in both syntaxes; the last four are additions of this library:

    ====================  =============================================================================
    ``%x[off,col]``       the value in column ``col`` of the token ``off`` places further on
    ``%t[off,col,"re"]``  ``true`` or ``false``: whether the value has a match of a regular expression
    ``%m[off,col,"re"]``  the first match, or nothing
    ``%p[off,col,n]``     the first ``n`` characters
    ``%q[off,col,n]``     the last ``n`` characters
    ``%s[off,col]``       the shape: capital letters as ``X``, other letters as ``x``, digits as ``d``
    ``%c[off,col]``       the shape with every run of a character written once
    ====================  =============================================================================

    ``%X``, ``%T``, ``%M``, ``%P`` and ``%Q`` give the same in lower case. Three switches, on separate lines, follow
    CRFsuite's conventions: ``!omit-outside`` leaves an attribute out where it would reach past the sentence, instead of
    putting in CRF++'s ``_B-1`` or Wapiti's ``_x-1``; ``!mark-ends`` adds ``__BOS__`` to the first token and ``__EOS__``
    to the last; ``!bare-names`` lets the attribute begin behind the first colon of the line.

    A template is immutable, and compares equal by text and syntax.

    Parameters
    ----------
    text : str
        The lines.
    syntax : {'auto', 'crf++', 'wapiti'}
        Whose conventions the text follows. 'auto' takes Wapiti's if a line starts with ``u``, ``b`` or ``*``, or uses
        ``%X``, ``%t`` or ``%m``; otherwise CRF++'s.

    See Also
    --------
    dualfield.data.Batch : What the attributes end up in.

    Examples
    --------
    >>> from dualfield.features import Template
    >>> template = Template("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB")
    >>> template, template.has_transitions
    (<Template of 3 lines, 1 column, crf++>, True)
    >>> rows = template.read([["the", "dog"]])
    >>> list(rows.nodes.vocabulary)
    ['U0:the', 'U1:_B-1/the', 'U0:dog', 'U1:the/dog']
    """

    text: str
    syntax: str = "auto"
    _compiled: _native.Template = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"The 'text' parameter of Template must be a str. Got {type(self.text).__name__} instead.")
        if self.syntax not in ("auto", "crf++", "wapiti"):
            raise ValueError(
                "The 'syntax' parameter of Template must be one of 'auto', 'crf++', 'wapiti'. "
                f"Got {self.syntax!r} instead."
            )
        if any("\ud800" <= character <= "\udfff" for character in self.text):
            raise ValueError("The 'text' parameter of Template has a lone surrogate, which UTF-8 cannot express.")
        object.__setattr__(self, "_compiled", _native.Template(self.text, self.syntax))
        object.__setattr__(self, "syntax", self._compiled.syntax)

    def record(self) -> Fields:
        r"""Return the record of the template."""
        return {"kind": "template", "text": self.text, "syntax": self.syntax}

    @classmethod
    def from_record(cls, record: Record) -> Template:
        """Build a template from its record, which is checked."""
        record.text("kind", ("template",))
        return cls(record.text("text"), record.text("syntax"))

    @classmethod
    def parse(cls, text: str, syntax: Syntax = "auto") -> Template:
        r"""Read a template; the same as calling the class.

        Parameters
        ----------
        text : str
            The lines.
        syntax : {'auto', 'crf++', 'wapiti'}
            Whose conventions the text follows.

        Returns
        -------
        Template
            The template.

        Raises
        ------
        ValueError
            If a line is not sound; the message names it and says what is wrong.

        Examples
        --------
        >>> Template.parse("u:%X[0,0]").syntax
        'wapiti'
        >>> Template.parse("U0:%x[0,0]\nU1:%x[0]")
        Traceback (most recent call last):
        ...
        ValueError: Line 2 of the template, 'U1:%x[0]': expected ',' between offset and column. Got ']' instead.
        """
        return cls(text, syntax)

    @classmethod
    def default(cls, n_columns: int = 1) -> Template:
        """Return a template that suits most tables whose first column are words.

        Of the word: itself, in lower case, its shape, its first and last 1 to 4 characters. Around it: words up to two
        places away, and pairs of neighbours. Of each other column: the same window and pairs. It uses macros of this
        library besides Wapiti's; print its `text` to see them all, or to start from it.

        Parameters
        ----------
        n_columns : int
            How many columns to use.

        Returns
        -------
        Template
            The template.

        Examples
        --------
        >>> rows = Template.default().read([["Dogs", "ran"]])
        >>> strings = list(rows.nodes.vocabulary)
        >>> [strings[column] for column in rows.nodes.indices[:6]]
        ['w[0]=Dogs', 'w[1]=ran', 'lower[0]=dogs', 'lower[1]=ran', 'lower[0]|lower[1]=dogs|ran', 'shape[0]=Xxxx']
        """
        if isinstance(n_columns, bool) or not isinstance(n_columns, numbers.Integral) or not 1 <= n_columns <= 1000:
            raise ValueError(
                f"The 'n_columns' parameter of Template.default must be an int in [1, 1000]. Got {n_columns!r}."
            )
        return cls(default_text(int(n_columns)))

    @classmethod
    def chunking(cls) -> Template:
        """Return the template of CRFsuite's tutorial on text chunking, for words and part-of-speech tags.

        Words up to two places away and pairs of neighbouring words; tags up to two places away, pairs and triples of
        neighbouring tags. Names are those of the tutorial.

        Returns
        -------
        Template
            The template, of two columns.

        Examples
        --------
        >>> rows = Template.chunking().read([[("Dogs", "NNS"), ("ran", "VBD")]])
        >>> list(rows.nodes.vocabulary)[:5]
        ['w[0]=Dogs', 'w[1]=ran', 'w[0]|w[1]=Dogs|ran', 'pos[0]=NNS', 'pos[1]=VBD']
        """
        return cls(chunking_text())

    @property
    def n_columns(self) -> int:
        """How many columns a row must have; it may have more."""
        return self._compiled.n_columns

    @property
    def has_transitions(self) -> bool:
        """Whether a line for pairs of labels has no macro, which asks for plain transitions."""
        return self._compiled.has_transitions

    @property
    def has_pairs(self) -> bool:
        """Whether a line for pairs of labels has macros, which makes attributes of pairs."""
        return self._compiled.has_pairs

    @property
    def prefixes(self) -> list[str]:
        """What stands before the first macro of each line for tokens: with what its attributes begin."""
        return list(_prefixes(self.text.split("\n"), self.syntax == "wapiti"))

    def read(
        self,
        X: Iterable[Any],
        vocabulary: Vocabulary | None = None,
        pair_vocabulary: Vocabulary | None = None,
        *,
        grow: bool = False,
        name: str = "X",
    ) -> TemplateRows:
        """Turn sentences into attributes.

        Parameters
        ----------
        X : list or generator of sentences
            A sentence is a list of rows, one per token: tuples or lists of str, all of the same width, or plain str
            where one column is enough. Data frames and arrays of str do as well.
        vocabulary : Vocabulary or None
            The attributes of tokens to use; others are left out and counted. If None, the result has a new vocabulary
            of all attributes, in order of first appearance.
        pair_vocabulary : Vocabulary or None
            The same for attributes of pairs; given together with `vocabulary` if the template has such lines.
        grow : bool
            Whether attributes that are not in the vocabularies are added to them instead of being ignored.
        name : str
            What errors call `X`.

        Returns
        -------
        TemplateRows
            The batches `nodes` and `pairs`.

        Raises
        ------
        TypeError
            If a sentence, a row or a value is of the wrong type; the message names its place.
        ValueError
            If a row has too few columns, or not as many as the first; the message names its place.

        Examples
        --------
        >>> template = Template("U:%x[0,0]")
        >>> train = template.read([["the", "dog"], ["the", "cat"]])
        >>> test = template.read([["a", "dog"]], train.nodes.vocabulary)
        >>> test.nodes.indices, test.nodes.n_unknown
        (array([1], dtype=int32), 1)
        """
        X = unwrapped(X)
        if isinstance(X, (str, bytes, dict, set, frozenset)) or not isinstance(X, Iterable):
            raise TypeError(f"{name} must be a list of sentences. Got {type(X).__name__} instead.")
        if self.has_pairs and (vocabulary is None) != (pair_vocabulary is None):
            raise ValueError(
                "'vocabulary' and 'pair_vocabulary' must be given together, as the template has attributes of pairs."
            )
        of_nodes = Vocabulary() if vocabulary is None else vocabulary
        of_pairs = (Vocabulary() if pair_vocabulary is None else pair_vocabulary) if self.has_pairs else None
        offsets, nodes, pairs = self._compiled.read(
            X,
            opened_tokens,
            of_nodes._native,
            None if of_pairs is None else of_pairs._native,
            grow=grow or vocabulary is None,
            name=name,
        )
        return TemplateRows(
            _batch(offsets, nodes, of_nodes),
            None if pairs is None or of_pairs is None else _batch(offsets, pairs, of_pairs),
        )

    def __reduce__(self) -> tuple[type[Template], tuple[str, str]]:
        return type(self), (self.text, self.syntax)

    def __repr__(self) -> str:
        n_lines = sum(1 for line in self.text.splitlines() if line.strip() and line.lstrip()[0] not in "#!")
        lines = f"{n_lines} line{'s' * (n_lines != 1)}"
        return f"<Template of {lines}, {self.n_columns} column{'s' * (self.n_columns != 1)}, {self.syntax}>"


def _prefixes(lines: list[str], is_wapiti: bool) -> Iterator[str]:
    """Tell how attributes of tokens begin, line by line of a template that is known to be sound."""
    is_bare = any(line.startswith("!bare-names") for line in lines)
    for line in lines:
        text = (line.partition("#")[0] if is_wapiti else line.removesuffix("\r")).partition("%")
        if line.startswith(("U", "u", "*") if is_wapiti else "U"):
            # Without a macro the whole line is the attribute.
            before = text[0] if text[1] or not is_wapiti else text[0].rstrip()
            before = "u" + before[1:] if is_wapiti and before[0] == "U" else before
            yield before.partition(":")[2] if is_bare else before


def _batch(
    offsets: NDArray[np.int64], rows: tuple[NDArray[np.int64], NDArray[np.int32], int], words: Vocabulary
) -> Batch:
    indptr, indices, n_unknown = rows
    return Batch(offsets, len(words), indptr=indptr, indices=indices, vocabulary=words, n_unknown=n_unknown)
