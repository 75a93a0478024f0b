"""Calibration before and after a temperature was chosen."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.data.tables import Columns
from dualfield.metrics import CalibrationBins, calibration_bins, token_log_loss
from dualfield.metrics.calibration import confidences
from dualfield.plotting.display import Display
from dualfield.plotting.labels import as_sequences, label_list
from dualfield.plotting.markup import Html
from dualfield.plotting.reliability import ReliabilityDisplay, reliability_diagram
from dualfield.plotting.tables import table


class CalibrationChangeDisplay(Display):
    """Reliability diagrams of a model before and after ``calibrate``: at the temperature of its training, and at T.

    Scores are divided by T before they become probabilities. Models are trained at T = 1, unless a CRF has another
    ``temperature``. Margins of a :class:`dualfield.StructuredSVM` are no log-odds, which T = 1 takes them for;
    `calibrate` chooses T on held-out data.

    Parameters
    ----------
    before, after : CalibrationBins
        Confidence and accuracy before and after.
    temperature : float
        T.
    log_losses : (float, float)
        Mean of -log p(label) before and after.
    first : float, default=1.0
        The temperature before.

    Attributes
    ----------
    errors : (float, float)
        Expected calibration errors before and after.
    ax_, figure_
        Axes and figure of the last :meth:`plot`.

    Examples
    --------
    >>> from dualfield.metrics import calibration_bins
    >>> from dualfield.plotting import CalibrationChangeDisplay
    >>> before, after = (calibration_bins([sure] * 4, [1, 1, 1, 0]) for sure in (0.99, 0.8))
    >>> CalibrationChangeDisplay(before, after, 2.5, (1.17, 0.57))
    CalibrationChangeDisplay(T = 2.5, calibration error 0.2400 to 0.0500, log-loss 1.1700 to 0.5700)
    """

    def __init__(
        self,
        before: CalibrationBins,
        after: CalibrationBins,
        temperature: float,
        log_losses: tuple[float, float],
        first: float = 1.0,
    ) -> None:
        self.before, self.after = before, after
        self.temperature, self.first = float(temperature), float(first)
        loss, lower = log_losses
        self.log_losses = (float(loss), float(lower))

    @property
    def errors(self) -> tuple[float, float]:
        """Expected calibration errors before and after."""
        return self.before.error, self.after.error

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, n_bins: int = 10) -> Self:
        """Compute the marginals of a calibrated model before it was, and at its temperature.

        Parameters
        ----------
        model : fitted model with a temperature, such as a calibrated :class:`dualfield.StructuredSVM`
            It is not changed.
        X, y : sequences and their labels, or array of shape (n, n_features) and labels
            Held-out data, best not those that the temperature was chosen on.
        n_bins : int, default=10
            Bins of equal width between 0 and 1.

        Returns
        -------
        CalibrationChangeDisplay
            The display.

        Examples
        --------
        >>> from dualfield import StructuredSVM
        >>> from dualfield.plotting import CalibrationChangeDisplay
        >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]
        >>> model = StructuredSVM(random_state=0).fit(X, y).calibrate([[["a"], ["a"], ["b"]]], [["x", "y", "y"]])
        >>> display = CalibrationChangeDisplay.from_estimator(model, X, y)
        >>> display.temperature == model.temperature
        True
        """
        if hasattr(model, "decision_scores") and hasattr(model, "predict_proba"):
            (first, chosen), truth, both = _of_scores(model, X, y)
        elif hasattr(model, "calibration_"):
            (first, chosen), truth, both = _of_probabilities(model, X, y)
        else:
            raise ValueError(
                "CalibrationChangeDisplay needs a model whose scores have a temperature, such as a CRF or a "
                f"StructuredSVM after calibrate(X, y). Got {type(model).__name__} instead."
            )
        classes, bins, losses = label_list(model.classes_), [], []
        for rows in both:
            bins.append(calibration_bins(*confidences(truth, rows, classes), n_bins=n_bins))
            losses.append(token_log_loss(truth, rows, classes))
        return cls(bins[0], bins[1], chosen, (losses[0], losses[1]), first)

    def _summary(self) -> str:
        (error, later), (loss, lower) = self.errors, self.log_losses
        return (
            f"T = {self.temperature:.4g}, calibration error {error:.4f} to {later:.4f}, "
            f"log-loss {loss:.4f} to {lower:.4f}"
        )

    def _columns(self) -> Columns:
        return {
            "temperature": [self.first, self.temperature],
            "calibration error": list(self.errors),
            "log-loss": list(self.log_losses),
        }

    @property
    def _curves(self) -> dict[str, CalibrationBins]:
        return {f"before, T = {self.first:.4g}": self.before, f"after, T = {self.temperature:.4g}": self.after}

    def plot(self, ax: Any = None) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        CalibrationChangeDisplay
            Itself.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.metrics import calibration_bins
        >>> from dualfield.plotting import CalibrationChangeDisplay
        >>> bins = calibration_bins([0.9, 0.6], [1, 0])
        >>> display = CalibrationChangeDisplay(bins, bins, 2.0, (0.5, 0.4)).plot()
        >>> len(display.ax_.get_legend().get_texts())
        3
        >>> plt.close(display.figure_)
        """
        for name, bins in self._curves.items():
            drawn = ReliabilityDisplay(bins, name).plot(ax, counts=False)
            ax = drawn.ax_
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def html(self) -> Html:
        """Draw as SVG with a table, for a page of :mod:`dualfield.report`.

        Returns
        -------
        Html
            The picture and the table.

        Examples
        --------
        >>> from dualfield.metrics import calibration_bins
        >>> from dualfield.plotting import CalibrationChangeDisplay
        >>> bins = calibration_bins([0.9, 0.6], [1, 0])
        >>> "<td>2</td><td>0.3500</td>" in CalibrationChangeDisplay(bins, bins, 2.0, (0.5, 0.4)).html()
        True
        """
        picture = reliability_diagram(self._curves, title="Share of right labels against confidence, before and after")
        rows = [
            (f"{temperature:.4g}", f"{error:.4f}", f"{loss:.4f}")
            for temperature, error, loss in zip(*self._columns().values(), strict=True)
        ]
        return Html(f'<div class="charts">{picture}{table(list(self._columns()), rows)}</div>')


# Temperatures before and after, labels, and probabilities before and after.
_Change = tuple[tuple[float, float], list[list[Any]], list[list[Floats]]]


def _of_scores(model: Any, X: Any, y: Any) -> _Change:
    """Ask a model of nodes for their probabilities, at the temperature of its training and at the chosen one."""
    after, truth = model.model_, as_sequences(model.decision_scores(X).shape.flat_labels(y))
    first, chosen = after.temperature or 1.0, float(after.probability_temperature)
    found = after.calibration
    before = after if found is None else replace(after, calibration=replace(found, temperature=first))
    cuts = np.cumsum([len(labels) for labels in truth])[:-1]
    tables = (one.node_probabilities(model._input(X)) for one in (before, after))
    return (first, chosen), truth, [np.split(table, cuts) for table in tables]


def _of_probabilities(model: Any, X: Any, y: Any) -> _Change:
    """Ask a model, and a copy of it without a temperature of its own."""
    before, truth = copy.copy(model), as_sequences(y)
    before._model = model.model_.calibrated(None)
    both = []
    for one in (before, model):
        found = one.predict_proba(X)
        is_flat = isinstance(found, np.ndarray) and found.ndim == 2
        both.append([np.reshape(table, (-1, np.shape(table)[-1])) for table in ([found] if is_flat else found)])
    return (1.0, float(model.calibration_.temperature)), truth, both
