"""Which files are read, and how: columns, templates, and what tells files apart."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dualfield.data.compiled.header import HEADER, CorpusColumns, TemplateText
from dualfield.features import Template
from dualfield.io.compiling.plan import Form, InputFile, Plan
from dualfield.io.conll import iter_conll
from dualfield.io.file_columns import FileColumns
from dualfield.io.text_lines import numbered_lines


def is_files(data: Any) -> bool:
    """Tell whether data are paths, not sentences."""
    if isinstance(data, list | tuple) and not data:
        raise ValueError("'data' must have at least one file, or pair (X, y). Got none.")
    listed = data if isinstance(data, list | tuple) else [data]
    return all(isinstance(one, str | os.PathLike) for one in listed)


def input_paths(data: Any) -> list[str]:
    """Return the files that paths and patterns mean, in their order, those of a pattern sorted."""
    paths = []
    for one in data if isinstance(data, list | tuple) else [data]:
        name = os.fspath(one)
        found = [name] if Path(name).exists() else sorted(glob.glob(name, recursive=True))  # noqa: PTH207
        if not found:
            raise FileNotFoundError(f"{name}: there is no such file.")
        paths += found
    for path in paths:
        if (Path(path) / HEADER).is_file():
            raise ValueError(
                f"{path}: is a compiled corpus, which is opened by CompiledCorpus({path!r}); expected files."
            )
        if Path(path).is_dir():
            raise ValueError(f"{path}: is a folder; expected files, such as {os.path.join(path, '*')!r}.")  # noqa: PTH118
        if not Path(path).is_file():
            raise ValueError(f"{path}: must be a regular file, which can be read again when work is resumed.")
    return paths


def make_plan(
    paths: list[str],
    parts: int,
    seed: int,
    *,
    form: Form | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
    n_columns: int | None = None,
    columns: Iterable[int] | None = None,
    label: int | None = None,
    template: Template | str | None = None,
) -> Plan:
    """Look at files, and settle how they are read."""
    form = form or ("parquet" if Path(paths[0]).suffix == ".parquet" else "conll")
    if form not in ("conll", "crfsuite", "parquet"):
        raise ValueError(f"'form' must be 'conll', 'crfsuite', 'parquet' or None. Got {form!r} instead.")
    files = tuple(map(InputFile.of, paths))
    if form != "conll":
        if template is not None or columns is not None or label is not None:
            raise ValueError(f"'template', 'columns' and 'label' are for columns of text. Got form={form!r} instead.")
        return Plan(files=files, form=form, n_parts=parts, seed=seed, encoding=encoding)
    if n_columns is None:
        name, line, n_columns = count_columns(paths, separator, encoding)
        if n_columns < 2:
            raise ValueError(f"{name}, line {line}: has 1 column; expected 2 or more, the label last.")
    last = n_columns - 1 if label is None else label
    read = tuple(at for at in range(n_columns) if at != last) if columns is None else tuple(columns)
    FileColumns(n_columns, read, last)  # which checks them
    made = template_of("default" if template is None else template, len(read))
    assert made is not None
    if made.n_columns > len(read):
        raise ValueError(f"The template reads {made.n_columns} columns; {len(read)} are read besides the label.")
    chosen = CorpusColumns(n_columns, read, last)
    return Plan(
        files=files,
        form=form,
        n_parts=parts,
        seed=seed,
        separator=separator,
        encoding=encoding,
        columns=chosen,
        template=TemplateText(made.text, made.syntax),
    )


def template_of(template: Template | str | None, n_columns: int) -> Template | None:
    """Return a template that is given as itself, by its name or by its text."""
    if template is None or isinstance(template, Template):
        return template
    if template == "default":
        return Template.default(n_columns)
    return Template.chunking() if template == "chunking" else Template(template)


def count_columns(paths: list[str], separator: str | None, encoding: str) -> tuple[str, int, int]:
    """Return file, line and number of columns of the first row of all files."""
    for path in paths:
        for sentence in iter_conll(path, separator=separator, encoding=encoding):
            return path, _first_full_line(path, encoding), len(sentence[0])
    names = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    raise ValueError(f"{names}: empty; expected sentences in columns.")


def _first_full_line(path: str, encoding: str) -> int:
    return next((number for number, line in numbered_lines(path, encoding) if line.strip(" \t")), 1)
