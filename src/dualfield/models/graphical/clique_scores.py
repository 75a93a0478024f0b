"""Scores of label tuples at the cliques of some examples, with a rule for tuples that were never seen.

A score is NaN until that rule fills it in. With ``unseen="backoff"`` the scores of a clique are taken relative to its
best seen tuple (log-probabilities are relative already), and a tuple y_1 ... y_m that was not seen has

    r(y_1 ... y_m) = a + b − max(a, b, c) − cost,
    a = r(y_1 ... y_{m−1}),  b = r(y_2 ... y_m),  c = r(y_2 ... y_{m−1}), 0 for pairs

that is a + b − c, the score under which y_1 and y_m depend on each other only through what is between them, but never
above that of a part. A single label that was not seen has the lowest score of those seen, minus 1 and the cost.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from dualfield.data.arrays import Codes, Floats
from dualfield.scores.cliques import Cliques, Index, Layout, gather
from dualfield.solvers.kernel.cliques import CliqueModel

__all__ = ["CliqueTable"]

Models = Mapping[tuple[int, Hashable], CliqueModel]


@dataclass(frozen=True, eq=False)
class CliqueTable:
    """Scores of all cliques of one size.

    Attributes
    ----------
    examples : int array of shape (n,)
        The example of each clique.
    nodes : int array of shape (n, size)
        Its nodes, counted from the first one of the example; blank nodes lie outside.
    tuples : int array of shape (n_tuples, size)
        The label tuples that were seen in training, as indices of ``classes_``; n_classes stands for a blank node.
    scores : array of shape (n, n_tuples)
        Their scores, with what ``unseen`` says for tuples that were not seen for the type of the clique.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield import ConditionalGraphicalModel
    >>> X, y = [np.array([[0.0], [1.0], [0.0]])], [["a", "b", "a"]]
    >>> pairs = ConditionalGraphicalModel(1, loss="squared").fit(X, y).clique_scores(X)[1]
    >>> pairs.nodes
    array([[0, 1],
           [1, 2]])
    >>> pairs.tuples[pairs.scores.argmax(axis=1)]
    array([[0, 1],
           [1, 0]], dtype=int32)
    """

    examples: Index
    nodes: Index
    tuples: Codes
    scores: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class CliqueBank:
    """All clique models of a fitted estimator, and how they are asked."""

    models: Models
    n_labels: int
    has_blanks: bool
    kind: str  # of scores, see tuple_scores
    is_summed: bool  # whether larger cliques add up the scores of their nodes
    unseen: float | None  # None: back off
    cost: float
    n_threads: int

    @property
    def n_states(self) -> int:
        """Number of labels, that of blank nodes included."""
        return self.n_labels + int(self.has_blanks)

    @property
    def is_log(self) -> bool:
        """Whether scores are logarithms of probabilities."""
        return self.kind in ("log", "predict_proba")

    def tuples(self, size: int) -> Codes:
        """Return the tuples that any type of this size has seen; without such types, parts of larger ones."""
        seen = [model.tuples for (wide, _), model in self.models.items() if wide == size]
        if not seen:
            larger = [one.tuples for (wide, _), one in self.models.items() if wide > size]
            seen = [one[:, at : at + size] for one in larger for at in range(one.shape[1] - size + 1)]
        return np.unique(np.concatenate(seen), axis=0) if seen else np.zeros((0, size), dtype=np.int32)

    def codes(self, tuples: NDArray[Any]) -> Index:
        """Return tuples as numbers, the first label counting most."""
        code = np.zeros(len(tuples), dtype=np.int64)
        for slot in range(tuples.shape[1]):
            code = code * self.n_states + tuples[:, slot]
        return code


class CliqueScores:
    """The scores of all cliques of some examples, computed when they are asked for.

    Weights are for cliques of a size: one for all of them, or one for each.
    """

    def __init__(self, bank: CliqueBank, layout: Layout, matrix: Any, weights: Mapping[int, float | Floats]) -> None:
        self.bank, self.layout, self.matrix, self.weights = bank, layout, matrix, weights
        self._cliques: dict[int, Cliques] = {}
        self._raw: dict[int, tuple[Index, Floats]] = {}
        self._tables: dict[int, Floats] = {}
        self.is_unknown = np.zeros(layout.n_examples, dtype=bool)  # examples with a type that training did not have

    def cliques(self, size: int) -> Cliques:
        """Return the cliques of a size."""
        if size not in self._cliques:
            self._cliques[size] = self.layout.cliques(size)
        return self._cliques[size]

    def seen(self, size: int) -> tuple[Index, Floats]:
        """Return the codes of the tuples (q,) known for a size, and their scores (n, q): NaN where not seen by type."""
        if size not in self._raw:
            tuples = self.bank.tuples(size)
            self._raw[size] = (self.bank.codes(tuples), self._score(self.cliques(size), tuples))
        return self._raw[size]

    def _score(self, cliques: Cliques, tuples: Codes) -> Floats:
        bank, codes = self.bank, self.bank.codes(tuples)
        scores = np.full((len(cliques), len(tuples)), np.nan)
        for kind in np.unique(cliques.kinds).tolist():
            chosen = np.flatnonzero(cliques.kinds == kind)
            model = bank.models.get((cliques.size, cliques.keys[kind]))
            if model is None:
                # Nothing is known about this type: all tuples are alike, or are built from smaller cliques.
                self.is_unknown[cliques.owner[chosen]] = True
                if bank.unseen is not None or cliques.size == 1:
                    scores[chosen] = 0.0
                continue
            columns = np.searchsorted(codes, bank.codes(model.tuples))
            if bank.is_summed and cliques.size > 1:
                values = self._summed(cliques.singles[chosen], model.tuples)
            else:
                rows = cliques.rows[chosen]
                if self.layout.is_shared_input and bank.kind != "tied" and not model.is_summed:
                    rows = rows[:, :1]
                own = None if cliques.own is None else cliques.own[chosen]
                values = tuple_scores(model, self.matrix, rows, own, bank=bank)
            scores[np.ix_(chosen, columns)] = values
        return scores

    def _summed(self, singles: Index, tuples: Codes) -> Floats:
        """Add up the scores of the labels of a tuple at its nodes."""
        codes, scores = self.seen(1)
        table = np.full((len(scores), self.bank.n_states), np.nan)
        table[:, codes] = scores
        return np.asarray(sum(table[singles[:, slot]][:, tuples[:, slot]] for slot in range(tuples.shape[1])))

    def relative(self, size: int) -> Floats:
        """Return seen scores minus the best of their clique; logarithms of probabilities as they are."""
        scores = self.seen(size)[1]
        if self.bank.is_log and not (self.bank.is_summed and size > 1):
            return scores
        best = np.max(scores, axis=1, initial=-np.inf, where=~np.isnan(scores))
        return np.asarray(scores - np.where(np.isfinite(best), best, 0.0)[:, None])

    def backed_off(self, size: int) -> Floats:
        """Return the relative scores of all tuples, shape (n, n_states ** size): unseen ones from smaller cliques."""
        if size in self._tables:
            return self._tables[size]
        codes, scores, states = self.seen(size)[0], self.relative(size), self.bank.n_states
        if size == 1:
            lowest = np.min(scores, axis=1, initial=np.inf, where=~np.isnan(scores))
            floor = np.where(np.isfinite(lowest), lowest, 0.0) - 1.0 - self.bank.cost
            table = np.repeat(floor[:, None], states, axis=1)
        else:
            cliques = self.cliques(size)
            assert cliques.left is not None
            assert cliques.right is not None
            smaller, inner = self.backed_off(size - 1), states ** (size - 2)
            left = smaller[cliques.left].reshape(-1, states, inner, 1)
            right = smaller[cliques.right].reshape(-1, 1, inner, states)
            middle = np.zeros((len(cliques), 1, 1, 1))
            if size > 2:
                below = self.cliques(size - 1).right
                assert below is not None
                middle = self.backed_off(size - 2)[below[cliques.left]].reshape(-1, 1, inner, 1)
            top = np.maximum(np.maximum(left, right), middle)
            table = (left + right - top - self.bank.cost).reshape(len(cliques), states**size)
        rows, columns = np.nonzero(~np.isnan(scores))
        table[rows, codes[columns]] = scores[rows, columns]
        self._tables[size] = table
        return table

    def filled(self, size: int) -> Floats:
        """Return the scores of the known tuples (n, q), without weights, unseen ones by their rule."""
        codes, scores = self.seen(size)
        if self.bank.unseen is None:
            return self.backed_off(size)[:, codes]
        return np.where(np.isnan(scores), self.bank.unseen, scores)

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Bounds of the sum of the scores of seen tuples in a labelling of each example; unseen ones count as 0."""
        low, high = np.zeros(self.layout.n_examples), np.zeros(self.layout.n_examples)
        for size, weight in self.weights.items():
            owner, scores = self.cliques(size).owner, self.seen(size)[1]
            known = ~np.isnan(scores)
            low += np.bincount(owner, weight * np.min(scores, axis=1, initial=0.0, where=known), len(low))
            high += np.bincount(owner, weight * np.max(scores, axis=1, initial=0.0, where=known), len(high))
        return low, high

    @cached_property
    def barrier(self) -> float:
        """What an unseen tuple costs where it is forbidden: more than all other differences in an example together."""
        low, high = self.bounds
        return 1.0 + float(np.max(high - low, initial=0.0))

    @property
    def is_strict(self) -> bool:
        """Whether unseen tuples are forbidden."""
        return self.bank.unseen == -np.inf

    @property
    def forbidden(self) -> Floats:
        """What an unseen tuple scores in each example where it is forbidden, for the best labelling there is."""
        return np.full(self.layout.n_examples, -self.barrier if self.is_strict else 0.0)

    def is_without(self, score: Floats) -> NDArray[np.bool_]:
        """Return which examples have a forbidden tuple in a labelling of this score."""
        if not self.is_strict:
            return np.zeros(self.layout.n_examples, dtype=bool)
        return np.asarray(score < self.bounds[0] - 0.5)

    def listed(self, size: int, forbidden: Floats | float) -> Floats:
        """Return weighted scores of the known tuples and, last, of any other, shape (n, q + 1).

        `forbidden` is the score of unseen tuples where they are forbidden: a number, or one for each clique.
        """
        scores, weight, unseen = self.seen(size)[1], self._weights(size), self.bank.unseen
        assert unseen is not None
        each = np.broadcast_to(forbidden, (len(scores),))[:, None] if unseen == -np.inf else weight * unseen
        column = np.broadcast_to(each, (len(scores), 1))
        return np.concatenate([np.where(np.isnan(scores), column, weight * scores), column], axis=1)

    def _weights(self, size: int) -> Floats:
        """Return the weights of the cliques of a size as a column, of one row where all have the same."""
        return np.reshape(self.weights[size], (-1, 1))

    def table(self, size: int, forbidden: Floats | float) -> Floats:
        """Return weighted scores of all tuples, shape (n, n_states ** size), the first label counting most."""
        if self.bank.unseen is None:
            return np.asarray(self._weights(size) * self.backed_off(size))
        listed = self.listed(size, forbidden)
        table = np.repeat(listed[:, -1:], self.bank.n_states**size, axis=1)
        table[:, self.seen(size)[0]] = listed[:, :-1]
        return table


