"""``dualfield compile``: text into a corpus on disk, for data that do not fit into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dualfield.cli import options
from dualfield.cli.help_pages import Command
from dualfield.cli.program import tell

__all__ = ["compile"]

_SECTIONS = {
    "Data": ("kind", "delimiter", "encoding", "columns", "label", "template"),
    "Corpus": ("parts", "shuffle", "overwrite"),
    "Running": ("threads", "quiet"),
}
_EXAMPLES = [
    "dualfield compile 'corpus/*.gz' out --parts 64 --threads 8",
    "dualfield compile train.txt out --template chunking --shuffle 1",
]


@click.command(cls=Command, sections=_SECTIONS, examples=_EXAMPLES)
@click.argument("data", nargs=-1, required=True)
@click.argument("target", metavar="OUT", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--format",
    "kind",
    type=click.Choice(["auto", "conll", "crfsuite", "parquet"]),
    default="auto",
    show_default=True,
    help="Format of the data: columns with the label last, CRFsuite's items, or tables with a row for each token and "
    "columns sentence_id, label and attributes. auto detects it, and all files must have the same.",
)
@options.delimiter
@options.encoding
@options.columns
@options.label_column
@options.template
@click.option("--parts", type=click.IntRange(1, 1_000_000), default=64, show_default=True, help="Number of partitions.")
@click.option(
    "--shuffle",
    metavar="SEED",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed by which sentences are shuffled over the partitions.",
)
@click.option("--overwrite", is_flag=True, help="Replace a compiled corpus at OUT, when the new one is complete.")
@click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Number of processes; the result does not depend on it.",
)
@options.quiet
def compile(data: tuple[str, ...], target: Path, quiet: bool, **given: Any) -> None:
    """Compile labelled text into a corpus on disk, for training on data that do not fit into memory.

    DATA are files, also compressed with gzip, or patterns such as 'corpus/*.gz': columns with a token in each line,
    its label last and a blank line between sentences; CRFsuite's items; or Parquet. OUT is the folder to make.
    Sentences are shuffled into partitions, which are read from disk when they are needed. After a kill or a full disk,
    the same command goes on where it was.
    """
    from dualfield.cli.compiling import run

    corpus, seconds, n_read = run(data, target, quiet=quiet, **given)
    if quiet:
        return
    size = sum(file.stat().st_size for file in target.iterdir())
    tell(
        f"{target}: {corpus.n_examples:,} sentences, {corpus.n_nodes:,} tokens, {corpus.labels.n_classes} labels, "
        f"{corpus.n_columns:,} attributes; {corpus.n_parts:,} parts, {corpus.n_blocks:,} blocks, {size / 1e6:,.1f} MB."
    )
    if n_read and seconds > 0:
        tell(f"{seconds:.1f} s, {n_read / seconds:,.0f} tokens/s.")
