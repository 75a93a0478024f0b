"""Intervals of scores that are ratios of counts, by drawing examples again."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def f1(right: NDArray[np.float64], predicted: NDArray[np.float64], true: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return F1 in per cent from counts of right, predicted and true things.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.bootstrap import f1
    >>> float(f1(np.array(2.0), np.array(4.0), np.array(4.0)))
    50.0
    """
    return np.asarray(200.0 * right / np.maximum(predicted + true, 1.0))


def share(right: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of right things in per cent.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.bootstrap import share
    >>> float(share(np.array(1.0), np.array(4.0)))
    25.0
    """
    return np.asarray(100.0 * right / np.maximum(total, 1.0))


@dataclass(frozen=True, slots=True)
class Interval:
    """A score, or the difference of two, and where 95 % of the draws are."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def intervals(
    counts: dict[str, Counts],
    against: str,
    score: Callable[..., NDArray[np.float64]] = f1,
    n_draws: int = 2000,
    seed: int = 0,
) -> dict[str, tuple[Interval, Interval]]:
    """Draw the examples again, the same ones for every model.

    Parameters
    ----------
    counts : dict of int arrays of shape (n_examples, n_counts)
        For each model the counts of each example; the score is a function of their sums.
    against : str
        The model that the others are compared with.
    score : callable, default=f1
        From the sums of counts to a score.
    n_draws : int, default=2000
        How often.
    seed : int, default=0
        Of the draws.

    Returns
    -------
    dict of pairs of Interval
        For each model its score, and by how much it is above that of `against` on the same examples.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.bootstrap import intervals
    >>> one, two = np.array([[1, 2, 2], [2, 2, 2]]), np.array([[2, 2, 2], [2, 2, 2]])
    >>> found = intervals({"one": one, "two": two}, "one")
    >>> str(found["two"][1])
    '25.00 (0.00 to 50.00)'
    """
    rng = np.random.default_rng(seed)
    n = len(counts[against])
    if any(len(one) != n for one in counts.values()):
        raise ValueError("counts must be those of the same examples for every model.")
    times = rng.multinomial(n, np.full(n, 1.0 / n), size=n_draws).astype(np.float64)
    drawn = {name: score(*(times @ one.astype(np.float64)).T) for name, one in counts.items()}
    whole = {name: float(score(*one.sum(axis=0).astype(np.float64))) for name, one in counts.items()}

    def interval(value: float, draws: NDArray[np.float64]) -> Interval:
        low, high = np.quantile(draws, [0.025, 0.975])
        return Interval(value, float(low), float(high))

    return {
        name: (interval(whole[name], draws), interval(whole[name] - whole[against], draws - drawn[against]))
        for name, draws in drawn.items()
    }
