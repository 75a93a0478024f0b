"""Scores over C: what a search for parameters has found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.data.tables import Columns
from dualfield.plotting.canvas import legend_below, one_axes
from dualfield.plotting.display import Display
from dualfield.plotting.inline_svg import inline_svg, page_axes, page_style
from dualfield.plotting.line_chart import LOOKS
from dualfield.plotting.markup import Html

_ASIDE = 1.03  # a factor of C by which lines stand apart, so that error bars do not cover each other
_FEW = 9  # values of C, each of which has a tick
_NAMES = {"span_f1": "span F1", "token_f1": "token F1", "sequence_accuracy": "sequence accuracy"}


@dataclass(frozen=True, eq=False)
class TuningCurve:
    """Scores of one setting over C.

    Parameters
    ----------
    name : str
        The setting; empty if there is only one.
    C : array
        Rising values.
    mean, std : array
        Mean score over the folds and their standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.plotting.tuning_curve import TuningCurve
    >>> TuningCurve("order=2", np.array([1.0, 10.0]), np.array([0.8, 0.9]), np.zeros(2)).name
    'order=2'
    """

    name: str
    C: Floats
    mean: Floats
    std: Floats


class TuningCurveDisplay(Display):
    """Scores on held-out data over C, on a logarithmic axis: one line for each setting, error bars over folds.

    Error bars are one standard deviation of the scores of the folds. The best candidate is marked. Up to six settings
    are drawn, those with the best scores.

    Parameters
    ----------
    curves : sequence of TuningCurve
        One for each setting.
    score_name : str, default="score"
        What the vertical axis measures.

    Attributes
    ----------
    best : (TuningCurve, float, float)
        The setting, the C and the mean score that are best; of equal scores the first.
    ax_, figure_
        Axes and figure of the last :meth:`plot`.

    Examples
    --------
    >>> from dualfield.plotting import TuningCurveDisplay
    >>> table = {"param_C": [1.0, 10.0, 100.0], "mean_test_score": [0.8, 0.9, 0.85], "std_test_score": [0.0, 0.0, 0.0]}
    >>> TuningCurveDisplay.from_cv_results(table, score_name="span_f1")
    TuningCurveDisplay(span F1 for 3 values of C, best 0.9 at C = 10)
    """

    def __init__(self, curves: Sequence[TuningCurve], *, score_name: str = "score") -> None:
        known = [curve for curve in curves if np.isfinite(curve.mean).any()]
        if not known:
            raise ValueError("There is no score to draw: all are missing.")
        self.curves = sorted(known, key=lambda curve: -float(np.nanmax(curve.mean)))[: len(LOOKS) - 1]
        self.score_name = _NAMES.get(score_name, score_name.replace("_", " "))
        first = self.curves[0]
        at = int(np.nanargmax(first.mean))
        self.best = (first, float(first.C[at]), float(first.mean[at]))

    @classmethod
    def from_cv_results(cls, cv_results: Mapping[str, Any], *, score_name: str = "score") -> Self:
        """Take the table of a search.

        Parameters
        ----------
        cv_results : dict
            ``cv_results_`` of :class:`dualfield.CRFCV` or of scikit-learn's searches. It must have ``param_C``, or one
            key that ends in ``__C``, as of a pipeline.
        score_name : str, default="score"
            What was scored; names that begin with ``neg_`` are drawn with their sign.

        Returns
        -------
        TuningCurveDisplay
            The display.

        Examples
        --------
        >>> from dualfield.plotting import TuningCurveDisplay
        >>> table = {"param_C": [1, 1, 9, 9], "param_order": [1, 2, 1, 2], "mean_test_score": [0.5, 0.6, 0.7, 0.8]}
        >>> [curve.name for curve in TuningCurveDisplay.from_cv_results(table).curves]
        ['order=2', 'order=1']
        """
        keys = [key for key in cv_results if key == "param_C" or (key.startswith("param_") and key.endswith("__C"))]
        if len(keys) != 1 or "mean_test_score" not in cv_results:
            raise ValueError(
                "cv_results must have param_C and mean_test_score, as cv_results_ of a search over C. "
                f"Got {sorted(cv_results)[:12]}."
            )
        others = [key for key in cv_results if key.startswith("param_") and key != keys[0]]
        C = np.asarray(list(cv_results[keys[0]]), dtype=np.float64)
        mean = np.asarray(cv_results["mean_test_score"], dtype=np.float64)
        std = np.asarray(cv_results.get("std_test_score", np.zeros_like(mean)), dtype=np.float64)
        rows: dict[str, list[int]] = {}
        for at in range(len(C)):
            name = ", ".join(f"{key.removeprefix('param_')}={cv_results[key][at]}" for key in others)
            rows.setdefault(name, []).append(at)
        curves = []
        for name, places in rows.items():
            order = np.array(places)[np.argsort(C[places], kind="stable")]
            curves.append(TuningCurve(name, C[order], mean[order], std[order]))
        return cls(curves, score_name=score_name)

    @classmethod
    def from_estimator(cls, search: Any) -> Self:
        """Take the scores of a fitted search.

        Parameters
        ----------
        search : fitted search
            :class:`dualfield.CRFCV`, :class:`dualfield.StructuredSVMCV`, or scikit-learn's ``GridSearchCV``.

        Returns
        -------
        TuningCurveDisplay
            The display.

        Examples
        --------
        >>> from dualfield import CRFCV
        >>> from dualfield.plotting import TuningCurveDisplay
        >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 5, [["x", "y"], ["y", "x"]] * 5
        >>> TuningCurveDisplay.from_estimator(CRFCV(Cs=[1.0, 10.0], cv=2).fit(X, y)).score_name
        'accuracy'
        """
        if not hasattr(search, "cv_results_"):
            raise ValueError(f"The search must be fitted and have cv_results_. Got {search!r:.100}.")
        scoring = getattr(search, "scoring", None)
        named = getattr(scoring, "__name__", scoring if isinstance(scoring, str) else "score")
        return cls.from_cv_results(search.cv_results_, score_name=str(getattr(search, "scoring_", named)))

    def plot(self, ax: Any = None) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        TuningCurveDisplay
            Itself.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.plotting import TuningCurveDisplay
        >>> table = {"param_C": [1.0, 10.0], "mean_test_score": [0.8, 0.9]}
        >>> display = TuningCurveDisplay.from_cv_results(table).plot()
        >>> display.ax_.get_xscale()
        'log'
        >>> plt.close(display.figure_)
        """
        self.ax_ = one_axes(ax, (4.6, 3.0))
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    def html(self) -> Html:
        """Draw as SVG for a page of :mod:`dualfield.report`.

        Returns
        -------
        Html
            An ``<svg>`` element.

        Examples
        --------
        >>> from dualfield.plotting import TuningCurveDisplay
        >>> table = {"param_C": [1.0, 10.0], "mean_test_score": [0.8, 0.9]}
        >>> TuningCurveDisplay.from_cv_results(table).html().startswith("<svg")
        True
        """
        with page_style():
            ax = page_axes(520, 300)
            self._draw(ax)
            return inline_svg(ax.figure, title=f"{self.score_name} over C")

    def _summary(self) -> str:
        curve, C, score = self.best
        settings = f" and {len(self.curves)} settings" if len(self.curves) > 1 else ""
        name = f", {curve.name}" if curve.name else ""
        n = len({float(one) for known in self.curves for one in known.C})
        return f"{self.score_name} for {n} values of C{settings}, best {score:.4g} at C = {C:g}{name}"

    def _columns(self) -> Columns:
        rows = [
            (curve.name, *numbers)
            for curve in self.curves
            for numbers in zip(curve.C.tolist(), curve.mean.tolist(), curve.std.tolist(), strict=True)
        ]
        return {name: [row[at] for row in rows] for at, name in enumerate(("setting", "C", "mean", "std"))}

    def _draw(self, ax: Any) -> None:
        for at, (curve, look) in enumerate(zip(self.curves, LOOKS, strict=False)):
            x = curve.C * _ASIDE ** (at if curve.std.any() else 0)
            (line,) = ax.plot(x, curve.mean, label=curve.name or self.score_name, **look)
            if curve.std.any():
                ax.errorbar(x, curve.mean, curve.std, fmt="none", ecolor=line.get_color(), elinewidth=1.2)
        curve, C, score = self.best
        named = f"best: C = {C:g}" + f", {curve.name}" * bool(curve.name) + f", {score:.4f}"
        colour = ax.get_lines()[0].get_color()
        ax.plot([C], [score], label=named, marker="*", markersize=17, color=colour, linestyle="none")
        ax.set(xlabel="C", ylabel=self.score_name, xscale="log")
        values = sorted({float(one) for known in self.curves for one in known.C})
        if len(values) <= _FEW:
            ax.set_xticks(values, [f"{value:g}" for value in values])
            ax.set_xticks([], minor=True)
        ax.grid(True, alpha=0.6)
        legend_below(ax)
