"""The largest weights of attributes, label by label."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.tables import Columns
from dualfield.plotting.canvas import several_axes
from dualfield.plotting.display import Display
from dualfield.plotting.labels import label_list, most_of, shown_note
from dualfield.plotting.markup import Html, escape, shortened

Ranked = list[tuple[str, float]]


class TopFeaturesDisplay(Display):
    """The attributes with the largest positive and negative weights for each label, as bars to both sides.

    Parameters
    ----------
    features : mapping from label to sequence of (attribute, weight)
        For each label its attributes, the largest weight first.

    Attributes
    ----------
    axes_, figure_
        One axes for each label that is shown, and the figure, of the last :meth:`plot`; `ax_` is the first of them.

    See Also
    --------
    TransitionDisplay : The weights of transitions.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.plotting import TopFeaturesDisplay
    >>> X = [[["the"], ["dog"]], [["dogs"], ["run"]], [["the"], ["run"]]]
    >>> model = CRF(C=3.0, tol=1e-12).fit(X, [["DT", "NN"], ["NN", "VB"], ["DT", "NN"]])
    >>> display = TopFeaturesDisplay.from_estimator(model, n=2)
    >>> [(attribute, round(weight, 2)) for attribute, weight in display.features["NN"]]
    [('dogs', 1.11), ('dog', 0.7)]
    """

    def __init__(self, features: Mapping[Any, Sequence[tuple[str, float]]]) -> None:
        self.features: dict[Any, Ranked] = {
            label: [(str(attribute), float(weight)) for attribute, weight in ranked]
            for label, ranked in features.items()
        }

    @classmethod
    def from_estimator(cls, model: Any, *, n: int = 5) -> Self:
        """Take the largest weights of a fitted linear model of sequences.

        Parameters
        ----------
        model : fitted model, such as :class:`dualfield.CRF`
            Its attributes are those of ``vocabulary_``; columns of numeric input are called ``x[0]``, ``x[1]``, ...
        n : int, default=5
            How many attributes for each label, and how many against it, at most.

        Returns
        -------
        TopFeaturesDisplay
            The display.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.plotting import TopFeaturesDisplay
        >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> list(TopFeaturesDisplay.from_estimator(model).features)
        ['x', 'y']
        """
        if n < 1:
            raise ValueError(f"The 'n' parameter of TopFeaturesDisplay must be an int in [1, inf). Got {n!r} instead.")
        weights = scipy.sparse.csr_array(model.coef_)
        names = model.vocabulary_
        found = {}
        for row, label in enumerate(label_list(model.classes_)):
            part = slice(weights.indptr[row], weights.indptr[row + 1])
            values, columns = weights.data[part], weights.indices[part]
            chosen = _both_ends(values, n)
            found[label] = [
                (f"x[{column}]" if names is None else names.attribute(column), weight)
                for column, weight in zip(columns[chosen].tolist(), values[chosen].tolist(), strict=True)
            ]
        return cls(found)

    def _summary(self) -> str:
        return f"{len(self.features)} labels, {sum(map(len, self.features.values()))} weights"

    def _columns(self) -> Columns:
        rows = [(label, *one) for label, ranked in self.features.items() for one in ranked]
        return {name: [row[at] for row in rows] for at, name in enumerate(("label", "attribute", "weight"))}

    def plot(self, ax: Any = None, *, max_labels: int = 24, n_columns: int = 3) -> Self:
        """Draw with matplotlib, one axes for each label.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            A place that is divided among the labels; None: a new figure.
        max_labels : int, default=24
            With more labels than this, those with the largest weights are shown.
        n_columns : int, default=3
            How many labels stand side by side.

        Returns
        -------
        TopFeaturesDisplay
            Itself.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.plotting import TopFeaturesDisplay
        >>> display = TopFeaturesDisplay({"NN": [("dog", 1.5), ("the", -0.5)]}).plot()
        >>> display.ax_.get_title()
        'NN'
        >>> plt.close(display.figure_)
        """
        shown = self._shown(max_labels)
        n_columns = max(1, min(n_columns, len(shown)))
        n_rows = max(1, math.ceil(len(shown) / n_columns))
        longest = max((len(self.features[label]) for label in shown), default=1)
        size = (4.2 * n_columns, n_rows * (0.9 + 0.22 * longest))
        grid = several_axes(ax, n_rows, n_columns, size)
        self.axes_ = grid.ravel()[: len(shown)]
        self.ax_, self.figure_ = grid[0, 0], grid[0, 0].figure
        for unused in grid.ravel()[len(shown) :]:
            unused.set_axis_off()
        for axes, label in zip(self.axes_, shown, strict=True):
            ranked = self.features[label]
            weights = [weight for _, weight in ranked]
            axes.barh(range(len(ranked)), weights, color=["C0" if weight > 0 else "C1" for weight in weights])
            names = [shortened(attribute, 28) for attribute, _ in ranked]
            axes.set_yticks(range(len(ranked)), names, fontsize=8, parse_math=False)
            axes.invert_yaxis()
            axes.axvline(0.0, color="grey", linewidth=0.8)
            axes.set_title(shortened(label, 40), fontsize=10, parse_math=False)
        return self

    def html(self, *, max_labels: int = 24) -> Html:
        """Lay out as tables with bars, for a page of :mod:`dualfield.report`.

        Parameters
        ----------
        max_labels : int, default=24
            With more labels than this, those with the largest weights are shown.

        Returns
        -------
        Html
            A card for each label.

        Examples
        --------
        >>> from dualfield.plotting import TopFeaturesDisplay
        >>> "+1.500" in TopFeaturesDisplay({"NN": [("dog", 1.5), ("the", -0.5)]}).html()
        True
        """
        shown = self._shown(max_labels)
        full = max((abs(weight) for label in shown for _, weight in self.features[label]), default=1.0) or 1.0
        cards = "\n".join(
            f"<section><h4>{escape(label)}</h4>{''.join(_table(self.features[label], full))}</section>"
            for label in shown
        )
        note = shown_note(len(shown), len(self.features), "labels, those with the largest weights")
        return Html(f'<div class="weights">{cards}</div>' + (f'<p class="soft">{note}.</p>' if note else ""))

    def _shown(self, max_labels: int) -> list[Any]:
        labels = list(self.features)
        size = [max((abs(weight) for _, weight in ranked), default=0.0) for ranked in self.features.values()]
        return [labels[at] for at in most_of(size, max_labels)]


def _both_ends(values: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    """Return the places of the n largest values above 0 and of the n lowest below 0, the largest first."""
    order = np.arange(len(values))
    if len(values) > 2 * n:
        order = np.union1d(np.argpartition(values, n - 1)[:n], np.argpartition(-values, n - 1)[:n])
    order = order[np.lexsort((order, -values[order]))]
    high, low = order[values[order] > 0.0][:n], order[values[order] < 0.0]
    return np.concatenate([high, low[max(0, len(low) - n) :]])


def _table(ranked: Ranked, full: float) -> Iterator[str]:
    """Give out the rows of a card; bars begin in the middle and are drawn to one scale on all cards."""
    if not ranked:
        yield '<p class="soft">No weights.</p>'
        return
    yield "<table>"
    for attribute, weight in ranked:
        width = 50.0 * abs(weight) / full
        left, kind = (50.0, "bar") if weight > 0 else (50.0 - width, "bar minus")
        yield (
            f'<tr><td>{escape(attribute)}</td><td class="number">{weight:+.3f}</td><td class="sign">'
            f'<span class="{kind}" style="margin-left:{left:.1f}%;width:{width:.1f}%"></span></td></tr>'
        )
    yield "</table>"
