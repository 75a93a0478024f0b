"""Dependency trees: CoNLL-U, or columns whose last one is the head; and which line a word is in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from dualfield.cli.reading.sources import numbered

if TYPE_CHECKING:
    from dualfield.data import DependencySentence
    from dualfield.io import FileColumns
    from dualfield.io.text_lines import Source

CONLLU = {"conllu": "dependency trees"}

_WORD = re.compile(r"1(?:-\d+)?\t(?:[^\t]*\t){8}[^\t]*")
_MOST = 5  # columns of tokens: form, two tags, lemma, features


def is_conllu(line: str) -> bool:
    """Tell by the first line of a sentence, or a comment before it, whether it is CoNLL-U."""
    return line.startswith("#") or _WORD.fullmatch(line) is not None


def is_conllu_source(source: Source) -> bool:
    """Tell by the first lines whether a source is CoNLL-U."""
    lines = [line for _, line in islice(numbered(source), 200) if line.strip()]
    return bool(lines) and _WORD.fullmatch(next((line for line in lines if not line.startswith("#")), "")) is not None


def read_arc_data(
    source: Source, name: str, separator: str | None
) -> tuple[list[DependencySentence], FileColumns | None]:
    """Return sentences, and the columns if it is a file of columns; every word has a head."""
    from dualfield.io import FileColumns, read_conll, read_conllu

    if is_conllu_source(source):
        sentences = read_conllu(source)
        _check_heads([sentence.heads for sentence in sentences], source, name)
        return sentences, None
    rows = read_conll(source, separator=separator)
    if not rows:
        return [], None
    width = len(rows[0][0])
    if not 2 <= width <= _MOST + 1:
        raise ValueError(
            f"{name}, line {next(arc_lines(source))}: has {width} columns; expected CoNLL-U, or columns of tokens, at "
            f"most {_MOST}, and the head."
        )
    columns = FileColumns(width, tuple(range(width - 1)), width - 1)
    return [_sentence(sentence, source, name, rows, at) for at, sentence in enumerate(rows)], columns


def _sentence(
    rows: list[tuple[str, ...]], source: Source, name: str, every: list[list[tuple[str, ...]]], at: int
) -> DependencySentence:
    from dualfield.data import DependencySentence

    for word, row in enumerate(rows):
        if not (row[-1].isdecimal() and int(row[-1]) <= len(rows) and int(row[-1]) != word + 1):
            line = next(islice(arc_lines(source), sum(map(len, every[:at])) + word, None))
            raise ValueError(
                f"{name}, line {line}: the last column must be the head, another word in [0, {len(rows)}]. Got "
                f"{row[-1]!r}."
            )
    return DependencySentence.from_tokens([row[:-1] for row in rows], [int(row[-1]) for row in rows])


def _check_heads(heads: list[list[int | None]], source: Source, name: str) -> None:
    """Raise an error unless there is a head for each word of some sentence: otherwise nothing can be learnt."""
    if heads and all(head is None for one in heads for head in one):
        raise ValueError(f"{name}, line {next(arc_lines(source))}: no word of the file has a head.")


def arc_lines(source: Source) -> Iterator[int]:
    """Yield the line of each word."""
    is_tree = is_conllu_source(source)
    for number, line in numbered(source):
        if not line.strip():
            continue
        if not is_tree or line.partition("\t")[0].isdecimal():
            yield number


@contextmanager
def naming_sentences(place: Callable[[int], str]) -> Iterator[None]:
    """Let errors about one of many trees name its line, and options of the command line."""
    try:
        yield
    except ValueError as error:
        text = re.sub(r"Dependency\((\w+)='(\w+)'\)", lambda at: f"--{at[1].replace('_', '-')} {at[2]}", str(error))
        at = re.search(r"y\[(\d+)\]", text)
        raise ValueError(text if at is None else text.replace(at[0], place(int(at[1])))) from error
