"""Check that a kernel is positive semidefinite: convexity, and with it every certificate, needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.kernels.kernel import Kernel

__all__ = ["check_curvature", "check_mercer", "check_values", "refusals"]

NotPositiveError = _native.NotPositiveError  # a ValueError

# Points of which all kernel values are looked at together; of more than that, a sample.
SAMPLE = 300
# What rounding may take from an eigenvalue, next to the norm of the matrix: values from outside may come from single
# precision, and from long sums of it; our own are of double precision.
_ROUNDING, _OWN_ROUNDING = 1e-5, 1e-9
# Rounding of sums of kernel values times coefficients in double precision, next to the sum of the magnitudes that are
# added up, a few units in the last place: what is added to gaps. So far below zero they prove that it is no kernel,
# even if its values come from outside and were computed in single precision there.
ROUNDING, _CLEARLY = 1e-15, 1e-6

_OUTSIDE = "Add a multiple of the identity to the values or set their negative eigenvalues to zero, or use kernel='rbf'"
_REMEDIES = {
    "sigmoid": "Use kernel='rbf', or another gamma and coef0: few of them make this function a kernel",
    "poly": "Use a coef0 of at least 0 and an integer degree, or kernel='rbf'",
    "precomputed": _OUTSIDE,
}


def check_mercer(kernel: Kernel, points: Any, n_threads: int = 1) -> None:
    """Raise unless kernel values between the points can be those of a Mercer kernel.

    Kernels that are positive semidefinite by their formula pass at once. Of others all values between at most 300
    points are computed: between all of them, or between a sample that is always the same. They must be finite and
    symmetric, without a negative value on the diagonal or a negative eigenvalue, up to rounding. That bounds all
    principal minors of these points too. What a sample misses, solvers meet as negative curvature.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    points : array or sparse matrix of shape (n, n_features)
        Training points, or (n, n) values of a precomputed kernel.
    n_threads : int, default=1
        Number of threads.

    Raises
    ------
    NotPositiveError
        A ValueError that names the kernel, what is wrong with it, and a remedy.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels.kernel import Kernel
    >>> from dualfield.kernels.mercer import check_mercer
    >>> X = np.array([[0.1], [1.0]])
    >>> check_mercer(Kernel("rbf"), X)
    >>> check_mercer(Kernel("sigmoid", coef0=-0.5), X)
    Traceback (most recent call last):
    ...
    dualfield._native.NotPositiveError: kernel='sigmoid' (gamma=1, coef0=-0.5) is not positive semidefinite ...
    """
    if kernel.is_mercer:
        return
    n = int(points.shape[0])
    chosen = np.arange(n)
    if n > SAMPLE:
        chosen = np.sort(np.random.default_rng(0).permutation(n)[:SAMPLE])
    with refusals(kernel):
        if kernel.is_precomputed:
            values = np.asarray(points[np.ix_(chosen, chosen)], dtype=np.float64)
        else:
            few = points if n <= SAMPLE else points[chosen]
            values = kernel.values(few, few, n_threads)
        is_own = kernel.function in ("poly", "sigmoid")
        check_values(values, _OWN_ROUNDING if is_own else _ROUNDING)


def check_values(values: Floats, rounding: float = _ROUNDING) -> None:
    """Raise unless a matrix of kernel values is finite, symmetric and positive semidefinite.

    Parameters
    ----------
    values : array of shape (n, n)
        Kernel values.
    rounding : float, default=1e-5
        How far below zero an eigenvalue may be, next to the norm of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels.mercer import check_values
    >>> check_values(np.array([[1.0, 2.0], [2.0, 1.0]]))
    Traceback (most recent call last):
    ...
    dualfield._native.NotPositiveError: The kernel is not positive semidefinite: an eigenvalue of its matrix is -1.
    """
    if not np.isfinite(values).all():
        raise NotPositiveError("Kernel values overflowed or are not numbers.")
    top = float(np.abs(values).max(initial=0.0))
    if top == 0.0:
        return
    unit = values / top
    apart, most = np.abs(unit - unit.T), rounding * float(np.linalg.norm(unit))
    if apart.max() > 1e-5:
        i, j = np.unravel_index(int(apart.argmax()), apart.shape)
        raise NotPositiveError(
            f"The kernel is not symmetric: it gives {values[i, j]:.6g} for two points and {values[j, i]:.6g} for the "
            "same in the other order."
        )
    lowest = float(unit.diagonal().min())
    if lowest < -most:
        raise NotPositiveError(
            f"The kernel is not positive semidefinite: its value for a point with itself is {top * lowest:.6g}."
        )
    lowest = float(np.linalg.eigvalsh((unit + unit.T) / 2)[0])
    if lowest < -most:
        raise NotPositiveError(
            f"The kernel is not positive semidefinite: an eigenvalue of its matrix is {top * lowest:.6g}."
        )


def check_curvature(curvature: float, scale: float) -> None:
    """Raise if a curvature ⟨b, K b⟩, or a duality gap, is below zero by more than rounding.

    Parameters
    ----------
    curvature : float
        The number that cannot be negative with a Mercer kernel.
    scale : float
        Sum of the magnitudes of the terms that it was added up from.

    Examples
    --------
    >>> from dualfield.kernels.mercer import check_curvature
    >>> check_curvature(-1e-16, 1.0)
    >>> check_curvature(-0.5, 1.0)
    Traceback (most recent call last):
    ...
    dualfield._native.NotPositiveError: The kernel is not positive semidefinite: a direction ...
    """
    if not np.isfinite(curvature):
        raise NotPositiveError("Kernel values overflowed or are not numbers.")
    if curvature < -_CLEARLY * scale:
        raise NotPositiveError("The kernel is not positive semidefinite: a direction of negative curvature was found.")


@contextmanager
def refusals(kernel: Kernel) -> Iterator[None]:
    """Give what refuses a kernel the same words everywhere: which kernel it is, and a remedy.

    Parameters
    ----------
    kernel : Kernel
        The kernel that the work inside the context is about.

    Yields
    ------
    None
        To a context in which any :class:`NotPositiveError` gets these words.

    Examples
    --------
    >>> from dualfield.kernels.kernel import Kernel
    >>> from dualfield.kernels.mercer import check_curvature, refusals
    >>> with refusals(Kernel("poly", coef0=-1.0)):
    ...     check_curvature(-1.0, 1.0)
    Traceback (most recent call last):
    ...
    dualfield._native.NotPositiveError: kernel='poly' (gamma=1, coef0=-1, degree=3) is not positive semidefinite ...
    """
    try:
        yield
    except NotPositiveError as error:
        if getattr(error, "is_named", False):
            raise
        named = NotPositiveError(_sentence(kernel, str(error)))
        named.is_named = True  # type: ignore[attr-defined]
        raise named from error


def _sentence(kernel: Kernel, reason: str) -> str:
    made_of = getattr(kernel.function, "kernel", None)
    if isinstance(made_of, Kernel):  # a sum of its values; users know it by this one
        kernel = made_of
    elif reason.startswith("The 'kernel' function must return"):
        return reason
    begin = "The kernel is not positive semidefinite: "
    subject, remedy = _name(kernel), _REMEDIES.get(str(kernel.function), _OUTSIDE)
    if not reason.startswith("The kernel is not"):
        what = "its values overflow or are not numbers, or C is too large"
        return f"{subject} leads to scores that are not finite: {what}. Scale the features, or choose another kernel."
    if reason.startswith(begin):
        what = f"{subject} is not positive semidefinite on these points: {reason.removeprefix(begin)}"
    else:
        what = reason.replace("The kernel", subject, 1)
    return f"{what} Without that the objective has no minimum, and no gap proves anything. {remedy}."


def _name(kernel: Kernel) -> str:
    if callable(kernel.function):
        return f"The 'kernel' function {getattr(kernel.function, '__name__', type(kernel.function).__name__)}"
    given = {"poly": ("gamma", "coef0", "degree"), "sigmoid": ("gamma", "coef0")}.get(kernel.function, ())
    numbers = ", ".join(f"{name}={getattr(kernel, name):g}" for name in given)
    return f"kernel={kernel.function!r}" + (f" ({numbers})" if numbers else "")
