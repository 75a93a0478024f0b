"""Examples without labels, and the lines that they stand in: what ``dualfield rank`` puts into another order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import click

from dualfield.cli.labelling.columns import ColumnTagger
from dualfield.cli.labelling.labellings import Style
from dualfield.cli.models import LoadedModel
from dualfield.cli.reading.data_files import DELIMITERS, FORMATS
from dualfield.cli.reading.line_groups import Numbered, counted_from, line_groups, opened_as_it_comes
from dualfield.cli.reading.sources import placed, shown
from dualfield.io import split_tokens


class PoolExample(NamedTuple):
    """An example as the model takes it, its lines, and a text by which it is told from others."""

    x: Any
    lines: list[str]
    text: str


def read_pool(loaded: LoadedModel, path: str, style: Style) -> Iterator[PoolExample]:
    """Yield the examples of a file, one after another."""
    if loaded.kind not in ("conll", "crfsuite", "svmlight"):
        raise click.UsageError(
            f"rank reads columns, plain text, CRFsuite's items and svmlight; {loaded.path} is a model for "
            f"{FORMATS[loaded.kind]}. In Python rank_for_labelling ranks them."
        )
    name = shown(path)
    with placed(name), opened_as_it_comes(path) as file:
        by_sentence = loaded.kind != "svmlight" and not style.is_text
        reader = ColumnTagger(loaded, name, style) if loaded.kind == "conll" and not style.is_text else None
        for group in line_groups(file, name, by_sentence=by_sentence, encoding=style.encoding):
            if style.is_text:
                yield from _texts(group)
            elif loaded.kind == "svmlight":
                yield from _rows(loaded, name, group)
            elif loaded.kind == "crfsuite":
                yield from _items(name, style, group)
            elif reader is not None:
                yield from _sentences(reader, group)


def _texts(group: Numbered) -> Iterator[PoolExample]:
    for _, text in group:
        tokens = [token for token, *_ in split_tokens(text)]
        if tokens:
            yield PoolExample([(token,) for token in tokens], [text], " ".join(tokens))


def _sentences(reader: ColumnTagger, group: Numbered) -> Iterator[PoolExample]:
    runs, X = reader.sentences(group)
    for run, x in zip(runs, X, strict=True):
        lines = [group[at][1] for at in run]
        words = [line.split(DELIMITERS[reader.style.delimiter])[reader.read[0]] for line in lines]
        yield PoolExample(x, [*lines, ""], " ".join(words))


def _items(name: str, style: Style, group: Numbered) -> Iterator[PoolExample]:
    from dualfield.io import read_crfsuite_items

    for is_full, run in groupby(group, lambda numbered: bool(numbered[1])):
        if not is_full:
            continue
        numbered = list(run)
        lines = [text for _, text in numbered]
        given = lines if style.labelled else [f"?\t{text}" for text in lines]
        with counted_from(numbered[0][0], name):
            (x,), _ = read_crfsuite_items(given)
        yield PoolExample(x, [*lines, ""], " ".join(text.split("\t")[1 if style.labelled else 0] for text in lines))


def _rows(loaded: LoadedModel, name: str, group: Numbered) -> Iterator[PoolExample]:
    from dualfield.io import read_svmlight

    with counted_from(group[0][0], name):
        X, _ = read_svmlight([text for _, text in group], n_features=loaded.n_features)
    texts = [text for _, text in group if text.split("#")[0].strip()]
    for at, text in enumerate(texts):
        yield PoolExample(X[[at]], [text], text)
