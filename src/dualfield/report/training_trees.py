"""Trees of held-out sentences in a report: evalb's figures or attachment scores, errors, and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dualfield.data.impossible import impossible_message
from dualfield.metrics import attachment_scores, calibration_bins, parse_scores
from dualfield.plotting import ReliabilityDisplay
from dualfield.plotting.markup import Html, escape
from dualfield.report.training_scores import Card, cards_html, counted
from dualfield.report.training_tree_tables import DevTrees, arc_tables, bracket_table, error_table

_PER_GROUP = 3  # sentences
_BRACKETS = (
    "Each bracket with its label{}. Wrong ones have a red border and say what is true; missed ones are dashed, beside "
    "the words."
)
_ARCS = "Each arc from head to dependent{}. Wrong ones are red; what is true is dashed, or written beside the word."


def tree_section(result: DevTrees) -> Iterator[Html]:
    """Lay out scores, errors and sentences."""
    if result.unparsed:
        total = len(result.numbers) + len(result.unparsed)
        names = {at: f"Sentence {at + 1}" for at in result.unparsed}
        said = impossible_message(result.unparsed, total, names)
        yield Html(f"<p>{escape(said)} They count as trees without brackets.</p>")
    if not result.places:
        yield Html("<p>The held-out data have no trees, so there is nothing to score.</p>")
        return
    yield cards_html(_arc_cards(result) if result.found.are_arcs else _bracket_cards(result))
    n_words = sum(len(result.found.words[at]) for at in result.places)
    size = f"{counted(len(result.places), 'sentence')} with {counted(n_words, 'word')}"
    yield Html(f'<p class="soft">On held-out data: {size}.</p>')
    tables = arc_tables(result) if result.found.are_arcs else [bracket_table(result)]
    yield Html(f'<div class="columns"><div>{"".join(tables)}</div><div>')
    if result.confidence is not None and len(result.confidence[0]):
        diagram = ReliabilityDisplay(calibration_bins(*result.confidence), f"{result.part}s")
        yield diagram.html()
    else:
        note = "The model has no probabilities. calibrate(X, y) makes some of its margins."
        yield Html(f'<p class="soft">{note}</p>')
    yield Html("</div></div><h2>Errors</h2>")
    yield error_table(result)
    yield from _sentences(result)


def _percent(share: float) -> str:
    return f"{100.0 * share:.2f} %"


def _calibration_card(result: DevTrees) -> list[Card]:
    if result.confidence is None or not len(result.confidence[0]):
        return []
    error = calibration_bins(*result.confidence).error
    return [("calibration error", f"{error:.4f}", f"mean |accuracy - confidence| of {result.part}s")]


def _arc_cards(result: DevTrees) -> list[Card]:
    assert result.found.truth is not None
    truth = [result.found.truth[at] for at in result.places]
    scores = attachment_scores(_heads(truth), _heads([result.found.predicted[at] for at in result.places]))
    cards = [("UAS", _percent(scores.uas), f"of {scores.n_words:,} words have the right head")]
    if scores.las is not None:
        cards.append(("LAS", _percent(scores.las), "have the right head and label"))
    cards.append(("sentences right", _percent(scores.exact_match), f"of {scores.n_trees:,}, all heads"))
    return cards + _calibration_card(result)


def _heads(trees: Any) -> list[list[Any]]:
    """Return arcs as the metrics take them: heads alone where there are no labels."""
    labelled = any(label for tree in trees for _, label in tree)
    return [[(head, label or None) if labelled else head for head, label in tree] for tree in trees]


def _bracket_cards(result: DevTrees) -> list[Card]:
    scores = parse_scores(*result.tree_pairs)
    total = scores.overall
    cards = [
        ("F1", _percent(total.f1), "of labelled brackets, by evalb's rules"),
        ("precision", _percent(total.precision), f"of {total.found:,} predicted brackets"),
        ("recall", _percent(total.recall), f"of {total.support:,} true brackets"),
        ("complete match", _percent(scores.complete_match), f"of {scores.n_sentences:,} sentences"),
        ("crossing brackets", f"{scores.average_crossing:.2f}", "for each sentence"),
    ]
    if scores.n_right_tags < scores.n_words:
        cards.append(("tagging", _percent(scores.tagging_accuracy), f"of {scores.n_words:,} words"))
    return cards + _calibration_card(result)


def _sentences(result: DevTrees) -> Iterator[Html]:
    """Show sentences that are wrong though the model is sure, those of which it is not sure, and right ones."""
    chances = result.found.chances
    is_wrong = {at: bool(sum(one.wrong)) or bool(getattr(one, "missed", ())) for at, one in result.displays.items()}
    mistaken = [at for at in result.places if is_wrong[at]]
    surest = {at: _extreme(result, at, wrong=True) for at in mistaken}
    wrong = sorted(mistaken, key=lambda at: (-surest[at], at))[:_PER_GROUP]
    groups = [(f"Wrong{', the surest first' if chances is not None else ''}", wrong, len(mistaken))]
    others = [at for at in result.places if at not in wrong]
    unsure: list[int] = []
    if chances is not None:
        least = {at: _extreme(result, at, wrong=False) for at in others}
        unsure = sorted(others, key=lambda at: (least[at], at))[:_PER_GROUP]
        groups.append(("Uncertain, the least probable first", unsure, len(others)))
    right = [at for at in others if at not in unsure and not is_wrong[at] and len(result.found.words[at]) > 2]
    groups.append(("Right throughout, in order", right[:_PER_GROUP], len(right)))
    legend = (_ARCS if result.found.are_arcs else _BRACKETS).format(
        "" if chances is None else " and its exact probability: the stronger, the surer"
    )
    yield Html(f'<h2>Sentences</h2><p class="soft">{legend}</p>')
    for name, places, total in groups:
        if places:
            yield Html(f"<h3>{escape(name)} ({len(places)} of {total:,})</h3>")
            yield from (_sentence(result, at) for at in places)


def _extreme(result: DevTrees, at: int, *, wrong: bool) -> float:
    """Return the highest probability of what is wrong in a sentence, or the lowest of all."""
    if result.found.chances is None or not len(result.found.chances[at]):
        return 0.0 if wrong else 1.0
    mine = result.found.chances[at]
    if not wrong:
        return float(mine.min())
    return float(mine[np.array(result.displays[at].wrong, dtype=bool)].max(initial=0.0))


def _sentence(result: DevTrees, at: int) -> Html:
    display = result.displays[at]
    n_wrong, n_missed = sum(display.wrong), len(getattr(display, "missed", ()))
    text = f"{n_wrong:,} of {counted(len(display.wrong), result.part)} wrong" if n_wrong else "all right"
    text += f", {n_missed:,} missed" if n_missed else ""
    return Html(
        f'<div class="example"><p class="soft">Sentence {result.numbers[at] + 1}: {text}</p>{display.html()}</div>'
    )
