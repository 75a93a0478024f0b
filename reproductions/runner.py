"""Run the tasks of a paper's parts one after another."""

from collections.abc import Callable, Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from reproductions.records import Part, Result, Settings


def run_parts(
    parts: Sequence[Part[Any]],
    settings: Settings,
    step: Callable[[str], None],
    finished: Callable[[Sequence[Result]], None],
) -> tuple[Result, ...]:
    """Compute every part, and hand on what there is whenever one is finished.

    Parameters
    ----------
    parts : sequence of Part
        In the order of work.
    settings : Settings
        Passed to every part.
    step : callable
        Told the label of each task as it begins.
    finished : callable
        Given the results so far after each part, so that a long run leaves something when it is cut short.

    Returns
    -------
    tuple of Result
        One per part.

    Examples
    --------
    >>> from reproductions.records import Findings, Part, Settings, Task
    >>> from reproductions.runner import run_parts
    >>> part = Part("sum", "A sum", (), lambda _: [Task("adding", lambda: 1 + 1)], lambda rows: Findings((), ()))
    >>> names = []
    >>> run_parts([part], Settings(), names.append, lambda results: None)[0].rows, names
    ((2,), ['sum: adding'])
    """
    results: list[Result] = []
    # The baselines run on BLAS; they get as many threads as the solvers.
    with threadpool_limits(limits=settings.threads):
        for part in parts:
            rows = []
            for task in part.tasks(settings):
                step(f"{part.name}: {task.label}")
                rows.append(task.run())
            results.append(Result(part, tuple(rows)))
            finished(results)
    return tuple(results)
