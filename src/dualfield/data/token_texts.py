"""What to write at a node: the word that it stands for, found among its attributes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

# Names of attributes that hold the word itself, the best first.
_WORDS = ("word", "token", "form", "text", "surface", "w", "word[0]", "w[0]", "word.form", "word.lower()", "word.lower")
_NEIGHBOUR = re.compile(r"[+-]\d|\[[+-]?[1-9]|prev|next|\|")  # of another token, or of several
_MARKS = ("bias", "BOS", "EOS", "__BOS__", "__EOS__")
_NAMED = re.compile(r"([^=:\s]+)[=:](.+)", re.DOTALL)


def token_texts(xseq: Any, length: int) -> list[str]:
    """Return what to write at each node of a sequence: its word where that can be told, or else its number.

    Of a dict, or of attributes such as ``"w[0]=Rex"``, it is the value of the one that is called word, token, form,
    text or the like; of a row of columns the first one.

    Parameters
    ----------
    xseq : sequence of items
        One sequence, in a form that models take.
    length : int
        Number of its nodes.

    Returns
    -------
    list of str
        One for each node; ``"token 3"`` where there is no word.

    Examples
    --------
    >>> from dualfield.data.token_texts import token_texts
    >>> token_texts([{"bias": 1.0, "word.lower()": "rex", "-1:word.lower()": "the"}, ["w[0]=barks", "bias"]], 2)
    ['rex', 'barks']
    >>> token_texts([{"bias": 1.0, "length": 3.0}], 1)
    ['token 0']
    >>> token_texts(({"word": [["the"], ["dog"]], "text": [[0.5, 1.0]]}, [(0, 2), (1, 2)]), 3)
    ['text', 'word the', 'word dog']
    """
    if _has_types(xseq):
        return [f"{kind} {_text(item)}".rstrip() for kind in sorted(xseq[0], key=str) for item in xseq[0][kind]]
    if _has_edges(xseq):
        xseq = xseq[0]
    if not isinstance(xseq, Sequence) or isinstance(xseq, str) or len(xseq) != length:
        return [f"token {at}" for at in range(length)]
    return [_text(item) or f"token {at}" for at, item in enumerate(xseq)]


def _has_types(xseq: Any) -> bool:
    """Return whether an example is a graph with nodes by type: a dict of lists or arrays, and edges."""
    return (
        isinstance(xseq, tuple)
        and len(xseq) in (2, 3, 4)
        and isinstance(xseq[0], dict)
        and all(isinstance(items, (list, tuple)) or np.ndim(items) == 2 for items in xseq[0].values())
    )


def _has_edges(xseq: Any) -> bool:
    """Return whether an example is a tree or graph: a tuple of nodes and the numbers of nodes that they depend on."""
    if not isinstance(xseq, tuple) or len(xseq) not in (2, 3) or isinstance(xseq[0], (str, dict)):
        return False
    return not isinstance(xseq[1], (str, dict)) and not any(isinstance(one, (str, dict)) for one in xseq[1])


def _text(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        return _word({str(name): value for name, value in item.items() if isinstance(value, str)})
    if not isinstance(item, (list, tuple)) or not item or not all(isinstance(one, str) for one in item):
        return ""
    named = {match[1]: match[2] for one in item if (match := _NAMED.fullmatch(one))}
    plain = [one for one in item if one not in _MARKS and not _NAMED.fullmatch(one)]
    return _word(named, plain[0] if plain else "")


def _word(values: dict[str, str], otherwise: str = "") -> str:
    """Return the value whose name says that it is the word; if there is none, the only value."""
    own = {name: value for name, value in values.items() if not _NEIGHBOUR.search(name)}
    by_name = {name.lower(): value for name, value in own.items()}
    for name in _WORDS:
        if by_name.get(name):
            return by_name[name]
    return otherwise or (next(iter(own.values())) if len(own) == 1 else "")
