"""What is drawn of a labelled graph: discs and arrows, or for an image the labels of its pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.plotting.graph_layout import Points, layout
from dualfield.plotting.labels import in_order
from dualfield.plotting.markup import shortened
from dualfield.plotting.sentence import rounded
from dualfield.plotting.sketch import Cell, Dot, Part, Sketch, Stroke, Words, text_width
from dualfield.plotting.style import HUES, UNDER_TEXT

_UNIT, _WIDEST, _HIGHEST = 92.0, 680.0, 480.0  # pixels of an edge, and of a picture
_RADIUS, _LEAST = 20.0, 4.0  # pixels of a node whose label is certain
_TEXTS = 13.0  # pixels of a radius from which on nodes have texts
_INSIDE = ((5, 11.0), (7, 9.0))  # characters within a node, and their size
_LONGEST = 16  # characters beside a node
_LINE = 13.0  # pixels of a line of text
# Where texts may stand, the most welcome first: right, below, left, above.
_SIDES = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
_WELCOME = np.array([0.3, 0.2, 0.0, 0.0])  # as cosines
_DASHES = ("", "6 4", "2 3")  # of the types of edges
_PIXEL, _PICTURE, _WITH_TIPS = 26.0, 300.0, 400
_LEVELS = 8  # of colours that probabilities make, so that pixels side by side can be drawn as one


class Colours:
    """The colour of each label: a hue, and fainter ones of it where there are more labels than hues."""

    def __init__(self, classes: Sequence[Any]) -> None:
        self.names = in_order(classes)
        self.place = {name: at for at, name in enumerate(self.names)}

    def of(self, label: Any) -> tuple[int, float]:
        """Return hue and strength."""
        turn, hue = divmod(self.place[label], len(HUES))
        return hue, (1.0, 0.55, 0.3)[turn % 3]


def graph_sketch(graph: Any) -> Sketch:
    """Return the picture of a :class:`dualfield.plotting.GraphDisplay`."""
    colours = Colours(graph.classes)
    sketch = Sketch(_pixels(graph, colours) if graph.grid is not None else _nodes(graph, colours))
    left, right, _, bottom = sketch.bounds()
    sketch.parts += _legend(graph, colours, left, bottom + 26.0, max(right - left, 300.0))
    return sketch


def _nodes(graph: Any, colours: Colours) -> list[Part]:
    places, radius = _placed(graph)
    parts: list[Part] = list(_arrows(graph, places, radius))
    chances = graph.probabilities
    for at, (label, (x, y), is_wrong) in enumerate(zip(graph.labels, places.tolist(), graph.wrong, strict=True)):
        chance = None if chances is None else float(chances[at])
        hue, strength = colours.of(label)
        strength *= UNDER_TEXT if radius >= _TEXTS else 1.0
        size = radius * (0.7 + 0.3 * (1.0 if chance is None else chance))
        parts.append(Dot(x, y, size, hue=hue, strength=strength, is_wrong=is_wrong, tip=_tip(graph, at)))
        if radius >= _TEXTS:
            parts.append(_inside(x, y, str(label)))
            notes = [("ink", shortened(graph.names[at], _LONGEST))] if graph.names is not None else []
            notes += [] if chance is None else [("soft", rounded(chance))]
            notes += [("wrong", shortened(f"true: {graph.truth[at]}", _LONGEST))] if is_wrong else []
            parts += _beside(x, y, size, notes, _free_side(places, graph.edges, at))
    return parts


def _inside(x: float, y: float, label: str) -> Words:
    """Write a label into its node, longer ones smaller."""
    most, size = next((one for one in _INSIDE if len(label) <= one[0]), _INSIDE[-1])
    return Words(x, y + 0.36 * size, shortened(label, most), size=size, is_bold=True)


def _free_side(places: Points, edges: NDArray[np.int32], node: int) -> int:
    """Return the side of a node that is farthest from its edges."""
    others = np.concatenate([edges[edges[:, 0] == node, 1], edges[edges[:, 1] == node, 0]])
    apart = places[others] - places[node]
    directions = apart / np.maximum(np.hypot(apart[:, 0], apart[:, 1]), 1e-9)[:, None]
    return int(np.argmin((_SIDES @ directions.T).max(axis=1, initial=-1.0) - _WELCOME))


def _beside(x: float, y: float, radius: float, notes: Sequence[tuple[str, str]], side: int) -> list[Part]:
    """Write notes beside a node, one below the other."""
    across, down = _SIDES[side]
    anchor = "middle" if down else "start" if across > 0 else "end"
    top = {0.0: y - _LINE * len(notes) / 2.0, 1.0: y + radius + 2.0, -1.0: y - radius - 4.0 - _LINE * len(notes)}[down]
    return [
        Words(
            x + across * (radius + 5.0),
            top + _LINE * row - 3.0,
            text,
            colour=colour,
            is_bold=colour == "wrong",
            anchor=anchor,
            has_halo=True,
        )
        for row, (colour, text) in enumerate(notes, start=1)
    ]


def _placed(graph: Any) -> tuple[Points, float]:
    """Return where nodes are, in pixels, and how large they may be."""
    places = layout(len(graph.labels), graph.edges) if graph.positions is None else graph.positions
    places = places - places.min(axis=0, initial=np.inf) if len(places) else places
    least, usual = _distances(places)
    width, height = np.ptp(places, axis=0).tolist() if len(places) else (0.0, 0.0)
    scale = min(_UNIT / usual, _WIDEST / max(width, 1e-9), _HIGHEST / max(height, 1e-9))
    return places * scale, float(np.clip(scale * min(0.36 * usual, 0.48 * least), _LEAST, _RADIUS))


def _distances(places: Points) -> tuple[float, float]:
    """Return the least distance of two nodes, and that which most nodes have to the nearest one."""
    from scipy.spatial import KDTree

    if len(places) < 2:
        return 1.0, 1.0
    distances = np.asarray(KDTree(places).query(places, k=2)[0])[:, 1]
    apart = distances[distances > 1e-9]
    return (float(apart.min()), float(np.median(apart))) if len(apart) else (1.0, 1.0)


def _arrows(graph: Any, places: Points, radius: float) -> list[Part]:
    """Return an arrow for each edge; two that join the same nodes are beside each other."""
    parts: list[Part] = []
    pairs = graph.edges.tolist()
    number: dict[frozenset[int], int] = {}
    for at, (one, two) in enumerate(pairs):
        kind = 0 if graph.types is None else int(graph.types[at])
        tip = f"edge {one} to {two}" + f", type {kind}" * (graph.types is not None)
        joined = frozenset((one, two))
        copies = sum(frozenset(pair) == joined for pair in pairs) if len(pairs) <= 500 else 1
        seen = number[joined] = number.get(joined, -1) + 1
        dashes = _DASHES[kind % len(_DASHES)]
        begin, end = places[one], places[two]
        along = (end - begin) / max(float(np.hypot(*(end - begin))), 1e-9)
        # The side is that of the pair of nodes, whichever way the edge leads.
        across = np.array([-along[1], along[0]]) * (1.0 if one < two else -1.0)
        shift = 7.0 * (seen - (copies - 1) / 2.0) * across
        ends = [(begin + shift + radius * along).tolist(), (end + shift - (radius + 2.0) * along).tolist()]
        parts.append(
            Stroke(
                [tuple(point) for point in ends],
                dashes=dashes,
                has_head=radius >= 6.0,
                tip=tip,
                width=1.5 if radius >= 6.0 else 0.8,
            )
        )
    return parts


def _pixels(graph: Any, colours: Colours) -> list[Part]:
    """Draw the labels of an image, and beside them the true ones, where they are known."""
    height, width = graph.grid
    size = float(np.clip(_PICTURE / max(height, width), 2.0, _PIXEL))
    chances = None if graph.probabilities is None else np.asarray(graph.probabilities)
    pictures = [("predicted", graph.labels, chances)]
    pictures += [] if graph.truth is None else [("true", graph.truth, None)]
    parts: list[Part] = []
    for at, (name, labels, strengths) in enumerate(pictures):
        left = at * (width * size + 32.0)
        wrong = graph.wrong if not at else [False] * len(labels)
        parts += _cells(graph, colours, labels, strengths, left, size)
        parts.append(Words(left, -8.0, f"{name}{_wrong_note(graph) if not at else ''}", colour="soft", anchor="start"))
        for cell in np.flatnonzero(wrong).tolist():
            x, y = left + size * (cell % width), size * (cell // width)
            near, far = 0.22 * size, 0.78 * size
            for begin, end in (((near, near), (far, far)), ((near, far), (far, near))):
                ends = [(x + begin[0], y + begin[1]), (x + end[0], y + end[1])]
                parts.append(Stroke(ends, colour="ink", width=max(0.08 * size, 1.0)))
    return parts


def _wrong_note(graph: Any) -> str:
    n_wrong = sum(graph.wrong)
    return f": {n_wrong} wrong, crossed out" if n_wrong else ""


def _cells(graph: Any, colours: Colours, labels: Any, chances: Any, left: float, size: float) -> list[Part]:
    """Return the pixels of an image; neighbours of one colour are drawn as one where there are many."""
    height, width = graph.grid
    with_tips = height * width <= _WITH_TIPS
    parts: list[Part] = []
    for row in range(height):
        begun: list[Any] = []  # hue, strength, column, length
        for column in range(width):
            at = row * width + column
            hue, strength = colours.of(labels[at])
            if chances is not None:
                strength *= 0.25 + 0.75 * np.ceil(float(chances[at]) * _LEVELS) / _LEVELS
            if begun and begun[:2] == [hue, strength] and not with_tips:
                begun[3] += 1
                continue
            if begun:
                parts.append(_cell(graph, begun, left, row, size, with_tips))
            begun = [hue, strength, column, 1]
        if begun:
            parts.append(_cell(graph, begun, left, row, size, with_tips))
    return parts


def _cell(graph: Any, run: list[Any], left: float, row: int, size: float, with_tips: bool) -> Cell:
    hue, strength, column, length = run
    tip = _tip(graph, row * graph.grid[1] + column) if with_tips else ""
    x, y = left + size * column, size * row
    return Cell(x, y, width=size * length, height=size, hue=hue, strength=strength, tip=tip)


def _tip(graph: Any, at: int) -> str:
    """Say all that is known of a node."""
    name = f"node {at}"
    if graph.grid is not None:
        name = f"row {at // graph.grid[1]}, column {at % graph.grid[1]}"
    name += "" if graph.names is None else f" ({graph.names[at]})"
    chance = "" if graph.probabilities is None else f" with probability {rounded(float(graph.probabilities[at]))}"
    true = f", true: {graph.truth[at]}" if graph.wrong[at] else ""
    return f"{name}: {graph.labels[at]}{chance}{true}"


def _legend(graph: Any, colours: Colours, left: float, top: float, width: float) -> list[Part]:
    """Name the colours, in lines, and say what answers are where they are bounds."""
    parts: list[Part] = []
    x, y = left, top
    strength = 1.0 if graph.grid is not None else UNDER_TEXT
    for name in colours.names:
        text = shortened(name, 24)
        if x > left and x + 30.0 + text_width(text) > left + width:
            x, y = left, y + 20.0
        hue, share = colours.of(name)
        parts.append(Dot(x + 6.0, y - 4.0, 5.0, hue=hue, strength=strength * share))
        parts.append(Words(x + 16.0, y, text, anchor="start"))
        x += 32.0 + text_width(text)
    if graph.note:
        parts.append(Words(left, y + 20.0, graph.note, colour="soft", anchor="start"))
    return parts
