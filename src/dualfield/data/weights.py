"""How much each example counts: its own weight, and those of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.arrays import Floats
from dualfield.data.batch import Batch
from dualfield.data.labels import Labels


def example_weights(
    nodes: Batch,
    labels: Labels,
    codes: NDArray[np.int32],
    sample_weight: ArrayLike | None,
    class_weight: Mapping[Any, float] | str | None,
    owner: str = "CRF",
) -> Floats:
    """Return the weight of each sequence: its own times the mean weight of its labels."""
    weights = np.ones(nodes.n_examples)
    if sample_weight is not None:
        weights = np.array(sample_weight, dtype=np.float64)
        if weights.shape != (nodes.n_examples,):
            raise ValueError(
                f"sample_weight must have shape ({nodes.n_examples},), one for each sequence. Got {weights.shape}."
            )
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError("sample_weight must be finite numbers of at least 0.")
    counts = np.bincount(codes[codes >= 0], minlength=labels.n_classes)
    factors = label_factors(labels, counts, class_weight, owner)
    if factors is None:
        return weights
    each = np.where(codes >= 0, factors[np.maximum(codes, 0)], 1.0)
    sums = np.add.reduceat(np.append(each, 0.0), nodes.offsets[:-1]) * (nodes.lengths > 0)
    return np.asarray(weights * np.where(nodes.lengths > 0, sums / np.maximum(nodes.lengths, 1), 1.0))


def label_factors(
    labels: Labels, counts: NDArray[np.int64], class_weight: Mapping[Any, float] | str | None, owner: str
) -> Floats | None:
    """Return the weight of each label, given how often each occurs; None: all are 1."""
    if class_weight is None:
        return None
    names = labels.classes.tolist()
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"The 'class_weight' parameter of {owner} must be None, 'balanced' or a dict. "
                f"Got {class_weight!r} instead."
            )
        return np.asarray(counts.sum() / (len(names) * np.maximum(counts, 1)))
    unknown = sorted(set(class_weight) - set(names), key=str)
    if unknown:
        raise ValueError(f"The 'class_weight' parameter of {owner} has labels that y does not have: {unknown}.")
    factors = np.array([float(class_weight.get(name, 1.0)) for name in names])
    if not (np.isfinite(factors) & (factors >= 0)).all():
        raise ValueError(f"The 'class_weight' parameter of {owner} must be weights of at least 0.")
    return factors
