"""What all displays have in common: how they show themselves in a notebook, and in a terminal."""

from __future__ import annotations

from abc import abstractmethod

from dualfield.data.tables import Tabular
from dualfield.plotting.markup import Html
from dualfield.plotting.style import DRAWING_STYLE, TABLE_STYLE, variables

_DARK = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]')
_LIGHT = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]')


class Display(Tabular):
    """Base of displays: the last line of a notebook's cell shows the HTML, unless a figure was drawn already.

    A subclass has ``html()``, says in ``_summary`` what it holds, in one line, and has its data as columns.
    """

    @abstractmethod
    def html(self) -> Html:
        """Return markup for a page of :mod:`dualfield.report`."""

    @abstractmethod
    def _summary(self) -> str:
        """Say what it holds."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"

    def _repr_html_(self) -> str | None:
        # The figure of plot() stands in the notebook already.
        return None if hasattr(self, "figure_") else in_notebook(self.html())


def in_notebook(markup: str) -> str:
    """Put markup into a box with the styles of a page, in the colours of the notebook around it.

    Examples
    --------
    >>> from dualfield.plotting.display import in_notebook
    >>> in_notebook("<p>text</p>").endswith("<p>text</p></div>")
    True
    """
    return f'<div class="dualfield-view"><style>{_style()}</style>{markup}</div>'


def _style() -> str:
    box = ".dualfield-view"
    return "\n".join(
        [
            f"{box} {{ {variables(0)} background: var(--paper); color: var(--ink); padding: 8px; }}",
            f"@media (prefers-color-scheme: dark) {{ {box} {{ {variables(1)} }} }}",
            ", ".join(f"{place} {box}" for place in _LIGHT) + f" {{ {variables(0)} }}",
            ", ".join(f"{place} {box}" for place in _DARK) + f" {{ {variables(1)} }}",
            scoped(TABLE_STYLE + DRAWING_STYLE, box),
        ]
    )


def scoped(style: str, box: str) -> str:
    """Let rules apply within a box only; the rules are flat, one selector list each.

    Examples
    --------
    >>> from dualfield.plotting.display import scoped
    >>> scoped("p, b { margin: 0; } i { color: red; }", ".box")
    '.box p, .box b { margin: 0; } .box i { color: red; }'
    """
    rules = [rule.partition("{") for rule in style.replace("\n", " ").split("}") if rule.strip()]
    return " ".join(
        ", ".join(f"{box} {one.strip()}" for one in selectors.split(",")) + f" {{ {body.strip()} }}"
        for selectors, _, body in rules
    )
