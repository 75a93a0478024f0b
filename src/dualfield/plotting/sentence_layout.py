"""Where the pieces of a sentence stand in a picture, without a browser: lines of boxes in a given width."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dualfield.plotting.markup import printable, shortened
from dualfield.plotting.sentence import Piece, rounded

WORD, SMALL = 16.0, 11.0  # sizes of letters
_PAD, _GAP, _SPACE = 7.0, 6.0, 5.0  # inside of boxes, between texts in a box, and between pieces
_BOX, _LINE = 26.0, 36.0  # heights of a box, and of a line
_STACKED = 15.0  # height of each line below a token
_NARROW, _SLIM, _WIDE = frozenset("iljI.,:;'|!’"), frozenset('Jfrt()[]{}-/\\" \t“”'), frozenset("mwMW@%—…")


@dataclass(frozen=True, slots=True)
class Text:
    """A text at its place; `look` is "word", "name", "chance" or "note"."""

    x: float
    y: float
    width: float
    text: str
    look: str


@dataclass(frozen=True, slots=True)
class Box:
    """The place of a piece: left, top, width and height, and its texts."""

    piece: Piece
    place: tuple[float, float, float, float]
    texts: tuple[Text, ...]


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is in a sans-serif font; what draws it stretches it to exactly this."""
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    plain = unicodedata.normalize("NFD", letter)[0]
    if plain in _NARROW:
        return 0.26
    if plain in _SLIM:
        return 0.34
    if plain in _WIDE:
        return 0.88
    return 0.67 if plain.isupper() else 0.56


def laid_out(
    pieces: Sequence[Piece], width: float, *, is_stacked: bool, stretch: float = 1.0
) -> tuple[list[Box], float]:
    """Return boxes in lines of a width, and the height of all of them.

    Names stand to the right of their text, or below it where `is_stacked`; letters are as wide as in
    :func:`text_width`, times `stretch`.
    """
    boxes: list[Box] = []
    n_below = max((len(_small(piece)) for piece in pieces), default=0) if is_stacked else 0
    height = _BOX + _STACKED * n_below
    x, y = 0.0, 0.0
    for piece in pieces if is_stacked else _fitting(pieces, width, stretch):
        made = _stacked_box(piece, height, stretch) if is_stacked else _inline_box(piece, stretch)
        if x and x + made.place[2] > width:
            x, y = 0.0, y + height + _LINE - _BOX
        boxes.append(_moved(made, x, y))
        x += made.place[2] + _SPACE
    return boxes, y + height


def _small(piece: Piece) -> list[tuple[str, str]]:
    """Return what is written in small letters, with its look."""
    chance = "" if piece.probability is None or not piece.name else rounded(piece.probability)
    named = (("name", piece.name), ("chance", chance), ("note", piece.note))
    return [(look, shortened(printable(text), 60)) for look, text in named if text]


def _inline_box(piece: Piece, stretch: float) -> Box:
    is_plain = not piece.name and not piece.fault
    x, texts = 0.0 if is_plain else _PAD, []
    parts = [("word", printable(piece.text))] + ([] if is_plain else _small(piece))
    for look, text in parts:
        wide = stretch * text_width(text, WORD if look == "word" else SMALL * (1.1 if look != "chance" else 1.0))
        texts.append(Text(x, 18.5, wide, text, look))
        x += wide + _GAP
    return Box(piece, (0.0, 0.0, x - _GAP + (0.0 if is_plain else _PAD), _BOX), tuple(texts))


def _stacked_box(piece: Piece, height: float, stretch: float) -> Box:
    lines = [("word", shortened(printable(piece.text), 40)), *_small(piece)]
    widths = [stretch * text_width(text, WORD if look == "word" else SMALL * 1.1) for look, text in lines]
    wide = max(widths) + 2.0 * _PAD
    texts = tuple(
        Text((wide - own) / 2.0, 18.5 + _STACKED * at, own, text, look)
        for at, ((look, text), own) in enumerate(zip(lines, widths, strict=True))
    )
    return Box(piece, (0.0, 0.0, wide, height), texts)


def _fitting(pieces: Sequence[Piece], width: float, stretch: float) -> Iterator[Piece]:
    """Give out pieces that fit into a line; a longer one is cut between its words, and its last part has its name."""
    for piece in pieces:
        words, part = piece.text.split(" "), ""
        while len(words) > 1 and _inline_box(replace(piece, text=" ".join(words)), stretch).place[2] > width:
            part = words.pop(0)
            while len(words) > 1 and stretch * text_width(f"{part} {words[0]}", WORD) + 2.0 * _PAD <= width:
                part += f" {words.pop(0)}"
            yield replace(piece, text=part, name=piece.name and " ", probability=None, note="")
        yield replace(piece, text=" ".join(words))


def _moved(box: Box, x: float, y: float) -> Box:
    left, top, wide, high = box.place
    texts = tuple(replace(text, x=text.x + x, y=text.y + y) for text in box.texts)
    return replace(box, place=(left + x, top + y, wide, high), texts=texts)
