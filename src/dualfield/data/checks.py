"""Checks of parameters; every error names the parameter, the expected value and the value passed."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dualfield.data.batch import Batch


def check_number(
    owner: str, name: str, value: Any, low: float, *, open_low: bool = False, word: str | None = None
) -> None:
    """Raise unless value is a finite number of at least low, or above it, or a word that may stand in its place."""
    if word is not None and isinstance(value, str) and value == word:
        return
    good = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not good or not np.isfinite(value) or value < low or (open_low and value <= low):
        bracket = "(" if open_low or np.isinf(low) else "["
        more = "" if word is None else f" or {word!r}"
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a float in {bracket}{low:g}, inf){more}. Got {value!r} instead."
        )


def check_integer(owner: str, name: str, value: Any, low: int, *, or_none: bool = False) -> None:
    """Raise unless value is an int of at least low, or None where that is allowed."""
    if or_none and value is None:
        return
    # True is 1 for verbose, as everywhere in scikit-learn.
    if not isinstance(value, numbers.Integral) or value < low:
        none = "None or " if or_none else ""
        raise ValueError(
            f"The {name!r} parameter of {owner} must be {none}an int in [{low}, inf). Got {value!r} instead."
        )


def check_flag(owner: str, name: str, value: Any) -> None:
    """Raise unless value is a bool."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"The {name!r} parameter of {owner} must be a bool. Got {value!r} instead.")


def check_choice(owner: str, name: str, value: Any, choices: tuple[str, ...], otherwise: str | None = None) -> None:
    """Raise unless value is one of the choices; ``otherwise`` names other valid types, which the caller has checked."""
    if not isinstance(value, str) or value not in choices:
        more = "" if otherwise is None else f"{otherwise} or "
        raise ValueError(
            f"The {name!r} parameter of {owner} must be {more}one of {list(choices)}. Got {value!r} instead."
        )


def fixed_random_state(random_state: Any) -> np.random.RandomState:
    """Return the generator that a fit draws from; None is a seed as well, so that the same data give the same model."""
    from sklearn.utils import check_random_state  # slow to import, and predictions draw nothing

    generator: np.random.RandomState = check_random_state(0 if random_state is None else random_state)
    return generator


def check_kernel_values(owner: str, values: Any) -> None:
    """Raise unless values are a dense, square, symmetric matrix."""
    if sparse.issparse(values):
        raise ValueError(f"With kernel='precomputed', {owner} needs a dense X. Got a sparse matrix.")
    n, m = values.shape
    if n != m:
        raise ValueError(
            f"With kernel='precomputed', X must be a square matrix in fit. Got shape {values.shape} instead."
        )
    # In blocks of rows: no second matrix is made.
    scale = max(float(np.abs(values.diagonal()).max()), 1e-300)
    for first in range(0, n, 512):
        rows = values[first : first + 512]
        off = np.abs(rows - values[:, first : first + 512].T)
        if off.max() > 1e-5 * scale:
            i, j = np.unravel_index(off.argmax(), off.shape)
            raise ValueError(
                f"With kernel='precomputed', X must be symmetric in fit. "
                f"Got X[{first + i}, {j}] = {rows[i, j]:g} and X[{j}, {first + i}] = {values[j, first + i]:g}."
            )


def check_label_kernel(owner: str, values: ArrayLike, n_classes: int) -> NDArray[np.float64]:
    """Return a label kernel as a float64 matrix, or raise an error that says what is wrong with it."""
    try:
        table = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The 'label_kernel' parameter of {owner} must be a matrix of numbers or a callable. "
            f"Got {values!r} instead."
        ) from error
    if table.shape != (n_classes, n_classes):
        raise ValueError(
            f"The 'label_kernel' parameter of {owner} must have shape {(n_classes, n_classes)}, a row for each class. "
            f"Got {table.shape} instead."
        )
    if not np.isfinite(table).all() or not np.allclose(table, table.T):
        raise ValueError(f"The 'label_kernel' parameter of {owner} must be finite and symmetric.")
    lowest = float(np.linalg.eigvalsh(table)[0])
    if lowest < -1e-10 * max(1.0, float(np.abs(table).max())):
        raise ValueError(
            f"The 'label_kernel' parameter of {owner} must be positive semidefinite. "
            f"Its smallest eigenvalue is {lowest:g}."
        )
    return table


def check_column_names(expected: Sequence[str] | None, nodes: Batch, source: str) -> None:
    """Refuse data frames whose columns are not those that the model has seen; None: it saw no names."""
    if expected is None or nodes.column_names is None or list(nodes.column_names) == list(expected):
        return
    raise ValueError(
        f"X has the columns {list(nodes.column_names)}; expected {list(expected)}, {source}: the same names in the "
        "same order."
    )
