"""Texts with macros over two places of a sentence: what makes attributes of segments, spans and arcs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["AnchoredTexts", "read_row_features"]

SEGMENT, ARC = ("first", "last"), ("head", "child")

_PREFIXES = {SEGMENT: "S", ARC: "A"}
_VALUE, _WHOLE, _SIZE, _BETWEEN, _DIRECTION = range(5)


class _Compiled(NamedTuple):
    """Pieces of fixed text, and macros between them: text, kind, anchor, offset, column."""

    pieces: list[str]
    macros: NDArray[np.int32]


@dataclass(frozen=True)
class AnchoredTexts:
    """Texts that make attributes of rows with two anchors, from columns of tokens near them.

    ==================  ==============================================================================================
    ``%x[first]``       column 0 of the token at an anchor; ``%x[last+1,2]`` is column 2 of the token behind the other
    ``%x[all]``         all tokens from the first to the last, with blanks between; ``%x[all,1]`` of column 1
    ``%n``              the number of tokens; of arcs direction and distance: L1 to L4, L5-9, L10+, R1 to R10+
    ``%d``              of arcs the direction alone, L or R
    ``%b[1]``           the distinct values of column 1 strictly between the anchors, an attribute for each
    ==================  ==============================================================================================

    Arcs have anchors ``head`` and ``child`` in place of ``first`` and ``last``, and no ``%x[all]``. What is before a
    sentence is ``_B``, what is behind it ``_E``, and the root of arcs ``_ROOT``, with any offset. Attributes of the
    text at place 2 begin with ``S2:``, those of arcs with ``A2:``.

    Parameters
    ----------
    texts : tuple of str
        One for each kind of attribute.
    names : tuple of str, default=("first", "last")
        What the anchors are called, these or ("head", "child").
    argument : str, default="texts"
        What errors call the texts.

    Examples
    --------
    >>> from dualfield.data.anchored_texts import AnchoredTexts
    >>> AnchoredTexts(("%x[first]/%x[last+1,1]",)).columns
    [0, 1]
    >>> AnchoredTexts(("%x[head]",))
    Traceback (most recent call last):
    ...
    ValueError: texts must be texts with macros %x[first], %x[last], %x[first-1,column], %x[last+1,column], %x[all], \
