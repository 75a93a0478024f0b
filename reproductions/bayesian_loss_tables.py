"""Tables and reliability diagrams of probabilities found in several ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualfield.report import Line
from reproductions.records import Cell, Figure, Findings, Table

if TYPE_CHECKING:
    from reproductions.bayesian_losses import LossRow, LossRows

HEADER = (
    *("training", "C", "method", "log-loss of labels", "of labellings", "error %", "calibration"),
    *("CPU s", "note"),
)

# In one figure, beside the diagonal: a chart has six lines at most. Of more methods each figure has fewer.
_MOST_METHODS, _MANY_METHODS = 5, 4


def present(title: str, name: str, rows: Sequence[LossRows]) -> Findings:
    """Lay out means and standard errors over the draws.

    Parameters
    ----------
    title : str
        What the data are.
    name : str
        Begins the names of the figures.
    rows : sequence of LossRows
        One for each draw.
    """
    flat = [row for some in rows for row in some.methods]
    body, means = [], {}
    for n, factor, method in dict.fromkeys((row.n, row.factor, row.method) for row in flat):
        some = [row for row in flat if (row.n, row.factor, row.method) == (n, factor, method)]
        cells, mean = _cells(some)
        body.append((n, f"{factor:g} x", method, *cells))
        if mean is not None:
            means[n, factor, method] = mean
    smallest = min(row.n for row in flat)
    best = {
        factor: min((means[key], key[2]) for key in means if key[:2] == (smallest, factor))
        for factor in dict.fromkeys(row.factor for row in flat)
    }
    said = "; ".join(f"{factor:g} C: {method}, {value:.3f}" for factor, (value, method) in best.items())
    return Findings(
        summary=(
            f"Smallest log-loss of labels with {smallest} training sequences, C by evidence times a factor: {said}.",
        ),
        tables=(
            Table(
                f"{title}; means over draws of the training data, with standard errors.",
                HEADER,
                tuple(body),
                (
                    "C is chosen by evidence from 1, 3, 10 and 30, and multiplied.",
                    "Log-losses of labellings are for each token; those of averages are too large with few draws.",
                ),
            ),
        ),
        figures=tuple(figure for factor in best for figure in _reliability(flat, name, smallest, factor)),
        differences=("The paper has other data: questions in frequently asked questions, and sketches.",),
    )


def _cells(some: Sequence[LossRow]) -> tuple[tuple[Cell, ...], float | None]:
    """Return the figures of one method, and its mean log-loss; failed fits are counted, not averaged."""
    values = np.array([(row.token, row.sequence, 100 * row.error, row.calibration) for row in some])
    good = values[np.isfinite(values[:, 0])]
    n_odd = sum(bool(row.note) for row in some)
    note = f"{n_odd} of {len(some)} {max(row.note for row in some)}" if n_odd else ""
    seconds = float(np.mean([row.seconds for row in some]))
    if not len(good):
        return (None, None, None, None, seconds, note), None
    means = good.mean(axis=0)
    errors = good.std(axis=0, ddof=1) / np.sqrt(len(good)) if len(good) > 1 else np.full(4, np.nan)
    shown = [f"{a:.{d}f} ± {b:.{d}f}" for a, b, d in zip(means, errors, (3, 3, 1, 3), strict=True)]
    return (*shown, seconds, note), float(means[0])


def _reliability(rows: Sequence[LossRow], name: str, n: int, factor: float) -> list[Figure]:
    """Return how often the most probable label is right, by its probability, all draws together.

    More methods than one figure has room for have several.
    """
    chosen = [row for row in rows if row.n == n and row.factor == factor]
    methods = list(dict.fromkeys(row.method for row in chosen))
    size = len(methods) if len(methods) <= _MOST_METHODS else _MANY_METHODS
    parts = [methods[at : at + size] for at in range(0, len(methods), size)]
    return [
        Figure(
            f"reliability_{name}_{factor:g}" + (f"_{at}" if len(parts) > 1 else ""),
            f"Reliability with {n} training sequences, C times {factor:g}"
            + (f", {at} of {len(parts)}" if len(parts) > 1 else ""),
            _curves(chosen, some),
            "probability of the most probable label",
            "share that is right",
        )
        for at, some in enumerate(parts, 1)
    ]


def _curves(rows: Sequence[LossRow], methods: Sequence[str]) -> tuple[Line, ...]:
    lines = [Line("perfect", (0.0, 1.0), (0.0, 1.0))]
    for method in methods:
        bins: dict[int, list[tuple[float, float, int]]] = {}
        for row in rows:
            for one in row.bins if row.method == method else ():
                bins.setdefault(min(int(10 * one[0]), 9), []).append(one)
        points = []
        for at in sorted(bins):
            confidence, accuracy, count = np.array(bins[at]).T
            if count.sum() >= 20:  # fewer tell nothing
                points.append((np.average(confidence, weights=count), np.average(accuracy, weights=count)))
        if points:
            lines.append(Line(method, tuple(float(x) for x, _ in points), tuple(float(y) for _, y in points)))
    return tuple(lines)
