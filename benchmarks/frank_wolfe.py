"""Block-coordinate Frank-Wolfe for the hinge on chains, as published: a yardstick in NumPy."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.crf_data import Corpus


class Words:
    """Words as matrices of zeros and ones, and the two things the method asks of them."""

    def __init__(self, corpus: Corpus) -> None:
        names = sorted({label for labels in corpus.y for label in labels})
        columns = sorted({name for items in corpus.X for item in items for name in item})
        codes = {name: code for code, name in enumerate(names)}
        places = {name: at for at, name in enumerate(columns)}
        self.k, self.d, self.words = len(names), len(columns), []
        for items, labels in zip(corpus.X, corpus.y, strict=True):
            x = np.zeros((len(items), len(columns)))
            for t, item in enumerate(items):
                x[t, [places[name] for name in item]] = 1.0
            self.words.append((x, np.array([codes[label] for label in labels])))

    @property
    def size(self) -> int:
        return self.k * (self.d + self.k)

    def features(self, x: Any, y: Any) -> Any:
        node, edges = np.zeros((self.k, self.d)), np.zeros((self.k, self.k))
        np.add.at(node, y, x)
        np.add.at(edges, (y[:-1], y[1:]), 1.0)
        return np.concatenate([node.ravel(), edges.ravel()])

    def best(self, w: Any, x: Any, y: Any) -> tuple[Any, float]:
        """The labelling of the largest score and cost, and both of them together."""
        cut = self.k * self.d
        scores, edges = x @ w[:cut].reshape(self.k, self.d).T + 1.0, w[cut:].reshape(self.k, self.k)
        scores[np.arange(len(y)), y] -= 1.0
        back, row = np.zeros((len(y), self.k), dtype=int), scores[0]
        for t in range(1, len(y)):
            options = row[:, None] + edges
            back[t] = options.argmax(axis=0)
            row = options.max(axis=0) + scores[t]
        labels = [int(row.argmax())]
        for t in range(len(y) - 1, 0, -1):
            labels.append(int(back[t][labels[-1]]))
        return np.array(labels[::-1]), float(row.max())


def frank_wolfe(corpus: Corpus, penalty: float, n_passes: int, gaps: Sequence[float]) -> dict[str, Any]:
    """Lacoste-Julien et al. 2013, algorithm 4: exact line search, weighted averages; looks at the gap are not timed."""
    data, random = Words(corpus), np.random.default_rng(0)
    n = len(data.words)
    w, mean, part = np.zeros(data.size), np.zeros(data.size), np.zeros((n, data.size))
    truths = [data.features(x, y) for x, y in data.words]
    losses, step, seconds, gap, passes = np.zeros(n), 0, 0.0, np.inf, 0
    arrived: list[float | None] = [None] * len(gaps)
    while passes < n_passes and arrived[-1] is None:
        began = time.perf_counter()
        for i in random.permutation(n):
            x, y = data.words[i]
            guess, _ = data.best(w, x, y)
            cost = float((guess != y).sum())
            move = part[i] - (truths[i] - data.features(x, guess)) / penalty
            below = penalty * float(move @ move)
            rise = penalty * float(move @ w) - losses[i] + cost
            share = min(1.0, max(0.0, rise / below)) if below > 0.0 else 0.0
            w -= share * move
            part[i] -= share * move
            losses[i] += share * (cost - losses[i])
            step += 1
            mean += 2.0 / (step + 1.0) * (w - mean)
        seconds += time.perf_counter() - began
        passes += 1
        dual = float(losses.sum()) - 0.5 * penalty * float(w @ w)
        primal = 0.5 * penalty * float(mean @ mean)
        primal += sum(data.best(mean, x, y)[1] - float(mean @ t) for (x, y), t in zip(data.words, truths, strict=True))
        gap = (primal - dual) / dual
        arrived = [seconds if known is None and gap <= aim else known for known, aim in zip(arrived, gaps, strict=True)]
    return {"seconds": arrived, "gap": gap, "passes": passes}
