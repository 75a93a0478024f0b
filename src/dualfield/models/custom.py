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
    like : object, default=None
        An input of training, if all were of one kind; those of predictions are compared with it.
    """

    problem: CustomProblem
    parameters: Floats
    like: Any = None
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

    def predict(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None) -> list[Any]:
        """Return the best output for each example."""
        if known is not None:
            raise ValueError("known must be None: the argmax of a custom problem takes no labels.")
        w, inputs = read_only(self.parameters), list(X)
        for i, x in enumerate(inputs):
            if self.like is not None and kind_of(x) != kind_of(self.like):
                raise ValueError(
                    f"X[{i}] must be {kind_of(self.like)}, as the inputs of training. Got {kind_of(x)} instead. "
                    "X is a list of inputs; for one input x pass [x]."
                )
        return [self.problem.argmax(w, x) for x in inputs]

    def bounded_predict(
        self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None
    ) -> Any:
        """Refuse bounds, which user-defined problems do not have."""
        raise ValueError("return_bound must be False: the argmax of a custom problem has no bound.")

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


def kind_of(x: Any) -> str:
    """Say what an input is: its type, and the dimension of an array."""
    dimensions = getattr(x, "ndim", None)
    name = type(x).__name__
    return f"a {name}" if dimensions is None else f"a {name} of {dimensions} dimension{'s' * (dimensions != 1)}"


def common_input(X: list[Any]) -> Any:
    """Return the first of some inputs if all are of its kind, else None."""
    return X[0] if len({kind_of(x) for x in X}) == 1 else None
