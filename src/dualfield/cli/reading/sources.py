"""Data from files and standard input: opened, decoded, and named in errors."""

from __future__ import annotations

import gzip
import io
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from dualfield.io.text_lines import Source


@dataclass(frozen=True)
class Kept:
    """What came through a pipe, kept so that it can be read twice; `name` is what errors call it."""

    content: bytes
    name: str

    def __iter__(self) -> Iterator[bytes]:
        return iter(io.BytesIO(self.content))


def opened(path: str, encoding: str = "utf-8") -> Source:
    """Return a source that can be read more than once, as UTF-8: the path of a regular file, or the content."""
    if encoding == "utf-8" and is_regular(path):
        return path
    content = standard_input().read() if path == "-" else Path(path).read_bytes()
    from dualfield.io.text_lines import is_gzip

    with placed(shown(path)):
        plain = gzip.decompress(content) if is_gzip(content, shown(path)) else content
        if encoding != "utf-8":
            lines = enumerate(plain.split(b"\n"), start=1)
            plain = "\n".join(decoded(line, number, shown(path), encoding) for number, line in lines).encode()
    return cast("Source", Kept(plain, shown(path)))


def is_regular(path: str) -> bool:
    """Tell whether a path leads to a file that can be read twice, and not to a pipe."""
    return path != "-" and stat.S_ISREG(Path(path).stat().st_mode)


def decoded(line: bytes, number: int, name: str, encoding: str) -> str:
    """Return a line as text; where this fails, the error names the place."""
    from dualfield.io.text_lines import undecodable

    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}, line {number}: {undecodable(error, encoding)}") from error


def standard_input() -> Any:
    """Return standard input as a binary file; where it cannot be read, the error names it."""
    file: Any = sys.stdin.buffer
    try:
        if hasattr(file, "peek"):  # a stand-in may have none
            file.peek(1)
    except OSError as error:
        raise click.ClickException(f"<stdin>: {error.strerror or error}.") from error
    return file


def shown(path: str) -> str:
    """Return what messages call a file."""
    return "<stdin>" if path == "-" else path


@contextmanager
def placed(name: str) -> Iterator[None]:
    """Turn errors of the readers into one line that begins with file and line, as compilers write them."""
    try:
        yield
    except (ValueError, gzip.BadGzipFile, EOFError) as error:
        text = " ".join(str(error).split())
        if isinstance(error.__cause__, UnicodeDecodeError):
            text += " Name its encoding, such as --encoding latin-1."
        place = re.match(rf"{re.escape(name)}, (?:after )?line (\d+): ", text)
        if place:
            raise click.ClickException(f"{name}:{place[1]}: {text[place.end() :]}") from error
        raise click.ClickException(text if name in text else f"{name}: {text}") from error


def numbered(source: Source) -> Iterator[tuple[int, str]]:
    """Yield numbers and lines of a source from its beginning."""
    from dualfield.io.text_lines import numbered_lines

    return numbered_lines(source)
