"""One sentence with the probabilities of its labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.token_texts import token_texts
from dualfield.plotting.canvas import one_axes
from dualfield.plotting.labels import label_list
from dualfield.plotting.markup import Html, escape, shortened

_UNDER_TEXT = 0.45  # the strongest shade on which ink keeps a contrast of 4.5:1, in both colour schemes
_LINE = 88  # characters of a line in a picture


class MarginalsDisplay:
    """A sentence, its predicted labels, and their probabilities as shading: the stronger the colour, the surer.

    Parameters
    ----------
    tokens : sequence of length T
        What is written at each node.
    labels : sequence of length T
        The predicted labels.
    probabilities : array-like of shape (T,)
        The probability of each of them.
    truth : sequence of length T, default=None
        The true labels; tokens whose label is another one are marked.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last :meth:`plot`.

    Examples
    --------
    >>> from dualfield.plotting import MarginalsDisplay
    >>> display = MarginalsDisplay(["the", "run"], ["DT", "NN"], [0.98, 0.55], truth=["DT", "VB"])
    >>> display.wrong
    [False, True]
    """

    def __init__(self, tokens: Any, labels: Any, probabilities: ArrayLike, truth: Any = None) -> None:
        self.tokens = [str(token) for token in label_list(tokens)]
        self.labels = label_list(labels)
        self.probabilities = np.asarray(probabilities, dtype=np.float64)
        self.truth = None if truth is None else label_list(truth)
        for name, values in (("labels", self.labels), ("probabilities", self.probabilities), ("truth", self.truth)):
            if values is not None and len(values) != len(self.tokens):
                raise ValueError(f"{name} has {len(values)} entries; expected {len(self.tokens)}, one for each token.")

    @property
    def wrong(self) -> list[bool]:
        """Whether each label is not the true one; all False where the truth is not known."""
        if self.truth is None:
            return [False] * len(self.tokens)
        return [guess != true for guess, true in zip(self.labels, self.truth, strict=True)]

    @classmethod
    def from_predictions(
        cls, tokens: Any, marginals: ArrayLike, classes: Any, *, labels: Any = None, truth: Any = None
    ) -> Self:
        """Look up the probabilities of labels in a table of marginals.

        Parameters
        ----------
        tokens : sequence of length T
            What is written at each node.
        marginals : array-like of shape (T, n_classes)
            The probability of each label at each node.
        classes : sequence of length n_classes
            The labels of the columns.
        labels : sequence of length T, default=None
            The predicted labels; None: the most probable label of each node.
        truth : sequence of length T, default=None
            The true labels.

        Returns
        -------
        MarginalsDisplay
            The display.

        Examples
        --------
        >>> from dualfield.plotting import MarginalsDisplay
        >>> MarginalsDisplay.from_predictions(["run"], [[0.25, 0.75]], ["NN", "VB"]).labels
        ['VB']
        """
        names = label_list(classes)
        rows = np.reshape(np.asarray(marginals, dtype=np.float64), (-1, len(names)))
        if labels is None:
            return cls(tokens, [names[at] for at in rows.argmax(axis=1)], rows.max(axis=1), truth)
        code = {name: at for at, name in enumerate(names)}
        predicted = label_list(labels)
        chances = [row[code[label]] for row, label in zip(rows, predicted, strict=True)]
        return cls(tokens, predicted, chances, truth)

    @classmethod
    def from_estimator(cls, model: Any, xseq: Any, yseq: Any = None, *, tokens: Any = None) -> Self:
        """Predict the labels of one sequence and their probabilities.

        Parameters
        ----------
        model : fitted model of sequences, such as :class:`dualfield.CRF`
            Its best labelling is shown, with the exact marginals of its labels.
        xseq : one sequence
            In the form in which the model takes the items of `X`.
        yseq : sequence of labels, default=None
            The true labels.
        tokens : sequence, default=None
            What is written at each node; None: its word, where one of its attributes is called so, or its number.

        Returns
        -------
        MarginalsDisplay
            The display.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.plotting import MarginalsDisplay
        >>> model = CRF().fit([[["the"], ["dog"]]], [["DT", "NN"]])
        >>> MarginalsDisplay.from_estimator(model, [["dog"], ["the"]]).tokens
        ['dog', 'the']
        """
        (labels,), (marginals,) = model.predict([xseq]), model.predict_proba([xseq])
        shown = token_texts(xseq, len(labels)) if tokens is None else tokens
        return cls.from_predictions(shown, marginals, model.classes_, labels=labels, truth=yseq)

    def plot(self, ax: Any = None, *, cmap: str = "Blues") -> Self:
        """Draw with matplotlib: boxes in lines, label and probability below each token.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.
        cmap : str, default="Blues"
            A colour map from light to dark.

        Returns
        -------
        MarginalsDisplay
            Itself.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.plotting import MarginalsDisplay
        >>> display = MarginalsDisplay(["the", "run"], ["DT", "NN"], [0.98, 0.55]).plot()
        >>> [text.get_text() for text in display.ax_.texts]
        ['the', 'DT 0.98', 'run', 'NN 0.55']
        >>> plt.close(display.figure_)
        """
        words = [shortened(token, _LINE // 2) for token in self.tokens]
        below = [
            f"{label} {chance:.2f}" + (f" not {true}" if wrong else "")
            for label, chance, wrong, true in zip(
                self.labels, self.probabilities, self.wrong, self.truth or self.labels, strict=True
            )
        ]
        widths = [max(len(word), len(note)) + 1 for word, note in zip(words, below, strict=True)]
        places = _wrapped(widths)
        n_lines = 1 + max((line for line, _ in places), default=0)
        self.ax_ = one_axes(ax, (10.0, 0.6 * n_lines), margins=(0.0, 0.3))
        from matplotlib import colormaps
        from matplotlib.patches import Rectangle

        self.figure_ = self.ax_.figure
        self.ax_.set(xlim=(0, _LINE), ylim=(n_lines, 0))
        self.ax_.set_axis_off()
        font = {"ha": "center", "va": "center", "family": "monospace", "parse_math": False}
        rows = zip(words, below, widths, places, self.probabilities, self.wrong, strict=True)
        for word, note, width, (line, start), chance, wrong in rows:
            face, edge = colormaps[cmap](0.55 * chance), "red" if wrong else "lightgrey"
            box = Rectangle((start, line + 0.05), width - 0.3, 0.9, facecolor=face, edgecolor=edge, linewidth=1.2)
            self.ax_.add_patch(box)
            middle = start + (width - 0.3) / 2
            self.ax_.text(middle, line + 0.33, word, fontsize=9, **font)
            self.ax_.text(middle, line + 0.72, note, fontsize=7, **font)
        return self

    def html(self) -> Html:
        """Lay out as boxes that fill the width of a page of :mod:`dualfield.report`.

        Returns
        -------
        Html
            The sentence; a wrong label is struck out, with the true one below it.

        Examples
        --------
        >>> from dualfield.plotting import MarginalsDisplay
        >>> display = MarginalsDisplay(["the", "run"], ["DT", "NN"], [0.98, 0.55], truth=["DT", "VB"])
        >>> display.html().count('class="token wrong"')
        1
        """
        boxes = [
            f'<span class="token{" wrong" if wrong else ""}"><span class="shade" style="opacity:'
            f'{_UNDER_TEXT * min(max(chance, 0.0), 1.0):.3f}"></span><b>{escape(token) or "&nbsp;"}</b>'
            f'<span class="label">{escape(label)}</span><span class="chance">{_rounded(chance)}</span>'
            + (f'<span class="truth">true: {escape(true)}</span>' if wrong else "")
            + "</span>"
            for token, label, chance, wrong, true in zip(
                self.tokens, self.labels, self.probabilities, self.wrong, self.truth or self.labels, strict=True
            )
        ]
        return Html(f'<div class="sentence">{"".join(boxes)}</div>')


def _rounded(chance: float) -> str:
    """Write a probability with three decimals, without claiming certainty by rounding."""
    if 0.0 < chance < 0.0005:
        return "&lt;0.001"
    return "&gt;0.999" if 0.9995 <= chance < 1.0 else f"{chance:.3f}"


def _wrapped(widths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the line and the first character of each box, in lines of `_LINE` characters."""
    places, line, used = [], 0, 0
    for width in widths:
        if used and used + width > _LINE:
            line, used = line + 1, 0
        places.append((line, used))
        used += width
    return places
