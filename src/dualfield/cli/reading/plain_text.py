"""Tokens of plain text, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Words, numbers, and runs of one mark. Apostrophes and hyphens inside words belong to them, as points, commas and
# colons between digits do; so do combining accents.
_LETTERS = r"[\w\u0300-\u036f]+"
_TOKEN = re.compile(rf"{_LETTERS}(?:['’-]{_LETTERS}|(?<=\d)[.,:](?=\d){_LETTERS})*|([^\w\s])\1*")


def tokens_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the tokens of a line: each with the places of its first character, and of the one behind its last."""
    for found in _TOKEN.finditer(text):
        yield found[0], found.start(), found.end()
