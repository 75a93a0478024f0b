"""Values that are tables: as text, as HTML in notebooks, and as data frames."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_MOST_ROWS = 60  # in a notebook, and in text

Columns = Mapping[str, Sequence[Any]]


class Tabular(ABC):
    """Base of values that have columns: a subclass says which, and is shown as a table.

    Examples
    --------
    >>> from dualfield.metrics import span_scores
    >>> scores = span_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "O"]])
    >>> scores.to_frame()["recall"].tolist()
    [0.5, 1.0, 0.0]
    """

    __slots__ = ()

    @abstractmethod
    def _columns(self) -> Columns:
        """Return the columns by name, all of the same length."""

    def to_frame(self) -> Any:
        """Return the table as a data frame of pandas.

        Returns
        -------
        pandas.DataFrame
            The table.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError as error:
            raise ImportError(f"to_frame needs pandas: pip install pandas. ({error})") from error
        # Column by column: labels may be lists, which pandas would take for columns of their own.
        return pd.DataFrame({name: list(values) for name, values in self._columns().items()})

    def _repr_html_(self) -> str | None:
        return html_table(self._columns())


def html_table(columns: Columns, caption: str = "") -> str:
    """Return columns as an HTML table, as notebooks show it; of a long one the first rows.

    Examples
    --------
    >>> from dualfield.data.tables import html_table
    >>> html_table({"a": [1], "b": ["<"]})
    '<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>&lt;</td></tr></tbody></table>'
    """
    rows = list(zip(*columns.values(), strict=True))
    cells = ("".join(f"<td>{html.escape(written(cell))}</td>" for cell in row) for row in rows[:_MOST_ROWS])
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    more = f"<p>{len(rows) - _MOST_ROWS:,} more rows</p>" if len(rows) > _MOST_ROWS else ""
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def text_table(columns: Columns) -> str:
    """Return columns as aligned text; of a long table the first rows.

    Examples
    --------
    >>> from dualfield.data.tables import text_table
    >>> print(text_table({"type": ["PER", "LOC"], "start": [0, 12]}))
    type  start
    PER       0
    LOC      12
    """
    cut = {name: list(values)[:_MOST_ROWS] for name, values in columns.items()}
    lines = [[name, *map(written, values)] for name, values in cut.items()]
    numeric = [all(isinstance(one, int | float) for one in values) and bool(values) for values in cut.values()]
    widths = [max(map(len, cells)) for cells in lines]
    rows = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in zip(*lines, strict=True)
    ]
    total = max((len(values) for values in columns.values()), default=0)
    return "\n".join(rows + ([f"({total - _MOST_ROWS:,} more rows)"] if total > _MOST_ROWS else []))


def written(cell: Any) -> str:
    """Write a cell: numbers with four decimals, labellings with blanks between the labels.

    Examples
    --------
    >>> from dualfield.data.tables import written
    >>> written(0.25), written(7), written(["B-x", "O"]), written(None)
    ('0.2500', '7', 'B-x O', '')
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4f}"
    if isinstance(cell, list | tuple):
        return " ".join(map(str, cell))
    return " ".join(map(str, cell)) if isinstance(cell, np.ndarray) else str(cell)
