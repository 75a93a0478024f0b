"""Margins near a reference: the training of tables of probabilities for what they predict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch
from dualfield.data.arrays import Codes, Floats, Ints
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.regularisers import TableDivergence
from dualfield.scores import LinearScores
from dualfield.solvers import Simplicial, Solution, Status, StopRule
from dualfield.solvers.base import Progress

# Completions of unknown states with the best ones, each followed by a convex problem.
MOST_COMPLETIONS = 20


class MarginLayout(Protocol):
    """Where the tables of a model are among the parameters of its score map."""

    @property
    def score_map(self) -> LinearScores:
        """The score map."""

    def pack(self, tables: Any) -> Floats:
        """Return the parameters."""

    def rows(self) -> Ints:
        """Return the row of a table that each parameter belongs to; -1: none."""


class MarginData(Protocol):
    """What the training sees of labelled examples; states are -1 where they are not known."""

    @property
    def batch(self) -> Batch:
        """The examples."""

    @property
    def states(self) -> Codes:
        """Their labels."""

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """What is known of labels; None: all of them are."""

    @property
    def fixed(self) -> NDArray[np.bool_] | None:
        """Which labels are known at prediction, too."""

    @property
    def weights(self) -> Floats:
        """Weights of examples."""

    @property
    def layout(self) -> MarginLayout:
        """The layout of the tables."""


class MarginTraining:
    """The problem with margins, near a reference; where states are unknown, a sequence of convex problems."""

    def __init__(
        self, data: MarginData, reference: Any, cost: Floats, eta: float, floor: float, n_threads: int
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
