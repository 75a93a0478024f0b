"""Heat maps of the weights of transitions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.tables import Columns
from dualfield.plotting.canvas import one_axes
from dualfield.plotting.display import Display
from dualfield.plotting.heat_map import cell_size, cells_html, draw_cells
from dualfield.plotting.labels import label_list, most_of, short_labels, shown_note
from dualfield.plotting.markup import Html

_WITH_NUMBERS = 25  # up to so many labels the weights are written into the cells


class TransitionDisplay(Display):
    """Heat map of the weights of transitions: the label on the left is the row, the next label the column.

    Weights above 0 and below 0 have different colours, and 0 is blank. Transitions that the model forbids are
    struck out.

    Parameters
    ----------
    weights : array-like of shape (n_labels, n_labels)
        The label on the left first.
    labels : sequence of length n_labels
        The labels.
    allowed : bool array of shape (n_labels, n_labels), default=None
        Transitions that may occur; None: all.
    of_edges : bool, default=False
        Whether they are edges of trees or graphs: rows are then labels that edges come from, columns those that they
        lead to.

    Attributes
    ----------
    ax_, figure_, im_, text_
        Axes, figure, cells and numbers (None where there are too many) of the last :meth:`plot`.

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

    def __init__(
        self, weights: ArrayLike, labels: Any, allowed: ArrayLike | None = None, *, of_edges: bool = False
    ) -> None:
        self.of_edges = of_edges
        self.weights = np.asarray(weights, dtype=np.float64)
        self.labels = label_list(labels)
        n = len(self.labels)
        self.allowed = np.ones((n, n), dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
        for name, array in (("weights", self.weights), ("allowed", self.allowed)):
            if array.shape != (n, n):
                raise ValueError(f"{name} must have shape ({n}, {n}), as there are {n} labels. Got {array.shape}.")

    @classmethod
    def from_estimator(cls, model: Any, *, edge_type: int = 0) -> Self:
        """Take the weights of a fitted model of sequences, trees or graphs.

        Parameters
        ----------
        model : fitted model, such as :class:`dualfield.CRF`
            A chain must be of order 1.
        edge_type : int, default=0
            Which table, where edges of trees or graphs have several types.

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
        structure, n = model.structure_, len(labels)
        order = getattr(structure, "order", 1)
        if order != 1:
            raise ValueError(
                f"A table of transitions needs a chain of order 1. Got order {order}; model.top_features() lists "
                "the weights of longer windows of labels."
            )
        if not structure.n_cliques or structure.n_cliques % n**2:
            raise ValueError(f"A table of transitions needs pairs of labels, which {structure!r} does not have.")
        n_types = structure.n_cliques // n**2
        if not 0 <= edge_type < n_types:
            raise ValueError(f"edge_type must be an int in [0, {n_types}), the types of edges. Got {edge_type!r}.")
        weights, allowed = (
            np.reshape(one, (n_types, n, n))[edge_type] for one in (model.transitions_, structure.clique_allowed)
        )
        return cls(weights, labels, allowed, of_edges=structure.has_edges and not hasattr(structure, "order"))

    def _summary(self) -> str:
        forbidden = int((~self.allowed).sum())
        return f"{len(self.labels)} labels, {forbidden} transitions forbidden"

    def _columns(self) -> Columns:
        weights = np.where(self.allowed, self.weights, -np.inf)
        return {"left": [str(label) for label in self.labels]} | dict(
            zip(map(str, self.labels), weights.T.tolist(), strict=True)
        )

    def plot(self, ax: Any = None, *, max_labels: int = 45, cmap: Any = None, numbers: bool | None = None) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.
        max_labels : int, default=45
            With more labels than this, those with the largest weights are shown.
        cmap : str or colour map, default=None
            With a light middle; None: shades of the first two colours of the style.
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
        with_numbers = n <= _WITH_NUMBERS if numbers is None else numbers
        texts = _texts(weights, allowed) if with_numbers else None
        width, height = cell_size(texts)
        self.ax_ = one_axes(ax, (width * n / 72.0, height * n / 72.0))
        self.figure_ = self.ax_.figure
        drawn = np.ma.masked_array(weights, mask=~allowed)
        legend = "weight" if allowed.all() else "weight; struck out: forbidden"
        self.im_, self.text_ = draw_cells(
            self.ax_,
            drawn,
            rows=labels,
            columns=labels,
            row_axis="label that an edge comes from" if self.of_edges else "label on the left",
            column_axis="label that it leads to" if self.of_edges else "next label",
            legend=legend,
            full=float(np.abs(weights[allowed]).max(initial=0.0)) or 1.0,
            signed=True,
            texts=texts,
            cmap=cmap,
        )
        rows, columns = np.nonzero(~allowed)
        strokes = np.array([[-0.4, 0.4, np.nan]])  # of one line, broken between the cells
        across, down = columns[:, None] + strokes, rows[:, None] - strokes
        self.ax_.plot(across.ravel(), down.ravel(), color="grey", linewidth=0.8, alpha=0.6)
        self.ax_.set_title(self._note(n))
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
        shown, weights, allowed, _ = self._shown(max_labels)
        n, names = len(shown), [str(self.labels[at]) for at in shown]
        return cells_html(
            self,
            (n, _texts(weights, allowed) if n <= _WITH_NUMBERS else None),
            [f"{names[a]} → {names[b]}: {weights[a, b]:+.4g}" for a, b in np.argwhere(allowed)],
            title="Weights of transitions from one label to the next",
            note=self._note(n),
            max_labels=max_labels,
        )

    def _note(self, n_shown: int) -> str:
        return shown_note(n_shown, len(self.labels), "labels, those with the largest weights")

    def _shown(self, max_labels: int) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.bool_], list[str]]:
        """Return which labels are shown, their weights, what is allowed, and their names."""
        size = np.where(self.allowed, np.abs(self.weights), 0.0)
        shown = most_of(np.maximum(size.max(axis=0, initial=0.0), size.max(axis=1, initial=0.0)), max_labels)
        both = np.ix_(shown, shown)
        return shown, self.weights[both], self.allowed[both], short_labels([self.labels[at] for at in shown])


def _texts(weights: NDArray[np.float64], allowed: NDArray[np.bool_]) -> list[list[str]]:
    """Write weights with one decimal; a weight of 0 is no weight, and one close to it has no sign."""
    known = np.where(allowed, weights, 0.0)
    return [[f"{weight:.1f}".replace("-0.0", "0.0") if weight else "" for weight in row] for row in known]
