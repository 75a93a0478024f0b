"""What trees and graphs have in common: labels at nodes, and pairs of labels at edges of some types."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.arrays import Codes, Floats
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure
from dualfield.structures.checks import check_int
from dualfield.structures.scores import Scores


class Pairwise(Structure):
    """Nodes with one set of labels, joined by edges; edges of a type share a table [from][to] of label pairs."""

    has_edges = True

    def __init__(
        self, n_labels: int | None = None, n_types: int | None = None, allowed: ArrayLike | None = None
    ) -> None:
        owner = type(self).__name__
        self.n_labels = 0 if n_labels is None else check_int(owner, "n_labels", n_labels, 1)
        self.n_types = 0 if n_types is None else check_int(owner, "n_types", n_types, 1)
        if n_labels is None and allowed is not None:
            raise ValueError(f"{owner} needs n_labels to say which labels are allowed.")
        if n_labels is not None:
            self.n_types = max(self.n_types, 1)
        k = self.n_labels
        self.allowed = check_flags(owner, "allowed", allowed, [(k, k), (self.n_types, k, k)])

    @abstractmethod
    def _like(self, n_labels: int, n_types: int, allowed: ArrayLike | None) -> Self:
        """Return one with other labels and edge types, and else the same."""

    @abstractmethod
    def _types(self, shape: Shape) -> NDArray[np.int32] | None:
        """Return the type of each edge; None: all are 0."""

    @abstractmethod
    def _n_edges(self, shape: Shape) -> int:
        """Return the number of rows that edges have."""

    def record(self) -> Fields:
        """Return the record of the structure."""
        return {**super().record(), "n_types": self.n_types or None, "allowed": self.allowed}

    @staticmethod
    def _read_tables(record: Record) -> tuple[int | None, int | None, NDArray[Any] | None]:
        """Return number of labels, number of edge types, and which pairs are allowed."""
        n_labels, n_types = (record.integer(name, 1) if record.has(name) else None for name in ("n_labels", "n_types"))
        most = record.source.most_entries
        record.check((n_types or 1) * (n_labels or 1) ** 2 <= most, f"it has more than {most} pairs of labels.")
        return n_labels, n_types, np.array(record.array("allowed")) if record.has("allowed") else None

    @property
    def n_cliques(self) -> int:
        """Number of scores that edges share: pairs of labels for each edge type."""
        return self.n_types * self.n_labels**2

    @property
    def cliques(self) -> Codes:
        """The two labels of each clique, shape (n_cliques, 2)."""
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
        """Number of scores that an edge may have of its own: pairs of labels."""
        return self.n_labels**2

    @property
    def no_pairs(self) -> str | None:
        """Why edges are not pairs of labels: they are."""
        return None

    def over_states(self, label: NDArray[np.int64]) -> Self:
        """Return the structure over states that belong to labels."""
        allowed = None if self.allowed is None else self.allowed[..., label[:, None], label]
        return self._like(len(label), self.n_types, allowed)

    def edge_scores(self, cliques: Floats, shape: Shape) -> Floats:
        """Return what each edge scores by the scores of its type."""
        tables, types = cliques.reshape(self.n_types, -1), self._types(shape)
        return tables[0] if types is None else tables[types]

    def _limits(self) -> Floats | None:
        return None if self.allowed is None else np.where(self.clique_allowed, 0.0, -np.inf)

    def _check_types(self, types: NDArray[np.int32] | None) -> None:
        if types is None:
            return
        wrong = types[(types < 0) | (types >= self.n_types)]
        if wrong.size:
            name = type(self).__name__.lower()
            raise ValueError(f"types must be in [0, {self.n_types}), the edge types of this {name}. Got {wrong[0]}.")

    def _parts(self, scores: Scores) -> tuple[Floats | None, Floats | None]:
        transition, k = scores.transition, self.n_labels
        if transition is None:
            return None, None
        shared = [(self.n_types, k, k), (self.n_cliques,)] + [(k, k)] * (self.n_types == 1)
        n_edges = self._n_edges(scores.shape)
        if transition.shape in shared:
            if not (transition < np.inf).all():
                raise ValueError("transition must be finite, or -inf for what is forbidden. Got NaN or +inf instead.")
            return transition.ravel(), None
        if transition.shape in ((n_edges, k, k), (n_edges, k * k)):
            return None, transition.reshape(n_edges, k * k)
        raise ValueError(
            f"transition must have one of the shapes {shared}, shared by all edges of a type, or {(n_edges, k, k)}, "
            f"{self._edge_by_edge}. Got {transition.shape} instead."
        )

    _edge_by_edge = "one for each edge"

    def _shape_cliques(self, rows: Floats) -> Floats:
        if rows.shape[1] == self.edge_width:
            return rows.reshape(-1, self.n_labels, self.n_labels)
        return rows[:, : self.n_cliques].reshape(-1, *self.table_of(np.zeros(self.n_cliques)).shape)

    def table_of(self, cliques: Floats) -> Floats:
        """Return values of cliques as a table of label pairs, one for each type."""
        tables = cliques.reshape(self.n_types, self.n_labels, self.n_labels)
        return tables[0] if self.n_types == 1 else tables

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> Self:
        """Return the structure for the labels and edge types of training data; this one if it knew them.

        `constraints` is a boolean array of shape (n_labels, n_labels): which labels the two ends of an edge may have.
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
                    f"label that an edge comes from. Got shape {table.shape} and dtype {table.dtype} instead."
                )
        types = self._types(shape)
        found = 1 if types is None or not types.size else int(types.max()) + 1
        return self._like(n, self.n_types or found, constraints)

    def matched_cliques(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find pairs of labels in a structure of the same kind with other labels."""
        if not isinstance(old, type(self)):
            return super().matched_cliques(old, labels)
        pairs, types = self.matched_edges(old, labels), self._matched_types(old)[:, None]
        known = (pairs >= 0) & (types >= 0)
        return np.where(known, types * old.edge_width + pairs, -1).ravel()

    def _matched_types(self, old: Pairwise) -> NDArray[np.int64]:
        """Return which edge type of another structure each of this one is; -1 for none."""
        types = np.arange(self.n_types)
        return np.where(types < old.n_types, types, -1)

    def clique_kind(self, clique: int) -> str:
        """Return the type of the edges that have a clique; empty if there is but one type."""
        return f"type {clique // self.edge_width}" if self.n_types > 1 else ""

    def matched_edges(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find pairs of labels among those of the edges of a structure with other labels."""
        if not isinstance(old, type(self)):
            return np.full(self.edge_width, -1, dtype=np.int64)
        one, two = labels[:, None], labels[None, :]
        return np.where((one >= 0) & (two >= 0), one * old.n_labels + two, -1).ravel()

    def _settings(self) -> tuple[Any, ...]:
        """Return what makes two of them equal."""
        return self.n_labels, self.n_types, None if self.allowed is None else self.allowed.tobytes()

    def __eq__(self, other: object) -> bool:
        return self._settings() == other._settings() if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.n_labels, self.n_types))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_labels={self.n_labels}, n_types={self.n_types})"


