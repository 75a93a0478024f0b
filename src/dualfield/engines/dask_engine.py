"""Partitions on the workers of a Dask cluster.

Scheduling, retries and transport are Dask's. Two rules make a run safe: everything that a task needs is in the task or
in the result of another task, so that lost results are computed again; and sums have a fixed order.
"""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from dualfield.engines.engine import FAN_IN, Engine, Handles, LostClusterError, add_in_order
from dualfield.engines.serial import names_of, owned

__all__ = ["DaskEngine"]

_PLACE = re.compile(r"-part(\d+)-")


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
        token, level = uuid.uuid4().hex[:12], 0
        layer = list(handles.items)
        every = list(layer)
        while len(layer) > 1:
            level += 1
            layer = [
                self._submit(add or add_in_order, *layer[at : at + FAN_IN], key=f"sum-{level}-{at}-{token}")
                for at in range(0, len(layer), FAN_IN)
            ]
            every += layer
        try:
            return self._fetch(layer[0], handles.names)
        finally:
            _let_go(every)

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
            where = names[int(found[1])] if found and int(found[1]) < len(names) else f"the task {error.task}"
            raise LostClusterError(
                f"Workers died while they worked on {where}, {error.allowed_failures + 1} in all: most likely it does "
                "not fit into their memory. Make smaller partitions, or give workers more memory (memory_limit)."
            ) from None
        except CancelledError as error:
            raise LostClusterError(
                "The connection to the Dask scheduler was lost, and with it what the workers held. Start the cluster "
                "again, and fit again with the same checkpoint to go on from there."
            ) from error


def _same(value: Any) -> Any:
    return value


def _let_go(futures: Sequence[Any]) -> None:
    for future in futures:
        future.release()
