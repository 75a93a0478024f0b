"""The warning of fits that did not reach their tolerance."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from dualfield.data.user_warnings import warn_user
from dualfield.solvers.base import Solution, Status

__all__ = ["warn_of_convergence", "warn_unless_converged"]


def warn_unless_converged(solution: Solution[Any], tol: float, passes: str = "passes") -> None:
    """Warn where a fit has not reached its tolerance, at the line outside this package that has asked for the fit.

    Parameters
    ----------
    solution : Solution
        What the solver returned.
    tol : float
        On the relative gap.
    passes : str, default="passes"
        What its passes are.

    Examples
    --------
    >>> from dualfield.solvers import LBFGS, StopRule, prototypes
    >>> from dualfield.solvers.convergence import warn_unless_converged
    >>> warn_unless_converged(LBFGS().solve(prototypes.objective(temperature=1.0), StopRule(1e-3)), 1e-3)
    """
    status = solution.status
    if status not in (Status.CONVERGED, Status.FINISHED, Status.STOPPED):
        gap, done = f"Relative duality gap {solution.relative_gap:.3g}", f"{solution.trace.passes[-1]:.0f} {passes}"
        warn_of_convergence(f"{status.sentence} {gap}, tolerance {tol:g}, {done}. {status.remedy}")


def warn_of_convergence(text: str) -> None:
    """Warn of a fit at the line outside this package that has asked for it.

    Parameters
    ----------
    text : str
        What happened, and what to do about it.

    Examples
    --------
    >>> import warnings
    >>> from dualfield.solvers.convergence import warn_of_convergence
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_convergence("The limit on steps was reached. Increase max_iter.")
    >>> caught[0].category.__name__
    'ConvergenceWarning'
    """
    warn_user(text, ConvergenceWarning)
