"""A labelled sentence as a picture: a file of SVG, or drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from dualfield.plotting.markup import printable
from dualfield.plotting.sentence import Piece
from dualfield.plotting.sentence_layout import Box, laid_out
from dualfield.plotting.style import HUES, LIGHT, SVG_STYLE, UNDER_TEXT, variables

_MARGIN = 12.0
_POINTS = {"word": 10.0, "name": 7.0, "chance": 7.0, "note": 7.0}
_STYLE = (
    f"svg {{ {variables(0)} }} @media (prefers-color-scheme: dark) {{ svg {{ {variables(1)} }} }} {SVG_STYLE} "
    ".paper { fill: var(--paper); } text { fill: var(--ink); } .word { font-size: 16px; } "
    ".name, .note { font-size: 11px; font-weight: 700; } .chance { font-size: 11px; } "
    ".note { fill: var(--wrong); } .wrong { stroke: var(--wrong); stroke-width: 2; } "
    ".missed { fill: none; stroke: var(--wrong); stroke-width: 2; stroke-dasharray: 4 3; }"
)


def svg_sentence(pieces: Sequence[Piece], width: float, *, is_stacked: bool, title: str) -> str:
    """Return a file that shows a sentence on paper of its own, in the colours of light and dark screens."""
    boxes, height = laid_out(pieces, width - 2 * _MARGIN, is_stacked=is_stacked)
    height += 2 * _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" aria-label={quoteattr(printable(title))}>',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{width:g}" height="{height:g}" rx="8"/>',
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">',
    ]
    for box in boxes:
        x, y, wide, high = box.place
        shape = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="6"'
        if box.piece.fault == "missed":
            parts.append(f'<rect class="missed" {shape}/>')
        elif box.piece.hue is not None or box.piece.fault:
            hue = "none" if box.piece.hue is None else f"var(--hue-{box.piece.hue})"
            shade = UNDER_TEXT * box.piece.strength
            frame = 'class="wrong"' if box.piece.fault else f'style="stroke:{hue}"'
            parts.append(f'<rect {frame} {shape} fill="{hue}" fill-opacity="{shade:.3f}"/>')
        parts += [
            f'<text class="{text.look}" x="{text.x:.1f}" y="{text.y:.1f}" textLength="{text.width:.1f}" '
            f'lengthAdjust="spacingAndGlyphs">{escape(text.text)}</text>'
            for text in box.texts
            if text.text.strip()
        ]
    return "\n".join([*parts, "</g></svg>", ""])


def draw_sentence(ax: Any, boxes: Sequence[Box]) -> None:
    """Draw boxes into axes whose units are pixels, with the light colours."""
    from matplotlib.patches import FancyBboxPatch

    for box in boxes:
        x, y, wide, high = box.place
        if box.piece.hue is not None or box.piece.fault:
            hue = "none" if box.piece.hue is None else HUES[box.piece.hue][0]
            patch = FancyBboxPatch((x, y), wide, high, boxstyle="round,pad=0,rounding_size=5", mutation_aspect=1.0)
            face = (hue, UNDER_TEXT * box.piece.strength) if hue != "none" else "none"
            edge = LIGHT["wrong"] if box.piece.fault else hue
            dashes = "--" if box.piece.fault == "missed" else "-"
            patch.set(facecolor=face, edgecolor=edge, linewidth=1.5 if box.piece.fault else 0.8, linestyle=dashes)
            ax.add_patch(patch)
        for text in box.texts:
            if text.text.strip():
                look = {
                    "fontsize": _POINTS[text.look],
                    "color": LIGHT["wrong"] if text.look == "note" else "black",
                    "weight": "bold" if text.look in ("name", "note") else "normal",
                }
                middle = text.x + text.width / 2.0
                ax.text(middle, text.y, text.text, ha="center", va="baseline", parse_math=False, **look)
