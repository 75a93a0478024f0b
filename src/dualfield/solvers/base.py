"""What every solver returns and says: solutions, outcomes with a remedy, the course of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LinearSolution", "Moment", "Solution", "Start", "Status", "StopRule", "Trace"]

Floats = NDArray[np.float64]
Progress = Callable[[float, float, float, float, float], None]  # objective, dual, gap, passes, seconds


class Status(Enum):
    """How a fit ended.

    Examples
    --------
    >>> from dualfield.solvers import Status
    >>> Status.CONVERGED.value
    'converged'
    >>> print(Status.ITERATION_LIMIT.remedy)
    Increase max_iter, or tol if this gap is good enough.
    """

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration_limit"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"
    TOO_SLOW = "too_slow"
    FINISHED = "finished"
    STOPPED = "stopped"

    @property
    def sentence(self) -> str:
        """What happened."""
        return {
            Status.CONVERGED: "The duality gap is within the tolerance.",
            Status.ITERATION_LIMIT: "The limit on passes was reached.",
            Status.INTERRUPTED: "The fit was interrupted; the model is the best point so far.",
            Status.STALLED: "Rounding leaves no step that improves the objective.",
            Status.TOO_SLOW: "The solver expected to need too many passes and gave up.",
            Status.FINISHED: "The solver made all its passes; it does not aim at a gap.",
            Status.STOPPED: "The monitor asked to stop.",
        }[self]

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return {
            Status.CONVERGED: "",
            Status.ITERATION_LIMIT: "Increase max_iter, or tol if this gap is good enough.",
            Status.INTERRUPTED: "Fit again with warm_start=True to go on from here.",
            Status.STALLED: "Raise tol; where there are features and C, scale the features or lower C.",
            Status.TOO_SLOW: "Use solver='newton', or 'auto', which goes on with it.",
            Status.FINISHED: "",
            Status.STOPPED: "",
        }[self]


@dataclass(frozen=True, eq=False)
class Trace:
    """The course of a fit, one entry for each look at it.

    Attributes
    ----------
    objective, dual, gap : ndarray
        Primal value, dual value and their difference.
    passes : ndarray
        Work so far, in passes over the data; for kernel machines, products of the kernel matrix with the coefficients.
    seconds : ndarray
        Time so far, without the computation of a kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import Trace
    >>> len(Trace.from_rows(np.array([[3.0, 1.0, 2.0, 1.0, 0.1]])))
    1
    """

    objective: Floats
    dual: Floats
    gap: Floats
    passes: Floats
    seconds: Floats

    def __len__(self) -> int:
        return len(self.gap)

    @property
    def kernel_passes(self) -> Floats:
        """What passes are for kernel machines."""
        return self.passes

    @classmethod
    def from_rows(cls, rows: Floats) -> Trace:
        """Make a trace of rows (objective, dual, gap, passes, seconds).

        Parameters
        ----------
        rows : ndarray of shape (n, 5)
            One row for each look.

        Returns
        -------
        Trace
            The columns by name.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import Trace
        >>> Trace.from_rows(np.array([[3.0, 1.0, 2.0, 1.0, 0.1]])).gap
        array([2.])
        """
        return cls(*np.ascontiguousarray(np.reshape(rows, (-1, 5)).T))

    def rows(self) -> Floats:
        """Return the rows again.

        Returns
        -------
        ndarray of shape (n, 5)
            Objective, dual, gap, passes, seconds.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import Trace
        >>> Trace.from_rows(np.ones((2, 5))).rows().shape
        (2, 5)
        """
        return np.column_stack([self.objective, self.dual, self.gap, self.passes, self.seconds])


@dataclass(frozen=True)
class StopRule:
    """When to stop.

    Parameters
    ----------
    tol : float
        On gap / dual value.
    max_passes : float, default=inf
        Limit on passes.

    Examples
    --------
    >>> from dualfield.solvers import StopRule
    >>> StopRule(1e-3).max_passes
    inf
    """

    tol: float
    max_passes: float = np.inf


@dataclass(frozen=True, eq=False)
class Start:
    """Where to begin: coefficients and bias of an earlier fit.

    Parameters
    ----------
    coefficients : ndarray of shape (n, n_rows)
        Coefficients of every point.
    bias : ndarray of shape (n_rows,)
        One for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import Start
    >>> Start(np.zeros((3, 1)), np.zeros(1)).bias
    array([0.])
    """

    coefficients: Floats
    bias: Floats


@dataclass(frozen=True, eq=False)
class Solution:
    """A point, and how good it is.

    Attributes
    ----------
    coefficients : ndarray of shape (n, n_rows)
        Coefficients of every point.
    bias : ndarray of shape (n_rows,)
        One for each row.
    objective, gap : float
        Primal value at this point, and a bound on its distance from the minimum.
    status : Status
        How the solver ended.
    n_iter : int
        Its iterations.
    trace : Trace
        Its course.
    solver : str
        Its name.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import Solution, Status, Trace
    >>> rows = np.array([[3.0, 1.0, 2.0, 1.0, 0.1]])
    >>> course = Trace.from_rows(rows)
    >>> Solution(np.zeros((3, 1)), np.zeros(1), 3.0, 2.0, Status.STALLED, 1, course, "newton").relative_gap
    2.0
    """

    coefficients: Floats
    bias: Floats
    objective: float
    gap: float
    status: Status
    n_iter: int
    trace: Trace
    solver: str

    @property
    def relative_gap(self) -> float:
        """Gap divided by the dual value; infinite while that is not positive."""
        return relative_gap(self.objective, self.gap)


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Parameters of a linear model, and how good they are.

    Attributes
    ----------
    parameters : ndarray of shape (n_parameters,)
        The vector w.
    objective, gap : float
        Primal value, and a bound on its distance from the minimum; NaN where there is none.
    status : Status
        How the solver ended.
    n_iter : int
        Its iterations.
    trace : Trace
        Its course.
    solver : str
        Its name.
    dual : dict or None
        The point of the dual as arrays by name, from solvers that can begin at one.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import LinearSolution, Status, Trace
    >>> course = Trace.from_rows(np.array([[3.0, 1.0, 2.0, 1.0, 0.1]]))
    >>> LinearSolution(np.zeros(4), 3.0, 2.0, Status.STALLED, 1, course, "lbfgs").relative_gap
    2.0
    """

    parameters: Floats
    objective: float
    gap: float
    status: Status
    n_iter: int
    trace: Trace
    solver: str
    dual: dict[str, NDArray[Any]] | None = None

    @property
    def relative_gap(self) -> float:
        """Gap divided by the dual value; infinite while that is not positive."""
        return relative_gap(self.objective, self.gap)

    @property
    def moment(self) -> Moment:
        """Where it ended."""
        passes, seconds = float(self.trace.passes[-1]), float(self.trace.seconds[-1])
        return Moment(self.objective, self.objective - self.gap, self.gap, passes, seconds)


