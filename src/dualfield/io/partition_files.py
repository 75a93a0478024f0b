"""Files of labelled text as partitions: each is read where it is worked on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dualfield.data import Batch, Partition, merge_partitions
from dualfield.features import Template
from dualfield.io.compiling.chunk_reading import chunks_of, read_chunk
from dualfield.io.compiling.compile import line_of_first_row
from dualfield.io.compiling.inputs import input_paths, make_plan
from dualfield.io.compiling.plan import Form, Plan
from dualfield.io.file_columns import FileColumns


class PartitionFiles(NamedTuple):
    r"""Files that are partitions, and how they are read.

    Attributes
    ----------
    plan : Plan
        Files, format, columns and template.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualfield.io.partition_files import partition_files, read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("Rex NN B\nbarks VB O\n")
    ...     files = partition_files(folder + "/*.txt", template="U:%x[0,0]")
    ...     read_file(files.items()[0]).nodes
    <Batch of 1 examples, 2 nodes, 2 columns, sparse>
    """

    plan: Plan

    @property
    def names(self) -> list[str]:
        """Paths of the files, from the root: workers may run in another folder."""
        return [os.path.abspath(file.path) for file in self.plan.files]  # noqa: PTH100 (links stay as they are)

    @property
    def template(self) -> Template | None:
        """What makes attributes of columns."""
        return self.plan.read_template()

    @property
    def columns(self) -> FileColumns | None:
        """The columns of the files."""
        return None if self.plan.columns is None else FileColumns(*self.plan.columns)

    def items(self) -> list[Plan]:
        """Return what :func:`read_file` takes, for each file.

        Returns
        -------
        list
            Small values that can be sent.
        """
        files = zip(self.plan.files, self.names, strict=True)
        return [replace(self.plan, files=(file._replace(path=name),)) for file, name in files]


def partition_files(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, template: Template | str | None, **reading: Any
) -> PartitionFiles:
    """Look at files, each of which is a partition, and settle how they are read.

    Parameters
    ----------
    paths : path, glob or list of them
        The files, compressed or not.
    template : Template, str or None
        For columns of text, the label last. None: CRFsuite's items, or Parquet for names that end so.
    **reading : object
        ``separator``, ``encoding``, ``columns`` and ``label``, as for :func:`dualfield.io.compile_corpus`.

    Returns
    -------
    PartitionFiles
        What is needed to read them.

    Examples
    --------
    >>> from dualfield.io.partition_files import partition_files
    >>> partition_files("no-such-folder/*.gz", template=None)
    Traceback (most recent call last):
        ...
    FileNotFoundError: no-such-folder/*.gz: there is no such file.
    """
    found = input_paths(list(paths) if isinstance(paths, Sequence) and not isinstance(paths, str) else paths)
    form: Form = "crfsuite" if template is None else "conll"
    if Path(found[0]).suffix == ".parquet":
        form = "parquet"
    return PartitionFiles(make_plan(found, len(found), 0, form=form, template=template, **reading))


def read_file(plan: Plan) -> Partition:
    """Read one file.

    Parameters
    ----------
    plan : Plan
        One of :meth:`PartitionFiles.items`.

    Returns
    -------
    Partition
        Its sentences, with a vocabulary of their own; an empty file is an empty partition.

    Raises
    ------
    ValueError
        If it is damaged; the message names file and line.
    """
    parts, start = [], 1
    for chunk in chunks_of(plan, 0):
        if chunk.number == 0 and plan.form == "conll":
            start = line_of_first_row(chunk)
        parts.append(read_chunk(plan, chunk, start).partition)
    return joined(parts)


def joined(parts: list[Partition]) -> Partition:
    """Return partitions as one."""
    full = [part for part in parts if part.nodes.n_nodes]
    if not full:
        return Partition.build([], [])
    if len(full) == 1:
        return full[0]
    merged = merge_partitions([part.summary for part in full])
    rows = [part.to_global(merged, at) for at, part in enumerate(full)]
    pairs = None if merged.pair_vocabulary is None else _stacked([one.pairs for one in rows if one.pairs is not None])
    return Partition(
        _stacked([one.nodes for one in rows]), pairs, merged.labels, np.concatenate([r.codes for r in rows])
    )


def _stacked(batches: list[Batch]) -> Batch:
    """Return rows of the same columns one below the other."""

    def bounds(name: str) -> Any:
        steps = [np.diff(getattr(batch, name)) for batch in batches]
        return np.concatenate([[0], np.cumsum(np.concatenate(steps))]).astype(np.int64)

    weighted = any(batch.values is not None for batch in batches)
    entries = [np.ones(b.indices.size) if b.values is None else b.values for b in batches if b.indices is not None]
    return Batch(
        bounds("offsets"),
        batches[0].n_columns,
        indptr=bounds("indptr"),
        indices=np.concatenate([batch.indices for batch in batches if batch.indices is not None]),
        values=np.concatenate(entries) if weighted else None,
        vocabulary=batches[0].vocabulary,
    )
