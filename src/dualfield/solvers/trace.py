"""The course of a fit: where it stands at the end of a pass, and the rows of all looks at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dualfield.data.arrays import Floats

__all__ = ["Moment", "Trace", "relative_gap"]


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

    @property
    def end(self) -> Moment:
        """The last entry."""
        return Moment(*self.rows()[-1].tolist())

    def then(self, other: Trace) -> Trace:
        """Append the course of what came after this one.

        Parameters
        ----------
        other : Trace
            Its passes and seconds count from its own beginning.

        Returns
        -------
        Trace
            Both, as one course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import Trace
        >>> one, two = (Trace.from_rows(np.array([[3.0, 1.0, 2.0, passes, 0.5]])) for passes in (4.0, 2.0))
        >>> one.then(two).passes, one.then(two).seconds
        (array([4., 6.]), array([0.5, 1. ]))
        """
        if not len(self):
            return other
        after = other.spent(float(self.passes[-1]), float(self.seconds[-1]))
        return Trace.from_rows(np.concatenate([self.rows(), after.rows()]))

    def spent(self, passes: float, seconds: float = 0.0) -> Trace:
        """Return this course after other work.

        Parameters
        ----------
        passes, seconds : float
            What that took.

        Returns
        -------
        Trace
            With the work added to every entry.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import Trace
        >>> Trace.from_rows(np.array([[3.0, 1.0, 2.0, 4.0, 0.5]])).spent(2.0).passes
        array([6.])
        """
        return Trace(self.objective, self.dual, self.gap, self.passes + passes, self.seconds + seconds)

    def ended(self, objective: float, dual: float, gap: float, passes: float = 0.0, seconds: float = 0.0) -> Trace:
        """Append a last look.

        Parameters
        ----------
        objective, dual, gap : float
            What it has found.
        passes, seconds : float, default=0.0
            What it took.

        Returns
        -------
        Trace
            With one entry more.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import Trace
        >>> Trace.from_rows(np.array([[3.0, 1.0, 2.0, 4.0, 0.5]])).ended(2.0, 1.5, 0.5, passes=1.0).end.passes
        5.0
        """
        return self.then(Trace.from_rows(np.array([[objective, dual, gap, passes, seconds]])))

    def scaled(self, factor: float) -> Trace:
        """Multiply all values, as for an objective that is counted in other units.

        Parameters
        ----------
        factor : float
            A number above zero.

        Returns
        -------
        Trace
            The same course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import Trace
        >>> Trace.from_rows(np.array([[3.0, 1.0, 2.0, 4.0, 0.5]])).scaled(2.0).gap
        array([4.])
        """
        return Trace(self.objective * factor, self.dual * factor, self.gap * factor, self.passes, self.seconds)


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
    >>> from dualfield.solvers.trace import relative_gap
    >>> relative_gap(3.0, 1.0), relative_gap(1.0, 2.0)
    (0.5, inf)
    """
    dual = objective - gap
    if gap <= 0.0:  # also where there is nothing to gain: zero by zero
        return 0.0
    return gap / dual if dual > 0 or np.isnan(gap) else np.inf
