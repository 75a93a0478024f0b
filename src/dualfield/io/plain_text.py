"""Tokens of plain text, with their places."""

from __future__ import annotations

import re

__all__ = ["split_tokens"]

Token = tuple[str, int, int]

# Words, numbers, and runs of one mark. Apostrophes and hyphens inside words belong to them, as points, commas and
# colons between digits do; so do combining accents.
_LETTERS = r"[\w\u0300-\u036f]+"
_TOKEN = re.compile(rf"{_LETTERS}(?:['’-]{_LETTERS}|(?<=\d)[.,:](?=\d){_LETTERS})*|([^\w\s])\1*")


def split_tokens(text: str) -> list[Token]:
    """Split text into words, numbers and punctuation marks.

    Apostrophes and hyphens inside words belong to them, as points, commas and colons between digits do.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    list of (token, start, end)
        Each token with the places of its first character, and of the one behind its last.

    Examples
    --------
    >>> from dualfield.io import split_tokens
    >>> split_tokens("It's 9:30...")
    [("It's", 0, 4), ('9:30', 5, 9), ('...', 9, 12)]
    """
    return [(found[0], found.start(), found.end()) for found in _TOKEN.finditer(text)]
