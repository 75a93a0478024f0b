"""Chains of any order: the structure of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data.arrays import Codes, Floats
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure
from dualfield.structures.checks import check_codes, check_int
from dualfield.structures.constraints import check_labels, span_constraints
from dualfield.structures.scores import Scores

# A table of all windows of labels larger than this is refused: list the windows that occur instead.
MOST_CLIQUES = 50_000_000
_HIGHEST_ORDER = 63  # in a record
_FLAGS = ("allowed", "allowed_start", "allowed_stop")
# Up to so many windows of labels a chain made for a model has all of them, beyond only those that occur.
MOST_WINDOWS = 50_000


class Chain(Structure):
    r"""A sequence of nodes in which every label depends on the ``order`` labels before it.

    The score of a labelling is given in :class:`Scores`. Its cliques are the windows of order + 1 neighbouring labels.
    Inference takes time and memory proportional to the number of cliques that are allowed, not to
    n_labels ** (order + 1).

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels. None: not known yet, for models that find them in their training data.
    order : int, default=1
        Number of previous labels that a label depends on.
    allowed : array, default=None
        The windows of labels that may occur, oldest label first: a boolean array of shape (n_labels,) * (order + 1),
        or an integer array of shape (n, order + 1) that lists them. None: all. A shorter window at the start of a
        sequence may occur if it is part of an allowed one; for order 2 and higher it can also be listed itself, with
        -1 for what comes before the sequence.
    allowed_start, allowed_stop : boolean array of shape (n_labels,), default=None
        The labels that may stand first and last. None: all.

    Examples
    --------
    Two labels, where the second may not follow itself:

    >>> from dualfield.structures import Chain, Scores
    >>> chain = Chain(2, allowed=[[True, True], [True, False]])
    >>> chain.argmax(Scores([[0.0, 3.0], [0.0, 2.0], [0.0, 3.0]]))
    array([1, 0, 1], dtype=int32)

    An order-2 chain that knows only the windows of the labels seen:

    >>> chain = Chain.from_labels([0, 1, 2, 0, 1], n_labels=3, order=2)
    >>> chain.cliques
    array([[-1,  0,  1],
           [-1,  1,  2],
           [-1,  2,  0],
           [ 0,  1,  2],
           [ 1,  2,  0],
           [ 2,  0,  1]], dtype=int32)
    """

    name = "chain"
    n_ends = 2
    has_edges = True

    def __init__(
        self,
        n_labels: int | None = None,
        order: int = 1,
        allowed: ArrayLike | None = None,
        allowed_start: ArrayLike | None = None,
        allowed_stop: ArrayLike | None = None,
    ) -> None:
        self.n_labels = 0 if n_labels is None else check_int("Chain", "n_labels", n_labels, 1)
        self.order = check_int("Chain", "order", order, 1)
        self.allowed = None if allowed is None else _check_allowed(allowed, self.n_labels, self.order)
        self.allowed_start = _check_flags("allowed_start", allowed_start, self.n_labels)
        self.allowed_stop = _check_flags("allowed_stop", allowed_stop, self.n_labels)
        if n_labels is None and not (allowed is None and allowed_start is None and allowed_stop is None):
            raise ValueError("Chain needs n_labels to say which labels are allowed.")
        self._cliques, self._clique_allowed = _list_cliques(self.n_labels, self.order, self.allowed)

    @property
    def cliques(self) -> Codes:
        """The windows of labels that have a score, in lexicographic order, shape (n_cliques, order + 1).

        For order 1 all pairs, allowed or not. For higher orders the allowed ones only, and also the windows that begin
        before the first node: -1 stands there.
        """
        return self._cliques

    @property
    def clique_allowed(self) -> NDArray[np.bool_]:
        """Which cliques may occur, shape (n_cliques,)."""
        return self._clique_allowed

    @classmethod
    def from_labels(
        cls, labels: ArrayLike, offsets: ArrayLike | None = None, *, n_labels: int, order: int = 1, **flags: Any
    ) -> Chain:
        """Make a chain that allows only the windows of labels that occur in given sequences.

        Parameters
        ----------
        labels : int array of shape (n_nodes,)
            Label codes, the sequences one after another.
        offsets : array of shape (n_examples + 1,), default=None
            Where each sequence starts; None: one sequence.
        n_labels, order
            As in the constructor.
        **flags
            ``allowed_start`` and ``allowed_stop`` of the constructor.

        Returns
        -------
        Chain
            With ``allowed`` set to the windows that occur.

        Examples
        --------
        >>> from dualfield.structures import Chain
        >>> Chain.from_labels([0, 1, 1, 0], [0, 3, 4], n_labels=2).allowed
        array([[False,  True],
               [False,  True]])
        """
        codes = check_codes(labels, np.size(np.asarray(labels)), n_labels)
        cuts = Scores(np.zeros((len(codes), 1)), offsets).offsets
        # The windows that end at each node, -1 for what comes before the sequence.
        place = np.arange(len(codes)) - np.repeat(cuts[:-1], np.diff(cuts))
        back = np.arange(order, -1, -1)
        windows = np.where(place[:, None] >= back, codes[np.maximum(np.arange(len(codes))[:, None] - back, 0)], -1)
        if order > 1:
            # A shorter one is part of a whole one, but where the sequence is not longer than the order.
            last = np.zeros(len(codes), dtype=bool)
            last[cuts[1:][np.diff(cuts) > 1] - 1] = True
            return cls(n_labels, order, windows[(place >= order) | last], **flags)
        windows = windows[place > 0]
        allowed = np.zeros((n_labels, n_labels), dtype=bool)
        allowed[tuple(windows.T)] = True
        return cls(n_labels, order, allowed, **flags)

    def record(self) -> Fields:
        """Return the record of the chain."""
        flags = {"allowed": self.allowed, "allowed_start": self.allowed_start, "allowed_stop": self.allowed_stop}
        return {"kind": "chain", "n_labels": self.n_labels or None, "order": self.order, **flags}

    @classmethod
    def from_record(cls, record: Record) -> Chain:
        """Make a chain of its record, which is checked; it must not list more windows than its file could hold."""
        record.text("kind", ("chain",))
        n_labels = record.integer("n_labels", 1) if record.has("n_labels") else None
        order, most = record.integer("order", 1, _HIGHEST_ORDER), record.source.most_entries
        flags = [np.array(record.array(name)) if record.has(name) else None for name in _FLAGS]
        n_windows = 0 if n_labels is None else n_labels ** (order + 1)
        if order > 1 and flags[0] is not None and flags[0].dtype != np.bool_:  # they are listed
            n_windows = len(flags[0])
        record.check(n_windows <= most, f"a chain has more than {most} windows of labels.")
        return cls(n_labels, order, *flags)

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> Chain:
        """Return a chain of this order for the labels of training data.

        Of a high order with many labels it has the windows that occur there, otherwise all.

        Parameters
        ----------
        names, codes, shape, owner
            As in :meth:`Structure.for_labels`.
        constraints : {"BIO", "BIOES"} or bool array of shape (n_labels, n_labels), default=None
            Which labels may follow each other.

        Returns
        -------
        Chain
            One that knows its labels; this one if it did.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data.shapes import Shape
        >>> from dualfield.structures import Chain
        >>> codes, shape = np.array([0, 1], dtype=np.int32), Shape.of([0, 2])
        >>> Chain().for_labels(["B-x", "I-x", "O"], codes, shape, "BIO").allowed_start
        array([ True, False,  True])
        """
        n = len(names)
        if self.n_labels:
            if self.n_labels != n:
                raise ValueError(f"structure has {self.n_labels} labels; y has {n}.")
            if constraints is not None:
                raise ValueError("constraints must be None if the structure has allowed transitions.")
            return self
        rules = _rules(constraints, names, owner)
        check_labels(rules, names, codes, shape, constraints)
        if self.order == 1:
            return Chain(n, 1, **rules)
        pairs = rules.pop("allowed", None)
        if n ** (self.order + 1) > MOST_WINDOWS:
            if (codes < 0).any():
                raise ValueError(
                    "A chain of this order allows only observed windows of labels: all labels must be known."
                )
            return Chain.from_labels(codes, shape.offsets, n_labels=n, order=self.order, **rules)
        windows = None
        if pairs is not None:
            everything = np.indices((n,) * (self.order + 1)).reshape(self.order + 1, -1).T
            inside = np.all([pairs[everything[:, at], everything[:, at + 1]] for at in range(self.order)], axis=0)
            windows = everything[inside]
        return Chain(n, self.order, windows, **rules)

    def over_states(self, label: NDArray[np.int64]) -> Chain:
        """Return the chain over states that belong to labels."""
        if self.order != 1:
            raise ValueError(f"Sub-states need a chain of order 1. Got order {self.order}.")
        allowed = None if self.allowed is None else self.allowed[np.ix_(label, label)]
        ends = [None if flags is None else flags[label] for flags in (self.allowed_start, self.allowed_stop)]
        return Chain(len(label), 1, allowed, *ends)

    @property
    def is_free(self) -> bool:
        """Whether every labelling is allowed."""
        return super().is_free and self.allowed_start is None and self.allowed_stop is None

    @property
    def no_pairs(self) -> str | None:
        """Why edges are not pairs of labels; None if they are."""
        return None if self.order == 1 else f"needs a chain of order 1. This one has order {self.order}."

    def table_of(self, cliques: Floats) -> Floats:
        """Return values of cliques as a table of label pairs, for order 1."""
        return cliques.reshape(self.n_labels, -1) if self.order == 1 else cliques

    def matched_cliques(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the windows of labels in a chain with other labels."""
        if not isinstance(old, Chain):
            return super().matched_cliques(old, labels)
        known = {tuple(window): at for at, window in enumerate(old.cliques.tolist())}
        # A label that is new has no old window, not even one of those that begin before the first node.
        there = {-1: -1, **{k: int(at) if at >= 0 else -2 for k, at in enumerate(labels)}}
        windows = (tuple(there[k] for k in window) for window in self.cliques.tolist())
        return np.array([known.get(window, -1) for window in windows], dtype=np.int64)

    @cached_property
    def _topology(self) -> _native.ChainTopology:
        return _native.ChainTopology(self.n_labels, self.cliques, self.clique_allowed)

    @property
    def n_cliques(self) -> int:
        """Number of cliques that have a score."""
        return len(self.cliques)

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.ChainStructure:
        """Create the native twin for examples of given lengths."""
        start, stop = (
            None if flags is None else np.where(flags, 0.0, -np.inf)
            for flags in (self.allowed_start, self.allowed_stop)
        )
        return _native.ChainStructure(self._topology, shape.offsets, with_edges, with_ends, start, stop)

    def edge_nodes(self, shape: Shape) -> NDArray[np.int64]:
        """Return the nodes but the first of each example."""
        inner = np.ones(shape.n_nodes, dtype=bool)
        inner[shape.offsets[:-1][shape.lengths > 0]] = False
        return np.flatnonzero(inner)

    def edge_ends(self, shape: Shape) -> NDArray[np.int64]:
        """Return the node before, and the node that each edge leads to."""
        nodes = self.edge_nodes(shape)
        return np.stack([nodes - 1, nodes], axis=1)

    def shared_nodes(self, shape: Shape) -> NDArray[np.int64]:
        """Return the nodes of edges, then the first and the last node."""
        ends = [0, shape.n_nodes - 1] if shape.n_nodes else []
        return np.concatenate([self.edge_nodes(shape), np.array(ends, dtype=np.int64)])

    def _parts(self, scores: Scores) -> tuple[Floats | None, Floats | None]:
        return self._transition_rows(scores.transition, int(np.maximum(scores.lengths - 1, 0).sum()))

    def _transition_rows(self, transition: Floats | None, n_edges: int) -> tuple[Floats | None, Floats | None]:
        """Return scores by clique: shared (n_cliques,) or per edge (n_edges, n_cliques); the other is None."""
        if transition is None:
            return None, None
        table, listed = (self.n_labels,) * (self.order + 1), (self.n_cliques,)
        if transition.shape in (table, listed):
            rows = self._by_clique(transition[None] if transition.shape == table else transition.reshape(1, -1))[0]
            if not (rows < np.inf).all():
                raise ValueError("transition must be finite, or -inf for what is forbidden. Got NaN or +inf instead.")
            return np.ascontiguousarray(rows), None
        if transition.shape in ((n_edges, *table), (n_edges, *listed)):
            return None, np.ascontiguousarray(self._by_clique(transition))
        raise ValueError(
            f"transition must have shape {table} or {listed}, shared by all edges, or one of these for each of the "
            f"{n_edges} edges. Got shape {transition.shape} instead."
        )

    def _by_clique(self, rows: Floats) -> Floats:
        """Return (n, n_cliques) rows, also from (n, n_labels, ...) tables, whose windows at the start score 0."""
        if rows.ndim == 2:
            return rows
        if self.order == 1:
            return rows.reshape(len(rows), self.n_cliques)
        whole = self.cliques[:, 0] >= 0
        out = np.zeros((len(rows), self.n_cliques))
        out[:, whole] = rows[(slice(None), *self.cliques[whole].T)]
        return out

    def _shape_cliques(self, rows: Floats) -> Floats:
        rows = rows[:, : self.n_cliques]  # without what belongs to the ends
        return rows.reshape(-1, self.n_labels, self.n_labels) if self.order == 1 else rows

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Chain):
            return NotImplemented
        return (self.n_labels, self.order) == (other.n_labels, other.order) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in (
                (self.cliques, other.cliques),
                (self.clique_allowed, other.clique_allowed),
                (self._flags(), other._flags()),
            )
        )

    def __hash__(self) -> int:
        return hash((self.n_labels, self.order, self.n_cliques))

    def _flags(self) -> NDArray[np.bool_]:
        everything = np.ones(self.n_labels, dtype=bool)
        ends = (self.allowed_start, self.allowed_stop)
        return np.concatenate([everything if flags is None else flags for flags in ends])

    def __repr__(self) -> str:
        limits = "" if self.allowed is None else f", {int(self.clique_allowed.sum())} of its windows allowed"
        return f"Chain(n_labels={self.n_labels}, order={self.order}{limits})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_topology"}


