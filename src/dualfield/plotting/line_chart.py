"""Line charts as inline SVG: a few series against each other, with a legend, on linear or logarithmic axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualfield.plotting.markup import Html, svg_element, text_element

_WIDTH, _HEIGHT, _LEFT, _TOP = 420, 260, 62, 8  # the plane of the chart, in pixels
_ROW = 18  # height of a line of the legend
_FEW = 30  # up to so many points are marked one by one
# Lines differ by colour, by dashes and by marks, so that no one of the three is needed to tell them apart. Colours keep
# a contrast of at least 4.5:1 against the paper, in both schemes.
_LIGHT = ("#a34a00", "#0b4f9e", "#1a7431", "#7a3fd1", "#57606a", "#b3261e")
_DARK = ("#ffb26b", "#86b8ff", "#7ee787", "#d2a8ff", "#a5adb5", "#ff8f85")
_DASHES = ("6 4", "", "2 3", "10 3 2 3", "1 4", "14 4")
_MARKS = (
    "M-3.5 -3.5h7v7h-7z",
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M0 -4.5L4.5 3.5L-4.5 3.5z",
    "M0 -5L5 0L0 5L-5 0z",
    "M-4 -1.2h2.8v-2.8h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8z",
    "M0 4.5L4.5 -3.5L-4.5 -3.5z",
)


def _colours(palette: Sequence[str]) -> str:
    return " ".join(f"--line-{number}: {colour};" for number, colour in enumerate(palette))


def _rules() -> str:
    lines = [
        f".lines .s{number} {{ stroke: var(--line-{number}); stroke-dasharray: {dash or 'none'}; }} "
        f".lines .m{number} {{ fill: var(--line-{number}); }}"
        for number, dash in enumerate(_DASHES)
    ]
    lines.append(".lines .series { fill: none; stroke-width: 2; stroke-linejoin: round; }")
    lines.append(".lines .grid { fill: none; stroke: var(--line, #cfd6dd); stroke-opacity: .6; }")
    return "\n".join(lines)


LINE_CHART_STYLE = f"""
.lines {{ {_colours(_LIGHT)} }}
@media (prefers-color-scheme: dark) {{ .lines {{ {_colours(_DARK)} }} }}
{_rules()}
"""
# A picture that stands alone has no page around it: it brings the page's look along, in the light scheme only.
_ALONE = f"""
.lines {{ {_colours(_LIGHT)} background: #ffffff; }}
text {{ fill: #1b1f24; font: 11px system-ui, sans-serif; }}
.soft {{ fill: #57606a; }}
.frame {{ fill: none; stroke: #cfd6dd; }}
{_rules()}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a chart.

    Attributes
    ----------
    name : str
        For the legend.
    x, y : tuple of float
        The points, in order. A point whose value is NaN, or not above 0 on a logarithmic axis, is left out, and the
        line is broken there.

    Examples
    --------
    >>> from dualfield.report import Line
    >>> Line("squares", x=(1.0, 2.0, 3.0), y=(1.0, 4.0, 9.0)).name
    'squares'
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Axis:
    """From values to pixels: ``start`` is where the lowest value is drawn, ``length`` may be negative."""

    low: float
    high: float
    log: bool
    start: float
    length: float

    def places(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return pixels, (n,); NaN for what the axis cannot show."""
        known = np.isfinite(values) & ((values > 0.0) | (not self.log))
        scaled = np.full(len(values), np.nan)
        scaled[known] = np.log10(values[known]) if self.log else values[known]
        return self.start + self.length * (scaled - self.low) / (self.high - self.low)

    def ticks(self) -> NDArray[np.float64]:
        """Return the values to be labelled, from 2 to about 10 of them."""
        if not self.log:
            return _round_values(self.low, self.high)
        decades = np.arange(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1.0)
        if len(decades) > 9:
            decades = decades[decades % math.ceil(len(decades) / 9) == 0]
        if len(decades) >= 3:
            return np.asarray(10.0**decades)
        if self.high - self.low > 0.7:
            steps = np.array([1.0, 2.0, 5.0])
            powers = 10.0 ** np.arange(math.floor(self.low), math.ceil(self.high) + 1, dtype=np.float64)
            values = np.outer(powers, steps).ravel()
            return np.asarray(values[(values >= 10.0**self.low) & (values <= 10.0**self.high)])
        return _round_values(10.0**self.low, 10.0**self.high)


def line_chart(
    lines: Sequence[Line], *, title: str, x_axis: str, y_axis: str, log_x: bool = False, log_y: bool = False
) -> Html:
    """Draw series as lines, with a legend below.

    Parameters
    ----------
    lines : sequence of Line
        From one to six series, at least one of them with a point that can be shown.
    title : str
        What the picture shows, for those who hear the page.
    x_axis, y_axis : str
        What the axes measure.
    log_x, log_y : bool, default=False
        Whether an axis is logarithmic.

    Returns
    -------
    Html
        An ``<svg>`` element for a :func:`page`; :func:`svg_document` makes a file of it.

    Examples
    --------
    >>> from dualfield.report import Line, line_chart
    >>> squares = Line("squares", (1.0, 2.0, 3.0), (1.0, 4.0, 9.0))
    >>> line_chart([squares], title="squares", x_axis="n", y_axis="n²").count('class="series')
    2
    """
    series = [_checked(line) for line in lines]
    if not 1 <= len(series) <= len(_MARKS):
        raise ValueError(f"A line chart shows from 1 to {len(_MARKS)} lines. Got {len(series)} instead.")
    bottom = _TOP + _HEIGHT
    shown = np.concatenate([_shown(x, y, log_x, log_y) for x, y in series], axis=1)
    if shown.shape[1] == 0:
        raise ValueError(f"The lines of the chart '{title}' have no point that can be shown.")
    across = _axis(shown[0], log_x, _LEFT, _WIDTH)
    up = _axis(shown[1], log_y, bottom, -_HEIGHT)
    parts = [f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{_WIDTH}" height="{_HEIGHT}"/>']
    for value, place in zip(across.ticks(), across.places(across.ticks()), strict=True):
        parts.append(f'<path class="grid" d="M{place:.1f} {_TOP}V{bottom}"/>')
        parts.append(text_element(place, bottom + 16, tick_label(value)))
    for value, place in zip(up.ticks(), up.places(up.ticks()), strict=True):
        parts.append(f'<path class="grid" d="M{_LEFT} {place:.1f}H{_LEFT + _WIDTH}"/>')
        parts.append(text_element(_LEFT - 6, place + 4, tick_label(value), anchor="end"))
    parts.append(text_element(_LEFT + _WIDTH / 2, bottom + 34, x_axis, look="soft"))
    parts.append(text_element(12, _TOP + _HEIGHT / 2, y_axis, look="soft", turn=-90))
    for number, (line, (x, y)) in enumerate(zip(lines, series, strict=True)):
        parts += _drawn(number, across.places(x), up.places(y))
        height = bottom + 56 + _ROW * number
        parts.append(f'<path class="series s{number}" d="M{_LEFT} {height}h34"/>{_mark(number, _LEFT + 17, height)}')
        parts.append(text_element(_LEFT + 42, height + 4, line.name, anchor="start"))
    width, height = _LEFT + _WIDTH + 16, bottom + 56 + _ROW * len(series)
    return svg_element(width, height, title, parts, look="lines")


def svg_document(chart: Html) -> str:
    """Make a file of its own from a line chart.

    Parameters
    ----------
    chart : Html
        From :func:`line_chart`.

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
    opening, closing, rest = chart.partition(">")
    opening = opening.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{opening}{closing}<style>{_ALONE}</style>{rest}\n"


def tick_label(value: float) -> str:
    """Write a number shortly: in full where that is short, with an exponent elsewhere.

    Parameters
    ----------
    value : float
        Any finite number.

    Returns
    -------
    str
        For example ``"0.5"``, ``"2000"`` or ``"1e-6"``.

    Examples
    --------
    >>> from dualfield.plotting.line_chart import tick_label
    >>> [tick_label(value) for value in (0.0, 0.25, 2000.0, 1e5, 1e-6, 2.5e-4)]
    ['0', '0.25', '2000', '1e5', '1e-6', '2.5e-4']
    """
    if value == 0.0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.9g}"
    digits, _, exponent = f"{value:.3e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def _checked(line: Line) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.asarray(line.x, dtype=np.float64), np.asarray(line.y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"x and y of the line '{line.name}' must be 1D and of the same length. Got shapes {x.shape} and {y.shape} "
            "instead."
        )
    return x, y


def _shown(x: NDArray[np.float64], y: NDArray[np.float64], log_x: bool, log_y: bool) -> NDArray[np.float64]:
    """Return the points (2, n) that can be shown, logarithms where an axis is logarithmic."""
    known = np.isfinite(x) & np.isfinite(y) & ((x > 0.0) | (not log_x)) & ((y > 0.0) | (not log_y))
    return np.stack([np.log10(x[known]) if log_x else x[known], np.log10(y[known]) if log_y else y[known]])


def _axis(values: NDArray[np.float64], log: bool, start: float, length: float) -> _Axis:
    low, high = float(values.min()), float(values.max())
    room = 0.04 * (high - low) or (0.3 if log else 0.1 * abs(low) or 1.0)
    return _Axis(low - room, high + room, log, start, length)


def _round_values(low: float, high: float) -> NDArray[np.float64]:
    """Return multiples of 1, 2 or 5 times a power of ten between two numbers, about five of them."""
    rough = (high - low) / 5.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * (1.0 - 1e-9))
    return step * np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1, dtype=np.float64)


def _drawn(number: int, xs: NDArray[np.float64], ys: NDArray[np.float64]) -> list[str]:
    """Return the pieces of one series, broken where a point cannot be shown, and its marks."""
    known = np.isfinite(xs) & np.isfinite(ys)
    path, pen = [], "M"
    for x, y, shown in zip(xs, ys, known, strict=True):
        if shown:
            path.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L" if shown else "M"
    parts = [f'<path class="series s{number}" d="{"".join(path)}"/>'] if path else []
    if known.sum() <= _FEW:
        parts += [_mark(number, x, y) for x, y in zip(xs[known], ys[known], strict=True)]
    return parts


def _mark(number: int, x: float, y: float) -> str:
    return f'<path class="m{number}" transform="translate({x:.1f} {y:.1f})" d="{_MARKS[number]}"/>'
