"""Rooted trees of any shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.opened import Opened
from dualfield.structures.pairwise import Pairwise, check_flags, integers, read_tuples

__all__ = ["Tree", "TreeShape"]


@dataclass(frozen=True, eq=False)
class TreeShape(Shape):
    """How the nodes of trees are connected.

    Parameters
    ----------
    offsets : int64 array of shape (n_examples + 1,)
        Example i has nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    parents : int32 array of shape (n_nodes,)
        The parent of each node, counted from the first node of its example; -1 for a root. There may be several roots.
    types : int32 array of shape (n_nodes,), default=None
        The type of the edge to the parent; None: all are 0. That of a root says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import TreeShape
    >>> TreeShape(np.array([0, 3]), np.array([-1, 0, 0], dtype=np.int32)).n_nodes
    3
    """

    parents: NDArray[np.int32]
    types: NDArray[np.int32] | None = None

    def _taken(self, offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> Self:
        return type(self)(offsets, self.parents[rows], None if self.types is None else self.types[rows])


class Tree(Pairwise):
    r"""A rooted tree in which every label depends on that of its parent.

    .. math::
        \mathrm{score}(y) = \sum_t \mathrm{node}[t, y_t] +
        \sum_{t \text{ not a root}} \mathrm{transition}[\mathrm{type}_t, y_{\mathrm{parent}(t)}, y_t] +
        \sum_{t \text{ a root}} \mathrm{start}[y_t]

    Every example has its own shape, and may have several roots. Inference is exact, in time proportional to the
    number of nodes times n_labels². Among equally good labellings :meth:`argmax` gives the one with the lowest labels
    of roots, then of their children, and so on.

    In estimators an example of X is a tuple ``(nodes, parents)`` or ``(nodes, parents, types)``: the nodes as for
    sequences, for each of them its parent, -1 for a root, and the type of the edge to it. With ``pair_features`` the
    features of a node also score the pair of its parent's label and its own; with ``start_stop`` the labels of roots
    have weights.

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels. None: not known yet, for models that find them in their training data.
    n_types : int, default=None
        Number of edge types, each with its own table. None: 1, or in models as many as the training data have.
    allowed : bool array of shape (n_labels, n_labels) or (n_types, n_labels, n_labels), default=None
        Which labels a child (column) may have below a parent (row). None: all.
    allowed_root : bool array of shape (n_labels,), default=None
        Which labels a root may have. None: all.

    Examples
    --------
    A root with two children that like to have its label:

    >>> import numpy as np
    >>> from dualfield.structures import Scores, Tree, TreeShape
    >>> shape = TreeShape(np.array([0, 3]), np.array([-1, 0, 0], dtype=np.int32))
    >>> scores = Scores([[0.0, 1.0], [0.5, 0.0], [0.0, 0.0]], transition=[[1.0, 0.0], [0.0, 1.0]], shape=shape)
    >>> Tree(2).argmax(scores)
    array([1, 1, 1], dtype=int32)
    >>> Tree(2).log_partition(scores).round(4)
    array([4.167])
    """

    name = "tree"
    n_ends = 1
    _edge_by_edge = "one for the edge of each node to its parent"

    def __init__(
        self,
        n_labels: int | None = None,
        n_types: int | None = None,
        allowed: ArrayLike | None = None,
        allowed_root: ArrayLike | None = None,
    ) -> None:
        super().__init__(n_labels, n_types, allowed)
        if n_labels is None and allowed_root is not None:
            raise ValueError("Tree needs n_labels to say which labels are allowed.")
        self.allowed_root = check_flags("Tree", "allowed_root", allowed_root, [(self.n_labels,)])

    def _like(self, n_labels: int, n_types: int, allowed: ArrayLike | None) -> Tree:
        return Tree(n_labels, n_types, allowed)

    def _types(self, shape: Shape) -> NDArray[np.int32] | None:
        return shape.types if isinstance(shape, TreeShape) else None

    def _n_edges(self, shape: Shape) -> int:
        return shape.n_nodes

    def _settings(self) -> tuple[Any, ...]:
        return *super()._settings(), None if self.allowed_root is None else self.allowed_root.tobytes()

    def record(self) -> Fields:
        """Return the record of the tree."""
        return {**super().record(), "allowed_root": self.allowed_root}

    @classmethod
    def from_record(cls, record: Record) -> Tree:
        """Build a tree from its record, which is checked."""
        record.text("kind", (cls.name,))
        roots = np.array(record.array("allowed_root")) if record.has("allowed_root") else None
        return cls(*cls._read_tables(record), roots)

    def over_states(self, label: NDArray[np.int64]) -> Tree:
        """Return the tree over states that belong to labels."""
        found = super().over_states(label)
        roots = None if self.allowed_root is None else self.allowed_root[label]
        return Tree(found.n_labels, found.n_types, found.allowed, roots)

    @property
    def is_free(self) -> bool:
        """Whether every labelling is allowed."""
        return super().is_free and self.allowed_root is None

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.TreeStructure:
        """Create the native twin for trees of given shapes."""
        if not isinstance(shape, TreeShape):
            raise ValueError("Tree needs the parents of the nodes: pass a TreeShape.")
        self._check_types(shape.types)
        limits = self._limits()
        roots = None if self.allowed_root is None else np.where(self.allowed_root, 0.0, -np.inf)
        return _native.TreeStructure(
            self.n_labels, shape.offsets, shape.parents, shape.types, self.n_types, with_edges, with_ends, limits, roots
        )

    def edge_nodes(self, shape: Shape) -> NDArray[np.int64]:
        """Return all nodes: each has a row for the edge to its parent, which says nothing for a root."""
        return np.arange(shape.n_nodes)

    def edge_ends(self, shape: Shape) -> NDArray[np.int64]:
        """Return the parent of each node and the node; a root twice."""
        if not isinstance(shape, TreeShape):
            raise ValueError("Tree needs the parents of the nodes: pass a TreeShape.")
        nodes, begins = np.arange(shape.n_nodes), np.repeat(shape.offsets[:-1], np.diff(shape.offsets))
        return np.stack([np.where(shape.parents < 0, nodes, begins + shape.parents), nodes], axis=1)

    def open(self, X: Any, lengths: ArrayLike | None = None) -> Opened:
        """Take tuples apart: nodes, parents, and types of edges.

        Parameters
        ----------
        X : list of (nodes, parents) or (nodes, parents, types)
            Trees as users pass them.
        lengths : None
            Every tree says how many nodes it has.

        Returns
        -------
        Opened
            As in :meth:`Structure.open`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Tree
        >>> opened = Tree().open([([["a"], ["b"]], [-1, 0])])
        >>> opened.nodes, opened.connect(np.array([0, 2])).parents
        ([[['a'], ['b']]], array([-1,  0], dtype=int32))
        """
        examples, typed = read_tuples(X, lengths, "tree", "parents")
        columns = [
            [
                integers(f"X[{i}][{at}]", example[at], "integers, one for each node")
                for i, example in enumerate(examples)
            ]
            for at in range(1, 3 if typed else 2)
        ]

        def connect(offsets: NDArray[np.int64]) -> TreeShape:
            for at, column in enumerate(columns, start=1):
                for i, (given, length) in enumerate(zip(column, np.diff(offsets).tolist(), strict=True)):
                    if len(given) != length:
                        raise ValueError(f"X[{i}][{at}] has {len(given)} entries; its tree has {length} nodes.")
            flat = [np.concatenate([np.zeros(0, dtype=np.int32), *column]) for column in columns]
            return TreeShape(offsets, *flat)

        return Opened([example[0] for example in examples], None, connect)
