"""What a fit of a user-defined output space has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.arrays import Floats
from dualfield.data.records import Fields
from dualfield.structures import CustomProblem
from dualfield.structures.custom_answers import read_only


@dataclass(frozen=True, eq=False)
class CustomModel:
    """A user-defined problem and its weights.

    Parameters
    ----------
    problem : CustomProblem
        Its ``argmax`` predicts, its ``loss`` scores.
    parameters : array of shape (n_parameters,)
        The weights w.
    """

    problem: CustomProblem
    parameters: Floats
    is_matrix = False
    column_names = None

    @property
    def coef(self) -> Floats:
        """The weights."""
        return self.parameters

    @property
    def n_features(self) -> int:
        """Number of weights."""
        return len(self.parameters)

    def predict(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> list[Any]:
        """Return the best output for each example."""
        w = read_only(self.parameters)
        return [self.problem.argmax(w, x) for x in X]

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the mean loss of the predictions."""
        losses = [self.problem.loss(true, found) for true, found in zip(y, self.predict(X), strict=True)]
        return -float(np.average(losses, weights=None if sample_weight is None else np.asarray(sample_weight, float)))

    def record(self) -> Fields:
        """Refuse: it is code, which a model file does not hold."""
        raise ValueError(
            "The 'structure' parameter cannot be saved: a user-defined problem is code, which a model file does not "
            f"hold. Got {self.problem!r:.100} instead."
        )
