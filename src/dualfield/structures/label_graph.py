"""Several labels for each row: a graph with a node for each label, which says whether the row has it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.checks import check_choice
from dualfield.data.records import Fields, Record, packed
from dualfield.structures.checks import check_int
from dualfield.structures.graph_input import FlatGraphs
from dualfield.structures.learnt_trees import mutual_information, spanning_tree

__all__ = ["LabelGraph"]

_STRUCTURES = ("none", "tree", "graph")
_MOST = 2**31 - 1  # columns of a sparse matrix


class LabelGraph:
    """Rows of a matrix that have several labels each, as graphs that every model of graphs can be trained on.

    The graph of a row has a node for each label, which is 1 if the row has the label and 0 if not. A node has the
    features of the row and a constant 1, in columns that belong to its label alone, so that every label has weights of
    its own. Every edge is a type: each pair of labels that depend on each other has its own table.

    Parameters
    ----------
    names : sequence of str or int
        The labels.
    n_features : int
        Columns of the matrix.
    edges : sequence of (int, int), default=()
        Pairs of labels that depend on each other, by their places in `names`. Without edges labels are independent.

    See Also
    --------
    dualfield.ConditionalGraphicalModel : Labels for rows with a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield import CRF
    >>> from dualfield.structures import LabelGraph
    >>> X = np.array([[1.0, 0.0], [0.9, 0.2], [0.1, 1.0], [0.0, 0.8]])
    >>> y = [("red", "round"), ("red", "round"), ("square",), ("square",)]
    >>> graph = LabelGraph.learn(y, n_features=2, structure="tree")
    >>> graph.names, graph.edges
    (['red', 'round', 'square'], [(0, 1), (0, 2)])
    >>> model = CRF("graph").fit(graph.graphs(X), graph.indicators(y))
    >>> graph.label_sets(model.predict(graph.graphs(X[:1])))
    [('red', 'round')]
    """

    def __init__(self, names: Sequence[Any], n_features: int, edges: Iterable[tuple[int, int]] = ()) -> None:
        self.names = list(names)
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"names must be different labels, one at least. Got {self.names!r:.200} instead.")
        self.n_features = check_int("LabelGraph", "n_features", n_features, 0)
        if self.n_columns > _MOST:
            raise ValueError(f"{len(self.names)} labels of {n_features} features are more than {_MOST} columns.")
        self.edges = [(int(one), int(two)) for one, two in edges]
        for edge in self.edges:
            if not 0 <= min(edge) <= max(edge) < len(self.names) or edge[0] == edge[1]:
                raise ValueError(f"edges must join two of the {len(self.names)} names. Got {edge} instead.")

    @classmethod
    def learn(cls, label_sets: Sequence[Iterable[Any]], n_features: int, structure: str = "none") -> LabelGraph:
        """Find the labels, and which of them depend on each other.

        Parameters
        ----------
        label_sets : sequence of iterables of labels
            The labels of each row; there may be none.
        n_features : int
            Columns of the matrix.
        structure : {"none", "tree", "graph"}, default="none"
            No edges, the tree of the largest mutual information (Chow and Liu), or an edge between all pairs of labels.

        Returns
        -------
        LabelGraph
            Its names are sorted.
        """
        check_choice("LabelGraph.learn", "structure", structure, _STRUCTURES)
        found = {label for labels in label_sets for label in labels}
        names = sorted(found, key=lambda label: (isinstance(label, str), label))
        alone = cls(names, n_features)
        if structure == "none" or len(names) < 2:
            return alone
        if structure == "graph":
            return cls(names, n_features, itertools.combinations(range(len(names)), 2))
        return cls(names, n_features, spanning_tree(mutual_information(alone.indicators(label_sets))))

    @property
    def n_columns(self) -> int:
        """Columns of the nodes: those of the matrix and a constant, for each label."""
        return (self.n_features + 1) * len(self.names)

    def graphs(self, X: Any) -> FlatGraphs:
        """Return the graphs of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.

        Returns
        -------
        FlatGraphs
            n graphs; feature j of label l is in column ``j * n_labels + l``, and the constant comes last.
        """
        rows: Any = scipy.sparse.csr_array(X, dtype=np.float64)
        n, width = rows.shape
        if width != self.n_features:
            raise ValueError(f"X has {width} columns; expected {self.n_features}.")
        n_labels, n_edges = len(self.names), len(self.edges)
        constant: Any = scipy.sparse.csr_array(np.ones((n, 1)))
        whole: Any = scipy.sparse.hstack([rows, constant], format="csr")
        each: Any = scipy.sparse.eye_array(n_labels)
        nodes = scipy.sparse.kron(whole, each, format="csr")
        pairs = np.array(self.edges, dtype=np.int32).reshape(-1, 2)
        return FlatGraphs(
            nodes=nodes,
            lengths=np.full(n, n_labels),
            edges=np.tile(pairs, (n, 1)),
            edge_lengths=np.full(n, n_edges),
            types=np.tile(np.arange(n_edges, dtype=np.int32), n) if n_edges else None,
        )

    def indicators(self, label_sets: Sequence[Iterable[Any]]) -> NDArray[np.int64]:
        """Return for each row and label whether the row has it; labels that are not in `names` are passed over.

        Parameters
        ----------
        label_sets : sequence of iterables of labels
            The labels of each row.

        Returns
        -------
        int array of shape (n, n_labels)
            0 and 1.
        """
        place = {name: at for at, name in enumerate(self.names)}
        found = np.zeros((len(label_sets), len(self.names)), dtype=np.int64)
        for row, labels in zip(found, label_sets, strict=True):
            row[[place[label] for label in labels if label in place]] = 1
        return found

    def label_sets(self, indicators: Iterable[Iterable[int]]) -> list[tuple[Any, ...]]:
        """Return the labels of each row.

        Parameters
        ----------
        indicators : sequence of sequences of 0 and 1
            For each row and label whether the row has it, as models predict it.

        Returns
        -------
        list of tuples
            Labels in the order of `names`.
        """
        return [tuple(itertools.compress(self.names, row)) for row in indicators]

    def record(self) -> Fields:
        """Return the record of the graph."""
        pairs = np.array(self.edges, dtype=np.int64).reshape(-1, 2)
        return {"names": packed(self.names), "n_features": self.n_features, "edges": pairs}

    @classmethod
    def from_record(cls, record: Record) -> LabelGraph:
        """Build the graph from its record, which is checked."""
        names = record.unpacked("names")
        record.check(
            isinstance(names, list) and all(type(name) in (str, int) for name in names),
            f"its {record.place('names')!r} must be a list of labels.",
        )
        edges = record.array("edges", np.int64, (None, 2)).tolist()
        try:
            return cls(names, record.integer("n_features", 0, _MOST), [(one, two) for one, two in edges])
        except ValueError as error:
            raise record.fault(f"its {record.path!r} is wrong: {error}") from None
