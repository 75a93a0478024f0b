"""The command line: ``dualfield``, one file per sub-command."""

import click

from dualfield import __version__
from dualfield.cli.demo import demo
from dualfield.cli.reproduce import reproduce

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dualfield")
def main() -> None:
    """Structured prediction with honest probabilities."""


main.add_command(demo)
main.add_command(reproduce)
