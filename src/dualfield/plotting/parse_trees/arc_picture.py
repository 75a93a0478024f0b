"""What is drawn of a dependency tree: arcs over words, or beside them where the sentence is long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualfield.plotting.markup import printable, shortened
from dualfield.plotting.sentence import rounded
from dualfield.plotting.sentence_layout import text_width
from dualfield.plotting.sketch import Part, Sketch, Stroke, Words

_WIDEST = 900.0  # pixels of a sentence with arcs over it
_WORD, _SMALL = 14.0, 11.0  # sizes of letters
_SAFE = 1.1  # fonts of browsers differ in width
_BOLD = 1.25 * _SMALL  # the size that bold letters are as wide as
_GAP = 16.0  # between words
_LEVEL = 24.0  # pixels between arcs over one another
_BESIDE = 12.0  # pixels between arcs beside one another
_ROW = 24.0  # pixels of a word that has a line for itself
_ROUND = 8.0  # pixels of a round corner
_APART = 5.0  # pixels between arcs that end at the same word


@dataclass(frozen=True, kw_only=True)
class Arc:
    """An arc between two words, `head` -1 for the root; `level` says how many arcs are below it."""

    head: int
    child: int
    text: str
    chance: float | None
    is_wrong: bool
    tip: str
    level: int = 0


def arc_sketch(tree: Any, direction: str) -> Sketch:
    """Return the picture of a :class:`dualfield.plotting.ArcDisplay`, "down", "right" or, by its width, "auto"."""
    if direction != "right":
        sketch, width = _upright(tree)
        if direction == "down" or width <= _WIDEST:
            return sketch
    return _sideways(tree)


def _arcs(tree: Any, *, missed: bool) -> list[Arc]:
    """Return the predicted arcs, or the true ones of words whose predicted arc is wrong."""
    found = []
    for child, (head, label) in enumerate(tree.truth if missed else tree.arcs):
        if missed and not tree.wrong[child]:
            continue
        chance = None if missed or tree.probabilities is None else tree.probabilities[child]
        text = " ".join(part for part in (label, "" if chance is None else rounded(chance)) if part)
        tip = f"{_word(tree, head)} → {_word(tree, child + 1)}" + (f": {text}" if text else "")
        tip = f"true: {tip}" if missed else tip
        text = shortened(printable(text), 30)
        found.append(Arc(head=head - 1, child=child, text=text, chance=chance, is_wrong=tree.wrong[child], tip=tip))
    return _levelled(found)


def _word(tree: Any, head: int) -> str:
    return "ROOT" if head == 0 else str(tree.words[head - 1])


def _levelled(arcs: Sequence[Arc]) -> list[Arc]:
    """Give every arc a level above all shorter ones that it passes over; those of the root have the highest."""
    done: list[Arc] = []
    for arc in sorted(arcs, key=lambda arc: (arc.head < 0, abs(arc.head - arc.child))):
        left, right = _ends(arc)
        below = [one.level for one in done if _ends(one)[0] < right and left < _ends(one)[1]]
        if arc.head < 0:
            below = [one.level for one in done if one.head >= 0]
        done.append(replace(arc, level=1 + max(below, default=0)))
    return done


def _ends(arc: Arc) -> tuple[int, int]:
    return (min(arc.head, arc.child), max(arc.head, arc.child)) if arc.head >= 0 else (arc.child, arc.child)


def _upright(tree: Any) -> tuple[Sketch, float]:
    words = [printable(word) or "\N{OPEN BOX}" for word in tree.words]
    tags = [""] * len(words) if tree.tags is None else [printable(tag) for tag in tree.tags]
    arcs, missed = _arcs(tree, missed=False), _arcs(tree, missed=True) if tree.truth is not None else []
    widths = [text_width(word, _SAFE * _WORD) for word in words]
    widths = [max(width, text_width(tag, _SMALL)) for width, tag in zip(widths, tags, strict=True)]
    middles = _middles(widths, [*arcs, *missed])
    parts: list[Part] = []
    for x, word, tag in zip(middles, words, tags, strict=True):
        parts.append(Words(x, 14.0, word, size=_WORD))
        parts += [Words(x, 28.0, tag, size=_SMALL, colour="soft")] if tag else []
    parts += _drawn_arcs(arcs, middles, base=-4.0, up=-1.0)
    parts += _drawn_arcs(missed, middles, base=36.0 if tree.tags is not None else 22.0, up=1.0)
    return Sketch(parts), middles[-1] + widths[-1] / 2.0 if middles else 0.0


def _middles(widths: Sequence[float], arcs: Sequence[Arc]) -> list[float]:
    """Place words from left to right, so that the text of every arc has room between its ends."""
    middles: list[float] = []
    roots = {arc.child: text_width(arc.text, _BOLD) for arc in arcs if arc.head < 0}  # whose texts are side by side
    for at, width in enumerate(widths):
        x = middles[-1] + widths[at - 1] / 2.0 + _GAP + width / 2.0 if at else width / 2.0
        for arc in arcs:
            left, right = _ends(arc)
            if right == at and left < at:
                x = max(x, middles[left] + text_width(arc.text, _BOLD) + 4.0 * _APART)
        before = [middles[one] + roots[one] / 2.0 for one in roots if at in roots and one < at]
        middles.append(max([x, *(end + roots[at] / 2.0 + 2.0 * _APART for end in before)]))
    return middles


def _drawn_arcs(arcs: Sequence[Arc], middles: Sequence[float], *, base: float, up: float) -> list[Part]:
    """Draw arcs from a line on, upwards or, dashed, downwards; those of a word end side by side."""
    lines: list[Part] = []
    texts: list[Part] = []
    places = _places(arcs, middles)
    for arc in arcs:
        look = _look(arc, is_missed=up > 0)
        y = base + up * (_LEVEL * arc.level)
        end = places[arc.child, arc.head]
        if arc.head < 0:
            lines.append(Stroke([(end, y), (end, base)], **look))
            texts.append(_text(arc, end, y - 3.0 if up < 0 else y + 12.0, up))
            continue
        begin = places[arc.head, arc.child]
        side = _ROUND if end > begin else -_ROUND
        corner = up * _ROUND
        points = [(begin, base), (begin, y - corner), (begin + 0.3 * side, y - 0.3 * corner), (begin + side, y)]
        points += [(end - side, y), (end - 0.3 * side, y - 0.3 * corner), (end, y - corner), (end, base)]
        lines.append(Stroke(points, **look))
        texts.append(_text(arc, (begin + end) / 2.0, y - 3.0 if up < 0 else y + 12.0, up))
    return lines + texts


def _look(arc: Arc, *, is_missed: bool) -> dict[str, Any]:
    width = 1.2 if arc.chance is None else 0.8 + 1.2 * min(max(arc.chance, 0.0), 1.0)
    colour = "wrong" if arc.is_wrong else "soft"
    return {"colour": colour, "width": width, "dashes": "4 3" * is_missed, "has_head": True, "tip": arc.tip}


def _text(arc: Arc, x: float, y: float, up: float) -> Words:
    colour = "wrong" if arc.is_wrong else "ink"
    return Words(x, y, arc.text, size=_SMALL, colour=colour, is_bold=up > 0 or arc.is_wrong, has_halo=True)


def _places(arcs: Sequence[Arc], middles: Sequence[float]) -> dict[tuple[int, int], float]:
    """Return where arcs begin and end, by word and other word: the higher one of two to the left is further right."""
    ends: dict[int, list[tuple[int, int, int]]] = {}
    for arc in arcs:
        for word, other in ((arc.head, arc.child), (arc.child, arc.head)):
            if word >= 0:
                side = 0 if other < 0 else -1 if other < word else 1
                ends.setdefault(word, []).append((side, -side * arc.level, other))
    found = {}
    for word, mine in ends.items():
        # From left to right: arcs to the left, the lowest first; the root; arcs to the right, the highest first.
        order = sorted(mine, key=lambda one: (one[0], one[1]))
        for place, (_, _, other) in enumerate(order):
            found[word, other] = middles[word] + _APART * (place - (len(order) - 1) / 2.0)
    return found


def _sideways(tree: Any) -> Sketch:
    """Draw a line for each word with the label of its arc, and arcs to the left."""
    arcs, missed = _arcs(tree, missed=False), _arcs(tree, missed=True) if tree.truth is not None else []
    parts: list[Part] = []
    x = 0.0
    for at, word in enumerate(tree.words):
        parts.append(Words(x, _ROW * at + 5.0, printable(word) or "\N{OPEN BOX}", size=_WORD, anchor="start"))
    x = max((text_width(printable(word), _SAFE * _WORD) for word in tree.words), default=0.0) + 12.0
    if tree.tags is not None:
        for at, tag in enumerate(tree.tags):
            parts.append(Words(x, _ROW * at + 5.0, printable(tag), size=_SMALL, colour="soft", anchor="start"))
        x += max((text_width(printable(tag), _SAFE * _SMALL) for tag in tree.tags), default=0.0) + 12.0
    true = {arc.child: arc for arc in missed}
    for arc in arcs:
        colour = "wrong" if arc.is_wrong else "ink"
        text = f"{arc.text} ← {_word(tree, arc.head + 1)}".strip()
        parts.append(Words(x, _ROW * arc.child + 5.0, text, size=_SMALL, colour=colour, anchor="start"))
        if arc.child in true:
            other = true[arc.child]
            note = f"true: {other.text} ← {_word(tree, other.head + 1)}".replace("  ", " ")
            right = x + text_width(text, _SAFE * _SMALL) + 10.0
            parts.append(
                Words(right, _ROW * arc.child + 5.0, note, size=_SMALL, colour="wrong", is_bold=True, anchor="start")
            )
    return Sketch(_arcs_beside(arcs) + parts)


def _arcs_beside(arcs: Sequence[Arc]) -> list[Part]:
    """Draw arcs to the left of words, the longer ones further out."""
    places = _places(arcs, [_ROW * at for at in range(max((arc.child for arc in arcs), default=-1) + 1)])
    scale = min(1.0, (_ROW - 8.0) / (_APART * max(1, *_crowds(arcs).values()))) if arcs else 1.0
    parts: list[Part] = []
    for arc in arcs:
        look, x = _look(arc, is_missed=False), -8.0 - _BESIDE * arc.level
        end = _ROW * arc.child + scale * (places[arc.child, arc.head] - _ROW * arc.child)
        if arc.head < 0:
            parts.append(Stroke([(x, end), (-6.0, end)], **look))
            continue
        begin = _ROW * arc.head + scale * (places[arc.head, arc.child] - _ROW * arc.head)
        points = [(-6.0, begin), (x, begin), (x, end), (-6.0, end)]
        parts.append(Stroke(points, **look))
    return parts


def _crowds(arcs: Sequence[Arc]) -> dict[int, int]:
    """Return how many arcs each word has."""
    found: dict[int, int] = {}
    for arc in arcs:
        for word in (arc.head, arc.child):
            found[word] = found.get(word, 0) + (word >= 0)
    return found
