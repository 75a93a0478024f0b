"""One writer for all papers: ``results.json``, ``tables.md``, an ``.svg`` per figure and ``report.html``."""

import dataclasses
import json
import math
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from dualfield import __version__
from dualfield.report import Html, escape, line_chart, page, svg_document, table, write_page
from reproductions.records import Figure, Findings, Paper, Result, Settings, Table, cell_text

_TIMES = "Times are wall-clock seconds, those headed CPU s processor time. "
_STYLE = ".figures { display: flex; flex-wrap: wrap; gap: 0 2rem; }\n"


def write_folder(folder: Path, paper: Paper, settings: Settings, results: Sequence[Result]) -> tuple[str, ...]:
    """Write all that there is to show into a folder; each file is replaced as a whole.

    Parameters
    ----------
    folder : Path
        It exists.
    paper, settings, results
        What was reproduced, how, and what came out.

    Returns
    -------
    tuple of str
        The names of the files.
    """
    findings = [result.findings() for result in results]
    charts = {figure.name: _chart(figure) for found in findings for figure in found.figures}
    files = {
        "results.json": json.dumps(_results(paper, settings, results, findings), indent=1, allow_nan=False) + "\n",
        "tables.md": "\n".join(_markdown(paper, settings, results, findings)) + "\n",
        **{f"{name}.svg": svg_document(chart) for name, chart in charts.items()},
        "report.html": page(paper.title, _body(paper, settings, results, findings, charts), style=_STYLE),
    }
    for name, content in files.items():
        write_page(folder / name, content)
    return tuple(files)


def _chart(figure: Figure) -> Html:
    return line_chart(
        figure.lines,
        title=figure.title,
        x_axis=figure.x_axis,
        y_axis=figure.y_axis,
        log_x=figure.log_x,
        log_y=figure.log_y,
    )


def _environment(settings: Settings) -> dict[str, str | int]:
    return {
        "dualfield": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count() or 1,
        "threads": settings.threads,
        "seed": settings.seed,
    }


def _setting(paper: Paper, settings: Settings) -> list[str]:
    """Return the paragraphs that stand above everything."""
    made = ", ".join(f"{name} {value}" for name, value in _environment(settings).items())
    paragraphs = [f"The paper: {paper.citation}", _TIMES + paper.machine]
    if settings.quick:
        paragraphs.append(
            "This was a quick run, on tiny subsets and short grids: it shows that everything works. Its figures are "
            "not to be compared with the paper's."
        )
    return [*paragraphs, f"Made with {made}."]


def _results(
    paper: Paper, settings: Settings, results: Sequence[Result], findings: Sequence[Findings]
) -> dict[str, Any]:
    return {
        "paper": paper.name,
        "citation": paper.citation,
        "quick": settings.quick,
        "environment": _environment(settings),
        "parts": {
            result.part.name: {
                "title": result.part.title,
                "rows": [_plain(dataclasses.asdict(row)) for row in result.rows],
                "summary": list(found.summary),
                "differences": list(found.differences),
                "tables": [_plain(dataclasses.asdict(one)) for one in found.tables],
            }
            for result, found in zip(results, findings, strict=True)
        },
    }


def _plain(value: Any) -> Any:
    """Turn records into what JSON can hold; numbers that it cannot hold become null."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _markdown(
    paper: Paper, settings: Settings, results: Sequence[Result], findings: Sequence[Findings]
) -> Iterator[str]:
    yield f"# {paper.title}"
    for paragraph in _setting(paper, settings):
        yield f"\n{paragraph}"
    for result, found in zip(results, findings, strict=True):
        yield f"\n## {result.part.title}\n"
        yield "\n\n".join(found.summary)
        for one in found.tables:
            yield from _markdown_table(one)
        for figure in found.figures:
            yield f"\n![{figure.title}]({figure.name}.svg)"
        if found.differences:
            yield "\nWhere this differs from the paper:\n"
            yield from (f"- {sentence}" for sentence in found.differences)


def _markdown_table(one: Table) -> Iterator[str]:
    yield f"\n### {one.title}\n"
    yield _markdown_row(one.header)
    yield "|---|" + "---:|" * (len(one.header) - 1)
    yield from (_markdown_row([cell_text(cell) for cell in row]) for row in one.rows)
    yield from (f"\n{note}" for note in one.notes)


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _body(
    paper: Paper,
    settings: Settings,
    results: Sequence[Result],
    findings: Sequence[Findings],
    charts: dict[str, Html],
) -> Iterator[Html]:
    yield Html(f"<h1>{escape(paper.title)}</h1>")
    yield from (_paragraph(text) for text in _setting(paper, settings))
    for result, found in zip(results, findings, strict=True):
        yield Html(f"<h2>{escape(result.part.title)}</h2>")
        yield from (_paragraph(text) for text in found.summary)
        for one in found.tables:
            yield table(one.header, [[cell_text(cell) for cell in row] for row in one.rows], caption=one.title)
            yield from (Html(f'<p class="soft">{escape(note)}</p>') for note in one.notes)
        if found.figures:
            yield Html('<div class="figures">')
            for figure in found.figures:
                caption = f"<figcaption>{escape(figure.title)}</figcaption>"
                yield Html(f'<figure style="max-width:510px">{charts[figure.name]}{caption}</figure>')
            yield Html("</div>")
        if found.differences:
            items = "".join(f"<li>{escape(sentence)}</li>" for sentence in found.differences)
            yield Html(f"<p>Where this differs from the paper:</p><ul>{items}</ul>")


def _paragraph(text: str) -> Html:
    return Html(f"<p>{escape(text)}</p>")
