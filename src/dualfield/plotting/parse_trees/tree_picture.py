"""What is drawn of a bracketed sentence: boxes over words, or beside them where the sentence is long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualfield.plotting.graph_picture import Colours
from dualfield.plotting.markup import printable, shortened
from dualfield.plotting.parse_trees.bracketing import Node
from dualfield.plotting.sentence import rounded
from dualfield.plotting.sentence_layout import text_width
from dualfield.plotting.sketch import Box, Part, Sketch, Stroke, Words
from dualfield.plotting.style import UNDER_TEXT

_WIDEST = 900.0  # pixels of a tree that stands over its words
_WORD, _SMALL = 14.0, 11.0  # sizes of letters
_SAFE = 1.1  # fonts of browsers differ in width
_BOLD = 1.25 * _SMALL  # the size that bold letters are as wide as
_GAP = 12.0  # between words, and between boxes
_HIGH = 20.0  # pixels of a box
_LEVEL = 40.0  # pixels from one row of boxes to the next
_ROW = 24.0  # pixels of a word that has a line for itself
_PAD = 6.0  # within a box
_STEP = 16.0  # pixels from a box to those in it, beside each other
_BELOW = 28.0  # pixels of a row of missed brackets


@dataclass(eq=False)
class _Placed:
    """A node with the place of its middle along the words, and its level over them."""

    node: Node
    middle: float
    level: int


def tree_sketch(tree: Any, direction: str) -> Sketch:
    """Return the picture of a :class:`dualfield.plotting.TreeDisplay`, "down", "right" or, by its width, "auto"."""
    if direction != "right":
        sketch, width = _upright(tree)
        if direction == "down" or width <= _WIDEST:
            return sketch
    return _sideways(tree)


def _box_texts(node: Node, *, with_note: bool = False) -> tuple[str, str, float]:
    """Return what is written in a box, label and probability, and its width, with what is true where it is wrong."""
    label = shortened(printable(node.label), 24)
    chance = "" if node.chance is None else rounded(node.chance)
    width = text_width(label, _BOLD) + (text_width(chance, _SAFE * _SMALL) + 5.0 if chance else 0.0)
    note = text_width(shortened(node.note, 40), _BOLD) + 6.0 if with_note and node.note else 0.0
    return label, chance, max(width + note + 2 * _PAD, 22.0)


def _box(tree: Any, colours: Colours, node: Node, x: float, y: float, *, with_note: bool = False) -> list[Part]:
    """Draw a box whose middle is at a point; what is true, if it is wrong, stands in it or is left to the caller."""
    label, chance, width = _box_texts(node, with_note=with_note)
    hue, strength = colours.of(node.label)
    strength *= UNDER_TEXT * (1.0 if node.chance is None else min(max(node.chance, 0.0), 1.0))
    words = " ".join(tree.words[node.start : node.stop])
    tip = f"{node.label}: {shortened(words, 60)}" + (f", probability {chance}" if chance else "")
    tip += f", {node.note}" if node.note else ""
    left, text = x - width / 2.0, y + 0.36 * _SMALL
    parts: list[Part] = [
        Box(
            left,
            y - _HIGH / 2.0,
            width=width,
            height=_HIGH,
            hue=hue,
            strength=strength,
            is_wrong=node.is_wrong,
            tip=tip,
        ),
        Words(left + _PAD, text, label, size=_SMALL, is_bold=True, anchor="start"),
    ]
    right = left + width - _PAD
    if with_note and node.note:
        parts.append(replace(_note(right, text, node.note, "end"), has_halo=False))
        right -= text_width(shortened(node.note, 40), _BOLD) + 6.0
    if chance:
        parts.append(Words(right, text, chance, size=_SMALL, anchor="end"))
    return parts


def _upright(tree: Any) -> tuple[Sketch, float]:
    """Draw boxes over the words."""
    colours, tops = Colours(tree.labels), tree.tops
    words = [printable(word) or "\N{OPEN BOX}" for word in tree.words]
    tags = [""] * len(words) if tree.tags is None else [printable(tag) for tag in tree.tags]
    widths = [text_width(word, _SAFE * _WORD) for word in words]
    widths = [max(width, text_width(tag, _SMALL)) for width, tag in zip(widths, tags, strict=True)]
    placed: dict[int, _Placed] = {}
    right = 0.0
    for top in tops:
        right = _place_across(top, right, widths, placed) + _GAP
    base = 0.0
    parts: list[Part] = []
    bottom = base - (18.0 if tree.tags is not None else 4.0)  # where the lines to words end
    for one in placed.values():
        node = one.node
        if node.label is None:
            parts.append(Words(one.middle, base + 12.0, words[node.start], size=_WORD))
            if tags[node.start]:
                parts.append(Words(one.middle, base - 6.0, tags[node.start], size=_SMALL, colour="soft"))
            continue
        y = bottom - _LEVEL * one.level + 0.5 * _HIGH
        parts = _elbows(one, [placed[id(child)] for child in node.children], y, bottom) + parts
        parts += _box(tree, colours, node, one.middle, y)
        if node.note:
            parts.append(_note(one.middle, y - _HIGH / 2.0 - 3.0, node.note))
    places = {one.node.start: one for one in placed.values() if one.node.label is None}
    parts += _missed_below(tree, places, widths, base + 22.0)
    return Sketch(parts), right


def _note(x: float, y: float, text: str, anchor: str = "middle") -> Words:
    return Words(x, y, shortened(text, 40), size=_SMALL, colour="wrong", is_bold=True, anchor=anchor, has_halo=True)


def _place_across(top: Node, left: float, widths: Sequence[float], placed: dict[int, _Placed]) -> float:
    """Place a bracket and what is in it from a point on; return where it ends. Boxes have room over their words."""
    nodes = list(top.walk())
    need: dict[int, float] = {}
    level: dict[int, int] = {}
    for node in reversed(nodes):
        if node.label is None:
            need[id(node)], level[id(node)] = widths[node.start], 0
            continue
        inside = sum(need[id(child)] for child in node.children) + _GAP * (len(node.children) - 1)
        note = text_width(shortened(node.note, 40), _BOLD)
        need[id(node)] = max(inside, _box_texts(node)[2], note)
        level[id(node)] = 1 + max(level[id(child)] for child in node.children)
    begins = {id(top): left}
    for node in nodes:
        begin, own = begins[id(node)], need[id(node)]
        inside = sum(need[id(child)] for child in node.children) + _GAP * (len(node.children) - 1)
        at = begin + max(own - inside, 0.0) / 2.0
        for child in node.children:
            begins[id(child)] = at
            at += need[id(child)] + _GAP
        placed[id(node)] = _Placed(node, begin + own / 2.0, level[id(node)])
    for node in reversed(nodes):  # over the middle of what is in it
        if node.label is not None:
            ends = [placed[id(child)].middle for child in (node.children[0], node.children[-1])]
            placed[id(node)].middle = sum(ends) / 2.0
    return left + need[id(top)]


def _elbows(one: _Placed, children: Sequence[_Placed], y: float, bottom: float) -> list[Part]:
    """Return lines from a box down to what is in it."""
    bar = y + _HIGH / 2.0 + 8.0
    parts: list[Part] = [Stroke([(one.middle, y + _HIGH / 2.0), (one.middle, bar)], colour="soft", width=1.0)]
    for child in children:
        end = bottom if child.node.label is None else bottom - _LEVEL * child.level
        points = [(one.middle, bar), (child.middle, bar), (child.middle, end)]
        parts.append(Stroke(points, colour="soft", width=1.0))
    return parts


def _missed_below(tree: Any, places: dict[int, _Placed], widths: Sequence[float], top: float) -> list[Part]:
    """Draw true brackets that were missed below the words, dashed, shorter ones first; those in a row do not touch."""
    parts: list[Part] = []
    rows: list[list[tuple[float, float]]] = []
    for label, start, stop in sorted(tree.missed, key=lambda one: one[2] - one[1]):
        left = places[start].middle - widths[start] / 2.0
        right = places[stop - 1].middle + widths[stop - 1] / 2.0
        middle, half = (left + right) / 2.0, text_width(f"missed {label}", _BOLD) / 2.0
        begin, end = min(left, middle - half), max(right, middle + half) + 4.0
        row = next((k for k, taken in enumerate(rows) if all(end <= a or b <= begin for a, b in taken)), len(rows))
        rows += [[]] if row == len(rows) else []
        rows[row].append((begin, end))
        y = top + _BELOW * row
        tip = f"missed {label}: {shortened(' '.join(tree.words[start:stop]), 60)}"
        points = [(left, y - 4.0), (left, y), (right, y), (right, y - 4.0)]
        parts.append(Stroke(points, colour="wrong", width=1.5, dashes="4 3", tip=tip))
        parts.append(_note(middle, y + 13.0, f"missed {label}"))
    return parts


def _sideways(tree: Any) -> Sketch:
    """Draw a line for each word, and boxes to the left of them."""
    nodes = [node for top in tree.tops for node in top.walk()]
    left = {id(top): 0.0 for top in tree.tops}
    for node in nodes:
        if node.label is not None:
            right = left[id(node)] + _box_texts(node, with_note=True)[2] + _STEP
            left.update({id(child): right for child in node.children})
    middle: dict[int, float] = {}
    for node in reversed(nodes):
        ends = [middle[id(child)] for child in (node.children[:1] + node.children[-1:])]
        middle[id(node)] = _ROW * node.start if node.label is None else sum(ends) / 2.0
    parts: list[Part] = []
    ends = [0.0] * len(tree.words)  # of what is written in each line
    for node in nodes:
        y = middle[id(node)]
        if node.label is None:
            parts += _line_of_word(tree, node.start, left[id(node)], y)
            ends[node.start] = Sketch(parts[-2:]).bounds()[1]
            continue
        end = left[id(node)] + _box_texts(node, with_note=True)[2]
        lines: list[Part] = [Stroke([(end, y), (end + _STEP / 2.0, y)], colour="soft", width=1.0)]
        for child in node.children:
            at = middle[id(child)]
            points = [(end + _STEP / 2.0, y), (end + _STEP / 2.0, at)]
            points.append((left[id(child)] - (3.0 if child.label is None else 0.0), at))
            lines.append(Stroke(points, colour="soft", width=1.0))
        parts = lines + parts + _box(tree, Colours(tree.labels), node, (left[id(node)] + end) / 2.0, y, with_note=True)
    return Sketch(parts + _missed_beside(tree, ends))


def _line_of_word(tree: Any, at: int, x: float, y: float) -> list[Part]:
    word = printable(tree.words[at]) or "\N{OPEN BOX}"
    parts: list[Part] = [Words(x, y + 5.0, word, size=_WORD, anchor="start")]
    if tree.tags is not None:
        right = x + text_width(word, _SAFE * _WORD) + 8.0
        tag = printable(tree.tags[at])
        parts.append(Words(right, y + 5.0, tag, size=_SMALL, colour="soft", anchor="start"))
    return parts


def _missed_beside(tree: Any, ends: list[float]) -> list[Part]:
    """Draw true brackets that were missed to the right of the words, dashed, shorter ones first."""
    parts: list[Part] = []
    for label, start, stop in sorted(tree.missed, key=lambda one: one[2] - one[1]):
        x, top, bottom = max(ends[start:stop]) + 16.0, _ROW * start - 9.0, _ROW * (stop - 1) + 9.0
        ends[start:stop] = [x + text_width(f"missed {label}", _BOLD)] * (stop - start)
        tip = f"missed {label}: {shortened(' '.join(tree.words[start:stop]), 60)}"
        points = [(x - 4.0, top), (x, top), (x, bottom), (x - 4.0, bottom)]
        parts.append(Stroke(points, colour="wrong", width=1.5, dashes="4 3", tip=tip))
        parts.append(_note(x + 5.0, (top + bottom) / 2.0 + 4.0, f"missed {label}", "start"))
    return parts
