"""Trees in brackets: how they are recognised, cleaned and cut into tokens and trees, and which line a word is in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualfield.data import ParseTree
    from dualfield.io.text_lines import Source

TREES = {"trees": "trees in brackets"}

# Brackets that open, then a leaf: (S (NP (DT a), or a sentence without a parse.
_TREE = re.compile(r"\s*(?:\(\s*(?:[^\s()]+\s*)?)+\([^\s()]+\s+[^\s()]+\s*\)|\s*\(\s*\(\s*\)\s*\)")


def is_trees(begin: str) -> bool:
    """Tell by the beginning of a text whether it has trees."""
    return bool(_TREE.match(begin.removeprefix("\ufeff")))


def clean_trees(source: Source) -> Iterator[tuple[int, ParseTree]]:
    """Yield the trees of a file, cleaned, with the lines where they begin; those without words are left out."""
    from dualfield.data import clean_tree
    from dualfield.io.bracket_files import iter_trees

    for number, tree in iter_trees(source):
        cleaned = None if tree is None else clean_tree(tree)
        if cleaned is not None:
            yield number, cleaned


def tokens_of(tree: ParseTree, columns: tuple[int, ...]) -> list[Any]:
    """Return words with tags, or words alone."""
    return tree.words() if columns == (0,) else tree.tokens()


def tree_columns(columns: tuple[int, ...] | None, name: str = "--columns") -> tuple[int, ...]:
    """Return the columns of words and tags to read, or raise an error."""
    if columns not in (None, (0,), (0, 1)):
        raise ValueError(f"{name} must be 0, words alone, or 0,1, words and tags. Trees have no other columns.")
    return columns or (0, 1)


def word_lines(source: Source) -> Iterator[int]:
    """Yield the line where its tree begins for each word."""
    for number, tree in clean_trees(source):
        yield from [number] * len(tree.words())


def tell_unparsed(reasons: Mapping[str, str]) -> None:
    """Say where sentences are that have no tree, and why."""
    from dualfield.cli.program import warn

    for place, reason in reasons.items():
        warn(f"{place}: the sentence has no tree: {reason}")


def tree_labels(trees: list[ParseTree]) -> list[list[str]]:
    """Return the labels of each tree, unary chains as one."""
    from dualfield.data.parse_trees.tree_cleaning import joined_constituents

    return [[label for label, _, _ in joined_constituents(tree)] for tree in trees]
