"""``dualfield rank``: which sentences to label next."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from dualfield.cli import options
from dualfield.cli.help_pages import Command

__all__ = ["rank"]

_SECTIONS = {
    "Data": ("labelled", "delimiter", "encoding", "columns", "is_text"),
    "Model": ("model", "by", "per", "threads"),
    "Output": ("output", "top", "sentences"),
}
_EXAMPLES = [
    "dualfield rank --model names.model test.txt --top 50",
    "dualfield rank --model names.model --text letter.txt --top 20 --sentences",
]
_LONGEST = 100  # characters of a sentence that are shown


@click.command(cls=Command, sections=_SECTIONS, examples=_EXAMPLES)
@click.argument("files", type=options.INPUT, nargs=-1)
@click.option("--model", type=options.FILE, required=True, help="The model, of dualfield or of CRFsuite.")
@click.option(
    "--by",
    type=click.Choice(["entropy", "least_confidence", "bald"]),
    default="entropy",
    show_default=True,
    help="Entropy of the labels; minus the log-probability of the best labelling; or, for models that consist of "
    "several, what these disagree about.",
)
@click.option(
    "--per",
    type=click.Choice(["token", "sentence"]),
    default="token",
    show_default=True,
    help="Divide by the number of tokens, which is what labelling costs, or not.",
)
@click.option("--top", type=click.IntRange(1), default=None, help="Write only so many.  [default: all]")
@click.option("--sentences", is_flag=True, help="Write the sentences as they are in the data, to be labelled.")
@click.option("--output", type=options.OUTPUT, default=None, help="Write to this file.  [default: standard output]")
@click.option(
    "--labelled/--no-label",
    default=None,
    help="Whether the data have labels too: in the last column, or in front of items.  [default: detected]",
)
@options.delimiter
@options.encoding
@options.columns
@click.option("--text", "is_text", is_flag=True, help="Read plain text, one sentence in a line.")
@options.threads
def rank(
    files: tuple[str, ...],
    model: Path,
    by: str,
    per: str,
    top: int | None,
    sentences: bool,
    output: Path | None,
    labelled: bool | None,
    delimiter: str,
    encoding: str,
    columns: tuple[int, ...] | None,
    is_text: bool,
    threads: int,
) -> None:
    """Say which sentences to label next.

    Reads FILES, or standard input, and writes a line for each sentence, the one that the model knows least about first:
    its value, its number in the data, counted from 1, and its words. Labels that are there are not read.
    """
    from dualfield.cli.labelling.labellings import Style
    from dualfield.cli.labelling.lines import write_to
    from dualfield.cli.labelling.pool import read_pool
    from dualfield.cli.models import load_model
    from dualfield.cli.outputs import check_outputs, is_standard_output
    from dualfield.cli.tag import check_columns
    from dualfield.io.text_lines import write_lines

    files = files or ("-",)
    output = None if output is None or is_standard_output(output) else output
    check_outputs([("--model", model), *(("FILES", path) for path in files)], [("--output", output or "-")])
    loaded = load_model(model, threads=threads)
    loaded.check_probabilities("rank")
    check_columns(loaded, labelled, columns, is_text)
    style = Style(labelled=labelled, delimiter=delimiter, encoding=encoding, columns=columns, is_text=is_text)
    pool = [one for path in files for one in read_pool(loaded, path, style)]
    if not pool:
        raise click.ClickException("There are no sentences in the data.")
    X: Any = [one.x for one in pool]
    if loaded.kind == "svmlight":
        import scipy.sparse

        X = scipy.sparse.vstack(X, format="csr")
    found = loaded.model.rank_for_labelling(X, by=by, per=per)
    chosen = found.order[:top].tolist()

    def lines() -> Iterator[list[str]]:
        for at in chosen:
            text = pool[at].text if len(pool[at].text) <= _LONGEST else pool[at].text[: _LONGEST - 3] + "..."
            yield pool[at].lines if sentences else [f"{found.values[at]:.4f} {at + 1} {text}"]

    if output is None:
        write_to(sys.stdout.buffer, lines())
    else:
        write_lines(output, itertools.chain.from_iterable(lines()))
