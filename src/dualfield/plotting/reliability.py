"""Whether probabilities mean what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from dualfield.data.tables import Columns
from dualfield.metrics import CalibrationBins, calibration_bins
from dualfield.metrics.calibration import confidences
from dualfield.metrics.sequences import labels_for
from dualfield.plotting.canvas import legend_below, one_axes
from dualfield.plotting.display import Display
from dualfield.plotting.inline_svg import inline_svg, page_axes, page_style
from dualfield.plotting.labels import as_sequences
from dualfield.plotting.line_chart import LOOKS
from dualfield.plotting.markup import Html
from dualfield.plotting.tables import table

_CURVE, _COUNT = "dualfield-curve", "dualfield-count"  # names of artists


class ReliabilityDisplay(Display):
    """Reliability diagram: the share of right predictions against their confidence, in bins.

    On the diagonal, a label that gets 80 % is right in 80 of 100 cases; below it, the model is too sure.

    Parameters
    ----------
    bins : CalibrationBins
        From :func:`dualfield.metrics.calibration_bins`.
    name : str, default="model"
        For the legend.

    Attributes
    ----------
    error : float
        The expected calibration error, that of :func:`dualfield.metrics.calibration_error`.
    ax_, figure_, line_
        Axes, figure and line of the last :meth:`plot`.

    Examples
    --------
    >>> from dualfield.metrics import calibration_bins
    >>> from dualfield.plotting import ReliabilityDisplay
    >>> round(ReliabilityDisplay(calibration_bins([0.9, 0.9, 0.6, 0.6], [1, 1, 1, 0])).error, 3)
    0.1
    """

    def __init__(self, bins: CalibrationBins, name: str = "model") -> None:
        self.bins = bins
        self.name = name

    @property
    def error(self) -> float:
        """The expected calibration error."""
        return self.bins.error

    @classmethod
    def from_predictions(
        cls, y_true: Any, marginals: Any, classes: Any, *, n_bins: int = 10, name: str = "model"
    ) -> Self:
        """Bin the most probable labels by their probability.

        Parameters
        ----------
        y_true : list of label sequences, or labels
            The true labels.
        marginals : list of arrays of shape (T_i, n_classes), or array of shape (n, n_classes)
            Probabilities.
        classes : sequence of length n_classes
            The labels of the columns.
        n_bins : int, default=10
            Bins of equal width between 0 and 1.
        name : str, default="model"
            For the legend.

        Returns
        -------
        ReliabilityDisplay
            The display.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.plotting import ReliabilityDisplay
        >>> marginals = [np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.6, 0.4]])]
        >>> round(ReliabilityDisplay.from_predictions([["a", "b"], ["b"]], marginals, ["a", "b"]).error, 3)
        0.3
        """
        one_table = isinstance(marginals, np.ndarray) and marginals.ndim == 2
        sure, right = confidences(as_sequences(y_true), [marginals] if one_table else marginals, classes)
        return cls(calibration_bins(sure, right, n_bins=n_bins), name)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, n_bins: int = 10, name: str | None = None) -> Self:
        """Predict probabilities, and bin them.

        Parameters
        ----------
        model : fitted model
            Its ``predict_proba`` is called.
        X : sequences, or array of shape (n, n_features)
            Data that the model has not seen in training.
        y : list of label sequences, or labels
            The true labels.
        n_bins : int, default=10
            Bins of equal width between 0 and 1.
        name : str, default=None
            For the legend; None: the name of the model's class.

        Returns
        -------
        ReliabilityDisplay
            The display.

        Examples
        --------
        >>> from dualfield import KernelLogisticRegression
        >>> from dualfield.plotting import ReliabilityDisplay
        >>> model = KernelLogisticRegression(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
        >>> ReliabilityDisplay.from_estimator(model, [[0.5], [2.5]], [0, 1]).bins.count
        array([2])
        """
        label = type(model).__name__ if name is None else name
        chances = model.predict_proba(X)
        y = labels_for(model, y, chances)
        return cls.from_predictions(y, chances, model.classes_, n_bins=n_bins, name=label)

    def _summary(self) -> str:
        return f"{self.name!r}, {int(self.bins.count.sum()):,} predictions, calibration error {self.error:.4f}"

    def _columns(self) -> Columns:
        return {name: getattr(self.bins, name).tolist() for name in ("confidence", "accuracy", "count")}

    def plot(self, ax: Any = None, *, counts: bool | None = None) -> Self:
        """Draw with matplotlib.

        The area of a mark grows with the number of predictions in its bin; the bars are two standard errors,
        sqrt(confidence (1 - confidence) / count), to each side: with few predictions in a bin, a jump says little.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw, for instance beside the line of another model; None: a new figure.
        counts : bool, default=None
            Whether the number of predictions stands beside each mark; None: while there is one model in the axes.

        Returns
        -------
        ReliabilityDisplay
            Itself.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.metrics import calibration_bins
        >>> from dualfield.plotting import ReliabilityDisplay
        >>> display = ReliabilityDisplay(calibration_bins([0.9, 0.6], [1, 0])).plot()
        >>> display.line_.get_label()
        'model (calibration error 0.350)'
        >>> plt.close(display.figure_)
        """
        self.ax_ = one_axes(ax, (3.4, 3.4))
        self.figure_ = self.ax_.figure
        diagonal = "exactly as sure as right"
        if diagonal not in [line.get_label() for line in self.ax_.get_lines()]:
            self.ax_.plot([0, 1], [0, 1], ":", color="grey", label=diagonal)
        others = [text for text in self.ax_.texts if text.get_gid() == _COUNT]
        n_before = sum(line.get_gid() == _CURVE for line in self.ax_.get_lines())
        if counts is None:
            counts = n_before == 0
            for text in others:  # of the model that was alone before
                text.remove()
        bins = self.bins
        x, y = bins.confidence, bins.accuracy
        look = LOOKS[n_before % len(LOOKS)]
        label = f"{self.name} (calibration error {self.error:.3f})"
        (self.line_,) = self.ax_.plot(x, y, label=label, gid=_CURVE, **look)
        self.line_.set_markevery([])
        colour = self.line_.get_color()
        sure = np.clip(x, 0.0, 1.0)
        spread = 2.0 * np.sqrt(sure * (1.0 - sure) / bins.count)
        ends = np.clip([y - spread, y + spread], 0.0, 1.0)
        self.ax_.errorbar(x, y, np.abs(ends - y), fmt="none", ecolor=colour, elinewidth=1.2, capsize=3.0)
        sizes = (5.0 + 11.0 * np.sqrt(bins.count / bins.count.sum())) ** 2
        self.ax_.scatter(x, y, sizes, color=colour, marker=look["marker"], linewidths=0.0, zorder=3, clip_on=False)
        if counts:
            for one, share, count in zip(x, y, bins.count, strict=True):
                below = (4, -10) if share > 0.5 else (4, 6)
                self.ax_.annotate(f"{count}", (one, share), below, textcoords="offset points", fontsize=7, gid=_COUNT)
        self.ax_.set(xlim=(-0.02, 1.14 if counts else 1.02), ylim=(-0.02, 1.02), aspect="equal")
        self.ax_.set(xlabel="confidence in the most probable label", ylabel="share that is right")
        legend_below(self.ax_)
        if self.ax_.get_subplotspec() is not None and self.figure_.get_layout_engine() is None:
            self.figure_.set_layout_engine("constrained")  # which makes room for the legend
        return self

    def html(self) -> Html:
        """Draw as SVG with a table of the bins, for a page of :mod:`dualfield.report`.

        Returns
        -------
        Html
            The picture and the table.

        Examples
        --------
        >>> from dualfield.metrics import calibration_bins
        >>> from dualfield.plotting import ReliabilityDisplay
        >>> "<td>0.900</td><td>1.000</td><td>2</td>" in ReliabilityDisplay(calibration_bins([0.9, 0.9], [1, 1])).html()
        True
        """
        picture = reliability_diagram({self.name: self.bins}, title="Share of right labels against confidence")
        rows = [
            (f"{sure:.3f}", f"{right:.3f}", count)
            for sure, right, count in zip(self.bins.confidence, self.bins.accuracy, self.bins.count, strict=True)
        ]
        caption = f"Expected calibration error: {self.error:.4f}"
        numbers = table(("confidence", "right", "number"), rows, caption=caption)
        return Html(f'<div class="charts">{picture}{numbers}</div>')


def reliability_diagram(curves: Mapping[str, CalibrationBins], *, title: str) -> Html:
    """Draw several models into one diagram, each as :meth:`ReliabilityDisplay.plot` does.

    Parameters
    ----------
    curves : mapping from name to CalibrationBins
        The models.
    title : str
        What the picture shows, for those who hear the page.

    Returns
    -------
    Html
        An ``<svg>`` element.

    Examples
    --------
    >>> from dualfield.report import calibration_bins, reliability_diagram
    >>> bins = calibration_bins([0.9, 0.6], [True, False])
    >>> reliability_diagram({"coin": bins}, title="reliability").startswith("<svg")
    True
    """
    with page_style():
        ax = page_axes(240, 240)
        for name, bins in curves.items():
            ReliabilityDisplay(bins, name).plot(ax, counts=False)
        return inline_svg(ax.figure, title=title)
