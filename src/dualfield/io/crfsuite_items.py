r"""CRFsuite's training files: a line for each item, ``label<TAB>attribute[:weight]<TAB>...``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from dualfield.data import Batch, Labels
from dualfield.io.text_lines import Source, Target, numbered_lines, source_name, write_lines

Weighted = dict[str, float]
Items = list[list[list[str]]] | list[list[Weighted]]

_ESCAPE = re.compile(r"\\([\\:])")
# A name, in which a colon counts only if a backslash stands before it, and what may follow it.
_FIELD = re.compile(r"(?P<name>(?:\\[\\:]|[^:])*)(?::(?P<weight>.*))?", re.DOTALL)
_UNFIT = re.compile(r"[\t\r\n\0]")


def read_crfsuite_items(source: Source) -> tuple[Items, list[list[str]]]:
    r"""Read sequences of items with attributes, as CRFsuite's command line trains on them.

    A line is an item: its label, then its attributes, with tabs between them; a blank line ends a sequence. An
    attribute may carry a weight after a colon. Colons and backslashes that belong to a name are written ``\:`` and
    ``\\``.

    Parameters
    ----------
    source : path, open file, or iterable of str
        The text, UTF-8; a path may lead to a gzip file.

    Returns
    -------
    X : list of sequences
        Where no attribute in the file has a weight, an item is the list of its attributes; else it is a dict from
        attributes to weights, and those of an attribute that comes twice in an item add up.
    y : list of lists of str
        The labels.

    Raises
    ------
    ValueError
        If a line has no label, a weight is not a finite number, or a label or weight has a colon that is not escaped,
        which CRFsuite would misread without a word; also for lines that begin with ``@``, by which newer versions
        declare weights of sequences. The message names file and line.

    See Also
    --------
    write_crfsuite_items : The way back.

    Examples
    --------
    >>> from dualfield.io import read_crfsuite_items
    >>> X, y = read_crfsuite_items(["B\tw=He\tBOS", "I\tw=ran", "", "B\tw=Stop"])
    >>> X
    [[['w=He', 'BOS'], ['w=ran']], [['w=Stop']]]
    >>> y
    [['B', 'I'], ['B']]
    >>> read_crfsuite_items(["B\tlen:2\tw\\:He"])
    ([[{'len': 2.0, 'w:He': 1.0}]], [['B']])
    """
    name = source_name(source)
    X: list[list[list[tuple[str, float | None]]]] = []
    y: list[list[str]] = []
    begins = True
    for number, line in numbered_lines(source):
        if not line:
            begins = True
            continue
        place = f"{name}, line {number}"
        label, *attributes = _fields(line, place)
        if begins:
            X.append([])
            y.append([])
            begins = False
        X[-1].append(attributes)
        y[-1].append(_checked_label(label, place))
    if all(weight is None for sequence in X for item in sequence for _, weight in item):
        return [[[attribute for attribute, _ in item] for item in sequence] for sequence in X], y
    return [[_summed(item) for item in sequence] for sequence in X], y


def write_crfsuite_items(X: Any, y: Any, target: Target) -> None:
    r"""Write sequences of items with attributes for CRFsuite's command line, as UTF-8.

    A path is written atomically.

    Parameters
    ----------
    X : list of sequences of items
        Items in any form that :meth:`Batch.build <dualfield.data.Batch.build>` reads as attributes: lists of str, or
        dicts. ``{"w": "dog"}`` is the attribute ``w:dog``, written ``w\:dog``.
    y : list of lists of str
        A label for each item.
    target : path or open text file
        A path that ends in ``.gz`` gets a gzip file.

    Raises
    ------
    TypeError
        If items are not given by attributes, or labels are not str.
    ValueError
        If `y` does not have a label for each item, a sequence is empty, or a label or attribute cannot be written:
        empty, with a tab, a line break or a zero character in it, or a label that begins with ``@``.

    See Also
    --------
    read_crfsuite_items : The way back.

    Examples
    --------
    >>> import io
    >>> from dualfield.io import write_crfsuite_items
    >>> text = io.StringIO()
    >>> write_crfsuite_items([[{"w": "He", "len": 2.0}, {"w": "ran"}]], [["B", "I"]], text)
    >>> text.getvalue()
    'B\tw\\:He\tlen:2.0\nI\tw\\:ran\n\n'
    """
    batch = Batch.build(X)
    if batch.vocabulary is None:
        raise TypeError("X must have items given by attributes: lists of str, or dicts. Got numbers instead.")
    labels = Labels.fit(y, batch.offsets)
    if labels.kind != "str":
        raise TypeError(f"y must have labels of type str. Got {labels.kind} instead.")
    empty = np.flatnonzero(batch.lengths == 0)
    if empty.size:
        raise ValueError(f"X[{empty[0]}] must have at least one item: an empty sequence cannot be read back.")
    write_lines(target, _lines(batch, labels, labels.encode(y, batch.offsets)))


def _fields(line: str, place: str) -> list[tuple[str, float | None]]:
    """Return label and attributes with their weights; CRFsuite skips empty fields."""
    fields = [field for field in line.split("\t") if field]
    if not line.strip(" \t") or not fields:
        raise ValueError(f"{place}: has white space only. A line is blank, or begins with a label.")
    return [_field(field, place) for field in fields]


def _field(field: str, place: str) -> tuple[str, float | None]:
    match = _FIELD.fullmatch(field)
    assert match is not None  # the expression matches every string
    name = _ESCAPE.sub(r"\1", match["name"])
    text = match["weight"]
    if text is None or not text:
        # A colon with nothing behind it is CRFsuite's weight 1 as well.
        return name, None if text is None else 1.0
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight) or "_" in text or not text.isascii():
        hint = r" A colon that belongs to a name is written '\:'."
        raise ValueError(f"{place}: the weight of {name!r} must be a finite number. Got {text!r} instead.{hint}")
    return name, weight


def _checked_label(label: tuple[str, float | None], place: str) -> str:
    name, weight = label
    if name.startswith("@"):
        raise ValueError(f"{place}: {name!r} is a declaration, not a label; weights of sequences are not read.")
    if weight is not None:
        raise ValueError(f"{place}: the label {name!r} must not have a weight. Got {weight} instead.")
    return name


def _summed(item: list[tuple[str, float | None]]) -> Weighted:
    total: Weighted = {}
    for attribute, weight in item:
        total[attribute] = total.get(attribute, 0.0) + (1.0 if weight is None else weight)
    return total


def _lines(batch: Batch, labels: Labels, codes: Any) -> Iterator[str]:
    assert batch.vocabulary is not None
    assert batch.indptr is not None
    assert batch.indices is not None
    names = [_written(attribute, "attribute") for attribute in batch.vocabulary]
    classes = [_written(label, "label") for label in labels.classes.tolist()]
    for label in classes:
        if label.startswith("@") or not label.strip(" "):
            raise ValueError(f"The label {label!r} cannot be written: CRFsuite would not read it as a label.")
    ends = set(batch.offsets[1:].tolist())
    for node, code in enumerate(codes.tolist()):
        row = slice(batch.indptr[node], batch.indptr[node + 1])
        columns = batch.indices[row].tolist()
        if batch.values is None:
            fields = [names[column] for column in columns]
        else:
            weights = batch.values[row].tolist()
            fields = [
                names[column] if weight == 1.0 else f"{names[column]}:{weight!r}"
                for column, weight in zip(columns, weights, strict=True)
            ]
        yield "\t".join([classes[code], *fields])
        if node + 1 in ends:
            yield ""


def _written(name: str, what: str) -> str:
    if not name or _UNFIT.search(name):
        fault = "contain tabs, line breaks or zero characters" if name else "be empty"
        raise ValueError(f"A file of CRFsuite's items cannot have the {what} {name!r}: it must not {fault}.")
    return name.replace("\\", r"\\").replace(":", r"\:")
