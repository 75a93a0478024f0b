"""Data sets that are compressed text."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from dualfield.datasets.benchmark_data import DATA_VARIABLE
from reproductions.records import Settings

Text = TypeVar("Text")


def read_text(settings: Settings, name: str, what: str, reader: Callable[[Path], Text]) -> Text:
    """Read a compressed text file of the folder of data sets, or say why that cannot be done.

    Parameters
    ----------
    settings : Settings
        Where the folder is.
    name : str
        The data set: its file is ``name.txt.gz``.
    what : str
        What the file holds, for errors.
    reader : callable
        From the path to what it holds.

    Returns
    -------
    object
        What the reader returns.
    """
    folder = settings.folder if settings.folder is not None else os.environ.get(DATA_VARIABLE, "")
    path = Path(folder) / f"{name}.txt.gz"
    if not path.is_file():
        where = f"in the folder '{folder}'" if folder else "known"
        raise click.BadParameter(
            f"There is no data set '{name}' {where}: a file {path.name} of {what}. Name its folder, or set the "
            f"environment variable {DATA_VARIABLE} to it.",
            param_hint="'--data'",
        )
    try:
        return reader(path)
    except (OSError, EOFError, ValueError) as error:
        raise click.BadParameter(f"The file '{path}' cannot be read: {error}", param_hint="'--data'") from error
