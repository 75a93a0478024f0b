"""A labelled sentence in pieces: words outside of spans, spans in one piece each, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dualfield.data.span_labels import Span, found_spans
from dualfield.metrics.span_errors import compared
from dualfield.plotting.labels import in_order
from dualfield.plotting.style import HUES

OUTSIDE = "O"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A span of a sentence, or one token that is in none.

    `name` is a type or label, empty for a token outside; `hue` is the place of its colour, None for no colour;
    `probability` is None where it is not known, and `strength` of the colour is in [0, 1]. A piece whose `fault` is
    "wrong" or "missed" has a `note` that says what is true.
    """

    text: str
    name: str = ""
    hue: int | None = None
    probability: float | None = None
    strength: float = 1.0
    fault: str = ""
    note: str = ""


def mark_spans(labels: Iterable[Any]) -> bool:
    """Return whether labels are those of spans: "O", or B, I, E or S with a type."""
    try:
        found_spans(list(labels), "labels")
    except (TypeError, ValueError):
        return False
    return True


def hues(labels: Iterable[Any]) -> dict[Any, int]:
    """Return the place of the hue of each type of span, or of each label, in the order of their names."""
    names = [label for label in labels if label != OUTSIDE]
    if mark_spans(names):
        names = [label.partition("-")[2] for label in names]
    return {name: at % len(HUES) for at, name in enumerate(in_order(names))}


def rounded(chance: float) -> str:
    """Write a probability with three decimals, without claiming certainty by rounding."""
    if 0.0 < chance < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= chance < 1.0 else f"{chance:.3f}"


def token_pieces(
    tokens: Sequence[str], labels: Sequence[Any], chances: Sequence[float] | None, truth: Sequence[Any] | None, of: Any
) -> list[Piece]:
    """Return a piece for each token; `of` maps labels to hues."""
    pieces = []
    for at, (token, label) in enumerate(zip(tokens, labels, strict=True)):
        wrong = truth is not None and truth[at] != label
        pieces.append(
            Piece(
                text=token,
                name=str(label),
                hue=of.get(label),
                probability=None if chances is None else chances[at],
                strength=1.0 if chances is None else min(max(chances[at], 0.0), 1.0),
                fault="wrong" if wrong else "",
                note=f"true: {truth[at]}" if truth is not None and wrong else "",
            )
        )
    return pieces


def span_pieces(
    tokens: Sequence[str],
    spans: Sequence[tuple[Any, ...]],
    chances: Sequence[float] | None,
    truth: Sequence[Span] | None,
    of: Any,
) -> list[Piece]:
    """Return a piece for each span and for each token outside; `spans` may have their probability as fourth entry."""
    notes, missed = _notes(tokens, [span[:3] for span in spans], truth)
    starts = {span[1]: span for span in [*missed, *spans]}
    pieces, at = [], 0
    while at < len(tokens):
        if at not in starts:
            chance = None if chances is None else chances[at]
            pieces.append(Piece(text=tokens[at], probability=chance))
            at += 1
            continue
        kind, start, stop, *known = starts[at]
        text, note, at = " ".join(tokens[start:stop]), notes.get((kind, start, stop), ""), stop
        if (kind, start, stop) in missed:
            pieces.append(Piece(text=text, fault="missed", note=f"missed {kind}".strip()))
            continue
        # Without the probability of the span, its least probable label says how strong the colour is.
        strength = known[0] if known else 1.0 if chances is None else min(chances[start:stop])
        pieces.append(
            Piece(
                text=text,
                name=kind,
                hue=of.get(kind),
                probability=known[0] if known else None,
                strength=min(max(strength, 0.0), 1.0),
                fault="wrong" if note else "",
                note=note,
            )
        )
    return pieces


def _notes(
    tokens: Sequence[str], predicted: Sequence[Any], truth: Sequence[Span] | None
) -> tuple[dict[Any, str], list[Span]]:
    """Return what to say of wrong spans, and the true ones that no predicted span touches."""
    notes: dict[Any, list[str]] = {}
    missed: list[Span] = []
    for _, true, guess in [] if truth is None else compared(truth, predicted):
        if true is None:
            notes.setdefault(guess, []).append("spurious")
        elif guess is None:
            touching = [span for span in predicted if span[1] < true[2] and true[1] < span[2]]
            for span in touching[:1]:
                notes.setdefault(span, []).append(f"missed {_named(tokens, true)}")
            missed += [] if touching else [true]
        else:
            same = true[1:] == guess[1:]
            notes.setdefault(guess, []).append(f"true: {true[0] if same else _named(tokens, true)}")
    return {span: ", ".join(texts) for span, texts in notes.items()}, missed


def _named(tokens: Sequence[str], span: Span) -> str:
    kind, start, stop = span
    return f"{kind} “{' '.join(tokens[start:stop])}”".strip()
