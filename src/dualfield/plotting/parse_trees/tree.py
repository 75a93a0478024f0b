"""One sentence with its brackets: a constituent tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.tables import Columns
from dualfield.plotting.drawn import DrawnDisplay
from dualfield.plotting.labels import label_list, one_for_each
from dualfield.plotting.parse_trees.bracketing import nested, read_brackets
from dualfield.plotting.parse_trees.parsed import parsed
from dualfield.plotting.parse_trees.tree_picture import tree_sketch
from dualfield.plotting.parse_trees.tree_text import plain_tree, rich_tree
from dualfield.plotting.sketch import Sketch, check_direction

if TYPE_CHECKING:
    from rich.text import Text


class TreeDisplay(DrawnDisplay):
    """A constituent tree over a sentence, with the probability of each bracket.

    Every label has its colour, the stronger the more probable the bracket. Where the true tree is known, brackets that
    are not in it have a red border and say which label is true, and those that were missed are drawn below the words,
    dashed. Short sentences have their tree above them; long ones have a line for each word, and the tree to the left.

    ``print(display)`` shows it as text, and ``rich.print(display)`` in the colours of a terminal.

    Parameters
    ----------
    words : sequence of str
        The words.
    brackets : sequence of (label, start, stop), or of (label, start, stop, probability), or ParseTree
        The predicted tree: `stop` is behind the last word. Brackets are nested, of the same words the outer one first.
    probabilities : array of shape (n_brackets,), default=None
        The probability of each bracket; None: those that come with the brackets, if any.
    truth : sequence of (label, start, stop), or ParseTree, default=None
        The true tree.
    tags : sequence of str, default=None
        A tag for each word.
    classes : sequence of str, default=None
        All labels of the model, so that a label has the same colour in all of its trees; None: those that occur.
    direction : {"auto", "down", "right"}, default="auto"
        Where the tree leads: down to words side by side, right to words one below the other, or as the width of the
        sentence suggests.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last :meth:`plot`.

    See Also
    --------
    ArcDisplay : A dependency tree.
    GraphDisplay : A tree or graph whose nodes have labels.

    Examples
    --------
    >>> from dualfield.plotting import TreeDisplay
    >>> brackets = [("S", 0, 3, 0.99), ("NP", 0, 2, 0.9), ("VP", 2, 3, 0.7)]
    >>> display = TreeDisplay(["the", "dog", "sleeps"], brackets, truth=[("S", 0, 3), ("NP", 0, 2), ("X", 2, 3)])
    >>> print(display)
    S 0.990
    ├─ NP 0.900  the dog
    └─ VP 0.700 ✗ true: X  sleeps
    >>> display
    TreeDisplay(3 words, 3 brackets, 1 wrong, 0 missed)
    """

    keeps_size = True

    def __init__(
        self,
        words: Any,
        brackets: Any,
        probabilities: ArrayLike | None = None,
        truth: Any = None,
        *,
        tags: Any = None,
        classes: Any = None,
        direction: str = "auto",
    ) -> None:
        self.words = [str(word) for word in label_list(words)]
        n = len(self.words)
        self.brackets, given = read_brackets("brackets", brackets, n)
        chances = given if probabilities is None else np.asarray(probabilities, dtype=np.float64).tolist()
        if chances is not None and len(chances) != len(self.brackets):
            raise ValueError(f"probabilities has {len(chances)} entries; expected {len(self.brackets)}.")
        self.probabilities = chances
        self.truth = None if truth is None else read_brackets("truth", truth, n)[0]
        self.tags = None if tags is None else one_for_each("tags", [str(tag) for tag in label_list(tags)], n)
        self.direction = check_direction(direction)
        self.tops, self.missed = nested("brackets", self.brackets, chances, self.truth, n)
        seen = [label for label, _, _ in [*self.brackets, *(self.truth or [])]]
        self.labels = list(dict.fromkeys([*([] if classes is None else map(str, label_list(classes))), *seen]))

    @property
    def wrong(self) -> list[bool]:
        """Whether each bracket is not in the true tree; all False where that is not known."""
        rest = list(self.truth or [])
        found = []
        for bracket in self.brackets:
            found.append(self.truth is not None and bracket not in rest)
            rest = rest if bracket not in rest else [one for k, one in enumerate(rest) if k != rest.index(bracket)]
        return found

    @classmethod
    def from_estimator(
        cls, model: Any, sentence: Any, truth: Any = None, *, words: Any = None, direction: str = "auto"
    ) -> Self:
        """Predict the tree of one sentence and the probabilities of its brackets.

        Parameters
        ----------
        model : fitted model of brackets, such as :class:`dualfield.CRF` with ``structure="spans"``
            Its best tree is shown, with the exact probabilities of its brackets, if the model has any.
        sentence : one sentence
            In the form in which the model takes the items of `X`.
        truth : tree, default=None
            The true tree, in any form that the model can be trained on.
        words : sequence of str, default=None
            What is written; None: the words of the sentence.
        direction : {"auto", "down", "right"}, default="auto"
            As for the constructor.

        Returns
        -------
        TreeDisplay
            The display.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.plotting import TreeDisplay
        >>> X = [[("dogs", "NNS"), ("bark", "VBP")], [("a", "DT"), ("dog", "NN"), ("barks", "VBZ")]]
        >>> y = ["(S (NP (NNS dogs)) (VP (VBP bark)))", "(S (NP (DT a) (NN dog)) (VP (VBZ barks)))"]
        >>> TreeDisplay.from_estimator(CRF("spans", C=10.0).fit(X, y), X[1], y[1])
        TreeDisplay(3 words, 3 brackets, 0 wrong, 0 missed)
        """
        found = parsed(model, [sentence], None if truth is None else [truth], None if words is None else [words])
        if found.are_arcs:
            raise ValueError("TreeDisplay shows brackets; the model predicts heads. ArcDisplay shows them.")
        classes = [label for label in label_list(model.classes_) if label]
        return cls(**found.shown(0), classes=classes, direction=direction)

    def _summary(self) -> str:
        known = f", {sum(self.wrong)} wrong, {len(self.missed)} missed" if self.truth is not None else ""
        return f"{len(self.words)} words, {len(self.brackets)} brackets{known}"

    def _columns(self) -> Columns:
        columns: dict[str, Any] = {
            "label": [label for label, _, _ in self.brackets],
            "start": [start for _, start, _ in self.brackets],
            "stop": [stop for _, _, stop in self.brackets],
            "text": [" ".join(self.words[start:stop]) for _, start, stop in self.brackets],
        }
        columns |= {} if self.probabilities is None else {"probability": self.probabilities}
        return columns | ({} if self.truth is None else {"wrong": self.wrong})

    def __str__(self) -> str:
        return plain_tree(self)

    def __rich__(self) -> Text:
        return rich_tree(self)

    def _sketch(self) -> Sketch:
        return tree_sketch(self, self.direction)

    def _title(self) -> str:
        return f"Constituent tree: {self._summary()}"
