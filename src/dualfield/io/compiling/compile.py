"""From files of text to a compiled corpus."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dualfield.data import CompiledCorpus, CorpusFileError, Partition
from dualfield.data.compiled.folder import FolderBuilder
from dualfield.data.compiled.header import CorpusOrigin, TemplateText
from dualfield.data.compiled.pieces import Piece, write_piece
from dualfield.features import Template
from dualfield.io.compiling.chunk_reading import chunks_of, read_chunk
from dualfield.io.compiling.disk_space import check_disk_space
from dualfield.io.compiling.inputs import input_paths, is_files, make_plan, template_of
from dualfield.io.compiling.plan import Form, Plan
from dualfield.io.compiling.running import CompileProgress, Runner, Tell
from dualfield.io.compiling.text_chunks import Chunk
from dualfield.io.compiling.working_folder import WorkingFolder, check_target

__all__ = ["compile_corpus"]


def compile_corpus(
    data: Any,
    target: str | os.PathLike[str],
    *,
    parts: int = 64,
    seed: int = 0,
    form: Form | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    columns: Iterable[int] | None = None,
    label: int | None = None,
    template: Template | str | None = None,
    n_jobs: int = 1,
    overwrite: bool = False,
    progress: Tell | None = None,
) -> CompiledCorpus:
    r"""Compile labelled sentences into partitions on disk, for data that do not fit into memory.

    Sentences are shuffled by a seed. The result, byte by byte, depends neither on the number of processes nor on
    whether files are compressed. Attributes are numbered as they first occur in the shuffled corpus, equal to
    :meth:`Batch.build <dualfield.data.Batch.build>` of all sentences in that order.

    Memory is bounded by the distinct attributes and their counts, and for each process by a chunk of 16 MB of text with
    its attributes, or a partition: take more `parts` where a partition is too large.

    Finished pieces of files are kept in a folder beside the target until the corpus is complete: after a kill or a full
    disk the same call goes on from there.

    Parameters
    ----------
    data : path, glob, list of paths, or iterable of pairs (X, y)
        Files of text, compressed or not; or pairs of lists of sentences and of labels, each of which is one piece that
        fits into memory. Sentences are items as for :meth:`Batch.build <dualfield.data.Batch.build>`, or with a
        template its rows.
    target : path
        The folder to make.
    parts : int, default=64
        Into how many partitions.
    seed : int, default=0
        Of the shuffle.
    form : {"conll", "crfsuite", "parquet"} or None
        The format of files: columns, CRFsuite's items, or tables with a row for each token and columns ``sentence_id``,
        ``label`` and ``attributes``. None: parquet for names that end so, else columns.
    separator : str, default=None
        What separates columns: None, any run of spaces and tabs; exactly one tab or space.
    encoding : str, default="utf-8"
        Of the text.
    columns : iterable of int, default=None
        The columns to read, in the order in which the template counts them; None: all but the label.
    label : int, default=None
        The column of the label; None: the last.
    template : Template, str or None
        What makes attributes of columns: a template, its text, "default" or "chunking". None: "default" for files in
        columns, none for pairs (X, y).
    n_jobs : int, default=1
        Number of processes.
    overwrite : bool, default=False
        Whether a compiled corpus at the target is replaced, when the new one is complete.
    progress : callable, default=None
        Is called with a :class:`CompileProgress`.

    Returns
    -------
    CompiledCorpus
        The corpus, open.

    Raises
    ------
    ValueError
        If the input is not sound; the message names file and line.
    OSError
        If the target exists or cannot be written, or the disk is full or will be.

    See Also
    --------
    dualfield.data.CompiledCorpus : What comes out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dualfield.io import compile_corpus
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = Path(folder, "train.txt")
    ...     _ = text.write_text("He PRP B-NP\nran VBD B-VP\n\nStop VB B-VP\n")
    ...     compile_corpus(text, Path(folder, "corpus"), parts=2, template="chunking")
    <CompiledCorpus of 2 examples, 3 nodes, 16 columns, 2 parts, 2 blocks>
    """
    target = Path(target)
    _check_int("parts", parts, 1, 1_000_000)
    _check_int("seed", seed, 0, 2**63 - 1)
    _check_int("n_jobs", n_jobs, 1, 1024)
    check_target(target, overwrite)
    runner = Runner(n_jobs, progress or _silent)
    if not is_files(data):
        return _compile_pairs(data, target, parts, seed, template_of(template, 1), runner)
    plan = make_plan(
        input_paths(data),
        parts,
        seed,
        form=form,
        separator=separator,
        encoding=encoding,
        columns=columns,
        label=label,
        template=template,
    )
    return run_plan(plan, target, runner)


def run_plan(plan: Plan, target: Path, runner: Runner) -> CompiledCorpus:
    """Compile what a plan says, or go on with what was begun."""
    with WorkingFolder(target, plan.text()).opened() as work:
        if not work.all_read.exists():
            check_disk_space(plan, work.target, work.nbytes())
            _read_files(plan, work, runner)
            work.all_read.touch()
        work.publish(_built(work, plan.n_parts, plan.origin, runner))
    return CompiledCorpus(target)


def _built(work: WorkingFolder, n_parts: int, origin: CorpusOrigin, runner: Runner) -> Path:
    return FolderBuilder(work.path, sorted(work.pieces.glob("[0-9]*.bin")), runner.run).build(n_parts, origin)


def _read_files(plan: Plan, work: WorkingFolder, runner: Runner) -> None:
    total, before = sum(file.nbytes for file in plan.files), 0
    done = dict.fromkeys(range(len(plan.files)), 0)
    runner.report("reading", 0, total)
    calls = _calls(plan, work)
    for file, position, n_tokens in runner.results(_read_piece, calls):
        runner.n_tokens += n_tokens
        done[file] = position
        before = sum(done.values())
        runner.report("reading", before, total)


def _calls(plan: Plan, work: WorkingFolder) -> Iterator[tuple[Any, ...]]:
    for at in range(len(plan.files)):
        first_row = 1
        for chunk in chunks_of(plan, at):
            if chunk.number == 0 and plan.form == "conll":
                first_row = line_of_first_row(chunk)
            path = work.piece(at, chunk.number)
            yield plan, chunk._replace(text=b"") if _is_finished(path) else chunk, first_row, path


def _is_finished(path: Path) -> bool:
    """Tell whether a piece was written by work that is resumed, and is sound: the machine may have failed meanwhile."""
    try:
        Piece(path).file.verify()
    except CorpusFileError:
        path.unlink(missing_ok=True)
        return False
    return True


def _read_piece(plan: Plan, chunk: Chunk, first_row: int, path: Path) -> tuple[int, int, int]:
    """Read a chunk and write its piece; return its file, how much of it is read, and the number of tokens."""
    if path.exists():
        return chunk.file, chunk.done, Piece(path).size("n_nodes")
    partition, lines = read_chunk(plan, chunk, first_row)
    write_piece(path, partition, plan.seed, chunk.file, lines)
    return chunk.file, chunk.done, partition.nodes.n_nodes


def _compile_pairs(
    pairs: Iterable[tuple[Any, Any]], target: Path, parts: int, seed: int, template: Template | None, runner: Runner
) -> CompiledCorpus:
    text = None if template is None else TemplateText(template.text, template.syntax)
    with WorkingFolder(target, "").opened() as work:
        first = 0
        for at, pair in enumerate(pairs):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(f"data[{at}] must be a pair (X, y). Got {type(pair).__name__} instead.")
            X, y = pair
            partition = Partition.build(X, y, template)
            lines = np.arange(first, first + partition.nodes.n_examples)
            first += lines.size
            write_piece(work.piece(0, at), partition, seed, 0, lines)
            runner.n_tokens += partition.nodes.n_nodes
            runner.report("reading", at + 1, 0)
        work.publish(_built(work, parts, CorpusOrigin("python", seed, text), runner))
    return CompiledCorpus(target)


def line_of_first_row(chunk: Chunk) -> int:
    """Return the line of the first row of a file."""
    for number, line in enumerate(chunk.text.split(b"\n", 10_000), start=1):
        if line.strip(b" \t") and not line.lstrip(b" \t").startswith(b"-DOCSTART-"):
            return number
    return 1


def _check_int(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(
            f"The '{name}' parameter of compile_corpus must be an int in [{low}, {high}]. Got {value!r} instead."
        )


def _silent(progress: CompileProgress) -> None:
    pass
