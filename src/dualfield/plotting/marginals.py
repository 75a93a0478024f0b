"""One sentence with the probabilities of its labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.span_labels import found_spans
from dualfield.data.tables import Columns
from dualfield.data.token_texts import token_texts
from dualfield.metrics.sequences import labels_for
from dualfield.plotting.canvas import one_axes
from dualfield.plotting.display import Display
from dualfield.plotting.labels import label_list, one_for_each
from dualfield.plotting.markup import Html, shortened
from dualfield.plotting.sentence import Piece, hues, mark_spans, span_pieces, token_pieces
from dualfield.plotting.sentence_drawing import draw_sentence, svg_sentence
from dualfield.plotting.sentence_layout import laid_out
from dualfield.plotting.sentence_text import html_sentence, plain_sentence, rich_sentence

if TYPE_CHECKING:
    from rich.text import Text

_FIGURE = 1000.0  # pixels of a line in a figure
_INCHES = 0.65 / 72.0  # of a pixel
_STRETCH = 1.15  # matplotlib's letters are wider than those of browsers


class MarginalsDisplay(Display):
    """A sentence with its predicted labels and their probabilities.

    Where labels mark spans (``B-x``, ``I-x``, ``O``, ...), each span is one box with its type and the probability of
    exactly this span, and tokens outside are plain text; those whose ``O`` is less probable than 0.9 are underlined.
    Other labels get a box for each token. Every type, or label, has its hue; the stronger the colour, the more
    probable. Where the truth is known, errors are framed, and say what is true.

    ``print(display)`` shows it as text, and ``rich.print(display)`` in the colours of a terminal.

    Parameters
    ----------
    tokens : sequence of length T
        What is written at each node.
    labels : sequence of length T
        The predicted labels.
    probabilities : array-like of shape (T,), default=None
        The probability of each of them; None: the model has none.
    truth : sequence of length T, default=None
        The true labels.
    spans : sequence of (type, start, stop, probability), default=None
        The spans that the labels mark, as ``predict_spans`` returns them; None: their probabilities are not known,
        and the least probable label of a span sets the strength of its colour.
    classes : sequence, default=None
        All labels of the model, so that a type has the same hue in all of its sentences; None: those that occur.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last :meth:`plot`.

    Examples
    --------
    >>> from dualfield.plotting import MarginalsDisplay
    >>> words, labels = ["Anna", "Berg", "sings", "in", "Rome"], ["B-PER", "I-PER", "O", "O", "B-LOC"]
    >>> spans = [("PER", 0, 2, 0.97), ("LOC", 4, 5, 0.62)]
    >>> truth = ["B-PER", "I-PER", "O", "O", "B-ORG"]
    >>> display = MarginalsDisplay(words, labels, [0.98, 0.98, 1.0, 1.0, 0.62], truth, spans=spans)
    >>> print(display)
    [Anna Berg PER 0.970] sings in [Rome LOC 0.620 ✗ true: ORG]
    >>> display.wrong
    [False, False, False, False, True]
    """

    def __init__(
        self,
        tokens: Any,
        labels: Any,
        probabilities: ArrayLike | None = None,
        truth: Any = None,
        *,
        spans: Any = None,
        classes: Any = None,
    ) -> None:
        self.tokens = [str(token) for token in label_list(tokens)]
        self.labels = label_list(labels)
        self.probabilities = None if probabilities is None else np.asarray(probabilities, dtype=np.float64)
        self.truth = None if truth is None else label_list(truth)
        for name, values in (("labels", self.labels), ("probabilities", self.probabilities), ("truth", self.truth)):
            if values is not None:
                one_for_each(name, values, len(self.tokens), "token")
        self.classes = [*self.labels, *(self.truth or [])] if classes is None else label_list(classes)
        self.marks_spans = mark_spans([*self.classes, *self.labels, *(self.truth or [])])
        self.spans = None if spans is None else [tuple(span) for span in spans]
        if self.spans is not None:
            marked = found_spans(self.labels, "labels")
            if [span[:3] for span in self.spans] != marked:
                raise ValueError(f"spans must be those that the labels mark, {marked}. Got {self.spans} instead.")

    @property
    def wrong(self) -> list[bool]:
        """Whether each label is not the true one; all False where the truth is not known."""
        if self.truth is None:
            return [False] * len(self.tokens)
        return [guess != true for guess, true in zip(self.labels, self.truth, strict=True)]

    @classmethod
    def from_predictions(
        cls,
        tokens: Any,
        marginals: ArrayLike,
        classes: Any,
        *,
        labels: Any = None,
        truth: Any = None,
        spans: Any = None,
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
        spans : sequence of (type, start, stop, probability), default=None
            The spans of the labels with their probabilities.

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
        code = {name: at for at, name in enumerate(names)}
        predicted = [names[at] for at in rows.argmax(axis=1)] if labels is None else label_list(labels)
        chances = [row[code[label]] for row, label in zip(rows, predicted, strict=True)]
        return cls(tokens, predicted, chances, truth, spans=spans, classes=names)

    @classmethod
    def from_estimator(cls, model: Any, xseq: Any, yseq: Any = None, *, tokens: Any = None) -> Self:
        """Predict the labels of one sequence and their probabilities.

        Parameters
        ----------
        model : fitted model of sequences, such as :class:`dualfield.CRF`
            Its best labelling is shown, with the exact probabilities of its spans or labels, if the model has any.
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
        (labels,) = model.predict([xseq])
        if isinstance(labels, np.ndarray) and labels.ndim == 2:
            raise ValueError("MarginalsDisplay shows sequences; xseq is an image. GraphDisplay shows images.")
        shown = token_texts(xseq, len(labels)) if tokens is None else tokens
        if yseq is not None:
            (yseq,) = labels_for(model, [yseq], [labels])
        if not hasattr(model, "predict_proba"):
            return cls(shown, labels, None, yseq, classes=model.classes_)
        (marginals,) = model.predict_proba([xseq])
        (spans,) = span_probabilities(model, [xseq]) or [None]
        return cls.from_predictions(shown, marginals, model.classes_, labels=labels, truth=yseq, spans=spans)

    def _summary(self) -> str:
        return repr(shortened(self, 120))

    def _columns(self) -> Columns:
        columns: dict[str, Any] = {"token": self.tokens, "label": self.labels}
        if self.probabilities is not None:
            columns["probability"] = self.probabilities.tolist()
        return columns if self.truth is None else columns | {"truth": self.truth}

    def __str__(self) -> str:
        return plain_sentence(self._pieces(), is_stacked=not self.marks_spans)

    def __rich__(self) -> Text:
        return rich_sentence(self._pieces())

    def plot(self, ax: Any = None) -> Self:
        """Draw with matplotlib, in lines of boxes.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

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
        ['the', 'DT', '0.980', 'run', 'NN', '0.550']
        >>> plt.close(display.figure_)
        """
        boxes, height = laid_out(self._pieces(), _FIGURE, is_stacked=not self.marks_spans, stretch=_STRETCH)
        self.ax_ = one_axes(ax, (_FIGURE * _INCHES, height * _INCHES), margins=(0.1, 0.2))
        self.figure_ = self.ax_.figure
        self.ax_.set(xlim=(-3.0, _FIGURE + 3.0), ylim=(height + 3.0, -3.0))
        self.ax_.set_axis_off()
        draw_sentence(self.ax_, boxes)
        return self

    def html(self) -> Html:
        """Lay out as text that fills the width of a page of :mod:`dualfield.report`.

        Returns
        -------
        Html
            The sentence.

        Examples
        --------
        >>> from dualfield.plotting import MarginalsDisplay
        >>> display = MarginalsDisplay(["the", "run"], ["DT", "NN"], [0.98, 0.55], truth=["DT", "VB"])
        >>> display.html().count('class="token wrong"')
        1
        """
        return html_sentence(self._pieces(), is_stacked=not self.marks_spans)

    def svg(self, *, width: float = 760.0) -> str:
        """Draw as an SVG file of its own, with text as text, in light colours or dark ones as the screen has them.

        Parameters
        ----------
        width : float, default=760.0
            Pixels of a line.

        Returns
        -------
        str
            The content of an ``.svg`` file.

        Examples
        --------
        >>> from dualfield.plotting import MarginalsDisplay
        >>> display = MarginalsDisplay(["in", "Rome"], ["O", "B-LOC"], spans=[("LOC", 1, 2, 0.9)])
        >>> display.svg().startswith('<svg xmlns="http://www.w3.org/2000/svg"')
        True
        """
        return svg_sentence(self._pieces(), width, is_stacked=not self.marks_spans, title=str(self))

    def _pieces(self) -> Sequence[Piece]:
        of = hues(self.classes)
        chances = None if self.probabilities is None else self.probabilities.tolist()
        if not self.marks_spans:
            return token_pieces(self.tokens, self.labels, chances, self.truth, of)
        truth = None if self.truth is None else found_spans(self.truth, "truth")
        predicted = found_spans(self.labels, "labels") if self.spans is None else self.spans
        return span_pieces(self.tokens, predicted, chances, truth, of)


def span_probabilities(model: Any, X: Any) -> Any:
    """Return the spans of sequences with their probabilities, or None where labels or structure have no spans."""
    if not hasattr(model, "predict_spans") or not hasattr(model, "predict_proba"):
        return None
    is_chain = hasattr(model.structure_, "order")
    return model.predict_spans(X) if is_chain and mark_spans(label_list(model.classes_)) else None
