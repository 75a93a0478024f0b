"""Maxima over two labels by maximum flow: minimum cuts of real capacities, and the roof dual."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_flow

from dualfield.data.arrays import Codes, Floats, Ints

# SciPy counts in 32 bits with a sign. What is left of an edge and of its reverse must fit into them together.
_BITS = 30
_TOLERANCE = 1e-13  # beside what could flow at most
_MOST_ROUNDS = 30
_KEPT_NETWORKS = 16


class Network:
    """Where the capacities of edges between nodes, a source and a sink are in a sparse matrix.

    Parameters
    ----------
    n_nodes : int
        Number of nodes, beside the source and the sink.
    pairs : int array of shape (n_pairs, 2)
        Nodes that are joined, each pair once.
    """

    def __init__(self, n_nodes: int, pairs: Ints) -> None:
        self._n, size = n_nodes, n_nodes + 2
        nodes, source, sink = np.arange(n_nodes), np.full(n_nodes, n_nodes), np.full(n_nodes, n_nodes + 1)
        one, two = pairs[:, 0], pairs[:, 1]
        # Both directions are there, so that the flow that SciPy returns has the same places.
        rows = np.concatenate([source, nodes, one, two, nodes, sink])
        columns = np.concatenate([nodes, sink, two, one, source, nodes])
        order = np.argsort(rows * size + columns)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self._places = place[: 2 * n_nodes + 2 * len(pairs)]
        self._indptr = np.searchsorted(rows[order], np.arange(size + 1)).astype(np.int32)
        self._rows, self._columns = rows[order], columns[order].astype(np.int32)

    def cut(self, gain: Floats, coupling: Floats) -> tuple[NDArray[np.bool_], float]:
        r"""Minimise sum_t [gain_t]_+ (1 - x_t) + [-gain_t]_+ x_t + sum_(s, t) coupling_st |x_s - x_t|.

        Every round scales what is left of the capacities by a power of two, so that whole numbers and ties stay what
        they are, rounds it down to integers, and adds a largest flow. What
        is left on the way from the nodes with x = 1, those that the source still reaches, to the others bounds what
        could flow yet, so that larger capacities are as good as this: the next round is as much finer.

        Parameters
        ----------
        gain : array of shape (n_nodes,)
            May be infinite.
        coupling : array of shape (n_pairs,)
            At least 0.

        Returns
        -------
        x : bool array of shape (n_nodes,)
            Of all minima the one with the fewest 1.
        slack : float
            By how much the minimum may be lower: the capacity of the cut less the flow.
        """
        left = np.zeros(len(self._columns))
        left[self._places] = np.concatenate([np.maximum(gain, 0.0), np.maximum(-gain, 0.0), coupling, coupling])
        around = np.bincount(self._rows, np.where(self._columns < self._n, left, 0.0), minlength=self._n + 1)[: self._n]
        passing = np.sign(gain) * np.minimum(np.abs(gain), around)
        slack = most = float(min(np.maximum(passing, 0.0).sum(), np.maximum(-passing, 0.0).sum()))
        reached = self._reached(left > 0.0)
        for _ in range(_MOST_ROUNDS):
            if slack <= _TOLERANCE * most:
                break
            limit, shift = slack, _BITS - int(np.frexp(min(float(left.max()), slack))[1])
            with np.errstate(over="ignore"):  # what is larger is cut off anyway
                whole, most_whole = np.floor(np.ldexp(left, shift)), np.floor(np.ldexp(slack, shift))
            flow = self._flow(np.minimum(whole, most_whole))
            left = np.maximum(left - np.ldexp(flow, -shift), 0.0)
            reached = self._reached(whole - flow >= 1.0)
            slack = float(left[reached[self._rows] & ~reached[self._columns]].sum())
            if slack > 0.5 * limit:
                break  # what is left is rounding
        return reached[: self._n], slack

    def _flow(self, capacities: Floats) -> Floats:
        matrix = scipy.sparse.csr_array((capacities.astype(np.int32), self._columns, self._indptr))
        return np.asarray(maximum_flow(matrix, self._n, self._n + 1).flow.data, dtype=np.float64)

    def _reached(self, is_open: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which nodes the source reaches."""
        begins = np.concatenate([[0], np.cumsum(is_open)])[self._indptr].astype(np.int32)
        size, columns = self._n + 2, self._columns[is_open]
        graph = scipy.sparse.csr_array((np.ones(len(columns), dtype=np.int8), columns, begins), shape=(size, size))
        reached = np.zeros(size, dtype=bool)
        reached[breadth_first_order(graph, self._n, return_predecessors=False)] = True
        return reached