def _rules(constraints: Any, names: Sequence[Any], owner: str) -> dict[str, Any]:
    """Read the constraints of a model."""
    n = len(names)
    if constraints is None:
        return {}
    if isinstance(constraints, str):
        if constraints not in ("BIO", "BIOES"):
            raise ValueError(
                f"The 'constraints' parameter of {owner} must be None, 'BIO', 'BIOES' or a boolean matrix. "
                f"Got {constraints!r} instead."
            )
        return dict(span_constraints([str(name) for name in names], constraints))
    table = np.asarray(constraints)
    if table.shape != (n, n) or table.dtype != np.bool_:
        raise ValueError(
            f"The 'constraints' parameter of {owner} must be a boolean array of shape {(n, n)}, a row for each "
            f"label. Got shape {table.shape} and dtype {table.dtype} instead."
        )
    return {"allowed": table}


def _check_allowed(allowed: ArrayLike, n_labels: int, order: int) -> NDArray[Any]:
    array = np.asarray(allowed)
    if array.dtype == np.bool_:
        if array.shape != (n_labels,) * (order + 1):
            raise ValueError(
                f"The 'allowed' parameter of Chain must have shape {(n_labels,) * (order + 1)} if boolean. "
                f"Got shape {array.shape} instead."
            )
        return array
    if not np.issubdtype(array.dtype, np.integer) or array.ndim != 2 or array.shape[1] != order + 1:
        raise ValueError(
            f"The 'allowed' parameter of Chain must be a boolean table or integer rows of {order + 1} labels. "
            f"Got shape {array.shape} and dtype {array.dtype} instead."
        )
    real = array >= 0
    real[:, :-2] |= (array[:, :-2] == -1) & ~np.maximum.accumulate(real[:, :-2], axis=1)  # before the sequence
    if not real.all() or (array.size and array.max() >= n_labels):
        wrong = array[~(real & (array < n_labels)).all(axis=1)][0]
        raise ValueError(
            f"The 'allowed' parameter of Chain must hold labels in [0, {n_labels}), behind -1 for what comes before "
            f"the sequence; the last two must be labels. Got the row {wrong.tolist()} instead."
        )
    return _windows(np.unique(_keys(array, n_labels)), n_labels, order)


