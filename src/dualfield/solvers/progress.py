"""One line that says how far a fit is: live on a terminal, line by line elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from dualfield.solvers.callbacks import Callbacks

__all__ = ["ProgressLine"]


class ProgressLine(Callbacks):
    """Show pass, objective, relative gap and seconds; a context manager, and callbacks of a solver.

    Parameters
    ----------
    name : str
        What is being fitted.
    verbose : int
        0: nothing; 1: a live line, or where output is not a terminal a line about every second; 2: every look.
    console : rich.console.Console, default=None
        Where to write; standard output if None.

    Examples
    --------
    >>> from dualfield.solvers.progress import ProgressLine
    >>> with ProgressLine("KernelLogisticRegression", verbose=0) as line:
    ...     line(3.0, 1.0, 2.0, 1.5, 0.1)
    >>> with ProgressLine("fit", verbose=2) as line:
    ...     line(3.0, 1.0, 2.0, 1.5, 0.1)
    fit: pass 1.5, objective 3, gap 2.0e+00, 0.1 s
    """

    def __init__(self, name: str, verbose: int, console: Console | None = None) -> None:
        self.name, self.verbose = name, verbose
        self.interval = 0.05 if verbose < 2 else 0.0  # seconds between two calls, for the solver
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._last = 0.0

    def __enter__(self) -> ProgressLine:
        if self.verbose == 1 and self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=10, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, objective: float, dual: float, gap: float, passes: float, seconds: float) -> None:
        """Show where a solver stands.

        Parameters
        ----------
        objective, dual, gap : float
            Primal value, dual value, and their difference.
        passes : float
            Passes over the kernel matrix.
        seconds : float
            Time so far.

        Examples
        --------
        >>> from dualfield.solvers.progress import ProgressLine
        >>> ProgressLine("fit", 2)(3.0, -1.0, 4.0, 1.0, 0.1)
        fit: pass 1.0, objective 3, gap inf, 0.1 s
        """
        if not self.verbose:
            return
        relative = gap / dual if dual > 0 else float("inf")
        line = f"{self.name}: pass {passes:.1f}, objective {objective:.6g}, gap {relative:.1e}, {seconds:.1f} s"
        now = time.monotonic()
        if self._live is not None:
            self._live.update(Text(line))
        elif self.verbose > 1 or now - self._last >= 1.0:
            self._last = now
            self._console.print(line)

    def end(self, text: str) -> None:
        """Write how it ended.

        Parameters
        ----------
        text : str
            One sentence.

        Examples
        --------
        >>> from dualfield.solvers.progress import ProgressLine
        >>> ProgressLine("fit", 1).end("converged.")
        fit: converged.
        """
        if self.verbose:
            self._console.print(f"{self.name}: {text}")
