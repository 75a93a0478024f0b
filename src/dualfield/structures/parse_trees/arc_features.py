"""The features that arcs of dependency trees have unless users say otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dualfield.data.anchored_texts import ARC, AnchoredTexts

ARGUMENT = "The 'arc_features' parameter of Dependency"

_STEPS = ("-1", "+1")
_UNKNOWN = "_"  # of CoNLL-U


def tag_column(sentences: Sequence[Sequence[Any]], n_columns: int) -> int:
    """Return the column of tags: the first one behind the words that says something.

    Parameters
    ----------
    sentences : sequence of sequences of tokens
        Tokens as str, or tuples of str.
    n_columns : int
        Columns of tokens.

    Returns
    -------
    int
        1, or a later column where those before are ``_``, unknown, for all tokens.

    Examples
    --------
    >>> from dualfield.structures.parse_trees.arc_features import tag_column
    >>> tag_column([[("She", "_", "PRP"), ("reads", "_", "VBZ")]], 3)
    2
    """
    columns = range(1, n_columns)
    return next((at for at in columns if any(token[at] != _UNKNOWN for one in sentences for token in one)), 1)


def default_arc_texts(n_columns: int, tags: int = 1) -> AnchoredTexts:
    """Return a first-order set for tokens with so many columns, words first, then tags.

    Words and tags of both ends alone and together, tags of their neighbours, each with the direction and with direction
    and distance; tags between the ends. Where tokens are words only, the neighbours are words.

    Parameters
    ----------
    n_columns : int
        Columns of tokens.
    tags : int, default=1
        The column of tags.

    Returns
    -------
    AnchoredTexts
        The texts.

    Examples
    --------
    >>> from dualfield.structures.parse_trees.arc_features import default_arc_texts
    >>> default_arc_texts(1).texts[:3]
    ('%n', '%x[head]/%d', '%x[head]/%n')
    """
    head, child = "%x[head]", "%x[child]"
    ends = [head, child, f"{head}/{child}"]
    column, between = "", []
    if n_columns > 1:
        column, word_head, word_child = f",{tags}", head, child
        head, child = f"%x[head,{tags}]", f"%x[child,{tags}]"
        ends += [head, child, f"{head}/{child}", f"{word_head}/{child}", f"{head}/{word_child}"]
        ends += [f"{head}/%x[head{a}{column}]/{child}/%x[child{b}{column}]" for a in _STEPS for b in _STEPS]
        between = [f"{head}/%b[{tags}]/{child}/%d"]
    ends += [f"{head}/{child}/%x[{one}{step}{column}]" for one in ("head", "child") for step in _STEPS]
    with_place = [f"{text}/{place}" for text in ends for place in ("%d", "%n")]
    return AnchoredTexts(("%n", *with_place, *between), ARC, ARGUMENT)