@lru_cache(maxsize=_KEPT_NETWORKS)
def _network(n_nodes: int, pairs: bytes) -> Network:
    return Network(n_nodes, np.frombuffer(pairs, dtype=np.int64).reshape(-1, 2))


class Joined(NamedTuple):
    """Pairs of nodes that edges join, each pair once, and the pair of each edge."""

    pairs: Ints
    pair_of_edge: Ints


def joined(edges: NDArray[np.int32]) -> Joined:
    """Return the pairs of nodes that edges join, whatever their direction."""
    return _joined(np.ascontiguousarray(edges, dtype=np.int32).tobytes())


@lru_cache(maxsize=_KEPT_NETWORKS)
def _joined(edges: bytes) -> Joined:
    ends = np.sort(np.frombuffer(edges, dtype=np.int32).reshape(-1, 2).astype(np.int64), axis=1)
    keys, pair_of_edge = np.unique(ends[:, 0] << 32 | ends[:, 1], return_inverse=True)
    return Joined(np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1), np.asarray(pair_of_edge).ravel())


class Quadratic(NamedTuple):
    r"""A function of two labels for each node, 0 and 1, that is to be maximised.

    .. math::
        \mathrm{constant} + \sum_t \mathrm{gain}_t x_t - \sum_{(s, t)} \mathrm{coupling}_{st} |x_s - x_t| .

    Couplings above zero attract: the labels of the pair like to be the same. Those below zero repel.

    Parameters
    ----------
    gain : array of shape (n_nodes,)
        Of the label 1 over 0; infinite where one of them is forbidden.
    pairs : int array of shape (n_pairs, 2)
        Each pair of nodes once.
    coupling : array of shape (n_pairs,)
        Finite.
    """

    gain: Floats
    pairs: Ints
    coupling: Floats

    @classmethod
    def of(cls, gain: Floats, tables: Floats, edges: NDArray[np.int32]) -> Quadratic:
        """Sum up gains of nodes, and tables of the label pairs of edges.

        Parameters
        ----------
        gain : array of shape (n_nodes,)
            Of label 1 over label 0 by the scores of nodes.
        tables : array of shape (n_edges, 2, 2)
            Scores of label pairs, label of the first node first.
        edges : int32 array of shape (n_edges, 2)
            The nodes; there may be several edges between two of them.
        """
        pairs, pair_of_edge = joined(edges)
        half = 0.5 * ((tables[:, 0, 0] + tables[:, 1, 1]) - (tables[:, 0, 1] + tables[:, 1, 0]))
        total = gain
        for end, alone in ((0, tables[:, 1, 0]), (1, tables[:, 0, 1])):
            total = total + np.bincount(edges[:, end], alone - tables[:, 0, 0] + half, minlength=len(gain))
        coupling: Floats = np.bincount(pair_of_edge, half, minlength=len(pairs)).astype(np.float64)
        return cls(total, pairs, coupling)


class RoofDual(NamedTuple):
    """A maximum over the local polytope.

    Parameters
    ----------
    x : array of shape (n_nodes,)
        The share of label 1: 0, 1/2 or 1. Some best labelling has the labels that are 0 or 1 here.
    slack : float
        No point of the local polytope, and so no labelling, has a higher value than that of x plus this.
    """

    x: Floats
    slack: float