@dataclass(frozen=True)
class Moment:
    """Where a fit stands at the end of a pass.

    Attributes
    ----------
    objective, dual, gap : float
        Primal value, dual value, and their difference. Solvers that know no gap tell the sum of the losses they met on
        the way, and an infinite gap.
    passes, seconds : float
        Passes over the data so far, and the time they took.

    Examples
    --------
    >>> from dualfield.solvers import Moment
    >>> Moment(3.0, 2.0, 1.0, 4.0, 0.1).relative_gap
    0.5
    """

    objective: float
    dual: float
    gap: float
    passes: float
    seconds: float

    @property
    def relative_gap(self) -> float:
        """Gap divided by the dual value; infinite while that is not positive."""
        return relative_gap(self.objective, self.gap)


def relative_gap(objective: float, gap: float) -> float:
    """Divide a gap by the dual value; infinite while that is not positive, NaN without a gap.

    Parameters
    ----------
    objective, gap : float
        Primal value and its distance from the dual value.

    Returns
    -------
    float
        gap / (objective - gap).

    Examples
    --------
    >>> from dualfield.solvers.base import relative_gap
    >>> relative_gap(3.0, 1.0), relative_gap(1.0, 2.0)
    (0.5, inf)
    """
    dual = objective - gap
    if gap <= 0.0:  # also where there is nothing to gain: zero by zero
        return 0.0
    return gap / dual if dual > 0 or np.isnan(gap) else np.inf
