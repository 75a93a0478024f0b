"""Projective dependency trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data.anchored_rows import AnchoredRows, arc_anchors
from dualfield.data.anchored_texts import ARC as ANCHORS
from dualfield.data.anchored_texts import AnchoredTexts, read_row_features
from dualfield.data.arrays import Codes
from dualfield.data.input_forms import listed, opened, read_sentences
from dualfield.data.parse_trees.dependency_scores import attached
from dualfield.data.parse_trees.dependency_sentence import DependencySentence
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure
from dualfield.structures.opened import Opened
from dualfield.structures.parse_trees.arc_features import ARGUMENT, default_arc_texts, tag_column
from dualfield.structures.parse_trees.arc_shape import ARC, EMPTY, NON_PROJECTIVE, ArcShape, n_words_of
from dualfield.structures.scores import Scores

__all__ = ["Dependency"]

ROOTS = ("single", "any")


class Dependency(Structure):
    r"""Projective dependency trees: every word has one head, another word or the root, and arcs do not cross.

    .. math::
        \mathrm{score}(y) = \sum_{\text{arcs}} \mathrm{node}[\text{arc}, y_{\text{arc}}]

    over all arcs that a sentence may have, n² for n words: those to the first word first, each from the root, then from
    the other words in their order. A label says whether an arc is in the tree and of which kind it is; the empty label,
    ``""``, which has no weights, says that it is not. So labels that are known, or forbidden, are arcs that are.

    Every question is answered exactly by Eisner's algorithm, in time n³ + n² n_labels and memory n² of a sentence of n
    words. :meth:`argmax` gives, among equally good trees, the one with the first child of the root, then from the top
    down the first split of each span.

    In estimators X is a list of sentences, each a list of tokens: str, or tuples of str such as ``(word, tag)``; or
    :class:`~dualfield.data.DependencySentence`, as read from CoNLL-U; or arrays with a row of numbers for each arc. y
    is for each sentence a list of heads, counted from 1, 0 for the root; of pairs ``(head, label)``; or a sentence
    from CoNLL-U. A head or a label that is not known is None, or a set of heads. Predictions have the form of y, and
    are sentences where X is. Arcs without labels have the label ``"arc"`` in ``classes_``; so trees in which all have
    this one label come back without it.

    Parameters
    ----------
    labels : sequence of str, default=None
        The labels in the order of their codes, the empty one first. None: not known yet, for models that find them in
        their training data.
    root : {"single", "any"}, default="single"
        Whether the root has exactly one child, or any number of them.
    non_projective : {"error", "skip", "lift"}, default="error"
        What becomes of trees to train or to calibrate on whose arcs cross: they are refused, left out, or made
        projective by moving arcs up to the head of their head until none cross, which is pseudo-projective parsing
        without a way back.
    arc_features : "default", list of str, callable or None, default="default"
        What features of arcs are made of. Texts with macros for tokens that are str or tuples of str:
        ``"%x[head,1]/%x[child,1]"`` for column 1 of both words, ``"%x[head-1]"`` for the word before the head, ``"%d"``
        for the direction, ``"%n"`` for direction and distance, ``"%b[1]"`` for each value of column 1 between the two.
        A function of a sentence, a head, -1 for the root, and a child, counted from 0, that returns attributes; a model
        with a function cannot be saved. None: X has a row for each arc. "default": a first-order set of words, tags
        (column 1, or the first one behind it that is not ``_`` in all training sentences), their neighbours, what is
        between, distance and direction.

    Examples
    --------
    The arcs of two words: root to 1, 2 to 1, root to 2, 1 to 2.

    >>> from dualfield.structures import Dependency
    >>> Dependency(["", "arc"]).argmax([[0.0, 1.0], [0.0, 3.0], [0.0, 0.0], [0.0, 1.5]])
    array([0, 1, 1, 0], dtype=int32)

    >>> from dualfield import CRF
    >>> X = [[("She", "PRP"), ("reads", "VB")], [("Read", "VB"), ("it", "PRP")]]
    >>> CRF("dependency").fit(X, [[2, 0], [0, 1]]).predict([[("He", "PRP"), ("eats", "VB")]])
    [[2, 0]]
    """

    name = "dependency"
    empty_label = 0

    def __init__(
        self,
        labels: Sequence[str] | None = None,
        root: str = "single",
        *,
        non_projective: str = "error",
        arc_features: Any = "default",
    ) -> None:
        for name, value, choices in (("root", root, ROOTS), ("non_projective", non_projective, NON_PROJECTIVE)):
            if value not in choices:
                raise ValueError(
                    f"The '{name}' parameter of Dependency must be one of {list(choices)}. Got {value!r} instead."
                )
        self.labels = None if labels is None else [str(label) for label in labels]
        self.root, self.non_projective, self.arc_features = root, non_projective, arc_features
        if self.labels is not None and (
            len(self.labels) < 2 or self.labels[0] != EMPTY or len(set(self.labels)) < len(self.labels)
        ):
            raise ValueError(
                "The 'labels' parameter of Dependency must be distinct labels, the empty one first. Got "
                f"{self.labels!r:.200} instead."
            )
        self.n_labels = len(self.labels or ())
        self._n_columns: int | None = None
        self._tags: int | None = None  # the column of tags, once the default features are made
        given = None if isinstance(arc_features, str) and arc_features == "default" else arc_features
        self._features = read_row_features(given, ANCHORS, ARGUMENT)

    @property
    def n_cliques(self) -> int:
        """0: arcs do not depend on each other but by being a tree."""
        return 0

    @property
    def is_free(self) -> bool:
        """Whether every labelling is allowed: only trees are."""
        return False

    @property
    def leaves_out(self) -> bool:
        """Whether trees whose arcs cross are left out."""
        return self.non_projective == "skip"

    @property
    def is_labelled(self) -> bool | None:
        """Whether arcs have labels; None if labels are not known yet."""
        return None if self.labels is None else self.labels != [EMPTY, ARC]

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.DependencyStructure:
        """Create the native twin for sentences of given lengths."""
        n = n_words_of(shape.lengths)
        for i in np.flatnonzero(n * n != shape.lengths)[:1].tolist():
            raise ValueError(
                f"Example {i} must have n * n rows, one for each arc of its n words. Got {shape.lengths[i]} instead."
            )
        return _native.DependencyStructure(self.n_labels, shape.offsets, self.root == "single")

    def open(self, X: Any, lengths: ArrayLike | None = None) -> Opened:
        """Take sentences apart: what makes the features of their arcs, and their sizes.

        Parameters
        ----------
        X : list of sentences, or of arrays with a row for each arc
            Sentences as users pass them.
        lengths : array of int, default=None
            How many rows of a flat `X` each sentence has.

        Returns
        -------
        Opened
            As in :meth:`Structure.open`.

        Examples
        --------
        >>> from dualfield.structures import Dependency
        >>> opened = Dependency(arc_features=["%x[head]>%x[child]"]).open([["She", "reads"]])
        >>> list(opened.nodes.build().vocabulary)
        ['A0:_ROOT>She', 'A0:reads>She', 'A0:_ROOT>reads', 'A0:She>reads']
        """
        if lengths is not None or self.arc_features is None:
            return Opened(X, lengths, self._connect(None, None, None))
        sentences = [opened(one) for one in listed(X)]
        if any(isinstance(one, np.ndarray) and one.dtype.kind in "fiub" for one in sentences):
            return Opened(sentences, None, self._connect(None, None, None))
        kept = sentences if sentences and all(isinstance(one, DependencySentence) for one in sentences) else None
        tokens = [one.tokens if isinstance(one, DependencySentence) else one for one in sentences]
        if not callable(self.arc_features):  # a function may take any tokens
            tokens = read_sentences(tokens)
        width = next((1 if isinstance(token, str) else len(token) for one in tokens for token in one), None)
        anchors, offsets = arc_anchors([len(one) for one in tokens])
        features, tags = self._features, self._tags
        if features is None:
            tags = tags or tag_column(tokens, width or 1)
            features = default_arc_texts(self._n_columns or width or 1, tags)
        return Opened(
            AnchoredRows(tokens, anchors, features, offsets=offsets, names=ANCHORS),
            None,
            self._connect(kept, width, tokens, tags),
        )

    def _connect(
        self,
        sentences: Sequence[DependencySentence] | None,
        n_columns: int | None,
        tokens: Sequence[Any] | None,
        tags: int | None = None,
    ) -> Any:
        def connect(offsets: NDArray[np.int64]) -> ArcShape:
            n_arcs = np.diff(offsets)
            n = n_words_of(n_arcs)
            for i in np.flatnonzero(n * n != n_arcs)[:1].tolist():
                raise ValueError(
                    f"X[{i}] must have n * n rows, one for each arc of its n words. Got {n_arcs[i]} instead."
                )
            return ArcShape(
                offsets,
                is_single=self.root == "single",
                non_projective=self.non_projective,
                is_labelled=self.is_labelled,
                sentences=sentences,
                n_columns=n_columns,
                tags=tags,
                tokens=tokens,
            )

        return connect

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> Dependency:
        """Return the structure for the labels of training data."""
        labels = [str(name) for name in names]
        if constraints is not None:
            raise ValueError(f"The 'constraints' parameter of {owner} must be None: trees have none but to be trees.")
        if self.labels is not None and self.labels != labels:
            raise ValueError(f"structure has the labels {self.labels!r:.200}; y has {labels!r:.200}.")
        found = Dependency(labels, self.root, non_projective=self.non_projective, arc_features=self.arc_features)
        if isinstance(shape, ArcShape):
            found._n_columns, found._tags = shape.n_columns, shape.tags
        return found

    def why_impossible(self, scores: Scores | ArrayLike, *, n_jobs: int | None = None) -> dict[int, str]:
        """Return which sentences have no tree: arcs that are known, or forbidden, leave none."""
        roots = " with one word below the root" if self.root == "single" else ""
        reason = f"no projective tree{roots} has the arcs that are known, or only arcs that are not forbidden."
        return dict.fromkeys(super().why_impossible(scores, n_jobs=n_jobs), reason)

    def agreement(self, predicted: Any, y: Any) -> float | None:
        """Return the share of words with the right head, and the right label where trees have labels (UAS, LAS)."""
        found = attached(y, predicted)
        right = found.right_head if found.right_label is None else found.right_label
        return float(right.sum() / max(int(found.is_known.sum()), 1))

    def record(self) -> Fields:
        """Return the record of the structure."""
        if callable(self.arc_features):
            raise ValueError(
                "A Dependency whose arc_features is a function cannot be saved: a model file holds no code. Use texts "
                "with macros, or pass rows of arcs as X."
            )
        texts = self._features.texts if isinstance(self._features, AnchoredTexts) else None
        return {
            "kind": self.name,
            "labels": self.labels,
            "root": self.root,
            "non_projective": self.non_projective,
            "arc_features": None if texts is None else list(texts),
            "has_default_features": self.arc_features is not None and texts is None,
            "n_columns": self._n_columns,
            "tags": self._tags,
        }

    @classmethod
    def from_record(cls, record: Record) -> Dependency:
        """Build a structure from its record, which is checked."""
        record.text("kind", (cls.name,))
        labels = record.items("labels", str) if record.has("labels") else None
        features: Any = "default" if record.flag("has_default_features") else None
        if record.has("arc_features"):
            features = record.items("arc_features", str)
        root, crossing = record.text("root", ROOTS), record.text("non_projective", NON_PROJECTIVE)
        with record.source.at_fault():
            found = cls(labels, root, non_projective=crossing, arc_features=features)
        if record.has("n_columns"):
            found._n_columns = record.integer("n_columns", 1)
        if record.has("tags"):
            found._tags = record.integer("tags", 1)
        return found

    def _settings(self) -> tuple[Any, ...]:
        texts = self._features
        features = texts.texts if isinstance(texts, AnchoredTexts) else self.arc_features
        return self.labels, self.root, self.non_projective, features, self._n_columns, self._tags

    def __eq__(self, other: object) -> bool:
        return self._settings() == other._settings() if isinstance(other, Dependency) else NotImplemented

    def __hash__(self) -> int:
        return hash((tuple(self.labels or ()), self.root, self.non_projective))

    def __repr__(self) -> str:
        given = [] if self.labels is None else [repr(self.labels)]
        given += [f"root={self.root!r}"] if self.root != "single" else []
        given += [f"non_projective={self.non_projective!r}"] if self.non_projective != "error" else []
        is_default = isinstance(self.arc_features, str) and self.arc_features == "default"
        given += [] if is_default else [f"arc_features={self.arc_features!r}"]
        return f"Dependency({', '.join(given)})"
