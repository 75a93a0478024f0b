"""The text format of SVMlight and LIBSVM: a line for each example, ``label index:value index:value ...``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dualfield.io.text_lines import Source, Target, numbered_lines, source_name, write_lines

_MOST = 2**31 - 1  # columns of a sparse matrix
# What is a number as a label. Names such as 007 and 1_0, which Python takes for numbers too, are names.
_NUMERAL = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?")


def read_svmlight(
    source: Source, *, n_features: int | None = None
) -> tuple[scipy.sparse.csr_array, NDArray[Any] | None]:
    """Read examples with one label each.

    Indices are numbers from 1 that rise within a line; entries that are not there are 0. What follows a ``#`` is a
    comment.

    Parameters
    ----------
    source : path, open file, or iterable of str
        The text, UTF-8; a path may lead to a gzip file.
    n_features : int, default=None
        How many columns there are. None: as many as the largest index says.

    Returns
    -------
    X : sparse array of shape (n, n_features)
        The values, of type float64.
    y : array of shape (n,), or None
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
    """
    name = source_name(source)
    indptr, indices, values = [0], list[int](), list[float]()
    labels: list[str | None] = []
    for number, line in numbered_lines(source):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        place = f"{name}, line {number}"
        label = None if ":" in fields[0] else fields[0]
        if labels and (label is None) != (labels[0] is None):
            raise ValueError(f"{place}: must {'begin with a label' if label is None else 'have no label'}, as others.")
        labels.append(label)
        for index, value in _entries(fields if label is None else fields[1:], n_features, place):
            indices.append(index)
            values.append(value)
        indptr.append(len(indices))
    width = n_features if n_features is not None else max(indices, default=-1) + 1
    parts = (np.array(values), np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32))
    return scipy.sparse.csr_array(parts, shape=(len(labels), width)), _as_array(labels)


def write_svmlight(X: Any, y: ArrayLike, target: Target) -> None:
    r"""Write examples with one label each, as UTF-8.

    A path is written atomically.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
        The values; zeros are left out.
    y : array of shape (n,)
        The labels, int or str.
    target : path or open text file
        A path that ends in ``.gz`` gets a gzip file.

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
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"y must have a label for each of the {rows.shape[0]} rows of X. Got shape {labels.shape}.")
    if not np.isfinite(rows.data).all():
        raise ValueError("X must have finite values only: others cannot be written.")
    write_lines(target, _lines(rows, _names(labels.tolist())))


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
        yield " ".join([name, *entries])
