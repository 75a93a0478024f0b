"""JSON data: how it is recognised, and what options say about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli.program import tell
from dualfield.cli.reading.sources import numbered

if TYPE_CHECKING:
    from dualfield.io import AnnotatedText
    from dualfield.io.text_lines import Source

JSON_FORMATS = {"spans": "JSON with character spans", "tokens": "JSON with tokens and tags"}

_SAMPLE = 50  # lines that are looked at
_OBJECT = re.compile(r'\s*(?:\[\s*)?\{\s*"[^"\n]*"\s*:')
_TOKENS = re.compile(r'"tokens"\s*:\s*\[\s*["\]]')  # those of Prodigy are objects


@dataclass(frozen=True)
class JsonChoice:
    """What options and the model say about JSON data.

    Attributes
    ----------
    alignment : str
        The option --alignment: what becomes of spans that are not on the borders of tokens.
    label_names : sequence of str or None
        The option --label-names: what the tags 0, 1, ... are called.
    scheme : str
        How labels mark the spans.
    """

    alignment: str = "strict"
    label_names: Sequence[str] | None = None
    scheme: str = "BIO"


AS_IT_IS = JsonChoice()


def json_format(begin: str) -> str | None:
    """Tell by the beginning of a text which JSON data it is, if it is any."""
    if not _OBJECT.match(begin.removeprefix("\ufeff")):
        return None
    return "tokens" if _TOKENS.search(begin) else "spans"


def json_format_of(source: Source) -> str | None:
    """Tell by its first lines which JSON data a source has, if it has any."""
    return json_format("\n".join(text for _, text in islice(numbered(source), _SAMPLE)))


def read_json(source: Source, name: str, kind: str, choice: JsonChoice) -> tuple[list[Any], list[list[str]]]:
    """Return rows of one column, the token, and labels; texts without tokens are left out."""
    with in_options():
        if kind == "tokens":
            from dualfield.io import read_json_tokens

            tokens, labels = read_json_tokens(source, label_names=choice.label_names)
        else:
            texts = read_texts(source, name, choice)
            tokens = [[token for token, *_ in text.tokens] for text in texts]
            labels = [text.labels(choice.scheme) for text in texts]
    full = [at for at, one in enumerate(tokens) if one]
    return [[(token,) for token in tokens[at]] for at in full], [labels[at] for at in full]


def read_texts(source: Source, name: str, choice: JsonChoice, *, quiet: bool = False) -> list[AnnotatedText]:
    """Return texts with spans, and say how many were left out because annotators did not accept them."""
    from dualfield.io.json_records import iter_json_records
    from dualfield.io.json_spans import is_rejected, text_of_record

    found, n_rejected = [], 0
    with in_options():
        for number, record in iter_json_records(source):
            if is_rejected(record):
                n_rejected += 1
            else:
                found.append(text_of_record(record, f"{name}, line {number}", alignment=choice.alignment))
    if n_rejected and not quiet:
        n_texts = len(found) + n_rejected
        tell(f"{name}: {n_rejected} of {n_texts} texts are left out: their annotation was not accepted.")
    return found


def token_lines(source: Source, kind: str) -> Iterator[int]:
    """Yield the line of each token."""
    from dualfield.io.json_records import iter_json_records
    from dualfield.io.json_spans import is_rejected, text_of_record
    from dualfield.io.json_tokens import tokens_of_record

    for number, record in iter_json_records(source):
        if kind == "tokens":
            yield from [number] * len(tokens_of_record(record, ""))
        elif not is_rejected(record):
            yield from [number] * len(text_of_record(record, "", is_labelled=False).tokens)


def parse_label_names(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Take names with commas between them, or a file: JSON, or a name in each line."""
    if value is None:
        return None
    path = Path(value)
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else None
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{value}: {error}.", ctx, param) from error
    names = value.split(",") if text is None else _names_in(text) or text.split()
    names = [name.strip() for name in names]
    if not all(names) or len(set(names)) < len(names) or (text is None and len(names) < 2):
        raise click.BadParameter(
            f"{value!r} is not a list of names, such as O,B-PER,I-PER, nor a file that has one.", ctx, param
        )
    return names


def _names_in(text: str) -> list[str] | None:
    """Return the names that a JSON file has: a list, or what Hugging Face calls dataset_info.json."""
    from dualfield.io.json_records import decoded
    from dualfield.io.json_tokens import names_in

    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found = decoded(text, "")
    except ValueError:
        return None
    if isinstance(found, list) and all(isinstance(name, str) for name in found):
        return found
    return names_in(found)


@contextmanager
def in_options() -> Iterator[None]:
    """Let errors name options of the command line."""
    try:
        yield
    except ValueError as error:
        text = str(error).replace("by alignment='expand'", "by --alignment expand")
        raise ValueError(text.replace("by label_names", "by --label-names")) from error
