"""CoNLL columns: one token per line, a blank line between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dualfield.io.text_lines import Source, Target, numbered_lines, source_name, write_lines

Row = tuple[str, ...]

_DOCUMENT_MARK = re.compile(r"[ \t]*-DOCSTART-(?:[ \t]|$)")
_BLANKS = re.compile(r"[ \t]+")


def read_conll(
    source: Source, *, separator: str | None = None, comments: str | None = None, encoding: str = "utf-8"
) -> list[list[Row]]:
    """Read sentences in columns.

    Each line is a token, its columns separated by blanks; blank lines separate sentences. ``-DOCSTART-`` lines, which
    mark documents, are left out. All rows must have the same number of columns.

    Parameters
    ----------
    source : path, open file, or iterable of str
        A path may lead to a gzip file.
    separator : str, default=None
        What separates columns. None: any run of spaces and tabs. A tab or a space: exactly one, so that columns may
        be empty, and, with a tab, may contain spaces.
    comments : str, default=None
        Lines that begin with it are left out. None: there are no comments, and ``#`` is a word like any other.
    encoding : str, default="utf-8"
        How characters are stored in files; the original files of CoNLL-2002 have "latin-1".

    Returns
    -------
    list of sentences
        A sentence is a list of rows, a row the tuple of its columns.

    Raises
    ------
    ValueError
        If a row has more or fewer columns than the first, or a line cannot be decoded. The message names file and line.

    See Also
    --------
    iter_conll : One sentence at a time.
    write_conll : The way back.

    Examples
    --------
    >>> from dualfield.io import read_conll
    >>> lines = ["He PRP B-NP", "ran VBD B-VP", "", "Stop VB B-VP"]
    >>> sentences = read_conll(lines)
    >>> sentences[0]
    [('He', 'PRP', 'B-NP'), ('ran', 'VBD', 'B-VP')]
    >>> [[label for *_, label in sentence] for sentence in sentences]
    [['B-NP', 'B-VP'], ['B-VP']]
    """
    return list(iter_conll(source, separator=separator, comments=comments, encoding=encoding))


def iter_conll(
    source: Source, *, separator: str | None = None, comments: str | None = None, encoding: str = "utf-8"
) -> Iterator[list[Row]]:
    """Read sentences in columns, one at a time: for files that should not be in memory as a whole.

    Parameters
    ----------
    source : path, open file, or iterable of str
        As for :func:`read_conll`. A path is opened at the first sentence and closed after the last.
    separator : str, default=None
        What separates columns: None, a tab or a space.
    comments : str, default=None
        How lines begin that are left out.
    encoding : str, default="utf-8"
        How characters are stored in files.

    Returns
    -------
    iterator over lists of tuples of str
        The sentences.

    See Also
    --------
    read_conll : All sentences at once, and more about the format.

    Examples
    --------
    >>> from dualfield.io import iter_conll
    >>> lines = ["# a comment", "1 Go", "", "# another", "1 Do", "2 it"]
    >>> [len(sentence) for sentence in iter_conll(lines, comments="#")]
    [1, 2]
    """
    _check_separator("read_conll", separator, (None, "\t", " "))
    if comments == "" or not isinstance(comments, str | None):
        raise ValueError(f"The 'comments' parameter of read_conll must be a str or None. Got {comments!r} instead.")
    if "\n".encode(encoding) != b"\n":
        raise ValueError(
            f"The 'encoding' parameter of read_conll must be one that extends ASCII. Got {encoding!r} instead."
        )
    return _sentences(source, separator, comments, encoding)


def write_conll(sentences: Iterable[Sequence[Sequence[str]]], target: Target, *, separator: str = " ") -> None:
    """Write sentences in columns, as UTF-8.

    The file can be read back: sentences for which it could not are refused, with the place of the fault. A path is
    written atomically.

    Parameters
    ----------
    sentences : iterable of sentences
        A sentence is a sequence of rows, a row a sequence of str; all rows have the same number of columns.
    target : path or open text file
        A path that ends in ``.gz`` gets a gzip file.
    separator : str, default=" "
        What goes between columns: a space or a tab. With a tab, columns may contain spaces and may be empty.

    Raises
    ------
    ValueError
        If a sentence is empty, a row has more or fewer columns than the first, or a column is empty or contains what
        separates columns.

    Examples
    --------
    >>> import sys
    >>> from dualfield.io import write_conll
    >>> write_conll([[("He", "B-NP"), ("ran", "B-VP")], [("Stop", "B-VP")]], sys.stdout)
    He B-NP
    ran B-VP
    <BLANKLINE>
    Stop B-VP
    <BLANKLINE>
    """
    _check_separator("write_conll", separator, (" ", "\t"))
    write_lines(target, _lines(sentences, separator))


def _check_separator(function: str, separator: str | None, known: tuple[str | None, ...]) -> None:
    if separator not in known:
        choices = ", ".join(map(repr, known[:-1])) + f" or {known[-1]!r}"
        raise ValueError(f"The 'separator' parameter of {function} must be {choices}. Got {separator!r} instead.")


def _sentences(source: Source, separator: str | None, comments: str | None, encoding: str) -> Iterator[list[Row]]:
    sentence: list[Row] = []
    n_columns = first = 0
    for number, line in numbered_lines(source, encoding):
        if comments and line.startswith(comments):
            continue
        text = line.strip(" \t")
        columns = tuple(_BLANKS.split(text) if separator is None else line.split(separator))
        if not text or _DOCUMENT_MARK.match(line):
            if sentence:
                yield sentence
            sentence = []
            continue
        if not n_columns:
            n_columns, first = len(columns), number
        if len(columns) != n_columns:
            raise ValueError(
                f"{source_name(source)}, line {number}: has {_count(columns)}; "
                f"the first row, in line {first}, has {n_columns}."
            )
        sentence.append(columns)
    if sentence:
        yield sentence


def _count(columns: Sequence[str]) -> str:
    return f"{len(columns)} column" + ("s" if len(columns) != 1 else "")


def _lines(sentences: Iterable[Sequence[Sequence[str]]], separator: str) -> Iterator[str]:
    # With a tab between them, columns may hold spaces and may be empty.
    unfit = re.compile(r"[\t\r\n]" if separator == "\t" else r"[ \t\r\n]|^$")
    n_columns = 0
    for i, sentence in enumerate(sentences):
        if not len(sentence):
            raise ValueError(f"sentences[{i}] must have at least one row: an empty sentence cannot be read back.")
        for j, row in enumerate(sentence):
            _check_row(row, f"sentences[{i}][{j}]", unfit)
            line = separator.join(row)
            if _DOCUMENT_MARK.match(line):
                raise ValueError(f"sentences[{i}][{j}] would be read as the mark of a document. Got {row!r}.")
            n_columns = n_columns or len(row)
            if len(row) != n_columns:
                raise ValueError(f"sentences[{i}][{j}] has {_count(row)}; the first row has {n_columns}.")
            yield line
        yield ""


def _check_row(row: Sequence[str], place: str, unfit: re.Pattern[str]) -> None:
    if isinstance(row, str) or not all(isinstance(column, str) for column in row):
        raise TypeError(f"{place} must be a sequence of str. Got {row!r} instead.")
    for at, column in enumerate(row):
        if unfit.search(column):
            fault = "contain blanks or line breaks" if column else "be empty"
            raise ValueError(f"{place}[{at}] must not {fault}. Got {column!r} instead.")
    if not any(column.strip(" ") for column in row):
        raise ValueError(f"{place} must have a column that is not blank: it would be read as the end of a sentence.")
