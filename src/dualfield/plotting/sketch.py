"""A picture of few kinds of parts, in pixels: drawn as SVG in the colours of a page, or with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from dualfield.plotting.markup import Html, printable
from dualfield.plotting.style import HUES, LIGHT, SVG_STYLE, variables

_LETTER = 0.56  # width of a letter, in sizes of the font
_POINTS = 0.75  # of a pixel
_MARGIN = 4.0


@dataclass(frozen=True)
class Dot:
    """A disc, with a ring in its own hue, or a thick red one if it is wrong."""

    x: float
    y: float
    radius: float
    _: KW_ONLY
    hue: int | None
    strength: float = 1.0
    is_wrong: bool = False
    tip: str = ""


@dataclass(frozen=True)
class Cell:
    """A rectangle without a border."""

    x: float
    y: float
    _: KW_ONLY
    width: float
    height: float
    hue: int | None
    strength: float = 1.0
    tip: str = ""


@dataclass(frozen=True)
class Box:
    """A rectangle with round corners and a border in its own hue, or a red one if it is wrong."""

    x: float
    y: float
    _: KW_ONLY
    width: float
    height: float
    hue: int | None
    strength: float = 1.0
    is_wrong: bool = False
    tip: str = ""


@dataclass(frozen=True)
class Stroke:
    """A line through points, with an arrowhead at its end, or closed."""

    points: Sequence[tuple[float, float]]
    _: KW_ONLY
    colour: str = "soft"
    width: float = 1.5
    dashes: str = ""
    has_head: bool = False
    tip: str = ""


@dataclass(frozen=True)
class Words:
    """Text whose middle, start or end is at x, and whose baseline is at y."""

    x: float
    y: float
    text: str
    _: KW_ONLY
    size: float = 11.0
    colour: str = "ink"
    is_bold: bool = False
    anchor: str = "middle"
    has_halo: bool = False

    @property
    def span(self) -> tuple[float, float]:
        """Where it begins and ends, about."""
        width = _LETTER * self.size * len(self.text)
        begin = self.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]
        return begin, begin + width


Part = Dot | Cell | Box | Stroke | Words


@dataclass
class Sketch:
    """Parts of a picture, the first at the bottom; y grows downwards."""

    parts: list[Part] = field(default_factory=list)

    def bounds(self) -> tuple[float, float, float, float]:
        """Return the lowest and the highest x and y that anything reaches."""
        corners: list[tuple[float, float]] = []
        for part in self.parts:
            if isinstance(part, Dot):
                corners += [(part.x + sign * (part.radius + 2), part.y + sign * (part.radius + 2)) for sign in (-1, 1)]
            elif isinstance(part, Cell | Box):
                corners += [(part.x, part.y), (part.x + part.width, part.y + part.height)]
            elif isinstance(part, Stroke):
                corners += part.points
            else:
                corners += [(x, y) for x in part.span for y in (part.y - part.size, part.y + 0.3 * part.size)]
        xs, ys = zip(*corners, strict=True) if corners else ((0.0,), (0.0,))
        return min(xs), max(xs), min(ys), max(ys)

    def svg(self, title: str) -> Html:
        """Return an ``<svg>`` in the colours of the page around it; `title` is for those who hear the page."""
        left, right, top, bottom = self.bounds()
        width, height = right - left + 2 * _MARGIN, bottom - top + 2 * _MARGIN
        box = f"{left - _MARGIN:.1f} {top - _MARGIN:.1f} {width:.1f} {height:.1f}"
        head = f'<svg role="img" width="{width:.0f}" height="{height:.0f}" viewBox="{box}"'
        drawn = "".join(_svg(part) for part in self.parts)
        return Html(f"{head} aria-label={quoteattr(printable(title))}>{drawn}</svg>")

    def scrolled(self, title: str) -> Html:
        """Return an ``<svg>`` that keeps its size, in a box that can be moved where the page is narrower."""
        picture = self.svg(title).replace("<svg ", '<svg class="whole" ', 1)
        return Html(f'<div class="scroll">{picture}</div>')

    def document(self, title: str) -> str:
        """Return an SVG file of its own, on paper, in the colours of light and dark screens."""
        picture = self.svg(title)
        opening, closing, rest = picture.partition(">")
        left, right, top, bottom = self.bounds()
        place = f'x="{left - _MARGIN:.1f}" y="{top - _MARGIN:.1f}"'
        paper = (
            f'<rect {place} width="{right - left + 2 * _MARGIN:.1f}" height="{bottom - top + 2 * _MARGIN:.1f}" rx="8" '
            'style="fill:var(--paper)"/>'
        )
        style = (
            f"svg {{ {variables(0)} }} @media (prefers-color-scheme: dark) {{ svg {{ {variables(1)} }} }} {SVG_STYLE}"
        )
        opening = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        return f"{opening}{closing}<style>{style}</style>{paper}{rest}\n"

    def draw(self, ax: Any) -> None:
        """Draw into axes of matplotlib, whose units become pixels, with the light colours."""
        left, right, top, bottom = self.bounds()
        ax.set(xlim=(left - _MARGIN, right + _MARGIN), ylim=(bottom + _MARGIN, top - _MARGIN), aspect="equal")
        ax.set_axis_off()
        for order, part in enumerate(self.parts):
            _draw(ax, part, order)


def check_direction(direction: str) -> str:
    """Return where a tree leads: "down" to words side by side, "right" to words in a column, "auto" by their width."""
    if direction not in ("auto", "down", "right"):
        raise ValueError(f"direction must be one of 'auto', 'down', 'right'. Got {direction!r}.")
    return direction


def text_width(text: str, size: float = 11.0) -> float:
    """Return about how many pixels a text takes."""
    return _LETTER * size * len(text)


def _tip(text: str) -> str:
    return f"<title>{escape(printable(text))}</title>" if text else ""


def _svg(part: Part) -> str:
    if isinstance(part, Dot):
        hue = "var(--soft)" if part.hue is None else f"var(--hue-{part.hue})"
        ring, width = ("var(--wrong)", 3.5) if part.is_wrong else (hue, 1.5)
        place = f'cx="{part.x:.1f}" cy="{part.y:.1f}" r="{part.radius:.1f}"'
        paper = f'<circle {place} style="fill:var(--paper)"/>'  # so that edges do not shine through
        look = f"fill:{hue};fill-opacity:{part.strength:.2f};stroke:{ring};stroke-width:{width:g}"
        return f'{paper}<circle {place} style="{look}">{_tip(part.tip)}</circle>'
    if isinstance(part, Cell):
        hue = "var(--soft)" if part.hue is None else f"var(--hue-{part.hue})"
        place = f'x="{part.x:.1f}" y="{part.y:.1f}" width="{part.width:.1f}" height="{part.height:.1f}"'
        look = f"fill:{hue};fill-opacity:{part.strength:.2f};shape-rendering:crispEdges"
        return f'<rect {place} style="{look}">{_tip(part.tip)}</rect>'
    if isinstance(part, Box):
        hue = "var(--soft)" if part.hue is None else f"var(--hue-{part.hue})"
        border, width = ("var(--wrong)", 2.0) if part.is_wrong else (hue, 1.0)
        place = f'x="{part.x:.1f}" y="{part.y:.1f}" width="{part.width:.1f}" height="{part.height:.1f}" rx="5"'
        look = f"fill:{hue};fill-opacity:{part.strength:.2f};stroke:{border};stroke-width:{width:g}"
        return f'<rect {place} style="{look}">{_tip(part.tip)}</rect>'
    if isinstance(part, Words):
        weight = ";font-weight:700" * part.is_bold
        # A border of paper, so that lines do not strike the text out.
        halo = ";paint-order:stroke;stroke:var(--paper);stroke-width:3px" * part.has_halo
        look = f"fill:var(--{part.colour});font-size:{part.size:g}px;text-anchor:{part.anchor}{weight}{halo}"
        return f'<text x="{part.x:.1f}" y="{part.y:.1f}" style="{look}">{escape(printable(part.text))}</text>'
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in part.points)
    dashes = f";stroke-dasharray:{part.dashes}" * bool(part.dashes)
    look = f"fill:none;stroke:var(--{part.colour});stroke-width:{part.width:g}{dashes}"
    line = f'<path d="{path}" style="{look}">{_tip(part.tip)}</path>'
    if not part.has_head:
        return line
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in _head(part))
    return f'{line}<polygon points="{corners}" style="fill:var(--{part.colour})"/>'


def _head(stroke: Stroke, length: float = 9.0, half: float = 4.0) -> list[tuple[float, float]]:
    """Return the corners of an arrowhead at the end of a line."""
    (x0, y0), (x1, y1) = stroke.points[-2:]
    along = np.array([x1 - x0, y1 - y0])
    along = along / max(float(np.hypot(*along)), 1e-9)
    across, tip = np.array([-along[1], along[0]]), np.array([x1, y1])
    back = tip - length * along
    corners = (tip, back + half * across, back - half * across)
    return [(float(x), float(y)) for x, y in corners]


def _draw(ax: Any, part: Part, order: int) -> None:
    from matplotlib.patches import Circle, FancyBboxPatch, Polygon, Rectangle
    from matplotlib.patheffects import withStroke

    if isinstance(part, Words):
        halo = [withStroke(linewidth=2.0, foreground=LIGHT["paper"])] if part.has_halo else None
        ax.text(
            part.x,
            part.y,
            printable(part.text),
            ha={"start": "left", "middle": "center", "end": "right"}[part.anchor],
            va="baseline",
            fontsize=_POINTS * part.size,
            color=LIGHT[part.colour],
            weight="bold" if part.is_bold else "normal",
            parse_math=False,
            path_effects=halo,
            zorder=order,
        )
        return
    if isinstance(part, Stroke):
        dashes = (0, tuple(float(one) for one in part.dashes.split())) if part.dashes else "-"
        xs, ys = zip(*part.points, strict=True)
        ax.plot(xs, ys, color=LIGHT[part.colour], linewidth=_POINTS * part.width, linestyle=dashes, zorder=order)
        if part.has_head:
            ax.add_patch(Polygon(_head(part), closed=True, color=LIGHT[part.colour], linewidth=0, zorder=order))
        return
    hue = LIGHT["soft"] if part.hue is None else HUES[part.hue][0]
    if isinstance(part, Box):
        border, width = (LIGHT["wrong"], 2.0) if part.is_wrong else (hue, 1.0)
        round_corners = "round,pad=0,rounding_size=5"
        patch = FancyBboxPatch((part.x, part.y), part.width, part.height, boxstyle=round_corners, zorder=order)
        patch.set(facecolor=(hue, part.strength), edgecolor=border, linewidth=_POINTS * width)
        ax.add_patch(patch)
        return
    if isinstance(part, Cell):
        ax.add_patch(
            Rectangle(
                (part.x, part.y), part.width, part.height, color=hue, alpha=part.strength, linewidth=0, zorder=order
            )
        )
        return
    ring, width = (LIGHT["wrong"], 3.5) if part.is_wrong else (hue, 1.5)
    ax.add_patch(Circle((part.x, part.y), part.radius, facecolor=LIGHT["paper"], linewidth=0, zorder=order))
    look = {"facecolor": (hue, part.strength), "edgecolor": ring, "linewidth": _POINTS * width}
    ax.add_patch(Circle((part.x, part.y), part.radius, **look, zorder=order))
