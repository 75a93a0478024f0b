"""Sentences for a report: chosen by a rule, and cut where they are long."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualfield.metrics import spans
from dualfield.plotting.markup import Html
from dualfield.report.training_dev import DevResult, Window

_MOST_TOKENS = 60  # of a sentence
_PER_GROUP = 4


def chosen_sentences(result: DevResult) -> Iterator[tuple[str, list[Window]]]:
    """Give out the rule of each group, and the parts of sentences that it chooses."""
    chances = result.chances
    wrong = [
        np.array([a != b for a, b in zip(one, other, strict=True)], dtype=bool)
        for one, other in zip(result.truth, result.predicted, strict=True)
    ]
    filled = [at for at, chance in enumerate(chances) if len(chance)]
    mistaken = [at for at in filled if wrong[at].any()]
    worst = {at: int(np.where(wrong[at], chances[at], -1.0).argmax()) for at in mistaken}
    sure = sorted(mistaken, key=lambda at: (-chances[at][worst[at]], at))[:_PER_GROUP]
    if sure:
        by = "a wrong label with a high probability, highest first" if result.marginals is not None else "the first"
        yield (
            f"Wrong{' and sure' * (result.marginals is not None)}: {by} ({len(sure)} of {len(mistaken):,})",
            [window_around(result, at, worst[at]) for at in sure],
        )
    others = [at for at in filled if at not in sure]
    unsure: list[int] = []
    if result.marginals is not None and others:
        least = {at: int(chances[at].argmin()) for at in others}
        unsure = sorted(others, key=lambda at: (chances[at][least[at]], at))[:_PER_GROUP]
        rule = (
            f"Uncertain: the label with the lowest probability, lowest first ({len(unsure)} of {len(others):,} others)"
        )
        yield rule, [window_around(result, at, least[at]) for at in unsure]
    right = [at for at in others if at not in unsure and not wrong[at].any()]
    with_spans = [at for at in right if result.marks_spans and spans(result.predicted[at])]
    right = with_spans or right
    if right:
        first = "the first that have a span" if with_spans else "the first in order"
        rule = f"Right throughout: {first} ({len(right[:_PER_GROUP])} of {len(right):,} others)"
        yield rule, [window_around(result, at, 0) for at in right[:_PER_GROUP]]


def window_around(result: DevResult, at: int, focus: int) -> Window:
    """Return the part of a sentence that is shown around a token: no span is cut."""
    length = len(result.truth[at])
    begin = min(max(0, focus - _MOST_TOKENS // 2), max(0, length - _MOST_TOKENS))
    end = min(length, begin + _MOST_TOKENS)
    if result.marks_spans and end - begin < length:
        inner = np.zeros(length + 1, dtype=bool)  # whether a cut before a token would divide a span
        for _, start, stop in [*spans(result.truth[at]), *spans(result.predicted[at])]:
            inner[start + 1 : stop] = True
        begin = int(np.flatnonzero(~inner[: begin + 1])[-1])
        end += int(np.flatnonzero(~inner[end:])[0])
    return at, begin, end


def sentence_html(result: DevResult, window: Window) -> Html:
    """Lay out a part of a sentence, or a graph, with its number."""
    at, begin, end = window
    length = len(result.truth[at])
    if result.graphs is not None:
        display = result.graph(at)
        wrong = f"{sum(display.wrong):,} of {length:,} {result.part}s wrong" if any(display.wrong) else "all right"
        title = f"{result.whole.capitalize()} {at + 1}: {wrong}"
        return Html(f'<div class="example scroll"><p class="soft">{title}</p>{display.html()}</div>')
    part = f", tokens {begin + 1} to {end} of {length}" if end - begin < length else ""
    return Html(
        f'<div class="example"><p class="soft">Sentence {at + 1}{part}</p>{result.sentence(window).html()}</div>'
    )
