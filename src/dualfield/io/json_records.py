"""Objects of a JSON file, each with its line: JSON Lines, one list, or an object that holds a list as its data."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from dualfield.io.text_lines import Source, numbered_lines, source_name

Record = dict[str, Any]

_BLANK = re.compile(r"[ \t\r\n]*")
_SHARED = ("label_names", "features")  # what an object with a list of data may say about all of them


def iter_json_records(source: Source, encoding: str = "utf-8") -> Iterator[tuple[int, Record]]:
    """Yield each object with the line where it begins; JSON Lines are read one at a time, other files as a whole.

    Raises
    ------
    ValueError
        If the file is not JSON, or has something else than objects. The message names file and line.
    """
    name = source_name(source)
    lines = ((number, text) for number, text in numbered_lines(source, encoding) if text.strip())
    first = next(lines, None)
    if first is None:
        return
    number, text = first
    if text.lstrip().startswith("["):
        yield from _listed(_whole(first, lines), number, name)
        return
    try:
        found = decoded(text, f"{name}, line {number}")
    except ValueError:
        rest = _whole(first, lines)
        if "\n" not in rest:
            raise
        # Not JSON Lines: one object on many lines. If it is neither, the error of the first line is the better one.
        try:
            found = json.loads(rest)
        except (ValueError, RecursionError):
            found = None
        if not _holds_data(found):
            raise
    if _holds_data(found):
        shared = {key: found[key] for key in _SHARED if key in found}
        yield from ((number, shared | _checked(one, f"{name}, line {number}")) for one in found["data"])
        return
    yield number, _checked(found, f"{name}, line {number}")
    for number, text in lines:
        place = f"{name}, line {number}"
        yield number, _checked(decoded(text, place), place)


def decoded(text: str, place: str) -> Any:
    """Return what JSON text says; the error names the place."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{place}: is not JSON: {error.msg} at character {error.colno}.") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: cannot be read as JSON: {error}.") from error


def checked_text(text: Any, what: str, place: str) -> str:
    """Return a str that can be written as UTF-8, or raise an error."""
    if not isinstance(text, str):
        raise ValueError(f"{place}: {what} must be a string. Got {shortened(text)} instead.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{place}: {what} has half of a surrogate pair at character {error.start}.") from error
    return text


def shortened(value: Any) -> str:
    """Return a value as messages show it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _whole(first: tuple[int, str], lines: Iterator[tuple[int, str]]) -> str:
    """Return all lines, blank ones included, so that lines can be counted."""
    text, at = [], first[0] - 1
    for number, line in itertools.chain([first], lines):
        text += [""] * (number - at - 1) + [line]
        at = number
    return "\n".join(text)


def _listed(text: str, first: int, name: str) -> Iterator[tuple[int, Record]]:
    """Yield the objects of a list, each with the line where it begins."""
    decoder, at, line, seen = json.JSONDecoder(), text.index("[") + 1, first, 0
    at = _behind_blanks(text, at)
    while text[at : at + 1] != "]":
        line, seen = line + text.count("\n", seen, at), at
        place = f"{name}, line {line}"
        try:
            found, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            where = f"{name}, line {first + error.lineno - 1}"
            raise ValueError(f"{where}: is not JSON: {error.msg} at character {error.colno}.") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{place}: cannot be read as JSON: {error}.") from error
        yield line, _checked(found, place)
        at = _behind_blanks(text, at)
        if text[at : at + 1] == ",":
            at = _behind_blanks(text, at + 1)
            if text[at : at + 1] == "]":
                raise ValueError(f"{_line_at(text, at, first, name)}: is not JSON: expected an object behind ','.")
        elif text[at : at + 1] != "]":
            raise ValueError(f"{_line_at(text, at, first, name)}: is not JSON: expected ',' or ']'.")
    at = _behind_blanks(text, at + 1)
    if at < len(text):
        raise ValueError(f"{_line_at(text, at, first, name)}: is not JSON: there is text behind the list.")


def _line_at(text: str, at: int, first: int, name: str) -> str:
    return f"{name}, line {first + text.count(chr(10), 0, at)}"


def _behind_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None  # the expression matches every string
    return found.end()


def _holds_data(found: Any) -> bool:
    return isinstance(found, dict) and isinstance(found.get("data"), list)


def _checked(found: Any, place: str) -> Record:
    if not isinstance(found, dict):
        raise ValueError(f"{place}: must be a JSON object. Got {shortened(found)} instead.")
    return found
