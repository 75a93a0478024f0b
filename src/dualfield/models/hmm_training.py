"""From labelled sequences to the tables of an HMM: by counting, or by margins near what was counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Batch, Labels
from dualfield.data.arrays import Codes, Floats
from dualfield.data.observations import Observations, read_streams
from dualfield.data.states import read_hidden, read_states
from dualfield.data.symbols import Rare
from dualfield.data.weights import example_weights
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.regularisers import TableDivergence
from dualfield.scores.tables import TableLayout, Tables
from dualfield.solvers import Simplicial, Solution, Status, StopRule
from dualfield.solvers.base import Progress

# Completions of unknown states with the best ones, each followed by a convex problem.
MOST_COMPLETIONS = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class HMMData:
    """Everything that a fit needs, checked; states are -1 where they are not known."""

    batch: Batch
    observations: Observations
    labels: Labels
    states: Codes
    allowed: NDArray[np.bool_] | None
    fixed: NDArray[np.bool_] | None
    weights: Floats
    layout: TableLayout


def read_training(
    owner: str,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    hidden: Any,
    lengths: ArrayLike | None,
    min_count: int,
    rare: Rare,
) -> HMMData:
    """Read and check sequences, their states and weights, and what is to be predicted."""
    streams = read_streams(X, lengths)
    labels, states, allowed, _ = read_states(y, streams.offsets)
    observations = Observations.fit(streams, min_count, rare)
    batch = observations.batch(streams)
    weights = example_weights(batch, labels, states, sample_weight, None, owner)
    if not weights.any():
        raise ValueError("sample_weight must leave a sequence with a weight above zero.")
    fixed = None if hidden is None else ~read_hidden(hidden, streams.offsets)
    if fixed is not None and (fixed & (states < 0)).any():
        place = streams.place(int(np.argmax(fixed & (states < 0))))[1:]
        raise ValueError(f"hidden{place} is False, so that the state is known; y{place} does not tell it.")
    layout = TableLayout(len(labels), observations.sizes)
    return HMMData(
        batch=batch,
        observations=observations,
        labels=labels,
        states=states,
        allowed=allowed,
        fixed=fixed,
        weights=weights,
        layout=layout,
    )


class MarginTraining:
    """The problem with margins, near a reference; where states are unknown, a sequence of convex problems."""

    def __init__(
        self, data: HMMData, reference: Tables, cost: Floats, eta: float, floor: float, n_threads: int
    ) -> None:
        self.data, self.cost, self.weights, self.n_threads = data, cost, eta * data.weights, n_threads
        layout = data.layout
        self.divergence = TableDivergence(layout.pack(reference), layout.rows(), floor, n_threads)
        self.n_completions = 0

    def solve(
        self, solver: Simplicial, rule: StopRule, start: Floats | None, callbacks: Progress | None
    ) -> Solution[Floats]:
        """Minimise the objective, and count how often unknown states are completed."""
        theta = self.divergence.origin() if start is None else self.divergence.nearest(start)
        if self.data.allowed is None:
            states = self.data.states
            return solver.solve(self._planes(states), rule, theta, callbacks)
        return self._complete_and_solve(solver, rule, theta, callbacks)

    def _planes(self, states: Codes) -> Objective:
        data = self.data
        unscored = None if data.allowed is None else data.states < 0
        examples = Examples(nodes=data.batch, labels=states, weights=self.weights, fixed=data.fixed, unscored=unscored)
        return Objective(data.layout.score_map, examples, Loss(0.0, self.cost), self.divergence, self.n_threads)

    def completion(self, theta: Floats) -> Codes:
        """Return the best states that agree with what is known."""
        assert self.data.allowed is not None
        score_map = self.data.layout.score_map
        scores = score_map.scores(theta, self.data.batch, n_threads=self.n_threads)
        return score_map.structure.argmax(scores.only(self.data.allowed), n_jobs=self.n_threads)

    def objective(self, theta: Floats, states: Codes) -> float:
        """Return the objective of the convex problem for these states."""
        return self._planes(states).value(theta)

    def _complete_and_solve(
        self, solver: Simplicial, rule: StopRule, theta: Floats, callbacks: Progress | None
    ) -> Solution[Floats]:
        """Alternate: the best states for the tables, then the best tables for the states. The objective never rises."""
        whole: Solution[Floats] | None = None
        states = self.completion(theta)
        while True:
            found = solver.solve(self._planes(states), rule, theta, callbacks)
            whole = found if whole is None else found.after(whole)
            bound, before = found.objective - found.gap, self.objective(theta, states)
            if found.objective < before:
                theta, value = found.parameters, found.objective
            else:
                value = before
            then = self.completion(theta)
            settled = bool((then == states).all())
            self.n_completions += 1
            if settled or self.n_completions == MOST_COMPLETIONS or found.status is Status.INTERRUPTED:
                break
            states = then
        status = found.status if settled or found.status is Status.INTERRUPTED else Status.ITERATION_LIMIT
        gap = max(value - bound, 0.0)
        return replace(whole, parameters=theta, objective=value, gap=gap, status=status, dual=None)
