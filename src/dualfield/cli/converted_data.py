"""What ``dualfield convert`` writes: labelled data in every format that can hold them."""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli.program import tell
from dualfield.cli.reading.data_files import LabelledData
from dualfield.cli.reading.json_data import JsonChoice, read_texts

if TYPE_CHECKING:
    from dualfield.io import AnnotatedText

JSON_TARGETS = ("spans", "doccano", "tokens")


def data_of(data: LabelledData, kind: str, choice: JsonChoice, given: dict[str, Any]) -> ConvertedData:
    """Return data with their labels in the scheme that the options name."""
    found = ConvertedData(data, kind, choice, given["template"], given["from_scheme"])
    if given["scheme"] is None or kind == "spans":  # from spans, labels are made in the right scheme
        return found
    return replace(found, data=replace(data, y=found.labels_in(given["scheme"])))


@dataclass(frozen=True, eq=False)
class ConvertedData:
    """Labelled data, to be written in a format.

    Attributes
    ----------
    data : LabelledData
        What was read.
    kind : str
        From which format, a key of `FORMATS`.
    choice : JsonChoice
        How JSON is read.
    template : str or None
        The option --template.
    from_scheme : str or None
        The option --from-scheme.
    """

    data: LabelledData
    kind: str
    choice: JsonChoice
    template: str | None
    from_scheme: str | None

    def write(self, target: str, to: str) -> None:
        """Write the data; "-" is standard output."""
        from dualfield import io

        data, out = self.data, sys.stdout if target == "-" else target
        if to == data.format == "svmlight":
            io.write_svmlight(data.X, data.y, out)
        elif to == "multilabel":
            io.write_svmlight(data.X, data.y, out, multilabel=True)
        elif to == "graphs":
            io.write_json_graphs(data.X, data.y, out)
        elif to == "conll":
            pairs = zip(data.X, data.y, strict=True)
            rows = [[(*row, label) for row, label in zip(*pair, strict=True)] for pair in pairs]
            has_blanks = any(" " in cell for sentence in rows for row in sentence for cell in row)
            io.write_conll(rows, out, separator="\t" if has_blanks else " ")
        elif to in ("spans", "doccano"):
            io.write_json_spans(self._texts(), out, style="prodigy" if to == "spans" else to)
        elif to == "tokens":
            names = None if self.kind == "tokens" else self.choice.label_names
            io.write_json_tokens(self._tokens(), data.y, out, label_names=names)
        elif to == "crfsuite":
            io.write_crfsuite_items(self._items(), data.y, out)
        else:
            io.write_svmlight(*self._examples(), out)

    def labels_in(self, scheme: str) -> list[list[str]]:
        """Return the labels in a scheme; those that break their own are refused by file and line."""
        from dualfield.data.span_labels import SchemeError, convert_scheme, marks_spans

        data = self.data
        for label in data.labels:
            if label != "O" and not marks_spans([label]):
                raise click.ClickException(
                    f"{data.place_of(label)}: the label {label!r} marks no span; expected O, or a type behind B-, I-, "
                    "E- or S-."
                )
        try:
            found: list[list[str]] = convert_scheme(data.y, scheme, source=self.from_scheme)
        except SchemeError as error:
            at = sum(map(len, data.y[: error.sequence])) + error.position
            hint = " No other scheme fits; --from-scheme any reads them as conlleval does." * (not self.from_scheme)
            raise click.ClickException(f"{data.place(at)}: {error.reason}{hint}") from error
        return found

    def _texts(self) -> list[AnnotatedText]:
        """Return texts with spans: those of the file, or tokens with spaces between them."""
        from dualfield.io import AnnotatedText

        if self.kind == "spans":
            ((name, source),) = self.data.sources
            return read_texts(source, name, self.choice, quiet=True)
        labels = self.labels_in("BIO")
        return [AnnotatedText.from_tokens(*pair) for pair in zip(self._tokens(), labels, strict=True)]

    def _tokens(self) -> list[list[str]]:
        if self.data.n_columns > 1:
            tell("Only the first column is written: this format has tokens and labels.")
        return [[row[0] for row in sentence] for sentence in self.data.X]

    def _batch(self) -> Any:
        """Return the attributes of all tokens."""
        from dualfield.cli.reading.templates import read_template
        from dualfield.data import Batch

        if self.data.format == "crfsuite":
            return Batch.build(self.data.X)
        chosen = read_template(self.template, self.data)
        if chosen.has_pairs:
            raise click.ClickException(
                "The template has attributes of pairs of labels, which the format cannot express."
            )
        return chosen.read(self.data.X).nodes

    def _items(self) -> Any:
        if self.data.format == "crfsuite":
            return self.data.X
        batch = self._batch()
        names, columns = list(batch.vocabulary), batch.indices.tolist()
        starts, offsets = batch.indptr.tolist(), batch.offsets.tolist()
        items = [[names[column] for column in columns[a:b]] for a, b in itertools.pairwise(starts)]
        return [items[a:b] for a, b in itertools.pairwise(offsets)]

    def _examples(self) -> tuple[Any, list[str]]:
        """Return a row for each token; labels that are no numbers are numbered from 0 in sorted order, and listed."""
        flat = [label for labels in self.data.y for label in labels]
        batch = self._batch()
        if all(label.lstrip("+-").isdecimal() for label in self.data.labels):
            return batch.to_csr(), flat
        codes = {label: str(code) for code, label in enumerate(self.data.labels)}
        click.echo("Labels: " + ", ".join(f"{code} is {label}" for label, code in codes.items()), err=True)
        return batch.to_csr(), [codes[label] for label in flat]
