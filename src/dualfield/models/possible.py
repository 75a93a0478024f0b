"""Whether examples have a labelling that agrees with what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Batch
from dualfield.data.impossible import impossible_message, warn_impossible
from dualfield.data.shapes import Shape
from dualfield.models.labelling_order import LabellingOrder
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


def need_examples(structure: Structure, left_out: NDArray[np.bool_]) -> None:
    """Raise an error where training leaves out every example."""
    if left_out.all():
        raise ValueError(f"y must have an example that the structure, {structure!r}, does not leave out. Got none.")


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


def ranked_where_possible(
    model: Any, X: Any, lengths: ArrayLike | None, n_threads: int, rank: Callable[[Any], LabellingOrder]
) -> LabellingOrder:
    """Order examples by `rank`; behind them, with values of nan and a warning, those that have no labelling.

    The model is a :class:`StructuredModel`.
    """
    structure: Structure = model.structure
    if not structure.counts_impossible or lengths is not None:
        return rank(X)
    X, n_examples, reasons = _impossible_among(model, X, n_threads)
    warn_impossible(reasons, n_examples)
    found = predicted_where_possible(X, n_examples, reasons, lambda some, _: rank(some).values)
    values = np.array(found, dtype=np.float64)  # nan for None
    return LabellingOrder(np.argsort(-values, kind="stable"), values)


def possible_examples(
    model: Any, X: Any, y: Any, lengths: ArrayLike | None, n_threads: int
) -> tuple[Any, Any, ArrayLike | None]:
    """Return the examples that training would not leave out and that have a labelling, with their lengths.

    A warning says which have no labelling, where some may have none. The model is a :class:`StructuredModel`.
    """
    structure: Structure = model.structure
    if structure.leaves_out:
        nodes, y = model.read(X, lengths, n_threads)[0], list(y)
        X, y, lengths = *_not_left_out(structure, nodes, y), None
    if not structure.counts_impossible or lengths is not None:
        return X, y, lengths
    X, n_examples, reasons = _impossible_among(model, X, n_threads)
    if not reasons:
        return X, y, None
    if len(reasons) == n_examples:
        raise ValueError(impossible_message(reasons, n_examples))
    warn_impossible(reasons, n_examples)
    kept = [i for i in range(n_examples) if i not in reasons]
    return chosen_examples(X, kept), [y[i] for i in kept], None


def _impossible_among(model: Any, X: Any, n_threads: int) -> tuple[Any, int, dict[int, str]]:
    """Return the examples as what can be asked again, their number, and why some of them have no labelling."""
    X = X if isinstance(X, Batch) else list(X)
    scores = model.scores(X, None, n_threads)
    return X, scores.n_examples, model.structure.why_impossible(scores, n_jobs=n_threads)


def _not_left_out(structure: Structure, nodes: Batch, y: list[Any]) -> tuple[Batch, list[Any]]:
    left_out = nodes.shape.read_training(y).left_out
    if left_out is None:
        return nodes, y
    need_examples(structure, left_out)
    kept = np.flatnonzero(~left_out).tolist()
    return chosen_examples(nodes, kept), [y[i] for i in kept]
