"""Results on held-out data: predictions, scores, and sentences chosen by a rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from dualfield.data.token_texts import token_texts
from dualfield.metrics import SpanScores, sequence_accuracy_score, span_scores
from dualfield.metrics.sequences import paired
from dualfield.plotting import ConfusionDisplay, MarginalsDisplay, ReliabilityDisplay
from dualfield.plotting.labels import as_sequences, label_list, most_of, shown_note
from dualfield.plotting.markup import Html, escape
from dualfield.report.page import table

_MOST_ROWS = 45  # labels in a table
_MOST_TOKENS = 60  # of a sentence
_PER_GROUP = 4
_NO_PROBABILITIES = (
    "The model has margins and no probabilities, so there is no reliability diagram here, and there are no sentences "
    "with the probabilities of their labels. Margins become probabilities by calibrate(X, y), with data that the model "
    "was not trained on."
)

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
        What is written where sentences are shown; None: the first attribute or column of text.

    Examples
    --------
    >>> from dualfield.report import DevData
    >>> DevData([[["a"], ["b"]]], [["x", "y"]]).tokens is None
    True
    """

    X: Any
    y: Any
    tokens: Any = None


@dataclass(frozen=True, eq=False)
class DevResult:
    """Truth, prediction and probabilities, sequence by sequence; examples of a classifier are one sequence."""

    truth: list[list[Any]]
    predicted: list[list[Any]]
    marginals: list[NDArray[np.float64]] | None  # None: the model has no probabilities
    classes: list[Any]
    tokens: list[list[str]] | None

    @property
    def n_tokens(self) -> int:
        """Number of labels."""
        return sum(map(len, self.truth))

    @property
    def accuracy(self) -> float:
        """Share of labels that are right."""
        pairs = zip(self.truth, self.predicted, strict=True)
        return sum(bool(a == b) for one, other in pairs for a, b in zip(one, other, strict=True)) / self.n_tokens

    def sentence(self, window: Window) -> MarginalsDisplay:
        """Return a part of a sentence, for display."""
        assert self.marginals is not None
        at, begin, end = window
        texts = None if self.tokens is None else self.tokens[at]
        return MarginalsDisplay.from_predictions(
            [str(place) for place in range(begin, end)] if texts is None else texts[begin:end],
            self.marginals[at][begin:end],
            self.classes,
            labels=self.predicted[at][begin:end],
            truth=self.truth[at][begin:end],
        )


def evaluated(model: Any, dev: DevData) -> DevResult:
    """Predict labels and probabilities of dev data."""
    X = list(dev.X) if isinstance(dev.X, Iterator) else dev.X
    classes = label_list(model.classes_)
    marginals = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    truth, predicted = paired(as_sequences(dev.y), as_sequences(model.predict(X)))
    if is_classifier(model):
        rows = None if marginals is None else [np.asarray(marginals)] if truth else []
        return DevResult(truth, predicted, rows, classes, None)
    tokens = dev.tokens
    if tokens is None:
        sequences = X if isinstance(X, list | tuple) else [None] * len(truth)
        tokens = [token_texts(xseq, len(labels)) for xseq, labels in zip(sequences, truth, strict=True)]
    texts = [[str(token) for token in sentence] for sentence in tokens]
    for i, (one, labels) in enumerate(zip(texts, truth, strict=False)):
        if len(one) != len(labels):
            raise ValueError(f"tokens[{i}] has {len(one)} entries; y[{i}] has {len(labels)} labels.")
    if len(texts) != len(truth):
        raise ValueError(f"tokens has {len(texts)} sentences; y has {len(truth)}.")
    return DevResult(truth, predicted, None if marginals is None else list(marginals), classes, texts)


def score_section(result: DevResult) -> Iterator[Html]:
    """Lay out scores: of spans by type where labels mark spans, and else of each label."""
    right = f"{100.0 * result.accuracy:.2f} % of the labels are right"
    if result.tokens is None:
        yield Html(f"<p>{_counted(result.n_tokens, 'example')}; {right}.</p>")
    else:
        whole = sequence_accuracy_score(result.truth, result.predicted)
        size = f"{_counted(len(result.truth), 'sentence')} with {_counted(result.n_tokens, 'token')}"
        yield Html(f"<p>{size}; {right}, and {100.0 * whole:.2f} % of the sentences are right throughout.</p>")
    confusion = ConfusionDisplay.from_predictions(result.truth, result.predicted, labels=result.classes)
    spans = _span_scores(result)
    yield _label_table(confusion) if spans is None else _span_table(spans)
    yield Html("<h2>Confusions</h2>")
    yield confusion.html()
    if result.marginals is None:
        yield Html(f"<p>{_NO_PROBABILITIES}</p>")
        return
    yield Html("<h2>Are the probabilities calibrated?</h2>")
    marginals = ReliabilityDisplay.from_predictions(result.truth, result.marginals, result.classes, name="dev data")
    yield marginals.html()
    yield Html(
        '<p class="soft">The most probable label of each token, in ten bins by its probability. Larger marks hold more '
        "labels, bars are two standard errors. Below the diagonal the model is too sure, above it too cautious.</p>"
    )


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def _span_scores(result: DevResult) -> SpanScores | None:
    try:
        return span_scores(result.truth, result.predicted)
    except (TypeError, ValueError):  # the labels do not mark spans
        return None


