"""The end of ``dualfield train``: the model is written first, then the report, and the checkpoint goes last."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from dualfield.cli.program import COMMAND_LINE, warn
from dualfield.cli.reading.data_files import LabelledData

Options = dict[str, Any]

_RELAXED = (
    "Answers about graphs were bounds of a relaxation: the gap is that of the relaxed problem, whose objective is an "
    "upper bound of the exact one. --inference and --budget say when answers are exact."
)


def complain(given: Options, text: str) -> None:
    """Warn, or fail with --strict."""
    if given["strict"]:
        raise click.ClickException(text)
    warn(text)


def finish(given: Options, data: LabelledData, dev: LabelledData | None, model: Any, history: list[Any]) -> str:
    """Write the model, then the report, then give up the checkpoint, and say how it ended."""
    from dualfield.estimators import Checkpoint
    from dualfield.solvers import Status

    target: Path = given["target"]
    ended = _ending(model, given)
    complete = model.status_ in (Status.CONVERGED, Status.FINISHED) or (
        model.status_ is Status.STOPPED and given["patience"] is not None
    )
    if model.status_ is Status.INTERRUPTED and given["strict"]:
        raise KeyboardInterrupt
    if not complete:
        complain(given, ended)
    model.n_jobs = None
    with cannot_write(target, _way_on(given)):
        model.file_columns_, model.label_graph_ = data.columns, data.label_graph
        without_clocks(model).save(target)
    if not given["quiet"]:
        if complete:
            click.echo(ended)
        if getattr(model, "relaxation_", None) is not None:
            click.echo(_RELAXED)
        click.echo(f"Model: {target}, {target.stat().st_size:,} bytes")
    if given["report"] is not None:
        with cannot_write(given["report"], f"The model is in {target}."):
            _write_report(given, data, dev, model, history)
        if not given["quiet"]:
            click.echo(f"Report: {given['report']}")
    if given["checkpoint"] is not None and model.status_ is not Status.INTERRUPTED:
        with contextlib.suppress(OSError):
            Checkpoint(given["checkpoint"]).discard()
    return str(model.status_.value)


def without_clocks(model: Any) -> Any:
    """Return a model without times, which differ: the same data and options give the same file, byte for byte."""
    rows = model.trace_.rows()
    rows[:, 4] = np.nan
    timeless = copy.copy(model)
    timeless.trace_ = type(model.trace_).from_rows(rows)
    return timeless


@contextlib.contextmanager
def cannot_write(path: Path, rest: str) -> Iterator[None]:
    """Say which file cannot be written, and what is left to do."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written: {error.strerror or error}. {rest}".rstrip()) from error


def _way_on(given: Options) -> str:
    """Say how to go on from what is left of a fit."""
    if given["checkpoint"] is not None and given["checkpoint"].exists():
        return f"The same command goes on from {given['checkpoint']}."
    return ""


def _ending(model: Any, given: Options) -> str:
    from dualfield.solvers import Status
    from dualfield.solvers.trace import relative_gap

    gap = relative_gap(model.objective_, model.dual_gap_)
    passes, seconds = model.trace_.passes[-1], model.trace_.seconds[-1]
    course = f"{passes:.0f} passes, {seconds:.1f} s"
    said = model.status_.sentence.rstrip(".")
    if model.status_ is Status.STOPPED:
        said = f"The dev score has not got better for {given['patience']} looks"
    if np.isfinite(gap):
        course = f"relative gap {gap:.1e} after {course}"
    return f"{said}: {course}. {_remedy(model, given)}".rstrip()


def _remedy(model: Any, given: Options) -> str:
    """Say what to do, in words of the command line."""
    from dualfield.solvers import Status

    if model.status_ is Status.INTERRUPTED:
        start = f"--warm-start {given['target']} begins at this model, with another name for --model."
        return _way_on(given) or ("" if hasattr(model, "n_features_in_") else start)
    text = str(model.status_.remedy)
    for name, option in (("max_iter", "--max-iter"), (" tol", " --tol"), ("solver='newton'", "--solver newton")):
        text = text.replace(name, option)
    return text


def _write_report(given: Options, data: LabelledData, dev: LabelledData | None, model: Any, history: list[Any]) -> None:
    from dualfield import __version__
    from dualfield.report import DevData, training_page, write_page

    facts = [
        ("training data", f"{data.name}: {data}"),
        *([("dev data", f"{dev.name}: {dev}")] if dev is not None else []),
        ("model", str(given["target"])),
        ("dualfield", __version__),
    ]
    tokens = [[row[0] for row in sentence] for sentence in dev.X] if dev is not None and dev.format == "conll" else None
    shown_data = None if dev is None else DevData(dev.X, dev.y, tokens)
    title = f"Training of {given['target'].name}"
    command = click.get_current_context().meta.get(COMMAND_LINE)
    document = training_page(model, title=title, facts=facts, dev=shown_data, history=history, command=command)
    write_page(given["report"], document)
