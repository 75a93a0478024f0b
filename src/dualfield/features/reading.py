"""From examples as users pass them to rows of features, for every structure, with a template or without."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from dualfield.data import Batch, Vocabulary
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
        nodes = Batch.build(opened.nodes, lengths=opened.lengths, vocabulary=vocabulary, grow=grow, n_columns=n_columns)
        pairs = None
    else:
        if opened.lengths is not None:
            raise ValueError("lengths must be None with a template: X is a list of sentences.")
        made = template.read(opened.nodes, vocabulary, pair_vocabulary, grow=grow)
        nodes, pairs = made.nodes, made.pairs
    nodes = nodes.connect(opened.connect)
    if opened.edges is None:
        return nodes, pairs
    if pairs is not None:
        raise ValueError("Edges have features of their own: the template must not make attributes for pairs of labels.")
    edges = Batch.build(
        opened.edges,
        lengths=opened.edge_lengths,
        vocabulary=pair_vocabulary,
        grow=grow and pair_vocabulary is not None,
        n_columns=n_edge_columns,
        name="edge_features",
    )
    return nodes, edges
