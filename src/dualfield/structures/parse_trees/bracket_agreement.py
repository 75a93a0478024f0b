"""How well trees agree: the brackets that they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dualfield.data.parse_trees.partial_trees import read_bracketing
from dualfield.data.parse_trees.tree_cleaning import JOIN

__all__ = ["bracket_agreement"]


def bracket_agreement(predicted: Sequence[Any], y: Sequence[Any]) -> float | None:
    """Return the harmonic mean of precision and recall of labelled brackets, over all sentences.

    Parameters
    ----------
    predicted, y : list
        Trees in any form, or spans.

    Returns
    -------
    float or None
        In [0, 1]; 1 where no tree has brackets. None where labels of rows were passed. Tags are no brackets.

    Examples
    --------
    >>> from dualfield.structures.parse_trees.bracket_agreement import bracket_agreement
    >>> bracket_agreement(["(S (NP (NN a)) (VB b))"], ["(S (NN a) (VB b))"])
    0.6666666666666666
    """
    common = total = 0
    for i, (one, two) in enumerate(zip(predicted, y, strict=True)):
        if any(isinstance(tree, (list, tuple)) and any(isinstance(part, str) for part in tree) for tree in (one, two)):
            return None
        found, true = (_brackets(tree, name) for tree, name in ((one, f"predicted[{i}]"), (two, f"y[{i}]")))
        common += (found & true).total()
        total += found.total() + true.total()
    return 2.0 * common / total if total else 1.0


def _brackets(tree: Any, name: str) -> Counter[tuple[int, int, str]]:
    if tree is None:
        return Counter()
    labels = read_bracketing(tree, name).labels
    return Counter((*span, one) for span, label in labels.items() for one in (label or "").split(JOIN))
