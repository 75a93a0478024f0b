"""Conditional random fields by enumeration: every labelling of every sequence is a row of features.

Nothing here is clever. A labelling has a feature vector, its score is a dot product; losses, gradients, marginals are
sums over all rows. Parameters are one flat vector: nodes [d][K], windows [W], start [K], stop [K], pairs [e][W].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
import scipy.optimize
from scipy.special import logsumexp


@dataclass
class Example:
    """x [T][d], z [T][e], one true label for each node, or the set of labels that it may have."""

    x: np.ndarray
    truth: list
    z: np.ndarray | None = None
    weight: float = 1.0

    def agrees(self, labels: tuple[int, ...]) -> bool:
        """Whether a labelling is one of those that the truth leaves open."""
        sets = [true if isinstance(true, (set, frozenset)) else {true} for true in self.truth]
        return all(label in choices for label, choices in zip(labels, sets, strict=True))


@dataclass
class ChainCRF:
    """``allowed`` are whole windows of order + 1 labels, ``exists`` masks the parameters; None: all of them."""

    n_labels: int
    n_columns: int
    order: int = 1
    n_pair_columns: int = 0
    allowed: set[tuple[int, ...]] | None = None
    allowed_start: set[int] | None = None
    allowed_stop: set[int] | None = None
    cost: np.ndarray | None = None
    temperature: float = 1.0
    exists: np.ndarray | None = None
    windows: list[tuple[int, ...]] = field(init=False)
    places: dict[tuple[int, ...], int] = field(init=False)

    def __post_init__(self) -> None:
        sizes = range(2, self.order + 2)
        self.windows = [w for size in sizes for w in product(range(self.n_labels), repeat=size) if self.may_occur(w)]
        self.places = {window: at for at, window in enumerate(self.windows)}

    def may_occur(self, window: tuple[int, ...]) -> bool:
        """A short window at the start of a sequence must be part of an allowed one."""
        if self.allowed is None:
            return True
        size = len(window)
        return any(whole[at : at + size] == window for whole in self.allowed for at in range(self.order + 2 - size))

    @property
    def cuts(self) -> list[int]:
        """Where the blocks of the vector of parameters begin and end."""
        n = self.n_labels
        sizes = [self.n_columns * n, len(self.windows), n, n, self.n_pair_columns * len(self.windows)]
        return np.concatenate([[0], np.cumsum(sizes)]).tolist()

    @property
    def size(self) -> int:
        return self.cuts[-1]

    def blocks(self, w: np.ndarray) -> list[np.ndarray]:
        """Views of the five blocks."""
        node, window, start, stop, pair = (w[a:b] for a, b in zip(self.cuts[:-1], self.cuts[1:], strict=True))
        return [node.reshape(-1, self.n_labels), window, start, stop, pair.reshape(-1, len(self.windows))]

    def features(self, example: Example, labels: tuple[int, ...]) -> np.ndarray:
        vector = np.zeros(self.size)
        node, window, start, stop, pair = self.blocks(vector)
        for t, label in enumerate(labels):
            node[:, label] += example.x[t]
            if t == 0:
                continue
            at = self.places[labels[max(0, t - self.order) : t + 1]]
            window[at] += 1.0
            if example.z is not None:
                pair[:, at] += example.z[t]
        if labels:
            start[labels[0]] += 1.0
            stop[labels[-1]] += 1.0
        return vector if self.exists is None else vector * self.exists

    def labellings(self, length: int) -> list[tuple[int, ...]]:
        return [y for y in product(range(self.n_labels), repeat=length) if self.is_allowed(y)]

    def is_allowed(self, labels: tuple[int, ...]) -> bool:
        inside = all(self.may_occur(labels[max(0, t - self.order) : t + 1]) for t in range(1, len(labels)))
        first = not labels or self.allowed_start is None or labels[0] in self.allowed_start
        last = not labels or self.allowed_stop is None or labels[-1] in self.allowed_stop
        return inside and first and last

    def table(self, example: Example) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features of all labellings [Y][p], their costs [Y], and which of them agree with the truth [Y]."""
        everything = self.labellings(len(example.x))
        rows = np.array([self.features(example, y) for y in everything]).reshape(len(everything), self.size)
        agree = np.array([example.agrees(y) for y in everything])
        costs = np.zeros(len(everything))
        if self.cost is not None:
            costs = np.array([sum(self.cost[a, b] for a, b in zip(example.truth, y, strict=True)) for y in everything])
        return rows, costs, agree


