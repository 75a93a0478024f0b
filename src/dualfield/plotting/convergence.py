"""Convergence of a fit: objective, gap, and validation scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.arrays import Floats
from dualfield.data.tables import Columns
from dualfield.plotting.canvas import several_axes
from dualfield.plotting.display import Display
from dualfield.plotting.line_chart import Line, draw_lines, line_chart
from dualfield.plotting.markup import Html

Moment = tuple[float, float, str, float]
Against = Literal["seconds", "passes"]

_NOTHING = "There is no convergence curve to draw: the objective was evaluated fewer than two times."
_MOST_SCORES = 6  # lines of a chart


class ConvergenceDisplay(Display):
    """Objective and relative duality gap during a fit, with validation scores.

    The objective is drawn with the lower bound that the dual gives: the optimum lies between the two lines. The
    relative gap is their distance divided by the bound, on a logarithmic axis.

    Parameters
    ----------
    objective, dual, gap : array-like of shape (n_looks,)
        Primal value, dual value and their difference; NaN where there is none.
    passes, seconds : array-like of shape (n_looks,)
        Work and time so far.
    history : iterable of (passes, seconds, name of score, value), default=()
        Validation scores during the fit.

    Attributes
    ----------
    relative_gap : ndarray of shape (n_looks,)
        gap / dual; NaN where the dual value is not above 0, so that it bounds nothing.
    scores : dict from name to (passes, values)
        The history by name.
    axes_, figure_
        The axes and the figure of the last :meth:`plot`; `ax_` is the first of the axes.

    Examples
    --------
    >>> from dualfield.plotting import ConvergenceDisplay
    >>> display = ConvergenceDisplay([9.0, 8.0], [-2.0, 7.5], [11.0, 0.5], [1, 2], [0.1, 0.2], [(1, 0.1, "F1", 0.9)])
    >>> display.relative_gap.round(3)
    array([  nan, 0.067])
    >>> display.scores
    {'F1': ([1.0], [0.9])}
    """

    def __init__(
        self,
        objective: ArrayLike,
        dual: ArrayLike,
        gap: ArrayLike,
        passes: ArrayLike,
        seconds: ArrayLike,
        history: Iterable[Moment] = (),
    ) -> None:
        columns = [np.asarray(one, dtype=np.float64) for one in (objective, dual, gap, passes, seconds)]
        if any(one.shape != columns[0].shape or one.ndim != 1 for one in columns):
            shapes = ", ".join(str(one.shape) for one in columns)
            raise ValueError(
                f"objective, dual, gap, passes and seconds must be 1D and of the same length. Got shapes {shapes}."
            )
        self.objective, self.dual, self.gap, self.passes, self.seconds = columns
        bound = np.where(self.dual > 0.0, self.dual, np.nan)
        self.relative_gap: Floats = np.maximum(self.gap, 0.0) / bound
        self.history = [(float(at), float(time), str(name), float(value)) for at, time, name, value in history]

    @property
    def scores(self) -> dict[str, tuple[list[float], list[float]]]:
        """The history by name: passes and values."""
        found: dict[str, tuple[list[float], list[float]]] = {}
        for passes, _, name, value in self.history:
            xs, ys = found.setdefault(name, ([], []))
            xs.append(passes)
            ys.append(value)
        return found

    @property
    def has_bounds(self) -> bool:
        """Whether there is a gap to be drawn."""
        return int((np.isfinite(self.relative_gap) & (self.relative_gap > 0.0)).sum()) >= 2

    @classmethod
    def from_estimator(cls, model: Any, *, history: Iterable[Moment] = ()) -> Self:
        """Take the trace of a fitted model.

        Parameters
        ----------
        model : fitted model
            Its ``trace_`` is drawn.
        history : iterable of (passes, seconds, name of score, value), default=()
            Validation scores during the fit.

        Returns
        -------
        ConvergenceDisplay
            The display; without a line for a model that has no trace.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.plotting import ConvergenceDisplay
        >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> ConvergenceDisplay.from_estimator(model).relative_gap[-1] <= 1e-4
        np.True_
        """
        trace = getattr(model, "trace_", None)
        if trace is None:
            return cls([], [], [], [], [], history)
        none = np.full(len(trace.objective), np.nan)  # steps with latent variables have no dual value
        dual, gap = getattr(trace, "dual", none), getattr(trace, "gap", none)
        return cls(trace.objective, dual, gap, trace.passes, trace.seconds, history)

    def _summary(self) -> str:
        bounds = self.relative_gap[np.isfinite(self.relative_gap)]
        gap = f", relative gap {bounds[-1]:.1e}" if len(bounds) else ""
        return f"{len(self.objective)} looks{gap}"

    def _columns(self) -> Columns:
        names = ("passes", "seconds", "objective", "dual", "gap", "relative_gap")
        return {name: getattr(self, name).tolist() for name in names}

    def plot(self, ax: Any = None, *, against: Against = "seconds") -> Self:
        """Draw with matplotlib: objective, gap, and scores if there are any, side by side.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            A place that is divided among the panels; None: a new figure.
        against : {"seconds", "passes"}, default="seconds"
            The horizontal axis of all panels; passes where seconds are not known, as in a model that was read from a
            file.

        Returns
        -------
        ConvergenceDisplay
            Itself.

        Raises
        ------
        ValueError
            If there is nothing to draw.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.plotting import ConvergenceDisplay
        >>> display = ConvergenceDisplay([9.0, 8.0], [5.0, 7.5], [4.0, 0.5], [1, 2], [0.1, 0.2]).plot()
        >>> [axes.get_ylabel() for axes in display.axes_]
        ['objective', 'relative duality gap']
        >>> plt.close(display.figure_)
        """
        panels = self._panels(against)
        if not panels:
            raise ValueError(_NOTHING)
        size = (4.6 * len(panels), 3.4)
        self.axes_ = several_axes(ax, 1, len(panels), size).ravel()
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        for axes, (_, lines, names) in zip(self.axes_, panels, strict=True):
            draw_lines(axes, lines, **names)
        return self

    def html(self, *, against: Against = "seconds") -> Html:
        """Draw as SVG for a page of :mod:`dualfield.report`.

        Parameters
        ----------
        against : {"seconds", "passes"}, default="seconds"
            The horizontal axis of all panels; passes where seconds are not known, as in a model that was read from a
            file.

        Returns
        -------
        Html
            The charts, or a sentence where there is nothing to draw.

        Examples
        --------
        >>> from dualfield.plotting import ConvergenceDisplay
        >>> ConvergenceDisplay([9.0, 8.0], [5.0, 7.5], [4.0, 0.5], [1, 2], [0.1, 0.2]).html().count("<svg")
        2
        """
        charts = [line_chart(lines, title=title, **names) for title, lines, names in self._panels(against)]
        return Html(f'<div class="charts">{"".join(charts)}</div>' if charts else f'<p class="soft">{_NOTHING}</p>')

    def _panels(self, against: Against) -> list[tuple[str, list[Line], dict[str, Any]]]:
        """Return the charts that have something to show: title, lines, and how they are drawn."""
        if against not in ("seconds", "passes"):
            raise ValueError(
                f"The 'against' parameter of ConvergenceDisplay must be 'seconds' or 'passes'. Got {against!r} instead."
            )
        if not np.isfinite([*self.seconds[-1:], *(time for _, time, _, _ in self.history)]).all():
            against = "passes"
        x = self.seconds if against == "seconds" else self.passes
        # The objective is never below 0: a negative bound says nothing, and would squeeze the rest of the chart.
        bound = np.where(self.dual >= 0.0, self.dual, np.nan)
        values = {"objective": self.objective} | ({"lower bound": bound} if np.isfinite(bound).any() else {})
        gap = np.where(self.relative_gap > 0.0, self.relative_gap, np.nan)
        charts: list[tuple[str, list[Line], dict[str, Any]]] = [
            ("Objective", _lines(x, values), {"y_axis": "objective", "x_axis": against}),
            (
                "Relative duality gap",
                _lines(x, {"relative duality gap": gap}),
                {"y_axis": "relative duality gap", "x_axis": against, "log_y": True},
            ),
            (
                "Scores on held-out data",
                self._score_lines(against),
                {"y_axis": "score", "x_axis": against},
            ),
        ]
        # One look is no course; a single score is worth a mark.
        least = {"score": 1}
        return [
            chart for chart in charts if max(map(_n_points, chart[1]), default=0) >= least.get(chart[2]["y_axis"], 2)
        ]

    def _score_lines(self, against: Against) -> list[Line]:
        lines = []
        for name in list(self.scores)[:_MOST_SCORES]:
            looks = [one for one in self.history if one[2] == name]
            x = tuple(seconds if against == "seconds" else passes for passes, seconds, _, _ in looks)
            lines.append(Line(name, x, tuple(value for *_, value in looks)))
        return lines


def _lines(x: Floats, values: Mapping[str, Floats]) -> list[Line]:
    known = {name: np.where(np.isfinite(y), y, np.nan) for name, y in values.items()}
    return [Line(name, tuple(x.tolist()), tuple(y.tolist())) for name, y in known.items()]


def _n_points(line: Line) -> int:
    return int((np.isfinite(line.x) & np.isfinite(line.y)).sum())
