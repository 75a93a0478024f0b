"""Which bracket is the cause where no tree has all brackets that it must have and none that are forbidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.data.parse_trees.tree_cleaning import JOIN
from dualfield.structures.parse_trees.span_shape import SpanShape, word_of
from dualfield.structures.scores import Scores

_MOST_LABELS, _MOST_WORDS = 4, 5


def with_brackets(
    structure: Any, scores: Scores, reasons: Mapping[int, str], labels: Sequence[str] | None
) -> dict[int, str]:
    """Return why sentences have no tree, with the bracket that is the cause where scores of -inf are.

    Spans are held to their labels one after another, those with a bracket first, until no tree is left; as trees only
    become fewer, bisection finds the last one. It is named alone if it leaves no tree alone.
    """
    found = dict(reasons)
    shape = scores.shape
    if not isinstance(shape, SpanShape) or labels is None:
        return found
    for i in reasons:
        own = slice(int(shape.offsets[i]), int(shape.offsets[i + 1]))
        allowed = scores.node[own] > -np.inf
        alone = shape.take(np.array([i]))
        held = np.flatnonzero(~allowed.all(axis=1))
        held = held[np.argsort(allowed[held, 0], kind="stable")]  # required brackets first

        def is_left(rows: NDArray[np.int64], alone: SpanShape = alone, allowed: NDArray[np.bool_] = allowed) -> bool:
            node: Floats = np.zeros(allowed.shape)
            node[rows] = np.where(allowed[rows], 0.0, -np.inf)
            return bool(structure.is_possible(Scores(node, None, scores.transition, shape=alone))[0])

        if not len(held) or not is_left(held[:0]):
            continue  # there is no tree anyway
        low, high = 0, len(held)  # trees are left by so many spans, none by so many
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_left(held[:middle]) else (low, middle)
        row = int(held[low])
        others = "" if not is_left(held[low : low + 1]) else " together with what else is known"
        found[i] = _sentence(
            shape,
            i,
            int(shape.offsets[i]) + row,
            [labels[k] for k in np.flatnonzero(allowed[row]).tolist()],
            others,
            labels,
        )
    return found


def _sentence(shape: SpanShape, example: int, row: int, allowed: list[str], others: str, labels: Sequence[str]) -> str:
    """Say that a span cannot have one of the labels that it may have."""
    start, stop = shape.spans[row].tolist()
    place = f"({start}, {stop})"
    if shape.tokens is not None:
        words = [word_of(token) for token in shape.tokens[example][start:stop]]
        place += f" around {' '.join([*words[:_MOST_WORDS], *(['...'] if len(words) > _MOST_WORDS else [])])!r}"
    if "" not in allowed:
        return f"no tree has the required bracket {_named(allowed, labels)}{place}{others}."
    forbidden = [label for label in labels if label not in allowed]
    return f"every tree has the forbidden bracket {_named(forbidden, labels)}{place}{others}."


def _named(some: list[str], labels: Sequence[str]) -> str:
    """Return what labels have in common, or their names; nothing if they are all labels of brackets."""
    if len(some) == len(labels) - 1:
        return ""
    common = [part for part in some[0].split(JOIN) if all(part in label.split(JOIN) for label in some)]
    if common:
        return JOIN.join(common) + " "
    return " or ".join([*some[:_MOST_LABELS], *(["others"] if len(some) > _MOST_LABELS else [])]) + " "
