"""Confusion matrices of labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.tables import Columns
from dualfield.metrics.sequences import labels_for
from dualfield.plotting.canvas import one_axes
from dualfield.plotting.display import Display
from dualfield.plotting.heat_map import cell_size, cells_html, draw_cells
from dualfield.plotting.labels import flat_pair, in_order, label_list, most_of, short_labels, shown_note
from dualfield.plotting.markup import Html


class ConfusionDisplay(Display):
    """Confusion matrix: the true label is the row, the predicted label the column.

    Cells are shaded by their share of the row and hold the number of tokens.

    Parameters
    ----------
    counts : array-like of int of shape (n_labels, n_labels)
        How often each label was predicted for each true label.
    labels : sequence of length n_labels
        The labels.

    Attributes
    ----------
    shares : ndarray of shape (n_labels, n_labels)
        Each row divided by its sum; 0 where that is 0.
    ax_, figure_, im_, text_
        Axes, figure, cells and numbers of the last :meth:`plot`.

    Examples
    --------
    >>> from dualfield.plotting import ConfusionDisplay
    >>> display = ConfusionDisplay.from_predictions([["B", "I", "O"], ["O"]], [["B", "O", "O"], ["O"]])
    >>> display.labels
    ['B', 'I', 'O']
    >>> display.counts
    array([[1, 0, 0],
           [0, 0, 1],
           [0, 0, 2]])
    """

    def __init__(self, counts: ArrayLike, labels: Any) -> None:
        self.counts = np.asarray(counts, dtype=np.int64)
        self.labels = label_list(labels)
        n = len(self.labels)
        if self.counts.shape != (n, n):
            raise ValueError(f"counts must have shape ({n}, {n}), as there are {n} labels. Got {self.counts.shape}.")
        self.shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, labels: Any = None) -> Self:
        """Count pairs of true and predicted labels.

        Parameters
        ----------
        y_true, y_pred : list of label sequences, or labels
            The true and the predicted labels.
        labels : sequence, default=None
            The labels in the order wanted. Those that occur but are not among them follow. None: all that occur,
            sorted.

        Returns
        -------
        ConfusionDisplay
            The display.

        Examples
        --------
        >>> from dualfield.plotting import ConfusionDisplay
        >>> ConfusionDisplay.from_predictions([3, 1, 3], [3, 3, 3], labels=[1, 2]).labels
        [1, 2, 3]
        """
        true, pred = flat_pair(y_true, y_pred)
        wanted = [] if labels is None else label_list(labels)
        names = wanted + in_order(set(true + pred).difference(wanted))
        code = {name: at for at, name in enumerate(names)}
        counts = np.zeros((len(names), len(names)), dtype=np.int64)
        np.add.at(counts, ([code[one] for one in true], [code[one] for one in pred]), 1)
        return cls(counts, names)

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any) -> Self:
        """Predict labels, and count.

        Parameters
        ----------
        model : fitted model
            Its ``predict`` is called.
        X : sequences, or array of shape (n, n_features)
            Data that the model has not seen in training.
        y : list of label sequences, or labels
            The true labels.

        Returns
        -------
        ConfusionDisplay
            The display, with the labels of the model first.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.plotting import ConfusionDisplay
        >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> ConfusionDisplay.from_estimator(model, [[["a"], ["b"]]], [["x", "z"]]).labels
        ['x', 'y', 'z']
        """
        predicted = model.predict(X)
        return cls.from_predictions(labels_for(model, y, predicted), predicted, labels=model.classes_)

    def _summary(self) -> str:
        total = int(self.counts.sum())
        right = 100.0 * float(np.trace(self.counts)) / max(total, 1)
        return f"{len(self.labels)} labels, {total:,} predictions, {right:.2f} % right"

    def _columns(self) -> Columns:
        columns = dict(zip(map(str, self.labels), self.counts.T.tolist(), strict=True))
        return {"true": [str(label) for label in self.labels]} | columns

    def plot(self, ax: Any = None, *, max_labels: int = 25, cmap: Any = None) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.
        max_labels : int, default=25
            With more labels than this, those that are confused most often are shown.
        cmap : str or colour map, default=None
            From light to dark; None: shades of the first colour of the style.

        Returns
        -------
        ConfusionDisplay
            Itself.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.plotting import ConfusionDisplay
        >>> display = ConfusionDisplay([[8, 2], [1, 9]], ["a", "b"]).plot()
        >>> display.text_[0, 1].get_text()
        '2'
        >>> plt.close(display.figure_)
        """
        shown, counts, shares, labels = self._shown(max_labels)
        texts = _texts(counts)
        width, height = cell_size(texts)
        self.ax_ = one_axes(ax, (width * len(shown) / 72.0, height * len(shown) / 72.0))
        self.figure_ = self.ax_.figure
        self.im_, self.text_ = draw_cells(
            self.ax_,
            shares,
            rows=labels,
            columns=labels,
            row_axis="true label",
            column_axis="predicted label",
            legend="share of the true label",
            texts=texts,
            cmap=cmap,
        )
        self.ax_.set_title(self._note(len(shown)))
        return self

    def html(self, *, max_labels: int = 25) -> Html:
        """Draw as SVG for a page of :mod:`dualfield.report`.

        Parameters
        ----------
        max_labels : int, default=25
            With more labels than this, those that are confused most often are shown.

        Returns
        -------
        Html
            The picture.

        Examples
        --------
        >>> from dualfield.plotting import ConfusionDisplay
        >>> "<title>true a, predicted b: 2 of 10</title>" in ConfusionDisplay([[8, 2], [1, 9]], ["a", "b"]).html()
        True
        """
        shown, counts, _, _ = self._shown(max_labels)
        names, totals = [str(self.labels[at]) for at in shown], self.counts.sum(axis=1)[shown]
        tips = [
            f"true {true}, predicted {guess}: {count} of {total}"
            for true, row, total in zip(names, counts, totals, strict=True)
            for guess, count in zip(names, row, strict=True)
        ]
        note = self._note(len(shown))
        return cells_html(
            self,
            (len(shown), _texts(counts)),
            tips,
            title="How often each label was predicted for each true label",
            note=f"{note}. Shares are of all tokens of the true label" if note else "",
            max_labels=max_labels,
        )

    def _note(self, n_shown: int) -> str:
        return shown_note(n_shown, len(self.labels), "labels, those confused most often")

    def _shown(self, max_labels: int) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.float64], list[str]]:
        """Return which labels are shown, their counts and shares, and their names."""
        wrong = self.counts - np.diag(np.diag(self.counts))
        shown = most_of(wrong.sum(axis=0) + wrong.sum(axis=1), max_labels)
        both = np.ix_(shown, shown)
        return shown, self.counts[both], self.shares[both], short_labels([self.labels[at] for at in shown])


def _texts(counts: NDArray[np.int64]) -> list[list[str]]:
    return [[f"{count}" if count else "" for count in row] for row in counts]
