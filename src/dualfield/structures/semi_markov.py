"""Sequences cut into segments: semi-Markov models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data import Batch
from dualfield.data.anchored_rows import AnchoredRows, segment_anchors
from dualfield.data.anchored_texts import read_row_features
from dualfield.data.arrays import Codes, Floats
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.data.span_labels import scheme_of
from dualfield.structures.base import Structure
from dualfield.structures.checks import check_int
from dualfield.structures.opened import Opened
from dualfield.structures.scores import Scores
from dualfield.structures.segments import (
    BEGIN,
    END,
    INSIDE,
    Kinds,
    SegmentShape,
    check_continued,
    check_max_length,
    check_rows,
    first_segments,
    kinds_of,
    read_pairs,
    segment_lengths,
)

__all__ = ["SemiMarkov"]


class SemiMarkov(Structure):
    r"""A sequence cut into segments: labels of neighbouring segments depend on each other, and segments have lengths.

    .. math::
        \mathrm{score}(y) = \sum_t \mathrm{node}[t, y_t] + \sum_{\text{segments}} \bigl( \mathrm{duration}[k, l] +
        \mathrm{segment}[s, l, k] \bigr) + \sum_{\text{neighbours}} \mathrm{transition}[k', k]

    where a segment of kind k begins at node s and has l nodes. Labels of nodes say where segments are, as in a chain:
    ``B-x``, ``I-x``, or ``B-x``, ``I-x``, ``E-x``, ``S-x`` for a segment of kind x, and `outside` for nodes that stand
    alone; their scores are those of the begin, the inside and the end of a segment. Labels without such letters
    mark segments by runs: a segment is as long as its label goes on. What a chain cannot say: how long segments are,
    which segments follow each other with any number of nodes in between, and features of a whole segment.

    Every question is answered exactly, in time and memory proportional to the number of nodes times
    (max_length × kinds + kinds²). :meth:`argmax` gives, among equally good labellings, the one whose last segment is
    of the lowest kind, then the shortest, and so on from the end.

    In estimators X is as for sequences, or a list of tuples ``(nodes, segments)`` with a row of numbers for each
    segment; y is label sequences, or for each sequence a list of spans ``(start, stop, type)``, or of those that
    ``predict_spans`` returns; they are read as BIO. Predictions are label sequences; ``predict_spans`` gives spans with
    their exact probabilities.

    Parameters
    ----------
    labels : sequence of str, default=None
        The labels in the order of their codes. None: not known yet, for models that find them in their training data.
    max_length : int, default=None
        Nodes of the longest segment. None: as many as the longest one of the training data has.
    outside : str, default="O"
        The label of nodes outside of all segments.
    segment_features : callable or list of str, default=None
        Features of whole segments, for models. A function of a sequence and of the first node and the one behind the
        last node of a segment that returns attributes, as items have them; or texts with macros for tokens that are
        str or tuples of str: ``"%x[first]/%x[last]"``, ``"%x[all]"`` for the whole text, ``"%x[first-1,1]"`` for column
        1 of the token before, ``"%n"`` for the number of tokens, ``"%b[1]"`` for each value of column 1 between first
        and last token. Needs `max_length`. A model with a function cannot be
        saved.

    Examples
    --------
    Segments of two nodes score 3, and nodes outside 1:

    >>> import numpy as np
    >>> from dualfield.structures import Scores, SemiMarkov
    >>> structure = SemiMarkov(["B-x", "I-x", "O"], max_length=2)
    >>> durations = np.array([[0.0, 3.0], [0.0, 0.0]])                  # of x, and of nodes outside
    >>> cliques = np.concatenate([np.zeros(4), durations.ravel()])      # transitions first
    >>> scores = Scores([[0.5, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]], transition=cliques)
    >>> structure.argmax(scores)
    array([0, 1, 2], dtype=int32)
    >>> structure.marginals(scores, cliques="each").clique.round(2)[:2]  # of the segments that begin at node 0
    array([[0.21, 0.34],
           [0.45, 0.  ]])
    """

    name = "semi_markov"
    n_ends = 2
    has_edges = True
    has_same_parts = False

    def __init__(
        self,
        labels: Sequence[str] | None = None,
        max_length: int | None = None,
        *,
        outside: str = "O",
        segment_features: Any = None,
    ) -> None:
        if labels is not None and (isinstance(labels, str) or not isinstance(labels, Iterable)):
            raise ValueError(
                "The 'labels' parameter of SemiMarkov must be a list of labels, or None; the longest segment is "
                f"max_length. Got {labels!r:.100} instead."
            )
        self.labels = None if labels is None else [str(label) for label in labels]
        self.max_length = None if max_length is None else check_int("SemiMarkov", "max_length", max_length, 1)
        self.outside, self.segment_features = str(outside), segment_features
        argument = "The 'segment_features' parameter of SemiMarkov"
        self._features = read_row_features(segment_features, argument=argument)
        if self._features is not None and self.max_length is None:
            raise ValueError("The 'max_length' parameter of SemiMarkov must be given where segments have features.")
        if self.labels is not None and self.max_length is None:
            raise ValueError("The 'max_length' parameter of SemiMarkov must be given together with labels.")
        if self.labels is not None and len(set(self.labels)) < len(self.labels):
            raise ValueError("The 'labels' parameter of SemiMarkov must be distinct labels.")
        self.n_labels = len(self.labels or ())

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of segments."""
        return kinds_of(self.labels or (), self.outside)

    @property
    def n_kinds(self) -> int:
        """Number of kinds of segments, with that of nodes outside."""
        return len(self.kinds.names)

    @property
    def _most(self) -> int:
        return self.max_length or 1

    @cached_property
    def longest(self) -> NDArray[np.int32]:
        """Nodes of the longest segment of each kind, shape (n_kinds,)."""
        roles = self.kinds.roles
        two = (roles[:, BEGIN] >= 0) & (roles[:, END] >= 0) & ~self.kinds.outside
        most = np.where(roles[:, INSIDE] >= 0, self._most, min(self._most, 2))
        return np.where(two, most, 1).astype(np.int32)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Which kinds may follow each other, shape (n_kinds, n_kinds): where segments are runs, no kind itself."""
        allowed = np.ones((self.n_kinds, self.n_kinds), dtype=bool)
        if self.kinds.are_runs:
            allowed[np.diag_indices(self.n_kinds)] = self.kinds.outside
        return allowed

    @property
    def n_cliques(self) -> int:
        """Number of shared scores: pairs of kinds, then lengths of each kind."""
        return self.n_kinds * (self.n_kinds + self._most)

    @property
    def cliques(self) -> Codes:
        """A label of each kind in a pair; of a length, that of its kind and -1."""
        n, label = self.n_kinds, self.kinds.roles.max(axis=1, initial=-1)
        pairs = np.stack([np.repeat(label, n), np.tile(label, n)], axis=1)
        lengths = np.stack([np.repeat(label, self._most), np.full(n * self._most, -1)], axis=1)
        return np.concatenate([pairs, lengths]).astype(np.int32)

    def clique_names(self, names: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return pairs of kinds, and kinds with a length."""
        kinds = self.kinds.names
        pairs = [(one, two) for one in kinds for two in kinds]
        return pairs + [(kind, f"length {length}") for kind in kinds for length in range(1, self._most + 1)]

    def edge_names(self, names: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the kinds of segments."""
        return [(kind,) for kind in self.kinds.names]

    @property
    def clique_allowed(self) -> NDArray[np.bool_]:
        """Which pairs of kinds, and which lengths, may occur."""
        lengths = np.arange(1, self._most + 1) <= self.longest[:, None]
        return np.concatenate([self.allowed.ravel(), lengths.ravel()])

    @property
    def edge_width(self) -> int:
        """Number of scores that a segment may have of its own: one for each kind."""
        return self.n_kinds

    @property
    def no_pairs(self) -> str | None:
        """Why edges are not pairs of labels."""
        return "needs pairs of labels; a SemiMarkov has segments. See predict_spans."

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.SemiMarkovStructure:
        """Create the native twin for sequences of given lengths."""
        limits = None if self.allowed.all() else np.where(self.allowed, 0.0, -np.inf).ravel()
        return _native.SemiMarkovStructure(
            n_labels=self.n_labels,
            offsets=shape.offsets,
            roles=np.ascontiguousarray(self.kinds.roles.ravel()),
            longest=self.longest,
            max_length=self._most,
            limits=limits,
            with_edges=with_edges,
            with_ends=with_ends,
        )

    def _parts(self, scores: Scores) -> tuple[Floats | None, Floats | None]:
        for name, array, shape in (
            ("transition", scores.transition, (self.n_cliques,)),
            ("segment", scores.segment, (self._n_segments(scores.shape).sum(), self.n_kinds)),
        ):
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}. Got {array.shape} instead.")
        if scores.transition is not None and not (scores.transition < np.inf).all():
            raise ValueError("transition must be finite, or -inf for what is forbidden. Got NaN or +inf instead.")
        return scores.transition, scores.segment

    def scores_of(
        self,
        node: Floats,
        cliques: Floats,
        edges: Floats | None,
        ends: tuple[Floats | None, Floats | None],
        shape: Shape,
    ) -> Scores:
        """Return scores of nodes, of pairs and lengths, and of segments as one record."""
        return Scores(node, None, cliques, start=ends[0], stop=ends[1], shape=shape, segment=edges)

    def _shape_cliques(self, rows: Floats) -> Floats:
        return rows if rows.shape[1] == self.n_kinds else rows[:, : self.n_cliques]

    def table_of(self, cliques: Floats) -> Floats:
        """Return the scores of pairs of kinds, and behind them, in further columns, those of lengths."""
        n = self.n_kinds
        return np.concatenate([cliques[: n * n].reshape(n, n), cliques[n * n :].reshape(n, self._most)], axis=1)

    def _n_segments(self, shape: Shape) -> NDArray[np.int64]:
        return first_segments(shape.lengths, shape.lengths, self._most)

    def segment_row(self, shape: Shape, example: Any, start: Any, stop: Any) -> NDArray[np.int64]:
        """Return the rows of segments.

        Parameters
        ----------
        shape : Shape
            The lengths of the sequences.
        example, start, stop : int or array
            Sequence, first node, and the one behind the last node of each segment.

        Returns
        -------
        int array
            Their rows among those of all segments.

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> from dualfield.structures import SemiMarkov
        >>> structure = SemiMarkov(["B-x", "I-x"], max_length=2)
        >>> int(structure.segment_row(Shape.of([0, 3, 5]), 1, 0, 2))  # behind the 2 + 2 + 1 of the first sequence
        6
        """
        begins, lengths = self.edge_offsets(shape)[example], shape.lengths[example]
        return np.asarray(begins + first_segments(lengths, np.asarray(start), self._most) + stop - start - 1)

    def edge_offsets(self, shape: Shape) -> NDArray[np.int64]:
        """Return where the segments of each sequence begin."""
        return np.concatenate([[0], np.cumsum(self._n_segments(shape))]).astype(np.int64)

    def edge_nodes(self, shape: Shape) -> NDArray[np.int64]:
        """Return the first node of each segment."""
        left = np.repeat(shape.offsets[1:], shape.lengths) - np.arange(shape.n_nodes)
        return np.repeat(np.arange(shape.n_nodes), np.minimum(left, self._most))

    def edge_rows(self, shape: Shape) -> NDArray[np.int64]:
        """Return the rows of segments: each has one."""
        return np.arange(self._n_segments(shape).sum())

    def pair_batch(self, nodes: Batch) -> Batch:
        """Return for each segment the features of its first node."""
        return nodes.rows(self.edge_offsets(nodes.shape), self.edge_nodes(nodes.shape))

    def _shape(self, offsets: NDArray[np.int64]) -> SegmentShape:
        scheme = "BIO" if self.labels is None or self.kinds.are_runs else scheme_of(self.labels)
        return SegmentShape(offsets, scheme, self.outside)

    def as_labels(self, y: Any, lengths: Sequence[int]) -> Any:
        """Return spans as labels."""
        return self._shape(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)).flat_labels(y)

    def open(self, X: Any, lengths: ArrayLike | None = None) -> Opened:
        """Take sequences apart: nodes, and features of segments.

        Parameters
        ----------
        X : list of sequences, or of tuples (nodes, segments)
            Segments are arrays with a row for each one of at most `max_length` nodes: first those that begin at the
            first node, the shorter ones first.
        lengths : array of int, default=None
            How many rows of a flat `X` each sequence has.

        Returns
        -------
        Opened
            As in :meth:`Structure.open`.

        Examples
        --------
        >>> from dualfield.structures import SemiMarkov
        >>> edges = SemiMarkov(max_length=2, segment_features=["%x[all]"]).open([["New", "York"]]).edges
        >>> list(edges.build().vocabulary)
        ['S0:New', 'S0:New York', 'S0:York']
        """
        given = read_pairs(X)

        def connect(offsets: NDArray[np.int64]) -> SegmentShape:
            if given is not None:
                check_rows(given[1], offsets, self._most)
            return self._shape(offsets)

        if given is not None:
            if self.max_length is None:
                raise ValueError("The 'max_length' parameter of SemiMarkov must be given where segments have features.")
            if self._features is not None:
                raise ValueError("segment_features must be None where X has features of segments.")
            return Opened(given[0], lengths, connect, given[1])
        if self._features is None:
            return Opened(X, lengths, connect)
        if lengths is not None:
            raise ValueError("lengths must be None with segment_features: X is a list of sequences.")
        sequences = [list(one) if not hasattr(one, "shape") else one for one in X]
        anchors, offsets = segment_anchors([len(one) for one in sequences], self._most)
        return Opened(sequences, None, connect, AnchoredRows(sequences, anchors, self._features, offsets=offsets))

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> SemiMarkov:
        """Return the structure for the labels of training data, and for its longest segment unless that is given.

        `constraints` may be "BIO" or "BIOES", which segments keep to anyway.
        """
        labels = [str(name) for name in names]
        if len(set(labels)) < len(labels):
            raise ValueError(f"y has labels that look alike as text: {names!r:.200}.")
        if self.labels is not None and self.labels != labels:
            raise ValueError(f"structure has the labels {self.labels!r:.200}; y has {labels!r:.200}.")
        kinds = kinds_of(labels, self.outside)
        if constraints is not None and (kinds.are_runs or constraints != scheme_of(labels)):
            raise ValueError(
                f"The 'constraints' parameter of {owner} must be None: segments keep to the scheme of their labels."
            )
        check_continued(kinds, labels, codes, shape)
        most = check_max_length(self.max_length, segment_lengths(kinds, codes, shape))
        return SemiMarkov(labels, most, outside=self.outside, segment_features=self.segment_features)

    def matched_cliques(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find pairs of kinds and lengths in a structure with other labels."""
        if not isinstance(old, SemiMarkov):
            return super().matched_cliques(old, labels)
        kind, m = self.matched_edges(old, labels), old.n_kinds
        pairs = np.where((kind[:, None] >= 0) & (kind >= 0), kind[:, None] * m + kind, -1)
        length = np.arange(self._most)
        known = (kind[:, None] >= 0) & (length < old._most)
        lengths = np.where(known, m * m + kind[:, None] * old._most + length, -1)
        return np.concatenate([pairs.ravel(), lengths.ravel()])

    def matched_edges(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the kinds of segments in a structure with other labels."""
        if not isinstance(old, SemiMarkov):
            return np.full(self.edge_width, -1, dtype=np.int64)
        known = {name: at for at, name in enumerate(old.kinds.names)}
        return np.array([known.get(name, -1) for name in self.kinds.names], dtype=np.int64)

    def record(self) -> Fields:
        """Return the record of the structure."""
        if callable(self.segment_features):
            raise ValueError(
                "A SemiMarkov whose segment_features is a function cannot be saved: a model file holds no code. Use "
                "texts with macros, or pass features of segments with X."
            )
        features = [self.segment_features] if isinstance(self.segment_features, str) else self.segment_features
        return {
            "kind": self.name,
            "labels": self.labels,
            "max_length": self.max_length,
            "outside": self.outside,
            "segment_features": None if features is None else list(features),
        }

    @classmethod
    def from_record(cls, record: Record) -> SemiMarkov:
        """Build a structure from its record, which is checked."""
        record.text("kind", (cls.name,))
        labels = record.items("labels", str) if record.has("labels") else None
        max_length = record.integer("max_length", 1) if record.has("max_length") else None
        features = record.items("segment_features", str) if record.has("segment_features") else None
        outside, most = record.text("outside"), record.source.most_entries
        n = len(labels or ())
        record.check(n * (n + (max_length or 1)) <= most, f"it has more than {most} pairs of labels and lengths.")
        with record.source.at_fault():
            found = cls(labels, max_length, outside=outside, segment_features=features)
            _ = found.kinds
        return found

    def _settings(self) -> tuple[Any, ...]:
        features = self.segment_features
        return self.labels, self.max_length, self.outside, list(features) if isinstance(features, tuple) else features

    def __eq__(self, other: object) -> bool:
        return self._settings() == other._settings() if isinstance(other, SemiMarkov) else NotImplemented

    def __hash__(self) -> int:
        return hash((tuple(self.labels or ()), self.max_length, self.outside))

    def __repr__(self) -> str:
        what = "" if self.labels is None else f"labels={self.labels!r}, "
        outside = "" if self.outside == "O" else f", outside={self.outside!r}"
        features = "" if self.segment_features is None else f", segment_features={self.segment_features!r}"
        return f"SemiMarkov({what}max_length={self.max_length}{outside}{features})"
