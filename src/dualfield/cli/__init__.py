"""The command line: ``dualfield``, one file per sub-command."""

from __future__ import annotations

import click

from dualfield import __version__
from dualfield.cli.program import Program

__all__ = ["main"]

# Name, and the line that `dualfield --help` shows; a test compares it with the help of the sub-command.
_COMMANDS = {
    "train": "Train a model on labelled data and write it to a file.",
    "tune": "Choose C and other settings by held-out data.",
    "tag": "Predict the labels of data with a trained model.",
    "rank": "Say which sentences to label next.",
    "evaluate": "Compare predicted labels with true ones, as conlleval does.",
    "inspect": "Show what is in a model file.",
    "compile": "Compile labelled text into a corpus on disk, for training on data that do not fit into memory.",
    "convert": "Write data or a model in another format.",
    "template": "Print a built-in template.",
    "doctor": "Show what was built and check that it works.",
    "completion": "Print the script that completes commands in a shell.",
    "demo": "Train a CRF that finds names in news, and show what it answers.",
}
_GROUPS = {
    "Train and predict": ("train", "tune", "tag", "rank", "evaluate"),
    "Models and files": ("inspect", "compile", "convert", "template"),
    "The program": ("demo", "doctor", "completion"),
}


@click.group(cls=Program, lines=_COMMANDS, groups=_GROUPS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dualfield")
@click.option("--traceback", is_flag=True, hidden=True, help="Show the traceback of errors, for bug reports.")
def main(traceback: bool) -> None:
    """Structured prediction with exact probabilities.

    Begin with `dualfield train FILE --model MODEL`, where FILE has a token in each line, its label in the last column
    and a blank line between sentences. Then `dualfield tag --model MODEL FILE`.
    """
