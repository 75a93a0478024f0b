"""``python -m reproductions PAPER``: compute the tables and figures of a paper again, ours beside the paper's."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from dualfield.cli.outputs import check_outputs
from dualfield.datasets import load_benchmark_data
from dualfield.report.terminal import progress_steps
from reproductions import PAPERS
from reproductions.records import Paper, Part, Result, Settings
from reproductions.runner import run_parts
from reproductions.writer import write_folder

__all__ = ["reproduce"]

_PARTS = "; ".join(f"{paper.name} has {', '.join(part.name for part in paper.parts)}" for paper in PAPERS.values())


@click.command()
@click.argument("paper", type=click.Choice(list(PAPERS)))
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder for tables and figures; it is made if it does not exist.  [default: reproduction-PAPER]",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder of data sets, .npz files.  [default: the folder that DUALFIELD_DATA names]",
)
@click.option("--quick", is_flag=True, help="Take tiny subsets and short grids, to see that everything works.")
@click.option(
    "--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="Threads, for the baselines too."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of all that is random."
)
@click.option("--only", metavar="NAME", multiple=True, help=f"A part of the paper; may be repeated. {_PARTS}.")
def reproduce(
    paper: str, output: Path | None, data: Path | None, quick: bool, threads: int, seed: int, only: tuple[str, ...]
) -> None:
    """Compute the tables and figures of a paper again.

    Writes results.json, tables.md, one .svg for each figure and a self-contained report.html, with our figures beside
    the paper's. Files are written whenever a part is finished. A whole paper takes a while; try --quick first.
    """
    chosen = PAPERS[paper]
    parts = _chosen_parts(chosen, only)
    target = output or Path(f"reproduction-{paper}")
    check_outputs([("--data", data or os.environ.get("DUALFIELD_DATA") or None)], [("--output", target)])
    _check_data(parts, data)
    folder = _made(target)
    settings = Settings(data, quick, threads, seed)
    console = Console(highlight=False)
    total = sum(len(part.tasks(settings)) for part in parts)

    def write(results: Sequence[Result]) -> None:
        with _naming(folder):
            write_folder(folder, chosen, settings, results)

    with progress_steps(console, total) as step:
        results = run_parts(parts, settings, step, write)
    for result in results:
        console.print(f"\n{result.part.title}", style="bold", markup=False)
        for sentence in result.findings().summary:
            console.print(sentence, markup=False)
    click.echo(f"\nTables, figures and report: {folder}")


def _chosen_parts(paper: Paper, only: Sequence[str]) -> list[Part[Any]]:
    names = [part.name for part in paper.parts]
    for name in only:
        if name not in names:
            raise click.BadParameter(
                f"{name!r} is not a part of {paper.name}. It has {', '.join(names)}.", param_hint="'--only'"
            )
    return [part for part in paper.parts if not only or part.name in only]


def _check_data(parts: Sequence[Part[Any]], folder: Path | None) -> None:
    """Read every data set once, so that a fault shows before hours of work and not after."""
    for name in dict.fromkeys(name for part in parts for name in part.data):
        try:
            load_benchmark_data(name, folder)
        except (FileNotFoundError, ValueError) as error:
            raise click.BadParameter(str(error), param_hint="'--data'") from error


def _made(folder: Path) -> Path:
    """Make the folder if need be, or say why nothing can be written to it."""
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise click.BadParameter(f"'{folder}' is not a folder.", param_hint="'--output'") from None
    except OSError as error:
        reason = f"the folder '{folder}' cannot be made: {error.strerror or error}."
        raise click.BadParameter(reason, param_hint="'--output'") from error
    if not os.access(folder, os.W_OK):
        raise click.BadParameter(f"the folder '{folder}' is not writable.", param_hint="'--output'")
    return folder


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"cannot write to '{folder}': {error.strerror or error}") from error


if __name__ == "__main__":
    reproduce(prog_name="python -m reproductions")
