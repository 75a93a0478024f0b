"""Probabilities from margins: a temperature chosen on data that the model was not trained on."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from dualfield.data.records import Fields, Record
from dualfield.structures import Scores, Structure

__all__ = ["Calibration", "choose_temperature"]

_GRID = np.linspace(-9.0, 9.0, 37)  # of log T, beside the spread of the scores


@dataclass(frozen=True)
class Calibration:
    """How a temperature was chosen.

    Attributes
    ----------
    temperature : float
        T, by which scores are divided.
    log_loss : float
        Mean of -log p(label) over nodes at T.
    log_loss_at_one : float
        The same at T = 1, which takes margins for log-odds.
    n_nodes : int
        Nodes that it was chosen on.

    Examples
    --------
    >>> from dualfield.models.temperature_scaling import Calibration
    >>> Calibration(0.5, 0.1, 0.2, 100).temperature
    0.5
    """

    temperature: float
    log_loss: float
    log_loss_at_one: float
    n_nodes: int

    def record(self) -> Fields:
        """Return what it consists of."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Record) -> Calibration:
        """Make a calibration of its record, which is checked."""
        log_loss, at_one = record.number("log_loss"), record.number("log_loss_at_one")
        return cls(record.number("temperature", above=0.0), log_loss, at_one, record.integer("n_nodes"))


def choose_temperature(
    structure: Structure, scores: Scores, codes: NDArray[np.int32], n_jobs: int | None = None
) -> Calibration:
    r"""Find the temperature at which the marginals of the true labels have the smallest log-loss.

    .. math::
        \min_T \; - \frac{1}{N} \sum_t \log p_T(y_t \mid x), \qquad p_T(y \mid x) \propto \exp(\mathrm{score}(y) / T)

    A search over a grid of log T, refined around its best point.

    Parameters
    ----------
    structure : Structure
        Gives the marginals.
    scores : Scores
        Scores of held-out examples.
    codes : int32 array of shape (n_nodes,)
        Their true labels.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    Calibration
        The temperature and its log-loss.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.models.temperature_scaling import choose_temperature
    >>> from dualfield.structures import Scores, Single
    >>> node = np.array([[2.0, 0.0]] * 4)                     # right three times out of four
    >>> found = choose_temperature(Single(2), Scores(node, np.arange(5)), np.array([0, 0, 0, 1], dtype=np.int32))
    >>> round(found.temperature, 3)                           # exp(2 / T) = 3
    1.82
    """
    import scipy.optimize  # slow to import, and predictions do without

    places = np.arange(len(codes))
    spread = float(np.std(scores.node))

    def log_loss(log_temperature: float) -> float:
        answer = structure.marginals(scores, temperature=float(np.exp(log_temperature)), n_jobs=n_jobs)
        return float(-np.log(np.maximum(answer.node[places, codes], 1e-300)).mean())

    if not spread > 0.0:  # the model says nothing: every temperature is as good
        return Calibration(1.0, log_loss(0.0), log_loss(0.0), len(codes))
    grid = np.log(spread) + _GRID
    losses = [log_loss(at) for at in grid]
    best = int(np.argmin(losses))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = scipy.optimize.minimize_scalar(log_loss, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    at = float(found.x) if found.fun <= losses[best] else float(grid[best])
    return Calibration(float(np.exp(at)), log_loss(at), log_loss(0.0), len(codes))