def roof_dual(problem: Quadratic) -> RoofDual:
    """Maximise over the local polytope.

    Where all couplings attract, this is one minimum cut, and a best labelling. It is one, too, where flipping the
    labels of some nodes makes all of them attract, as on trees. Otherwise every node has a copy with its labels
    flipped, couplings that repel join nodes with copies, and a node that is not the contrary of its copy is undecided
    (Hammer, Hansen and Simeone 1984; Boros and Hammer 2002).

    Parameters
    ----------
    problem : Quadratic
        What is maximised.

    Returns
    -------
    RoofDual
        The point, and how far from the maximum it may be.

    Examples
    --------
    Three nodes that would all like to differ:

    >>> import numpy as np
    >>> from dualfield.structures.max_flow import Quadratic, roof_dual
    >>> pairs = np.array([[0, 1], [0, 2], [1, 2]])
    >>> roof_dual(Quadratic(np.zeros(3), pairs, -np.ones(3))).x
    array([0.5, 0.5, 0.5])
    >>> roof_dual(Quadratic(np.array([3.0, 0.0, 0.5]), pairs, -np.ones(3))).x
    array([1., 0., 1.])
    """
    gain, pairs, coupling = problem
    n, strength = len(gain), np.abs(coupling)
    repels = coupling < 0.0
    if not repels.any():
        x, slack = _cut(gain, pairs, strength)
        return RoofDual(x.astype(np.float64), slack)
    partner = pairs[:, 1] + np.where(repels, n, 0)
    copies = np.stack([pairs[:, 0] + n, (partner + n) % (2 * n)], axis=1)
    doubled = np.concatenate([np.stack([pairs[:, 0], partner], axis=1), copies])
    part = _parts(2 * n, doubled[np.tile(strength > 0.0, 2)])
    decided, flipped = part[:n] != part[n:], part[:n] > part[n:]  # the same copy in the whole part
    if decided.all():
        x, slack = _cut(np.where(flipped, -gain, gain), pairs, strength)
        return RoofDual((x ^ flipped).astype(np.float64), slack)
    x, slack = _cut(0.5 * np.concatenate([gain, -gain]), np.sort(doubled, axis=1), 0.5 * np.tile(strength, 2))
    first, second = x[:n], ~x[n:]
    # Of parts that could be decided either copy is a best labelling; they may differ where there are several. Taking
    # one for both, what it lacks counts twice.
    first, second = np.where(decided & flipped, second, first), np.where(decided & ~flipped, first, second)
    return RoofDual(0.5 * (first.astype(np.float64) + second), 2.0 * slack)


def _cut(gain: Floats, pairs: Ints, coupling: Floats) -> tuple[NDArray[np.bool_], float]:
    return _network(len(gain), np.ascontiguousarray(pairs, dtype=np.int64).tobytes()).cut(gain, coupling)


def _parts(n_nodes: int, pairs: Ints) -> NDArray[np.int32]:
    """Return the connected part of each node."""
    graph = scipy.sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_nodes, n_nodes))
    return np.asarray(connected_components(graph, directed=False)[1])


def climb(problem: Quadratic, x: Codes, free: NDArray[np.bool_]) -> Codes:
    """Flip labels of free nodes, as long as that gains: those that gain more than all of their neighbours at once.

    Parameters
    ----------
    problem : Quadratic
        What is maximised.
    x : int array of shape (n_nodes,)
        Labels to begin with.
    free : bool array of shape (n_nodes,)
        Which nodes may be flipped.

    Returns
    -------
    int array of shape (n_nodes,)
        Labels that no single flip makes better.
    """
    gain, (one, two), coupling = problem.gain, problem.pairs.T, problem.coupling
    n, x = len(gain), x.copy()
    size = np.abs(coupling)
    least = _TOLERANCE * (np.bincount(one, size, minlength=n) + np.bincount(two, size, minlength=n))
    while True:
        change = np.where(x[one] != x[two], coupling, -coupling)
        flip = (1 - 2 * x) * gain + np.bincount(one, change, minlength=n) + np.bincount(two, change, minlength=n)
        flip[~free | (flip <= least)] = 0.0
        rank = np.empty(n, dtype=np.int64)
        rank[np.argsort(flip, kind="stable")] = np.arange(n)
        highest = np.full(n, -1)
        np.maximum.at(highest, one, rank[two])
        np.maximum.at(highest, two, rank[one])
        chosen = (flip > 0.0) & (rank > highest)
        if not chosen.any():
            return x
        x[chosen] = 1 - x[chosen]
