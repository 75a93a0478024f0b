"""The parameters of kernels, and the choice of gamma."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice, check_number
from dualfield.kernels.kernel import KERNEL_NAMES


def check_kernel(owner: str, model: Any, names: tuple[str, ...] = KERNEL_NAMES) -> None:
    """Raise unless kernel, gamma, degree and coef0 of a model make sense."""
    if not callable(model.kernel):
        check_choice(owner, "kernel", model.kernel, names, "a callable")
    for name in ("gamma", "pair_gamma"):
        value = getattr(model, name, None)
        if isinstance(value, str):
            check_choice(owner, name, value, ("scale", "auto"), "a float in (0, inf)")
        elif name == "gamma" or value is not None:
            check_number(owner, name, value, 0.0, open_low=True)
    check_number(owner, "degree", model.degree, 0.0)
    check_number(owner, "coef0", model.coef0, -np.inf)


def chosen_gamma(kernel: Any, gamma: float | str, X: Any, weights: Floats) -> float:
    """Return γ: given, 1 / n_features ("auto"), or that divided by the variance of the entries of X ("scale")."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    if kernel not in ("poly", "rbf", "laplacian", "sigmoid"):
        return 1.0 / int(X.shape[1])
    entries = X.data if bool(sparse.issparse(X)) else X
    largest = float(np.abs(entries).max()) if entries.size else 0.0
    # Squares of very large and very small entries are no numbers: a power of two as unit costs no digit.
    unit = 1.0 if largest == 0.0 or 1e-100 < largest < 1e100 else math.ldexp(1.0, math.frexp(largest)[1] - 1)
    variance = _variance(X if unit == 1.0 else X / unit, weights)
    return scaled_gamma(int(X.shape[1]), variance, unit, largest)


def scaled_gamma(n_features: int, variance: float, unit: float = 1.0, largest: float = np.nan) -> float:
    """Return 1 / (n_features · variance · unit²), or raise where that is no number; entries are up to `largest`."""
    with np.errstate(over="ignore", under="ignore"):
        scale = float(np.float64(1.0) / (n_features * variance) / unit / unit) if variance > 0 else 1.0
    if not np.finfo(np.float64).tiny <= scale < np.inf:
        raise ValueError(
            f"gamma='scale' is 1 / (n_features · X.var()), which is no number in double precision for entries of X as "
            f"large as {largest:.3g}. Scale the features, for instance with StandardScaler, or set gamma."
        )
    return scale


def _variance(X: Any, weights: Floats) -> float:
    """Variance of all entries of X, as ``X.var()``, each row counted by its weight."""
    share = weights / (weights.sum() * X.shape[1])
    mean = float(np.asarray(share @ X).sum())
    if bool(sparse.issparse(X)):  # what is not stored is zero: no difference of two large numbers
        rows = sparse.csr_array(X, dtype=np.float64)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        stored = np.repeat(share, np.diff(rows.indptr))
        empty = float(share @ (X.shape[1] - np.diff(rows.indptr)))
        return float(stored @ np.square(rows.data - mean)) + empty * mean**2
    return float((share @ np.square(np.subtract(X, mean, dtype=np.float64))).sum())


def clique_gamma(gamma: float | str, inputs: Any) -> float:
    """Return γ for the inputs of a clique type."""
    if not isinstance(gamma, str):
        return float(gamma)
    n, width = int(inputs.shape[0]), int(inputs.shape[1])
    if gamma == "clique":
        return 8.0 / width
    if gamma == "auto":
        return 1.0 / width
    if hasattr(inputs, "indptr"):  # compressed rows
        entries = np.asarray(inputs.data, dtype=np.float64)
        variance = float(np.square(entries).sum()) / (n * width) - (float(entries.sum()) / (n * width)) ** 2
    else:
        variance = float(np.var(inputs, dtype=np.float64))
    return 1.0 / (width * variance) if variance > 0 else 1.0