def _span_table(scores: SpanScores) -> Html:
    cells = []
    for name, one in [("all", scores.overall), *scores.types.items()]:
        # In conlleval's order of operations, which decides the last digit where the next one would be a 5.
        precision, recall = (100 * one.correct / max(total, 1) for total in (one.found, one.support))
        f1 = 2 * precision * recall / (precision + recall) if one.correct else 0.0
        cells.append((name, f"{precision:.2f}", f"{recall:.2f}", f"{f1:.2f}", one.found, one.support))
    header = ("spans", "precision", "recall", "F1", "found", "true")
    return table(header, cells, caption="Spans, in percent, counted as conlleval does")


def _label_table(confusion: ConfusionDisplay) -> Html:
    right = np.diag(confusion.counts)
    support, found = confusion.counts.sum(axis=1), confusion.counts.sum(axis=0)
    cells = []
    shown = most_of(support + found, _MOST_ROWS)
    for at in shown[(support + found)[shown] > 0]:
        shares = (right[at] / max(found[at], 1), right[at] / max(support[at], 1))
        f1 = 2.0 * right[at] / max(found[at] + support[at], 1)
        percents = (f"{100.0 * share:.2f}" for share in (*shares, f1))
        cells.append((confusion.labels[at], *percents, found[at], support[at]))
    note = shown_note(len(shown), len(confusion.labels), "labels, the most frequent")
    header = ("label", "precision", "recall", "F1", "found", "true")
    return table(header, cells, caption="Labels, in percent" + (f"; {note}" if note else ""))


def sentence_section(result: DevResult) -> Iterator[Html]:
    """Show sentences in three groups, each with the rule by which they were chosen."""
    yield Html(
        "<p>Each token with its predicted label and the probability of that label: the stronger the colour, the surer. "
        "A wrong label is struck out and framed, with the true one below it.</p>"
    )
    for rule, windows in chosen_sentences(result):
        yield Html(f"<h3>{escape(rule)}</h3>")
        for window in windows:
            at, begin, end = window
            length = len(result.truth[at])
            part = f", tokens {begin + 1} to {end} of {length}" if end - begin < length else ""
            yield Html(f'<p class="soft">Sentence {at + 1}{part}</p>')
            yield result.sentence(window).html()


def chosen_sentences(result: DevResult) -> Iterator[tuple[str, list[Window]]]:
    """Give out the rule of each group, and the parts of sentences that it chooses."""
    assert result.marginals is not None
    code = {label: at for at, label in enumerate(result.classes)}
    chances = [
        rows[np.arange(len(labels)), [code[label] for label in labels]] if labels else np.zeros(0)
        for rows, labels in zip(result.marginals, result.predicted, strict=True)
    ]
    wrong = [
        np.array([a != b for a, b in zip(one, other, strict=True)], dtype=bool)
        for one, other in zip(result.truth, result.predicted, strict=True)
    ]
    filled = [at for at, chance in enumerate(chances) if len(chance)]
    mistaken = [at for at in filled if wrong[at].any()]
    worst = {at: int(np.where(wrong[at], chances[at], -1.0).argmax()) for at in mistaken}
    sure = sorted(mistaken, key=lambda at: (-chances[at][worst[at]], at))[:_PER_GROUP]
    if sure:
        rule = f"Wrong and sure: a wrong label with a high probability, highest first ({len(sure)} of {len(mistaken)})"
        yield rule, [_window(at, worst[at], len(chances[at])) for at in sure]
    others = [at for at in filled if at not in sure]
    least = {at: int(chances[at].argmin()) for at in others}
    unsure = sorted(others, key=lambda at: (chances[at][least[at]], at))[:_PER_GROUP]
    if unsure:
        rule = f"Uncertain: the label with the lowest probability, lowest first ({len(unsure)} of {len(others)} others)"
        yield rule, [_window(at, least[at], len(chances[at])) for at in unsure]
    right = [at for at in others if at not in unsure and not wrong[at].any()]
    if right:
        rule = f"Right throughout: the first in order ({len(right[:_PER_GROUP])} of {len(right)} others)"
        yield rule, [_window(at, 0, len(chances[at])) for at in right[:_PER_GROUP]]


def _window(at: int, focus: int, length: int) -> Window:
    begin = min(max(0, focus - _MOST_TOKENS // 2), max(0, length - _MOST_TOKENS))
    return at, begin, min(length, begin + _MOST_TOKENS)
