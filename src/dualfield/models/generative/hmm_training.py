"""Labelled sequences as the training of an HMM needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Batch, Labels
from dualfield.data.arrays import Codes, Floats
from dualfield.data.observations import Observations, read_streams
from dualfield.data.states import read_hidden, read_states
from dualfield.data.symbols import Rare
from dualfield.data.weights import example_weights
from dualfield.scores.tables import TableLayout


@dataclass(frozen=True, eq=False, kw_only=True)
class HMMData:
    """Everything that a fit needs, checked; states are -1 where they are not known."""

    batch: Batch
    observations: Observations
    labels: Labels
    states: Codes
    allowed: NDArray[np.bool_] | None
    fixed: NDArray[np.bool_] | None
    weights: Floats
    layout: TableLayout


def read_training(
    owner: str,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    hidden: Any,
    lengths: ArrayLike | None,
    min_count: int,
    rare: Rare,
) -> HMMData:
    """Read and check sequences, their states and weights, and what is to be predicted."""
    streams = read_streams(X, lengths)
    labels, states, allowed, _ = read_states(y, streams.offsets)
    observations = Observations.fit(streams, min_count, rare)
    batch = observations.batch(streams)
    weights = example_weights(batch, labels, states, sample_weight, None, owner)
    if not weights.any():
        raise ValueError("sample_weight must leave a sequence with a weight above zero.")
    fixed = None if hidden is None else ~read_hidden(hidden, streams.offsets)
    if fixed is not None and (fixed & (states < 0)).any():
        place = streams.place(int(np.argmax(fixed & (states < 0))))[1:]
        raise ValueError(f"hidden{place} is False, so that the state is known; y{place} does not tell it.")
    layout = TableLayout(len(labels), observations.sizes)
    return HMMData(
        batch=batch,
        observations=observations,
        labels=labels,
        states=states,
        allowed=allowed,
        fixed=fixed,
        weights=weights,
        layout=layout,
    )
