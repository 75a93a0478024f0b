"""Errors on held-out data: spans by what is wrong with them, labels by what they are taken for, with sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from dualfield.metrics import SpanError, span_errors
from dualfield.metrics.span_errors import KINDS
from dualfield.plotting import ConfusionDisplay
from dualfield.plotting.markup import Html, escape
from dualfield.plotting.tables import table
from dualfield.report.training_dev import DevResult
from dualfield.report.training_scores import counted
from dualfield.report.training_sentences import chosen_sentences, sentence_html, window_around

_EXAMPLES = 3  # sentences for each kind of error
_MOST_PAIRS = 10  # confusions that are listed
_MOST_TYPES = 5
_MEANS = {
    "missed": "a true span without a predicted counterpart",
    "spurious": "a predicted span without a true counterpart",
    "boundary": "the right type, but other bounds",
    "type": "another type than that of the true span",
}
_SPANS = "Each span with its type{}. Wrong spans are framed and say what is true; missed ones have a dashed frame.{}"
_NODES = "Each node in the colour of its predicted label{}. A wrong one has a red ring, with the true label beside it."
_PIXELS = "Each pixel in the colour of its predicted label{}, and beside it the true ones. Wrong ones are crossed out."
_SIZES = (", the larger, the more probable", ", the stronger, the more probable")
_TOKENS = "Each token with its predicted label{}. A wrong label is struck out and framed, with the true one below it."


def error_section(result: DevResult) -> Iterator[Html]:
    """Count the errors, show examples of each kind, and the matrix of confusions."""
    if result.marks_spans and result.tokens is not None:
        yield from _span_section(result)
    else:
        yield _confused_pairs(result)
    yield Html("<h3>Confusions of labels</h3>")
    yield ConfusionDisplay.from_predictions(result.truth, result.predicted, labels=result.classes).html()
    if result.tokens is None:
        return
    groups = list(chosen_sentences(result))
    if result.marks_spans:  # which has shown wrong ones
        groups = [group for group in groups if not group[0].startswith("Wrong")]
    if groups:
        yield Html(f"<h2>{result.whole.capitalize()}s</h2>")
        yield Html(f'<p class="soft">{_legend(result)}</p>')
    for rule, windows in groups:
        yield Html(f"<h3>{escape(rule)}</h3>")
        yield from (sentence_html(result, window) for window in windows)


def _legend(result: DevResult) -> str:
    """Say what boxes, colours and frames mean."""
    if result.graphs is not None:
        return (_PIXELS if result.whole == "image" else _NODES).format(
            "" if result.marginals is None else _SIZES[result.whole == "image"]
        )
    is_sure = ": the stronger the colour, the surer"
    if not result.marks_spans:
        return _TOKENS.format("" if result.marginals is None else f" and the probability of that label{is_sure}")
    if result.marginals is None:
        return _SPANS.format("", "")
    known = f" and its exact probability{is_sure}" if result.spans is not None else is_sure
    return _SPANS.format(known, " Words outside of spans are underlined where that is uncertain.")


def _span_section(result: DevResult) -> Iterator[Html]:
    errors = span_errors(result.truth, result.predicted)
    yield _error_table(errors)
    if not errors:
        return
    yield Html(f'<p class="soft">{_legend(result)}</p>')
    for kind in KINDS:
        mine = [error for error in errors if error.kind == kind]
        if not mine:
            continue
        # The surest ones, and of each sentence one.
        ranked = sorted(mine, key=lambda error: -sureness(result, error))
        first: dict[int, SpanError] = {}
        for error in ranked:
            first.setdefault(error.sequence, error)
        shown = list(first.values())[:_EXAMPLES]
        order = "the surest" if result.marginals is not None else "the first"
        yield Html(f"<h3>{kind.capitalize()}: {order} {len(shown)} of {len(mine):,}</h3>")
        yield from (sentence_html(result, window_around(result, error.sequence, _focus(error))) for error in shown)


def _error_table(errors: list[SpanError]) -> Html:
    rows = []
    for kind in KINDS:
        types = Counter((error.true or error.predicted or ("",))[0] for error in errors if error.kind == kind)
        most = ", ".join(f"{name} {count:,}" for name, count in types.most_common(_MOST_TYPES))
        share = f"{100.0 * types.total() / max(len(errors), 1):.1f}"
        rows.append((Html(f"{kind}<small>{_MEANS[kind]}</small>"), types.total(), share, most))
    what = f"{counted(len(errors), 'error')} of spans; types are the true ones where there is one"
    return Html(f'<div class="kinds">{table(("error", "number", "%", "by type"), rows, caption=what)}</div>')


def sureness(result: DevResult, error: SpanError) -> float:
    """Return how sure the model is of an error: the probability of its span, or of its labels where it found none."""
    if error.predicted is not None and result.spans is not None:
        return next(float(chance) for *span, chance in result.spans[error.sequence] if tuple(span) == error.predicted)
    _, start, stop = error.predicted or error.true or ("", 0, 0)
    return float(result.chances[error.sequence][start:stop].min())


def _focus(error: SpanError) -> int:
    return (error.predicted or error.true or ("", 0, 0))[1]


def _confused_pairs(result: DevResult) -> Html:
    """List the labels that are most often taken for another."""
    display = ConfusionDisplay.from_predictions(result.truth, result.predicted, labels=result.classes)
    wrong = display.counts - np.diag(np.diag(display.counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_PAIRS]
    rows = []
    for true, guess in zip(*np.unravel_index(order, wrong.shape), strict=True):
        if wrong[true, guess]:
            share = 100.0 * display.shares[true, guess]
            rows.append((display.labels[true], display.labels[guess], wrong[true, guess], f"{share:.1f}"))
    header = ("true", "predicted", "number", "% of the true label")
    return table(header, rows, caption=f"The most frequent of {counted(int(wrong.sum()), 'wrong label')}")
