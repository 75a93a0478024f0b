"""``dualfield demo``: train a CRF on names in local news and show what it answers; ``digits`` is another one."""

from __future__ import annotations

from pathlib import Path

import click

from dualfield.cli.demo_digits import digits
from dualfield.cli.help_pages import CommandGroup
from dualfield.cli.outputs import STANDARD_OUTPUT, check_outputs, check_page

__all__ = ["demo"]


@click.group(cls=CommandGroup, invoke_without_command=True, examples=["dualfield demo --report page.html"])
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="Where the report goes.",
)
@click.option(
    "--save-data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Only write the sentences, to news-train.conll and news-test.conll in a folder.",
)
@click.pass_context
def demo(context: click.Context, report: Path, save_data: Path | None) -> None:
    """Train a CRF that finds names in news, and show what it answers.

    Trains on 400 sentences that come with the library until the duality gap is small, tags a sentence with the
    probability of each name, lists the most probable labellings, compares with labels that are predicted
    independently, and writes the report of the training.

    `dualfield demo digits` reads handwritten numbers.
    """
    if context.invoked_subcommand is not None:
        return
    from dualfield.cli.demo_names import save_news, show_names

    if save_data is not None:
        save_news(save_data)
        return
    check_outputs([], [("--report", report), STANDARD_OUTPUT])
    check_page(report)
    show_names(report)


demo.add_command(digits)
