"""Input of users, taken apart by a structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import ArrayLike, NDArray

from dualfield.data.shapes import Shape

__all__ = ["Opened"]


def _one_after_another(offsets: NDArray[Any]) -> None:
    """Nodes that need no further word on how they are connected."""


class Opened(NamedTuple):
    """What :meth:`dualfield.structures.Structure.open` makes of the input of users.

    Attributes
    ----------
    nodes, lengths
        Features of the nodes as :meth:`dualfield.data.Batch.build` takes them.
    connect : callable
        From the offsets of the nodes to their :class:`Shape`; None: one after another.
    edges, edge_lengths
        Features of the edges, as :meth:`dualfield.data.Batch.build` takes them; None if edges have none.

    Examples
    --------
    >>> from dualfield.structures import Chain
    >>> Chain(2).open([[["a"], ["b"]]]).nodes
    [[['a'], ['b']]]
    """

    nodes: Any
    lengths: ArrayLike | None = None
    connect: Callable[[NDArray[Any]], Shape | None] = _one_after_another
    edges: Any = None
    edge_lengths: ArrayLike | None = None
