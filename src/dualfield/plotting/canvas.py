"""Axes of matplotlib, which is imported only when something is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualfield.plotting.markup import printable

_MARGINS = (1.7, 1.5)  # inches that labels take beside the plane of a figure
_LEAST = 3.2  # inches of a figure's width


def check_matplotlib() -> None:
    """Raise an ImportError that says what to install if nothing can be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError(f"Figures and reports need matplotlib: pip install matplotlib. ({error})") from error


def one_axes(ax: Any, plane: tuple[float, float], margins: tuple[float, float] = _MARGINS) -> Any:
    """Return the given axes, or those of a new figure with a plane of about the given size, in inches."""
    check_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    width, height = (side + margin for side, margin in zip(plane, margins, strict=True))
    return plt.subplots(figsize=(max(width, _LEAST), height), layout="constrained")[1]


def several_axes(ax: Any, n_rows: int, n_columns: int, size: tuple[float, float]) -> Any:
    """Return an array of axes of shape (n_rows, n_columns), in a new figure or within the place of the given axes."""
    check_matplotlib()
    if ax is None:
        import matplotlib.pyplot as plt

        return plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)[1]
    ax.set_axis_off()
    cells = ax.get_subplotspec().subgridspec(n_rows, n_columns)
    axes = np.empty((n_rows, n_columns), dtype=object)
    for at in np.ndindex(n_rows, n_columns):
        axes[at] = ax.figure.add_subplot(cells[at])
    return axes


def points_below(ax: Any, points: float) -> Any:
    """Return a transform from inches to the figure whose origin is so many points below the plane, at its left edge."""
    from matplotlib.transforms import ScaledTranslation

    inches = ax.figure.dpi_scale_trans
    return inches + ScaledTranslation(0.0, 0.0, ax.transAxes) + ScaledTranslation(0.0, -points / 72.0, inches)


def legend_below(ax: Any) -> None:
    """Put the legend of all lines below the plane, where it hides no data; any text will do as a label."""
    lines = [line for line in ax.get_lines() if not line.get_label().startswith(("_child", "_nolegend"))]
    names = [printable(line.get_label()) for line in lines]
    place = {"loc": "upper left", "bbox_to_anchor": (0.0, 0.0), "bbox_transform": points_below(ax, 46.0)}
    legend = ax.legend(lines, names, **place, borderaxespad=0.0, borderpad=0.0, handlelength=3.0, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
