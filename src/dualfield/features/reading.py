"""From examples as users pass them to rows of features, for every structure, with a template or without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Batch, Vocabulary
from dualfield.data.anchored_rows import AnchoredRows
from dualfield.data.shapes import Shape
from dualfield.data.typed_rows import TypedRows
from dualfield.features.template import Template


def read_examples(
    structure: Any,
    X: Any,
    lengths: ArrayLike | None,
    template: Template | None,
    vocabulary: Vocabulary | None,
    pair_vocabulary: Vocabulary | None = None,
    *,
    grow: bool | Callable[[Shape], NDArray[np.bool_]] = False,
    n_columns: int | None = None,
    n_edge_columns: int | None = None,
    n_threads: int = 1,
) -> tuple[Batch, Batch | None]:
    """Return the nodes of examples, connected as their structure says, and what scores label pairs.

    That is what a template makes for them, or the features that edges come with; None if there is neither. The
    vocabularies, `grow` and the numbers of columns are those of :meth:`dualfield.data.Batch.build`. Where nodes have
    anchors, `grow` may be a function from their shape to the nodes whose attributes become columns; elsewhere a
    function stands for True. A batch is taken as it is. Attributes of rows with anchors are looked up by `n_threads`.
    """
    chosen, grow = (grow, True) if callable(grow) else (None, grow)
    if isinstance(X, Batch):
        return Batch.build(X, lengths=lengths, vocabulary=vocabulary, grow=grow, n_columns=n_columns), None
    opened = structure.open(X, lengths)
    if template is None:
        growing: bool | NDArray[np.bool_] = grow
        if chosen is not None and isinstance(opened.nodes, AnchoredRows):
            growing = chosen(opened.connect(opened.nodes.offsets) or Shape.of(opened.nodes.offsets))
        nodes = _rows(opened.nodes, opened.lengths, vocabulary, growing, n_columns, "X", n_threads)
        pairs = None
    else:
        if isinstance(opened.nodes, TypedRows):
            raise ValueError("template must be None where nodes have types: each type has features of its own.")
        if isinstance(opened.nodes, AnchoredRows) or structure.empty_label is not None:
            raise ValueError(f"template must be None: a {type(structure).__name__} has texts with macros of its own.")
        if opened.lengths is not None:
            raise ValueError("lengths must be None with a template: X is a list of sentences.")
        made = template.read(opened.nodes, vocabulary, pair_vocabulary, grow=grow)
        nodes, pairs = made.nodes, made.pairs
    nodes = nodes.connect(opened.connect)
    if opened.edges is None:
        return nodes, pairs
    if pairs is not None:
        raise ValueError("Edges have features of their own: the template must not make attributes for pairs of labels.")
    grow = grow and pair_vocabulary is not None
    edges = _rows(opened.edges, opened.edge_lengths, pair_vocabulary, grow, n_edge_columns, "edge_features", n_threads)
    return nodes, edges


def _rows(
    rows: Any,
    lengths: ArrayLike | None,
    vocabulary: Vocabulary | None,
    grow: bool | NDArray[np.bool_],
    n_columns: int | None,
    name: str,
    n_threads: int,
) -> Batch:
    """Read rows of one kind, rows with anchors, or rows of several types."""
    if isinstance(rows, AnchoredRows):
        return rows.build(vocabulary=vocabulary, grow=grow, n_columns=n_columns, name=name, n_jobs=n_threads)
    assert isinstance(grow, bool)
    if not isinstance(rows, TypedRows):
        return Batch.build(rows, lengths=lengths, vocabulary=vocabulary, grow=grow, n_columns=n_columns, name=name)
    if n_columns is not None:
        raise ValueError(f"{name} has rows of several types; the training data had {n_columns} columns for all.")
    return rows.build(vocabulary=vocabulary, grow=grow, name="nodes" if name == "X" else "edges")
