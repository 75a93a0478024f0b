"""Labelled data: which format it is, and what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli.reading.columns import ColumnChoice, counted
from dualfield.cli.reading.json_data import (
    AS_IT_IS,
    JSON_FORMATS,
    JsonChoice,
    json_format,
    json_format_of,
    read_json,
    token_lines,
)
from dualfield.cli.reading.sources import Kept, numbered, opened, placed, shown

if TYPE_CHECKING:
    from dualfield.io import FileColumns
    from dualfield.io.text_lines import Source

FORMATS = {"conll": "CoNLL columns", "crfsuite": "CRFsuite items", "svmlight": "svmlight examples", **JSON_FORMATS}
DELIMITERS: dict[str, str | None] = {"blanks": None, "tab": "\t", "space": " "}

LABEL_LAST = ColumnChoice()

DOCUMENT = re.compile(r"[ \t]*-DOCSTART-(?:[ \t]|$)")  # a line that marks a document, and is no token

_SAMPLE = 200  # lines that are looked at to tell the format
_EXAMPLE = re.compile(r"\S+(?:\s+\d+:[-+.\deE]+)*\s*")
_LIKE_EXAMPLE = re.compile(r"\S+(?:\s+\d+:\S*)+\s*")
_ATTRIBUTE = re.compile(r"=|\[|(?<!\\):[-+.\d]+$")


def guess_format(source: Source, name: str) -> str:
    """Tell the format by the first lines; raise an error if there are none, or if the file is a model."""
    check_no_model(source, name)
    with placed(name):
        lines = [line for _, line in islice(numbered(source), _SAMPLE)]
    full = [line for line in lines if line.strip()]
    if not full:
        raise click.ClickException(f"{name}: is empty; expected CoNLL columns, CRFsuite items, svmlight or JSON.")
    if found := json_format("\n".join(lines)):
        return found
    bare = [text for line in full if (text := line.partition("#")[0]).strip()]
    if bare and all(_EXAMPLE.fullmatch(line) for line in bare) and any(":" in line for line in bare):
        return "svmlight"
    # A faulty entry does not make columns of svmlight: it is to be complained about.
    if 2 * sum(bool(_LIKE_EXAMPLE.fullmatch(line)) for line in bare) >= max(len(full), 1):
        return "svmlight"
    fields = [[field for field in line.split("\t") if field] for line in full]
    if all("\t" in line for line in full):
        # Columns are equally many in all lines, but for a faulty one; attributes have a name and a value.
        widths = [len(row) for row in fields]
        rest = [field for row in fields for field in row[1:]]
        usual = max(map(widths.count, set(widths)))
        if usual < 0.9 * len(widths) or sum(bool(_ATTRIBUTE.search(field)) for field in rest) * 2 > len(rest):
            return "crfsuite"
    return "conll"


def check_no_model(source: Source, name: str) -> None:
    """Raise an error if a source begins as model files do."""
    if isinstance(source, Kept):
        begin = source.content[:9]
    else:
        with Path(str(source)).open("rb") as file:
            begin = file.read(9)
    if begin[:4] == b"lCRF" or (begin[8:9] == b"{" and begin[6:8] == b"\0\0"):
        raise click.ClickException(f"{name}: is a model file; expected data.")


@dataclass(frozen=True, eq=False)
class LabelledData:
    """Labelled examples of one or more files.

    Attributes
    ----------
    format : str
        What models take: "conll", "crfsuite" or "svmlight". JSON has become rows of one column.
    X, y : list of sequences and list of lists of labels; for svmlight a sparse matrix and an array
        What a model is fitted to. Rows of columns are without the label.
    sources : tuple of (str, Source)
        What messages call each file, and the file.
    columns : FileColumns or None
        Which columns were read, if there are columns.
    """

    format: str
    X: Any
    y: Any
    sources: tuple[tuple[str, Source], ...]
    columns: FileColumns | None = None

    @property
    def n_columns(self) -> int:
        """Columns that were read besides the label, if there are columns."""
        return 0 if self.columns is None else len(self.columns.features)

    @property
    def form(self) -> str:
        """The format of the first file, a key of `FORMATS`."""
        return (self.format == "conll" and json_format_of(self.sources[0][1])) or self.format

    @property
    def name(self) -> str:
        """What messages call the files."""
        return ", ".join(name for name, _ in self.sources)

    @property
    def labels(self) -> list[str]:
        """The distinct labels, sorted."""
        flat = self.y.tolist() if self.format == "svmlight" else (label for labels in self.y for label in labels)
        return sorted({str(label) for label in flat})

    @property
    def n_tokens(self) -> int:
        """How many labels there are."""
        return len(self.y) if self.format == "svmlight" else sum(map(len, self.y))

    def place(self, token: int) -> str:
        """Return file and line of a token, which are counted through from 0."""
        seen = 0
        for name, source in self.sources:
            for number in self._lines(source):
                if seen == token:
                    return f"{name}:{number}"
                seen += 1
        return self.name

    def _lines(self, source: Source) -> Iterator[int]:
        """Yield the line of each token."""
        if self.format == "conll" and (kind := json_format_of(source)):
            yield from token_lines(source, kind)
            return
        for number, line in numbered(source):
            text = line.partition("#")[0] if self.format == "svmlight" else line
            if text.strip() and not (self.format == "conll" and DOCUMENT.match(line)):
                yield number

    def place_of(self, label: str) -> str:
        """Return file and line where a label first occurs."""
        flat = self.y.tolist() if self.format == "svmlight" else (label for labels in self.y for label in labels)
        return self.place(next(at for at, found in enumerate(flat) if str(found) == label))

    def __str__(self) -> str:
        if self.format == "svmlight":
            return f"{self.X.shape[0]:,} examples, {self.X.shape[1]:,} features, {len(self.labels)} labels"
        columns = f", {counted(self.n_columns)} besides the label" * bool(self.n_columns)
        return f"{len(self.y):,} sentences, {self.n_tokens:,} tokens, {len(self.labels)} labels{columns}"


def read_labelled(
    paths: Sequence[str],
    kind: str = "auto",
    delimiter: str = "blanks",
    choice: ColumnChoice = LABEL_LAST,
    *,
    encoding: str = "utf-8",
    n_features: int | None = None,
    json: JsonChoice = AS_IT_IS,
) -> LabelledData:
    """Read files of one format, one after another; kind is one of `FORMATS` or "auto".

    Where columns are expected, JSON is recognised.
    """
    sources = [(shown(path), opened(path, encoding)) for path in paths]
    if kind == "auto":
        kind = guess_format(sources[0][1], sources[0][0])
    return read_sources(sources, kind, delimiter, choice, n_features=n_features, json=json)


def read_sources(
    sources: Sequence[tuple[str, Source]],
    kind: str,
    delimiter: str,
    choice: ColumnChoice = LABEL_LAST,
    *,
    n_features: int | None = None,
    json: JsonChoice = AS_IT_IS,
) -> LabelledData:
    """Read sources of one format, each after what messages call it."""
    parts = [_read_one(source, name, kind, delimiter, choice, n_features, json) for name, source in sources]
    for part in parts:
        check_same_columns(part, parts[0])
    return _joined(parts)


def check_same_columns(data: LabelledData, first: LabelledData) -> None:
    """Raise an error unless data have as many columns as others."""
    if data.columns is not None and first.columns is not None and data.columns.n_columns != first.columns.n_columns:
        name, source = data.sources[0]
        raise click.ClickException(
            f"{name}:{_first_line(source)}: has {counted(data.columns.n_columns)}; "
            f"expected {first.columns.n_columns}, as in {first.sources[0][0]}."
        )


def _read_one(
    source: Source,
    name: str,
    kind: str,
    delimiter: str,
    choice: ColumnChoice,
    n_features: int | None,
    json: JsonChoice,
) -> LabelledData:
    from dualfield.io import FileColumns, read_conll, read_crfsuite_items, read_svmlight

    check_no_model(source, name)
    X: Any
    y: Any
    columns = None
    with placed(name):
        if kind == "conll":
            kind = json_format_of(source) or kind
        if kind in JSON_FORMATS:
            choice.check_one_column(name)
            (X, y), columns = read_json(source, name, kind, json), FileColumns(2, (0,), 1)
        elif kind == "svmlight":
            X, y = read_svmlight(source, n_features=n_features)
            if X.shape[0] and y is None:
                raise ValueError(f"{name}, line {_first_line(source)}: has no label; expected it before the entries.")
        elif kind == "crfsuite":
            X, y = read_crfsuite_items(source)
        else:
            rows = read_conll(source, separator=DELIMITERS[delimiter])
            if rows:
                columns = _chosen(choice, len(rows[0][0]), name, source)
            X, y = [], []
            for sentence in rows:
                features, labels = zip(*map(columns.split, sentence), strict=True) if columns else ((), ())
                X.append(list(features))
                y.append(list(labels))
        if y is None or not len(y):
            raise ValueError(f"{name}: is empty; expected {FORMATS[kind]}.")
    return LabelledData("conll" if kind in JSON_FORMATS else kind, X, y, ((name, source),), columns)


def _chosen(choice: ColumnChoice, n_columns: int, name: str, source: Source) -> FileColumns:
    """Return the columns to read; the error of a wrong choice names the first line of the file."""
    try:
        if n_columns < 2:
            raise ValueError("has 1 column; expected 2 or more, the label last.")
        return choice.labelled(n_columns, name)
    except ValueError as error:
        raise ValueError(f"{name}, line {_first_line(source)}: {error}") from error


def _joined(parts: list[LabelledData]) -> LabelledData:
    first, sources = parts[0], tuple(source for part in parts for source in part.sources)
    if first.format != "svmlight":
        X, y = [s for part in parts for s in part.X], [s for part in parts for s in part.y]
        return LabelledData(first.format, X, y, sources, first.columns)
    import numpy as np
    import scipy.sparse

    width = max(part.X.shape[1] for part in parts)
    for part in parts:
        part.X.resize((part.X.shape[0], width))
    stacked = scipy.sparse.vstack([part.X for part in parts], format="csr")
    return LabelledData(first.format, stacked, np.concatenate([part.y for part in parts]), sources)


def _first_line(source: Source) -> int:
    return next((number for number, line in numbered(source) if line.strip()), 1)
