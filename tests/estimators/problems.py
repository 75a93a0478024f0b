"""Small classification problems with their Gram matrix, shared by the tests of kernel logistic regression."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference import kernel_logistic as reference

GAMMA = 0.7
# What "auto" can choose from, and itself.
SOLVERS = ["auto", "working_set", "newton", "smo", "online", "lbfgs"]
LABEL_KERNEL_SOLVERS = ["auto", "newton", "smo", "lbfgs"]


def rounding(tol: float) -> float:
    """What kernel values in single precision may cost, relative to the objective; used where tol allows it."""
    return max(1e-9, min(0.05 * tol, 1e-7))


@dataclass
class Problem:
    X: np.ndarray
    y: np.ndarray
    K: np.ndarray = field(repr=False)
    solved: dict = field(default_factory=dict, repr=False)  # the reference is slow: each problem is solved once

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    def optimum(self, c, bias: bool, label_kernel=None) -> reference.Optimum:
        key = np.asarray(c).tobytes(), bias, None if label_kernel is None else label_kernel.tobytes()
        if key not in self.solved:
            self.solved[key] = reference.solve(self.K, self.y, c, bias, label_kernel)
        return self.solved[key]


@cache
def clouds(n_classes: int = 2, n: int = 44, seed: int = 0) -> Problem:
    """Points of overlapping clouds in the plane, classes 0, 1, ...; no model separates them without effort."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    angle = 2 * np.pi * y / n_classes
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(scale=0.9, size=(n, 2))
    return Problem(X, y, rbf_kernel(X, gamma=GAMMA))


def label_kernel(n_classes: int, rank: int | None = None, seed: int = 3) -> np.ndarray:
    """A positive semidefinite matrix with entries of both signs; singular where ``rank`` is below ``n_classes``."""
    A = np.random.default_rng(seed).normal(size=(n_classes, n_classes if rank is None else rank))
    return A @ A.T