@dataclass
class Objective:
    """(1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + sum_i c_i loss_i(w), with the tables of all examples kept."""

    model: ChainCRF
    examples: list[Example]
    l1_ratio: float = 0.0

    def __post_init__(self) -> None:
        self.tables = [self.model.table(example) for example in self.examples]
        self.rows, self.costs, self.agree = (np.concatenate(parts) for parts in zip(*self.tables, strict=True))
        self.counts = np.array([len(costs) for _, costs, _ in self.tables])
        self.starts = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        self.weights = np.array([example.weight for example in self.examples])

    def _log_sums(self, scores: np.ndarray) -> np.ndarray:
        """log sum exp over the labellings of each example."""
        highest = np.maximum.reduceat(scores, self.starts)
        return highest + np.log(np.add.reduceat(np.exp(scores - np.repeat(highest, self.counts)), self.starts))

    def losses(self, w: np.ndarray) -> np.ndarray:
        """Each loss, without its weight."""
        scores = (self.rows @ w + self.costs) / self.model.temperature
        return self.model.temperature * (self._log_sums(scores) - self._log_sums(np.where(self.agree, scores, -np.inf)))

    def loss_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Gradient of each loss: mean features of all labellings minus those of the ones that agree with the truth."""
        scores = (self.rows @ w + self.costs) / self.model.temperature
        change = np.zeros_like(scores)
        for sign, choice in ((1.0, scores), (-1.0, np.where(self.agree, scores, -np.inf))):
            change += sign * np.exp(choice - np.repeat(self._log_sums(choice), self.counts))
        return float(self.weights @ self.losses(w)), (np.repeat(self.weights, self.counts) * change) @ self.rows

    def penalty(self, w: np.ndarray) -> float:
        return float((1 - self.l1_ratio) / 2 * w @ w + self.l1_ratio * np.abs(w).sum())

    def value(self, w: np.ndarray) -> float:
        return self.penalty(w) + self.loss_and_gradient(w)[0]

    def minimum(self, start: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        """SciPy's L-BFGS-B on w = a - b with a, b >= 0, or on w itself where absolute values are not penalised."""
        ridge, lasso, n = 1 - self.l1_ratio, self.l1_ratio, self.model.size
        begin = np.zeros(n) if start is None else start

        def smooth(w: np.ndarray) -> tuple[float, np.ndarray]:
            loss, gradient = self.loss_and_gradient(w)
            return loss + ridge / 2 * float(w @ w), gradient + ridge * w

        def split(ab: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = smooth(ab[:n] - ab[n:])
            return value + lasso * float(ab.sum()), np.concatenate([gradient + lasso, lasso - gradient])

        options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": 1e-11, "maxcor": 30}
        if lasso == 0.0:
            found = scipy.optimize.minimize(smooth, begin, jac=True, method="L-BFGS-B", options=options)
            return float(found.fun), found.x
        first = np.concatenate([np.maximum(begin, 0), np.maximum(-begin, 0)])
        bounds = [(0.0, None)] * (2 * n)
        found = scipy.optimize.minimize(split, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        w = found.x[:n] - found.x[n:]
        return self.value(w), w


def marginals(model: ChainCRF, w: np.ndarray, example: Example) -> tuple[np.ndarray, np.ndarray]:
    """Probability of each label at each node [T][K], and of each pair of neighbours [T - 1][K][K]; no cost."""
    everything = model.labellings(len(example.x))
    scores = np.array([model.features(example, y) @ w for y in everything]) / model.temperature
    nodes = np.zeros((len(example.x), model.n_labels))
    pairs = np.zeros((max(len(example.x) - 1, 0), model.n_labels, model.n_labels))
    for p, y in zip(np.exp(scores - logsumexp(scores)), everything, strict=True):
        for t, label in enumerate(y):
            nodes[t, label] += p
            if t > 0:
                pairs[t - 1, y[t - 1], label] += p
    return nodes, pairs
