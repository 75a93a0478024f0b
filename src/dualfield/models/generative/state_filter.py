"""States of a hidden Markov model as observations come in: no look ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from dualfield.data.arrays import Floats

__all__ = ["StateFilter"]

_SMALL_SUM = 1e-200  # terms that underflow are below 1e-307, so that a larger sum has them right


class StateFilter:
    """The states of one sequence that is still coming in; made by :meth:`dualfield.DiscriminativeHMM.start_filter`.

    Attributes
    ----------
    probabilities : array of shape (n_states,) or None
        P(state | observations so far); None before the first.
    log_likelihood : float
        Logarithm of the probability of the observations so far.
    n_steps : int
        How many there were.

    Examples
    --------
    >>> from dualfield import DiscriminativeHMM
    >>> state = DiscriminativeHMM(eta=0.0).fit([["a", "b"]], [["x", "y"]]).start_filter()
    >>> _ = state.step("a"), state.step("b")
    >>> state.n_steps, round(state.log_likelihood, 3)
    (2, -0.335)
    """

    def __init__(self, _model: Any) -> None:
        tables, T = _model.tables, _model.probability_temperature
        self._model, self._temperature = _model, T
        self._step = FilterStep(tables.start, tables.transition)
        self._step_at = self._step if T == 1.0 else FilterStep(tables.start / T, tables.transition / T)
        self._logs: Floats | None = None
        self._logs_at: Floats | None = None  # at the temperature of a calibration; the likelihood has none
        self.probabilities: Floats | None = None
        self.log_likelihood, self.n_steps = 0.0, 0

    def step(self, symbol: Any) -> Floats:
        """Take in one observation.

        Parameters
        ----------
        symbol : str or int, or tuple of them
            The observation; a tuple has one symbol for each stream.

        Returns
        -------
        array of shape (n_states,)
            P(state | observations so far).

        Examples
        --------
        >>> from dualfield import DiscriminativeHMM
        >>> DiscriminativeHMM(eta=0.0).fit([["a", "b"]], [["x", "y"]]).start_filter().step("a").round(3)
        array([0.992, 0.008])
        """
        node = self._model.plain_scores([[symbol]]).node
        logs, totals = self._step(self._logs, node)
        if not np.isfinite(totals[0]):
            raise ValueError(impossible(f"Observation {self.n_steps}, {symbol!r},", " after those before it"))
        if self._step_at is not self._step:
            self._logs_at, _ = self._step_at(self._logs_at, node / self._temperature)
        self._logs, self.probabilities = logs, np.exp((logs if self._logs_at is None else self._logs_at)[0])
        self.log_likelihood += float(totals[0])
        self.n_steps += 1
        return self.probabilities


class FilterStep:
    """One step of the filter, for several sequences at once.

    States are kept as logarithms: a state whose probability is too small for a number may be the only one that later
    observations allow.
    """

    def __init__(self, start: Floats, transition: Floats) -> None:
        self.start, self.transition = start, transition  # logarithms
        self.plain, self.open = np.exp(transition), (transition > -np.inf).astype(np.float64)

    def __call__(self, before: Floats | None, node: Floats) -> tuple[Floats, Floats]:
        """Return log P(state | observations so far), and the log-probability of the observation given those before it.

        Rows of ``before`` and ``node`` are sequences; None: this is the first observation. A log-probability of -inf
        says that the observation is impossible; its row of states is then of no use.
        """
        joint = node + (self.start if before is None else self._ahead(before))
        peak = joint.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # -inf - -inf, where all is impossible
            totals = peak + np.log(np.exp(joint - peak).sum(axis=1, keepdims=True))
            logs = joint - totals
        return logs, np.where(np.isfinite(peak), totals, -np.inf)[:, 0]

    def _ahead(self, before: Floats) -> Floats:
        """Return the logarithm of the sum over the states before."""
        with np.errstate(divide="ignore", under="ignore"):
            sums = np.exp(before) @ self.plain
            ahead = np.log(sums)
        # A sum above this lost nothing that counts. One below it is made anew from logarithms, if it has a term at all.
        small = sums < _SMALL_SUM
        if small.any():
            small &= (before > -np.inf).astype(np.float64) @ self.open > 0.0
            for state in np.flatnonzero(small.any(axis=0)):
                rows = small[:, state]
                ahead[rows, state] = logsumexp(before[rows] + self.transition[:, state], axis=1)
        return np.asarray(ahead)


def impossible(what: str, where: str = "") -> str:
    """Say that observations cannot be."""
    return (
        f"{what} is impossible under the model{where}: no path of states has a probability above 0. Fit with smoothing "
        "above 0, or with a prior without zeros."
    )
