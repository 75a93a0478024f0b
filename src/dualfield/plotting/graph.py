"""One labelled tree, graph or image."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.labels import in_a_row
from dualfield.data.tables import Columns
from dualfield.data.token_texts import token_texts
from dualfield.plotting.drawn import DrawnDisplay
from dualfield.plotting.graph_picture import graph_sketch
from dualfield.plotting.labels import label_list, one_for_each
from dualfield.plotting.sketch import Sketch
from dualfield.structures import GraphShape, TreeShape
from dualfield.structures.relaxed import relaxed_examples


class GraphDisplay(DrawnDisplay):
    """A graph with the labels of its nodes, and of an image the picture of its labels.

    Every label has its colour. Nodes are as large as their label is probable, wrong ones have a red ring and say what
    is true, and arrows show the direction of edges; other types of edges are dashed. Trees are drawn in layers, other
    graphs so that neighbours are close. Pixels of an image are the stronger the more probable, wrong ones are crossed
    out, and the true labels are shown beside them.

    Parameters
    ----------
    labels : sequence of length n_nodes, or array of shape (height, width)
        The predicted labels.
    edges : int array of shape (n_edges, 2), default=()
        The node that each edge comes from, and the one that it leads to. Those of an image are not drawn.
    probabilities : array of shape (n_nodes,), default=None
        The probability of each predicted label; None: the model has none, or only bounds of them.
    truth : sequence of length n_nodes, or array of shape (height, width), default=None
        The true labels.
    types : int array of shape (n_edges,), default=None
        Types of edges.
    positions : array of shape (n_nodes, 2), default=None
        Where nodes are drawn, y downwards; None: laid out.
    names : sequence of length n_nodes, default=None
        What is written at each node.
    classes : sequence, default=None
        All labels of the model, so that a label has the same colour in all of its graphs; None: those that occur.
    note : str, default=""
        What is written below the picture.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last :meth:`plot`.

    See Also
    --------
    MarginalsDisplay : A sentence with its labels.

    Examples
    --------
    >>> from dualfield.plotting import GraphDisplay
    >>> edges = [(0, 1), (1, 2), (2, 0)]
    >>> display = GraphDisplay(["x", "y", "y"], edges, [0.9, 0.6, 0.8], truth=["x", "y", "x"])
    >>> display.wrong
    [False, False, True]
    >>> display
    GraphDisplay(3 nodes, 3 edges, 1 wrong)
    """

    def __init__(
        self,
        labels: Any,
        edges: ArrayLike = (),
        probabilities: ArrayLike | None = None,
        truth: Any = None,
        *,
        types: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        names: Any = None,
        classes: Any = None,
        note: str = "",
    ) -> None:
        self.grid = np.shape(labels) if isinstance(labels, np.ndarray) and labels.ndim == 2 else None
        self.labels = _in_a_row(labels)
        self.truth = None if truth is None else _in_a_row(truth)
        self.probabilities = None if probabilities is None else np.ravel(np.asarray(probabilities, dtype=np.float64))
        self.names = None if names is None else [str(name) for name in label_list(names)]
        self.positions = None if positions is None else np.asarray(positions, dtype=np.float64)
        n = len(self.labels)
        given = (("truth", self.truth), ("probabilities", self.probabilities), ("names", self.names))
        for name, values in (*given, ("positions", self.positions)):
            if values is not None:
                one_for_each(name, values, n, "node")
        if self.positions is not None and self.positions.shape != (n, 2):
            raise ValueError(f"positions must have shape {(n, 2)}. Got {self.positions.shape} instead.")
        self.edges: NDArray[np.int32] = np.asarray(edges, dtype=np.int32).reshape(-1, 2)
        outside = ((self.edges < 0) | (self.edges >= n)).any(axis=1) | (self.edges[:, 0] == self.edges[:, 1])
        if outside.any():
            at = int(outside.argmax())
            found = tuple(self.edges[at].tolist())
            raise ValueError(f"edges[{at}] must join two of the nodes from 0 to {n - 1}. Got {found} instead.")
        self.types = None if types is None else np.asarray(types, dtype=np.int32)
        if self.types is not None and self.types.shape != (len(self.edges),):
            raise ValueError(f"types has shape {self.types.shape}; expected {(len(self.edges),)}, one for each edge.")
        self.classes = [*({} if classes is None else dict.fromkeys(label_list(classes)))]
        self.classes += [one for one in dict.fromkeys([*self.labels, *(self.truth or [])]) if one not in self.classes]
        self.note = note

    @property
    def wrong(self) -> list[bool]:
        """Whether each label is not the true one; all False where the truth is not known."""
        if self.truth is None:
            return [False] * len(self.labels)
        return [guess != true for guess, true in zip(self.labels, self.truth, strict=True)]

    @classmethod
    def from_predictions(
        cls,
        labels: Any,
        edges: ArrayLike,
        marginals: ArrayLike,
        classes: Any,
        *,
        truth: Any = None,
        **more: Any,
    ) -> Self:
        """Look up the probabilities of labels in a table of marginals.

        Parameters
        ----------
        labels : sequence of length n_nodes, or array of shape (height, width)
            The predicted labels.
        edges : int array of shape (n_edges, 2)
            Pairs of nodes.
        marginals : array of shape (n_nodes, n_classes), or (height, width, n_classes)
            The probability of each label at each node.
        classes : sequence of length n_classes
            The labels of the columns.
        truth : sequence of length n_nodes, or array of shape (height, width), default=None
            The true labels.
        **more
            As for the constructor.

        Returns
        -------
        GraphDisplay
            The display.

        Examples
        --------
        >>> from dualfield.plotting import GraphDisplay
        >>> GraphDisplay.from_predictions(["x", "y"], [(0, 1)], [[0.9, 0.1], [0.3, 0.7]], ["x", "y"]).probabilities
        array([0.9, 0.7])
        """
        names = label_list(classes)
        rows = np.reshape(np.asarray(marginals, dtype=np.float64), (-1, len(names)))
        code = {name: at for at, name in enumerate(names)}
        chances = [row[code[label]] for row, label in zip(rows, _in_a_row(labels), strict=True)]
        return cls(labels, edges, chances, truth, classes=names, **more)

    @classmethod
    def from_estimator(
        cls, model: Any, example: Any, truth: Any = None, *, positions: ArrayLike | None = None, names: Any = None
    ) -> Self:
        """Predict the labels of one tree, graph or image.

        Parameters
        ----------
        model : fitted model with ``structure="tree"`` or ``"graph"``, such as :class:`dualfield.CRF`
            Its best labelling is shown. Probabilities are shown where they are exact; of a graph that is too wide the
            picture says how far the labelling may be from the best one, and has none.
        example : one tree, graph or image
            In the form in which the model takes the items of `X`.
        truth : sequence of labels, or dict where nodes come by type, default=None
            The true labels.
        positions, names
            As for the constructor; `names` None: the words of nodes, where their attributes tell them.

        Returns
        -------
        GraphDisplay
            The display.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.plotting import GraphDisplay
        >>> X = [([["sleeps"], ["cat"], ["a"]], [-1, 0, 1])]
        >>> model = CRF("tree").fit(X, [["verb", "noun", "article"]])
        >>> display = GraphDisplay.from_estimator(model, X[0])
        >>> display.names, display.edges.tolist()
        (['sleeps', 'cat', 'a'], [[0, 1], [1, 2]])
        """
        shape = model.decision_scores([example]).shape
        edges, types = edges_of(shape)
        is_wide = bool(relaxed_examples(model.structure_, shape)[0])
        (labels,), bounds = model.predict([example], return_bound=True)
        labels, truth = (in_a_row(one) if isinstance(one, dict) else one for one in (labels, truth))
        if names is None and not isinstance(labels, np.ndarray):
            words = token_texts(example, len(labels))
            names = None if all(word == f"token {at}" for at, word in enumerate(words)) else words
        more = {"types": types, "positions": positions, "names": names, "truth": truth, "classes": model.classes_}
        if is_wide:
            return cls(labels, edges, note=bound_note(bounds), **more)
        if not hasattr(model, "predict_proba"):
            return cls(labels, edges, **more)
        (marginals,) = model.predict_proba([example])
        marginals = np.array(in_a_row(marginals)) if isinstance(marginals, dict) else marginals
        return cls.from_predictions(labels, edges, marginals, more.pop("classes"), **more)

    def _summary(self) -> str:
        size = f"image of {self.grid[0]} x {self.grid[1]}" if self.grid else f"{len(self.labels)} nodes"
        edges = "" if self.grid else f", {len(self.edges)} edges"
        return f"{size}{edges}" + f", {sum(self.wrong)} wrong" * (self.truth is not None)

    def _columns(self) -> Columns:
        columns: dict[str, Any] = {"node": list(range(len(self.labels))), "label": self.labels}
        optional = {"name": self.names, "probability": self.probabilities, "truth": self.truth}
        return columns | {name: list(values) for name, values in optional.items() if values is not None}

    def _sketch(self) -> Sketch:
        return graph_sketch(self)

    def _title(self) -> str:
        return f"Predicted labels: {self._summary()}"


def edges_of(shape: Any) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    """Return the edges of the only example of a shape, and their types, if there are several."""
    if isinstance(shape, GraphShape):
        return shape.edges, shape.types
    if not isinstance(shape, TreeShape):
        return np.column_stack([np.arange(shape.n_nodes - 1), np.arange(1, shape.n_nodes)]).astype(np.int32), None
    below = np.flatnonzero(shape.parents >= 0)
    types = None if shape.types is None else shape.types[below]
    return np.column_stack([shape.parents[below], below]).astype(np.int32), types


def bound_note(bounds: Any) -> str:
    """Say how good the labelling of the only example is that bounds are about."""
    if bounds.exact[0]:
        return "Too wide for probabilities; no labelling has a higher score."
    return f"Too wide for probabilities; a better labelling may score {bounds.bound[0] - bounds.score[0]:.2g} more."


def _in_a_row(labels: Any) -> list[Any]:
    """Return labels as a list, those of an image row by row."""
    return label_list(labels.ravel() if isinstance(labels, np.ndarray) else labels)
