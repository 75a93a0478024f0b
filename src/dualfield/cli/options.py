"""Options that several sub-commands have, declared once."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from dualfield.cli.data_files import DELIMITERS, FORMATS

# Paths are str where "-" stands for standard input.
INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT = click.Path(dir_okay=False, path_type=Path)


class Finite(click.FloatRange):
    """A number in a range; nan and inf, which Python reads as numbers, are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return float(found)


POSITIVE = Finite(min=0.0, min_open=True)
NUMBER = Finite()

threads = click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="Number of threads; results do not depend on it.",
)
seed = click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
data_format = click.option(
    "--format",
    "kind",
    type=click.Choice(["auto", *FORMATS]),
    default="auto",
    show_default=True,
    help="Format of the data: columns with the label last, CRFsuite's items, or svmlight. auto detects it.",
)
delimiter = click.option(
    "--delimiter",
    type=click.Choice(list(DELIMITERS)),
    default="blanks",
    show_default=True,
    help="Separator of columns: any run of spaces and tabs, exactly one tab, or exactly one space.",
)
template = click.option(
    "--template",
    metavar="FILE|default|chunking",
    default=None,
    help="Template that turns columns into attributes: a file in the syntax of CRF++ or Wapiti, or a built-in one.  "
    "[default: default]",
)
quiet = click.option("--quiet", "-q", is_flag=True, help="Print only warnings and errors.")
as_json = click.option("--json", "as_json", is_flag=True, help="Write JSON, for other programs.")
