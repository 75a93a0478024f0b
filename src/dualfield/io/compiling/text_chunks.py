"""Text in chunks that end between sentences: files that are larger than memory, compressed or not."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from dualfield.io.text_lines import LONGEST_MARK, is_gzip, undecodable

CHUNK = 1 << 24  # bytes of text that are worked on at a time

_MARK = b"\xef\xbb\xbf"  # of the byte order, in UTF-8
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")


class Chunk(NamedTuple):
    """A part of a file of text.

    Attributes
    ----------
    file, number : int
        Which file, and which chunk of it.
    first_line : int
        The number of its first line.
    text : bytes
        Whole sentences, in UTF-8, with line feeds only.
    done : int
        Bytes of the file that have been read, compressed as it may be.
    """

    file: int
    number: int
    first_line: int
    text: bytes
    done: int


def text_chunks(file: int, path: str, encoding: str = "utf-8", size: int = CHUNK) -> Iterator[Chunk]:
    """Yield a file in chunks of about `size` bytes.

    Raises a ValueError that names file and line if the text cannot be decoded, has a carriage return by itself, or
    its compression is damaged.
    """
    number, line, rest = 0, 1, b""
    with Path(path).open("rb") as raw:
        packed = is_gzip(raw.peek(LONGEST_MARK), path)
        source: IO[bytes] = gzip.open(raw) if packed else raw  # type: ignore[assignment]  # noqa: SIM115
        while True:
            try:
                block = source.read(size)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                at = line + rest.count(b"\n")
                reason = f"the compressed file is damaged or cut off: {error}"
                raise ValueError(f"{path}, after line {at - 1}: {reason}") from error
            whole = rest + block
            cut = len(whole) if not block else _last_boundary(whole)
            if cut:
                text = _as_utf8(whole[:cut], path, line, encoding, is_last=not block)
                yield Chunk(file, number, line, text, raw.tell())
                number, line, rest = number + 1, line + whole.count(b"\n", 0, cut), whole[cut:]
            else:
                rest = whole
            if not block:
                return


def _last_boundary(text: bytes) -> int:
    """Return where the last blank line begins, behind the line before it; 0 if there is none."""
    at = max(text.rfind(b"\n\n"), text.rfind(b"\n\r\n"))
    if at < 0:
        at = max((found.start() for found in _BLANK_LINE.finditer(text)), default=-1)
    return at + 1


def _as_utf8(text: bytes, path: str, line: int, encoding: str, *, is_last: bool) -> bytes:
    """Return text as UTF-8 with line feeds only."""
    if encoding == "utf-8":
        if not text.isascii():
            _decoded(text, path, line, encoding)
    else:
        text = _decoded(text, path, line, encoding).encode()
    if line == 1:
        text = text.removeprefix(_MARK)
    if b"\r" not in text:
        return text
    text = (text.removesuffix(b"\r") if is_last else text).replace(b"\r\n", b"\n")
    at = text.find(b"\r")
    if at >= 0:
        raise ValueError(
            f"{path}, line {line + text.count(bytes([10]), 0, at)}: has a carriage return without a line feed. "
            "Convert line ends to line feeds."
        )
    return text


def _decoded(text: bytes, path: str, line: int, encoding: str) -> str:
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        for number, one in enumerate(text.split(b"\n"), start=line):
            try:
                one.decode(encoding)
            except UnicodeDecodeError as fault:
                raise ValueError(f"{path}, line {number}: {undecodable(fault, encoding)}") from fault
        raise ValueError(f"{path}, line {line}: cannot be read as {encoding}: {error}.") from error
