"""Outputs that cannot be: refused before any work, and not after hours of it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path

import click

STANDARD_OUTPUT = ("standard output", "-")

Named = tuple[str, str | os.PathLike[str] | None]


def check_drawing(option: str) -> None:
    """Raise an error that names the remedy if the page of an option cannot be drawn."""
    from dualfield.plotting.canvas import check_matplotlib

    try:
        check_matplotlib()
    except ImportError as error:
        raise click.ClickException(f"{option}: {error}") from error


def check_page(report: Path) -> None:
    """Raise an error if a report cannot be written, or not drawn."""
    from dualfield.report.page import check_target

    with written_page(report):
        check_target(report.resolve())
    check_drawing("--report")


@contextlib.contextmanager
def written_page(report: Path) -> Iterator[None]:
    """Turn the error of a report that cannot be written into one that names it."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"cannot write the report to '{report}': {error.strerror or error}") from error


def check_outputs(inputs: Sequence[Named], outputs: Sequence[Named]) -> None:
    """Raise a usage error if an output is an input, or two outputs are one file, also through links.

    What killed runs have left beside the outputs, unfinished files that end in .part, is removed.

    Parameters
    ----------
    inputs, outputs : sequence of (str, path)
        What each is called on the command line, and its path; "-" is standard input or output, None is not there.
    """
    found: dict[Hashable, Named] = {}
    for one in inputs:
        if (identity := _identity(one[1], 0)) is not None:
            found[identity] = one
    for one in outputs:
        identity = _identity(one[1], 1)
        if identity is None:
            continue
        if identity in found:
            raise click.UsageError(
                f"{_called(one)} and {_called(found[identity])} are the same file: one would replace the other. "
                "Name another file."
            )
        found[identity] = one
    paths = [path for _, path in outputs if path not in (None, "-")]
    if paths:
        from dualfield.io.atomic import remove_stale

        for path in paths:
            remove_stale(os.fspath(path or ""))


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path, such as /dev/stdout, is where standard output goes."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(1))  # noqa: PTH116
    except OSError:
        return False


def _identity(path: str | os.PathLike[str] | None, stream: int) -> Hashable:
    """Return what two names of a file have in common; None for devices and pipes, in which nothing is replaced."""
    if path is None:
        return None
    try:
        found = os.fstat(stream) if path == "-" else os.stat(path)  # noqa: PTH116
    except OSError:  # not there yet, or a standard stream that is closed
        return None if path == "-" else os.fspath(Path(path).resolve())
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return None
    return found.st_dev, found.st_ino


def _called(one: Named) -> str:
    name, path = one
    if path == "-":
        return "standard output" if name == STANDARD_OUTPUT[0] else "standard input"
    return f"{name} {os.fspath(path or '')}"