%x[all,column], %n and %b[column]. Got '%x[head]' instead.
    """

    texts: tuple[str, ...]
    names: tuple[str, str] = SEGMENT
    argument: str = "texts"
    _compiled: _Compiled = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_compiled", self._read())

    @property
    def are_arcs(self) -> bool:
        """Whether the anchors are head and child."""
        return self.names == ARC

    @property
    def prefixes(self) -> list[str]:
        """How the attributes of each text begin."""
        return [f"{_PREFIXES[self.names]}{place}:" for place in range(len(self.texts))]

    @property
    def columns(self) -> list[int]:
        """The columns of tokens that macros name, ascending."""
        return sorted({int(column) for column in self._compiled.macros[:, 4] if column >= 0})

    @property
    def pieces(self) -> list[str]:
        """What stands before, between and behind the macros of each text, one text after another."""
        return self._compiled.pieces

    @property
    def macros(self) -> NDArray[np.int32]:
        """Text, kind, anchor, offset and column of each macro; -1 for no column."""
        return self._compiled.macros

    def _read(self) -> _Compiled:
        one, two = self.names
        whole = "" if self.are_arcs else "|all"
        macro = re.compile(
            rf"%x\[(?P<anchor>{one}|{two}{whole})(?P<offset>[+-][0-9]{{1,4}})?(?:,(?P<column>[0-9]{{1,4}}))?\]"
            rf"|%n|%b\[(?P<between>[0-9]{{1,4}})\]{'|%d' if self.are_arcs else ''}"
        )
        pieces: list[str] = []
        macros: list[tuple[int, int, int, int, int]] = []
        for place, (text, prefix) in enumerate(zip(self.texts, self.prefixes, strict=True)):
            at, n_sets = 0, 0
            for found in macro.finditer(text) if isinstance(text, str) else ():
                pieces.append(prefix + text[at : found.start()])
                at, prefix = found.end(), ""
                macros.append((place, *self._macro(text, found)))
                n_sets += macros[-1][1] == _BETWEEN
            if not isinstance(text, str) or "%" in macro.sub("", text):
                raise self._refused(text)
            if n_sets > 1:
                raise ValueError(f"{self.argument} must have at most one %b each. Got {text!r} instead.")
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise ValueError(f"{self.argument} has a lone surrogate, which UTF-8 cannot express: {text!r}.")
            pieces.append(prefix + text[at:])
        return _Compiled(pieces, np.array(macros, dtype=np.int32).reshape(-1, 5))

    def _macro(self, text: str, found: re.Match[str]) -> tuple[int, int, int, int]:
        if found[0] in ("%n", "%d"):
            return (_SIZE if found[0] == "%n" else _DIRECTION), 0, 0, -1
        if found["between"] is not None:
            return _BETWEEN, 0, 0, int(found["between"])
        column = int(found["column"] or 0)
        if found["anchor"] == "all":
            if found["offset"] is not None:
                raise self._refused(text)
            return _WHOLE, 0, 0, column
        return _VALUE, self.names.index(found["anchor"]), int(found["offset"] or 0), column

    def _refused(self, text: Any) -> ValueError:
        one, two = self.names
        macros = [f"%x[{one}]", f"%x[{two}]", f"%x[{one}-1,column]", f"%x[{two}+1,column]"]
        macros += ["%d"] if self.are_arcs else ["%x[all]", "%x[all,column]"]
        return ValueError(
            f"{self.argument} must be texts with macros {', '.join(macros)}, %n and %b[column]. Got {text!r} instead."
        )


@dataclass(frozen=True)
class RowFunction:
    """A user's function that makes features of rows with two anchors; what is wrong with them names the argument.

    Parameters
    ----------
    function : callable
        Of a sequence and two places.
    argument : str
        What errors call it.

    Examples
    --------
    >>> from dualfield.data.anchored_texts import RowFunction
    >>> RowFunction(lambda sentence, start, stop: stop - start, "features")(["New", "York"], 0, 2)
    Traceback (most recent call last):
    ...
    TypeError: features must return a dict, or a list, tuple or set of attribute strings, or a row of numbers. Got 2 \
for the places 0 and 2 of ['New', 'York'].
    """

    function: Callable[[Any, int, int], Any]
    argument: str

    def __call__(self, sequence: Any, one: int, two: int) -> Any:
        """Return the features of the row between two places."""
        found = self.function(sequence, one, two)
        if isinstance(found, (str, bytes)) or not isinstance(found, Collection):
            raise TypeError(
                f"{self.argument} must return a dict, or a list, tuple or set of attribute strings, or a row of "
                f"numbers. Got {found!r:.50} for the places {one} and {two} of {sequence!r:.100}."
            )
        return found

    def returned_for(self, name: str) -> str:
        """Return what errors call the features of rows of sequences that they call `name`."""
        return f"What {self.argument[:1].lower() + self.argument[1:]} returns for {name}"


def read_row_features(
    features: Any, names: tuple[str, str] = SEGMENT, argument: str = "features"
) -> AnchoredTexts | RowFunction | None:
    """Read what makes features of rows with two anchors.

    Parameters
    ----------
    features : list of str, str, AnchoredTexts, callable or None
        Texts with macros, or a function of a sequence and two places.
    names : tuple of str, default=("first", "last")
        What the anchors are called, these or ("head", "child").
    argument : str, default="features"
        What errors call the features.

    Returns
    -------
    AnchoredTexts, RowFunction or None
        Texts that have been checked, a function whose features are, or None as it is.

    Examples
    --------
    >>> from dualfield.data.anchored_texts import read_row_features
    >>> read_row_features("%x[head]/%x[child]", ("head", "child")).texts
    ('%x[head]/%x[child]',)
    """
    if features is None or isinstance(features, (AnchoredTexts, RowFunction)):
        return features
    if callable(features):
        return RowFunction(features, argument)
    texts = [features] if isinstance(features, str) else features
    if not isinstance(texts, (list, tuple)) or not texts:
        what = "head, child" if names == ARC else "start, stop"
        raise ValueError(
            f"{argument} must be a function of (sequence, {what}), or a list of texts. Got {features!r} instead."
        )
    return AnchoredTexts(tuple(texts), names, argument)
