"""The end of a pass: a monitor looks, and a state is kept from which the fit can go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualfield.solvers.base import Moment
from dualfield.solvers.progress import ProgressLine

__all__ = ["Course"]

Floats = NDArray[np.float64]
State = dict[str, NDArray[Any]]


class PassEnd(Protocol):
    """What a solver offers at the end of a pass; computed only if it is asked for."""

    def progress(self) -> tuple[float, float, float, float, float]:
        """Return objective, dual, gap, passes and seconds."""

    def parameters(self) -> Floats:
        """Return the weights of this moment."""

    def state(self) -> State:
        """Return arrays with which the solver can go on later."""


class Course:
    """Goes along with a fit: shows its progress, lets a monitor look at the end of passes, keeps states.

    Parameters
    ----------
    line : ProgressLine
        Shows progress.
    monitor : callable, default=None
        Gets a :class:`Moment` and the parameters at the end of each pass; a true value that it returns ends the fit.
    keep : callable, default=None
        Gets the state of the solver at the end of a pass, whenever `is_due` says so.
    is_due : callable, default=None
        Whether the state is to be kept now.
    resume : dict, default=None
        A state to go on from.

    Examples
    --------
    >>> from dualfield.solvers.callbacks import Course
    >>> from dualfield.solvers.progress import ProgressLine
    >>> Course(ProgressLine("fit", 0)).pass_end is None   # nobody asks
    True
    """

    def __init__(
        self,
        line: ProgressLine,
        monitor: Callable[[Moment, Floats], Any] | None = None,
        keep: Callable[[State], None] | None = None,
        is_due: Callable[[], bool] | None = None,
        resume: State | None = None,
    ) -> None:
        self.interval, self.resume = line.interval, resume
        self._line, self._monitor, self._keep, self._is_due = line, monitor, keep, is_due
        self._told = -1.0
        # Solvers look for this attribute; where it is None they do not stop at the end of passes.
        self.pass_end = None if monitor is None and keep is None else self._pass_end

    def __call__(self, objective: float, dual: float, gap: float, passes: float, seconds: float) -> None:
        """Show where a solver stands.

        Parameters
        ----------
        objective, dual, gap, passes, seconds : float
            As for :class:`dualfield.solvers.progress.ProgressLine`.

        Examples
        --------
        >>> from dualfield.solvers.callbacks import Course
        >>> from dualfield.solvers.progress import ProgressLine
        >>> Course(ProgressLine("fit", 0))(3.0, 1.0, 2.0, 1.5, 0.1)
        """
        self._line(objective, dual, gap, passes, seconds)

    def later(self, passes: float, seconds: float) -> Later:
        """Return the course of a solver that goes on where another one has ended.

        Parameters
        ----------
        passes, seconds : float
            What has been spent before; the line and the monitor see it added.

        Returns
        -------
        Later
            It keeps no states: those of the first solver stay, and lead here again.

        Examples
        --------
        >>> from dualfield.solvers.callbacks import Course
        >>> from dualfield.solvers.progress import ProgressLine
        >>> Course(ProgressLine("fit", 0)).later(300.0, 0.5).resume is None
        True
        """
        return Later(self, passes, seconds)

    def last(self, moment: Moment, parameters: Floats) -> None:
        """Let the monitor see the end, unless it has.

        Parameters
        ----------
        moment : Moment
            The end of the fit.
        parameters : array
            Its result.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import Moment
        >>> from dualfield.solvers.callbacks import Course
        >>> from dualfield.solvers.progress import ProgressLine
        >>> seen = []
        >>> course = Course(ProgressLine("fit", 0), lambda moment, w: seen.append(moment.passes))
        >>> course.last(Moment(3.0, 2.0, 1.0, 4.0, 0.1), np.zeros(2))
        >>> seen
        [4.0]
        """
        if self._monitor is not None and moment.passes > self._told:
            self._monitor(moment, parameters)

    def _pass_end(self, end: PassEnd) -> bool:
        # A state first: a monitor may take long, and may be interrupted.
        if self._keep is not None and self._is_due is not None and self._is_due():
            self._keep(end.state())
        return self._look(end, 0.0, 0.0)

    def _look(self, end: PassEnd, passes: float, seconds: float) -> bool:
        if self._monitor is None:
            return False
        objective, dual, gap, own_passes, own_seconds = end.progress()
        moment = Moment(objective, dual, gap, passes + own_passes, seconds + own_seconds)
        self._told = moment.passes
        return bool(self._monitor(moment, end.parameters()))


class Later:
    """What a second solver is told with: see :meth:`Course.later`."""

    resume = None

    def __init__(self, course: Course, passes: float, seconds: float) -> None:
        self.interval = course.interval
        self.passes, self.seconds = passes, seconds
        self._course = course
        self.pass_end = None if course._monitor is None else self._pass_end

    def __call__(self, objective: float, dual: float, gap: float, passes: float, seconds: float) -> None:
        self._course(objective, dual, gap, self.passes + passes, self.seconds + seconds)

    def _pass_end(self, end: PassEnd) -> bool:
        return self._course._look(end, self.passes, self.seconds)
