"""``dualfield template``: a built-in template as text, to begin with."""

from __future__ import annotations

import click

from dualfield.cli.help_pages import Command

__all__ = ["template"]


@click.command(cls=Command, examples=["dualfield template default --columns 2 > my.tpl"])
@click.argument("name", type=click.Choice(["default", "chunking"]))
@click.option(
    "--columns",
    "n_columns",
    metavar="N",
    type=click.IntRange(1, 1000),
    default=None,
    help="For default: number of columns besides the label, the words first.  [default: 1]",
)
def template(name: str, n_columns: int | None) -> None:
    """Print a built-in template.

    Change the text, and pass it to `dualfield train --template`. The template `default` suits words and any number of
    other columns; `chunking` is that of CRFsuite's tutorial, for words and part-of-speech tags.
    """
    from dualfield.features import Template

    if name == "default":
        text = Template.default(n_columns or 1).text
    elif n_columns in (None, Template.chunking().n_columns):
        text = Template.chunking().text
    else:
        raise click.UsageError(f"--columns is for default; chunking has 2 columns. Got {n_columns}.")
    click.echo(text, nl=False)
