"""Bags of instances with one label each: which instance the label speaks of is hidden."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from dualfield.data import Batch, Labels
from dualfield.data.arrays import Codes, Floats
from dualfield.objectives.latent import Completion

__all__ = ["LatentPosition"]

_TEMPLATES = 30  # instances tried for each label at the start of a run


@dataclass(frozen=True)
class LatentPosition:
    r"""Multiple-instance learning: a bag of instances has one label, and one of its instances speaks for it.

    The score of label y for a bag is :math:`\max_h \langle w_y, x_h \rangle`, h the index of an instance. Completion
    picks the best instance for the true label. X is a list of matrices with a row for each instance, or one matrix and
    ``lengths``; y has one label for each bag.

    Parameters
    ----------
    background : label or None, default="auto"
        Label of bags that have nothing in them: its score is 0, so a bag has another label if some instance scores
        above zero, the usual assumption of multiple-instance learning. "auto": of two labels that are numbers or bools
        the smaller one (0 of 0 and 1, False of False and True), else none. None: every label has weights.
    intercept : bool, default=True
        Whether instances have a constant feature more. Its weight is penalised as the others are.

    Examples
    --------
    >>> from dualfield.objectives.latent_bags import LatentPosition
    >>> LatentPosition(background="nothing")
    LatentPosition(background='nothing', intercept=True)
    """

    background: Any = "auto"
    intercept: bool = True

    def background_code(self, labels: Labels) -> int:
        """Return the code of the background label; -1 if there is none.

        Parameters
        ----------
        labels : Labels
            All labels.

        Returns
        -------
        int
            Its code.

        Examples
        --------
        >>> from dualfield.data import Labels
        >>> from dualfield.objectives.latent_bags import LatentPosition
        >>> LatentPosition().background_code(Labels.fit([0, 1]))
        0
        >>> LatentPosition("no").background_code(Labels.fit(["maybe", "no"]))
        1
        """
        names = labels.classes.tolist()
        if self.background is None:
            return -1
        if isinstance(self.background, str) and self.background == "auto" and "auto" not in names:
            # Of two strings the order says nothing about which one means that nothing is there.
            return 0 if len(names) == 2 and labels.kind != "str" else -1
        if self.background not in names:
            raise ValueError(
                f"The 'background' parameter of LatentPosition must be a label, None or 'auto'. "
                f"Got {self.background!r} instead; the labels are {names}."
            )
        return int(names.index(self.background))


@dataclass(frozen=True, eq=False)
class BagScores:
    """From weights to the scores of labels for bags."""

    n_columns: int
    n_labels: int
    background: int
    intercept: bool

    @property
    def scored(self) -> NDArray[np.int64]:
        """Labels that have weights."""
        return np.array([at for at in range(self.n_labels) if at != self.background], dtype=np.int64)

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return len(self.scored) * (self.n_columns + self.intercept)

    def coefficients(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the weights of columns, shape (n_scored, n_columns), and the intercepts."""
        table = w.reshape(len(self.scored), self.n_columns + self.intercept)
        return table[:, : self.n_columns], table[:, -1] if self.intercept else np.zeros(len(table))

    def instances(self, w: Floats, batch: Batch) -> Floats:
        """Return the scores of all instances, shape (n_instances, n_labels)."""
        weights, intercepts = self.coefficients(w)
        scores = np.zeros((batch.n_nodes, self.n_labels))
        scores[:, self.scored] = rows_of(batch) @ weights.T + intercepts
        return scores

    def features(self, batch: Batch, codes: Codes, shares: scipy.sparse.csr_array) -> Floats:
        """Return the features of labelled bags, given the share of each instance in them, shape (bags, instances)."""
        at = np.full(self.n_labels, -1)
        at[self.scored] = np.arange(len(self.scored))
        bags = np.flatnonzero(at[codes] >= 0)
        chosen = scipy.sparse.csr_array(
            (np.ones(len(bags)), (at[codes[bags]], bags)), shape=(len(self.scored), len(codes))
        )
        by_instance = chosen @ shares
        table = np.zeros((len(self.scored), self.n_columns + self.intercept))
        product: Any = by_instance @ rows_of(batch)
        table[:, : self.n_columns] = product if isinstance(product, np.ndarray) else product.toarray()
        if self.intercept:
            table[:, -1] = by_instance.sum(axis=1)
        return table.ravel()


def rows_of(batch: Batch) -> Any:
    """Return the rows of a batch, dense or sparse."""
    return batch.dense if batch.dense is not None else batch.to_csr()


