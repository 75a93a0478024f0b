"""The share of labels that are right."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualfield.data.fixed_size import as_table
from dualfield.data.labels import in_a_row


def share_right(predicted: Any, y: Any, *, flat: bool = False) -> float:
    """Return the share of nodes with the right label; flat: every example is one node."""
    truth = as_table(y)
    if len(predicted) != len(truth):
        raise ValueError(f"y must have a labelling for each of the {len(predicted)} examples. Got {len(truth)}.")
    pairs = list(zip(predicted, truth, strict=True))
    if not flat:
        pairs = [(in_a_row(guess), in_a_row(true)) for guess, true in pairs]
        for i, (guess, true) in enumerate(pairs):
            if len(guess) != len(true):
                raise ValueError(f"y[{i}] has {len(true)} labels; X[{i}] has {len(guess)} nodes.")
        pairs = [both for guess, true in pairs for both in zip(guess, true, strict=True)]
    return float(np.mean([guess == true for guess, true in pairs])) if pairs else 1.0
