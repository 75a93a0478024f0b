"""``dualfield convert``: write data or a model in another format."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from dualfield.cli import options
from dualfield.cli.converted_data import JSON_TARGETS, data_of
from dualfield.cli.help_pages import Command
from dualfield.cli.outputs import STANDARD_OUTPUT, check_outputs, is_standard_output
from dualfield.cli.reading.data_files import FORMATS, guess_format, read_labelled
from dualfield.cli.reading.json_data import JSON_FORMATS, JsonChoice
from dualfield.cli.reading.sources import is_regular, opened, shown
from dualfield.cli.reading.templates import BUILT_IN

__all__ = ["convert"]

# From a format to those it can become.
_OF_TOKENS = ("conll", "crfsuite", "svmlight", *JSON_TARGETS)
_ROUTES = {
    "conll": _OF_TOKENS,
    "crfsuite": ("crfsuite", "svmlight"),
    "svmlight": ("svmlight",),
    "multilabel": ("multilabel",),
    **dict.fromkeys(JSON_FORMATS, _OF_TOKENS),
    "graphs": ("graphs",),
    "crfsuite-model": ("dualfield", "json"),
    "dualfield": ("json",),
}
_TARGETS = (*_OF_TOKENS, "multilabel", "graphs", "dualfield", "json")
_SUFFIXES = {
    **dict.fromkeys((".conll", ".txt", ".tsv", ".bio", ".iob"), "conll"),
    **dict.fromkeys((".crfsuite", ".items", ".crf"), "crfsuite"),
    **dict.fromkeys((".svmlight", ".svm", ".libsvm"), "svmlight"),
    **dict.fromkeys((".model", ".dualfield", ".safetensors"), "dualfield"),
    **dict.fromkeys((".jsonl", ".ndjson"), "spans"),
    ".json": "json",
}
_SCHEMES = [
    "iob1",
    "bio",
    "iob2",
    "bioes",
    "iobes",
]  # those of dualfield.data.span_labels, which takes a while to import
_POSSIBLE = "; ".join(f"{source} to {' or '.join(targets)}" for source, targets in _ROUTES.items())


_SECTIONS = {
    "Formats": ("from_", "to"),
    "Labels": ("scheme", "from_scheme", "alignment", "label_names"),
    "Columns": ("template", "delimiter", "encoding"),
}
_EXAMPLES = [
    "dualfield convert train.txt train.items --template chunking",
    "dualfield convert train.txt train.bioes.txt --scheme bioes",
    "dualfield convert train.txt train.jsonl",
]


@click.command(cls=Command, sections=_SECTIONS, examples=_EXAMPLES)
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
@click.option(
    "--scheme",
    type=click.Choice(_SCHEMES, case_sensitive=False),
    default=None,
    help="Write labels in this scheme; iob2 is bio, and iobes is bioes.  [default: as they are, bio for spans]",
)
@click.option(
    "--from-scheme",
    type=click.Choice([*_SCHEMES, "any"], case_sensitive=False),
    default=None,
    help="Scheme of the labels in IN; any reads labels as conlleval does, also where they follow no scheme.  [default: "
    "detected]",
)
@options.template
@options.delimiter
@options.encoding
@options.alignment
@options.label_names
def convert(source: str, target: str, from_: str, to: str | None, **given: Any) -> None:
    """Write data or a model in another format.

    Columns become CRFsuite's items by a template, and items become svmlight's examples, one for each token. Columns and
    JSON become each other: spans is the form of Prodigy, doccano that of Doccano, tokens that of Hugging Face. A model
    of CRFsuite becomes one of dualfield, and every model JSON. Graphs and examples with several labels are checked, and
    written one in a line. Files that end in .gz are compressed with gzip.
    """
    template, encoding = given["template"], given["encoding"]
    target = "-" if is_standard_output(target) else target
    inputs = [("IN", source), ("--template", None if template in BUILT_IN else template)]
    check_outputs(inputs, [("OUT" if target != "-" else STANDARD_OUTPUT[0], target)])
    from_ = _format_of(source, encoding) if from_ == "auto" else from_
    to = to or _SUFFIXES.get(_suffix(target))
    # Suffixes that several formats share: what they are follows from what is read.
    to = {("graphs", "spans"): "graphs", ("multilabel", "svmlight"): "multilabel"}.get((from_, to or ""), to)
    if to is None:
        raise click.UsageError(f"Name the format of {target} with --to: its suffix is unknown. Possible: {_POSSIBLE}.")
    if to not in _ROUTES[from_]:
        raise click.UsageError(f"{shown(source)} is {from_}, which cannot become {to}. Possible: {_POSSIBLE}.")
    if target == "-" and to == "dualfield":
        raise click.UsageError("A model cannot go to standard output: name a file.")
    _check_options(from_, to, given)
    if from_ in FORMATS:
        json_choice = JsonChoice(given["alignment"], given["label_names"], given["scheme"] or "BIO")
        data = read_labelled([source], from_, given["delimiter"], encoding=encoding, json=json_choice)
        click.echo(f"{data.name}: {FORMATS[from_]}: {data}", err=True)
        data_of(data, from_, json_choice, given).write(target, to)
    else:
        _write_model(Path(source), target, to)


def _check_options(from_: str, to: str, given: dict[str, Any]) -> None:
    """Refuse options that do not fit the formats."""
    if given["template"] is not None and (
        from_ in ("crfsuite", "svmlight", "multilabel", "graphs") or to not in ("crfsuite", "svmlight")
    ):
        raise click.UsageError("--template is for columns that become CRFsuite's items or svmlight's examples.")
    for option in ("scheme", "from_scheme"):
        of_sequences = to in _OF_TOKENS and "svmlight" not in (from_, to)
        if given[option] is not None and not of_sequences:
            raise click.UsageError(f"--{option.replace('_', '-')} is for labels of sequences.")
    if given["scheme"] is not None and to in ("spans", "doccano"):
        raise click.UsageError(f"--scheme is for labels of tokens; {to} has spans.")
    if given["from_scheme"] is not None and from_ == "spans":
        raise click.UsageError("--from-scheme is for labels of tokens; IN has spans.")


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
