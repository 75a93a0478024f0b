"""Axes of matplotlib, which is asked for only when something is drawn with it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np


def pyplot(owner: str) -> ModuleType:
    """Return ``matplotlib.pyplot``, or say how to get it; `owner` is what needs it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f'{owner}.plot needs matplotlib: pip install "dualfield[plot]". Its html() draws without it.'
        ) from error
    return plt


def one_axes(owner: str, ax: Any, size: tuple[float, float]) -> Any:
    """Return the given axes, or new ones in a figure of so many inches."""
    if ax is not None:
        pyplot(owner)
        return ax
    return pyplot(owner).subplots(figsize=size, layout="constrained")[1]


def several_axes(owner: str, ax: Any, n_rows: int, n_columns: int, size: tuple[float, float]) -> Any:
    """Return an array of axes of shape (n_rows, n_columns), in a new figure or within the place of the given axes."""
    if ax is None:
        return pyplot(owner).subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)[1]
    pyplot(owner)
    ax.set_axis_off()
    cells = ax.get_subplotspec().subgridspec(n_rows, n_columns)
    axes = np.empty((n_rows, n_columns), dtype=object)
    for at in np.ndindex(n_rows, n_columns):
        axes[at] = ax.figure.add_subplot(cells[at])
    return axes
