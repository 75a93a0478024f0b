"""``dualfield convert``: write data or a model in another format."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import click

from dualfield.cli import options
from dualfield.cli.outputs import STANDARD_OUTPUT, check_outputs, is_standard_output
from dualfield.cli.reading.data_files import FORMATS, LabelledData, guess_format, read_labelled
from dualfield.cli.reading.sources import is_regular, opened, shown
from dualfield.cli.reading.templates import BUILT_IN

__all__ = ["convert"]

# From a format to those it can become.
_ROUTES = {
    "conll": ("conll", "crfsuite", "svmlight"),
    "crfsuite": ("crfsuite", "svmlight"),
    "svmlight": ("svmlight",),
    "crfsuite-model": ("dualfield", "json"),
    "dualfield": ("json",),
}
_TARGETS = ("conll", "crfsuite", "svmlight", "dualfield", "json")
_SUFFIXES = {
    **dict.fromkeys((".conll", ".txt", ".tsv", ".bio", ".iob"), "conll"),
    **dict.fromkeys((".crfsuite", ".items", ".crf"), "crfsuite"),
    **dict.fromkeys((".svmlight", ".svm", ".libsvm"), "svmlight"),
    **dict.fromkeys((".model", ".dualfield", ".safetensors"), "dualfield"),
    ".json": "json",
}
_POSSIBLE = "; ".join(f"{source} to {' or '.join(targets)}" for source, targets in _ROUTES.items())


@click.command(epilog="Example: dualfield convert train.txt train.items --template chunking")
@click.argument("source", metavar="IN", type=options.INPUT)
@click.argument("target", metavar="OUT", type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--from",
    "from_",
    type=click.Choice(["auto", *_ROUTES]),
    default="auto",
    show_default=True,
    help="Format of IN. auto detects it from the content.",
)
@click.option(
    "--to", type=click.Choice(_TARGETS), default=None, help="Format of OUT.  [default: as the suffix of OUT says]"
)
@options.template
@options.delimiter
@options.encoding
def convert(
    source: str, target: str, from_: str, to: str | None, template: str | None, delimiter: str, encoding: str
) -> None:
    """Write data or a model in another format.

    Columns become CRFsuite's items by a template, and items become svmlight's examples, one for each token. A model of
    CRFsuite becomes one of dualfield, and every model JSON. Files that end in .gz are compressed.
    """
    target = "-" if is_standard_output(target) else target
    inputs = [("IN", source), ("--template", None if template in BUILT_IN else template)]
    check_outputs(inputs, [("OUT" if target != "-" else STANDARD_OUTPUT[0], target)])
    from_ = _format_of(source, encoding) if from_ == "auto" else from_
    to = to or _SUFFIXES.get(_suffix(target))
    if to is None:
        raise click.UsageError(f"Name the format of {target} with --to: its suffix is unknown. Possible: {_POSSIBLE}.")
    if to not in _ROUTES[from_]:
        raise click.UsageError(f"{shown(source)} is {from_}, which cannot become {to}. Possible: {_POSSIBLE}.")
    if target == "-" and to == "dualfield":
        raise click.UsageError("A model cannot go to standard output: name a file.")
    if template is not None and (from_ != "conll" or to == "conll"):
        raise click.UsageError("--template is for columns that become CRFsuite's items or svmlight's examples.")
    if from_ in FORMATS:
        data = read_labelled([source], from_, delimiter, encoding=encoding)
        click.echo(f"{data.name}: {FORMATS[from_]}: {data}", err=True)
        _write_data(data, target, to, template)
    else:
        _write_model(Path(source), target, to)


def _suffix(path: str) -> str:
    return Path(path.removesuffix(".gz")).suffix.lower()


def _format_of(path: str, encoding: str) -> str:
    if not is_regular(path):
        raise click.UsageError(f"Name the format of {shown(path)} with --from. Possible: {_POSSIBLE}.")
    with Path(path).open("rb") as file:
        begin = file.read(9)
    if begin[:4] == b"lCRF":
        return "crfsuite-model"
    if begin[8:9] == b"{":
        return "dualfield"
    return guess_format(opened(path, encoding), path)


def _write_data(data: LabelledData, target: str, to: str, template: str | None) -> None:
    from dualfield.io import write_conll, write_crfsuite_items, write_svmlight

    out: Any = sys.stdout if target == "-" else target
    if to == data.format == "svmlight":
        write_svmlight(data.X, data.y, out)
    elif to == "conll":
        rows = [[(*row, label) for row, label in zip(*pair, strict=True)] for pair in zip(data.X, data.y, strict=True)]
        write_conll(rows, out, separator="\t" if any(" " in cell for s in rows for row in s for cell in row) else " ")
    elif to == "crfsuite":
        write_crfsuite_items(_items(data, template), data.y, out)
    else:
        X, labels = _examples(data, template)
        write_svmlight(X, labels, out)


def _batch(data: LabelledData, template: str | None) -> Any:
    """Return the attributes of all tokens."""
    from dualfield.cli.reading.templates import read_template
    from dualfield.data import Batch

    if data.format == "crfsuite":
        return Batch.build(data.X)
    chosen = read_template(template, data)
    if chosen.has_pairs:
        raise click.ClickException("The template has attributes of pairs of labels, which the format cannot express.")
    return chosen.read(data.X).nodes


def _items(data: LabelledData, template: str | None) -> Any:
    if data.format == "crfsuite":
        return data.X
    batch = _batch(data, template)
    names, columns = list(batch.vocabulary), batch.indices.tolist()
    starts, offsets = batch.indptr.tolist(), batch.offsets.tolist()
    items = [[names[column] for column in columns[a:b]] for a, b in itertools.pairwise(starts)]
    return [items[a:b] for a, b in itertools.pairwise(offsets)]


def _examples(data: LabelledData, template: str | None) -> tuple[Any, list[str]]:
    """Return a row for each token; labels that are no numbers are numbered from 0 in sorted order, and listed."""
    flat = [label for labels in data.y for label in labels]
    batch = _batch(data, template)
    if all(label.lstrip("+-").isdecimal() for label in data.labels):
        return batch.to_csr(), flat
    codes = {label: str(code) for code, label in enumerate(data.labels)}
    click.echo("Labels: " + ", ".join(f"{code} is {label}" for label, code in codes.items()), err=True)
    return batch.to_csr(), [codes[label] for label in flat]


def _write_model(source: Path, target: str, to: str) -> None:
    from dualfield.cli.model_record import model_record
    from dualfield.cli.models import load_model
    from dualfield.io.text_lines import write_lines

    loaded = load_model(source, for_data=False)
    if to == "dualfield":
        loaded.model.n_jobs = None
        loaded.model.save(target)
        return
    text = json.dumps(model_record(loaded), ensure_ascii=False, indent=1)
    write_lines(sys.stdout if target == "-" else target, [text])
