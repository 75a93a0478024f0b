"""Labelled bracketings of sentences: parsing without a grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data.arrays import Codes
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure
from dualfield.structures.opened import Opened
from dualfield.structures.parse_trees.blame import with_brackets
from dualfield.structures.parse_trees.bracket_agreement import bracket_agreement
from dualfield.structures.parse_trees.span_features import DEFAULT, read_features, span_rows, taken_apart, width_of
from dualfield.structures.parse_trees.span_shape import EMPTY, FORMS, SpanShape
from dualfield.structures.scores import Scores

__all__ = ["Spans"]

_ROOTS = ("labelled", "any")


class Spans(Structure):
    r"""Trees over the words of a sentence, with a score for each label of each span: parsing without a grammar.

    .. math::
        \mathrm{score}(y) = \sum_{i < j} \mathrm{node}[(i, j), y_{ij}]

    A sentence of n words has n (n + 1) / 2 rows, one for each span; see :class:`SpanShape`. The label of a span is that
    of its bracket, with unary chains as one label, or ``""`` for no bracket, which has code 0 and no weights in models.
    Brackets do not cross, and have any number of parts. A score of -inf for ``""`` means that the bracket must be
    there.

    Every question is answered exactly, in time proportional to n³ + n² labels. :meth:`argmax` gives, among equally
    good trees, from the outermost span inwards: no bracket before a bracket, lower labels before higher ones, the
    shortest first part.

    In estimators X is sentences, lists of tokens: words, or tuples of a word and a tag. Or an array with a row of
    features for each span, or tuples ``(tokens, array)``. y is trees: :class:`dualfield.data.ParseTree`, brackets as
    str, trees of NLTK, or lists of (start, stop, label); predictions have the form of y. None in the place of a tree,
    and :class:`dualfield.data.PartialTree`, leave a tree or parts of it open. ``predict(X, known=...)`` takes lists of
    brackets that trees must have.

    Parameters
    ----------
    labels : sequence of str, default=None
        The labels in the order of their codes, ``""`` first. None: not known yet, for models that find them in their
        training data.
    root : {"labelled", "any"}, default="labelled"
        Whether the whole sentence must have a label.
    span_features : "default", list of str or callable, default="default"
        Features of spans. Texts with macros, as in :class:`SemiMarkov`: ``"%x[first]/%x[last,1]"``, ``"%n"``,
        ``"%x[all,1]"``, ``"%b[1]"``. Or a function of a sentence, the first word and the one behind the last, that
        returns attributes. Default: :func:`dualfield.structures.default_texts`. A model with a function cannot be
        saved.
    output : {"tree", "brackets", "nltk", "spans", "labels"}, default=None
        What predictions are. None: what y was in training.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.structures import Spans
    >>> X = [[("dogs", "NNS"), ("bark", "VBP")], [("a", "DT"), ("dog", "NN"), ("barks", "VBZ")]]
    >>> y = ["(S (NP (NNS dogs)) (VP (VBP bark)))", "(S (NP (DT a) (NN dog)) (VP (VBZ barks)))"]
    >>> model = CRF(Spans()).fit(X, y)
    >>> model.predict([[("a", "DT"), ("cat", "NN"), ("sleeps", "VBZ")]])
    ['(S (NP (DT a) (NN cat)) (VP (VBZ sleeps)))']
    """

    name = "spans"
    empty_label = 0

    def __init__(
        self,
        labels: Sequence[str] | None = None,
        *,
        root: str = "labelled",
        span_features: Any = DEFAULT,
        output: str | None = None,
    ) -> None:
        for name, value, choices in (("root", root, _ROOTS), ("output", output, (*FORMS, None))):
            if value not in choices:
                raise ValueError(f"The {name!r} parameter of Spans must be one of {choices}. Got {value!r} instead.")
        self.labels = None if labels is None else [str(label) for label in labels]
        if self.labels is not None and (len(set(self.labels)) < len(self.labels) or self.labels[:1] != [EMPTY]):
            raise ValueError("The 'labels' parameter of Spans must be distinct labels, the first of them ''.")
        self.root, self.span_features, self.output = root, span_features, output
        self._features = read_features("Spans", span_features)
        self._n_columns: int | None = None  # of tokens, once the default features are made for them
        self.n_labels = len(self.labels or ())

    @property
    def n_columns(self) -> int | None:
        """Columns of the tokens that it was made for; None if it is not known."""
        return self._n_columns

    @property
    def n_cliques(self) -> int:
        """There are no shared scores."""
        return 0

    @property
    def no_pairs(self) -> str | None:
        """Why edges are not pairs of labels."""
        return "needs pairs of labels; Spans has brackets."

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.SpansStructure:
        """Create the native twin for sentences of given numbers of rows."""
        return _native.SpansStructure(
            n_labels=self.n_labels, offsets=_as_spans(shape).checked().offsets, rooted=self.root == "labelled"
        )

    def open(self, X: Any, lengths: ArrayLike | None = None) -> Opened:
        """Take sentences: a row for each span.

        Parameters
        ----------
        X : list of sentences, of arrays, or of tuples (tokens, array)
            Tokens are str, or tuples of str, the word first, then its tag. Arrays have a row for each span: first
            those that begin at the first word, the shorter ones first.
        lengths : array of int, default=None
            How many rows of a flat matrix `X` each sentence has.

        Returns
        -------
        Opened
            As in :meth:`Structure.open`.

        Examples
        --------
        >>> from dualfield.structures import Spans
        >>> Spans(span_features=["%x[first]/%n"]).open([["New", "York"]]).nodes.n_rows
        3
        """
        tokens, rows = taken_apart(X, lengths)
        forms: list[str] = []

        def connect(offsets: NDArray[np.int64]) -> SpanShape:
            shape = SpanShape(offsets, tokens, self.output, forms).checked()
            for i, (n, one) in enumerate(zip(shape.n_words.tolist(), tokens or (), strict=False)):
                if len(one) != n:
                    raise ValueError(f"X[{i}] has {len(one)} tokens and features for the spans of {n}.")
            return shape

        if rows is not None:
            return Opened(rows, lengths, connect)
        assert tokens is not None
        width = width_of(tokens)
        if self._features is None and None not in (self._n_columns, width) and self._n_columns != width:
            raise ValueError(
                f"X has tokens of {width} columns; the features were made for tokens of {self._n_columns}. Pass words "
                "with tags where the training data had tags, and words alone where it had none."
            )
        return Opened(span_rows(tokens, self._features, self._n_columns or width), None, connect)

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> Spans:
        """Return the structure for the labels of training data, which gives trees back in the form that came in."""
        if constraints is not None:
            raise ValueError(f"The 'constraints' parameter of {owner} must be None: Spans has none.")
        if self.labels is not None and self.labels != list(names):
            raise ValueError(f"structure has the labels {self.labels!r:.200}; y has {names!r:.200}.")
        made = self._copy(labels=list(names))
        if isinstance(shape, SpanShape):
            made.output = self.output or (shape.forms[0] if shape.forms else None)
            made._n_columns = None if shape.tokens is None else width_of(shape.tokens)
        return made

    def why_impossible(self, scores: Scores | ArrayLike, *, n_jobs: int | None = None) -> dict[int, str]:
        """Return which sentences have no tree, and which word or bracket is the cause."""
        reasons = super().why_impossible(scores, n_jobs=n_jobs)
        return with_brackets(self, self._read_scores(scores), reasons, self.labels) if reasons else reasons

    def agreement(self, predicted: Any, y: Any) -> float | None:
        """Return the F1 of labelled brackets, the outermost one included; None for labels of rows."""
        return bracket_agreement(predicted, y)

    def _copy(self, **changes: Any) -> Spans:
        settings = {"labels": self.labels, "root": self.root, "span_features": self.span_features}
        return Spans(**(settings | {"output": self.output} | changes))

    def record(self) -> Fields:
        """Return the record of the structure."""
        if callable(self.span_features):
            raise ValueError(
                "A Spans whose span_features is a function cannot be saved: a model file holds no code. Use texts with "
                "macros, or pass features of spans with X."
            )
        features = self.span_features
        return {
            "kind": self.name,
            "labels": self.labels,
            "root": self.root,
            "span_features": None if features == DEFAULT else [features] if isinstance(features, str) else [*features],
            "output": self.output,
            "n_columns": self._n_columns,
        }

    @classmethod
    def from_record(cls, record: Record) -> Spans:
        """Build a structure from its record, which is checked."""
        record.text("kind", (cls.name,))
        labels = record.items("labels", str) if record.has("labels") else None
        features = record.items("span_features", str) if record.has("span_features") else DEFAULT
        output = record.text("output", FORMS) if record.has("output") else None
        root = record.text("root", _ROOTS)
        n_columns = record.integer("n_columns", 1) if record.has("n_columns") else None
        with record.source.at_fault():
            found = cls(labels, root=root, span_features=features, output=output)
        found._n_columns = n_columns
        return found

    def _settings(self) -> tuple[Any, ...]:
        features = self.span_features
        features = list(features) if isinstance(features, tuple) else features
        return self.labels, self.root, features, self.output, self._n_columns

    def __eq__(self, other: object) -> bool:
        return self._settings() == other._settings() if isinstance(other, Spans) else NotImplemented

    def __hash__(self) -> int:
        return hash((tuple(self.labels or ()), self.root, self.output))

    def __repr__(self) -> str:
        said = [] if self.labels is None else [f"labels={self.labels!r}"]
        said += [] if self.root == "labelled" else [f"root={self.root!r}"]
        said += [] if self.span_features == DEFAULT else [f"span_features={self.span_features!r}"]
        said += [] if self.output is None else [f"output={self.output!r}"]
        return f"Spans({', '.join(said)})"


def _as_spans(shape: Shape) -> SpanShape:
    return shape if isinstance(shape, SpanShape) else SpanShape(shape.offsets)
