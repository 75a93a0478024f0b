"""Scores on held-out data: cards with the figures that matter most, tables by type or label, and calibration."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualfield.metrics import SpanScores, calibration_error, sequence_accuracy_score, token_log_loss
from dualfield.plotting import ConfusionDisplay, ReliabilityDisplay
from dualfield.plotting.labels import most_of, shown_note
from dualfield.plotting.markup import Html, escape
from dualfield.plotting.tables import table
from dualfield.report.training_dev import DevResult

_MOST_ROWS = 45  # labels in a table
_LONG = 20  # rows of a table that is folded
_NO_PROBABILITIES = (
    "The model has margins and no probabilities, so there is no log-loss and no reliability diagram here. Margins "
    "become probabilities by calibrate(X, y), with data that the model was not trained on."
)
_TOO_WIDE = (
    "{:,} of {:,} {}s are too wide for exact answers. The answers about them are bounds of a relaxation, whose beliefs "
    "are no probabilities, so there is no log-loss, no reliability diagram and no confidence here. A larger budget of "
    "the structure brings them."
)

Card = tuple[str, str, str]  # name, figure, and what it is


def score_cards(result: DevResult) -> list[Card]:
    """Return the figures that matter most: name, figure, and what it means."""
    right = f"{100.0 * result.accuracy:.2f} %"
    scores = result.span_scores
    if scores is None:
        cards = [("accuracy", right, "of the labels are right")]
        cards.append(("macro F1", f"{100.0 * _macro_f1(result):.2f} %", "mean over the labels"))
    else:
        precision, recall, f1 = _percentages(scores.overall.correct, scores.overall.found, scores.overall.support)
        cards = [
            ("F1", f"{f1:.2f} %", "of spans"),
            ("precision", f"{precision:.2f} %", f"of {scores.overall.found:,} predicted spans"),
            ("recall", f"{recall:.2f} %", f"of {scores.overall.support:,} true spans"),
            ("accuracy", right, "of the labels are right"),
        ]
    if result.tokens is not None:
        whole = sequence_accuracy_score(result.truth, result.predicted)
        cards.append((f"{result.whole}s right", f"{100.0 * whole:.2f} %", f"of {len(result.truth):,}, throughout"))
    if result.marginals is not None:
        unknown = {label for labels in result.truth for label in labels}.difference(result.classes)
        if not unknown:
            loss = token_log_loss(result.truth, result.marginals, result.classes)
            cards.append(("log-loss", f"{loss:.4f}", "nats per label; lower is better"))
        error = calibration_error(result.truth, result.marginals, result.classes)
        cards.append(("calibration error", f"{error:.4f}", "mean |accuracy - confidence|"))
    return cards


def score_section(result: DevResult) -> Iterator[Html]:
    """Lay out cards, and scores of each type or label."""
    yield cards_html(score_cards(result))
    if result.tokens is None:
        size = counted(result.n_tokens, "example")
    else:
        size = f"{counted(len(result.truth), result.whole)} with {counted(result.n_tokens, result.part)}"
    yield Html(f'<p class="soft">On held-out data: {size}.</p>')
    scores = result.span_scores
    numbers = _label_table(_confusion(result)) if scores is None else _span_table(scores)
    if numbers.count("<tr>") > _LONG:
        yield from _calibration(result)
        yield Html(f"<details><summary>Scores of each label</summary>{numbers}</details>")
        return
    yield Html(f'<div class="columns"><div>{numbers}</div><div>')
    yield from _calibration(result)
    yield Html("</div></div>")


def cards_html(cards: list[Card]) -> Html:
    """Lay out figures as cards."""
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}<small>{escape(what)}</small></dd></div>"
        for name, figure, what in cards
    )
    return Html(f'<dl class="scores">{items}</dl>')


def _calibration(result: DevResult) -> Iterator[Html]:
    """Draw accuracy against confidence, or say why there is nothing to draw."""
    if result.graphs is not None and result.graphs.n_wide:
        yield Html(f"<p>{_TOO_WIDE.format(result.graphs.n_wide, len(result.truth), result.whole)}</p>")
        return
    if result.marginals is None:
        yield Html(f"<p>{_NO_PROBABILITIES}</p>")
        return
    yield Html("<h3>Are the probabilities calibrated?</h3>")
    if result.calibration is not None:
        yield result.calibration.html()
        note = "Scores are divided by a temperature before they become probabilities, which calibrate(X, y) has chosen."
    else:
        name = "held-out data"
        yield ReliabilityDisplay.from_predictions(result.truth, result.marginals, result.classes, name=name).html()
        note = "Below the diagonal the model is too sure, above it too cautious."
    yield Html(
        f'<p class="soft">The most probable label of each {result.part}, in ten bins by its probability. Larger marks '
        f"hold more labels, bars are two standard errors. {note}</p>"
    )


def counted(n: int, what: str) -> str:
    """Write a number of things."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def _percentages(correct: int, found: int, support: int) -> tuple[float, float, float]:
    # In conlleval's order of operations, which decides the last digit where the next one would be a 5.
    precision, recall = (100 * correct / max(total, 1) for total in (found, support))
    return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0


def _span_table(scores: SpanScores) -> Html:
    cells = []
    for name, one in [("all", scores.overall), *scores.types.items()]:
        shares = (f"{share:.2f}" for share in _percentages(one.correct, one.found, one.support))
        cells.append((name, *shares, one.found, one.support))
    header = ("spans", "precision", "recall", "F1", "found", "true")
    return table(header, cells, caption="Spans, in percent, counted as conlleval does")


def _confusion(result: DevResult) -> ConfusionDisplay:
    return ConfusionDisplay.from_predictions(result.truth, result.predicted, labels=result.classes)


def _macro_f1(result: DevResult) -> float:
    """Return the mean F1 of labels that are true or predicted somewhere."""
    counts = _confusion(result).counts
    total = counts.sum(axis=0) + counts.sum(axis=1)
    return float((2.0 * np.diag(counts)[total > 0] / total[total > 0]).mean())


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
