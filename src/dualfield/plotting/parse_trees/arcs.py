"""One sentence with the arcs between its words: a dependency tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.tables import Columns
from dualfield.plotting.drawn import DrawnDisplay
from dualfield.plotting.labels import label_list, one_for_each
from dualfield.plotting.parse_trees.arc_picture import arc_sketch
from dualfield.plotting.parse_trees.parsed import parsed
from dualfield.plotting.parse_trees.tree_text import plain_arcs, rich_arcs
from dualfield.plotting.sketch import Sketch, check_direction

if TYPE_CHECKING:
    from rich.text import Text


class ArcDisplay(DrawnDisplay):
    """A dependency tree over a sentence, with the probability of each arc.

    Arcs lead from heads to their dependents, the thicker the more probable. Where the true tree is known, wrong arcs
    are red, and the true arcs of those words are drawn below the sentence, dashed. Short sentences have their arcs
    above them; long ones have a line for each word, with arcs to the left and labels to the right.

    ``print(display)`` shows it as text, and ``rich.print(display)`` in the colours of a terminal.

    Parameters
    ----------
    words : sequence of str
        The words.
    heads : sequence of int, or of (head, label)
        The predicted head of each word, counted from 1; 0 for the root. Arcs may cross.
    probabilities : array of shape (n_words,), default=None
        The probability of each arc with its label; None: the model has none.
    truth : sequence of int, or of (head, label), default=None
        The true heads. Labels are compared where both have them.
    labels : sequence of str, default=None
        Labels of the arcs, where `heads` has none.
    tags : sequence of str, default=None
        A tag for each word.
    direction : {"auto", "down", "right"}, default="auto"
        Where arcs lead: down to words side by side, right to words one below the other, or as the width of the
        sentence suggests.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last :meth:`plot`.

    See Also
    --------
    TreeDisplay : A constituent tree.

    Examples
    --------
    >>> from dualfield.plotting import ArcDisplay
    >>> heads = [(2, "det"), (3, "nsubj"), (0, "root")]
    >>> display = ArcDisplay(["the", "dog", "sleeps"], heads, [0.99, 0.8, 0.97], truth=[2, 1, 0])
    >>> print(display)
    1 the     ← 2 dog     det    0.990
    2 dog     ← 3 sleeps  nsubj  0.800  ✗ true: ← 1 the
    3 sleeps  ← 0 ROOT    root   0.970
    >>> display
    ArcDisplay(3 words, 1 wrong)
    """

    keeps_size = True

    def __init__(
        self,
        words: Any,
        heads: Any,
        probabilities: ArrayLike | None = None,
        truth: Any = None,
        *,
        labels: Any = None,
        tags: Any = None,
        direction: str = "auto",
    ) -> None:
        self.words = [str(word) for word in label_list(words)]
        n = len(self.words)
        self.arcs = _read_arcs("heads", heads, n)
        if labels is not None:
            named = one_for_each("labels", [str(label) for label in label_list(labels)], n)
            self.arcs = [(head, label) for (head, _), label in zip(self.arcs, named, strict=True)]
        self.truth = None if truth is None else _read_arcs("truth", truth, n)
        self.probabilities = (
            None
            if probabilities is None
            else one_for_each("probabilities", np.asarray(probabilities, dtype=np.float64).tolist(), n)
        )
        self.tags = None if tags is None else one_for_each("tags", [str(tag) for tag in label_list(tags)], n)
        self.direction = check_direction(direction)

    @property
    def wrong(self) -> list[bool]:
        """Whether each arc is not the true one; all False where that is not known."""
        if self.truth is None:
            return [False] * len(self.words)
        return [
            head != true or bool(label and name and label != name)
            for (head, label), (true, name) in zip(self.arcs, self.truth, strict=True)
        ]

    @classmethod
    def from_estimator(
        cls, model: Any, sentence: Any, truth: Any = None, *, words: Any = None, direction: str = "auto"
    ) -> Self:
        """Predict the heads of one sentence and the probabilities of its arcs.

        Parameters
        ----------
        model : fitted model of heads, such as :class:`dualfield.CRF` with ``structure="dependency"``
            Its best tree is shown, with the exact probabilities of its arcs and their labels, if the model has any.
        sentence : one sentence
            In the form in which the model takes the items of `X`.
        truth : heads, default=None
            The true heads, in any form that the model can be trained on.
        words : sequence of str, default=None
            What is written; None: the words of the sentence.
        direction : {"auto", "down", "right"}, default="auto"
            As for the constructor.

        Returns
        -------
        ArcDisplay
            The display.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.plotting import ArcDisplay
        >>> X = [[("She", "PRP"), ("reads", "VB")], [("Read", "VB"), ("it", "PRP")]]
        >>> ArcDisplay.from_estimator(CRF("dependency").fit(X, [[2, 0], [0, 1]]), X[0], [2, 0])
        ArcDisplay(2 words, 0 wrong)
        """
        found = parsed(model, [sentence], None if truth is None else [truth], None if words is None else [words])
        if not found.are_arcs:
            raise ValueError("ArcDisplay shows heads; the model predicts brackets. TreeDisplay shows them.")
        return cls(**found.shown(0), direction=direction)

    def _summary(self) -> str:
        return f"{len(self.words)} words" + f", {sum(self.wrong)} wrong" * (self.truth is not None)

    def _columns(self) -> Columns:
        columns: dict[str, Any] = {"word": self.words, "head": [head for head, _ in self.arcs]}
        columns |= {"label": [label for _, label in self.arcs]} if any(label for _, label in self.arcs) else {}
        columns |= {} if self.probabilities is None else {"probability": self.probabilities}
        if self.truth is None:
            return columns
        columns["true_head"] = [head for head, _ in self.truth]
        return columns | ({"true_label": [label for _, label in self.truth]} if any(b for _, b in self.truth) else {})

    def __str__(self) -> str:
        return plain_arcs(self)

    def __rich__(self) -> Text:
        return rich_arcs(self)

    def _sketch(self) -> Sketch:
        return arc_sketch(self, self.direction)

    def _title(self) -> str:
        return f"Dependency tree: {self._summary()}"


def _read_arcs(name: str, heads: Any, n: int) -> list[tuple[int, str]]:
    """Return head and label of each word; an empty label where there is none."""
    found = []
    for at, entry in enumerate(one_for_each(name, label_list(heads), n)):
        head, label = entry if isinstance(entry, (tuple, list)) and len(entry) == 2 else (entry, "")
        if isinstance(head, bool) or not isinstance(head, (int, np.integer)) or not 0 <= head <= n or head == at + 1:
            raise ValueError(
                f"{name}[{at}] must be a head from 0, the root, to {n}, not the word itself, or a pair (head, label). "
                f"Got {entry!r} instead."
            )
        found.append((int(head), "" if label is None else str(label)))
    return found
