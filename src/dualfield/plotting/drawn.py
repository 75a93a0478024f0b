"""Displays that are one drawing: the same parts in a figure, on a page and in a file."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

from dualfield.plotting.canvas import one_axes
from dualfield.plotting.display import Display
from dualfield.plotting.markup import Html
from dualfield.plotting.sketch import Sketch

_INCHES = 0.75 / 72.0  # of a pixel


class DrawnDisplay(Display):
    """Base of displays whose picture is a :class:`Sketch`."""

    keeps_size: ClassVar[bool] = False  # whether a picture that is wider than the page can be moved, or is made smaller

    @abstractmethod
    def _sketch(self) -> Sketch:
        """Return the picture."""

    @abstractmethod
    def _title(self) -> str:
        """Say what the picture shows, for those who hear the page."""

    def plot(self, ax: Any = None) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        Display
            Itself.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.plotting import TreeDisplay
        >>> display = TreeDisplay(["the", "dog"], [("NP", 0, 2)]).plot()
        >>> [text.get_text() for text in display.ax_.texts]
        ['NP', 'the', 'dog']
        >>> plt.close(display.figure_)
        """
        sketch = self._sketch()
        left, right, top, bottom = sketch.bounds()
        self.ax_ = one_axes(ax, ((right - left) * _INCHES, (bottom - top) * _INCHES), margins=(0.2, 0.2))
        self.figure_ = self.ax_.figure
        sketch.draw(self.ax_)
        return self

    def html(self) -> Html:
        """Draw as SVG for a page of :mod:`dualfield.report`.

        Returns
        -------
        Html
            The picture.

        Examples
        --------
        >>> from dualfield.plotting import ArcDisplay
        >>> "<title>sleep → dogs: nsubj</title>" in ArcDisplay(["dogs", "sleep"], [(2, "nsubj"), (0, "root")]).html()
        True
        """
        return self._sketch().scrolled(self._title()) if self.keeps_size else self._sketch().svg(self._title())

    def svg(self) -> str:
        """Draw as an SVG file of its own, in light colours or dark ones as the screen has them.

        Returns
        -------
        str
            The content of an ``.svg`` file.

        Examples
        --------
        >>> from dualfield.plotting import GraphDisplay
        >>> GraphDisplay(["x"]).svg().startswith('<svg xmlns="http://www.w3.org/2000/svg"')
        True
        """
        return self._sketch().document(self._title())
