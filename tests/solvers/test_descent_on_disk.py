"""How many vectors a descent has in memory, in bytes that NumPy has allocated."""

from __future__ import annotations

import tracemalloc

import numpy as np

from dualfield.objectives.primal_gap import primal_and_gap
from dualfield.regularisers import SquaredNorm
from dualfield.solvers import StopRule
from dualfield.solvers.primal.descent import Descent

N = 30_000


class Valley:
    """A steep square of many weights, certified by bundles as partitions are."""

    convex, bundle_size, n_parameters, regulariser = True, 20, N, SquaredNorm(N)

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._curve, self._end = np.geomspace(1.0, 1e5, N), rng.normal(size=N)

    def evaluate(self, w):
        gradient = w - self._end
        loss = 0.5 * float(gradient @ (self._curve * gradient))
        gradient *= self._curve
        return loss, gradient, 0.0, 0.0

    def gap(self, w, loss, gradient, magnitude, slack):
        return primal_and_gap(self.regulariser, w, loss, gradient, magnitude, slack)

    def certify(self, w):
        return self.gap(w, *self.evaluate(w))


def vectors(in_memory: float) -> tuple[float, np.ndarray]:
    """Return how many there are at a time, and the weights after 70 passes."""
    valley = Valley()
    tracemalloc.start()
    try:
        solution = Descent(valley, 40, None, None, in_memory).solve(StopRule(1e-12, 70.0))
        return tracemalloc.get_traced_memory()[1] / (8.0 * N), solution.parameters
    finally:
        tracemalloc.stop()


def test_about_fifteen_vectors_are_in_memory_and_the_others_on_disk() -> None:
    (most, here), (few, there) = vectors(1e9), vectors(0.0)
    assert most > 101.0
    assert few < 17.0
    assert here.tobytes() == there.tobytes()
