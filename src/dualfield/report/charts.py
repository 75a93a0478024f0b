"""Charts as inline SVG: shaded tables of probabilities and reliability diagrams."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.report.page import Html, escape

_LEGEND_SHADES = (0.0, 0.25, 0.5, 0.75, 1.0)
_LEGEND_WIDTH = 172  # without what explains the frames; enough for a wide font


def heat_map(
    values: ArrayLike,
    *,
    title: str,
    row_labels: Sequence[object],
    column_labels: Sequence[object] = (),
    row_axis: str = "",
    column_axis: str = "",
    marks: Iterable[tuple[int, int]] = (),
    mark_label: str = "",
    cell: tuple[int, int] = (32, 12),
    margin: int = 64,
    full: float = 1.0,
) -> Html:
    """Draw a table of probabilities, the more probable the darker, with its legend.

    Parameters
    ----------
    values : array-like of shape (n_rows, n_columns)
        Probabilities in [0, 1].
    title : str
        What the picture shows, for those who hear the page.
    row_labels : sequence of length n_rows
        Written to the left of the rows.
    column_labels : sequence of length n_columns, default=()
        Written above the columns; none when empty.
    row_axis, column_axis : str, default=""
        What rows and columns are.
    marks : iterable of (row, column), default=()
        Cells to be framed.
    mark_label : str, default=""
        What a frame means, for the legend.
    cell : (int, int), default=(32, 12)
        Width and height of a cell in pixels.
    margin : int, default=64
        Width of the space left of the cells.
    full : float, default=1.0
        The probability that gets the full colour; the legend shows it.

    Returns
    -------
    Html
        An ``<svg>`` element.

    Examples
    --------
    >>> from dualfield.report import heat_map
    >>> heat_map([[0.25, 0.75]], title="two chances", row_labels=["coin"]).count('class="cell"')
    2
    """
    shades = np.asarray(values, dtype=np.float64)
    if shades.ndim != 2:
        raise ValueError(f"Expected a 2D array of probabilities. Got an array of shape {shades.shape} instead.")
    if not ((shades >= 0.0) & (shades <= full + 1e-9)).all():
        raise ValueError(f"values must be probabilities in [0, {full:g}].")
    width, height = cell
    top = 6 + (16 if column_axis else 0) + (14 if len(column_labels) else 0)
    right, bottom = margin + width * shades.shape[1], top + height * shades.shape[0]
    parts = [f'<rect class="frame" x="{margin}" y="{top}" width="{right - margin}" height="{bottom - top}"/>']
    parts += _shaded_cells(shades / full, marks, margin, top, cell)
    for row, label in enumerate(row_labels):
        middle = top + (row + 0.5) * height
        parts.append(_text(margin - 5, middle + 3.5, label, anchor="end", size=min(11, height - 2)))
    for column, label in enumerate(column_labels):
        parts.append(_text(margin + (column + 0.5) * width, top - 5, label))
    if column_axis:
        parts.append(_text((margin + right) / 2, 13, column_axis, soft=True))
    if row_axis:
        parts.append(_turned_text((top + bottom) / 2, row_axis))
    parts.append(_shade_legend(margin, bottom + 8, full, mark_label))
    legend = _LEGEND_WIDTH + (20 + 8 * len(mark_label) if mark_label else 0)
    return _svg(max(right + 2, margin + legend), bottom + 26, title, parts)


def _shaded_cells(
    shades: NDArray[np.float64], marks: Iterable[tuple[int, int]], left: int, top: int, cell: tuple[int, int]
) -> list[str]:
    width, height = cell
    parts = []
    for (row, column), value in np.ndenumerate(shades):
        if value >= 0.0005:  # fainter than the eye can see; leaving it out keeps the page small
            parts.append(
                f'<rect class="cell" x="{left + column * width}" y="{top + row * height}" width="{width}" '
                f'height="{height}" fill-opacity="{min(value, 1.0):.3f}"/>'
            )
    for row, column in marks:
        parts.append(
            f'<rect class="mark" x="{left + column * width + 0.75}" y="{top + row * height + 0.75}" '
            f'width="{width - 1.5}" height="{height - 1.5}"/>'
        )
    return parts


def _shade_legend(left: int, top: int, full: float, mark_label: str) -> str:
    parts = [_text(left, top + 9, "0", anchor="start", soft=True)]
    for number, shade in enumerate(_LEGEND_SHADES):
        box = f'x="{left + 10 + 12 * number}" y="{top}" width="12" height="10"'
        parts.append(f'<rect class="shade" {box} fill-opacity="{shade}"/><rect class="frame" {box}/>')
    parts.append(_text(left + 75, top + 9, f"{full:g} probability", anchor="start", soft=True))
    if mark_label:
        parts.append(f'<rect class="mark" x="{left + _LEGEND_WIDTH}" y="{top}" width="14" height="10"/>')
        parts.append(_text(left + _LEGEND_WIDTH + 19, top + 9, mark_label, anchor="start", soft=True))
    return "".join(parts)


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationBins:
    """How often predictions of about the same confidence were right; see :func:`calibration_bins`.

    Attributes
    ----------
    confidence : ndarray of shape (n_bins,)
        Mean confidence in each bin that is not empty.
    accuracy : ndarray of shape (n_bins,)
        Share of right predictions in it.
    count : ndarray of shape (n_bins,)
        Number of predictions in it.

    Examples
    --------
    >>> from dualfield.report import calibration_bins
    >>> calibration_bins([0.8, 0.8, 0.8, 0.8], [1, 1, 1, 0]).count
    array([4])
    """

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    count: NDArray[np.int64]

    @property
    def error(self) -> float:
        """Expected calibration error: mean of ``|accuracy - confidence|``, bins weighted by their count."""
        return float(np.average(np.abs(self.accuracy - self.confidence), weights=self.count))


def calibration_bins(confidence: ArrayLike, correct: ArrayLike, *, n_bins: int = 10) -> CalibrationBins:
    """Sort predictions by confidence into bins of equal width and count how many were right.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Probability that was given to the prediction, in [0, 1].
    correct : array-like of shape (n,)
        Whether the prediction was right.
    n_bins : int, default=10
        Number of bins between 0 and 1; empty ones are left out.

    Returns
    -------
    CalibrationBins
        One entry per bin that is not empty.

    Examples
    --------
    >>> from dualfield.report import calibration_bins
    >>> bins = calibration_bins([0.9, 0.9, 0.6, 0.6], [True, True, True, False])
    >>> bins.accuracy.tolist(), round(bins.error, 3)
    ([0.5, 1.0], 0.1)
    """
    sure = np.asarray(confidence, dtype=np.float64)
    right = np.asarray(correct, dtype=np.float64)
    if sure.ndim != 1 or sure.shape != right.shape or len(sure) == 0:
        raise ValueError(
            f"confidence and correct must be non-empty 1D arrays of the same length. Got shapes {sure.shape} "
            f"and {right.shape} instead."
        )
    place = np.clip((sure * n_bins).astype(np.int64), 0, n_bins - 1)
    count = np.bincount(place, minlength=n_bins)
    used = count > 0
    mean_sure = np.bincount(place, weights=sure, minlength=n_bins)[used] / count[used]
    mean_right = np.bincount(place, weights=right, minlength=n_bins)[used] / count[used]
    return CalibrationBins(mean_sure, mean_right, count[used])


def reliability_diagram(curves: Mapping[str, CalibrationBins], *, title: str) -> Html:
    """Draw accuracy against confidence, one line per model; on the diagonal, probabilities mean what they say.

    Parameters
    ----------
    curves : mapping from name to CalibrationBins
        At most two; the first is drawn with squares and dashes, the second with discs and a full line. The area of a
        mark grows with the number of predictions in its bin; the bars are two standard errors,
        sqrt(confidence (1 - confidence) / count), to each side.
    title : str
        What the picture shows, for those who hear the page.

    Returns
    -------
    Html
        An ``<svg>`` element.

    Examples
    --------
    >>> from dualfield.report import calibration_bins, reliability_diagram
    >>> bins = calibration_bins([0.9, 0.6], [True, False])
    >>> reliability_diagram({"coin": bins}, title="reliability").startswith("<svg")
    True
    """
    if len(curves) > 2:
        raise ValueError(f"A reliability diagram shows at most two models. Got {len(curves)} instead.")
    side, left, top = 240, 46, 8
    bottom = top + side
    parts = [f'<rect class="frame" x="{left}" y="{top}" width="{side}" height="{side}"/>']
    parts.append(f'<path class="even" d="M{left} {bottom}L{left + side} {top}"/>')
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_text(left + tick * side, bottom + 16, f"{tick:g}"))
        parts.append(_text(left - 6, bottom - tick * side + 4, f"{tick:g}", anchor="end"))
    parts.append(_text(left + side / 2, bottom + 34, "confidence in the most probable label", soft=True))
    parts.append(_turned_text(top + side / 2, "share that is right"))
    for number, (name, bins) in enumerate(curves.items()):
        xs, ys = left + side * bins.confidence, bottom - side * bins.accuracy
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
        parts.append(f'<path class="curve c{number}" d="M{line}"/>')
        # Bars of two standard errors: with few predictions in a bin, a jump says little.
        sure = np.clip(bins.confidence, 0.0, 1.0)
        spread = 2.0 * np.sqrt(sure * (1.0 - sure) / bins.count)
        lows, highs = (bottom - side * np.clip(bins.accuracy + sign * spread, 0.0, 1.0) for sign in (-1.0, 1.0))
        bars = "".join(f"M{x:.1f} {low:.1f}V{high:.1f}" for x, low, high in zip(xs, lows, highs, strict=True))
        parts.append(f'<path class="spread c{number}" d="{bars}"/>')
        radii = 2.5 + 5.5 * np.sqrt(bins.count / bins.count.sum())
        parts.extend(_dot(number, x, y, r) for x, y, r in zip(xs, ys, radii, strict=True))
        height = bottom + 58 + 18 * number
        parts.append(f'<path class="curve c{number}" d="M{left} {height}h34"/>{_dot(number, left + 17, height, 4.5)}')
        parts.append(_text(left + 42, height + 4, name, anchor="start"))
    height = bottom + 58 + 18 * len(curves)
    parts.append(f'<path class="even" d="M{left} {height}h34"/>')
    parts.append(_text(left + 42, height + 4, "exactly as sure as right", anchor="start"))
    return _svg(left + side + 12, height + 14, title, parts)


def _dot(number: int, x: float, y: float, radius: float) -> str:
    if number == 0:
        edge = 1.772 * radius  # a square of the same area as the disc
        corner = f'x="{x - edge / 2:.1f}" y="{y - edge / 2:.1f}"'
        return f'<rect class="dot c0" {corner} width="{edge:.1f}" height="{edge:.1f}"/>'
    return f'<circle class="dot c1" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'


def _text(x: float, y: float, text: object, *, anchor: str = "middle", soft: bool = False, size: int = 11) -> str:
    look = ' class="soft"' if soft else ""
    small = f' style="font-size:{size}px"' if size != 11 else ""
    return f'<text{look}{small} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _turned_text(y: float, text: str) -> str:
    place = f'transform="translate(12 {y:.1f}) rotate(-90)"'
    return f'<text class="soft" text-anchor="middle" {place}>{escape(text)}</text>'


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> Html:
    # The size is the natural one; the page's CSS lets it shrink with the screen.
    return Html(
        f'<svg role="img" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
        f'aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
