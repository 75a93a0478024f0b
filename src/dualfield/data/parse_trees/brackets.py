"""Trees in brackets: what a text of brackets says, line by line, and which names can be written in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

_TOKEN = re.compile(r"[()]|[^\s()]+")
_BLANK_OR_BRACKET = re.compile(r"[\s()]")


class _Opened(NamedTuple):
    """A bracket that is not closed yet; ``name`` holds its label once it is known."""

    line: int
    name: list[str]
    children: list[Any]  # trees, and words without a tag


class BracketReader:
    """Reads trees from numbered lines.

    Parameters
    ----------
    make : callable
        From a label, children and a word to a tree, as the constructor of ``ParseTree``.
    name : str
        What errors call the text.
    """

    def __init__(self, make: Callable[..., Any], name: str) -> None:
        self._make, self._name = make, name

    def trees(self, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, Any]]:
        """Yield each tree with the line where it begins; None for ``(())`` or ``()``, a sentence without a parse."""
        opened: list[_Opened] = []
        number = 0
        for number, line in lines:
            for token in _TOKEN.findall(line):
                if token == "(":
                    opened.append(_Opened(number, [], []))
                elif token != ")":
                    self._take(token, opened, number)
                elif not opened:
                    raise self._fault(number, "a bracket is closed that was not opened")
                else:
                    first = opened[0].line
                    tree = self._close(opened, number)
                    if not opened:
                        yield first, tree
        if opened:
            head = "(" + "".join(opened[0].name)
            raise self._fault(number, f"the bracket {head!r} that opens in line {opened[0].line} is not closed")

    def _take(self, token: str, opened: list[_Opened], number: int) -> None:
        """Take a label, which stands right behind its bracket, or a word."""
        if not opened:
            raise self._fault(number, f"{token!r:.60} stands outside of all brackets; expected a tree in brackets")
        last = opened[-1]
        if last.name or last.children:
            last.children.append(token)
        else:
            last.name.append(token)

    def _close(self, opened: list[_Opened], number: int) -> Any:
        line, name, children = opened.pop()
        label = "".join(name)
        if not label and len(opened) < 2 and children in ([], [None]) and not (opened and opened[-1].name):
            # A sentence without a parse. Within another bracket it must be all that is there.
            tree = None
        elif not children or None in children:
            raise self._fault(number, f"the bracket '({label}' that opens in line {line} has neither words nor parts")
        elif len(children) == 1 and isinstance(children[0], str):
            tree = self._make(label, (), children[0])
        else:
            tree = self._make(
                label, tuple(self._make("", (), one) if isinstance(one, str) else one for one in children)
            )
        if opened:
            opened[-1].children.append(tree)
        return tree

    def _fault(self, number: int, what: str) -> ValueError:
        return ValueError(f"{self._name}, line {number}: {what}.")


def nested(brackets: Iterable[Any], leaves: Sequence[Any], make: Callable[..., Any]) -> Any:
    """Put brackets (label, start, stop) around leaves: the outermost one, with children made by `make`.

    Of several brackets around the same leaves the first is the outer one. Raises an error where brackets cross, or
    none has all leaves.
    """
    n = len(leaves)
    ordered = sorted(brackets, key=lambda one: (one[1], -one[2]))
    for _, start, stop in ordered:
        if not 0 <= start < stop <= n:
            raise ValueError(f"The bracket ({start}, {stop}) must have a word, and lie within {n} words.")
    if not ordered or tuple(ordered[0][1:]) != (0, n):
        raise ValueError(f"No bracket has all {n} words.")
    opened: list[tuple[Any, list[Any]]] = []
    at, root = 0, None
    for word, leaf in enumerate(leaves):
        while at < len(ordered) and ordered[at][1] == word:
            if opened and ordered[at][2] > opened[-1][0][2]:
                one, two = (f"{label!r} ({start}, {stop})" for label, start, stop in (opened[-1][0], ordered[at]))
                raise ValueError(f"The brackets {one} and {two} cross.")
            opened.append((ordered[at], []))
            at += 1
        opened[-1][1].append(leaf)
        while opened and opened[-1][0][2] == word + 1:
            done, children = opened.pop()
            root = make(done[0], tuple(children))
            if opened:
                opened[-1][1].append(root)
    return root


def checked_name(label: str) -> str:
    """Return a label that can be written in brackets, or raise an error."""
    if _BLANK_OR_BRACKET.search(label):
        raise ValueError(f"The label {label!r} has blanks or round brackets, and cannot be written in brackets.")
    return label


def escaped_word(word: str) -> str:
    """Return a word as treebanks write it in brackets, or raise an error."""
    if not word or any(letter.isspace() for letter in word):
        raise ValueError(f"The word {word!r} is empty or has blanks, and cannot be written in brackets.")
    return word.replace("(", "-LRB-").replace(")", "-RRB-")
