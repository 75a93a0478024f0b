"""What an engine is: three calls that are enough to train on partitions, and the tree in which results are added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

__all__ = ["Engine", "Handles", "LostClusterError", "add_in_order", "tree_of"]

FAN_IN = 4  # children of a sum; it decides the last bits, and is never changed by what runs where


class LostClusterError(RuntimeError):
    """The cluster went away, or could not finish a partition; what the driver holds is safe.

    Examples
    --------
    >>> from dualfield.engines import LostClusterError
    >>> issubclass(LostClusterError, RuntimeError)
    True
    """


@dataclass(frozen=True, eq=False)
class Handles:
    """What an engine will have computed for each partition; only the engine that made it can look inside.

    Parameters
    ----------
    items : tuple
        One for each partition, in their order.
    names : tuple of str
        What errors call the partitions.

    Examples
    --------
    >>> from dualfield.engines import Serial
    >>> handles = Serial().map(len, ["ab", "c"])
    >>> len(handles), handles.names
    (2, ('partition 0', 'partition 1'))
    """

    items: tuple[Any, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.items)


class Engine(ABC):
    """Runs pure functions of partitions, and adds up what they return.

    Functions and partitions must be such that pickle can send them: functions of modules, records of arrays. A function
    may be run more than once for a partition, as where a worker is lost, and must give the same each time.

    Examples
    --------
    >>> from dualfield.engines import Engine, engine_of
    >>> with engine_of(None) as engine:
    ...     isinstance(engine, Engine), engine.tree_sum(engine.map(len, ["ab", "c"]))
    (True, 3)
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def map(
        self,
        function: Callable[..., Any],
        parts: Sequence[Any] | Handles,
        *shared: Any,
        each: Sequence[Any] | None = None,
        keep: bool = False,
        names: Sequence[str] | None = None,
    ) -> Handles:
        """Apply a function to each partition.

        Parameters
        ----------
        function : callable
            Called as ``function(part, *shared)``, or ``function(part, each[at], *shared)``.
        parts : sequence or Handles
            The partitions: values, such as paths to read them from, or what an earlier call has made of them.
        *shared : object
            Arguments that all partitions get, such as weights.
        each : sequence, default=None
            A further argument for each partition.
        keep : bool, default=False
            Whether the results are used many times, as those of reading are: they stay where they were computed.
        names : sequence of str, default=None
            What errors call the partitions; None: as before, or by their numbers.

        Returns
        -------
        Handles
            The results, when they are asked for.
        """

    @abstractmethod
    def tree_sum(self, handles: Handles, add: Callable[..., Any] | None = None) -> Any:
        """Add up results, always in the order of the partitions.

        Parameters
        ----------
        handles : Handles
            What to add; it is used up.
        add : callable, default=None
            Called with up to four values, in order; None: :func:`add_in_order`.

        Returns
        -------
        object
            The sum: the same bits on every engine.
        """

    def sum_of(
        self, function: Callable[..., Any], parts: Handles, *shared: Any, add: Callable[..., Any] | None = None
    ) -> Any:
        """Add up a function of each partition: the tree sum of the map, perhaps in fewer tasks.

        Parameters
        ----------
        function : callable
            Called as ``function(part, *shared)``.
        parts : Handles
            The partitions.
        *shared : object
            Arguments that all partitions get, such as weights.
        add : callable, default=None
            As in :meth:`tree_sum`.

        Returns
        -------
        object
            The sum: the same bits on every engine.
        """
        return self.tree_sum(self.map(function, parts, *shared), add)

    @abstractmethod
    def in_order(self, handles: Handles) -> Iterator[Any]:
        """Go through results in the order of the partitions, one at a time.

        Parameters
        ----------
        handles : Handles
            What to fetch.

        Yields
        ------
        object
            The result of a partition.
        """

    def gather(self, handles: Handles) -> list[Any]:
        """Return all results.

        Parameters
        ----------
        handles : Handles
            What to fetch.

        Returns
        -------
        list
            In the order of the partitions.
        """
        return list(self.in_order(handles))

    @abstractmethod
    def release(self, handles: Handles) -> None:
        """Let go of results, so that their memory is free.

        Parameters
        ----------
        handles : Handles
            What is not needed any more.
        """

    @abstractmethod
    def close(self) -> None:
        """End what the engine has begun itself: connections, temporary files."""


def add_in_order(*values: Any) -> Any:
    """Add values from left to right: numbers, arrays, whatever has ``+``, and tuples of them entry by entry.

    Parameters
    ----------
    *values : object
        At least one.

    Returns
    -------
    object
        The sum. Of one value: the value.

    Examples
    --------
    >>> from dualfield.engines import add_in_order
    >>> add_in_order((1, 2.0), (3, 4.0))
    (4, 6.0)
    """
    first = values[0]
    if isinstance(first, tuple):
        return tuple(add_in_order(*entries) for entries in zip(*values, strict=True))
    total = first
    for value in values[1:]:
        total = total + value
    return total


def tree_of(values: Iterator[Any], add: Callable[..., Any]) -> Any:
    """Add up values as they come, in the tree that has four of them in each node, and four nodes in each node above.

    Only some values of each level are held at a time. Layer by layer, as a cluster does it, gives the same tree.

    Parameters
    ----------
    values : iterator
        At least one value.
    add : callable
        Called with up to four values, in order.

    Returns
    -------
    object
        The sum.

    Examples
    --------
    >>> from dualfield.engines.engine import tree_of
    >>> tree_of(iter("abcdefghi"), lambda *children: "(" + "".join(children) + ")")
    '((abcd)(efgh)(i))'
    """
    levels: list[list[Any]] = [[]]
    for value in values:
        levels[0].append(value)
        at = 0
        while len(levels[at]) == FAN_IN:
            if at + 1 == len(levels):
                levels.append([])
            levels[at + 1].append(add(*levels[at]))
            levels[at] = []
            at += 1
    at = 0
    while at < len(levels):
        is_top = at + 1 == len(levels)
        if is_top and len(levels[at]) == 1:
            return levels[at][0]
        if levels[at]:
            if is_top:
                levels.append([])
            levels[at + 1].append(add(*levels[at]))
        at += 1
    raise ValueError("There are no partitions to add up.")
