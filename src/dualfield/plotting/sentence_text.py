"""A labelled sentence as text: for a page, for a terminal in colours, and plain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dualfield.plotting.markup import Html, escape
from dualfield.plotting.sentence import OUTSIDE, Piece, rounded
from dualfield.plotting.style import HUES, UNDER_TEXT

if TYPE_CHECKING:
    from rich.text import Text

_SHORT = 20  # letters of a word that is not broken
_SURE = 0.9  # a token outside of spans that is less probable is underlined


def html_sentence(pieces: Sequence[Piece], *, is_stacked: bool) -> Html:
    """Return markup for the styles of a page: running text with spans, or a box for each token if it is stacked."""
    parts = "".join(map(_token, pieces)) if is_stacked else " ".join(map(_span, pieces))
    return Html(f'<div class="sentence{"" if is_stacked else " spans"}">{parts}</div>')


def _look(piece: Piece) -> str:
    if piece.hue is None:
        return ""
    return f' style="--hue:var(--hue-{piece.hue});--strength:{100.0 * UNDER_TEXT * piece.strength:.1f}%"'


def _span(piece: Piece) -> str:
    text = escape(piece.text)
    if not piece.name and not piece.fault and piece.hue is None:
        if piece.probability is None or piece.probability >= _SURE:
            return text
        return f'<span class="doubt" title="{OUTSIDE}, probability {escape(rounded(piece.probability))}">{text}</span>'
    small = [("type", piece.name), ("chance", _chance(piece))]
    named = "".join(f' <span class="{kind}">{escape(one)}</span>' for kind, one in small if one)
    first, blank, last = piece.text.rpartition(" ")
    if len(last) <= _SHORT:  # a name stays on the line of the last word
        text, named = Html(f"{escape(first)}{blank}"), f'<span class="last">{escape(last)}{named}</span>'
    whole = piece.note.replace(" ", "\N{NO-BREAK SPACE}") if len(piece.note) <= _SHORT else piece.note
    note = f' <span class="note">{escape(whole)}</span>' if piece.note else ""
    fault = f" {piece.fault}" if piece.fault else ""
    return f'<mark class="span{fault}"{_look(piece)}>{text}{named}{note}</mark>'


def _token(piece: Piece) -> str:
    small = [("label", piece.name), ("chance", _chance(piece)), ("note", piece.note)]
    lines = "".join(f'<span class="{kind}">{escape(one)}</span>' for kind, one in small if one)
    fault = f" {piece.fault}" if piece.fault else ""
    return f'<span class="token{fault}"{_look(piece)}><b>{escape(piece.text) or "&nbsp;"}</b>{lines}</span>'


def _chance(piece: Piece) -> str:
    return "" if piece.probability is None else rounded(piece.probability)


def plain_sentence(pieces: Sequence[Piece], *, is_stacked: bool) -> str:
    """Return one line: spans, or all tokens if it is stacked, in brackets with name, probability and faults."""
    words = []
    for piece in pieces:
        if not (piece.name or piece.fault or piece.hue is not None):
            words.append(piece.text)
            continue
        inside = [piece.name, _chance(piece), f"✗ {piece.note}" if piece.note else ""]
        small = " ".join(part for part in inside if part)
        words.append(f"{piece.text}[{small}]" if is_stacked else f"[{piece.text} {small}]")
    return " ".join(words)


def rich_sentence(pieces: Sequence[Piece]) -> Text:
    """Return text in colours: black on shades of a hue, the stronger the surer, which any terminal's colours bear."""
    from rich.style import Style
    from rich.text import Text

    whole = Text()
    for at, piece in enumerate(pieces):
        whole.append(" " if at else "")
        if piece.hue is None:
            whole.append(piece.text, Style(underline=True) if piece.fault else None)
        else:
            shade = Style(color="black", bgcolor=_mixed(HUES[piece.hue][0], 0.2 + 0.6 * piece.strength))
            whole.append(f"{piece.text} ", shade)  # a blank before it could be left on the line above
            small = " ".join(part for part in (piece.name, _chance(piece)) if part)
            whole.append(small, shade + Style(bold=True))
        if piece.note:
            whole.append(f" ✗ {piece.note}", Style(color="red", bold=True))
    return whole


def _mixed(hue: str, share: float) -> str:
    """Return a hue mixed with white."""
    parts = (int(hue[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (part - 255)):02x}" for part in parts)
