"""Lists of predictions that notebooks show as tables: spans, and labellings in order of their probability."""

from __future__ import annotations

from typing import Any

from dualfield.data.tables import Columns, Tabular, text_table

__all__ = ["RankedLabellings", "SpanList"]


class SpanList(Tabular, list[Any]):
    """The spans of a sequence, or a list of them for each of several; made by ``predict_spans`` of a model.

    It is a list in all respects; ``print`` and notebooks show it as a table, and :meth:`to_frame` makes a data frame.

    Examples
    --------
    >>> from dualfield.models.listings import SpanList
    >>> from dualfield.models.spans import PredictedSpan
    >>> found = SpanList([PredictedSpan("NP", 0, 2, 0.9)])
    >>> print(found)
    type  start  stop  probability
    NP        0     2       0.9000
    >>> found == [("NP", 0, 2, 0.9)]
    True
    """

    __slots__ = ()

    def _columns(self) -> Columns:
        return _numbered(self, ("type", "start", "stop", "probability"))

    def __str__(self) -> str:
        return text_table(self._columns())


class RankedLabellings(Tabular, list[Any]):
    """The most probable labellings of a sequence, or a list of them for each of several; made by ``k_best``.

    It is a list in all respects; ``print`` and notebooks show it as a table, and :meth:`to_frame` makes a data frame.

    Examples
    --------
    >>> from dualfield.models.listings import RankedLabellings
    >>> print(RankedLabellings([(["x", "y"], 0.65), (["y", "y"], 0.25)]))
    rank  labels  probability
       1  x y          0.6500
       2  y y          0.2500
    """

    __slots__ = ()

    def _columns(self) -> Columns:
        names = ("rank", "labels", "probability")
        if any(isinstance(one, RankedLabellings) for one in self):
            return _numbered([RankedLabellings(_with_ranks(one)) for one in self], names)
        return _numbered(_with_ranks(self), names)

    def __str__(self) -> str:
        return text_table(self._columns())


def _with_ranks(entries: list[Any]) -> list[tuple[Any, ...]]:
    return [(rank, *entry) for rank, entry in enumerate(entries, start=1)]


def _numbered(entries: Any, names: tuple[str, ...]) -> Columns:
    """Return entries as columns; those of several sequences with the number of their sequence."""
    if any(isinstance(one, SpanList | RankedLabellings) for one in entries):
        rows = [(i, *entry) for i, one in enumerate(entries) for entry in one]
        names = ("sequence", *names)
    else:
        rows = [tuple(entry) for entry in entries]
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}