def check_flags(
    owner: str, name: str, flags: ArrayLike | None, shapes: list[tuple[int, ...]]
) -> NDArray[np.bool_] | None:
    """Return flags as an array of one of the shapes."""
    if flags is None:
        return None
    array = np.asarray(flags)
    if array.dtype != np.bool_ or array.shape not in shapes:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a boolean array of shape {' or '.join(map(str, shapes))}. "
            f"Got shape {array.shape} and dtype {array.dtype} instead."
        )
    return array


def integers(name: str, values: Any, what: str, width: int | None = None) -> NDArray[np.int32]:
    """Return integers as users pass them: one for each node or edge, or rows of so many."""
    array = np.asarray(values)
    if width is not None and not array.size:
        array = np.zeros((0, width), dtype=np.int32)
    shape_fits = array.ndim == 1 if width is None else array.ndim == 2 and array.shape[1] == width
    if not shape_fits or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"{name} must be {what}. Got shape {array.shape} and dtype {array.dtype} instead.")
    return np.ascontiguousarray(array, dtype=np.int32)


def read_tuples(X: Any, lengths: ArrayLike | None, kind: str, second: str) -> tuple[list[tuple[Any, ...]], bool]:
    """Return examples, tuples of nodes, what connects them and perhaps edge types, and whether they have types.

    Errors call an example by its kind, and what connects the nodes by the name of the second entry.
    """
    if lengths is not None:
        raise ValueError(f"lengths must be None for {kind}s: X is a list of (nodes, {second}).")
    examples = list(X)
    for i, example in enumerate(examples):
        if not isinstance(example, tuple) or len(example) not in (2, 3):
            raise ValueError(
                f"X[{i}] must be a {kind}, a tuple (nodes, {second}) or (nodes, {second}, types). "
                f"Got {type(example).__name__} instead."
            )
    typed = [len(example) == 3 for example in examples]
    if any(typed) and not all(typed):
        raise ValueError(f"X[{typed.index(False)}] has no edge types, as other {kind}s have.")
    return examples, any(typed)
