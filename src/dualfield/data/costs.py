"""What a wrong label costs: the table Δ of the formula, in the forms in which users give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualfield.data.arrays import Floats


def cost_table(
    owner: str,
    name: str,
    cost: Any,
    labels: Sequence[Any],
    *,
    callables: bool = False,
    negative: bool = False,
    also: str = "",
) -> Floats:
    """Return the cost of each label (column) by true label (row), or raise an error that names the parameter.

    `cost` is "hamming", which is 1 for a wrong label, an array, or with `callables` a function of two labels. With
    `negative`, labels may also be cheaper than the true one. `also` is what else the caller takes, for the message.
    """
    n = len(labels)
    if isinstance(cost, str) and cost == "hamming":
        return 1.0 - np.eye(n)
    kinds = "'hamming', an array or a callable" if callables else "'hamming' or an array"
    kinds = f"{also}, {kinds}" if also else kinds
    wrong = ValueError(f"The {name!r} parameter of {owner} must be {kinds}. Got {cost!r:.100} instead.")
    if cost is None or isinstance(cost, str) or (callable(cost) and not callables):
        raise wrong
    given = [[cost(true, label) for label in labels] for true in labels] if callable(cost) else cost
    try:
        table = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong from None
    least = "" if negative else " of at least 0"
    too_low = not negative and bool((table < 0.0).any())
    if table.shape != (n, n) or not np.isfinite(table).all() or np.diag(table).any() or too_low:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be finite numbers{least} of shape {(n, n)} with zeros on the "
            f"diagonal. Got shape {table.shape} instead."
        )
    return table
