"""Tables of categorical values: read by column, encoded by categories, and filled in."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from dualfield.data.arrays import Codes, Flags

UNKNOWN, MISSING = -1, -2  # codes of values that training did not have, and of cells without a value


@dataclass(frozen=True, eq=False)
class ValueTable:
    """A table as it came: its columns, which cells have no value, and the table itself."""

    names: list[Hashable]
    columns: list[NDArray[Any]]
    missing: Flags
    whole: Any  # a DataFrame, or an array

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.missing)

    def keep(self, rows: Any) -> ValueTable:
        """Return some rows."""
        return ValueTable(self.names, [column[rows] for column in self.columns], self.missing[rows], None)

    def without(self, cells: Flags) -> ValueTable:
        """Return the same with more cells missing."""
        return ValueTable(self.names, self.columns, self.missing | cells, self.whole)

    def filled(self, codes: Codes, cells: Flags, categories: Sequence[NDArray[Any]]) -> Any:
        """Return a copy in which some cells have the values of codes."""
        if hasattr(self.whole, "iloc"):
            frame = self.whole.copy()
            for j in np.flatnonzero(cells.any(axis=0)).tolist():
                column = frame.iloc[:, j].astype(object)
                column[cells[:, j]] = categories[j][codes[cells[:, j], j]]
                kind = frame.dtypes.iloc[j]
                frame.isetitem(j, column.astype(kind) if _fits(kind, categories[j]) else column.infer_objects())
            return frame
        hit = np.flatnonzero(cells.any(axis=0)).tolist()
        used = [categories[j].dtype for j in hit]
        dtype = self.whole.dtype if self.whole.dtype.kind == "O" else np.result_type(self.whole.dtype, *used)
        array = self.whole.astype(dtype, copy=True)  # a category may be longer than the strings of the table
        for j in hit:
            array[cells[:, j], j] = categories[j][codes[cells[:, j], j]]
        return array


def _fits(kind: Any, categories: NDArray[Any]) -> bool:
    """Whether a column of a frame can keep its type with these values; one of categories may lack some."""
    known = getattr(kind, "categories", None)
    return bool(known is None or set(categories.tolist()) <= set(known.tolist()))


def read_table(model: Any, X: Any, *, reset: bool) -> ValueTable:
    """Return a table of values; names and number of columns are kept, or compared with those of training."""
    masked = np.ma.getmaskarray(X) if np.ma.isMaskedArray(X) else None
    whole: Any
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        validate_data(model, X, reset=reset, skip_check_array=True)
        check_array(np.zeros(X.shape, dtype=np.int8), estimator=model, input_name="X")  # as scikit-learn says it
        whole = X
        columns = [np.asarray(X.iloc[:, j]) for j in range(X.shape[1])]
    else:
        # A list of strings and numbers would become strings altogether.
        as_objects = not hasattr(X, "dtype") and np.asarray(X).dtype.kind in "US"
        whole = validate_data(
            model, X, reset=reset, dtype=object if as_objects else None, ensure_all_finite="allow-nan"
        )
        columns = list(whole.T)
    names = list(getattr(model, "feature_names_in_", range(len(columns))))
    missing = np.stack([_missing(column) for column in columns], axis=1)
    return ValueTable(names, columns, missing if masked is None else missing | masked, whole)


def _missing(column: NDArray[Any]) -> Flags:
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype.kind in "mM":
        return np.asarray(np.isnat(column))
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=bool)
    return np.array([_is_missing(value) for value in column], dtype=bool)


def _is_missing(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value is None
    try:
        return bool(value != value)  # NaN is not equal to itself
    except TypeError:  # the missing value of pandas is neither equal nor different
        return True


def found_categories(columns: Sequence[NDArray[Any]], names: Sequence[Hashable]) -> NDArray[Any]:
    """Return the sorted values of columns that have their categories in common."""
    if not any(map(len, columns)):
        raise ValueError(f"Column {names[0]!r} of X has no values: all of them are missing.")
    if all(column.dtype.kind != "O" for column in columns) and len({column.dtype.kind for column in columns}) == 1:
        return np.unique(np.concatenate(columns))
    values = [_plain(value) for column in columns for value in column.tolist()]
    try:
        kept = sorted(set(values))
    except TypeError as error:
        raise TypeError(
            f"The values of column {names[0]!r} must be strings or numbers that can be sorted (each argument must be a "
            f"string or a number); give categories where they cannot. Got: {error}"
        ) from error
    return _object_array(kept)


def given_categories(owner: str, values: Any, name: Hashable) -> NDArray[Any]:
    """Return the categories that a user has listed for a column."""
    array = np.asarray(values)
    if array.dtype.kind in "US" and not hasattr(values, "dtype"):
        array = _object_array(list(values))
    if array.dtype.kind == "O" and array.ndim == 1:
        array = _object_array([_plain(value) for value in array.tolist()])
    distinct = array.ndim == 1 and len(set(array.tolist())) == len(array) > 0
    if not distinct or _missing(array).any():
        raise ValueError(
            f"The 'categories' parameter of {owner} must list distinct values for column {name!r}, none of them "
            f"missing. Got {values!r:.100} instead."
        )
    return array


def _plain(value: Any) -> Any:
    """Return a number or text of NumPy, which an object column may hold, as one of Python."""
    return value.item() if isinstance(value, np.bool_ | np.integer | np.floating | np.str_) else value


def _object_array(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def encode(table: ValueTable, categories: Sequence[NDArray[Any]], unknown: str) -> Codes:
    """Return the codes of all cells; UNKNOWN or MISSING where there is none."""
    codes = np.full((table.n_rows, len(table.columns)), MISSING, dtype=np.int32)
    for j, (column, values) in enumerate(zip(table.columns, categories, strict=True)):
        here = ~table.missing[:, j]
        codes[here, j] = _codes(column[here], values, table.names[j])
        strange = codes[:, j] == UNKNOWN
        if unknown == "error" and strange.any():
            row = int(strange.argmax())
            raise ValueError(
                f"Column {table.names[j]!r} of X has a value not seen in training, {column[row]!r:.100} in row {row}. "
                f"Use unknown='skip' to leave it out."
            )
    return codes


def _codes(column: NDArray[Any], categories: NDArray[Any], name: Hashable) -> Codes:
    place = {value: code for code, value in enumerate(categories.tolist())}
    if column.dtype.kind == "O":
        try:
            return np.array([place.get(value, UNKNOWN) for value in column.tolist()], dtype=np.int32)
        except TypeError as error:
            raise TypeError(
                f"The values of column {name!r} must be strings or numbers (each argument must be a string or a "
                f"number). Got: {error}"
            ) from error
    values, inverse = np.unique(column, return_inverse=True)
    return np.array([place.get(value, UNKNOWN) for value in values.tolist()], dtype=np.int32)[inverse]
