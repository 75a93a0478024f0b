"""Tasks, in threads or through joblib, that all read the same data: on a Dask cluster it is sent once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dualfield.engines.blas_threads import one_blas_thread

__all__ = ["call_all", "runs_here"]


@dataclass(frozen=True, eq=False)
class Shared:
    """What all tasks read."""

    value: Any


def runs_here() -> bool:
    """Return whether tasks run in threads of this process; not so where a joblib context has other workers.

    Returns
    -------
    bool
        Whether callbacks of this process can be called in tasks.

    Examples
    --------
    >>> from dualfield.engines.shared_tasks import runs_here
    >>> runs_here()
    True
    """
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend(prefer="threads")
    return bool(getattr(backend, "supports_sharedmem", False))


def call_all(
    function: Callable[..., Any], shared: Any, tasks: Sequence[tuple[Any, ...]], n_jobs: int | None = None
) -> list[Any]:
    """Call a function with shared data for each task, side by side.

    In threads of this process, unless a joblib context wants something else. With ``joblib.parallel_config("dask")``
    the shared data is the result of one task, which workers get from each other, and which is computed again where a
    worker that had it is lost. Data that joblib scatters itself would be lost for good.

    Parameters
    ----------
    function : callable
        Called as ``function(shared, *task)``: a function of a module, for it is sent to other processes.
    shared : object
        Read by all tasks, changed by none.
    tasks : sequence of tuple
        The other arguments.
    n_jobs : int, default=None
        Tasks at the same time, as in joblib.

    Returns
    -------
    list
        The results, in the order of the tasks.

    Examples
    --------
    >>> from dualfield.engines.shared_tasks import call_all
    >>> call_all(pow, 2, [(3,), (4,)])
    [8, 16]
    """
    from joblib import Parallel, delayed, effective_n_jobs

    holder = Shared(shared)
    with one_blas_thread():
        if runs_here():
            return _in_threads(function, holder, tasks, min(int(effective_n_jobs(n_jobs)), len(tasks)))
        with _sent_once(holder):
            return list(
                Parallel(n_jobs=n_jobs, prefer="threads")(delayed(_call)(function, holder, *task) for task in tasks)
            )


def _in_threads(function: Callable[..., Any], holder: Shared, tasks: Sequence[tuple[Any, ...]], n: int) -> list[Any]:
    """Do the same without joblib, whose threads are looked after every 10 ms: longer than many a fit takes."""
    if n <= 1:
        return [_call(function, holder, *task) for task in tasks]
    with ThreadPoolExecutor(n) as pool:
        try:
            return list(pool.map(lambda task: _call(function, holder, *task), tasks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _sent_once(holder: Shared) -> Iterator[None]:
    """Let joblib's Dask backend, if it is the active one, pass the result of a task in place of the holder."""
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend(prefer="threads")
    known, client = getattr(backend, "data_futures", None), getattr(backend, "client", None)
    if client is None or not isinstance(known, dict):
        yield
        return
    with warnings.catch_warnings():
        # Dask would rather have large values scattered, which nobody can bring back.
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        future = client.submit(_same, holder, pure=False)
    known[id(holder)] = future
    try:
        yield
    finally:
        del known[id(holder)]
        future.release()


def _call(function: Callable[..., Any], holder: Shared, *task: Any) -> Any:
    with one_blas_thread():
        return function(holder.value, *task)


def _same(value: Any) -> Any:
    return value