def _check_flags(name: str, flags: ArrayLike | None, n_labels: int) -> NDArray[np.bool_] | None:
    if flags is None:
        return None
    array = np.asarray(flags)
    if array.dtype != np.bool_ or array.shape != (n_labels,):
        raise ValueError(
            f"The {name!r} parameter of Chain must be a boolean array of shape ({n_labels},). "
            f"Got shape {array.shape} and dtype {array.dtype} instead."
        )
    return array


def _list_cliques(n_labels: int, order: int, allowed: NDArray[Any] | None) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the windows of labels that have a score, sorted, and which of them are allowed."""
    n_windows = n_labels ** (order + 1)
    if n_windows > MOST_CLIQUES and (allowed is None or order == 1 or allowed.dtype == np.bool_):
        remedy = (
            "Use fewer labels." if order == 1 else "List those that occur: Chain.from_labels, or rows as 'allowed'."
        )
        raise ValueError(
            f"A chain of order {order} with {n_labels} labels has {n_windows} windows of labels, all of which would "
            f"have a score, more than {MOST_CLIQUES}. {remedy}"
        )
    if order == 1:
        everything = np.indices((n_labels, n_labels), dtype=np.int32).reshape(2, -1).T
        flags = np.ones((n_labels, n_labels), dtype=bool) if allowed is None else allowed
        if flags.dtype != np.bool_:
            flags = np.zeros((n_labels, n_labels), dtype=bool)
            flags[tuple(np.asarray(allowed).T)] = True
        return np.ascontiguousarray(everything), np.ascontiguousarray(flags.ravel())
    base = np.uint64(n_labels + 1)
    if allowed is None:
        keys = digits = np.arange(1, n_labels + 1, dtype=np.uint64)
        for _ in range(order):
            keys = np.asarray(np.add.outer(keys * base, digits), dtype=np.uint64).ravel()
    else:
        keys = _keys(np.argwhere(allowed) if allowed.dtype == np.bool_ else allowed, n_labels)
    # The first nodes have windows of fewer labels: those of one more label without their last, or without their first,
    # and those that are listed themselves. Their keys have zeros in front, so that they come before longer ones.
    parts = [keys[keys >= base ** np.uint64(order)]]
    for size in range(order, 1, -1):
        span = base ** np.uint64(size)
        listed = keys[(keys < span) & (keys >= span // base)]
        parts.append(np.unique(np.concatenate([parts[-1] // base, parts[-1] % span, listed])))
    cliques = _windows(np.concatenate(parts[::-1]), n_labels, order)
    return cliques, np.ones(len(cliques), dtype=bool)


def _keys(windows: NDArray[Any], n_labels: int) -> NDArray[np.uint64]:
    """Return windows of labels as numbers in the same order: digits label + 1, so that -1 is 0."""
    base, size = n_labels + 1, windows.shape[1]
    if base**size >= 2**64:
        raise ValueError(
            f"A chain of order {size - 1} with {n_labels} labels is too large: a window of labels must fit 64 bits. "
            f"Use fewer labels or a lower order."
        )
    keys = np.zeros(len(windows), dtype=np.uint64)
    for column in windows.T:
        keys = keys * np.uint64(base) + (column.astype(np.int64) + 1).astype(np.uint64)
    return keys


def _windows(keys: NDArray[np.uint64], n_labels: int, order: int) -> Codes:
    """Return the windows of labels that keys stand for."""
    base = np.uint64(n_labels + 1)
    windows = np.empty((len(keys), order + 1), dtype=np.int32)
    for at in range(order, -1, -1):
        windows[:, at] = (keys % base).astype(np.int64) - 1
        keys = keys // base
    return windows
