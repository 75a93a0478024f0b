"""What is to be compiled: the input and how it is read, in a form that is compared when work is resumed."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dualfield.data.compiled.header import FORMAT, CorpusColumns, CorpusOrigin, TemplateText
from dualfield.features import Template

Form = Literal["conll", "crfsuite", "parquet"]


class InputFile(NamedTuple):
    """A file, and what tells whether it has changed."""

    path: str
    nbytes: int
    changed: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> InputFile:
        """Look at a file."""
        found = Path(path).stat()
        return cls(os.fspath(path), found.st_size, found.st_mtime_ns)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is read, how, and into how many parts.

    Attributes
    ----------
    files : tuple of InputFile
        The input, in order.
    form : str
        Its format.
    n_parts, seed : int
        How sentences are distributed.
    separator : str or None
        What separates columns.
    encoding : str
        Of the text.
    columns : CorpusColumns or None
        Columns of a file of columns.
    template : TemplateText or None
        What makes attributes of columns.
    """

    files: tuple[InputFile, ...]
    form: Form
    n_parts: int
    seed: int
    separator: str | None = None
    encoding: str = "utf-8"
    columns: CorpusColumns | None = None
    template: TemplateText | None = None

    @property
    def origin(self) -> CorpusOrigin:
        """What the header of the corpus says about it."""
        names = tuple(file.path for file in self.files)
        return CorpusOrigin(self.form, self.seed, self.template, self.columns, names)

    def read_template(self) -> Template | None:
        """Return the template."""
        return None if self.template is None else Template(*self.template)

    def text(self) -> str:
        """Return what must be the same for work to be resumed."""
        content: dict[str, Any] = asdict(self)
        return json.dumps({"format_version": FORMAT, **content}, sort_keys=True, indent=1)
