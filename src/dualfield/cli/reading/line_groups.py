"""Lines of text as they come in, in groups that can be worked on before the rest is there."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dualfield.cli.reading.sources import decoded, shown, standard_input

Numbered = list[tuple[int, str]]

_BLOCK = 1 << 16  # bytes: what a pipe holds, some hundred sentences


@contextmanager
def opened_as_it_comes(path: str) -> Iterator[Any]:
    """Open a file, or standard input, compressed or not, so that ``read1`` gives what is there."""
    from dualfield.io.text_lines import LONGEST_MARK, is_gzip

    with contextlib.ExitStack() as stack:
        file: Any = standard_input() if path == "-" else stack.enter_context(Path(path).open("rb"))
        if not hasattr(file, "peek"):  # standard input that is no file
            file = io.BufferedReader(file)
        packed = is_gzip(file.peek(LONGEST_MARK), shown(path))
        yield stack.enter_context(gzip.open(file)) if packed else file


def line_groups(file: Any, name: str, *, by_sentence: bool, encoding: str = "utf-8") -> Iterator[Numbered]:
    """Yield numbered lines as soon as they have arrived; with by_sentence only up to a blank line.

    Memory is bounded by what a pipe holds and by the longest sentence.
    """
    waiting: Numbered = []
    rest, number = b"", 0
    while block := file.read1(_BLOCK):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            number += 1
            waiting.append((number, _decoded(line, number, name, encoding)))
        ends = [at for at, (_, text) in enumerate(waiting, start=1) if not by_sentence or not text.strip()]
        if ends:
            yield waiting[: ends[-1]]
            waiting = waiting[ends[-1] :]
    if rest:
        waiting.append((number + 1, _decoded(rest, number + 1, name, encoding)))
    if waiting:
        yield waiting


def _decoded(line: bytes, number: int, name: str, encoding: str) -> str:
    text = decoded(line, number, name, encoding).removesuffix("\r")
    return text.removeprefix("\ufeff") if number == 1 else text


@contextmanager
def counted_from(first: int, name: str) -> Iterator[None]:
    """Let errors of a reader, which got lines from the middle of a file, count from the beginning of the file."""
    try:
        yield
    except ValueError as error:
        place = re.match(r"lines, line (\d+): ", str(error))
        if place is None:
            raise
        raise ValueError(f"{name}, line {first + int(place[1]) - 1}: {str(error)[place.end() :]}") from error