def tuple_scores(model: CliqueModel, matrix: Any, rows: Index, own: Any, *, bank: CliqueBank) -> Floats:
    """Return the score of each tuple of a model for each clique, shape (n, n_tuples).

    The kind of the bank is "kernel" for scores as they are, "log" for logarithms of a softmax over them, "tied" for
    sums over the nodes, "decision_function" or "predict_proba" for classifiers of others. A model that knows one tuple
    gives it 0. `own` are features of the cliques themselves.
    """
    n, q, kind = len(rows), len(model.tuples), bank.kind
    if model.estimator is not None:
        return _estimator_scores(model, gather(matrix, rows, own), kind)
    if model.coefficients is None or model.kernel is None:
        return np.zeros((n, q))
    if kind == "tied":
        total = np.zeros((n, q))
        for slot in range(model.size):
            block = model.coefficients[:, slot * bank.n_states : (slot + 1) * bank.n_states]
            used = np.flatnonzero(block.any(axis=1))
            each = model.kernel.scores(
                gather(matrix, rows[:, slot : slot + 1]), model.points[used], block[used], bank.n_threads
            )
            total += each[:, model.tuples[:, slot]]
        return total
    scores = model.kernel.scores(gather(matrix, rows, own), model.points, model.coefficients, bank.n_threads)
    return np.asarray(log_softmax(scores, axis=1)) if kind == "log" else scores


def _estimator_scores(model: CliqueModel, inputs: Any, kind: str) -> Floats:
    n, q = inputs.shape[0], len(model.tuples)
    if kind == "predict_proba":
        # No probability is so small that it forbids a labelling: estimated zeros are zeros of few samples.
        values = np.asarray(model.estimator.predict_proba(inputs), dtype=np.float64)
        values = np.log(np.maximum(values, np.finfo(np.float64).eps))
    else:
        values = np.asarray(model.estimator.decision_function(inputs), dtype=np.float64)
        if values.shape == (n,) and q == 2:  # the difference of the scores of the two tuples
            values = np.column_stack([-0.5 * values, 0.5 * values])
    if values.shape != (n, q):
        raise ValueError(
            f"{kind} of base_estimator must have a column for each of the {q} label tuples, shape {(n, q)}. "
            f"Got shape {values.shape} instead."
        )
    return values
