"""CoNLL-U: sentences with dependency trees, ten columns a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from dualfield.data.parse_trees.dependency_sentence import HEAD, ID, N_COLUMNS, DependencySentence
from dualfield.io.text_lines import Source, Target, numbered_lines, source_name, write_lines

__all__ = ["iter_conllu", "read_conllu", "write_conllu"]

_NUMBER = re.compile(r"[0-9]{1,9}")
_RANGE, _EMPTY_NODE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})"), re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


def read_conllu(source: Source) -> list[DependencySentence]:
    """Read sentences of CoNLL-U.

    Each line is a word with ten columns between tabs; blank lines separate sentences. Lines of ranges of words, such as
    ``2-4``, of empty nodes, such as ``5.1``, and comments are kept with their sentence.

    Parameters
    ----------
    source : path, open file, or iterable of str
        A path may lead to a gzip file.

    Returns
    -------
    list of DependencySentence
        The sentences. They are examples of X and y of a :class:`~dualfield.structures.Dependency`.

    Raises
    ------
    ValueError
        If a line does not have ten columns, words are not numbered 1, 2, 3, ..., or a head is not one of them. The
        message names file and line.

    See Also
    --------
    iter_conllu : One sentence at a time.
    write_conllu : The way back.

    Examples
    --------
    >>> from dualfield.io import read_conllu
    >>> words = ["1 Stop stop VERB VB _ 0 root _ _", "2 it it PRON PRP _ 1 obj _ _"]
    >>> tab = chr(9)
    >>> sentence, = read_conllu(["# text = Stop it", *(tab.join(line.split()) for line in words)])
    >>> sentence.heads, sentence.labels, sentence.comments
    ([0, 1], ['root', 'obj'], ('# text = Stop it',))
    """
    return list(iter_conllu(source))


def iter_conllu(source: Source) -> Iterator[DependencySentence]:
    """Read sentences of CoNLL-U, one at a time: for files that should not be in memory as a whole.

    Parameters
    ----------
    source : path, open file, or iterable of str
        As for :func:`read_conllu`. A path is opened at the first sentence and closed after the last.

    Returns
    -------
    iterator over DependencySentence
        The sentences.

    Examples
    --------
    >>> from dualfield.io import iter_conllu
    >>> tab = chr(9)
    >>> [len(sentence) for sentence in iter_conllu([tab.join(["1", "Go", *"________"]), ""])]
    [1]
    """
    name = source_name(source)
    comments: list[str] = []
    rows: list[tuple[str, ...]] = []
    numbers: list[int] = []
    number = 0
    for number, line in numbered_lines(source):
        if not line.strip():
            if rows or comments:
                yield _finished(rows, comments, numbers, f"{name}, line {number}")
                rows, comments, numbers = [], [], []
        elif line.startswith("#"):
            if rows:
                raise ValueError(f"{name}, line {number}: comments must be before the words of a sentence.")
            comments.append(line)
        else:
            rows.append(_row(line, rows, f"{name}, line {number}"))
            numbers.append(number)
    if rows or comments:
        yield _finished(rows, comments, numbers, f"{name}, line {number}")


def _row(line: str, before: list[tuple[str, ...]], place: str) -> tuple[str, ...]:
    """Read a line, and check its number against those before it."""
    row = tuple(line.split("\t"))
    if len(row) != N_COLUMNS:
        raise ValueError(f"{place}: must have {N_COLUMNS} columns with tabs between. Got {len(row)} instead.")
    if "" in row:
        raise ValueError(f"{place}: column {row.index('') + 1} is empty. An underscore stands for nothing.")
    last = next((int(one[ID]) for one in reversed(before) if one[ID].isdecimal()), 0)
    several, empty = _RANGE.fullmatch(row[ID]), _EMPTY_NODE.fullmatch(row[ID])
    if several is not None:
        fits = int(several[1]) == last + 1 and int(several[2]) > last
    elif empty is not None:
        fits = int(empty[1]) == last
    else:
        fits = _NUMBER.fullmatch(row[ID]) is not None and int(row[ID]) == last + 1
    if not fits:
        raise ValueError(f"{place}: the number of the word must be {last + 1}. Got {row[ID]!r} instead.")
    return row


def _finished(rows: list[tuple[str, ...]], comments: list[str], numbers: list[int], place: str) -> DependencySentence:
    sentence = DependencySentence(tuple(rows), tuple(comments))
    n, name = len(sentence), place.rpartition(", ")[0]
    if not n:
        raise ValueError(f"{place}: the sentence that ends here has no words.")
    for row, number in zip(rows, numbers, strict=True):
        head = row[HEAD]
        if row[ID].isdecimal() and head != "_" and not (_NUMBER.fullmatch(head) and int(head) <= n):
            raise ValueError(f"{name}, line {number}: the head must be in [0, {n}], or an underscore. Got {head!r}.")
        if row[ID].isdecimal() and head != "_" and int(head) == int(row[ID]):
            raise ValueError(f"{name}, line {number}: word {head} is its own head.")
    return sentence


def write_conllu(sentences: Iterable[DependencySentence], target: Target) -> None:
    """Write sentences as CoNLL-U, with all their lines and comments.

    Parameters
    ----------
    sentences : iterable of DependencySentence
        Such as :func:`read_conllu` returns, or predictions for them.
    target : path or open text file
        A path is written atomically; one that ends in ``.gz`` gets a gzip file.

    Raises
    ------
    ValueError
        If a line could not be read back.

    Examples
    --------
    >>> import io
    >>> from dualfield.data import DependencySentence
    >>> from dualfield.io import write_conllu
    >>> file = io.StringIO()
    >>> write_conllu([DependencySentence.from_tokens([("Stop", "VERB")], [0], ["root"])], file)
    >>> file.getvalue().split()
    ['1', 'Stop', '_', 'VERB', '_', '_', '0', 'root', '_', '_']
    """
    write_lines(target, _lines(sentences))


def _lines(sentences: Iterable[Any]) -> Iterator[str]:
    for i, sentence in enumerate(sentences):
        if not isinstance(sentence, DependencySentence):
            raise TypeError(f"sentences[{i}] must be a DependencySentence. Got {type(sentence).__name__} instead.")
        lines = [*sentence.comments, *("\t".join(row) for row in sentence.rows), ""]
        again = list(iter_conllu(lines))
        if again != [sentence]:
            raise ValueError(f"sentences[{i}] cannot be written as CoNLL-U: it would be read as another one.")
        yield from lines
