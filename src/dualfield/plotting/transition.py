"""Heat maps of the weights of transitions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.plotting.canvas import one_axes
from dualfield.plotting.heat_map import Grid, Legend, draw_grid, label_margin
from dualfield.plotting.labels import label_list, most_of, short_labels, shown_note
from dualfield.plotting.markup import Html

_WITH_NUMBERS = 25  # up to so many labels the weights are written into the cells


class TransitionDisplay:
    """Heat map of the weights of transitions: the label on the left is the row, the next label the column.

    Weights above 0 and below 0 have colours of their own, and 0 is blank. Transitions that the model forbids are
    struck out.

    Parameters
    ----------
    weights : array-like of shape (n_labels, n_labels)
        The label on the left first.
    labels : sequence of length n_labels
        The labels.
    allowed : bool array of shape (n_labels, n_labels), default=None
        Transitions that may occur; None: all.

    Attributes
    ----------
    ax_, figure_, im_, text_
        Axes, figure, image and numbers (None where there are too many) of the last :meth:`plot`.

    See Also
    --------
    TopFeaturesDisplay : The weights of attributes.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.plotting import TransitionDisplay
    >>> model = CRF().fit([[["the"], ["dog"]], [["a"], ["cat"]]], [["DT", "NN"], ["DT", "NN"]])
    >>> display = TransitionDisplay.from_estimator(model)
    >>> display.labels, display.weights.shape
    (['DT', 'NN'], (2, 2))
    """

    def __init__(self, weights: ArrayLike, labels: Any, allowed: ArrayLike | None = None) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        self.labels = label_list(labels)
        n = len(self.labels)
        self.allowed = np.ones((n, n), dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
        for name, array in (("weights", self.weights), ("allowed", self.allowed)):
            if array.shape != (n, n):
                raise ValueError(f"{name} must have shape ({n}, {n}), as there are {n} labels. Got {array.shape}.")

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the weights of a fitted model of sequences.

        Parameters
        ----------
        model : fitted model, such as :class:`dualfield.CRF`
            Its chain must be of order 1.

        Returns
        -------
        TransitionDisplay
            The display.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.plotting import TransitionDisplay
        >>> model = CRF(constraints="BIO").fit([[["a"], ["b"], ["c"]]], [["B-x", "I-x", "O"]])
        >>> TransitionDisplay.from_estimator(model).allowed[2]  # what may follow O
        array([ True, False,  True])
        """
        labels = label_list(model.classes_)
        chain = model.structure_
        if chain.order != 1:
            raise ValueError(
                f"A table of transitions needs a chain of order 1. Got order {chain.order}; model.top_features() lists "
                "the weights of longer windows of labels."
            )
        return cls(model.transitions_, labels, chain.clique_allowed.reshape(len(labels), len(labels)))

    def plot(self, ax: Any = None, *, max_labels: int = 45, cmap: str = "RdBu", numbers: bool | None = None) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.
        max_labels : int, default=45
            With more labels than this, those with the largest weights are shown.
        cmap : str, default="RdBu"
            A colour map with a light middle.
        numbers : bool, default=None
            Whether weights are written into the cells; None: up to 25 labels.

        Returns
        -------
        TransitionDisplay
            Itself.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.plotting import TransitionDisplay
        >>> display = TransitionDisplay([[0.0, 1.5], [-0.5, 0.0]], ["DT", "NN"]).plot()
        >>> display.ax_.get_ylabel()
        'label on the left'
        >>> plt.close(display.figure_)
        """
        shown, weights, allowed, labels = self._shown(max_labels)
        n = len(shown)
        self.ax_ = one_axes(type(self).__name__, ax, (2.4 + 0.32 * n, 1.8 + 0.3 * n))
        self.figure_ = self.ax_.figure
        full = _full(weights, allowed)
        drawn = np.ma.masked_array(weights, mask=~allowed)
        self.im_ = self.ax_.imshow(drawn, cmap=cmap, vmin=-full, vmax=full)
        self.figure_.colorbar(self.im_, ax=self.ax_, label="weight", shrink=0.8)
        rows, columns = np.nonzero(~allowed)
        strokes = np.array([[-0.4, 0.4, np.nan]])  # of one line, broken between the cells
        across, down = columns[:, None] + strokes, rows[:, None] - strokes
        self.ax_.plot(across.ravel(), down.ravel(), color="grey", linewidth=0.8)
        self.ax_.set_xticks(range(n), labels, rotation=90, parse_math=False)
        self.ax_.set_yticks(range(n), labels, parse_math=False)
        note = shown_note(n, len(self.labels), "labels, those with the largest weights")
        self.ax_.set(xlabel="next label", ylabel="label on the left", title=note)
        self.text_ = None
        if n <= _WITH_NUMBERS if numbers is None else numbers:
            self.text_ = np.full((n, n), None, dtype=object)
            for row, column in np.argwhere(allowed & (weights != 0.0)):
                value = weights[row, column]
                colour = "white" if abs(value) > 0.6 * full else "black"
                self.text_[row, column] = self.ax_.text(
                    column, row, _short(value), ha="center", va="center", color=colour, fontsize=7
                )
        return self

    def html(self, *, max_labels: int = 45) -> Html:
        """Draw as SVG for a page of :mod:`dualfield.report`.

        Parameters
        ----------
        max_labels : int, default=45
            With more labels than this, those with the largest weights are shown.

        Returns
        -------
        Html
            The picture.

        Examples
        --------
        >>> from dualfield.plotting import TransitionDisplay
        >>> picture = TransitionDisplay([[0.0, 1.5], [-0.5, 0.0]], ["DT", "NN"]).html()
        >>> "<title>DT → NN: +1.5</title>" in picture
        True
        """
        shown, weights, allowed, labels = self._shown(max_labels)
        full = _full(weights, allowed)
        names = [str(self.labels[at]) for at in shown]
        texts = [[_short(weight) for weight in row] for row in np.where(allowed, weights, 0.0)]
        grid = Grid(
            np.where(allowed, weights, 0.0) / full,
            labels,
            labels,
            "label on the left",
            "next label",
            crossed=tuple((int(row), int(column)) for row, column in np.argwhere(~allowed)),
            texts=texts if len(shown) <= _WITH_NUMBERS else (),
            tips=[
                [f"{left} → {right}: {weight:+.4g}" for right, weight in zip(names, row, strict=True)]
                for left, row in zip(names, weights, strict=True)
            ],
        )
        legend = Legend(
            f"{-full:.3g}", f"{full:.3g}, weight", signed=True, crossed="forbidden" if not allowed.all() else ""
        )
        cell = (30, 20) if grid.texts else (18, 18)
        title = "Weights of transitions from one label to the next"
        picture = draw_grid(grid, legend, title=title, cell=cell, margin=label_margin(labels))
        note = shown_note(len(shown), len(self.labels), "labels, those with the largest weights")
        return Html(f'<div class="grid-box">{picture}</div>' + (f'<p class="soft">{note}.</p>' if note else ""))

    def _shown(self, max_labels: int) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.bool_], list[str]]:
        """Return which labels are shown, their weights, what is allowed, and their names."""
        size = np.where(self.allowed, np.abs(self.weights), 0.0)
        shown = most_of(np.maximum(size.max(axis=0, initial=0.0), size.max(axis=1, initial=0.0)), max_labels)
        both = np.ix_(shown, shown)
        return shown, self.weights[both], self.allowed[both], short_labels([self.labels[at] for at in shown])


def _short(weight: float) -> str:
    """Write a weight with one decimal; a weight of 0 is no weight, and one close to it has no sign."""
    return f"{weight:.1f}".replace("-0.0", "0.0") if weight else ""


def _full(weights: NDArray[np.float64], allowed: NDArray[np.bool_]) -> float:
    """Return the weight that gets the full colour: the largest, or 1 where there is none."""
    return float(np.abs(weights[allowed]).max(initial=0.0)) or 1.0