def best_in_bags(scores: Floats, offsets: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
    """Return the largest score of each label in each bag, and which instance of the bag has it; the first of equals."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    best = np.maximum.reduceat(scores, starts, axis=0)
    place = np.arange(len(scores))[:, None] - np.repeat(starts, lengths)[:, None]
    reached = np.where(scores == np.repeat(best, lengths, axis=0), place, len(scores))
    return best, np.minimum.reduceat(reached, starts, axis=0)


@dataclass(frozen=True, eq=False)
class BagProblem:
    """Bags with their labels, as the concave-convex procedure sees them.

    Parameters
    ----------
    scores : BagScores
        The score map.
    batch : Batch
        Bags.
    codes : int32 array of shape (n_bags,)
        Their labels.
    weights : array of shape (n_bags,)
        c_i.
    cost : array of shape (n_labels, n_labels)
        Cost of a label (column) where another is true (row).
    """

    scores: BagScores
    batch: Batch
    codes: Codes
    weights: Floats
    cost: Floats

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self.scores.n_parameters

    def loss_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return the first term, and a subgradient."""
        best, at = best_in_bags(self.scores.instances(w, self.batch), self.batch.offsets)
        augmented = best + self.cost[self.codes]
        labels, bags = augmented.argmax(axis=1).astype(np.int32), np.arange(len(self.codes))
        gradient = self.scores.features(self.batch, labels, self._shares(at[bags, labels]))
        return float(self.weights @ augmented[bags, labels]), gradient

    def loss(self, w: Floats) -> float:
        """Return the first term."""
        best = np.maximum.reduceat(self.scores.instances(w, self.batch), self.batch.offsets[:-1], axis=0)
        return float(self.weights @ (best + self.cost[self.codes]).max(axis=1))

    def complete(self, w: Floats, temperature: float = 0.0) -> Completion:
        """Return the best instance of each bag for its label; -1 for the background label."""
        scores, offsets, bags = self.scores.instances(w, self.batch), self.batch.offsets, np.arange(len(self.codes))
        at = best_in_bags(scores, offsets)[1][bags, self.codes]
        states = np.where(self._silent, -1, at)
        if temperature == 0.0:
            return self.given(states)
        own = scores[np.arange(len(scores)), np.repeat(self.codes, self.batch.lengths)] / temperature
        pieces = self.batch.split(own)
        sums = np.array([logsumexp(piece) for piece in pieces])
        shares = np.exp(own - np.repeat(sums, self.batch.lengths)) * np.repeat(self.weights, self.batch.lengths)
        matrix = scipy.sparse.csr_array((shares, np.arange(len(own)), offsets), shape=(len(bags), len(own)))
        features = self.scores.features(self.batch, self.codes, matrix)
        value = temperature * float(self.weights @ np.where(self._silent, 0.0, sums))
        return Completion(states, features, value - float(w @ features), temperature)

    def given(self, states: ArrayLike) -> Completion:
        """Return the completion with these instances."""
        places = np.asarray(states)
        return Completion(
            np.where(self._silent, -1, places),
            self.scores.features(self.batch, self.codes, self._shares(np.maximum(places, 0))),
        )

    def templates(self, random_state: Any) -> Floats:
        """Return weights that look for one instance of each label: of some drawn ones, that which parts bags best.

        Random instances of the true labels would not do: other labels have the best of many, and weights of zero would
        be hard to beat.
        """
        rows, owner = rows_of(self.batch), np.repeat(self.codes, self.batch.lengths)
        centre = np.asarray(rows.mean(axis=0)).ravel()
        table = np.zeros((len(self.scores.scored), self.scores.n_columns + self.scores.intercept))
        for at, label in enumerate(self.scores.scored.tolist()):
            drawn = random_state.choice(np.flatnonzero(owner == label), size=_TEMPLATES)
            chosen: Any = rows[drawn]
            patterns = (chosen if isinstance(chosen, np.ndarray) else chosen.toarray()) - centre
            best = np.maximum.reduceat(np.asarray(rows @ patterns.T), self.batch.offsets[:-1], axis=0)
            own, other = best[self.codes == label], best[self.codes != label]
            apart = own.mean(axis=0) - other.mean(axis=0)
            winner = int((apart / (own.std(axis=0) + other.std(axis=0) + 1e-12)).argmax())
            scale = 2.0 / max(float(apart[winner]), 1e-3 * float(np.abs(best[:, winner]).max()), 1e-12)
            table[at, : self.scores.n_columns] = scale * patterns[winner]
            if self.scores.intercept:  # half way between the bags of the label and the others
                table[at, -1] = -0.5 * scale * float(own[:, winner].mean() + other[:, winner].mean())
        return table.ravel()

    @cached_property
    def _silent(self) -> NDArray[np.bool_]:
        return np.asarray(self.codes == self.scores.background)

    def _shares(self, places: NDArray[Any]) -> scipy.sparse.csr_array:
        """Return the weight of each bag at one of its instances."""
        bags = len(self.codes)
        at = self.batch.offsets[:-1] + places
        return scipy.sparse.csr_array((self.weights, at, np.arange(bags + 1)), shape=(bags, self.batch.n_nodes))
