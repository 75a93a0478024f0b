"""Points and classes that count: those with a weight above zero are the problem, the others follow from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedPoints:
    """Which points and classes a weighted problem of classification has.

    A point of weight zero gets coefficients zero, and a class without points the score minus infinity.

    Parameters
    ----------
    codes : int array of shape (n,)
        The class of each point.
    weights : array of shape (n,)
        The weight of each point.
    n_classes : int
        Number of classes.
    pinned : bool
        Whether two classes have one output, the score of the second against the first.
    """

    codes: NDArray[np.intp]
    weights: Floats
    n_classes: int
    pinned: bool

    @cached_property
    def points(self) -> NDArray[np.intp]:
        """The points that count."""
        return np.flatnonzero(self.weights > 0)

    @cached_property
    def classes(self) -> NDArray[np.intp]:
        """The classes that they have."""
        return np.unique(self.codes[self.points])

    @property
    def outputs(self) -> NDArray[np.intp]:
        """The outputs that the problem has, among all."""
        return np.zeros(1, np.intp) if self.pinned else self.classes

    @property
    def n_outputs(self) -> int:
        """All outputs."""
        return 1 if self.pinned else self.n_classes

    def codes_among_counted(self) -> NDArray[np.intp]:
        """Return the class of each point that counts, numbered among those that do."""
        return np.searchsorted(self.classes, self.codes[self.points])

    def rows(self, X: Any, *, square: bool) -> Any:
        """Return the rows that count; of a square matrix of kernel values also the columns."""
        if len(self.points) == len(self.codes):
            return X
        return X[self.points][:, self.points] if square else X[self.points]

    def start(self, coefficients: Floats, bias: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return the point of an earlier fit at its weights as one of this problem: the same dual point at the new."""
        before, new = weights[self.points], self.weights[self.points]
        scale = np.divide(new, before, out=np.zeros(len(new)), where=before > 0)
        known = np.where(np.isfinite(bias[self.outputs]), bias[self.outputs], 0.0)
        return coefficients[np.ix_(self.points, self.outputs)] * scale[:, None], known

    def embedded(self, solution: Any, n_points: int | None = None) -> Any:
        """Return a solution for all points and classes; given their number, for inducing points in their place."""
        point = solution.parameters
        n, at = (len(self.codes), self.points) if n_points is None else (n_points, np.arange(n_points))
        coefficients, bias = np.zeros((n, self.n_outputs)), np.full(self.n_outputs, -np.inf)
        coefficients[np.ix_(at, self.outputs)] = point.coefficients
        # Only differences of biases matter where every class has one: their mean is zero.
        bias[self.outputs] = point.bias - (point.bias.mean() if self.n_outputs > 1 else 0.0)
        return replace(solution, parameters=replace(point, coefficients=coefficients, bias=bias))
