"""Tables of numbers as shaded cells, the larger the darker."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.plotting.canvas import points_below
from dualfield.plotting.inline_svg import inline_svg, page_axes, page_style
from dualfield.plotting.markup import Html, printable
from dualfield.plotting.style import UNDER_TEXT

_FEW = 12  # labels up to which cells are large
_ENLARGED = 1.35  # of a table, where there is room for it
_LETTER = 6.5  # points that a letter of a label takes, at most


def cell_size(texts: Sequence[Sequence[str]] | None) -> tuple[float, float]:
    """Return width and height, in points, of cells that hold such texts."""
    if texts is None:
        return 20.0, 20.0
    longest = max((len(text) for row in texts for text in row), default=0)
    least, height = (42.0, 32.0) if len(texts) <= _FEW else (28.0, 24.0)
    return max(least, 6.6 * longest + 8.0), height


def draw_cells(
    ax: Any,
    values: NDArray[np.float64],
    *,
    rows: Sequence[object],
    columns: Sequence[object],
    row_axis: str,
    column_axis: str,
    legend: str,
    full: float = 1.0,
    signed: bool = False,
    texts: Sequence[Sequence[str]] | None = None,
    cmap: Any = None,
) -> tuple[Any, NDArray[np.object_] | None]:
    """Draw shaded cells with their labels and a legend; labels that are too wide for their column are turned.

    `values` are in [0, full], or in [-full, full] if they are `signed`; what is masked stays blank. `cmap` None takes
    the first colour of the style, and the second below 0, the weaker the closer to 0. Returned are the collection of
    cells and an array (n_rows, n_columns) of texts, None where there is none.
    """
    n_rows, n_columns = values.shape
    shades = _shades(signed, UNDER_TEXT if texts is not None else 1.0) if cmap is None else cmap
    edges = np.arange(n_columns + 1) - 0.5, np.arange(n_rows + 1) - 0.5
    cells = ax.pcolor(*edges, values, cmap=shades, vmin=-full if signed else 0.0, vmax=full)
    ax.invert_yaxis()
    ax.tick_params(bottom=False, left=False, labeltop=True, labelbottom=False)
    ax.xaxis.set_label_position("top")
    width = 72.0 * ax.get_window_extent().width / ax.figure.dpi / max(n_columns, 1)
    turned = _LETTER * max((len(str(name)) for name in columns), default=0) > width
    turn = {"rotation": 90, "rotation_mode": "anchor", "ha": "left", "va": "center"} if turned else {}
    ax.set_xticks(range(n_columns), [printable(name) for name in columns], parse_math=False, **turn)
    ax.set_yticks(range(n_rows), [printable(name) for name in rows], parse_math=False)
    ax.set_ylabel(row_axis)
    ax.set_xlabel(column_axis, loc="left" if turned else "center")  # a wide table may be scrolled
    _draw_legend(ax, cells, legend)
    return cells, None if texts is None else _draw_texts(ax, texts, None if cmap is None else cells.to_rgba(values))


def cells_html(
    display: Any,
    shown: tuple[int, Sequence[Sequence[str]] | None],
    tips: Sequence[str],
    *,
    title: str,
    note: str,
    max_labels: int,
) -> Html:
    """Return the cells that a display plots as they stand on a page; each says its tip when one points at it.

    `shown` is how many labels there are, and what is written in their cells, if anything; there is a tip for each cell
    that is not masked. The display itself is not changed.
    """
    n, texts = shown
    width, height = cell_size(texts)
    with page_style():
        drawn = copy.copy(display).plot(page_axes(width * n, height * n), max_labels=max_labels)
        drawn.im_.set_urls(tips)
        drawn.ax_.set_title("")
        picture = inline_svg(drawn.figure_, title=title)
    # Smaller than three quarters of its size it could not be read, and is scrolled instead.
    own = float(re.search(r' width="(\d+)"', picture)[1])  # type: ignore[index]
    box = f'<div class="grid-box" style="--least:{0.72 * own:.0f}px;--full:{_ENLARGED * own:.0f}px">'
    return Html(f"{box}{picture}</div>" + (f'<p class="soft">{note}.</p>' if note else ""))


def heat_map(
    values: ArrayLike,
    *,
    title: str,
    row_labels: Sequence[object],
    column_labels: Sequence[object],
    row_axis: str = "",
    column_axis: str = "",
    cell: tuple[int, int] = (24, 20),
    full: float = 1.0,
) -> Html:
    """Draw a table of probabilities, the more probable the darker, with its legend.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_columns)
        Probabilities in [0, full].
    title : str
        What the picture shows, for those who hear the page.
    row_labels : sequence of length n_rows
        Written to the left of the rows.
    column_labels : sequence of length n_columns
        Written above the columns.
    row_axis, column_axis : str, default=""
        What rows and columns are.
    cell : (int, int), default=(24, 20)
        Width and height of a cell in pixels.
    full : float, default=1.0
        The probability that gets the full colour; the legend shows it.

    Returns
    -------
    Html
        An ``<svg>`` element.

    Examples
    --------
    >>> from dualfield.report import heat_map
    >>> heat_map([[0.25, 0.75]], title="two chances", row_labels=["coin"], column_labels="ht").count("<title>")
    2
    """
    shares = np.asarray(values, dtype=np.float64)
    if shares.ndim != 2:
        raise ValueError(f"Expected a 2D array of probabilities. Got an array of shape {shares.shape} instead.")
    if not ((shares >= 0.0) & (shares <= full + 1e-9)).all():
        raise ValueError(f"values must be probabilities in [0, {full:g}].")
    with page_style():
        ax = page_axes(cell[0] * shares.shape[1], cell[1] * shares.shape[0])
        cells, _ = draw_cells(
            ax,
            shares,
            rows=row_labels,
            columns=column_labels,
            row_axis=row_axis,
            column_axis=column_axis,
            legend="probability",
            full=full,
        )
        cells.set_urls(
            [
                f"{row}, {column}: {share:.3g}"
                for row, line in zip(row_labels, shares, strict=True)
                for column, share in zip(column_labels, line, strict=True)
            ]
        )
        return inline_svg(ax.figure, title=title)


def _shades(signed: bool, strongest: float) -> Any:
    """Return a colour map from transparent to a colour of the style, so that the paper shines through."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    stops = [(0.0, to_rgba("C0", 0.0)), (1.0, to_rgba("C0", strongest))]
    if signed:
        stops = [(0.0, to_rgba("C1", strongest)), (0.5, to_rgba("C1", 0.0)), (0.5, stops[0][1]), stops[1]]
    return LinearSegmentedColormap.from_list("shades", stops, N=2001)  # odd: 0 is in the middle, and blank


