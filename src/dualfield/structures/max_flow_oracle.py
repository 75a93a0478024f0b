"""Answers about best labellings of graphs by maximum flow: what a native oracle answers, at T = 0."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.arrays import Codes, Floats, Ints
from dualfield.data.shapes import rows_of_examples
from dualfield.structures.max_flow import Quadratic, climb, joined, roof_dual

NO_SUMS = (
    "inference='max_flow' finds best labellings, and knows no sums over labellings. Use inference='exact' for graphs "
    "that are narrow enough, or 'trw', which bounds them."
)
_NONE_LEFT = "its -inf scores leave none."
_ONE_BEST = "inference='max_flow' finds one best labelling. Use inference='exact'."
_MOST_ROUNDS = 100  # of expansions to every label


class _Graph(NamedTuple):
    """One example, with the scores of its nodes; edge e scores pairs[rows[e]][from][to]."""

    node: Floats
    edges: NDArray[np.int32]
    rows: Ints
    pairs: Floats

    def score(self, labels: Codes) -> float:
        own = self.node[np.arange(len(labels)), labels].sum()
        return float(own + self.pairs[self.rows, labels[self.edges[:, 0]], labels[self.edges[:, 1]]].sum())

    def quadratic(self) -> Quadratic:
        """Return the score as a function of two labels."""
        return Quadratic.of(self.node[:, 1] - self.node[:, 0], self.pairs[self.rows], self.edges)

    def expansion(self, labels: Codes, label: int) -> Quadratic:
        """Return the score as a function of which nodes change to a label (1) and which do not (0)."""
        source, target = labels[self.edges[:, 0]], labels[self.edges[:, 1]]
        choices = [self.pairs[self.rows, a, b] for a in (source, label) for b in (target, label)]
        gain = self.node[:, label] - self.node[np.arange(len(labels)), labels]
        return Quadratic.of(gain, np.stack(choices, axis=1).reshape(-1, 2, 2), self.edges)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the local polytope: beliefs of nodes and edges, their score, and how much better others may be."""

    problem: Quadratic
    node: Floats
    pair: Floats
    score: float
    slack: float

    @classmethod
    def best(cls, graph: _Graph) -> _Point:
        """Return the best one for two labels."""
        problem = graph.quadratic()
        x, slack = roof_dual(problem)
        one, two = x[graph.edges[:, 0]], x[graph.edges[:, 1]]
        attracts = problem.coupling[joined(graph.edges).pair_of_edge] >= 0.0
        # Of the beliefs of an edge that agree with those of its nodes, the best ones.
        both = np.where(attracts, np.minimum(one, two), np.maximum(one + two - 1.0, 0.0))
        pair = np.stack([1.0 - one - two + both, two - both, one - both, both], axis=1).reshape(-1, 2, 2)
        node = np.stack([1.0 - x, x], axis=1)
        held = node > 0.0  # nothing of what is forbidden
        score = (node[held] * graph.node[held]).sum() + np.einsum("eab,eab->", pair, graph.pairs[graph.rows])
        return cls(problem, node, pair, float(score), slack)

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Which nodes have no label."""
        return np.asarray(self.node[:, 0] == 0.5)

    @property
    def labels(self) -> Codes:
        """The label of each node that has one, else 0."""
        return np.asarray(self.node[:, 1] == 1.0, dtype=np.int32)


class MaxFlowOracle:
    """The answers to questions about best labellings of one batch of scores.

    Two labels: one maximum flow for each example, exact where it decides every node. Nodes that it leaves undecided
    get the labels that tree-reweighted sweeps found, and are flipped as long as that gains. More labels: expansions
    (Boykov, Veksler and Zabih 2001) of the labelling of the sweeps; a node that a move leaves undecided stays as it
    is, and a move that does not gain is not made.

    Parameters
    ----------
    graph : Graph
        The structure, whose native twin makes tree-reweighted sweeps.
    shape : GraphShape
        Nodes and edges of the examples.
    node : array of shape (n_nodes, n_labels)
        Scores of nodes; -inf forbids.
    shared : array of shape (n_cliques,) or None
        Scores of label pairs that edges of a type share.
    per_edge : array of shape (n_edges, n_labels ** 2) or None
        Those that edges have of their own; then there are no shared ones.
    n_threads : int
        Number of threads of the sweeps.
    """

    def __init__(
        self, graph: Any, shape: Any, node: Floats, shared: Floats | None, per_edge: Floats | None, n_threads: int
    ) -> None:
        self._graph, self._shape, self._n_threads, self._n_labels = graph, shape, n_threads, graph.n_labels
        self._node, self._shared, self._per_edge = node, shared, per_edge
        self._types = np.zeros(shape.n_edges, dtype=np.int64) if shape.types is None else shape.types.astype(np.int64)
        rows = self._types if per_edge is None else np.arange(shape.n_edges)
        tables = np.zeros(graph.n_cliques) if shared is None else shared
        pairs = (tables if per_edge is None else per_edge).reshape(-1, self._n_labels, self._n_labels)
        cuts = (itertools.pairwise(places.tolist()) for places in (shape.offsets, shape.edge_offsets))
        self._graphs = [
            _Graph(node[a:b], shape.edges[c:d], rows[c:d], pairs) for (a, b), (c, d) in zip(*cuts, strict=True)
        ]

    @cached_property
    def points(self) -> list[_Point]:
        """The best point of the local polytope of each example; two labels only."""
        self._check()
        return [_Point.best(graph) for graph in self._graphs]

    @cached_property
    def _best(self) -> tuple[list[Codes], Floats]:
        """Labels and bounds."""
        self._check()
        if self._n_labels == 1:
            only = [np.zeros(len(graph.node), dtype=np.int32) for graph in self._graphs]
            return only, np.full(len(only), -np.inf)
        return self._decided() if self._n_labels == 2 else self._expanded()

    def _decided(self) -> tuple[list[Codes], Floats]:
        labels = [point.labels for point in self.points]
        open_ones = np.array([i for i, point in enumerate(self.points) if point.undecided.any()], dtype=np.int64)
        starts = self._cut(open_ones, self._sweeps(open_ones).argmax()) if len(open_ones) else []
        for i, swept in zip(open_ones.tolist(), starts, strict=True):
            point, graph = self.points[i], self._graphs[i]
            choices = (np.where(point.undecided, swept, labels[i]), swept)
            labels[i] = max((climb(point.problem, one, point.undecided) for one in choices), key=graph.score)
        return labels, np.array([point.score + point.slack for point in self.points])

    def _expanded(self) -> tuple[list[Codes], Floats]:
        every = np.arange(len(self._graphs))
        labels, bounds = self._sweeps(every).bounded_argmax()
        starts = self._cut(every, labels)
        return [self._expand(*one) for one in zip(self._graphs, starts, strict=True)], bounds

    def _expand(self, graph: _Graph, labels: Codes) -> Codes:
        score, idle = graph.score(labels), 0
        for label in itertools.islice(itertools.cycle(range(self._n_labels)), _MOST_ROUNDS * self._n_labels):
            changed = np.where(roof_dual(graph.expansion(labels, label)).x == 1.0, np.int32(label), labels)
            value = graph.score(changed)
            labels, score, idle = (changed, value, 0) if value > score else (labels, score, idle + 1)
            if idle == self._n_labels:
                break
        return labels

    def _sweeps(self, examples: Ints) -> _native.Oracle:
        """Return the native oracle of some examples."""
        own = [self._node[rows_of_examples(self._shape.offsets, examples)[1]]]
        if self._per_edge is not None:
            own.append(self._per_edge[rows_of_examples(self._shape.edge_offsets, examples)[1]])
        native = self._graph.native(self._shape.take(examples), with_edges=self._per_edge is not None)
        return _native.Oracle(native, own, self._shared, 1.0, self._n_threads)

    def _cut(self, examples: Ints, labels: Codes) -> list[Codes]:
        """Return the labels of each of some examples."""
        cuts = rows_of_examples(self._shape.offsets, examples)[0]
        return [labels[a:b] for a, b in itertools.pairwise(cuts.tolist())]

    def argmax(self) -> Codes:
        """Return the best labellings that were found."""
        return np.concatenate([np.zeros(0, dtype=np.int32), *self._best[0]])

    def maximum(self) -> Floats:
        """Return bounds on the scores of all labellings."""
        found = zip(self._graphs, self._best[0], self._best[1].tolist(), strict=True)
        return np.array([max(graph.score(labels), bound) for graph, labels, bound in found])

    def bounded_argmax(self) -> tuple[Codes, Floats]:
        """Return the best labellings that were found, and bounds."""
        return self.argmax(), self.maximum()

    def best_point(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return the best points of the local polytope, as :class:`dualfield.structures.BestPoints` has them."""
        if self._n_labels != 2:
            raise ValueError(
                f"inference='max_flow' finds best points for two labels only. Got {self._n_labels}. Train with "
                "inference='trw' or 'exact'."
            )
        node = np.concatenate([np.zeros((0, 2)), *(point.node for point in self.points)])
        pair = np.concatenate([np.zeros((0, 4)), *(point.pair.reshape(-1, 4) for point in self.points)])
        shared = np.zeros((len(self._graphs), self._graph.n_types, 4))
        owner = np.repeat(np.arange(len(self._graphs)), np.diff(self._shape.edge_offsets))
        np.add.at(shared, (owner, self._types), pair)
        score, slack = (np.array([getattr(point, name) for point in self.points]) for name in ("score", "slack"))
        own = np.zeros((0, 0)) if self._per_edge is None else pair
        return node, own, shared.reshape(len(shared), -1), score + slack, slack

    def score(self, labels: Codes) -> Floats:
        """Return the scores of given labellings."""
        parts = self._cut(np.arange(len(self._graphs)), labels)
        return np.array([graph.score(part) for graph, part in zip(self._graphs, parts, strict=True)])

    def possible(self) -> NDArray[np.bool_]:
        """Return which examples have a labelling: those whose nodes all have a label."""
        return np.array([not _is_impossible(graph) for graph in self._graphs], dtype=bool)

    def no_labelling(self, example: int) -> str:
        """Return why an example has no labelling."""
        return _NONE_LEFT

    def log_partition(self) -> NoReturn:
        """Refuse."""
        raise ValueError(f"log_partition needs temperature 0: {NO_SUMS}")

    def marginals(self, *_: Any) -> NoReturn:
        """Refuse."""
        raise ValueError(f"marginals needs temperature 0: {NO_SUMS}")

    def sample(self, *_: Any) -> NoReturn:
        """Refuse."""
        raise ValueError(f"sample needs temperature 0: {NO_SUMS}")

    def entropy(self) -> NoReturn:
        """Refuse."""
        raise ValueError(f"entropy has no answer: {NO_SUMS}")

    def max_marginals(self) -> NoReturn:
        """Refuse."""
        raise ValueError(f"max_marginals has no answer: {_ONE_BEST}")

    def k_best(self, _: int) -> NoReturn:
        """Refuse."""
        raise ValueError(f"k_best has no answer: {_ONE_BEST}")

    def _check(self) -> None:
        for i, graph in enumerate(self._graphs):
            pairs = graph.pairs[np.unique(graph.rows)]
            if np.isneginf(pairs).any():
                raise ValueError(
                    f"The pair scores of example {i} must be finite with inference='max_flow'. Got -inf instead. Use "
                    "inference='exact', which takes forbidden pairs."
                )
            with np.errstate(over="ignore"):
                total = np.abs(graph.node[graph.node > -np.inf]).sum() + len(graph.edges) * np.abs(pairs).max(initial=0)
            if not 4.0 * total < np.inf:
                raise ValueError(
                    f"The scores of example {i} must be finite, or -inf for what is forbidden, also added up. Got NaN "
                    "or +inf instead."
                )
            if _is_impossible(graph):
                raise ValueError(f"Example {i} has no allowed labelling: {_NONE_LEFT}")


class BestByFlow:
    """The native oracle, but for best labellings, which maximum flow finds exactly: pairs attract.

    Parameters
    ----------
    oracle : Oracle
        The native one, of tree-reweighted bounds.
    flow : callable
        Makes the oracle of maximum flow, once best labellings are asked for.
    """

    def __init__(self, oracle: _native.Oracle, flow: Callable[[], MaxFlowOracle]) -> None:
        self._oracle, self._make = oracle, flow

    @cached_property
    def _flow(self) -> MaxFlowOracle:
        return self._make()

    def argmax(self) -> Codes:
        """Return the best labellings."""
        return self._flow.argmax()

    def bounded_argmax(self) -> tuple[Codes, Floats]:
        """Return the best labellings, and their scores as bounds."""
        return self._flow.bounded_argmax()

    def maximum(self) -> Floats:
        """Return the highest scores."""
        return self._flow.maximum()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._oracle, name)


def _is_impossible(graph: _Graph) -> bool:
    return bool((graph.node.max(axis=1, initial=-np.inf) == -np.inf).any())
