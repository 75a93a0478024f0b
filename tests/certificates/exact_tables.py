"""Discriminative HMMs in the form of :class:`tests.certificates.exact.Exact`: the same questions, for log-tables."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from tests.estimators.hmm_reference import minimum, planes, rows

Wide = np.longdouble


@dataclass
class ExactTables:
    """Log-tables θ in one vector; ``counts`` are the reference c of the divergence."""

    X: list[np.ndarray]
    y: list[np.ndarray]
    counts: np.ndarray
    n_states: int
    n_symbols: int
    eta: float
    floor: float = 1e-11
    kernel: None = None

    def __post_init__(self) -> None:
        self.planes = planes(self.X, self.y, self.n_states, self.n_symbols)

    def value(self, theta: np.ndarray) -> float:
        """The divergence and the margins; infinite for tables that are not admissible."""
        sums = np.bincount(rows(self.n_states, self.n_symbols), np.exp(theta))
        if sums.max() > 1.0 + 1e-12 or theta.min() < np.log(self.floor) - 1e-9:
            return float("inf")
        theta, c, row = theta.astype(Wide), self.counts.astype(Wide), rows(self.n_states, self.n_symbols)
        share = c / np.array([c[row == r].sum() for r in row])
        divergence = (c * (np.log(share) - theta)).sum()
        hinges = sum((np.maximum((A.astype(Wide) @ theta + b).max(), 0) for A, b in self.planes), start=Wide(0))
        return float(divergence + Wide(self.eta) * hinges)

    @property
    def resolution(self) -> float:
        """What tables in double precision make of a divergence that is zero."""
        return 1e-14 * float(np.abs(self.counts @ self.zero()))

    def rounding(self, theta: np.ndarray) -> float:
        """As above: the terms of a divergence are of the same size everywhere."""
        return self.resolution

    def zero(self) -> np.ndarray:
        """The reference itself."""
        row = rows(self.n_states, self.n_symbols)
        return np.log(self.counts / np.bincount(row, self.counts)[row])

    def best(self) -> np.ndarray:
        """The minimum as cvxpy has it, made admissible."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate point is a point
            _, theta = minimum(self.counts, self.planes, self.n_states, self.n_symbols, self.eta)
        theta = np.maximum(theta, np.log(self.floor))
        row = rows(self.n_states, self.n_symbols)
        return theta - np.maximum(np.log(np.bincount(row, np.exp(theta))), 0.0)[row]
