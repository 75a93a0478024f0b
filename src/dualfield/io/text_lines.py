"""Lines of text from any source, each with its number, and atomic writes of lines."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, BinaryIO

from dualfield.io.atomic import atomic_write

Source = str | os.PathLike[str] | IO[str] | IO[bytes] | Iterable[str]
Target = str | os.PathLike[str] | IO[str]

_GZIP_MARK = b"\x1f\x8b"
_OTHER_MARKS = {
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"PK\x03\x04": "zip",
    **{b"BZh%d1AY&SY" % level: "bzip2" for level in range(1, 10)},
}
LONGEST_MARK = max(map(len, _OTHER_MARKS))
_BYTE_ORDER_MARK = "\ufeff"


def source_name(source: object) -> str:
    """Return what errors call a source: the path, the name of the open file, or "lines"."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "lines"


def is_gzip(begin: bytes, name: str) -> bool:
    """Tell by its first `LONGEST_MARK` bytes whether a file is compressed by gzip; refuse other compressions."""
    for mark, kind in _OTHER_MARKS.items():
        if begin.startswith(mark):
            raise ValueError(f"{name}: is compressed with {kind}; expected plain text, or gzip.")
    return begin.startswith(_GZIP_MARK)


def numbered_lines(source: Source, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield each line with its number, from 1, and without its line break.

    Only a line feed, or carriage return and line feed, end a line: what else Unicode counts as line breaks occurs
    inside words. A carriage return alone, as old Macs end lines with, is refused: lines would be taken for one.
    Files are read as bytes and decoded line by line, so that an error names the line.
    """
    name = source_name(source)
    number = 0
    try:
        for line in _opened(source):
            number += 1
            text = line.decode(encoding) if isinstance(line, bytes) else line
            if not isinstance(text, str):
                raise TypeError(f"{name}, line {number}: must be a str. Got {type(line).__name__} instead.")
            if number == 1:
                text = text.removeprefix(_BYTE_ORDER_MARK)
            text = text.removesuffix("\n").removesuffix("\r")
            if "\r" in text:
                raise ValueError(
                    f"{name}, line {number}: has a carriage return without a line feed. "
                    f"Convert line ends to line feeds."
                )
            yield number, text
    except UnicodeDecodeError as error:
        if number and isinstance(line, bytes):
            raise ValueError(f"{name}, line {number}: {undecodable(error, encoding)}") from error
        # A file that somebody opened as text decodes ahead of the line it gives.
        raise ValueError(f"{name}, after line {number}: cannot be read as {encoding}: {error}.") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{name}, after line {number}: the compressed file is damaged or cut off: {error}") from error


def undecodable(error: UnicodeDecodeError, encoding: str) -> str:
    """Say which byte of a line cannot be decoded; bytes are counted from 1, as lines are."""
    return f"cannot be read as {encoding}: byte {error.start + 1} of the line is 0x{error.object[error.start]:02x}."


def _opened(source: Source) -> Iterator[str | bytes]:
    if not isinstance(source, str | os.PathLike):
        # Not `yield from`, which would close a file of the caller together with this generator.
        for line in source:  # noqa: UP028
            yield line
        return
    with Path(source).open("rb") as file:
        if is_gzip(file.peek(LONGEST_MARK), os.fspath(source)):
            with gzip.open(file) as lines:
                yield from lines
        else:
            yield from file


def write_lines(target: Target, lines: Iterable[str]) -> None:
    """Write lines, which have no line break yet, as UTF-8.

    A path is written atomically: if a line cannot be made or written, the old file is unchanged. A
    name that ends in ``.gz`` is compressed. Devices and pipes, such as /dev/stderr, are written to as they are.
    """
    lines = _without_mark(lines)
    if not isinstance(target, str | os.PathLike):
        target.writelines(line + "\n" for line in lines)
        return
    is_stream = Path(target).exists() and not (Path(target).is_file() or Path(target).is_dir())
    with Path(target).open("wb") if is_stream else atomic_write(target) as file:
        if Path(target).suffix == ".gz":
            # Without time and name the same lines give the same file.
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed:
                _write_bytes(compressed, lines)
        else:
            _write_bytes(file, lines)


def _without_mark(lines: Iterable[str]) -> Iterator[str]:
    """Refuse a first line that begins with a byte order mark: a reader would take it off."""
    for number, line in enumerate(lines):
        if number == 0 and line.startswith(_BYTE_ORDER_MARK):
            raise ValueError(
                f"The first line begins with U+FEFF, which is read as a byte order mark and lost. Got {line[:50]!r}."
            )
        yield line


def _write_bytes(file: BinaryIO | gzip.GzipFile, lines: Iterable[str]) -> None:
    for number, line in enumerate(lines, start=1):
        try:
            file.write(line.encode() + b"\n")
        except UnicodeEncodeError as error:
            raise ValueError(f"Line {number} cannot be written as UTF-8: {error}.") from error
