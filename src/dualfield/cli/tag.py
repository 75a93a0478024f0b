"""``dualfield tag``: predict labels with a trained model."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dualfield.cli import options
from dualfield.cli.help_pages import Command
from dualfield.cli.reading.data_files import FORMATS

if TYPE_CHECKING:
    from dualfield.cli.labelling.labellings import Style
    from dualfield.cli.models import LoadedModel

__all__ = ["tag"]


_SECTIONS = {
    "Data": ("labelled", "delimiter", "encoding", "columns", "is_text"),
    "Model": ("model", "mmap", "threads", "cluster"),
    "Output": ("output", "output_dir", "to", "marginals", "k_best"),
}
_EXAMPLES = [
    "dualfield tag --model chunks.model test.txt --output tagged.txt",
    "dualfield tag --model names.model --text letter.txt --to spans --marginals",
    "dualfield tag --model graphs.model new.jsonl --marginals",
    "dualfield tag --model names.model 'corpus/*.gz' --output-dir tagged",
]


@click.command(cls=Command, sections=_SECTIONS, examples=_EXAMPLES)
@click.argument("files", type=options.INPUTS, nargs=-1, callback=options.expanded)
@click.option("--model", type=options.FILE, required=True, help="The model, of dualfield or of CRFsuite.")
@click.option("--output", type=options.OUTPUT, default=None, help="Write to this file.  [default: standard output]")
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Write a file for each of FILES into this folder, of the same name without .gz.",
)
@click.option(
    "--marginals",
    type=click.Choice(["best", "all"]),
    is_flag=False,
    flag_value="best",
    default=None,
    help="Also write the probability of the predicted label, or of all labels.",
)
@click.option(
    "--k-best",
    type=click.IntRange(1, 10_000),
    default=None,
    help="Number of best labellings to write for each sentence.",
)
@click.option(
    "--labelled/--no-label",
    default=None,
    help="Whether the data have the true label too: in the last column, or in front of items.  [default: detected]",
)
@options.delimiter
@options.encoding
@options.columns
@click.option(
    "--text",
    "is_text",
    is_flag=True,
    help="Read plain text, one sentence in a line. Writes token, begin, end (places of characters in the line, counted "
    "from 0) and label. For trees: tokens with blanks between them, with tags such as dog/NN if the model has tags.",
)
@click.option(
    "--to",
    type=click.Choice(["conll", "spans", "doccano", "tokens"]),
    default=None,
    help="Write columns, or JSON Lines: text with spans (as Prodigy or Doccano read it), or tokens with tags.  "
    "[default: as the input]",
)
@click.option("--mmap", is_flag=True, help="Memory-map the model file instead of reading all of it.")
@options.threads
@options.cluster
def tag(
    files: tuple[str, ...],
    model: Path,
    output: Path | None,
    output_dir: Path | None,
    marginals: str | None,
    k_best: int | None,
    labelled: bool | None,
    delimiter: str,
    encoding: str,
    columns: tuple[int, ...] | None,
    is_text: bool,
    to: str | None,
    mmap: bool,
    threads: int,
    cluster: str | None,
) -> None:
    """Predict the labels of data with a trained model.

    Reads FILES one after another, or standard input. Of columns the same lines are written, with the predicted label in
    a new last column, ready for conlleval or `dualfield evaluate`. JSON of Prodigy, Doccano and Hugging Face is written
    with the predicted spans or tags in it, to be corrected by an annotator, and so are graphs, with their labels, and
    CoNLL-U, with heads and labels of arcs. Of
    CRFsuite's items and svmlight's examples the label is written, one in a line; of several labels all, with commas
    between them. Models of trees read trees, columns of words and tags, or --text, and write a tree for each sentence.
    Output comes as soon as sentences or graphs are complete.
    """
    from dualfield.cli.labelling.labellings import Style
    from dualfield.cli.labelling.lines import tagged_lines, write_to
    from dualfield.cli.models import load_tagger
    from dualfield.cli.outputs import check_outputs, is_standard_output
    from dualfield.io.text_lines import write_lines

    files = files or ("-",)
    _check_places(files, output, output_dir, cluster)
    output = None if output is None or is_standard_output(output) else output
    check_outputs([("--model", model), *(("FILES", path) for path in files)], [("--output", output or "-")])
    loaded = load_tagger(model, mmap=mmap, threads=threads)
    if loaded.kind == "conllu" and marginals == "all":
        raise click.UsageError(
            f"--marginals all is not for {model}, which has trees. --marginals writes those of heads."
        )
    if k_best and loaded.kind not in ("conll", "crfsuite", "conllu", "trees"):
        labelled_things = "graphs" if loaded.kind == "graphs" else "single examples"
        raise click.UsageError(f"--k-best is for sentences; {model} labels {labelled_things}. Use --marginals all.")
    if marginals or k_best:
        loaded.check_probabilities("--marginals" if marginals else "--k-best")
    if k_best and not hasattr(loaded.model, "k_best"):
        raise click.UsageError(f"--k-best is not for {model}: sums over sub-states have no list of best labellings.")
    check_columns(loaded, labelled, columns, is_text)
    style = Style(
        marginals=marginals,
        k_best=k_best or 0,
        labelled=labelled,
        delimiter=delimiter,
        encoding=encoding,
        columns=columns,
        is_text=is_text,
        to=to or "",
    )
    _check_output(loaded, style)
    if output_dir is not None:
        from dualfield.cli.by_file import tag_files

        tag_files(files, output_dir, cluster, model, style, mmap, threads)
        return
    groups = itertools.chain.from_iterable(tagged_lines(loaded, path, style) for path in files)
    if output is None:
        write_to(sys.stdout.buffer, groups)
    else:
        write_lines(output, itertools.chain.from_iterable(groups))


def _check_places(files: tuple[str, ...], output: Path | None, output_dir: Path | None, cluster: str | None) -> None:
    """Refuse options about files that do not go together."""
    if output is not None and output_dir is not None:
        raise click.UsageError("--output-dir is in place of --output.")
    if cluster is not None and output_dir is None:
        raise click.UsageError("--cluster needs --output-dir: a file is written for each of FILES.")
    if output_dir is not None and "-" in files:
        raise click.UsageError("--output-dir needs FILES: standard input has no name.")


def _check_output(loaded: LoadedModel, style: Style) -> None:
    """Refuse forms of output that do not fit the model or the other options."""
    from dualfield.cli.labelling.json_lines import JsonWriter

    if not style.to:
        return
    if loaded.kind != "conll":
        raise click.UsageError(f"--to is not for {loaded.path}, a model for {FORMATS[loaded.kind]}.")
    if style.writes_json and (style.k_best or style.marginals == "all"):
        option = "--k-best" if style.k_best else "--marginals all"
        raise click.UsageError(f"{option} is for columns. With --to {style.to}, --marginals writes a probability each.")
    JsonWriter(loaded, style.to, bool(style.marginals)).check()


def check_columns(loaded: LoadedModel, labelled: bool | None, columns: tuple[int, ...] | None, is_text: bool) -> None:
    """Refuse options about columns and text that do not fit the model or each other."""
    for option, is_given in (("--columns", columns is not None), ("--text", is_text)):
        if is_given and loaded.kind not in ("conll", "trees"):
            raise click.UsageError(f"{option} is not for {loaded.path}, a model for {FORMATS[loaded.kind]}.")
    for option, is_given in (("--columns", columns is not None), ("--labelled", labelled is True)):
        if is_given and is_text:
            raise click.UsageError(f"{option} is for files of columns; --text has none.")
    if is_text and loaded.kind == "conll" and loaded.n_columns != 1:
        raise click.UsageError(
            f"--text gives tokens only, one column; the template of {loaded.path} reads {loaded.n_columns}. "
            "Tag a file with these columns, or train on tokens and labels alone."
        )
