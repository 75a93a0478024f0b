"""Labels for sentences in columns: the same lines, with the label, or more, behind each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from dualfield.cli.labelling.json_lines import JsonWriter
from dualfield.cli.labelling.labellings import Labelling, Style, behind, predicted, ranked
from dualfield.cli.models import LoadedModel
from dualfield.cli.program import warn
from dualfield.cli.reading.columns import counted
from dualfield.cli.reading.data_files import DELIMITERS, DOCUMENT
from dualfield.cli.reading.line_groups import Numbered
from dualfield.io import AnnotatedText


class ColumnTagger:
    """Tags sentences in columns: the same lines, with the label, or more, behind each."""

    def __init__(self, loaded: LoadedModel, name: str, style: Style) -> None:
        self.loaded, self.name, self.style = loaded, name, style
        self.choice = loaded.choice(style.columns)
        self.first: tuple[int, int] | None = None  # number of columns of the first row, and its line
        self.read: tuple[int, ...] = ()  # columns that the model gets

    def tagged(self, groups: Iterator[Numbered]) -> Iterator[list[str]]:
        """Yield what is to be written for each group of lines."""
        for group in groups:
            runs, X = self.sentences(group)
            if self.style.writes_json:
                yield self._json(group, runs, X)
                continue
            found = predicted(self.loaded, X, self.style)
            texts = [text for _, text in group]
            yield list((self._ranked if self.style.k_best else self._in_place)(texts, runs, found))

    def sentences(self, group: Numbered) -> tuple[list[list[int]], list[Any]]:
        """Return the sentences of a group: the places of their lines, and their rows."""
        begins = self.first is None
        is_token = [bool(text.strip()) and not DOCUMENT.match(text) for _, text in group]
        runs = [list(run) for inside, run in groupby(range(len(group)), is_token.__getitem__) if inside]
        X = [[self._row(*group[at]) for at in run] for run in runs]
        if begins:
            self._look_for_a_missing_column([row for sentence in X for row in sentence])
            if len(runs) == 1 and group[-1][1].strip():
                self._look_for_plain_text([text for _, text in group], X)
        return runs, X

    def _json(self, group: Numbered, runs: list[list[int]], X: list[Any]) -> list[str]:
        """Return a line for each sentence; its text is the first column with spaces between."""
        words = [[group[at][1].split(DELIMITERS[self.style.delimiter])[self.read[0]] for at in run] for run in runs]
        writer = JsonWriter(self.loaded, self.style.to, bool(self.style.marginals))
        return writer.lines(X, [AnnotatedText.from_tokens(one) for one in words])

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

    def _look_for_plain_text(self, texts: list[str], X: list[Any]) -> None:
        """Say so if lines without a blank one between them seem to be sentences: a column has nothing that is known."""
        trained, n_columns = self.loaded.columns, self.first[0] if self.first else 0
        if self.style.columns is not None or self.style.labelled is not None or n_columns < 2:
            return
        text_option = "--text reads plain text, one sentence in a line; " * (len(X[0][0]) == 1)
        if trained is not None and n_columns == trained.n_columns:
            known, column = set(self.loaded.names), trained.label
            fields = [text.split(DELIMITERS[self.style.delimiter])[column] for text in texts]
            if not known.intersection(fields):
                warn(
                    f"{self.name}: there is no blank line, and column {column}, that of the label in training, has no "
                    f"label that {self.loaded.path} knows. {text_option}--labelled says that these are columns."
                )
        elif (unknown := self._unknown_column(X)) is not None:
            warn(
                f"{self.name}: there is no blank line, and {self.loaded.path} knows nothing of what is in column "
                f"{unknown}. Plain text is to be split into columns first; --no-label says that these are columns."
            )

    def _unknown_column(self, X: list[Any]) -> int | None:
        """Return a column behind the first whose values have no attribute that the model knows."""
        read = self.loaded.tagger.template_.read
        words = self.loaded.tagger.vocabulary_
        n_known = _count_known(read(X).nodes, words)
        for at in range(1, min(len(X[0][0]), self.loaded.n_columns)):
            without = [[(*row[:at], "\x00", *row[at + 1 :]) for row in sentence] for sentence in X]
            if _count_known(read(without).nodes, words) >= n_known:
                return self.read[at]
        return None

    def _in_place(self, texts: list[str], runs: list[list[int]], labellings: list[list[Labelling]]) -> Iterator[str]:
        found: dict[int, list[str]] = {}
        for run, (best,) in zip(runs, labellings, strict=True):
            found |= zip(run, best.fields, strict=True)
        for at, text in enumerate(texts):
            mark = ["O"] if DOCUMENT.match(text) else []  # conlleval wants equally many columns in all lines
            yield behind(text, found.get(at, mark))

    def _ranked(self, texts: list[str], runs: list[list[int]], labellings: list[list[Labelling]]) -> Iterator[str]:
        for run, alternatives in zip(runs, labellings, strict=True):
            yield from ranked([texts[at] for at in run], alternatives)


def _count_known(batch: Any, words: Any) -> int:
    """Return how many attributes of a batch are in a vocabulary."""
    known = [name in words for name in batch.vocabulary]
    return sum(known[column] for column in batch.indices.tolist())
