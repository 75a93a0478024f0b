"""Labelled data: which format it is, and what is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli.reading.arc_data import CONLLU, arc_lines, read_arc_data
from dualfield.cli.reading.columns import ColumnChoice, counted
from dualfield.cli.reading.graph_data import GRAPHS, count_edges, is_graphs, node_lines, read_graph_data
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
from dualfield.cli.reading.tree_data import (
    TREES,
    clean_trees,
    is_trees,
    tokens_of,
    tree_columns,
    tree_labels,
    word_lines,
)

if TYPE_CHECKING:
    from dualfield.io import FileColumns
    from dualfield.io.json_graphs import JsonGraphReader
    from dualfield.io.text_lines import Source
    from dualfield.structures import LabelGraph

FORMATS = {
    "conll": "CoNLL columns",
    "crfsuite": "CRFsuite items",
    "svmlight": "svmlight examples",
    "multilabel": "svmlight examples with several labels",
    **JSON_FORMATS,
    **GRAPHS,
    **TREES,
    **CONLLU,
}
MATRICES = ("svmlight", "multilabel")  # a row for each line
DELIMITERS: dict[str, str | None] = {"blanks": None, "tab": "\t", "space": " "}

LABEL_LAST = ColumnChoice()

DOCUMENT = re.compile(r"[ \t]*-DOCSTART-(?:[ \t]|$)")  # a line that marks a document, and is no token

_SAMPLE = 200  # lines that are looked at to tell the format
_EXAMPLE = re.compile(r"\S+(?:\s+\d+:[-+.\deE]+)*\s*")
_LIKE_EXAMPLE = re.compile(r"\S+(?:\s+\d+:\S*)+\s*")
_LABELS = re.compile(r"[^\s:,]+(?:,[^\s:,]+)+")
_ATTRIBUTE = re.compile(r"=|\[|(?<!\\):[-+.\d]+$")


def guess_format(source: Source, name: str) -> str:
    """Tell the format by the first lines; raise an error if there are none, or if the file is a model."""
    check_no_model(source, name)
    with placed(name):
        lines = [line for _, line in islice(numbered(source), _SAMPLE)]
    full = [line for line in lines if line.strip()]
    if not full:
        raise click.ClickException(f"{name}: is empty; expected CoNLL columns, CRFsuite items, svmlight or JSON.")
    begin = "\n".join(lines)
    if is_graphs(begin):
        return "graphs"
    if is_trees(begin):
        return "trees"
    if found := json_format(begin):
        return found
    bare = [text for line in full if (text := line.partition("#")[0].strip())]
    if bare and all(_EXAMPLE.fullmatch(line) for line in bare) and any(":" in line for line in bare):
        return "multilabel" if any(_LABELS.fullmatch(line.split()[0]) for line in bare) else "svmlight"
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


def first_lines(path: str, encoding: str, n: int = _SAMPLE) -> list[str]:
    """Return lines of a file from its first sentence on; none if it has no sentence."""
    from dualfield.io.text_lines import numbered_lines

    check_no_model(path, path)
    with placed(path):
        lines = (line for _, line in numbered_lines(path, encoding))
        return list(islice(dropwhile(lambda line: not line.strip() or DOCUMENT.match(line), lines), n))


def begins_with_tree(source: Source, name: str) -> bool:
    """Tell by the first lines whether a source has trees in brackets; raise an error if it is a model."""
    check_no_model(source, name)
    with placed(name):
        return is_trees("\n".join(line for _, line in islice(numbered(source), _SAMPLE)))


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
        What models take: "conll", "crfsuite", "svmlight", "multilabel", "graphs", "trees" or "conllu". JSON with texts
        has become rows of one column.
    X, y : list of sequences and list of lists of labels; for svmlight a sparse matrix and an array or tuples of labels
        What a model is fitted to. Rows of columns are without the label. Sentences with trees are both.
    sources : tuple of (str, Source)
        What messages call each file, and the file.
    columns : FileColumns or None
        Which columns were read, if there are columns.
    graphs : JsonGraphReader or None
        What graphs have at their nodes and edges, and what they were read as.
    label_graph : LabelGraph or None
        How rows with several labels have become graphs.
    summary : str
        What is in the files, where `X` and `y` are no longer what was read.
    """

    format: str
    X: Any
    y: Any
    _: KW_ONLY
    sources: tuple[tuple[str, Source], ...]
    columns: FileColumns | None = None
    graphs: JsonGraphReader | None = None
    label_graph: LabelGraph | None = None
    summary: str = ""

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
        return sorted({str(label) for label in self._flat_labels() if label is not None})

    def _flat_labels(self) -> Iterator[Any]:
        """Yield the label of each token, of each bracket, or of the arc to each word."""
        if self.format == "svmlight":
            yield from self.y.tolist()
            return
        each: Any = tree_labels(self.y) if self.format == "trees" else self.y
        for labels in each:
            yield from labels.labels if self.format == "conllu" else labels

    @property
    def n_tokens(self) -> int:
        """How many labels there are; words of trees."""
        return len(self.y) if self.format == "svmlight" else sum(map(len, self._rows))

    @property
    def _rows(self) -> Any:
        """For each example something with an entry for each token."""
        return self.X if self.format == "trees" else self.y

    def place(self, token: int) -> str:
        """Return file and line of a token, which are counted through from 0."""
        seen = 0
        for name, source in self.sources:
            for number in self._lines(source):
                if seen == token:
                    return f"{name}:{number}"
                seen += 1
        return self.name

    def example_place(self, example: int) -> str:
        """Return file and line of an example, which are counted through from 0."""
        return self.place(sum(map(len, self._rows[:example])) if self.format != "svmlight" else example)

    def _lines(self, source: Source) -> Iterator[int]:
        """Yield the line of each token."""
        if self.format == "conll" and (kind := json_format_of(source)):
            yield from token_lines(source, kind)
            return
        if self.format in ("graphs", "trees", "conllu"):
            yield from {"graphs": node_lines, "trees": word_lines, "conllu": arc_lines}[self.format](source)
            return
        for number, line in numbered(source):
            text = line.partition("#")[0] if self.format in MATRICES else line
            if text.strip() and not (self.format == "conll" and DOCUMENT.match(line)):
                first = text.split()[0]
                n_labels = 1 if self.format != "multilabel" else 0 if ":" in first else first.count(",") + 1
                yield from [number] * n_labels

    def place_of(self, label: str) -> str:
        """Return file and line where a label first occurs."""
        if self.format == "trees":
            return self.example_place(next(i for i, found in enumerate(tree_labels(self.y)) if label in found))
        return self.place(next(at for at, found in enumerate(self._flat_labels()) if str(found) == label))

    def as_graphs(self, graph: LabelGraph) -> LabelledData:
        """Return rows with several labels as graphs."""
        X, y = list(graph.graphs(self.X)), graph.indicators(self.y)  # a list can be split into folds
        return replace(self, X=X, y=y, label_graph=graph, summary=str(self))

    def __str__(self) -> str:
        if self.summary:
            return self.summary
        if self.format in MATRICES:
            return f"{self.X.shape[0]:,} examples, {self.X.shape[1]:,} features, {len(self.labels)} labels"
        if self.graphs is not None:
            n_edges, kind = count_edges(self.X, self.graphs.structure), self.graphs.structure
            nodes = f"{self.n_tokens:,} nodes with {self.graphs.nodes}"
            edges = f"{n_edges:,} edges with {self.graphs.edges or 'no features'}"
            return f"{len(self.y):,} {kind}s, {nodes}, {edges}, {len(self.labels)} labels"
        if self.format == "trees":
            tags = "with tags" if self.X and not isinstance(self.X[0][0], str) else "without tags"
            return f"{len(self.y):,} trees, {self.n_tokens:,} words {tags}, {len(self.labels)} labels"
        if self.format == "conllu":
            labels = f", {len(self.labels)} labels of arcs" if self.labels else ""
            return f"{len(self.y):,} sentences, {self.n_tokens:,} words{labels}"
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
    graphs: JsonGraphReader | None = None,
) -> LabelledData:
    """Read files of one format, one after another; kind is one of `FORMATS` or "auto".

    Where columns are expected, JSON is recognised.
    """
    sources = [(shown(path), opened(path, encoding)) for path in paths]
    if kind == "auto":
        kind = guess_format(sources[0][1], sources[0][0])
    return read_sources(sources, kind, delimiter, choice, n_features=n_features, json=json, graphs=graphs)