def _draw_texts(ax: Any, texts: Sequence[Sequence[str]], colours: Any) -> NDArray[np.object_]:
    """Write into the cells: in the colour of the style's text, or in black or white where cells have such colours."""
    drawn = np.full((len(texts), max(map(len, texts), default=0)), None, dtype=object)
    for row, column in np.ndindex(*drawn.shape):
        if texts[row][column]:
            look: dict[str, Any] = {"ha": "center", "va": "center"}
            if colours is not None:
                light = np.dot(colours[row, column, :3], [0.299, 0.587, 0.114])
                look["color"] = "black" if light > 0.5 else "white"
            drawn[row, column] = ax.text(column, row, texts[row][column], **look)
    return drawn


def _draw_legend(ax: Any, cells: Any, legend: str) -> None:
    """Show a row of shades below the cells, with their values and what they are."""
    from matplotlib.cm import ScalarMappable

    low, high = cells.get_clim()
    n_shades = 9 if low < 0 else 5
    bar = ax.inset_axes((0.0, 0.0, n_shades / 6.0, 10.0 / 72.0), transform=points_below(ax, 18.0))
    steps = ScalarMappable(cells.norm, cells.get_cmap().resampled(n_shades))
    ticks = [low, 0.0, high] if low < 0 else [low, high]
    shown = ax.figure.colorbar(steps, cax=bar, orientation="horizontal", ticks=ticks, format="%.3g")
    shown.set_label(legend, loc="left")
    bar.tick_params(bottom=False)
