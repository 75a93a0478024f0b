"""A compiled corpus as DATA of ``dualfield train``: it stays on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli.training.end import Options

if TYPE_CHECKING:
    from dualfield.data import CompiledCorpus
    from dualfield.features import Template
    from dualfield.io import FileColumns

# Options that were settled when the corpus was compiled, and such as need sentences in memory.
_SETTLED = ("kind", "template", "columns", "label", "alignment", "label_names")
_IN_MEMORY = (
    *("structure", "max_length", "segment_features", "span_features", "root", "non_projective", "arc_features"),
    *("inference", "budget", "kernel", "gamma", "degree", "coef0"),
)


class CorpusData:
    """What the command needs to know of a compiled corpus, by the names that labelled data have.

    Attributes
    ----------
    X : CompiledCorpus
        The sentences, with their labels.
    name : str
        What messages call it: the folder as it was given.
    """

    y: Any = None
    graphs: Any = None
    label_graph: Any = None

    def __init__(self, corpus: CompiledCorpus, name: str) -> None:
        self.X, self.name = corpus, name
        # Rows of columns, or attributes: whatever the input was, dev data have the same.
        self.format = self.form = "crfsuite" if corpus.columns is None else "conll"
        self.sources = ((name, None),)

    @property
    def labels(self) -> list[str]:
        """The distinct labels, sorted."""
        return sorted(map(str, self.X.labels.classes.tolist()))

    @property
    def columns(self) -> FileColumns | None:
        """Which columns of the input were read."""
        from dualfield.io import FileColumns

        return None if self.X.columns is None else FileColumns(*self.X.columns)

    @property
    def template(self) -> Template | None:
        """What made the attributes."""
        from dualfield.features import Template

        return None if self.X.template is None else Template(*self.X.template)

    def __str__(self) -> str:
        corpus = self.X
        return f"{corpus.n_examples:,} sentences, {corpus.n_nodes:,} tokens, {len(corpus.labels)} labels"


def is_corpus(given: Options) -> bool:
    """Tell whether the data are a folder; there must be one then."""
    folders = [path for path in given["data"] if path != "-" and Path(path).is_dir()]
    if folders and len(given["data"]) > 1:
        raise click.UsageError(f"{folders[0]} is a folder: a compiled corpus must be the only DATA.")
    if given["memory"] is not None and not folders:
        raise click.UsageError("--memory is for compiled corpora; see `dualfield compile`.")
    return bool(folders)


def open_corpus(given: Options, chosen: set[str]) -> CorpusData:
    """Open the corpus that the options name, and refuse options that do not go with it."""
    from dualfield.data import CompiledCorpus, CorpusFileError

    for names, reason in (
        (_SETTLED, "was settled when the corpus was compiled"),
        (_IN_MEMORY, "is not for compiled corpora"),
    ):
        for name in names:
            if name in chosen:
                raise click.UsageError(f"--{'format' if name == 'kind' else name.replace('_', '-')} {reason}.")
    if isinstance(given["C"], str) or given["calibrate"] == "cv":
        raise click.UsageError(
            "--C auto, --C evidence and --calibrate cv are for data in memory: they train on them several times."
        )
    try:
        return CorpusData(CompiledCorpus(given["data"][0]), given["data"][0])
    except CorpusFileError as error:
        raise click.ClickException(str(error)) from None


def like_corpus(given: Options, data: CorpusData) -> Options:
    """Return options by which other data are read as the corpus was."""
    columns = data.columns
    return given if columns is None else given | {"columns": tuple(columns.features), "label": columns.label}
