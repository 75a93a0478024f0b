"""Checks of arguments of structures; every error names the argument, the expected value and the value passed."""

from __future__ import annotations

import numbers
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.arrays import Codes, Floats

MOST_NUMBERS = 2**56  # of an array: no memory holds more
LEAST_TEMPERATURE = 1e-300  # its inverse is still a number, with some room


def as_floats(name: str, values: ArrayLike, ndim: int | None = None) -> Floats:
    """Return values as a contiguous float64 array of ndim dimensions, or raise an error that names the argument."""
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers. Got {type(values).__name__}: {error}") from error
    if ndim is not None and array.ndim != ndim:
        raise ValueError(
            f"{name} must have {ndim} dimension{'s' if ndim > 1 else ''}. Got shape {array.shape} instead."
        )
    return array


def check_int(owner: str, name: str, value: Any, low: int) -> int:
    """Return value as an int of at least low, or raise an error that names the parameter and its owner."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < low:
        raise ValueError(f"The {name!r} parameter of {owner} must be an int in [{low}, inf). Got {value!r} instead.")
    return int(value)


def check_count(owner: str, name: str, value: Any, low: int, each: int) -> int:
    """Return value as an int of at least low, such that this many answers of ``each`` numbers fit into memory."""
    count = check_int(owner, name, value, low)
    if count * max(each, 1) > MOST_NUMBERS:
        raise ValueError(
            f"The {name!r} parameter of {owner} must give an answer of at most {MOST_NUMBERS} numbers. "
            f"Got {count}, each with {max(each, 1)} numbers."
        )
    return count


def check_temperature(owner: str, temperature: Any) -> float:
    """Return temperature as a float that is 0, or large enough to divide by; or raise an error that names it."""
    good = isinstance(temperature, int | float | np.integer | np.floating) and not isinstance(temperature, bool)
    if not good or not 0.0 <= float(temperature) < np.inf:
        raise ValueError(
            f"The 'temperature' parameter of {owner} must be a float in [0, inf). Got {temperature!r} instead."
        )
    if 0.0 < float(temperature) < LEAST_TEMPERATURE:
        raise ValueError(
            f"The 'temperature' parameter of {owner} must be 0, which maximises, or at least {LEAST_TEMPERATURE:g}: "
            f"scores are divided by it. Got {temperature!r} instead."
        )
    return float(temperature)


def add_cost(node: Floats, cost: ArrayLike | None) -> Floats:
    """Return node scores with a cost of their shape added to them, if there is one."""
    if cost is None:
        return node
    array = as_floats("cost", cost, 2)
    if array.shape != node.shape:
        raise ValueError(f"cost must have the shape of the node scores, {node.shape}. Got {array.shape} instead.")
    with np.errstate(invalid="ignore"):  # inf - inf is told of as a bad number
        return node + array


def check_end(name: str, scores: Floats | None, n_labels: int) -> Floats | None:
    """Return scores of labels at an end, or None."""
    if scores is not None:
        if scores.shape != (n_labels,):
            raise ValueError(f"{name} must have shape ({n_labels},). Got {scores.shape} instead.")
        if not (scores < np.inf).all():
            raise ValueError(f"{name} must be finite, or -inf for what is forbidden. Got NaN or +inf instead.")
    return scores


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for n_jobs, scikit-learn's way: None is 1 unless a joblib context says otherwise."""
    # True counts as an int, as in scikit-learn.
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ValueError(f"The 'n_jobs' parameter must be None or an int other than 0. Got {n_jobs!r} instead.")
    if n_jobs == 1 or (n_jobs is None and "joblib" not in sys.modules):  # no context has a say, or nobody made one
        return 1
    import joblib

    backend, _ = joblib.parallel.get_active_backend()
    if hasattr(backend, "client"):  # Dask counts the cores of all machines of a cluster, whatever n_jobs is
        wanted = 1 if n_jobs is None else int(n_jobs)
        return wanted if wanted > 0 else max(1, joblib.cpu_count() + 1 + wanted)
    return max(1, int(joblib.effective_n_jobs(n_jobs)))


def draw_seed(random_state: Any) -> int:
    """Return the seed of a native random stream, drawn from a scikit-learn random_state."""
    from sklearn.utils import check_random_state  # slow to import, and predictions draw nothing

    low, high = check_random_state(random_state).randint(0, 2**32, size=2, dtype=np.uint64)
    return int(low) | int(high) << 32


def check_codes(labels: ArrayLike, n_nodes: int, n_labels: int) -> Codes:
    """Return label codes as int32 of shape (n_nodes,), each in [0, n_labels), or raise an error that says where."""
    codes = np.asarray(labels)
    if codes.size == 0:
        codes = codes.astype(np.int32)  # an empty list has no type of its own
    if codes.shape != (n_nodes,) or not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(
            f"labels must be integer codes of shape ({n_nodes},), one for each node. "
            f"Got shape {codes.shape} and dtype {codes.dtype} instead."
        )
    outside = np.flatnonzero((codes < 0) | (codes >= n_labels))
    if outside.size:
        at = int(outside[0])
        raise ValueError(f"labels must lie in [0, {n_labels}). Got labels[{at}] = {codes[at]} instead.")
    return np.ascontiguousarray(codes, dtype=np.int32)
