"""The header of a compiled corpus: what it holds and where it comes from, read without trust."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dualfield.data.compiled.array_file import CorpusFileError
from dualfield.data.records import Record, Source

FORMAT = 1
HEADER = "corpus.json"


class TemplateText(NamedTuple):
    """The template that made the attributes: ``Template(*corpus.template)`` makes it again."""

    text: str
    syntax: str


class CorpusColumns(NamedTuple):
    """Columns of the files that were read: ``FileColumns(*corpus.columns)`` is what models keep of them."""

    n_columns: int
    features: tuple[int, ...]
    label: int


@dataclass(frozen=True)
class CorpusOrigin:
    """Where a corpus comes from.

    Attributes
    ----------
    form : str
        The format of the input: "conll", "crfsuite", "parquet" or "python".
    seed : int
        That of the shuffle.
    template : TemplateText or None
        The template that made the attributes.
    columns : CorpusColumns or None
        Columns of the input.
    sources : tuple of str
        Names of the files.
    """

    form: str
    seed: int
    template: TemplateText | None = None
    columns: CorpusColumns | None = None
    sources: tuple[str, ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return what stands in the header."""
        columns = self.columns
        return {
            "form": self.form,
            "seed": self.seed,
            "template": None if self.template is None else list(self.template),
            "columns": None if columns is None else [columns.n_columns, list(columns.features), columns.label],
            "sources": list(self.sources),
        }


class CorpusSource(Source):
    """A compiled corpus, which is at fault for all that is wrong with it."""

    is_mapped = True

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def fault(self, what: str) -> Exception:
        """Return the error to raise."""
        return CorpusFileError(f"{self.path} is altered: {what}")


def read_header(folder: Path) -> Record:
    """Return the header of a folder, of which format and digest are checked, and the files that it names."""
    path = folder / HEADER
    if not path.is_file():
        hint = "" if folder.is_dir() else " There is no such folder."
        raise CorpusFileError(
            f"{folder} is not a compiled corpus: it has no file {HEADER}. `dualfield compile` makes one.{hint}"
        )
    text, _, digest = path.read_bytes().rstrip(b"\n").rpartition(b"\n")
    try:
        content = json.loads(text)
    except ValueError:
        raise CorpusFileError(f"{path} is cut off or altered: it is not JSON with a digest behind it.") from None
    if not isinstance(content, dict) or content.get("format") != "dualfield compiled corpus":
        raise CorpusFileError(f"{path} is not the header of a compiled corpus.")
    version = content.get("format_version")
    if version != FORMAT:
        raise CorpusFileError(
            f"{path} has format version {version!r:.50}; this version of dualfield reads {FORMAT}. Compile it again."
        )
    if digest.decode("ascii", "replace") != f"{zlib.crc32(text):08x}":
        raise CorpusFileError(f"{path} is altered: it does not agree with its digest.")
    record = Record(content, CorpusSource(path))
    _check_files(folder, record)
    return record


def _check_files(folder: Path, record: Record) -> None:
    """Compare the files with what the header says of their size and their last bytes."""
    files = record.json("files")
    record.check(isinstance(files, dict), "it has no list of files.")
    for name, (size, digest) in files.items():
        path = folder / name
        if Path(name).name != name or not path.is_file():
            raise CorpusFileError(f"{path} is missing.")
        found = path.stat().st_size
        if found != size:
            raise CorpusFileError(f"{path} is cut off or altered: it has {found:,} bytes; {size:,} were written.")
        with path.open("rb") as file:
            file.seek(-24, os.SEEK_END)
            if zlib.crc32(file.read()) != digest:
                raise CorpusFileError(f"{path} is altered, or belongs to another corpus.")
