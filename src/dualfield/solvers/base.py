"""What solvers are given and return: when to stop, where to begin, a solution, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.solvers.trace import Moment, Trace, relative_gap

__all__ = ["KernelParts", "KernelPoint", "Solution", "Status", "StopRule"]

Progress = Callable[[float, float, float, float, float], None]  # objective, dual, gap, passes, seconds
Point = TypeVar("Point")
_DEFAULT_PASSES = 10_000.0


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

    @classmethod
    def of(cls, solver: Any, tol: float, max_iter: int | None) -> StopRule:
        """Return the rule that the parameters of an estimator stand for.

        Parameters
        ----------
        solver : Solver
            One that makes epochs knows how many; others stop after 10,000 passes.
        tol, max_iter
            The parameters.

        Returns
        -------
        StopRule
            The rule.

        Examples
        --------
        >>> from dualfield.solvers import LBFGS, SGD, StopRule
        >>> StopRule.of(SGD(), 1e-3, None).max_passes, StopRule.of(LBFGS(), 1e-3, 7).max_passes
        (inf, 7.0)
        """
        most = np.inf if getattr(solver, "makes_epochs", False) else _DEFAULT_PASSES
        return cls(float(tol), most if max_iter is None else float(max_iter))

    def after(self, course: Trace) -> StopRule:
        """Return the rule for what is left to do.

        Parameters
        ----------
        course : Trace
            What was done.

        Returns
        -------
        StopRule
            With fewer passes.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import StopRule, Trace
        >>> StopRule(1e-3, 10.0).after(Trace.from_rows(np.array([[3.0, 1.0, 2.0, 4.0, 0.5]])))
        StopRule(tol=0.001, max_passes=6.0)
        """
        return replace(self, max_passes=self.max_passes - float(course.passes[-1]))


@dataclass(frozen=True, eq=False)
class KernelPoint:
    """A point of a kernel machine: what its solvers return as parameters, and where they can begin.

    Parameters
    ----------
    coefficients : ndarray of shape (n, n_rows)
        Coefficients of every training point.
    bias : ndarray of shape (n_rows,)
        One for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import KernelPoint
    >>> KernelPoint(np.zeros((3, 1)), np.zeros(1)).bias
    array([0.])
    """

    coefficients: Floats
    bias: Floats


@dataclass(frozen=True, eq=False)
class KernelParts:
    """A point of a structured model with a kernel: it scores each node or edge, other parts have scores in common.

    Parameters
    ----------
    coefficients : ndarray of shape (n_nodes, n_labels)
        Coefficients of every node; without rows where the kernel scores edges only.
    shared : ndarray
        Scores of the parts that all places share: cliques, then starts and stops where they have weights. Empty where
        there are none.
    pairs : ndarray of shape (n_edges, n_labels²), default=None
        Coefficients of the scores of every edge; None where no kernel scores them.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers import KernelParts
    >>> KernelParts(np.zeros((3, 2)), np.zeros(4)).shared
    array([0., 0., 0., 0.])
    """

    coefficients: Floats
    shared: Floats
    pairs: Floats | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution(Generic[Point]):
    """A point, and how good it is.

    Attributes
    ----------
    parameters : ndarray of shape (n_parameters,), KernelPoint or KernelParts
        The vector w of a linear model, or the point of one with a kernel.
    objective, gap : float
        Primal value at this point, and a bound on its distance from the minimum; NaN where there is none.
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
    >>> from dualfield.solvers import Solution, Status, Trace
    >>> course = Trace.from_rows(np.array([[3.0, 1.0, 2.0, 1.0, 0.1]]))
    >>> found = Solution(
    ...     parameters=np.zeros(4),
    ...     objective=3.0,
    ...     gap=2.0,
    ...     status=Status.STALLED,
    ...     n_iter=1,
    ...     trace=course,
    ...     solver="lbfgs",
    ... )
    >>> found.relative_gap
    2.0
    """

    parameters: Point
    objective: float
    gap: float
    status: Status
    n_iter: int
    trace: Trace
    solver: str
    dual: dict[str, NDArray[Any]] | None = None

    @classmethod
    def exact(cls, parameters: Point, solver: str) -> Solution[Point]:
        """Return a point that was found without iterations, such as a table of counts.

        Parameters
        ----------
        parameters : ndarray
            The point.
        solver : str
            What found it.

        Returns
        -------
        Solution
            With a gap of zero.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import Solution
        >>> Solution.exact(np.zeros(2), "counting").gap
        0.0
        """
        trace = Trace.from_rows(np.array([[0.0, 0.0, 0.0, 1.0, 0.0]]))
        return cls(
            parameters=parameters,
            objective=0.0,
            gap=0.0,
            status=Status.CONVERGED,
            n_iter=1,
            trace=trace,
            solver=solver,
        )

    @property
    def relative_gap(self) -> float:
        """Gap divided by the dual value; infinite while that is not positive."""
        return relative_gap(self.objective, self.gap)

    @property
    def moment(self) -> Moment:
        """Where it ended."""
        end = self.trace.end
        return Moment(self.objective, self.objective - self.gap, self.gap, end.passes, end.seconds)

    def after(self, before: Solution[Any]) -> Solution[Point]:
        """Return this solution with the course and the iterations of an earlier stage in front of its own.

        Parameters
        ----------
        before : Solution
            What another solver, or this one, did before.

        Returns
        -------
        Solution
            This point.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import Solution, Status, Trace
        >>> course = Trace.from_rows(np.array([[3.0, 1.0, 2.0, 4.0, 0.1]]))
        >>> stage = Solution(
        ...     parameters=np.zeros(4),
        ...     objective=3.0,
        ...     gap=2.0,
        ...     status=Status.STALLED,
        ...     n_iter=5,
        ...     trace=course,
        ...     solver="a",
        ... )
        >>> both = stage.after(stage)
        >>> both.n_iter, both.trace.passes
        (10, array([4., 8.]))
        """
        return replace(self, n_iter=before.n_iter + self.n_iter, trace=before.trace.then(self.trace))
