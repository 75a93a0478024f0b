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
) -> tuple[Batch, Batch | None]:
    """Return the nodes of examples, connected as their structure says, and what a template makes for label pairs.

    The vocabularies, `grow` and `n_columns` are those of :meth:`dualfield.data.Batch.build`. A batch is taken as it is.
    """
    if isinstance(X, Batch):
        return Batch.build(X, lengths=lengths, vocabulary=vocabulary, grow=grow, n_columns=n_columns), None
    rows, lengths, connect = structure.open(X, lengths)
    if template is None:
        nodes = Batch.build(rows, lengths=lengths, vocabulary=vocabulary, grow=grow, n_columns=n_columns)
        return nodes.connect(connect), None
    if lengths is not None:
        raise ValueError("lengths must be None with a template: X is a list of sentences.")
    made = template.read(rows, vocabulary, pair_vocabulary, grow=grow)
    return made.nodes.connect(connect), made.pairs
