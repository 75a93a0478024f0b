"""Trees, graphs and images of held-out data: predictions, probabilities where they are exact, and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.labels import in_a_row
from dualfield.data.shapes import Shape
from dualfield.data.token_texts import token_texts
from dualfield.plotting import GraphDisplay
from dualfield.plotting.graph import bound_note, edges_of
from dualfield.plotting.labels import label_list
from dualfield.structures import Bounds
from dualfield.structures.pairwise import Pairwise
from dualfield.structures.relaxed import relaxed_examples


@dataclass(frozen=True, eq=False, kw_only=True)
class DevGraphs:
    """Graphs with their predicted labels.

    Attributes
    ----------
    shape : Shape
        How nodes are connected.
    predicted : list of lists, or of arrays of shape (height, width)
        Labels.
    marginals : list of arrays, or None
        Probabilities of all labels; None where the model has none, or a graph is too wide for them.
    bounds : list of Bounds or None
        Of each graph that is too wide; None for the others.
    names : list of lists of str, or of None
        What is written at nodes.
    whole, part : str
        What examples and their nodes are called.
    """

    shape: Shape
    predicted: list[Any]
    marginals: list[NDArray[np.float64]] | None
    bounds: list[Bounds | None]
    names: list[list[str] | None]
    whole: str
    part: str

    @property
    def n_wide(self) -> int:
        """How many graphs have bounds only."""
        return sum(one is not None for one in self.bounds)

    def display(self, at: int, truth: list[Any], chances: Any, classes: list[Any]) -> GraphDisplay:
        """Draw one of them."""
        edges, types = edges_of(self.shape.take(np.array([at])))
        bounds = self.bounds[at]
        return GraphDisplay(
            self.predicted[at],
            edges,
            chances,
            truth,
            types=None if self.whole == "example" else types,  # of label sets each edge is a type
            names=self.names[at],
            classes=classes,
            note="" if bounds is None else bound_note(bounds),
        )


def has_graphs(model: Any) -> bool:
    """Return whether a model labels the nodes of trees or graphs."""
    return isinstance(getattr(model, "structure_", None), Pairwise) and hasattr(model, "decision_scores")


def predicted_graphs(model: Any, X: list[Any], tokens: Any) -> DevGraphs:
    """Predict the labels of graphs, each as if it were asked about alone."""
    shape = model.decision_scores(X).shape
    wide = relaxed_examples(model.structure_, shape)
    predicted: list[Any] = [None] * len(X)
    bounds: list[Bounds | None] = [None] * len(X)
    for places in (np.flatnonzero(~wide), np.flatnonzero(wide)):
        if len(places):
            labels, found = model.predict([X[at] for at in places], return_bound=True)
            for at, one, score, bound in zip(places, labels, found.score, found.bound, strict=True):
                predicted[at] = in_a_row(one) if isinstance(one, dict) else one
                bounds[at] = Bounds(np.array([score]), np.array([bound])) if wide[at] else None
    marginals = None
    if not wide.any() and hasattr(model, "predict_proba"):
        n = len(model.classes_)
        rows = (in_a_row(one) if isinstance(one, dict) else one for one in model.predict_proba(X))
        marginals = [np.reshape(one, (-1, n)) for one in rows]
    is_image = any(isinstance(one, np.ndarray) and one.ndim == 2 for one in predicted)
    labels = getattr(model, "label_graph_", None)
    whole, part = ("image", "pixel") if is_image else ("tree" if model.structure_.name == "tree" else "graph", "node")
    if labels is not None:
        whole, part = "example", "label"
    return DevGraphs(
        shape=shape,
        predicted=predicted,
        marginals=marginals,
        bounds=bounds,
        names=_names(X, predicted, tokens, labels),
        whole=whole,
        part=part,
    )


def _names(X: list[Any], predicted: list[Any], tokens: Any, labels: Any) -> list[list[str] | None]:
    """Return what is written at the nodes of each graph; None where there is nothing but their number."""
    if tokens is not None:
        return [[str(token) for token in one] for one in tokens]
    if labels is not None:
        return [[str(name) for name in labels.names] for _ in X]
    found: list[list[str] | None] = []
    for example, one in zip(X, predicted, strict=True):
        length = len(label_list(np.ravel(one))) if isinstance(one, np.ndarray) else len(one)
        words = token_texts(example, length)
        found.append(None if all(word == f"token {at}" for at, word in enumerate(words)) else words)
    return found
