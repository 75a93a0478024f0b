"""The page around all that a report shows."""

import os
from collections.abc import Iterable
from pathlib import Path

from dualfield.io.atomic import atomic_write
from dualfield.plotting.markup import Html, escape
from dualfield.plotting.style import DRAWING_STYLE, TABLE_STYLE, variables

_STYLE = (
    f":root {{ color-scheme: light dark; {variables(0)} }}\n"
    f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(1)} }} }}"
    """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 10px 3rem; max-width: 1160px; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
p { max-width: 46rem; margin: .5rem 0; }
"""
    + TABLE_STYLE
    + """
@media (max-width: 40rem) { .data th, .data td { padding: .3rem .2rem; font-size: .8rem; } }
figure { margin: .8rem 0; }
figcaption { margin-top: .6rem; }
.scores { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.2rem, 1fr)); gap: 10px; margin: 1rem 0; }
.scores div { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem; }
.scores dt { color: var(--soft); font-size: .85rem; }
.scores dd { margin: 0; font-size: 1.45rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.scores small { display: block; color: var(--soft); font-size: .75rem; font-weight: 400; }
details { margin: 1.4rem 0; }
summary { font-size: 1.05rem; font-weight: 700; cursor: pointer; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
"""
)
_PRINT = f"""@page {{ margin: 14mm; }}
@media print {{
  :root {{ color-scheme: light; {variables(0)} }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  body {{ padding: 0; max-width: none; font-size: 10.5pt; }}
  h1, h2, h3 {{ break-after: avoid; }}
  svg, .scores div, .weights section, .example, .card, tr {{ break-inside: avoid; }}
  .scroll, .grid-box {{ overflow: visible; }}
  .grid-box svg {{ max-width: 100%; min-width: 0; }}
  details::details-content {{ content-visibility: visible; height: auto; }}
}}
"""


def page(title: str, body: Iterable[object], *, style: str = "") -> Html:
    """Put a body into a whole HTML document that needs nothing else.

    Parameters
    ----------
    title : str
        The title of the window; a heading is part of the body.
    body : iterable
        Pieces of the page; what is not :class:`Html` is escaped.
    style : str, default=""
        More CSS, after the page's own.

    Returns
    -------
    Html
        The document, readable on a phone and in light and dark colours.

    Examples
    --------
    >>> from dualfield.report import Html, page
    >>> page("Results", [Html("<h1>Results</h1>")]).startswith("<!DOCTYPE html>")
    True
    """
    parts = "\n".join(escape(piece) for piece in body)
    return Html(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{DRAWING_STYLE}{style}{_PRINT}</style>\n</head>\n"
        f"<body>\n{parts}\n</body>\n</html>\n"
    )


def write_page(path: str | os.PathLike[str], document: str) -> None:
    """Write a document atomically.

    Parameters
    ----------
    path : str or path-like
        Where the document goes; an older file there is replaced. A symbolic link is followed.
    document : str
        The text, written as UTF-8.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written to, or if `path` is a folder or a device. What was there
        before is then unchanged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualfield.report import page, write_page
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(pathlib.Path(folder, "report.html"), page("Empty", []))
    ...     [found.name for found in pathlib.Path(folder).iterdir()]
    ['report.html']
    """
    check_target(Path(path).resolve())
    with atomic_write(path) as file:
        file.write(document.encode())


def check_target(path: Path) -> None:
    """Raise the OSError that writing to `path` would end in, as far as it can be known beforehand.

    Parameters
    ----------
    path : Path
        Where a file is to be written or replaced.

    Raises
    ------
    OSError
        With a sentence that says why.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dualfield.report.page import check_target
    >>> check_target(Path("no-such-folder/report.html"))
    Traceback (most recent call last):
        ...
    FileNotFoundError: the folder 'no-such-folder' does not exist
    """
    if not path.parent.exists():
        raise FileNotFoundError(f"the folder '{path.parent}' does not exist")
    if not path.parent.is_dir():
        raise NotADirectoryError(f"'{path.parent}' is not a folder")
    if path.is_dir():
        raise IsADirectoryError("it is a folder")
    if path.exists() and not path.is_file():
        raise OSError("it is not a regular file")  # renaming over a device would replace the device
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"the folder '{path.parent}' is not writable")
