"""What a reproduction is made of: parts with tasks to compute, and tables and figures to show."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from dualfield.report import Line

Cell = str | int | float | None
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user chose.

    Attributes
    ----------
    folder : Path or None
        Where the data sets are; None takes the folder that DUALFIELD_DATA names.
    quick : bool
        Whether tiny subsets and short grids stand for the real ones.
    threads : int
        Number of threads, for the baselines too.
    seed : int
        Seed of splits, folds, drawn data and solvers.
    """

    folder: Path | None = None
    quick: bool = False
    threads: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """A table before it is laid out.

    Attributes
    ----------
    title : str
        A sentence above it.
    header : tuple of str
        One heading per column.
    rows : tuple of tuple
        Text is shown as it is, numbers by :func:`cell_text`, None as a dash.
    notes : tuple of str
        Sentences below it.

    Examples
    --------
    >>> from reproductions.records import Table
    >>> Table("Times in seconds.", ("data", "paper", "ours"), (("banana", 0.6, 0.001),)).notes
    ()
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A line chart before it is drawn: `name` is that of its file, without ``.svg``, and the rest is on the chart."""

    name: str
    title: str
    lines: tuple[Line, ...]
    x_axis: str
    y_axis: str
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Findings:
    """What a part has to show.

    Attributes
    ----------
    summary : tuple of str
        The outcome in a few sentences.
    tables : tuple of Table
    figures : tuple of Figure
    differences : tuple of str
        Where data, split or procedure are not the paper's.
    """

    summary: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...] = ()
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task(Generic[Row]):
    """One piece of work: `label` says what it is, `run` does it and returns a record."""

    label: str
    run: Callable[[], Row]


@dataclass(frozen=True, slots=True)
class Part(Generic[Row]):
    """One table or figure of a paper; what is computed and how it is shown are two functions.

    Attributes
    ----------
    name : str
        How the user calls it.
    title : str
        A heading.
    data : tuple of str
        The data sets that it reads.
    tasks : callable
        From settings to tasks; each returns one record, a dataclass of plain values.
    present : callable
        From the records of all tasks to findings; a pure function.
    """

    name: str
    title: str
    data: tuple[str, ...]
    tasks: Callable[[Settings], Sequence[Task[Row]]]
    present: Callable[[Sequence[Row]], Findings]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper, its citation and the parts of it that are reproduced."""

    name: str
    title: str
    citation: str
    machine: str  # what the paper's times were measured on
    parts: tuple[Part[Any], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """A part with the records that its tasks returned."""

    part: Part[Any]
    rows: tuple[Any, ...]

    def findings(self) -> Findings:
        """Lay out the records."""
        return self.part.present(self.rows)


def cell_text(cell: Cell) -> str:
    """Write a cell of a table: numbers to three digits, a dash for what there is not.

    Parameters
    ----------
    cell : str, int, float or None
        Text is left alone.

    Returns
    -------
    str
        What the table shows.

    Examples
    --------
    >>> from reproductions.records import cell_text
    >>> [cell_text(cell) for cell in ("SMO", 400, 0.0123456, 28812.3, 1.5e-7, 123456.0, 0.0, None)]
    ['SMO', '400', '0.0123', '28812', '1.5e-7', '1.23e5', '0', '–']
    """
    if cell is None:
        return "–"
    if not isinstance(cell, float):
        return str(cell)
    if not math.isfinite(cell):
        return "–"
    if cell == 0.0:
        return "0"
    if 1e-3 <= abs(cell) < 1e3:
        return f"{cell:.3g}"
    if 1e3 <= abs(cell) < 1e5:
        return f"{cell:.0f}"
    digits, _, exponent = f"{cell:.2e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"
