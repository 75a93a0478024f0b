"""The report of a search for parameters: the winner, one curve and one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dualfield.plotting.markup import Html, escape
from dualfield.plotting.tables import table
from dualfield.plotting.tuning_curve import TuningCurveDisplay
from dualfield.report.page import page

_STYLE = """
.facts .data td { text-align: left; overflow-wrap: anywhere; }
"""


def tuning_page(
    cv_results: Mapping[str, Any],
    *,
    title: str,
    score_name: str = "score",
    remarks: Iterable[str] = (),
    facts: Iterable[tuple[str, object]] = (),
    command: str | None = None,
) -> Html:
    """Compose the report of a search over C.

    Parameters
    ----------
    cv_results : dict
        ``cv_results_`` of :class:`dualfield.CRFCV` or of scikit-learn's searches, with ``param_C``.
    title : str
        The heading.
    score_name : str, default="score"
        What was scored.
    remarks : iterable of str, default=()
        Sentences below the winner, such as a warning that it is at the edge of the grid.
    facts : iterable of (name, value), default=()
        Files, sizes, versions.
    command : str, default=None
        The command line that made the page.

    Returns
    -------
    Html
        A self-contained document for :func:`write_page`.

    Examples
    --------
    >>> from dualfield.report import tuning_page
    >>> found = {"param_C": [1.0, 10.0], "mean_test_score": [0.8, 0.9], "std_test_score": [0.1, 0.1]}
    >>> "<td>best</td>" in tuning_page(found, title="Chunks", score_name="span_f1")
    True
    """
    display = TuningCurveDisplay.from_cv_results(cv_results, score_name=score_name)
    return page(title, _body(display, cv_results, title, remarks, facts, command), style=_STYLE)


def _body(
    display: TuningCurveDisplay,
    found: Mapping[str, Any],
    title: str,
    remarks: Iterable[str],
    facts: Iterable[tuple[str, object]],
    command: str | None,
) -> Iterator[object]:
    curve, C, score = display.best
    yield Html(f"<h1>{escape(title)}</h1>")
    cards = [("best C", f"{C:g}", curve.name), (display.score_name, f"{score:.4f}", "mean on held-out data")]
    yield Html(
        '<dl class="scores">'
        + "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(more)}</small></dd></div>"
            for name, value, more in cards
        )
        + "</dl>"
    )
    for remark in remarks:
        yield Html(f"<p>{escape(remark)}</p>")
    yield Html("<h2>Score over C</h2>")
    yield display.html()
    if curve.std.any():
        yield Html('<p class="soft">Error bars: one standard deviation of the scores of the folds.</p>')
    yield Html("<h2>All candidates</h2>")
    yield _candidates(found, display.score_name)
    yield Html('<details class="facts"><summary>Facts</summary>')
    yield table(("fact", "value"), list(facts))
    if command is not None:
        yield Html(f"<p>The command line:</p><pre>{escape(command)}</pre>")
    yield Html("</details>")


def _candidates(found: Mapping[str, Any], score_name: str) -> Html:
    means = list(found["mean_test_score"])
    ranked: Sequence[int] = sorted(range(len(means)), key=lambda at: -means[at] if means[at] == means[at] else 1e300)
    names = [key for key in found if key.startswith("param_")]
    folds = [key for key in found if key.startswith("split") and key.endswith("_test_score")]
    times = "mean_fit_time" in found
    header = [key.removeprefix("param_") for key in names] + [score_name]
    header += [f"fold {at + 1}" for at in range(len(folds))] * (len(folds) > 1) + ["seconds"] * times + [""]
    rows = []
    for at in ranked:
        spread = f" ± {found['std_test_score'][at]:.4f}" if len(folds) > 1 else ""
        row: list[object] = [*(_shown(found[key][at]) for key in names), f"{means[at]:.4f}{spread}"]
        row += [f"{found[key][at]:.4f}" for key in folds] * (len(folds) > 1)
        row += [f"{found['mean_fit_time'][at]:.1f}"] if times else []
        row += ["best" if at == ranked[0] else ""]
        rows.append(row)
    return table(header, rows)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
