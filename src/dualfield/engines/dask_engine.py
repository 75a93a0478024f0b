"""Partitions on the workers of a Dask cluster.

Scheduling, retries and transport are Dask's. Two rules make a run safe: everything that a task needs is in the task or
in the result of another task, so that lost results are computed again; and sums have a fixed order.
"""

from __future__ import annotations

import re
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from dualfield.engines.engine import FAN_IN, Engine, Handles, LostClusterError, add_in_order
from dualfield.engines.serial import names_of, owned

__all__ = ["DaskEngine"]

# Why a scheduler that is there cancels: a task needs a value that nobody can compute again.
_FORGOTTEN = ("lost dependencies", "already forgotten")
_PLACE = re.compile(r"-part(\d+)(?:to(\d+))?-")


class DaskEngine(Engine):
    """Runs partitions on the workers of a Dask cluster.

    Results stay on the workers until they are fetched or released. Where a worker is lost, Dask computes them again
    from the partitions, which are read again where that is needed; the result has the same bits. Shared arguments
    travel inside tasks: data that is scattered would be lost with the worker that holds it.

    Parameters
    ----------
    client : distributed.Client
        The connection to the cluster.
    owns_client : bool, default=False
        Whether :meth:`close` closes the connection, too.

    Examples
    --------
    >>> from distributed import Client                                        # doctest: +SKIP
    >>> engine = DaskEngine(Client("tcp://scheduler:8786"))                   # doctest: +SKIP
    >>> engine.tree_sum(engine.map(sum, [[1, 2], [3]]))                       # doctest: +SKIP
    6
    """

    def __init__(self, client: Any, owns_client: bool = False) -> None:
        self.client, self._owns_client = client, owns_client
        self._threads: dict[str, int] = {}  # of workers

    def map(
        self,
        function: Callable[..., Any],
        parts: Sequence[Any] | Handles,
        *shared: Any,
        each: Sequence[Any] | None = None,
        keep: bool = False,
        names: Sequence[str] | None = None,
    ) -> Handles:
        """Send a task for each partition."""
        known = names_of(parts, names)
        items = parts.items if isinstance(parts, Handles) else tuple(self._future_of(part) for part in parts)
        homes = self._homes(items) if keep else [None] * len(items)
        token = uuid.uuid4().hex[:12]
        # One task with the value inside, however many partitions: workers get it from each other.
        given = [self._submit(_same, one, key=f"shared{at}-{token}") for at, one in enumerate(shared)]
        label = getattr(function, "__name__", type(function).__name__)
        futures = [
            self._submit(function, part, *mine, *given, key=f"{label}-part{at:05d}-{token}", home=home)
            for at, (part, mine, home) in enumerate(zip(items, owned(items, each), homes, strict=True))
        ]
        return Handles(tuple(futures), known)

    def tree_sum(self, handles: Handles, add: Callable[..., Any] | None = None) -> Any:
        """Add up results on the workers, in the order of the partitions."""
        if not len(handles):
            raise ValueError("There are no partitions to add up.")
        return self._sum(list(handles.items), add or add_in_order, handles.names)

    def sum_of(
        self, function: Callable[..., Any], parts: Handles, *shared: Any, add: Callable[..., Any] | None = None
    ) -> Any:
        """Add up a function of each partition; four neighbours on one worker, and their sum, are one task.

        A task takes the scheduler and the worker some milliseconds. The tree is the same.
        """
        at_once = self._at_once(parts.items)
        if not any(at_once):
            return super().sum_of(function, parts, *shared, add=add)
        token, label = uuid.uuid4().hex[:12], getattr(function, "__name__", type(function).__name__)
        given = [self._submit(_same, one, key=f"shared{at}-{token}") for at, one in enumerate(shared)]
        add, every, layer = add or add_in_order, list(given), []
        for group, is_one in enumerate(at_once):
            first = group * FAN_IN
            items = parts.items[first : first + FAN_IN]
            key = f"{label}-part{first:05d}to{first + len(items) - 1:05d}-{token}"
            if is_one:
                layer.append(self._submit(_sum_here, function, add, len(items), *items, *given, key=key))
                continue
            values = [
                self._submit(function, item, *given, key=f"{label}-part{first + at:05d}-{token}")
                for at, item in enumerate(items)
            ]
            layer.append(self._submit(add, *values, key=f"sum-{key}"))
            every += values
        return self._sum(layer, add, parts.names, every)

    def _sum(self, layer: list[Any], add: Callable[..., Any], names: tuple[str, ...], every: Sequence[Any] = ()) -> Any:
        """Return the sum of a layer of the tree, and let go of it and of `every`."""
        token, level, used = uuid.uuid4().hex[:12], 0, [*every, *layer]
        while len(layer) > 1:
            level += 1
            layer = [
                self._submit(add, *layer[at : at + FAN_IN], key=f"sum-{level}-{at}-{token}")
                for at in range(0, len(layer), FAN_IN)
            ]
            used += layer
        try:
            return self._fetch(layer[0], names)
        finally:
            _let_go(used)

    def _at_once(self, items: Sequence[Any]) -> list[bool]:
        """Return for each four neighbours whether one worker holds them, and has as many such groups as threads."""
        if len(items) < 2 or not all(hasattr(item, "key") for item in items) or self.client.status != "running":
            return []
        try:
            held = self.client.who_has(list(items))
        except OSError:  # the scheduler is gone, which fetching the result will tell
            return []
        homes = [set(held.get(item.key) or ()) for item in items]
        groups = [set.intersection(*homes[at : at + FAN_IN]) for at in range(0, len(homes), FAN_IN)]
        holders = Counter(worker for group in groups for worker in group)
        if not holders.keys() <= self._threads.keys():
            self._threads = dict(self.client.nthreads())
        busy = {worker for worker, count in holders.items() if count >= self._threads.get(worker, count + 1)}
        return [bool(group & busy) for group in groups]

    def in_order(self, handles: Handles) -> Iterator[Any]:
        """Fetch results one after another."""
        for future in handles.items:
            try:
                value = self._fetch(future, handles.names)
            except BaseException:
                # An error may be kept for long, and with it the handles: nothing is to stay on the workers.
                _let_go(handles.items)
                raise
            yield value

    def release(self, handles: Handles) -> None:
        """Let the workers forget results; tasks that have not begun are not run any more."""
        _let_go(handles.items)

    def close(self) -> None:
        """Close the connection, if it was opened for this engine."""
        if self._owns_client:
            self.client.close()

    def _future_of(self, part: Any) -> Any:
        """Return what a partition is here: delayed values are computed on the cluster."""
        return self.client.compute(part) if hasattr(part, "__dask_graph__") else part

    def _homes(self, items: Sequence[Any]) -> list[str | None]:
        """Return a worker for each partition: neighbours have the same, so that most of a sum is added where it is.

        It is a wish, not a rule: other workers take what is left over or lost. What is on a worker already stays there.
        """
        threads = sorted(self.client.nthreads().items())
        workers = [address for address, count in threads for _ in range(count)]
        if not workers or any(hasattr(item, "key") for item in items):
            return [None] * len(items)
        return [workers[at * len(workers) // len(items)] for at in range(len(items))]

    def _submit(self, function: Callable[..., Any], *given: Any, key: str, home: str | None = None) -> Any:
        place = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with warnings.catch_warnings():
            # Dask would rather have large values scattered, which nobody can bring back.
            warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            return self.client.submit(function, *given, key=key, pure=False, **place)

    def _fetch(self, future: Any, names: tuple[str, ...]) -> Any:
        """Return a result; what happened to the cluster is told in one sentence."""
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            found = _PLACE.search(str(error.task))
            where = f"the task {error.task}"
            if found and int(found[2] or found[1]) < len(names):
                where = " or ".join(names[int(found[1]) : int(found[2] or found[1]) + 1])
            raise LostClusterError(
                f"Workers died while they worked on {where}, {error.allowed_failures + 1} in all: most likely it does "
                "not fit into their memory. Make smaller partitions, or give workers more memory (memory_limit)."
            ) from None
        except CancelledError as error:
            if getattr(error, "reason", None) in _FORGOTTEN:
                raise LostClusterError(
                    "What a partition is made from is not on the Dask cluster any more: a future was cancelled, or "
                    "scattered to a worker that is lost; or its function cannot be imported there; or the scheduler "
                    "was started again. Paths and delayed values can be read again: fit with them, and with the same "
                    "checkpoint if there is one."
                ) from error
            raise LostClusterError(
                "The connection to the Dask scheduler was lost, and with it what the workers held. Start the cluster "
                "again, and fit again with the same checkpoint to go on from there."
            ) from error


def _same(value: Any) -> Any:
    return value


def _sum_here(function: Callable[..., Any], add: Callable[..., Any], n: int, *given: Any) -> Any:
    """Add up a function of the first `n` arguments, which takes the others, too."""
    parts, shared = given[:n], given[n:]
    return add(*(function(part, *shared) for part in parts))


def _let_go(futures: Sequence[Any]) -> None:
    for future in futures:
        future.release()
