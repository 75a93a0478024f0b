"""The shapes of examples: how many nodes they have, and, for structures that need it, how these are connected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.labels import Labels
from dualfield.data.partial_labels import PartialLabels, read_labels
from dualfield.data.states import allowed_states

__all__ = ["Shape", "rows_of_examples"]


@dataclass(frozen=True, eq=False)
class Shape:
    """The sizes of some examples. Structures whose examples differ in more than size derive from it.

    Parameters
    ----------
    offsets : int64 array of shape (n_examples + 1,)
        Example i has nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.

    Examples
    --------
    >>> from dualfield.data.shapes import Shape
    >>> Shape.of([0, 2, 3]).lengths
    array([2, 1])
    """

    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, offsets: ArrayLike) -> Shape:
        """Make the shape of examples that differ in size only.

        Parameters
        ----------
        offsets : array of shape (n_examples + 1,)
            Where each example starts, and the number of nodes.

        Returns
        -------
        Shape
            The shape.

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> Shape.of([0, 2, 3]).n_nodes
        3
        """
        return Shape(np.ascontiguousarray(offsets, dtype=np.int64))

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.offsets) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all examples together."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of nodes of each example."""
        return np.diff(self.offsets)

    @property
    def n_tokens(self) -> NDArray[np.int64]:
        """Number of tokens of each example: its nodes, unless a derived class knows better."""
        return self.lengths

    def take(self, examples: NDArray[np.int64]) -> Self:
        """Return the shape of some of the examples.

        Parameters
        ----------
        examples : int array of shape (m,)
            Which, in any order.

        Returns
        -------
        Shape
            Of the same class.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data.shapes import Shape
        >>> Shape.of([0, 2, 3]).take(np.array([1])).offsets
        array([0, 1])
        """
        offsets, rows = rows_of_examples(self.offsets, examples)
        return self._taken(offsets, rows)

    def flat_labels(self, y: Any, name: str = "y", *, partly: bool = False) -> Any:
        """Return labels as sequences, one for each example, if users arrange those of some examples otherwise.

        Parameters
        ----------
        y : list
            Labels as users pass them.
        name : str, default="y"
            What errors call them.
        partly : bool, default=False
            Whether None in the place of an example means that nothing is known of its labels.

        Returns
        -------
        list
            The same, unless a derived class knows better; a None for each node of which nothing is known.

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> Shape.of([0, 2, 3]).flat_labels([None, ["a"]], partly=True)
        [[None, None], ['a']]
        """
        if not partly or not isinstance(y, (list, tuple)) or len(y) != self.n_examples:
            return y
        return [[None] * n if one is None else one for one, n in zip(y, self.lengths.tolist(), strict=True)]

    def read_labels(self, y: Any, known: Labels | None = None, name: str = "y") -> PartialLabels:
        """Read labels as users pass them into codes, one for each node.

        Parameters
        ----------
        y : list
            For each example its labels, or what a derived class reads them from, such as a tree.
        known : Labels, default=None
            Labels of an earlier fit; None: those that occur.
        name : str, default="y"
            What errors call them.

        Returns
        -------
        PartialLabels
            Names, codes, and which labels each node may have where they are known only in part.

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> Shape.of([0, 2, 3]).read_labels([["b", "a"], ["b"]]).codes
        array([1, 0, 1], dtype=int32)
        """
        return read_labels(self.flat_labels(y, name), self.offsets, known, name=name)

    def read_training(self, y: Any, known: Labels | None = None, name: str = "y") -> PartialLabels:
        """Read labels to train or to calibrate on: derived classes may change what is no labelling, or leave it out.

        Parameters
        ----------
        y, known, name
            As in :meth:`read_labels`.

        Returns
        -------
        PartialLabels
            As of :meth:`read_labels`, and which examples are left out.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import ArcShape
        >>> shape, crossing = ArcShape(np.array([0, 16]), non_projective="skip"), [[3, 4, 0, 3]]
        >>> shape.read_training(crossing).left_out
        array([ True])
        """
        return self.read_labels(y, known, name)

    def read_known(self, known: Any, labels: Labels, name: str = "known") -> NDArray[np.bool_]:
        """Read what is known of labels before a prediction.

        Parameters
        ----------
        known : list
            For each example labels, None, sets of labels, or what a derived class reads.
        labels : Labels
            All labels.
        name : str, default="known"
            What errors call them.

        Returns
        -------
        bool array of shape (n_nodes, n_labels)
            Which labels each node may have.

        Examples
        --------
        >>> from dualfield.data import Labels
        >>> from dualfield.data.shapes import Shape
        >>> Shape.of([0, 2]).read_known([["b", None]], Labels.fit(["a", "b"]))
        array([[False,  True],
               [ True,  True]])
        """
        return allowed_states(self.flat_labels(known, name, partly=True), self.offsets, labels, name=name)

    def decode(self, labels: Labels, codes: NDArray[np.int32]) -> Any:
        """Return labellings as users pass them.

        Parameters
        ----------
        labels : Labels
            The names.
        codes : int32 array of shape (n_nodes,)
            A label for each node.

        Returns
        -------
        list
            One entry for each example; the way back from :meth:`read_labels`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Labels
        >>> from dualfield.data.shapes import Shape
        >>> Shape.of([0, 2, 3]).decode(Labels.fit(["a", "b"]), np.array([1, 0, 1]))
        [['b', 'a'], ['b']]
        """
        return self.arranged(labels.decode(codes, self.offsets))

    def arranged(self, rows: Any) -> Any:
        """Return what there is for each example, with an entry for each node, as users arrange the nodes.

        Parameters
        ----------
        rows : list of arrays or lists
            One for each example.

        Returns
        -------
        list
            The same, unless a derived class knows better.
        """
        return rows

    def node_texts(self) -> list[str] | None:
        """Return what is written at each node of all examples, for structures whose nodes are no tokens of a sequence.

        Returns
        -------
        list of str or None
            None: the word of a token, where it can be told.

        Examples
        --------
        >>> from dualfield.structures import SpanShape
        >>> SpanShape.of_words([2], [["New", "York"]]).node_texts()
        ['New', 'New York', 'York']
        """
        return None

    def place(self, node: int) -> str:
        """Return where users find a node: its example and its place there, as one writes them behind a name.

        Parameters
        ----------
        node : int
            Counted over all examples.

        Returns
        -------
        str
            Such as "[3][0]".

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> "y" + Shape.of([0, 2, 3]).place(1)
        'y[0][1]'
        """
        example = int(np.searchsorted(self.offsets, node, side="right")) - 1
        return f"[{example}][{node - int(self.offsets[example])}]"

    def _taken(self, offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> Self:
        """Return the shape of examples with these nodes of the old ones; for derived classes."""
        return type(self)(offsets)


def rows_of_examples(offsets: NDArray[np.int64], examples: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the rows of some examples go when they are put one after another, and which rows these are.

    Parameters
    ----------
    offsets : int64 array of shape (n_examples + 1,)
        Where each example starts.
    examples : int array of shape (m,)
        Which examples.

    Returns
    -------
    offsets : int64 array of shape (m + 1,)
        Where each of them starts then.
    rows : int64 array
        Their rows, one after another.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data.shapes import rows_of_examples
    >>> rows_of_examples(np.array([0, 2, 3, 6]), np.array([2, 0]))
    (array([0, 3, 5]), array([3, 4, 5, 0, 1]))
    """
    lengths = np.diff(offsets)[examples]
    cuts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    return cuts, np.repeat(offsets[:-1][examples] - cuts[:-1], lengths) + np.arange(cuts[-1])
