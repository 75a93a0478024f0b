"""The graph of fixed size that puts the cliques of a model together: what labels its nodes have, and how wide it is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce

import numpy as np

from dualfield.data.arrays import Codes, Floats
from dualfield.structures import FactorGraph

Clique = tuple[int, ...]

# The most numbers that the table of a clique, or of an elimination, may have for one example.
MOST_NUMBERS = 2**22
# Tuples have a number each.
MOST_TUPLES = 2**62


class FixedGraph:
    """Nodes with the labels that they had in training, and cliques as tables or as lists of the tuples that were seen.

    A list is a node of its own: its labels are the seen tuples and, last, any other. It agrees with the nodes of its
    clique or has the score of an unseen tuple. Where these are forbidden, that is the same as the table.
    """

    def __init__(
        self, labels: Sequence[Codes], cliques: Sequence[Clique], lists: Mapping[Clique, Codes], graph: FactorGraph
    ) -> None:
        self.labels, self.cliques, self.lists, self.graph = labels, cliques, lists, graph
        self._links = [
            np.where(np.vstack([tuples[:, slot, None] == labels[node], np.ones(len(labels[node]), bool)]), 0.0, -np.inf)
            for clique, tuples in lists.items()
            for slot, node in enumerate(clique)
        ]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    def tables(self, scores: Mapping[Clique, Floats]) -> list[Floats]:
        """Return what the graph adds up, from the scores of each clique.

        They are (n, all labels of its first node, ...), or (n, seen tuples and any other) where it is a list.
        """
        whole = [clique for clique in self.cliques if clique not in self.lists]
        cut = [scores[c][np.ix_(np.arange(len(scores[c])), *(self.labels[node] for node in c))] for c in whole]
        return [*cut, *(scores[clique] for clique in self.lists), *self._links]

    def argmax(self, tables: list[Floats]) -> tuple[Codes, Floats]:
        """Return the best labels of all nodes, shape (n, n_nodes), and their scores."""
        best = self.graph.argmax(tables)
        found = np.column_stack([labels[best[:, node]] for node, labels in enumerate(self.labels)])
        return found.astype(np.int32), self.graph.score(tables, best)

    def node_marginals(self, tables: list[Floats], n_labels: int) -> Floats:
        """Return the probabilities of all labels at all nodes, shape (n, n_nodes, n_labels)."""
        parts = self.graph.node_marginals(tables)
        found = np.zeros((len(parts[0]), self.n_nodes, n_labels))
        for node, labels in enumerate(self.labels):
            found[:, node, labels] = parts[node]
        return found


def put_together(n_nodes: int, n_labels: int, seen: Mapping[Clique, Codes], *, with_lists: bool) -> FixedGraph:
    """Return the graph of some cliques, each with the label tuples that were seen for its type.

    `with_lists` says whether unseen tuples are forbidden, so that lists will do where tables are too large.
    """
    labels: list[Codes] = []
    for node in range(n_nodes):
        # What no type of clique with this node has seen, the node never was.
        own = [np.unique(tuples[:, clique.index(node)]) for clique, tuples in seen.items() if node in clique]
        labels.append(reduce(np.intersect1d, own).astype(np.int32))
    sizes, cliques = [len(one) for one in labels], list(seen)
    too_large = next((clique for clique in cliques if n_labels ** len(clique) > MOST_NUMBERS), None)
    if too_large is None:
        try:
            return FixedGraph(labels, cliques, {}, FactorGraph(sizes, cliques, max_table=MOST_NUMBERS))
        except ValueError as error:
            reason = _reason(error)
    else:
        reason = f"the table of {_name(too_large)} has {n_labels ** len(too_large)} numbers, more than {MOST_NUMBERS}"
    lists = {c: seen[c] for c in cliques if len(c) > 1 and len(seen[c]) + 1 < n_labels ** len(c) < MOST_TUPLES}
    if with_lists and all(clique in lists or n_labels ** len(clique) <= MOST_NUMBERS for clique in cliques):
        try:
            return FixedGraph(labels, cliques, lists, _with_lists(sizes, cliques, lists))
        except ValueError as error:
            reason = _reason(error)
    instead = "." if with_lists else ", or unseen='-inf', for which the seen tuples are listed."
    raise ValueError(
        f"The 'graph' parameter of ConditionalGraphicalModel must have cliques that can be put together again to "
        f"predict: {reason}. Use fewer or smaller cliques, such as graph='tree'{instead}"
    )


def _reason(error: ValueError) -> str:
    """Return what is too much for a graph, without the advice: here there is no such parameter."""
    return str(error).partition(": ")[2].partition(". ")[0].replace("max_table=", "")


def _with_lists(sizes: Sequence[int], cliques: Sequence[Clique], lists: Mapping[Clique, Codes]) -> FactorGraph:
    """Return a graph that has a node for each list behind the others, linked to the nodes of its clique."""
    n = len(sizes)
    whole = [clique for clique in cliques if clique not in lists]
    own = [(n + at,) for at in range(len(lists))]
    links = [(n + at, node) for at, clique in enumerate(lists) for node in clique]
    n_labels = [*sizes, *(len(tuples) + 1 for tuples in lists.values())]
    return FactorGraph(n_labels, [*whole, *own, *links], max_table=MOST_NUMBERS)


def _name(clique: Clique) -> str:
    return f"clique {clique}" if len(clique) < 9 else f"a clique of {len(clique)} nodes"


def seen_tuples(codes: Codes, cliques: Sequence[Clique], keys: Sequence[Hashable]) -> dict[Clique, Codes]:
    """Return the tuples of labels (n, n_nodes) that the type of each clique has seen: cliques of one size and key."""
    types: dict[tuple[int, Hashable], list[Codes]] = {}
    for clique, key in zip(cliques, keys, strict=True):
        types.setdefault((len(clique), key), []).append(codes[:, list(clique)])
    found = {kind: np.unique(np.concatenate(parts), axis=0) for kind, parts in types.items()}
    return {clique: found[len(clique), key] for clique, key in zip(cliques, keys, strict=True)}
