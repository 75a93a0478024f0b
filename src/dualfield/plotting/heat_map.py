"""Tables of numbers as inline SVG, the larger the darker."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.plotting.markup import Html, escape, svg_element, text_element, text_width

_LEGEND_SHADES = (0.0, 0.25, 0.5, 0.75, 1.0)
_LEGEND_WIDTH = 172  # of the shades; enough for a wide font
_UNDER_TEXT = 0.45  # the strongest shade on which ink keeps a contrast of 4.5:1, in both colour schemes


def heat_map(
    values: ArrayLike,
    *,
    title: str,
    row_labels: Sequence[object],
    column_labels: Sequence[object] = (),
    row_axis: str = "",
    column_axis: str = "",
    marks: Iterable[tuple[int, int]] = (),
    mark_label: str = "",
    cell: tuple[int, int] = (32, 12),
    margin: int = 64,
    full: float = 1.0,
) -> Html:
    """Draw a table of probabilities, the more probable the darker, with its legend.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_columns)
        Probabilities in [0, 1].
    title : str
        What the picture shows, for those who hear the page.
    row_labels : sequence of length n_rows
        Written to the left of the rows.
    column_labels : sequence of length n_columns, default=()
        Written above the columns; none when empty.
    row_axis, column_axis : str, default=""
        What rows and columns are.
    marks : iterable of (row, column), default=()
        Cells to be framed.
    mark_label : str, default=""
        What a frame means, for the legend.
    cell : (int, int), default=(32, 12)
        Width and height of a cell in pixels.
    margin : int, default=64
        Width of the space left of the cells.
    full : float, default=1.0
        The probability that gets the full colour; the legend shows it.

    Returns
    -------
    Html
        An ``<svg>`` element.

    Examples
    --------
    >>> from dualfield.report import heat_map
    >>> heat_map([[0.25, 0.75]], title="two chances", row_labels=["coin"]).count('class="cell"')
    2
    """
    shades = np.asarray(values, dtype=np.float64)
    if shades.ndim != 2:
        raise ValueError(f"Expected a 2D array of probabilities. Got an array of shape {shades.shape} instead.")
    if not ((shades >= 0.0) & (shades <= full + 1e-9)).all():
        raise ValueError(f"values must be probabilities in [0, {full:g}].")
    legend = Legend("0", f"{full:g} probability", mark=mark_label)
    grid = Grid(shades / full, row_labels, column_labels, row_axis, column_axis, marks=tuple(marks))
    return draw_grid(grid, legend, title=title, cell=cell, margin=margin)


@dataclass(frozen=True, slots=True)
class Legend:
    """What shades, frames and strokes mean: the words before and after the row of shades, and those of the others."""

    low: str
    high: str
    signed: bool = False
    mark: str = ""
    crossed: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """What a table of shaded cells shows.

    Attributes
    ----------
    shades : ndarray of shape (n_rows, n_columns)
        From -1, the full colour of negative values, to 1.
    row_labels, column_labels : sequence
        Written beside the rows and above the columns.
    row_axis, column_axis : str
        What rows and columns are.
    marks, crossed : tuple of (row, column)
        Cells with a frame, and cells with a stroke through them.
    texts, tips : sequence of sequences of str
        What is written in the cells, and what a cell says when one points at it.
    """

    shades: NDArray[np.float64]
    row_labels: Sequence[object]
    column_labels: Sequence[object] = ()
    row_axis: str = ""
    column_axis: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    crossed: tuple[tuple[int, int], ...] = ()
    texts: Sequence[Sequence[str]] = field(default=())
    tips: Sequence[Sequence[str]] = field(default=())


def label_margin(labels: Sequence[object]) -> int:
    """Return the space that labels and the name of their axis need left of the cells."""
    return round(24 + max(map(text_width, labels), default=0.0))


def draw_grid(grid: Grid, legend: Legend, *, title: str, cell: tuple[int, int], margin: int) -> Html:
    """Draw shaded cells with their labels and a legend; labels that are too wide for their column are turned."""
    n_rows, n_columns = grid.shades.shape
    width, height = cell
    widest = max(map(text_width, grid.column_labels), default=0.0)
    turned = widest > width
    top = (
        6 + (16 if grid.column_axis else 0) + ((round(widest) + 4 if turned else 14) if len(grid.column_labels) else 0)
    )
    right, bottom = margin + width * n_columns, top + height * n_rows
    parts = [f'<rect class="frame" x="{margin}" y="{top}" width="{right - margin}" height="{bottom - top}"/>']
    strongest = _UNDER_TEXT if len(grid.texts) else 1.0
    parts += _cells(grid, strongest, margin, top, cell)
    for row, label in enumerate(grid.row_labels):
        middle, size = top + (row + 0.5) * height, min(11, height - 2)
        parts.append(text_element(margin - 5, middle + 3.5, label, anchor="end", size=size))
    for column, label in enumerate(grid.column_labels):
        middle = margin + (column + 0.5) * width
        if turned:
            parts.append(text_element(middle + 3.5, top - 5, label, anchor="start", turn=-90))
        else:
            parts.append(text_element(middle, top - 5, label))
    if grid.column_axis:
        # A wide table may be scrolled: its axis is named where the reader begins.
        place, anchor = (margin, "start") if turned else ((margin + right) / 2, "middle")
        parts.append(text_element(place, 13, grid.column_axis, anchor=anchor, look="soft"))
    if grid.row_axis:
        parts.append(text_element(12, (top + bottom) / 2, grid.row_axis, look="soft", turn=-90))
    extent, drawn = _legend(legend, strongest, margin, bottom + 8)
    return svg_element(max(right + 2, extent), bottom + 26, title, [*parts, drawn])


def _cells(grid: Grid, strongest: float, left: int, top: int, cell: tuple[int, int]) -> list[str]:
    width, height = cell
    parts = []
    for (row, column), value in np.ndenumerate(grid.shades):
        x, y = left + column * width, top + row * height
        if abs(value) >= 0.0005:  # fainter than the eye can see; leaving it out keeps the page small
            kind = "cell" if value > 0 else "cell minus"
            opening = f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}"'
            tip = f"><title>{escape(grid.tips[row][column])}</title></rect>" if len(grid.tips) else "/>"
            parts.append(f'{opening} fill-opacity="{strongest * min(abs(value), 1.0):.3f}"{tip}')
        if len(grid.texts) and grid.texts[row][column]:
            words = grid.texts[row][column]
            parts.append(text_element(x + width / 2, y + height / 2 + 3.5, words, look="number", size=9.5))
    for row, column in grid.marks:
        corner = f'x="{left + column * width + 0.75}" y="{top + row * height + 0.75}"'
        parts.append(f'<rect class="mark" {corner} width="{width - 1.5}" height="{height - 1.5}"/>')
    if grid.crossed:
        strokes = (
            f"M{left + column * width + 2} {top + (row + 1) * height - 2}l{width - 4} {4 - height}"
            for row, column in grid.crossed
        )
        parts.append(f'<path class="crossed" d="{"".join(strokes)}"/>')
    return parts


def _legend(legend: Legend, strongest: float, left: int, top: int) -> tuple[int, str]:
    """Return where the legend ends, and its markup."""
    shades = [-shade for shade in _LEGEND_SHADES[:0:-1]] if legend.signed else []
    parts = [text_element(left, top + 9, legend.low, anchor="start", look="soft")]
    x = left + max(10, round(text_width(legend.low)) + 2)
    for shade in [*shades, *_LEGEND_SHADES]:
        box = f'x="{x}" y="{top}" width="12" height="10"'
        kind = "shade" if shade >= 0 else "shade minus"
        parts.append(f'<rect class="{kind}" {box} fill-opacity="{strongest * abs(shade):g}"/>')
        parts.append(f'<rect class="frame" {box}/>')
        x += 12
    parts.append(text_element(x + 5, top + 9, legend.high, anchor="start", look="soft"))
    x = max(left + _LEGEND_WIDTH, x + round(text_width(legend.high)) + 16)
    for kind, words in (("mark", legend.mark), ("crossed", legend.crossed)):
        if not words:
            continue
        if kind == "mark":
            parts.append(f'<rect class="mark" x="{x}" y="{top}" width="14" height="10"/>')
        else:
            box = f'x="{x}" y="{top}" width="14" height="10"'
            parts.append(f'<path class="crossed" d="M{x + 2} {top + 8}l10 -6"/><rect class="frame" {box}/>')
        parts.append(text_element(x + 19, top + 9, words, anchor="start", look="soft"))
        x += 28 + round(text_width(words))
    return x, "".join(parts)
