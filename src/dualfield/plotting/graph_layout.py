"""Where the nodes of a graph are drawn: in layers if it is a forest, else as far apart as they are in the graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Points = NDArray[np.float64]

_SWEEPS = 200  # of stress majorisation


def layout(n_nodes: int, edges: NDArray[np.int32]) -> Points:
    """Return a place for each node, about one unit from its neighbours; y grows downwards.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.plotting.graph_layout import layout
    >>> layout(3, np.array([[0, 1], [0, 2]]))
    array([[0.5, 0. ],
           [0. , 1. ],
           [1. , 1. ]])
    """
    parents = _parents(n_nodes, edges)
    return _layered(parents) if parents is not None else _spread(n_nodes, edges)


def _parents(n_nodes: int, edges: NDArray[np.int32]) -> list[int] | None:
    """Return the parent of each node, -1 for roots, where edges lead from parents to children; None elsewhere."""
    parents = [-1] * n_nodes
    children: list[list[int]] = [[] for _ in parents]
    for parent, child in edges.tolist():
        if parents[child] >= 0 or parent == child:
            return None
        parents[child] = parent
        children[parent].append(child)
    below = [node for node, parent in enumerate(parents) if parent < 0]
    for node in below:  # which grows as it goes
        below += children[node]
    return parents if len(below) == n_nodes else None  # nodes on a circle are below no root


def _layered(parents: list[int]) -> Points:
    """Put leaves side by side, parents above the middle of their children, and trees one beside the other."""
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(node)
    places = np.zeros((len(parents), 2))
    next_leaf = 0.0
    for root in [node for node, parent in enumerate(parents) if parent < 0]:
        waiting = [(root, 0)]
        order = []
        while waiting:
            node, depth = waiting.pop()
            places[node, 1] = depth
            order.append(node)
            waiting += [(child, depth + 1) for child in reversed(children[node])]
        for node in order:
            if not children[node]:
                places[node, 0], next_leaf = next_leaf, next_leaf + 1.0
        for node in reversed(order):
            if children[node]:
                places[node, 0] = np.mean([places[child, 0] for child in children[node]])
    return places


def _spread(n_nodes: int, edges: NDArray[np.int32]) -> Points:
    """Place nodes so that distances are near those in the graph: stress majorisation (Gansner, Koren, North 2004)."""
    from scipy.sparse.csgraph import shortest_path

    ones = np.ones(len(edges))
    links = scipy.sparse.csr_array((ones, (edges[:, 0], edges[:, 1])), shape=(n_nodes, n_nodes))
    wanted = shortest_path(links, directed=False, unweighted=True)
    near = np.isfinite(wanted)
    wanted[~near] = wanted[near].max(initial=1.0) + 1.0  # parts that are not connected stay apart
    np.fill_diagonal(wanted, 1.0)
    weights = wanted**-2.0
    np.fill_diagonal(weights, 0.0)
    angles = 2.0 * np.pi * np.arange(n_nodes) / max(n_nodes, 1)
    places = np.column_stack([np.cos(angles), np.sin(angles)]) * max(n_nodes, 1) / (2.0 * np.pi)
    # A start that is no mirror image of itself: places on an axis would never leave it.
    places += 0.01 * np.column_stack([np.cos(3.0 + angles**2), np.sin(1.0 + 2.0 * angles**2)])
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_SWEEPS):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-9)
        pulls = weights * wanted / distance
        places = inverse @ ((np.diag(pulls.sum(axis=1)) - pulls) @ places)
    return _turned(places)


def _turned(places: Points) -> Points:
    """Turn places so that they are wide rather than high."""
    if len(places) < 3:
        return np.asarray(places - places.min(axis=0, initial=0.0))
    centred = places - places.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    turned = centred @ axes[:, ::-1]
    return np.asarray(turned * np.where(turned[np.abs(turned).argmax(axis=0), [0, 1]] < 0.0, -1.0, 1.0))
