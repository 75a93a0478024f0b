"""Labels for lines, group by group: columns, plain text, CRFsuite's items, svmlight's examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import IO, Any

import click

from dualfield.cli.models import LoadedModel
from dualfield.cli.program import warn
from dualfield.cli.reading.columns import counted
from dualfield.cli.reading.data_files import DELIMITERS, DOCUMENT
from dualfield.cli.reading.line_groups import Numbered, counted_from, line_groups, opened_as_it_comes
from dualfield.cli.reading.sources import placed, shown
from dualfield.io import split_tokens


@dataclass(frozen=True, kw_only=True)
class Style:
    """What is written for each token: its label, and how much more.

    Attributes
    ----------
    marginals : str or None
        "best": also the probability of the label; "all": also those of all labels.
    k_best : int
        If it is not 0, this many labellings of each sentence, each under a line with its rank and probability.
    labelled : bool or None
        Whether data have labels already; None: as it looks.
    delimiter : str
        What separates columns, a key of `DELIMITERS`.
    encoding : str
        How characters are stored in the data.
    columns : tuple of int or None
        The columns to read; None: as in training.
    is_text : bool
        Whether lines are sentences of plain text.
    """

    marginals: str | None = None
    k_best: int = 0
    labelled: bool | None = None
    delimiter: str = "blanks"
    encoding: str = "utf-8"
    columns: tuple[int, ...] | None = None
    is_text: bool = False


@dataclass(frozen=True)
class _Labelling:
    """The fields to write for each token of a sentence, and the probability of all labels together."""

    fields: list[list[str]]
    probability: float = 0.0


def tagged_lines(loaded: LoadedModel, path: str, style: Style) -> Iterator[list[str]]:
    """Yield lines of output, in groups that belong together, while the input is still coming."""
    name = shown(path)
    with placed(name), opened_as_it_comes(path) as file:
        by_sentence = loaded.kind != "svmlight" and not style.is_text
        groups = line_groups(file, name, by_sentence=by_sentence, encoding=style.encoding)
        if style.is_text:
            yield from _tagged_text(loaded, style, groups)
        elif loaded.kind == "conll":
            yield from _Columns(loaded, name, style).tagged(groups)
        elif loaded.kind == "crfsuite":
            yield from _tagged_items(loaded, name, style, groups)
        else:
            yield from _tagged_examples(loaded, name, style, groups)


def write_to(file: IO[bytes], groups: Iterator[list[str]]) -> None:
    """Write each group at once, so that the next program in a pipe need not wait."""
    for lines in groups:
        file.write("".join(line + "\n" for line in lines).encode())
        file.flush()


class _Columns:
    """Tags sentences in columns: the same lines, with the label, or more, behind each."""

    def __init__(self, loaded: LoadedModel, name: str, style: Style) -> None:
        self.loaded, self.name, self.style = loaded, name, style
        self.choice = loaded.choice(style.columns)
        self.first: tuple[int, int] | None = None  # number of columns of the first row, and its line
        self.read: tuple[int, ...] = ()  # columns that the model gets

    def tagged(self, groups: Iterator[Numbered]) -> Iterator[list[str]]:
        """Yield what is to be written for each group of lines."""
        for group in groups:
            begins = self.first is None
            is_token = [bool(text.strip()) and not DOCUMENT.match(text) for _, text in group]
            runs = [list(run) for inside, run in groupby(range(len(group)), is_token.__getitem__) if inside]
            X = [[self._row(*group[at]) for at in run] for run in runs]
            if begins:
                self._look_for_a_missing_column([row for sentence in X for row in sentence])
            labellings = _labellings(self.loaded, X, self.style)
            texts = [text for _, text in group]
            yield list((self._ranked if self.style.k_best else self._in_place)(texts, runs, labellings))

    def _row(self, number: int, text: str) -> tuple[str, ...]:
        columns = tuple(text.split(DELIMITERS[self.style.delimiter]))
        if self.first is None:
            self.first = len(columns), number
            try:
                self.read = self.choice.unlabelled(len(columns), self.name, labelled=self.style.labelled)
            except ValueError as error:
                raise ValueError(f"{self.name}, line {number}: {error}") from error
        if len(columns) != self.first[0]:
            raise ValueError(
                f"{self.name}, line {number}: has {counted(len(columns))}; "
                f"expected {self.first[0]}, as in line {self.first[1]}."
            )
        return tuple([columns[at] for at in self.read])

    def _look_for_a_missing_column(self, rows: list[tuple[str, ...]]) -> None:
        """Say so if what the template reads as its last column seems to be the true label."""
        n_columns = self.loaded.n_columns
        if not rows or self.style.labelled is False or self.style.columns is not None or n_columns < 2:
            return
        if self.first is None or self.first[0] != n_columns:
            return
        known = set(self.loaded.names)
        if all(row[-1] in known for row in rows):
            warn(
                f"{self.name}: the last of {n_columns} columns holds labels, but the template reads it as an "
                "attribute. Is a column missing? Pass --no-label if not."
            )

    def _in_place(self, texts: list[str], runs: list[list[int]], labellings: list[list[_Labelling]]) -> Iterator[str]:
        found: dict[int, list[str]] = {}
        for run, (best,) in zip(runs, labellings, strict=True):
            found |= zip(run, best.fields, strict=True)
        for at, text in enumerate(texts):
            mark = ["O"] if DOCUMENT.match(text) else []  # conlleval wants equally many columns in all lines
            yield _behind(text, found.get(at, mark))

    def _ranked(self, texts: list[str], runs: list[list[int]], labellings: list[list[_Labelling]]) -> Iterator[str]:
        for run, alternatives in zip(runs, labellings, strict=True):
            yield from _ranked([texts[at] for at in run], alternatives)


def _labellings(loaded: LoadedModel, X: Sequence[Any], style: Style) -> list[list[_Labelling]]:
    """Ask the model; return one labelling of each sentence, or several."""
    if not X:
        return []
    model, names = loaded.model, loaded.names
    probabilities = model.predict_proba(X) if style.marginals else [None] * len(X)
    ranked = model.k_best(X, style.k_best) if style.k_best else [[(labels, 0.0)] for labels in model.predict(X)]
    return [
        [_Labelling(_fields(labels, rows, names, style), chance) for labels, chance in alternatives]
        for alternatives, rows in zip(ranked, probabilities, strict=True)
    ]


def _fields(labels: Sequence[Any], rows: Any, names: list[str], style: Style) -> list[list[str]]:
    if rows is None:
        return [[str(label)] for label in labels]
    codes = {name: code for code, name in enumerate(names)}
    found = []
    for label, row in zip(map(str, labels), rows.tolist(), strict=True):
        every = [f"{name}:{chance:.6f}" for name, chance in zip(names, row, strict=True)]
        found.append([label, f"{row[codes[label]]:.6f}", *(every if style.marginals == "all" else [])])
    return found


def _ranked(texts: Sequence[str], alternatives: list[_Labelling]) -> Iterator[str]:
    for rank, labelling in enumerate(alternatives, start=1):
        yield f"# rank {rank}, probability {labelling.probability:.6f}"
        yield from (_behind(text, fields) for text, fields in zip(texts, labelling.fields, strict=True))
        yield ""


def _behind(text: str, fields: Sequence[str]) -> str:
    return ("\t" if "\t" in text else " ").join([text, *fields]) if text else "\t".join(fields)


def _tagged_text(loaded: LoadedModel, style: Style, groups: Iterator[Numbered]) -> Iterator[list[str]]:
    """Tag plain text, a sentence in each line: a line for each token with its place, and a blank line."""
    for group in groups:
        sentences = [split_tokens(text) for _, text in group]
        full = [sentence for sentence in sentences if sentence]
        found = iter(_labellings(loaded, [[(token,) for token, *_ in sentence] for sentence in full], style))
        lines: list[str] = []
        for sentence in sentences:
            texts = [f"{token} {begin} {end}" for token, begin, end in sentence]
            labellings = next(found) if sentence else []
            if style.k_best:
                lines += _ranked(texts, labellings)
            else:
                lines += [_behind(*pair) for best in labellings for pair in zip(texts, best.fields, strict=True)]
                lines.append("")
        yield lines


def _tagged_items(loaded: LoadedModel, name: str, style: Style, groups: Iterator[Numbered]) -> Iterator[list[str]]:
    """Tag CRFsuite's items: a line for each, as ``crfsuite tag`` writes them."""
    from dualfield.io import read_crfsuite_items

    labelled = style.labelled
    for group in groups:
        lines = [text for _, text in group]
        if labelled is None and any(lines):
            labelled = _begin_with_labels(loaded, [text.split("\t")[0] for text in lines if text], name)
        given = [f"?\t{text}" if text and labelled is False else text for text in lines]
        with counted_from(group[0][0], name):
            X, _ = read_crfsuite_items(given)
        labellings = _labellings(loaded, X, style)
        if style.k_best:
            yield [line for one in labellings for line in _ranked([""] * len(one[0].fields), one)]
        else:
            fields = iter([fields for (best,) in labellings for fields in best.fields])
            yield [_behind("", next(fields)) if text else "" for text in lines]


def _begin_with_labels(loaded: LoadedModel, firsts: list[str], name: str) -> bool:
    """Tell whether items have a label in front, by what the model knows; in doubt they have, as for CRFsuite."""
    known = set(loaded.names)
    words = loaded.tagger.vocabulary_
    n_labels, n_attributes = (sum(first in held for first in firsts) for held in (known, words))
    if n_labels == n_attributes:
        said = f"{name}: {firsts[0]!r} is taken for the label of the first item; --no-label says that there are none."
        click.echo(said, err=True)
    return n_labels >= n_attributes


def _tagged_examples(loaded: LoadedModel, name: str, style: Style, groups: Iterator[Numbered]) -> Iterator[list[str]]:
    """Classify svmlight's examples: a line for each."""
    from dualfield.io import read_svmlight

    names = loaded.names
    for group in groups:
        with counted_from(group[0][0], name):
            X, _ = read_svmlight([text for _, text in group], n_features=loaded.model.n_features_in_)
        if X.shape[0]:
            rows = loaded.model.predict_proba(X) if style.marginals else None
            yield [" ".join(fields) for fields in _fields(loaded.model.predict(X), rows, names, style)]
