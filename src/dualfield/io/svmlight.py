"""The text format of SVMlight and LIBSVM: a line for each example, ``label index:value ...``, or several labels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.io.text_lines import Source, Target, numbered_lines, source_name, write_lines

_MOST = 2**31 - 1  # columns of a sparse matrix
# What is a number as a label. Names such as 007 and 1_0, which Python takes for numbers too, are names.
_NUMERAL = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def read_svmlight(
    source: Source, *, n_features: int | None = None, multilabel: bool = False
) -> tuple[scipy.sparse.csr_array, Any]:
    """Read examples with one label each, or with several.

    Indices are numbers from 1 that rise within a line; entries that are not there are 0. What follows a ``#`` is a
    comment.

    Parameters
    ----------
    source : path, open file, or iterable of str
        The text, UTF-8; a path may lead to a gzip file.
    n_features : int, default=None
        How many columns there are. None: as many as the largest index says.
    multilabel : bool, default=False
        Labels have commas between them, as in ``0,3 1:0.5``. A line may have none.

    Returns
    -------
    X : sparse array of shape (n, n_features)
        The values, of type float64.
    y : array of shape (n,), or None; with `multilabel` a list of tuples
        The labels: of type int64 if all are written as whole numbers (``7``, ``+1``, ``2.0``, but not ``007``), else of
        type str, as they are. None if no line has a label.

    Raises
    ------
    ValueError
        If a line is not sound, or has a label where others have none. The message names file and line.

    See Also
    --------
    write_svmlight : The way back.

    Examples
    --------
    >>> from dualfield.io import read_svmlight
    >>> X, y = read_svmlight(["+1 1:0.5 3:2", "-1 2:1  # a comment"])
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1, -1])
    >>> read_svmlight(["0,3 1:0.5", "1:0.25 2:1"], multilabel=True)[1]
    [(0, 3), ()]
    """
    name = source_name(source)
    indptr, indices, values = [0], list[int](), list[float]()
    labels: list[str | None] = []
    label_sets: list[list[str]] = []
    for number, line in numbered_lines(source):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        place = f"{name}, line {number}"
        label = None if ":" in fields[0] else fields[0]
        if multilabel:
            label_sets.append(_label_set(label, place))
        elif labels and (label is None) != (labels[0] is None):
            raise ValueError(f"{place}: must {'begin with a label' if label is None else 'have no label'}, as others.")
        labels.append(label)
        for index, value in _entries(fields if label is None else fields[1:], n_features, place):
            indices.append(index)
            values.append(value)
        indptr.append(len(indices))
    width = n_features if n_features is not None else max(indices, default=-1) + 1
    parts = (np.array(values), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32))
    y = _as_tuples(label_sets) if multilabel else _as_array(labels)
    return scipy.sparse.csr_array(parts, shape=(len(labels), width)), y


def write_svmlight(X: Any, y: Any, target: Target, *, multilabel: bool = False) -> None:
    r"""Write examples with one label each, or with several, as UTF-8.

    A path is written atomically.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        The values; zeros are left out.
    y : array of shape (n,)
        The labels, int or str.
    target : path or open text file
        A path that ends in ``.gz`` gets a gzip file.
    multilabel : bool, default=False
        `y` has a tuple of labels for each row, which are written with commas between them.

    Raises
    ------
    ValueError
        If a value is not finite, there is not one label for each row, or a label cannot be read back: it must be an int
        or a str, not be empty, nor have blanks, ``:`` or ``#`` in it, nor be read as another number.

    See Also
    --------
    read_svmlight : The way back.

    Examples
    --------
    >>> import io
    >>> from dualfield.io import write_svmlight
    >>> text = io.StringIO()
    >>> write_svmlight([[0.5, 0.0], [0.0, 2.0]], ["yes", "no"], text)
    >>> text.getvalue()
    'yes 1:0.5\nno 2:2\n'
    """
    if np.ndim(X) != 2:
        raise ValueError(f"X must have two dimensions, a row for each label. Got {np.ndim(X)} instead.")
    rows = scipy.sparse.csr_array(X, dtype=np.float64)
    rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise ValueError("X must have finite values only: others cannot be written.")
    if multilabel:
        write_lines(target, _lines(rows, _set_names(rows, list(y))))
        return
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"y must have a label for each of the {rows.shape[0]} rows of X. Got shape {labels.shape}.")
    write_lines(target, _lines(rows, _names(labels.tolist())))


def _set_names(rows: scipy.sparse.csr_array, label_sets: list[Iterable[Any]]) -> list[str]:
    """Return label sets as they are written."""
    if len(label_sets) != rows.shape[0]:
        raise ValueError(f"y must have a set for each of the {rows.shape[0]} rows of X. Got {len(label_sets)}.")
    lists = [list(labels) for labels in label_sets]
    flat = [label for labels in lists for label in labels]
    for label in set(flat):
        if "," in str(label):
            raise ValueError(f"The label {label!r} cannot be written: it has a comma in it.")
    _names(flat)
    empty = [at for at, labels in enumerate(lists) if not labels and rows.indptr[at] == rows.indptr[at + 1]]
    if empty:
        raise ValueError(f"Row {empty[0]} has neither labels nor values: its line would be empty, and not be read.")
    return [",".join(map(str, labels)) for labels in lists]


def _label_set(field: str | None, place: str) -> list[str]:
    """Return the labels of a line."""
    names = [] if field is None else field.split(",")
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(f"{place}: must have different labels with commas between them, such as 0,3. Got {field!r}.")
    return names


def _as_tuples(label_sets: list[list[str]]) -> list[tuple[Any, ...]]:
    """Return label sets as tuples, of ints if all labels are whole numbers."""
    found = _as_array([name for names in label_sets for name in names])
    flat = iter([] if found is None else found.tolist())
    return [tuple(next(flat) for _ in names) for names in label_sets]


def _names(labels: list[Any]) -> list[str]:
    """Return labels as they are written, or raise an error if one would not be read as what it is."""
    names = [str(label) for label in labels]
    for name in set(names):
        if not name or any(character.isspace() or character in ":#" for character in name):
            raise ValueError(f"The label {name!r} cannot be written: it is empty, or has blanks, ':' or '#' in it.")
    found = _as_array(list(names))
    for label, again in zip(labels, [] if found is None else found.tolist(), strict=True):
        same = label == again and type(label) is not bool
        if not same and not (isinstance(label, str) and label == str(again)):
            raise ValueError(
                f"The label {label!r} cannot be written: it would be read as {again!r}. Labels must be int, or str "
                f"that are no number written in another way."
            )
    return names


def _entries(fields: Iterable[str], n_features: int | None, place: str) -> Iterator[tuple[int, float]]:
    """Return column and value of each entry of a line."""
    before = 0
    for field in fields:
        left, colon, right = field.partition(":")
        try:
            index, value = int(left), float(right)
        except ValueError:
            index, value = 0, math.nan
        if not colon or not math.isfinite(value) or not field.isascii() or "_" in field:
            raise ValueError(f"{place}: must have entries such as 3:0.5, an index and a finite number. Got {field!r}.")
        if not before < index <= _MOST:
            hint = " Write the file with zero_based=False, so that they begin at 1." if index == 0 else ""
            raise ValueError(f"{place}: indices must rise from 1. Got {index} after {before}.{hint}")
        if n_features is not None and index > n_features:
            raise ValueError(f"{place}: has the index {index}; there are {n_features} features.")
        before = index
        yield index - 1, value


def _as_array(labels: list[str | None]) -> NDArray[Any] | None:
    names = [label for label in labels if label is not None]
    if not names:
        return None
    if not all(map(_NUMERAL.fullmatch, set(names))):
        return np.array(names)
    numbers = [float(name) for name in names]
    whole = all(number.is_integer() and abs(number) < 2**53 for number in numbers)
    return np.array(numbers).astype(np.int64) if whole else np.array(names)


def _lines(rows: scipy.sparse.csr_array, names: list[str]) -> Iterator[str]:
    for at, name in enumerate(names):
        here = slice(rows.indptr[at], rows.indptr[at + 1])
        pairs = zip(rows.indices[here].tolist(), rows.data[here].tolist(), strict=True)
        entries = [f"{index + 1}:{value!r}".removesuffix(".0") for index, value in pairs if value]
        yield " ".join([name, *entries] if name else entries)
