"""Whether examples have a labelling that agrees with what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch
from dualfield.data.impossible import impossible_message
from dualfield.data.shapes import Shape
from dualfield.structures import Scores, Structure


def need_labellings(structure: Structure, shape: Shape, allowed: NDArray[np.bool_], name: str) -> None:
    """Raise an error that says which examples have no labelling, and why, where labels are those of candidates.

    What is known of these is easily contradictory, as brackets that no tree of a grammar has; of other structures the
    questions themselves say which example has no labelling. `allowed` are the labels of each row, and `name` is the
    argument that they come from.
    """
    if structure.empty_label is None:
        return
    reasons = structure.why_impossible(Scores(np.where(allowed, 0.0, -np.inf), shape=shape))
    if reasons:
        raise ValueError(impossible_message(reasons, shape.n_examples, {i: f"{name}[{i}]" for i in reasons}))


def chosen_examples(X: Any, kept: list[int]) -> Any:
    """Return some examples of a list or batch."""
    return X[np.array(kept, dtype=np.int64)] if isinstance(X, Batch) else [X[i] for i in kept]


def predicted_where_possible(
    X: Any, n_examples: int, reasons: Mapping[int, str], predict: Callable[[Any, list[int]], Any]
) -> list[Any]:
    """Return what is predicted for each example, None for those that have a reason to have no labelling.

    `predict` gets the other examples and their places.
    """
    if not reasons:
        return list(predict(X, list(range(n_examples))))
    kept = [i for i in range(n_examples) if i not in reasons]
    found = dict(zip(kept, predict(chosen_examples(X, kept), kept) if kept else [], strict=True))
    return [found.get(i) for i in range(n_examples)]
