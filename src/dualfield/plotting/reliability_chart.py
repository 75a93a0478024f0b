"""Reliability diagrams as inline SVG."""

from collections.abc import Mapping

import numpy as np

from dualfield.metrics import CalibrationBins
from dualfield.plotting.markup import Html, svg_element, text_element


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
        parts.append(text_element(left + tick * side, bottom + 16, f"{tick:g}"))
        parts.append(text_element(left - 6, bottom - tick * side + 4, f"{tick:g}", anchor="end"))
    parts.append(text_element(left + side / 2, bottom + 34, "confidence in the most probable label", look="soft"))
    parts.append(text_element(12, top + side / 2, "share that is right", look="soft", turn=-90))
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
        parts.append(text_element(left + 42, height + 4, name, anchor="start"))
    height = bottom + 58 + 18 * len(curves)
    parts.append(f'<path class="even" d="M{left} {height}h34"/>')
    parts.append(text_element(left + 42, height + 4, "exactly as sure as right", anchor="start"))
    return svg_element(left + side + 12, height + 14, title, parts)


def _dot(number: int, x: float, y: float, radius: float) -> str:
    if number == 0:
        edge = 1.772 * radius  # a square of the same area as the disc
        corner = f'x="{x - edge / 2:.1f}" y="{y - edge / 2:.1f}"'
        return f'<rect class="dot c0" {corner} width="{edge:.1f}" height="{edge:.1f}"/>'
    return f'<circle class="dot c1" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
