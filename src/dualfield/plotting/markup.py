"""Text on its way into HTML."""

import html
import re


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


def printable(text: object) -> str:
    r"""Put a replacement character in place of what neither XML nor fonts can hold.

    Examples
    --------
    >>> from dualfield.plotting.markup import printable
    >>> printable("a\x00b"), printable(7)
    ('a�b', '7')
    """
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\N{REPLACEMENT CHARACTER}", str(text))
