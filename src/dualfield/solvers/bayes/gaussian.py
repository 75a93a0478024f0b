"""Gaussian distributions of weights, and draws from them that are never stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from dualfield.data.arrays import Floats
from dualfield.data.records import Fields, Record


def antithetic(n: int, size: int, seed: int) -> Iterator[Floats]:
    """Yield n vectors of normal numbers, each second one the negative of the one before it.

    Parameters
    ----------
    n : int
        How many.
    size : int
        Of each.
    seed : int
        A pair depends on the seed and on its own number only.

    Yields
    ------
    array of shape (size,)
        Normal numbers.

    Examples
    --------
    >>> from dualfield.solvers.bayes.gaussian import antithetic
    >>> one, other = antithetic(2, 3, seed=0)
    >>> (one == -other).all()
    np.True_
    """
    for pair in range((n + 1) // 2):
        z = np.random.default_rng([seed, pair]).standard_normal(size)
        yield z
        if 2 * pair + 1 < n:
            yield -z


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A normal distribution of weights, with independent ones or with all covariances.

    Parameters
    ----------
    mean : array of shape (d,)
        The mean.
    std : array of shape (d,)
        Standard deviations.
    root : array of shape (d, d), default=None
        Lower Cholesky factor of the precision; None: weights are independent.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.bayes.gaussian import Gaussian
    >>> draws = np.array(list(Gaussian(np.array([1.0]), np.array([0.1])).draws(4, seed=0)))
    >>> draws.mean(axis=0)                                    # antithetic: the mean of pairs is exact
    array([1.])
    """

    mean: Floats
    std: Floats
    root: Floats | None = None

    @classmethod
    def of_precision(cls, mean: Floats, precision: Floats) -> Gaussian:
        """Return the distribution with a mean and a matrix of precisions."""
        root = np.ascontiguousarray(scipy.linalg.cholesky(precision, lower=True))  # as files give it back
        inverse = scipy.linalg.solve_triangular(root, np.eye(len(root)), lower=True)
        return cls(mean, np.sqrt((inverse**2).sum(axis=0)), root)

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the covariances."""
        return 2.0 * float(np.log(self.std).sum() if self.root is None else -np.log(np.diag(self.root)).sum())

    def at(self, z: Floats) -> Floats:
        """Return the weights for normal numbers."""
        if self.root is None:
            return np.asarray(self.mean + self.std * z)
        moved: Floats = scipy.linalg.solve_triangular(self.root, z, lower=True, trans="T")
        return self.mean + moved

    def draws(self, n: int, seed: int) -> Iterator[Floats]:
        """Yield antithetic draws."""
        for z in antithetic(n, len(self.mean), seed):
            yield self.at(z)

    def record(self) -> Fields:
        """Return what it consists of."""
        return {"mean": self.mean, "std": self.std, "root": self.root}

    @classmethod
    def from_record(cls, record: Record, size: int) -> Gaussian:
        """Make it of its record, which is checked."""
        mean, std = (record.array(name, np.float64, (size,), finite=True) for name in ("mean", "std"))
        record.check(bool((np.asarray(std) > 0.0).all()), "its standard deviations must be above 0.")
        root = record.array("root", np.float64, (size, size), finite=True) if record.has("root") else None
        record.check(root is None or bool((np.diag(root) > 0.0).all()), "its factor must have a positive diagonal.")
        return cls(np.array(mean), np.array(std), None if root is None else np.tril(root))
