"""Results on held-out data: predictions, probabilities and spans of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from dualfield.data.labels import in_a_row
from dualfield.data.token_texts import token_texts
from dualfield.metrics import SpanScores, span_scores
from dualfield.metrics.sequences import labels_for, paired
from dualfield.plotting import CalibrationChangeDisplay, GraphDisplay, MarginalsDisplay
from dualfield.plotting.labels import as_sequences, label_list
from dualfield.plotting.marginals import span_probabilities
from dualfield.plotting.sentence import mark_spans
from dualfield.report.training_graphs import DevGraphs, has_graphs, predicted_graphs

Window = tuple[int, int, int]  # a sentence, its first token shown, and the one behind the last


class DevData(NamedTuple):
    """Labelled data that a model has not been trained on, for :func:`training_page`.

    Attributes
    ----------
    X : sequences, or array of shape (n, n_features)
        In the form that the model takes.
    y : list of label sequences, or labels
        The true labels.
    tokens : list of lists of str, default=None
        What is written where sentences are shown; None: the word of each token, where its attributes tell it, or its
        number.

    Examples
    --------
    >>> from dualfield.report import DevData
    >>> DevData([[["a"], ["b"]]], [["x", "y"]]).tokens is None
    True
    """

    X: Any
    y: Any
    tokens: Any = None


@dataclass(frozen=True, eq=False, kw_only=True)
class DevResult:
    """Truth, prediction and probabilities, sequence by sequence; examples of a classifier are one sequence."""

    truth: list[list[Any]]
    predicted: list[list[Any]]
    marginals: list[NDArray[np.float64]] | None  # None: the model has no probabilities
    classes: list[Any]
    tokens: list[list[str]] | None  # None: examples are single nodes
    spans: list[list[Any]] | None = None  # with their probabilities; None: these are not known
    calibration: CalibrationChangeDisplay | None = None  # of a model whose temperature was chosen after the fit
    graphs: DevGraphs | None = None  # None: examples are sentences, or single nodes

    @property
    def n_tokens(self) -> int:
        """Number of labels."""
        return sum(map(len, self.truth))

    @property
    def accuracy(self) -> float:
        """Share of labels that are right."""
        pairs = zip(self.truth, self.predicted, strict=True)
        return sum(bool(a == b) for one, other in pairs for a, b in zip(one, other, strict=True)) / self.n_tokens

    @property
    def whole(self) -> str:
        """What an example is called."""
        return "sentence" if self.graphs is None else self.graphs.whole

    @property
    def part(self) -> str:
        """What a label belongs to."""
        return "token" if self.graphs is None else self.graphs.part

    @cached_property
    def marks_spans(self) -> bool:
        """Whether the labels, the true ones too, are those of spans of sentences."""
        return self.graphs is None and mark_spans(
            [*self.classes, *{label for labels in self.truth for label in labels}]
        )

    @cached_property
    def span_scores(self) -> SpanScores | None:
        """Scores of spans; None where labels mark none."""
        return span_scores(self.truth, self.predicted) if self.marks_spans else None

    @cached_property
    def chances(self) -> list[NDArray[np.float64]]:
        """The probability of each predicted label; 1 where the model has none."""
        if self.marginals is None:
            return [np.ones(len(labels)) for labels in self.predicted]
        code = {label: at for at, label in enumerate(self.classes)}
        return [
            rows[np.arange(len(labels)), [code[label] for label in labels]] if labels else np.zeros(0)
            for rows, labels in zip(self.marginals, self.predicted, strict=True)
        ]

    def graph(self, at: int) -> GraphDisplay:
        """Return a graph, for display."""
        assert self.graphs is not None
        chances = None if self.marginals is None else self.chances[at]
        return self.graphs.display(at, self.truth[at], chances, self.classes)

    def sentence(self, window: Window) -> MarginalsDisplay:
        """Return a part of a sentence, for display; no span crosses its ends."""
        assert self.tokens is not None
        at, begin, end = window
        spans = None
        if self.spans is not None:
            inside = (span for span in self.spans[at] if begin <= span[1] and span[2] <= end)
            spans = [(kind, start - begin, stop - begin, chance) for kind, start, stop, chance in inside]
        return MarginalsDisplay(
            self.tokens[at][begin:end],
            self.predicted[at][begin:end],
            None if self.marginals is None else self.chances[at][begin:end],
            self.truth[at][begin:end],
            spans=spans,
            classes=self.classes,
        )


def evaluated(model: Any, dev: DevData) -> DevResult:
    """Predict labels, probabilities and spans of dev data."""
    X = list(dev.X) if isinstance(dev.X, Iterator) else dev.X
    classes = label_list(model.classes_)
    if has_graphs(model) and getattr(X, "node_types", None) is None:  # flat ones are not cut apart by type
        return _evaluated_graphs(model, list(X), dev, classes)
    marginals = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    found = model.predict(X)
    truth, predicted = paired(as_sequences(labels_for(model, dev.y, found)), as_sequences(found))
    if has_single_nodes(model):
        rows = None if marginals is None else [np.asarray(marginals)] if truth else []
        return DevResult(
            truth=truth,
            predicted=predicted,
            marginals=rows,
            classes=classes,
            tokens=None,
            calibration=_change(model, X, truth),
        )
    spans = span_probabilities(model, X)
    return DevResult(
        truth=truth,
        predicted=predicted,
        marginals=None if marginals is None else [_table(one) for one in marginals],
        classes=classes,
        tokens=_texts(X, truth, dev.tokens),
        spans=spans,
        calibration=_change(model, X, truth),
    )


def _evaluated_graphs(model: Any, X: list[Any], dev: DevData, classes: list[Any]) -> DevResult:
    graphs = predicted_graphs(model, X, dev.tokens)
    truth, predicted = paired(as_sequences(dev.y), as_sequences(graphs.predicted))
    if dev.tokens is not None:
        _texts(X, truth, dev.tokens)
    return DevResult(
        truth=truth,
        predicted=predicted,
        marginals=graphs.marginals,
        classes=classes,
        tokens=[[str(at) for at in range(len(labels))] for labels in truth],
        calibration=None if graphs.n_wide else _change(model, X, truth),
        graphs=graphs,
    )


def _change(model: Any, X: Any, truth: list[list[Any]]) -> CalibrationChangeDisplay | None:
    """Return how probabilities changed by calibrate; None where it was not called, or labels are not known."""
    known = {label for labels in truth for label in labels}.issubset(label_list(model.classes_))
    if not hasattr(model, "calibration_") or not known or not any(truth):
        return None
    return CalibrationChangeDisplay.from_estimator(model, X, truth)


def _table(marginals: Any) -> NDArray[np.float64]:
    """Return a row for each node, also where they come by type."""
    return np.asarray(in_a_row(marginals) if isinstance(marginals, dict) else marginals)


def has_single_nodes(model: Any) -> bool:
    """Return whether a model labels examples one by one, not as parts of sequences or other structures."""
    return is_classifier(model) or getattr(getattr(model, "structure_", None), "is_flat", False)


def _texts(X: Any, truth: list[list[Any]], tokens: Any) -> list[list[str]]:
    """Return what is written at each token, after checking that there is one text for each label."""
    if tokens is None:
        sequences = X if isinstance(X, list | tuple) else [None] * len(truth)
        return [token_texts(xseq, len(labels)) for xseq, labels in zip(sequences, truth, strict=True)]
    texts = [[str(token) for token in sentence] for sentence in tokens]
    for i, (one, labels) in enumerate(zip(texts, truth, strict=False)):
        if len(one) != len(labels):
            raise ValueError(f"tokens[{i}] has {len(one)} entries; y[{i}] has {len(labels)} labels.")
    if len(texts) != len(truth):
        raise ValueError(f"tokens has {len(texts)} sentences; y has {len(truth)}.")
    return texts
