"""Text on its way into HTML and SVG."""

import html
import unicodedata
from collections.abc import Iterable


class Html(str):
    """Text that is markup already; everything else is escaped on its way into a page.

    Examples
    --------
    >>> from dualfield.report import Html, escape
    >>> escape(Html("<b>bold</b>"))
    '<b>bold</b>'
    """

    __slots__ = ()


def escape(text: object) -> Html:
    """Make text safe for an element or a quoted attribute; leave :class:`Html` as it is.

    Parameters
    ----------
    text : object
        Its ``str`` is shown.

    Returns
    -------
    Html
        Markup that shows the text.

    Examples
    --------
    >>> from dualfield.report import escape
    >>> escape("a < b & 'c'")
    'a &lt; b &amp; &#x27;c&#x27;'
    """
    return text if isinstance(text, Html) else Html(html.escape(str(text), quote=True))


def shortened(text: object, most: int) -> str:
    """Cut a text to so many characters, the last of them an ellipsis.

    Examples
    --------
    >>> from dualfield.plotting.markup import shortened
    >>> shortened("B-ORGANISATION", 6), shortened(7, 6)
    ('B-ORG…', '7')
    """
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def text_width(text: object, size: float = 11.0) -> float:
    """Estimate how many pixels a text needs at a font size, generously: no font is at hand to measure it.

    Examples
    --------
    >>> from dualfield.plotting.markup import text_width
    >>> text_width("abc") < text_width("日本語") < 40
    True
    """
    return size * sum(1.05 if unicodedata.east_asian_width(letter) in "WF" else 0.66 for letter in str(text))


def text_element(
    x: float, y: float, text: object, *, anchor: str = "middle", look: str = "", size: float = 11.0, turn: int = 0
) -> str:
    """Return an SVG text: `look` is its class, `turn` its angle around (x, y) in degrees.

    Examples
    --------
    >>> from dualfield.plotting.markup import text_element
    >>> text_element(1, 2, "<x>")
    '<text x="1.0" y="2.0" text-anchor="middle">&lt;x&gt;</text>'
    """
    kind = f' class="{look}"' if look else ""
    small = f' style="font-size:{size:g}px"' if size != 11 else ""
    place = f'transform="translate({x:.1f} {y:.1f}) rotate({turn})"' if turn else f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text{kind}{small} {place} text-anchor="{anchor}">{escape(text)}</text>'


def svg_element(width: float, height: float, title: str, parts: Iterable[str], *, look: str = "") -> Html:
    """Return an SVG picture in its natural size; the page's CSS lets it shrink with the screen.

    Examples
    --------
    >>> from dualfield.plotting.markup import svg_element
    >>> svg_element(10, 20, "nothing", [])
    '<svg role="img" width="10" height="20" viewBox="0 0 10 20" aria-label="nothing"></svg>'
    """
    kind = f'class="{look}" ' if look else ""
    return Html(
        f'<svg {kind}role="img" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
