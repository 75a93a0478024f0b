"""Whether examples have a labelling that agrees with what is known of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
