"""Figures of matplotlib as inline SVG: small, the same every time, in the colours of the page around them.

No pyplot takes part, so no screen and no figure of the user's is touched. The style of matplotlib is global, therefore
one picture is drawn at a time.
"""

from __future__ import annotations

import contextlib
import io
import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from dualfield.plotting.canvas import check_matplotlib
from dualfield.plotting.markup import Html, printable
from dualfield.plotting.style import CYCLE, LIGHT, SVG_STYLE, variables

_LOCK = threading.RLock()
_SVG, _LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_VARIABLES = {light: f"var(--{name})" for name, light in LIGHT.items()} | {"#808080": "var(--soft)"}
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and is smaller than its outlines
    "svg.hashsalt": "dualfield",
    "figure.dpi": 72,  # so that one point is one pixel of the page
    "font.size": 11,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": LIGHT["line"],
    "axes.labelcolor": LIGHT["soft"],
    "axes.labelsize": 11,
    "text.color": LIGHT["ink"],
    "grid.color": LIGHT["line"],
    "lines.linewidth": 2,
    "legend.fontsize": 11,
} | {
    f"{axis}tick.{name}": value
    for axis, sides in (("x", ("bottom", "top")), ("y", ("left", "right")))
    for name, value in {"labelcolor": LIGHT["ink"], "labelsize": 11, **dict.fromkeys(sides, False)}.items()
}


@contextlib.contextmanager
def page_style() -> Iterator[None]:
    """Draw in the style of a page, whatever style the user has chosen for figures."""
    check_matplotlib()
    import matplotlib as mpl
    import matplotlib.style
    from cycler import cycler

    with _LOCK, mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # the fonts are those of the browser
        matplotlib.style.use(["default", _STYLE | {"axes.prop_cycle": cycler(color=CYCLE)}])
        yield


def page_axes(width: float, height: float) -> Any:
    """Return axes of a figure that pyplot does not know, with a plane of so many pixels."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 72.0, height / 72.0)).add_axes((0.0, 0.0, 1.0, 1.0))


def inline_svg(figure: Any, *, title: str) -> Html:
    """Return a figure drawn within :func:`page_style` as an ``<svg>`` without a name, link or colour of its own.

    It is as large as what was drawn, and nothing is clipped. The URL of an artist is taken for what it says when one
    points at it; `title` says what the picture shows to those who hear the page.
    """
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata=_NO_METADATA, bbox_inches="tight", pad_inches=2.0 / 72.0)
    root = ElementTree.fromstring(printable(out.getvalue()))
    marks = {f"#{path.get('id')}": path for path in root.iter(f"{_SVG}path") if path.get("id")}
    width, height = (f"{float(side):.0f}" for side in root.attrib["viewBox"].split()[2:])
    whole = ElementTree.Element("svg", role="img", width=width, height=height, viewBox=f"0 0 {width} {height}")
    whole.set("aria-label", printable(title))
    for child in root:
        whole.extend(_plain(child, marks))
    return Html(ElementTree.tostring(whole, encoding="unicode"))


def svg_document(picture: Html) -> str:
    """Make a file of its own from a picture.

    Parameters
    ----------
    picture : Html
        From :func:`line_chart`, :func:`heat_map` or :func:`reliability_diagram`.

    Returns
    -------
    str
        The content of an ``.svg`` file, in light colours.

    Examples
    --------
    >>> from dualfield.report import Line, line_chart, svg_document
    >>> chart = line_chart([Line("dots", (1.0, 2.0), (3.0, 4.0))], title="dots", x_axis="x", y_axis="y")
    >>> svg_document(chart).startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    True
    """
    opening, closing, rest = picture.partition(">")
    opening = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{opening}{closing}<style>svg {{ {variables(0)} background: var(--paper); }} {SVG_STYLE}</style>{rest}\n"


def _plain(element: ElementTree.Element, marks: dict[str, ElementTree.Element]) -> Iterator[ElementTree.Element]:
    """Give out what can be seen of an element: no groups, no names, and marks in place of references to them."""
    kind = element.tag.removeprefix(_SVG)
    if kind in ("defs", "metadata"):
        return
    if kind in ("g", "a") and not element.get("transform"):
        tip = element.get(_LINK)
        for child in element:
            for seen in _plain(child, marks):
                if tip is not None:
                    ElementTree.SubElement(seen, "title").text = tip
                yield seen
        return
    plain = ElementTree.Element(kind)
    if kind == "use":
        mark = marks[element.attrib[_LINK]]
        plain = ElementTree.Element("path", d=_numbers(mark.attrib["d"]))
        plain.set("transform", _numbers(f"translate({element.get('x', '0')} {element.get('y', '0')})"))
    for name in ("d", "x", "y", "transform"):
        value = _numbers(element.get(name, ""))
        if value and kind != "use" and not value.startswith("rotate(-0 "):
            plain.set(name, value)
    style = _style(element.get("style", ""))
    if kind in ("path", "use") and (style.get("fill"), style.get("stroke")) == ("none", None):
        return
    if style:
        plain.set("style", ";".join(f"{name}:{value}" for name, value in style.items()))
    plain.text = element.text if (element.text or "").strip() else None
    for child in element:
        plain.extend(_plain(child, marks))
    yield plain


def _style(text: str) -> dict[str, str]:
    """Return what a style says, in colours of the page; nothing is filled that cannot be seen."""
    found = dict(part.strip().split(": ", 1) for part in text.split(";") if part.strip())
    for name in ("font-family", "stroke-dashoffset", "stroke-linejoin", "stroke-linecap"):
        found.pop(name, None)
    style = {name: _VARIABLES.get(value, _numbers(value, 3)) for name, value in found.items()}
    if style.get("fill-opacity") == "0":
        style = {"fill": "none"}
    return style


def _numbers(text: str, digits: int = 1) -> str:
    """Round the decimal numbers of a text, and write it in one line."""
    rounded = re.sub(r"-?\d+\.\d+(e-\d+)?", lambda found: f"{round(float(found[0]), digits):g}", text)
    return " ".join(rounded.split())
