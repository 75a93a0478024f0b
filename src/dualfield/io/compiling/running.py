"""Work in several processes, with the same results as in one, and what is told about it meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

__all__ = ["CompileProgress"]


class CompileProgress(NamedTuple):
    """How far a compilation is.

    Attributes
    ----------
    stage : str
        "reading", whose units are bytes of the input files; or "gathering", whose units are parts.
    done, total : int
        Units that are done, and all of them.
    n_tokens : int
        Tokens that were read so far.

    Examples
    --------
    >>> from dualfield.io import CompileProgress
    >>> now = CompileProgress("gathering", 16, 64, 1_000_000)
    >>> f"{now.stage}: {now.done / now.total:.0%}"
    'gathering: 25%'
    """

    stage: str
    done: int
    total: int
    n_tokens: int


Tell = Callable[[CompileProgress], None]


class Runner:
    """Calls functions in `n_jobs` processes; results come in the order of the calls.

    Parameters
    ----------
    n_jobs : int
        How many processes; 1: this one.
    tell : callable
        Is told the progress.
    """

    def __init__(self, n_jobs: int, tell: Tell) -> None:
        self._n_jobs, self._tell = n_jobs, tell
        self.n_tokens = 0

    def results(self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield what the calls return; only a few of them are drawn ahead, so that they need not fit into memory."""
        if self._n_jobs == 1:
            for arguments in calls:
                yield function(*arguments)
            return
        from joblib import Parallel, delayed

        parallel = Parallel(
            self._n_jobs,
            backend="loky",
            return_as="generator",
            pre_dispatch="n_jobs + 2",
            batch_size=1,
            max_nbytes=None,
        )
        try:
            yield from parallel(delayed(function)(*arguments) for arguments in calls)
        except BrokenProcessPool:
            raise ChildProcessError(
                "A process died while it was compiling, most likely because memory ran out: take fewer processes, or "
                "more parts."
            ) from None

    def run(self, stage: str, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return what all calls return."""
        found = []
        self.report(stage, 0, len(calls))
        for result in self.results(function, calls):
            found.append(result)
            self.report(stage, len(found), len(calls))
        return found

    def report(self, stage: str, done: int, total: int) -> None:
        """Tell the progress."""
        self._tell(CompileProgress(stage, done, total, self.n_tokens))
