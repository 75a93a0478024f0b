"""Line charts: a few series against each other, with a legend, on linear or logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.plotting.canvas import legend_below
from dualfield.plotting.inline_svg import inline_svg, page_axes, page_style
from dualfield.plotting.markup import Html

_FEW = 30  # up to so many points are marked one by one
# Lines differ by colour, by dashes and by marks, so that no one of the three is needed to tell them apart.
LOOKS = (
    {"linestyle": "-", "marker": "o", "markersize": 6},
    {"linestyle": (0, (3, 2)), "marker": "s", "markersize": 6},
    {"linestyle": (0, (1, 1.5)), "marker": "^", "markersize": 7},
    {"linestyle": (0, (5, 1.5, 1, 1.5)), "marker": "D", "markersize": 6},
    {"linestyle": (0, (0.5, 2)), "marker": "P", "markersize": 7},
    {"linestyle": (0, (7, 2)), "marker": "v", "markersize": 7},
)


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a chart.

    Attributes
    ----------
    name : str
        For the legend.
    x, y : tuple of float
        The points, in order. A point whose value is NaN, or not above 0 on a logarithmic axis, is left out, and the
        line is broken there.

    Examples
    --------
    >>> from dualfield.report import Line
    >>> Line("squares", x=(1.0, 2.0, 3.0), y=(1.0, 4.0, 9.0)).name
    'squares'
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


def draw_lines(
    ax: Any,
    lines: Sequence[Line],
    *,
    x_axis: str,
    y_axis: str,
    log_x: bool = False,
    log_y: bool = False,
    x_ticks: Sequence[int] = (),
) -> None:
    """Draw up to six series into axes, with a legend below unless the axis names the only one."""
    for line, look in zip(lines, LOOKS, strict=False):
        x, y = _shown(line, log_x, log_y)
        marks = look if np.isfinite(y).sum() <= _FEW else look | {"marker": ""}
        ax.plot(x, y, label=line.name, **marks)
    ax.set(xlabel=x_axis, ylabel=y_axis, xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    if x_ticks:
        ax.set_xticks(x_ticks, [f"{tick:,}" for tick in x_ticks])
        ax.minorticks_off()
    ax.grid(True, alpha=0.6)
    if len(lines) > 1 or lines[0].name != y_axis:
        legend_below(ax)


def line_chart(
    lines: Sequence[Line],
    *,
    title: str,
    x_axis: str,
    y_axis: str,
    log_x: bool = False,
    log_y: bool = False,
    x_ticks: Sequence[int] = (),
) -> Html:
    """Draw series as lines, with a legend below.

    Parameters
    ----------
    lines : sequence of Line
        From one to six series, at least one of them with a point that can be shown.
    title : str
        What the picture shows, for those who hear the page.
    x_axis, y_axis : str
        What the axes measure.
    log_x, log_y : bool, default=False
        Whether an axis is logarithmic.
    x_ticks : sequence of int, default=()
        Where the horizontal axis has numbers; () chooses places by itself.

    Returns
    -------
    Html
        An ``<svg>`` element for a :func:`page`; :func:`svg_document` makes a file of it.

    Examples
    --------
    >>> from dualfield.report import Line, line_chart
    >>> squares = Line("squares", (1.0, 2.0, 3.0), (1.0, 4.0, 9.0))
    >>> ">squares</text>" in line_chart([squares], title="squares", x_axis="n", y_axis="n²")
    True
    """
    if not 1 <= len(lines) <= len(LOOKS):
        raise ValueError(f"A line chart shows from 1 to {len(LOOKS)} lines. Got {len(lines)} instead.")
    if not any(np.isfinite(_shown(line, log_x, log_y)[1]).any() for line in lines):
        raise ValueError(f"The lines of the chart '{title}' have no point that can be shown.")
    with page_style():
        ax = page_axes(310, 215)
        draw_lines(ax, lines, x_axis=x_axis, y_axis=y_axis, log_x=log_x, log_y=log_y, x_ticks=x_ticks)
        return inline_svg(ax.figure, title=title)


def _shown(line: Line, log_x: bool, log_y: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points of a line, with NaN in place of those that cannot be shown."""
    x, y = np.asarray(line.x, dtype=np.float64), np.asarray(line.y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"x and y of the line '{line.name}' must be 1D and of the same length. Got shapes {x.shape} and {y.shape} "
            "instead."
        )
    known = np.isfinite(x) & np.isfinite(y) & ((x > 0.0) | (not log_x)) & ((y > 0.0) | (not log_y))
    return np.where(known, x, np.nan), np.where(known, y, np.nan)
