"""Random chain problems for Hypothesis, in the library's form and in the enumeration's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dualfield.structures import Chain, Scores
from tests.reference.enumeration import Sequence


@dataclass
class Problem:
    chain: Chain
    scores: Scores
    cost: np.ndarray | None
    sequences: list[Sequence]  # the same, for enumeration; cost added to the node scores

    def rows(self, example: int) -> slice:
        return slice(*self.scores.offsets[example : example + 2])

    def edges(self, example: int) -> slice:
        first = int(np.maximum(self.scores.lengths[:example] - 1, 0).sum())
        return slice(first, first + max(0, int(self.scores.lengths[example]) - 1))

    @property
    def solvable(self) -> bool:
        return all(sequence.labellings() for sequence in self.sequences)


@st.composite
def problems(draw, scale=3.0, max_labels=3, max_length=5, max_order=3, integers=False, forbid=True, dead_end=False):
    """Sizes, orders, masks, which of the optional scores are there: all drawn; the numbers from a drawn seed."""
    n_labels = draw(st.integers(1, max_labels))
    order = draw(st.integers(1, max_order))
    lengths = draw(st.lists(st.integers(0, max_length), min_size=1, max_size=7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def numbers(*shape):
        return rng.integers(-2, 3, size=shape).astype(float) if integers else scale * rng.standard_normal(shape)

    allowed = None
    if forbid and draw(st.booleans()):
        table = rng.random((n_labels,) * (order + 1)) < 0.8
        allowed = table if draw(st.booleans()) else np.argwhere(table)
    flags = [rng.random(n_labels) < 0.8 if forbid and draw(st.booleans()) else None for _ in range(2)]
    chain = Chain(n_labels, order, allowed, *flags)

    offsets = np.concatenate([[0], np.cumsum(lengths)])
    node = numbers(offsets[-1], n_labels)
    if forbid and draw(st.booleans()):
        node[rng.random(node.shape) < 0.1] = -np.inf
    if dead_end and len(node):
        node[rng.integers(len(node))] = -np.inf
    n_edges = sum(max(0, length - 1) for length in lengths)
    kind = draw(st.sampled_from(["none", "table", "cliques", "edge tables", "edge cliques"]))
    shape = (n_labels,) * (order + 1) if "table" in kind else (chain.n_cliques,)
    transition = None if kind == "none" else numbers(*((n_edges,) if "edge" in kind else ()), *shape)
    start, stop = (numbers(n_labels) if draw(st.booleans()) else None for _ in range(2))
    cost = numbers(*node.shape) if draw(st.booleans()) else None
    scores = Scores(node, offsets, transition, start=start, stop=stop)

    return Problem(
        chain, scores, cost, [_sequence(chain, scores, cost, i, "edge" in kind) for i in range(len(lengths))]
    )


def _sequence(chain: Chain, scores: Scores, cost: np.ndarray | None, example: int, per_edge: bool) -> Sequence:
    begin, end = scores.offsets[example : example + 2]
    node = scores.node[begin:end] + (0.0 if cost is None else cost[begin:end])
    first_edge = int(np.maximum(scores.lengths[:example] - 1, 0).sum())
    whole = _allowed_windows(chain)
    listed = {tuple(int(v) for v in row if v >= 0): c for c, row in enumerate(chain.cliques)}

    def window(t, labels):
        if not _may_occur(labels, whole, chain.order):
            return None
        part = scores.transition
        if part is None:
            return 0.0
        if per_edge:
            part = part[first_edge + t - 1]
        if part.ndim == 1:
            return float(part[listed[labels]])
        return float(part[labels]) if len(labels) == chain.order + 1 else 0.0

    def ends(values, flags):
        values = np.zeros(chain.n_labels) if values is None else values
        return list(values if flags is None else np.where(flags, values, -np.inf))

    return Sequence(
        node.tolist(),
        window,
        chain.order,
        ends(scores.start, chain.allowed_start),
        ends(scores.stop, chain.allowed_stop),
    )


def _allowed_windows(chain: Chain) -> set[tuple[int, ...]] | None:
    if chain.allowed is None:
        return None
    rows = np.argwhere(chain.allowed) if chain.allowed.dtype == bool else chain.allowed
    return {tuple(int(v) for v in row) for row in rows}


def _may_occur(labels, whole, order) -> bool:
    if whole is None:
        return True
    if len(labels) == order + 1:
        return labels in whole
    size = len(labels)  # a short window at the start must be part of an allowed one
    return any(row[at : at + size] == labels for row in whole for at in range(order + 2 - size))
