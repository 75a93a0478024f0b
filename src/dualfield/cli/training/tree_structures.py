"""The structures for trees in brackets, by the names that ``--structure`` has for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from dualfield.cli.training.end import Options


def _spans(given: Options) -> Any:
    from dualfield.structures import Spans

    texts = list(given["span_features"])
    return Spans(span_features=texts) if texts else "spans"


def _grammar(given: Options) -> Any:
    from dualfield.structures import Grammar

    texts = list(given["span_features"]) or None
    if given["columns"] == (0,):
        return Grammar(tags="predicted", span_features=texts, word_features="default")
    return Grammar(span_features=texts)


STRUCTURES: dict[str, Callable[[Options], Any]] = {"spans": _spans, "grammar": _grammar}
DEFAULT = "spans"


def tree_structure(given: Options) -> Any:
    """Return the structure that the options ask for."""
    try:
        return STRUCTURES[given["structure"] or DEFAULT](given)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
