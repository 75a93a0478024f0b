"""From examples as users pass them to rows of features, for every structure, with a template or without."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from dualfield.data import Batch, Vocabulary
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
    grow: bool = False,
    n_columns: int | None = None,
    n_edge_columns: int | None = None,
) -> tuple[Batch, Batch | None]:
    """Return the nodes of examples, connected as their structure says, and what scores label pairs.

    That is what a template makes for them, or the features that edges come with; None if there is neither. The
    vocabularies, `grow` and the numbers of columns are those of :meth:`dualfield.data.Batch.build`. A batch is taken as
    it is.
    """
    if isinstance(X, Batch):
        return Batch.build(X, lengths=lengths, vocabulary=vocabulary, grow=grow, n_columns=n_columns), None
    opened = structure.open(X, lengths)
    if template is None:
        nodes = _rows(opened.nodes, opened.lengths, vocabulary, grow, n_columns, "X")
        pairs = None
    else:
        if isinstance(opened.nodes, TypedRows):
            raise ValueError("template must be None where nodes have types: each type has features of its own.")
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
    edges = _rows(opened.edges, opened.edge_lengths, pair_vocabulary, grow, n_edge_columns, "edge_features")
    return nodes, edges


def _rows(
    rows: Any, lengths: ArrayLike | None, vocabulary: Vocabulary | None, grow: bool, n_columns: int | None, name: str
) -> Batch:
    """Read rows of one kind, or of several types."""
    if not isinstance(rows, TypedRows):
        return Batch.build(rows, lengths=lengths, vocabulary=vocabulary, grow=grow, n_columns=n_columns, name=name)
    if n_columns is not None:
        raise ValueError(f"{name} has rows of several types; the training data had {n_columns} columns for all.")
    return rows.build(vocabulary=vocabulary, grow=grow, name="nodes" if name == "X" else "edges")
