"""Which kernel the parameters of a model ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualfield.estimators.checks import check_choice, check_number
from dualfield.kernels import KERNEL_NAMES

Floats = NDArray[np.float64]


def check_kernel(owner: str, model: Any, names: tuple[str, ...] = KERNEL_NAMES) -> None:
    """Raise unless kernel, gamma, degree and coef0 of a model make sense."""
    if not callable(model.kernel):
        check_choice(owner, "kernel", model.kernel, names, "a callable")
    if not isinstance(model.gamma, str):
        check_number(owner, "gamma", model.gamma, 0.0, open_low=True)
    else:
        check_choice(owner, "gamma", model.gamma, ("scale", "auto"), "a float in (0, inf)")
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
    # In units of the largest entry, whose square may be no number.
    entries = X.data if sparse.issparse(X) else X
    unit = float(np.abs(entries).max()) if entries.size else 0.0
    if unit == 0.0:
        return 1.0
    variance = _variance(X / unit, weights)
    with np.errstate(over="ignore", under="ignore"):
        scale = 1.0 / (int(X.shape[1]) * variance) / unit / unit if variance > 0 else 1.0
    if not np.finfo(np.float64).tiny <= scale < np.inf:
        raise ValueError(
            f"gamma='scale' is 1 / (n_features · X.var()), which is no number in double precision for entries of X as "
            f"large as {unit:.3g}. Scale the features, for instance with StandardScaler, or set gamma."
        )
    return scale


def _variance(X: Any, weights: Floats) -> float:
    """Variance of all entries of X, as ``X.var()``, each row counted by its weight."""
    share = weights / (weights.sum() * X.shape[1])
    mean = float(np.asarray(share @ X).sum())
    if bool(sparse.issparse(X)):  # what is not stored is zero: no difference of two large numbers
        rows = sparse.csr_array(X, dtype=np.float64)
        stored = np.repeat(share, np.diff(rows.indptr))
        empty = float(share.sum()) * X.shape[1] - float(stored.sum())
        return float(stored @ np.square(rows.data - mean)) + max(empty, 0.0) * mean**2
    return float((share @ np.square(X - mean, dtype=np.float64)).sum())