def read_sources(
    sources: Sequence[tuple[str, Source]],
    kind: str,
    delimiter: str,
    choice: ColumnChoice = LABEL_LAST,
    *,
    n_features: int | None = None,
    json: JsonChoice = AS_IT_IS,
    graphs: JsonGraphReader | None = None,
) -> LabelledData:
    """Read sources of one format, each after what messages call it; graphs are held against what a reader has seen."""
    if kind == "graphs":
        return _read_graphs(sources, graphs)
    if kind == "trees":
        return _read_trees(sources, choice)
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


def _read_graphs(sources: Sequence[tuple[str, Source]], seen: JsonGraphReader | None) -> LabelledData:
    from dualfield.io.json_graphs import JsonGraphReader

    read, X, y = seen or JsonGraphReader(), list[Any](), list[list[Any]]()
    for name, source in sources:
        check_no_model(source, name)
        with placed(name):
            graphs, labels = read_graph_data(source, name, read)
            if not labels:
                raise ValueError(f"{name}: is empty; expected {FORMATS['graphs']}.")
        X += graphs
        y += labels
    return LabelledData("graphs", X, y, sources=tuple(sources), graphs=read)


def _read_trees(sources: Sequence[tuple[str, Source]], choice: ColumnChoice) -> LabelledData:
    X, y = list[Any](), list[Any]()
    for name, source in sources:
        check_no_model(source, name)
        with placed(name):
            columns = tree_columns(choice.features)
            trees = [tree for _, tree in clean_trees(source)]
            if not trees:
                raise ValueError(f"{name}: is empty; expected {FORMATS['trees']}.")
        X += [tokens_of(tree, columns) for tree in trees]
        y += trees
    return LabelledData("trees", X, y, sources=tuple(sources))


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
        elif kind == "multilabel":
            X, y = read_svmlight(source, n_features=n_features, multilabel=True)
            if not any(y):
                raise ValueError(f"{name}, line {_first_line(source)}: no line has a label; expected such as 0,3.")
        elif kind == "crfsuite":
            X, y = read_crfsuite_items(source)
        elif kind == "conllu":
            X, columns = read_arc_data(source, name, DELIMITERS[delimiter])
            y = X
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
    return LabelledData("conll" if kind in JSON_FORMATS else kind, X, y, sources=((name, source),), columns=columns)


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
    if first.format not in MATRICES:
        X, y = [s for part in parts for s in part.X], [s for part in parts for s in part.y]
        return LabelledData(first.format, X, y, sources=sources, columns=first.columns)
    import numpy as np
    import scipy.sparse

    width = max(part.X.shape[1] for part in parts)
    for part in parts:
        part.X.resize((part.X.shape[0], width))
    stacked = scipy.sparse.vstack([part.X for part in parts], format="csr")
    labels: Any = [part.y for part in parts]
    joined = np.concatenate(labels) if first.format == "svmlight" else [one for part in labels for one in part]
    return LabelledData(first.format, stacked, joined, sources=sources)


def _first_line(source: Source) -> int:
    return next((number for number, line in numbered(source) if line.strip()), 1)
