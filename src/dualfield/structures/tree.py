"""Rooted trees of any shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure
from dualfield.structures.checks import Codes, Floats, check_int
from dualfield.structures.scores import Scores

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


class Tree(Structure):
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
    has_edges = True

    def __init__(
        self,
        n_labels: int | None = None,
        n_types: int | None = None,
        allowed: ArrayLike | None = None,
        allowed_root: ArrayLike | None = None,
    ) -> None:
        self.n_labels = 0 if n_labels is None else check_int("Tree", "n_labels", n_labels, 1)
        self.n_types = 0 if n_types is None else check_int("Tree", "n_types", n_types, 1)
        if n_labels is None and not (allowed is None and allowed_root is None):
            raise ValueError("Tree needs n_labels to say which labels are allowed.")
        if n_labels is not None:
            self.n_types = max(self.n_types, 1)
        k = self.n_labels
        self.allowed = _check_flags("allowed", allowed, [(k, k), (self.n_types, k, k)])
        self.allowed_root = _check_flags("allowed_root", allowed_root, [(k,)])

    def record(self) -> Fields:
        """Return the record of the tree."""
        flags = {"allowed": self.allowed, "allowed_root": self.allowed_root}
        return {**super().record(), "n_types": self.n_types or None, **flags}

    @classmethod
    def from_record(cls, record: Record) -> Tree:
        """Build a tree from its record, which is checked."""
        record.text("kind", (cls.name,))
        n_labels, n_types = (record.integer(name, 1) if record.has(name) else None for name in ("n_labels", "n_types"))
        most = record.source.most_entries
        record.check((n_types or 1) * (n_labels or 1) ** 2 <= most, f"a tree has more than {most} pairs of labels.")
        flags = [np.array(record.array(name)) if record.has(name) else None for name in ("allowed", "allowed_root")]
        return cls(n_labels, n_types, *flags)

    @property
    def n_cliques(self) -> int:
        """Number of scores that edges share: pairs of labels for each edge type."""
        return self.n_types * self.n_labels**2

    @property
    def cliques(self) -> Codes:
        """The labels of parent and child of each clique, shape (n_cliques, 2)."""
        pairs = np.indices((self.n_labels, self.n_labels), dtype=np.int32).reshape(2, -1).T
        return np.tile(pairs, (self.n_types, 1))

    @property
    def clique_allowed(self) -> NDArray[np.bool_]:
        """Which cliques may occur, shape (n_cliques,)."""
        if self.allowed is None:
            return np.ones(self.n_cliques, dtype=bool)
        return np.broadcast_to(self.allowed, (self.n_types, self.n_labels, self.n_labels)).ravel()

    @property
    def edge_width(self) -> int:
        """Number of own scores of an edge: pairs of labels."""
        return self.n_labels**2

    def over_states(self, label: NDArray[np.int64]) -> Tree:
        """Return the tree over states that belong to labels."""
        allowed = None if self.allowed is None else self.allowed[..., label[:, None], label]
        return Tree(len(label), self.n_types, allowed, None if self.allowed_root is None else self.allowed_root[label])

    @property
    def is_free(self) -> bool:
        """Whether every labelling is allowed."""
        return super().is_free and self.allowed_root is None

    @property
    def no_pairs(self) -> str | None:
        """Empty: edges are pairs of labels."""
        return None

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.TreeStructure:
        """Create the native twin for trees of given shapes."""
        if not isinstance(shape, TreeShape):
            raise ValueError("Tree needs the parents of the nodes: pass a TreeShape.")
        if shape.types is not None:
            wrong = shape.types[(shape.types < 0) | (shape.types >= self.n_types)]
            if wrong.size:
                raise ValueError(f"types must be in [0, {self.n_types}), the edge types of this tree. Got {wrong[0]}.")
        limits = None if self.allowed is None else np.where(self.clique_allowed, 0.0, -np.inf)
        roots = None if self.allowed_root is None else np.where(self.allowed_root, 0.0, -np.inf)
        return _native.TreeStructure(
            self.n_labels, shape.offsets, shape.parents, shape.types, self.n_types, with_edges, with_ends, limits, roots
        )

    def edge_nodes(self, shape: Shape) -> NDArray[np.int64]:
        """Return all nodes: each has a row for the edge to its parent, which says nothing for a root."""
        return np.arange(shape.n_nodes)

    def edge_scores(self, cliques: Floats, shape: Shape) -> Floats:
        """Return what each edge scores by the scores of its type."""
        tables = cliques.reshape(self.n_types, -1)
        types = shape.types if isinstance(shape, TreeShape) else None
        return tables[0] if types is None else tables[types]

    def _parts(self, scores: Scores) -> tuple[Floats | None, Floats | None]:
        transition, k = scores.transition, self.n_labels
        if transition is None:
            return None, None
        shared = [(self.n_types, k, k), (self.n_cliques,)] + [(k, k)] * (self.n_types == 1)
        if transition.shape in shared:
            if not (transition < np.inf).all():
                raise ValueError("transition must be finite, or -inf for what is forbidden. Got NaN or +inf instead.")
            return transition.ravel(), None
        if transition.shape in ((scores.n_nodes, k, k), (scores.n_nodes, k * k)):
            return None, transition.reshape(scores.n_nodes, k * k)
        raise ValueError(
            f"transition must have one of the shapes {shared}, shared by all edges of a type, or "
            f"{(scores.n_nodes, k, k)}, one for the edge of each node to its parent. Got {transition.shape} instead."
        )

    def _shape_cliques(self, rows: Floats) -> Floats:
        if rows.shape[1] == self.edge_width:
            return rows.reshape(-1, self.n_labels, self.n_labels)
        return rows[:, : self.n_cliques].reshape(-1, *self.table_of(np.zeros(self.n_cliques)).shape)

    def table_of(self, cliques: Floats) -> Floats:
        """Return values of cliques as a table of label pairs, the parent's first, one for each type."""
        tables = cliques.reshape(self.n_types, self.n_labels, self.n_labels)
        return tables[0] if self.n_types == 1 else tables

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> Tree:
        """Return a tree for the labels and edge types of training data.

        Parameters
        ----------
        names, codes, shape, owner
            As in :meth:`Structure.for_labels`.
        constraints : bool array of shape (n_labels, n_labels), default=None
            Which labels a child (column) may have below a parent (row).

        Returns
        -------
        Tree
            One that knows its labels; this one if it did.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Tree, TreeShape
        >>> shape = TreeShape(np.array([0, 2]), np.array([-1, 0], dtype=np.int32))
        >>> Tree().for_labels(["x", "y"], np.array([0, 1], dtype=np.int32), shape)
        Tree(n_labels=2, n_types=1)
        """
        n = len(names)
        if self.n_labels:
            if self.n_labels != n:
                raise ValueError(f"structure has {self.n_labels} labels; y has {n}.")
            if constraints is not None:
                raise ValueError("constraints must be None if the structure has allowed transitions.")
            return self
        if constraints is not None:
            table = np.asarray(constraints)
            if table.shape != (n, n) or table.dtype != np.bool_:
                raise ValueError(
                    f"The 'constraints' parameter of {owner} must be a boolean array of shape {(n, n)}, a row for each "
                    f"label of a parent. Got shape {table.shape} and dtype {table.dtype} instead."
                )
        types = shape.types if isinstance(shape, TreeShape) else None
        found = 1 if types is None or not types.size else int(types.max()) + 1
        return Tree(n, self.n_types or found, constraints)

    def matched_cliques(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find pairs of labels in a tree with other labels."""
        if not isinstance(old, Tree):
            return super().matched_cliques(old, labels)
        pairs, types = self.matched_edges(old, labels), np.arange(self.n_types)[:, None]
        known = (pairs >= 0) & (types < old.n_types)
        return np.where(known, types * old.edge_width + pairs, -1).ravel()

    def matched_edges(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find pairs of labels among those of the edges of a tree with other labels."""
        if not isinstance(old, Tree):
            return np.full(self.edge_width, -1, dtype=np.int64)
        above, below = labels[:, None], labels[None, :]
        return np.where((above >= 0) & (below >= 0), above * old.n_labels + below, -1).ravel()

    def open(
        self, X: Any, lengths: ArrayLike | None = None
    ) -> tuple[Any, ArrayLike | None, Callable[[NDArray[np.int64]], Shape | None]]:
        """Take tuples apart: nodes, parents, and types of edges.

        Parameters
        ----------
        X : list of (nodes, parents) or (nodes, parents, types)
            Trees as users pass them.
        lengths : None
            Every tree says how many nodes it has.

        Returns
        -------
        nodes, lengths, connect
            As in :meth:`Structure.open`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Tree
        >>> nodes, _, connect = Tree().open([([["a"], ["b"]], [-1, 0])])
        >>> nodes, connect(np.array([0, 2])).parents
        ([[['a'], ['b']]], array([-1,  0], dtype=int32))
        """
        if lengths is not None:
            raise ValueError("lengths must be None for trees: X is a list of (nodes, parents).")
        examples = list(X)
        for i, example in enumerate(examples):
            if not isinstance(example, tuple) or len(example) not in (2, 3):
                raise ValueError(
                    f"X[{i}] must be a tree, a tuple (nodes, parents) or (nodes, parents, types). "
                    f"Got {type(example).__name__} instead."
                )
        typed = [len(example) == 3 for example in examples]
        if any(typed) and not all(typed):
            raise ValueError(f"X[{typed.index(False)}] has no edge types, as other trees have.")
        columns = [
            [_integers(f"X[{i}][{at}]", example[at]) for i, example in enumerate(examples)]
            for at in range(1, 3 if any(typed) else 2)
        ]

        def connect(offsets: NDArray[np.int64]) -> TreeShape:
            for at, column in enumerate(columns, start=1):
                for i, (given, length) in enumerate(zip(column, np.diff(offsets).tolist(), strict=True)):
                    if len(given) != length:
                        raise ValueError(f"X[{i}][{at}] has {len(given)} entries; its tree has {length} nodes.")
            flat = [np.concatenate([np.zeros(0, dtype=np.int32), *column]) for column in columns]
            return TreeShape(offsets, *flat)

        return [example[0] for example in examples], None, connect

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return (self.n_labels, self.n_types) == (other.n_labels, other.n_types) and all(
            theirs is None if mine is None else theirs is not None and np.array_equal(mine, theirs)
            for mine, theirs in ((self.allowed, other.allowed), (self.allowed_root, other.allowed_root))
        )

    def __hash__(self) -> int:
        return hash((self.n_labels, self.n_types))

    def __repr__(self) -> str:
        return f"Tree(n_labels={self.n_labels}, n_types={self.n_types})"


def _integers(name: str, values: Any) -> NDArray[np.int32]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(
            f"{name} must be integers, one for each node. Got shape {array.shape} and dtype {array.dtype} instead."
        )
    return np.ascontiguousarray(array, dtype=np.int32)


def _check_flags(name: str, flags: ArrayLike | None, shapes: list[tuple[int, ...]]) -> NDArray[np.bool_] | None:
    if flags is None:
        return None
    array = np.asarray(flags)
    if array.dtype != np.bool_ or array.shape not in shapes:
        raise ValueError(
            f"The {name!r} parameter of Tree must be a boolean array of shape {' or '.join(map(str, shapes))}. "
            f"Got shape {array.shape} and dtype {array.dtype} instead."
        )
    return array
