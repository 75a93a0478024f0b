"""The labelling whose slack, rescaled by its cost, is the largest."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Codes, Floats
from dualfield.losses import Loss
from dualfield.objectives.examples import Examples
from dualfield.structures import Chain, Scores, Structure


class SlackArgmax:
    r"""Maximise Δ(y_i, y) (1 + score(y) - score(y_i)) over labellings.

    For one node all labels are tried, with any cost. For longer chains the cost is the number of wrong labels, and a
    dynamic programme finds the best labelling with d wrong labels for each d: T + 1 times the work of the best one.

    Parameters
    ----------
    chain : Chain
        The structure.
    cost : array of shape (n_labels, n_labels)
        Cost of a label (column) where another one is true (row).
    """

    def __init__(self, chain: Chain, cost: Floats) -> None:
        self._chain, self._cost = chain, cost

    @classmethod
    def of(cls, structure: Structure, loss: Loss, examples: Examples) -> SlackArgmax:
        """Return the maximisation for a loss, or raise an error that says why there is none."""
        assert loss.cost is not None
        if not isinstance(structure, Chain):
            raise ValueError(
                f"rescaling='slack' needs a chain or single nodes. Got {structure!r:.200}. Use rescaling='margin'."
            )
        reason = cls.missing(loss.cost, int(examples.nodes.lengths.max(initial=0)))
        if reason is None and (examples.fixed is not None or examples.unscored is not None):
            reason = "rescaling='slack' needs all labels to compete, and to cost something: margins do not."
        if reason is not None:
            raise ValueError(reason)
        return cls(structure, loss.cost)

    @staticmethod
    def missing(cost: Floats, longest: int) -> str | None:
        """Say why slacks cannot be rescaled by this cost; None if they can."""
        if longest > 1 and not np.array_equal(cost, 1.0 - np.eye(len(cost))):
            return "Slacks of sequences can be rescaled by the number of wrong labels only."
        return None

    def __call__(self, scores: Scores, truth: Codes) -> Codes:
        """Return the labels of all nodes."""
        found = truth.copy()
        true_scores = self._chain.score(scores, truth)
        first_edge = 0
        for i in range(scores.n_examples):
            here = slice(int(scores.offsets[i]), int(scores.offsets[i + 1]))
            size = here.stop - here.start
            if size == 1:
                found[here] = self._one(scores, here.start, truth[here.start])
            elif size > 1:
                found[here] = self._several(scores, here, first_edge, truth[here], float(true_scores[i]))
            first_edge += max(size - 1, 0)
        return found

    def _one(self, scores: Scores, at: int, true: int) -> int:
        row = scores.node[at] + self._ends(scores, first=True) + self._ends(scores, first=False)
        cost = self._cost[true]
        with np.errstate(invalid="ignore"):
            value = np.where(cost > 0, cost * (1.0 + row - row[true]), 0.0)
        return int(np.argmax(value)) if value.max() > 0 else int(true)

    def _several(self, scores: Scores, here: slice, first_edge: int, truth: Codes, true_score: float) -> Codes:
        """Forward: best[d, s] of labellings so far with d wrong labels that end in state s."""
        states, size = self._states, len(truth)
        node = scores.node[here]
        best = np.full((size + 1, states.n), -np.inf)
        wrong = (np.arange(self._chain.n_labels) != truth[0]).astype(int)
        best[wrong, states.first] = node[0] + self._ends(scores, first=True)
        candidates: list[Floats] = []
        for t in range(1, size):
            step = self._step(scores, first_edge + t - 1) + node[t, states.label]
            mistake = states.label != truth[t]
            one_less = np.vstack([np.full(states.n, -np.inf), best[:-1]])
            value = np.where(mistake, one_less[:, states.source], best[:, states.source]) + step
            candidates.append(value)
            best = np.full((size + 1, states.n), -np.inf)
            best[:, states.reached] = np.maximum.reduceat(value, states.starts, axis=1)
        best = best + self._ends(scores, first=False)[states.last_label]
        slack = np.zeros((size + 1, states.n))  # the truth, and nothing else, has no wrong label
        slack[1:] = np.arange(1, size + 1)[:, None] * (1.0 + best[1:] - true_score)
        wrongs, state = divmod(int(np.argmax(slack)), states.n)
        if wrongs == 0:
            return truth
        labels = np.empty(size, dtype=np.int32)
        for t in range(size - 1, 0, -1):
            into = np.flatnonzero(states.target == state)
            edge = into[np.argmax(candidates[t - 1][wrongs, into])]
            labels[t] = states.label[edge]
            wrongs -= int(labels[t] != truth[t])
            state = int(states.source[edge])
        labels[0] = states.last_label[state]
        return labels

    def _step(self, scores: Scores, edge: int) -> Floats:
        """Scores of all cliques at an edge, in the order of the states' edges; -inf where they may not occur.

        Score maps give transitions by clique: one row for all edges, or one for each.
        """
        transition = scores.transition
        if transition is None:
            rows = np.zeros(self._chain.n_cliques)
        else:
            rows = transition if transition.ndim == 1 else transition[edge]
        return np.where(self._chain.clique_allowed, rows, -np.inf)[self._states.order]

    def _ends(self, scores: Scores, *, first: bool) -> Floats:
        own = scores.start if first else scores.stop
        allowed = self._chain.allowed_start if first else self._chain.allowed_stop
        row = np.zeros(self._chain.n_labels) if own is None else own
        return row if allowed is None else np.where(allowed, row, -np.inf)

    @cached_property
    def _states(self) -> _States:
        return _States(self._chain)


class _States:
    """What a chain remembers: its last labels; and its cliques as edges between states, sorted by where they lead."""

    def __init__(self, chain: Chain) -> None:
        width = chain.order
        begins = np.full((chain.n_labels, width), -1, dtype=np.int32)
        begins[:, -1] = np.arange(chain.n_labels)
        windows = np.concatenate([begins, chain.cliques[:, :-1], chain.cliques[:, 1:]])
        known, at = np.unique(windows, axis=0, return_inverse=True)
        at = np.asarray(at).ravel()
        n, m = chain.n_labels, len(chain.cliques)
        target: NDArray[Any] = at[n + m :]
        self.n, self.first, self.last_label = len(known), at[:n], known[:, -1]
        self.order = np.argsort(target, kind="stable")
        self.target, self.source = target[self.order], at[n : n + m][self.order]
        self.label = chain.cliques[self.order, -1]
        self.reached, self.starts = np.unique(self.target, return_index=True)
