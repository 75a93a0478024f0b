"""What ``dualfield compile`` does: options to a plan, and a bar that shows how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from dualfield.cli.program import described
from dualfield.cli.reading.columns import ColumnChoice
from dualfield.cli.reading.data_files import DELIMITERS, first_lines, guess_format
from dualfield.cli.reading.sources import Kept, placed

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualfield.data import CompiledCorpus
    from dualfield.io import CompileProgress
    from dualfield.io.compiling.plan import Plan
    from dualfield.io.text_lines import Source

_STAGES = {"reading": "reading", "gathering": "gathering parts"}


def run(
    data: Sequence[str],
    target: Path,
    *,
    kind: str,
    delimiter: str,
    encoding: str,
    columns: tuple[int, ...] | None,
    label: int | None,
    template: str | None,
    parts: int,
    shuffle: int,
    overwrite: bool,
    threads: int,
    quiet: bool,
) -> tuple[CompiledCorpus, float, int]:
    """Compile; return the corpus, seconds, and tokens that were read in this run."""
    from dualfield.io.compiling.compile import run_plan
    from dualfield.io.compiling.inputs import input_paths
    from dualfield.io.compiling.running import Runner
    from dualfield.io.compiling.working_folder import check_target

    if "-" in data:
        raise click.UsageError("Standard input is not for compile, which reads its files again to go on after a break.")
    try:
        check_target(target, overwrite)
    except FileExistsError as error:
        hint = " --overwrite replaces it." if "compiled corpus already" in str(error) else ""
        raise click.ClickException(f"{str(error).split('. ')[0].rstrip('.')}.{hint}") from None
    plan = plan_of(
        input_paths(list(data)), kind, delimiter, encoding, ColumnChoice(columns, label), template, parts, shuffle
    )
    start = time.monotonic()
    with _shown(quiet) as show:
        runner = Runner(threads, show)
        try:
            corpus = run_plan(plan, target, runner)
        except ValueError as error:
            name = next((file.path for file in plan.files if str(error).startswith(file.path)), "")
            with placed(name):
                raise
        except OSError as error:
            raise click.ClickException(described(error)) from error
    return corpus, time.monotonic() - start, runner.n_tokens


def plan_of(
    paths: list[str],
    kind: str,
    delimiter: str,
    encoding: str,
    choice: ColumnChoice,
    template: str | None,
    parts: int,
    seed: int,
) -> Plan:
    """Settle how files are read, as `dualfield train` would read them."""
    from dualfield.io.compiling.inputs import count_columns, make_plan

    separator = DELIMITERS[delimiter]
    if kind == "auto":
        kind = _guessed(paths, encoding)
    if kind != "conll":
        for name, value in (("--template", template), ("--columns", choice.features), ("--label", choice.label)):
            if value is not None:
                raise click.ClickException(f"{name} is for columns; {paths[0]} is read as {kind}.")
        return make_plan(paths, parts, seed, form=kind, encoding=encoding)  # type: ignore[arg-type]
    with placed(paths[0]):
        name, line, n_columns = count_columns(paths, separator, encoding)
    with placed(name):
        try:
            if n_columns < 2:
                raise ValueError("has 1 column; expected 2 or more, the label last.")
            chosen = choice.labelled(n_columns, name)
        except ValueError as error:
            raise ValueError(f"{name}, line {line}: {error}") from error
    from dualfield.cli.reading.templates import template_of_option

    made = template_of_option(template, len(chosen.features), name)
    return make_plan(
        paths,
        parts,
        seed,
        form="conll",
        separator=separator,
        encoding=encoding,
        n_columns=n_columns,
        columns=chosen.features,
        label=chosen.label,
        template=made,
    )


def _guessed(paths: list[str], encoding: str) -> str:
    """Tell the one format of all files by their first lines; those without text may have any."""
    told = [(path, found) for path in paths if (found := _format_of(path, encoding))]
    if not told:
        raise click.ClickException(f"{paths[0]}: is empty; expected CoNLL columns, CRFsuite items or Parquet.")
    first, form = told[0]
    for path, found in told:
        if found != form:
            raise click.ClickException(
                f"{path}: looks like {found}, and {first} like {form}: files of one format are compiled together. "
                "--format says which it is."
            )
    return form


def _format_of(path: str, encoding: str) -> str:
    """Tell the format of a file by its first lines; "" if it has no text."""
    if Path(path).suffix == ".parquet":
        return "parquet"
    lines = first_lines(path, encoding)
    found = guess_format(cast("Source", Kept("\n".join(lines).encode(), path)), path) if lines else ""
    if found not in ("", "conll", "crfsuite"):
        raise click.ClickException(
            f"{path}: looks like {found}; columns, CRFsuite's items and Parquet can be compiled. `dualfield convert` "
            "writes columns, and --format says which format it is."
        )
    return found


@contextmanager
def _shown(quiet: bool) -> Iterator[Callable[[CompileProgress], None]]:
    """Show a bar with rate and time left on a terminal."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bars = [
        TextColumn("{task.description:<15}"),
        BarColumn(30),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    ]
    start = time.monotonic()
    with Progress(*bars, console=console, transient=True) as progress:
        tasks: dict[str, Any] = {}

        def show(now: CompileProgress) -> None:
            if now.stage not in tasks:
                tasks[now.stage] = progress.add_task(_STAGES[now.stage], rate="")
            seconds = time.monotonic() - start
            rate = f"{now.n_tokens / seconds:,.0f} tokens/s" if now.stage == "reading" and seconds > 0 else ""
            progress.update(tasks[now.stage], completed=now.done, total=now.total or None, rate=rate)

        yield show
