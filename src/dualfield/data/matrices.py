"""Numbers as input: dense and sparse matrices, checked and laid out as one block of rows."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

Dense = NDArray[np.float64] | NDArray[np.float32]
_Csr = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]

_MOST_COLUMNS = 2**31 - 1
_CHUNK = 1 << 18


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NumberRows:
    """All nodes as rows: `dense`, or the three arrays of a CSR matrix; examples end at `offsets`."""

    offsets: NDArray[np.int64]
    n_columns: int
    dense: Dense | None = None
    indptr: NDArray[np.int64] | None = None
    indices: NDArray[np.int32] | None = None
    values: NDArray[np.float64] | None = None


def offsets_from_lengths(lengths: ArrayLike, n_rows: int, name: str) -> NDArray[np.int64]:
    """Turn the sizes of the examples into offsets, which must cover all `n_rows` rows of the input called `name`."""
    array = np.asarray(lengths)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise TypeError(f"'lengths' must be a 1-d array of int. Got {array.ndim}-d {array.dtype} instead.")
    if array.size and array.min() < 0:
        bad = int(np.argmax(array < 0))
        raise ValueError(f"lengths[{bad}] must be an int in [0, inf). Got {array[bad]} instead.")
    offsets = np.zeros(array.size + 1, dtype=np.int64)
    np.cumsum(array, out=offsets[1:])
    if offsets[-1] != n_rows:
        raise ValueError(f"'lengths' must sum to the number of rows of {name}, {n_rows}. Got {offsets[-1]} instead.")
    return offsets


def read_matrix(X: Any, lengths: ArrayLike | None, n_columns: int | None, name: str) -> NumberRows:
    """Read one matrix: (N, d) dense or sparse, cut by `lengths`; or (n, T, d) dense, already cut."""
    sparse = scipy.sparse.issparse(X)
    matrix = X if sparse else _real_array(X, name)
    if matrix.ndim == 3 and lengths is None:
        n_examples, length, _ = matrix.shape
        matrix = matrix.reshape(n_examples * length, -1) if matrix.size else matrix.reshape(-1, matrix.shape[2])
        offsets = length * np.arange(n_examples + 1, dtype=np.int64)
    elif matrix.ndim != 2:
        expected = "2-d, or 3-d without 'lengths'" if lengths is None else "2-d, as 'lengths' is given"
        raise ValueError(f"{name} must be {expected}. Got shape {matrix.shape} instead.")
    elif lengths is None:
        raise ValueError(
            f"{name} is one matrix of {matrix.shape[0]} rows: 'lengths' must say how many rows each example has."
        )
    else:
        offsets = offsets_from_lengths(lengths, matrix.shape[0], name)
    check_width(name, matrix.shape[1], n_columns, "as in training")
    if sparse:
        return _csr_rows([_csr_piece(matrix, name)], offsets, matrix.shape[1], name)
    return _dense_rows([matrix], offsets, name)


def read_matrices(examples: Sequence[Any], n_columns: int | None, name: str) -> NumberRows:
    """Read one matrix of shape (T_i, d) per example: all dense, or all sparse."""
    sparse = any(map(scipy.sparse.issparse, examples))
    expected, source = n_columns, "as in training"
    lengths, blocks, pieces = [], [], []
    for i, example in enumerate(examples):
        place = f"{name}[{i}]"
        dense = not scipy.sparse.issparse(example)
        matrix: Any = _real_array(example, place) if dense else example
        if sparse and dense and matrix.size:
            raise TypeError(f"{place} must be sparse, as other matrices of {name} are. Got a dense one instead.")
        if matrix.ndim == 1 and matrix.shape[0] == 0:
            matrix = np.empty((0, 0))
        if matrix.ndim != 2:
            raise ValueError(f"{place} must be 2-d, of shape (n_nodes, n_columns). Got shape {matrix.shape} instead.")
        # An empty list does not say how wide it is.
        if matrix.shape[0] or matrix.shape[1]:
            check_width(place, matrix.shape[1], expected, source)
            if expected is None:
                expected, source = matrix.shape[1], f"as in {place}"
        lengths.append(matrix.shape[0])
        if not dense:
            pieces.append(_csr_piece(matrix, place))
        elif matrix.shape[0]:
            blocks.append(matrix)
    offsets = offsets_from_lengths(np.array(lengths, dtype=np.int64), sum(lengths), name)
    if sparse:
        return _csr_rows(pieces, offsets, expected or 0, name)
    return _dense_rows(blocks or [np.empty((0, expected or 0))], offsets, name)


def check_width(place: str, width: int, expected: int | None, source: str) -> None:
    """Refuse a matrix of another width than expected."""
    if expected is not None and width != expected:
        raise ValueError(f"{place} has {width} columns; expected {expected}, {source}.")
    if width > _MOST_COLUMNS:
        raise ValueError(f"{place} has {width} columns; at most {_MOST_COLUMNS} are possible.")


def _real_array(data: Any, place: str) -> NDArray[Any]:
    """Convert to an array of float64, or of float32 where it comes as that."""
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"{place} must be a matrix of numbers with rows of equal length.") from error
    kinds = set(map(type, array.ravel())) if array.dtype.kind == "O" else set()
    real = all(issubclass(kind, (numbers.Real, np.bool_)) for kind in kinds)
    if array.dtype.kind not in "fiubO" or not real:
        what = array.dtype if real else "items of type " + ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(f"{place} must be a matrix of real numbers. Got {what} instead.")
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _dense_rows(matrices: list[NDArray[Any]], offsets: NDArray[np.int64], name: str) -> NumberRows:
    dense = np.ascontiguousarray(matrices[0] if len(matrices) == 1 else np.concatenate(matrices))
    n_columns = dense.shape[1]
    at = _first_not_finite(dense.reshape(-1))
    if at is not None:
        row, column = divmod(at, n_columns)
        _refuse_value(dense[row, column], row, column, offsets, name)
    return NumberRows(offsets=offsets, n_columns=n_columns, dense=dense)


def _csr_rows(pieces: list[_Csr], offsets: NDArray[np.int64], n_columns: int, name: str) -> NumberRows:
    starts = np.cumsum([0] + [indices.size for _, indices, _ in pieces])
    indptr = np.concatenate(
        [pieces[0][0][:1]] + [ptr[1:] + start for (ptr, _, _), start in zip(pieces, starts, strict=False)]
    )
    indices = pieces[0][1] if len(pieces) == 1 else np.concatenate([piece[1] for piece in pieces])
    values = pieces[0][2] if len(pieces) == 1 else np.concatenate([piece[2] for piece in pieces])
    at = _first_not_finite(values)
    if at is not None:
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        _refuse_value(values[at], row, int(indices[at]), offsets, name)
    return NumberRows(offsets=offsets, n_columns=n_columns, indptr=indptr, indices=indices, values=values)


def _csr_piece(matrix: Any, place: str) -> _Csr:
    """Check one sparse matrix from top to bottom: native code relies on it."""
    if matrix.dtype.kind not in "fiub":
        raise TypeError(f"{place} must be a matrix of real numbers. Got {matrix.dtype} instead.")
    csr = matrix.tocsr()
    indptr = csr.indptr.astype(np.int64, copy=False)
    n_stored = int(indptr[-1])
    sizes_fit = indptr.size == csr.shape[0] + 1 and 0 <= n_stored <= min(csr.indices.size, csr.data.size)
    if not sizes_fit or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{place} is not a valid CSR matrix: its indptr must rise from 0 to the number of entries.")
    indices = csr.indices[:n_stored]
    if n_stored and not (indices.min() >= 0 and indices.max() < csr.shape[1]):
        raise ValueError(f"{place} is not a valid CSR matrix: its indices must be in [0, {csr.shape[1]}).")
    values = csr.data[:n_stored].astype(np.float64, copy=False)
    return indptr, np.ascontiguousarray(indices, dtype=np.int32), np.ascontiguousarray(values)


def _first_not_finite(flat: NDArray[Any]) -> int | None:
    """Find the first NaN or infinity, in pieces, so that no mask of the whole is needed."""
    for start in range(0, flat.size, _CHUNK):
        finite = np.isfinite(flat[start : start + _CHUNK])
        if not finite.all():
            return start + int(np.argmin(finite))
    return None


def _refuse_value(value: float, row: int, column: int, offsets: NDArray[np.int64], name: str) -> None:
    example = int(np.searchsorted(offsets, row, side="right")) - 1
    place = f"{name}[{example}][{row - offsets[example]}]"
    raise ValueError(f"{place} has {value} in column {column}; expected a finite number.")
