"""Callbacks: what a solver calls while it works, to show progress, to be monitored, to keep a state to resume from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.solvers.base import Progress
from dualfield.solvers.trace import Moment

__all__ = ["Callbacks", "FitCallbacks"]

State = dict[str, NDArray[Any]]


class PassEnd(Protocol):
    """What a solver offers at the end of a pass; computed only if it is asked for."""

    def progress(self) -> tuple[float, float, float, float, float]:
        """Return objective, dual, gap, passes and seconds."""

    def parameters(self) -> Floats:
        """Return the weights of this moment."""

    def state(self) -> State:
        """Return arrays with which the solver can go on later."""


class Callbacks:
    """What a solver calls and reads while it works; this one does nothing. A plain callable does as well.

    Attributes
    ----------
    interval : float
        Seconds between two calls, at least.
    pass_end : callable or None
        Gets a :class:`PassEnd` at the end of each pass; a true value that it returns ends the solve. Where it is None,
        solvers do not stop at the end of passes.
    resume : dict or None
        A state to go on from, arrays by name.
    bound : float
        A lower bound on the minimum that is known before.

    Examples
    --------
    >>> from dualfield.solvers.callbacks import Callbacks
    >>> Callbacks.of(None).pass_end is None
    True
    >>> Callbacks.of(lambda objective, dual, gap, passes, seconds: print(objective, gap))(3.0, 1.0, 2.0, 1.0, 0.1)
    3.0 2.0
    """

    interval: float = 0.05
    pass_end: Callable[[Any], bool] | None = None
    resume: State | None = None
    bound: float = -np.inf

    def __call__(self, objective: float, dual: float, gap: float, passes: float, seconds: float) -> None:
        """Hear where a solver stands.

        Parameters
        ----------
        objective, dual, gap, passes, seconds : float
            Primal value, dual value, their difference, passes over the data, time so far.

        Examples
        --------
        >>> from dualfield.solvers.callbacks import Callbacks
        >>> Callbacks()(3.0, 1.0, 2.0, 1.5, 0.1)
        """

    def later(self, passes: float, seconds: float) -> StageCallbacks:
        """Return the callbacks of a solver that goes on where another one has ended.

        Parameters
        ----------
        passes, seconds : float
            What has been spent before, which is added to what is reported.

        Returns
        -------
        StageCallbacks
            They report, and neither stop at the end of passes nor resume.

        Examples
        --------
        >>> from dualfield.solvers.callbacks import Callbacks
        >>> Callbacks.of(lambda *row: print(row)).later(10.0, 0.5)(3.0, 1.0, 2.0, 4.0, 0.25)
        (3.0, 1.0, 2.0, 14.0, 0.75)
        """
        return StageCallbacks(self, passes, seconds)

    @staticmethod
    def of(given: Progress | None) -> Callbacks:
        """Return callbacks as they are, or made of a callable, or of nothing.

        Parameters
        ----------
        given : Callbacks, callable or None
            What a solver was given.

        Returns
        -------
        Callbacks
            What it calls.

        Examples
        --------
        >>> from dualfield.solvers.callbacks import Callbacks
        >>> own = Callbacks()
        >>> Callbacks.of(own) is own
        True
        """
        if given is None:
            return Callbacks()
        return given if isinstance(given, Callbacks) else _Plain(given)


class _Plain(Callbacks):
    def __init__(self, report: Progress) -> None:
        self._report = report

    def __call__(self, *row: float) -> None:
        self._report(*row)


class FitCallbacks(Callbacks):
    """The callbacks of a fit: progress is shown, a monitor looks at the end of passes, states are kept.

    Parameters
    ----------
    line : callable
        Shows progress, as :class:`dualfield.solvers.progress.ProgressLine` does.
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
    >>> from dualfield.solvers.callbacks import FitCallbacks
    >>> from dualfield.solvers.progress import ProgressLine
    >>> FitCallbacks(ProgressLine("fit", 0)).pass_end is None   # nobody asks
    True
    """

    def __init__(
        self,
        line: Progress,
        monitor: Callable[[Moment, Floats], Any] | None = None,
        keep: Callable[[State], None] | None = None,
        is_due: Callable[[], bool] | None = None,
        resume: State | None = None,
    ) -> None:
        self.interval, self.resume = Callbacks.of(line).interval, resume
        self._line, self._monitor, self._keep, self._is_due = line, monitor, keep, is_due
        self._seen = -1.0
        self.pass_end = None if monitor is None and keep is None else self._pass_end

    def __call__(self, objective: float, dual: float, gap: float, passes: float, seconds: float) -> None:
        """Show where a solver stands.

        Parameters
        ----------
        objective, dual, gap, passes, seconds : float
            As for :class:`dualfield.solvers.progress.ProgressLine`.

        Examples
        --------
        >>> from dualfield.solvers.callbacks import FitCallbacks
        >>> from dualfield.solvers.progress import ProgressLine
        >>> FitCallbacks(ProgressLine("fit", 0))(3.0, 1.0, 2.0, 1.5, 0.1)
        """
        self._line(objective, dual, gap, passes, seconds)

    def later(self, passes: float, seconds: float) -> StageCallbacks:
        """Return the callbacks of a solver that goes on where another one has ended.

        Parameters
        ----------
        passes, seconds : float
            What has been spent before; the line and the monitor see it added.

        Returns
        -------
        StageCallbacks
            It keeps no states: those of the first solver stay, and lead here again.

        Examples
        --------
        >>> from dualfield.solvers.callbacks import FitCallbacks
        >>> from dualfield.solvers.progress import ProgressLine
        >>> FitCallbacks(ProgressLine("fit", 0)).later(300.0, 0.5).resume is None
        True
        """
        return StageCallbacks(self, passes, seconds, None if self._monitor is None else self._look)

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
        >>> from dualfield.solvers.callbacks import FitCallbacks
        >>> from dualfield.solvers.progress import ProgressLine
        >>> seen = []
        >>> callbacks = FitCallbacks(ProgressLine("fit", 0), lambda moment, w: seen.append(moment.passes))
        >>> callbacks.last(Moment(3.0, 2.0, 1.0, 4.0, 0.1), np.zeros(2))
        >>> seen
        [4.0]
        """
        if self._monitor is not None and moment.passes > self._seen:
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
        self._seen = moment.passes
        return bool(self._monitor(moment, end.parameters()))


class StageCallbacks(Callbacks):
    """The callbacks of a later stage of a fit: see :meth:`Callbacks.later`."""

    def __init__(
        self,
        whole: Callbacks,
        passes: float,
        seconds: float,
        look: Callable[[PassEnd, float, float], bool] | None = None,
    ) -> None:
        self.interval = whole.interval
        self.passes, self.seconds = passes, seconds
        self._whole = whole
        self.pass_end = None if look is None else lambda end: look(end, self.passes, self.seconds)

    def __call__(self, objective: float, dual: float, gap: float, passes: float, seconds: float) -> None:
        self._whole(objective, dual, gap, self.passes + passes, self.seconds + seconds)
