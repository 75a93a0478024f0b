"""Parts of a state from which a solver goes on: they come from a file and are checked before they are used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield._native import StateError

State = dict[str, NDArray[Any]]

__all__ = ["kept_count", "kept_indices", "kept_numbers", "kept_rows", "refuse_unused"]

# Vectors, or several of them one after another, with an entry for each parameter.
_BY_PARAMETER = (
    "x",
    "best",
    "dual_at",
    "moved",
    "change",
    "steepest",
    "w",
    "mean",
    "v",
    "u",
    "parameters_before",
    "bundle_slopes",
)


def refuse_unused(state: State, used: NDArray[np.bool_]) -> None:
    """Raise if a state has weights where the model has none: they would score, and no bound knows of them.

    Parameters
    ----------
    state : dict
        Arrays by name.
    used : bool array of shape (n_parameters,)
        Which parameters are weights; the others are zeros for alignment.

    Raises
    ------
    StateError
        If there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.kept_state import refuse_unused
    >>> refuse_unused({"w": np.array([1.0, 0.0])}, np.array([True, False]))
    >>> refuse_unused({"w": np.array([1.0, 2.0])}, np.array([True, False]))
    Traceback (most recent call last):
    ...
    dualfield._native.StateError: w has weights that the model does not have
    """
    for name in _BY_PARAMETER:
        found = state.get(name)
        if found is not None and found.size % used.size == 0 and found.reshape(-1, used.size)[:, ~used].any():
            raise StateError(f"{name} has weights that the model does not have")


def kept_numbers(state: State, name: str, size: int | None = None) -> NDArray[np.float64]:
    """Return a vector of finite numbers.

    Parameters
    ----------
    state : dict
        Arrays by name.
    name : str
        Which one.
    size : int, default=None
        How long it must be; None: any.

    Returns
    -------
    array
        The vector.

    Raises
    ------
    StateError
        If it is missing, or of another size or type, or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.kept_state import kept_numbers
    >>> kept_numbers({"x": np.ones(2)}, "x", 2)
    array([1., 1.])
    """
    found = _kept(state, name, np.float64, 1)
    if size is not None and len(found) != size:
        raise StateError(f"{name} has {len(found)} entries; expected {size}")
    if not np.isfinite(found).all():
        raise StateError(f"{name} holds what is not a finite number")
    return found


def kept_count(state: State, name: str) -> int:
    """Return a number of things.

    Parameters
    ----------
    state : dict
        Arrays by name.
    name : str
        Which one.

    Returns
    -------
    int
        At least 0.

    Raises
    ------
    StateError
        If it is missing, or something else.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.kept_state import kept_count
    >>> kept_count({"n_iter": np.array([3], dtype=np.uint64)}, "n_iter")
    3
    """
    found = _kept(state, name, np.uint64, 1)
    if len(found) != 1 or int(found[0]) >= 2**62:
        raise StateError(f"{name} must be one number below 2**62")
    return int(found[0])


def kept_indices(state: State, name: str, size: int) -> NDArray[np.int64]:
    """Return places in a vector, each of them once.

    Parameters
    ----------
    state : dict
        Arrays by name.
    name : str
        Which one.
    size : int
        How long the vector is.

    Returns
    -------
    array
        The places.

    Raises
    ------
    StateError
        If it is missing, or something else.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.kept_state import kept_indices
    >>> kept_indices({"known": np.array([2, 0])}, "known", 3)
    array([2, 0])
    """
    found = _kept(state, name, np.int64, 1)
    if len(found) and (found.min() < 0 or found.max() >= size or len(np.unique(found)) < len(found)):
        raise StateError(f"{name} must be different numbers from 0 to {size - 1}")
    return found


def kept_rows(state: State, name: str) -> NDArray[np.float64]:
    """Return the course of a solver.

    Parameters
    ----------
    state : dict
        Arrays by name.
    name : str
        Which one.

    Returns
    -------
    array of shape (n, 5)
        Objective, dual, gap, passes and seconds; at least one row, and in the last one passes and seconds are numbers.

    Raises
    ------
    StateError
        If it is missing, or something else.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.kept_state import kept_rows
    >>> kept_rows({"trace": np.ones((2, 5))}, "trace").shape
    (2, 5)
    """
    found = _kept(state, name, np.float64, 2)
    if found.shape[1] != 5 or not len(found):
        raise StateError(f"{name} must have rows of 5 numbers")
    if not (np.isfinite(found[-1, 3:]).all() and (found[-1, 3:] >= 0).all()):
        raise StateError(f"{name} ends after passes or seconds that are no numbers")
    return found


def _kept(state: State, name: str, dtype: Any, n_dimensions: int) -> NDArray[Any]:
    found = state.get(name)
    if found is None or found.dtype != dtype or found.ndim != n_dimensions:
        raise StateError(f"{name} is missing or of another type")
    return found
