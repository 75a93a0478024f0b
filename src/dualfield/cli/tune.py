"""``dualfield tune``: choose C and other settings by held-out data."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from dualfield.cli import options
from dualfield.cli.help_pages import Command
from dualfield.cli.program import COMMAND_LINE, INTERRUPTED, tell

__all__ = ["tune"]

DEFAULT_CS = "0.1,0.3,1,3,10,30,100"


class Listed(click.ParamType[list[Any]]):
    """Values with commas between them, each of a type."""

    name = "list"

    def __init__(self, each: click.ParamType[Any]) -> None:
        self._each = each

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """Return the values, sorted, without repetitions."""
        if isinstance(value, list):
            return value
        return sorted({self._each.convert(part.strip(), param, ctx) for part in str(value).split(",")})


_SECTIONS = {
    "Candidates and score": ("Cs", "loss", "orders", "min_freqs", "dev", "cv", "by"),
    "Data": ("kind", "delimiter", "encoding", "columns", "label", "alignment", "label_names"),
    "Model and training": (
        *("template", "features", "constraints", "structure", "max_length", "segment_features", "span_features"),
        *("root", "non_projective", "arc_features", "inference", "budget"),
        *("tol", "threads", "seed"),
    ),
    "Output": ("target", "report", "as_json", "quiet"),
}
_EXAMPLES = [
    "dualfield tune train.txt --dev dev.txt --model best.model",
    "dualfield tune train.txt --cv 5 --C 1,10,100 --order 1,2 --report tuning.html",
]


@click.command(cls=Command, sections=_SECTIONS, examples=_EXAMPLES)
@click.argument("data", type=options.INPUT, nargs=-1, required=True)
@click.option("--dev", type=options.INPUT, default=None, help="Held-out data that every candidate is scored on.")
@click.option(
    "--cv", type=click.IntRange(2), default=None, help="Number of folds, where there is no --dev.  [default: 5]"
)
@click.option(
    "--C",
    "Cs",
    metavar="LIST",
    type=Listed(options.POSITIVE),
    default=DEFAULT_CS,
    show_default=True,
    help="Values of C, the weight of the loss.",
)
@click.option(
    "--loss",
    type=click.Choice(["log", "hinge", "both"]),
    default="log",
    show_default=True,
    help="log: conditional random fields. hinge: structural SVMs. both: all of them.",
)
@click.option(
    "--order",
    "orders",
    metavar="LIST",
    type=Listed(click.IntRange(1, 5)),
    default="1",
    show_default=True,
    help="Numbers of previous labels that a label depends on.",
)
@click.option(
    "--min-freq",
    "min_freqs",
    metavar="LIST",
    type=Listed(click.IntRange(0)),
    default="0",
    show_default=True,
    help="Minimum numbers of times an attribute must occur with a label to get a weight.",
)
@click.option(
    "--by",
    type=click.Choice(["f1", "accuracy", "log-loss", "evidence"]),
    default=None,
    help="The score: f1 of spans or brackets, accuracy of tokens, log-loss of probabilities, or evidence of the "
    "training data, with nothing held out.  [default: f1 for labels such as B-NP, else accuracy]",
)
@click.option(
    "--model",
    "target",
    type=options.OUTPUT,
    default=None,
    metavar="OUT",
    help="Train the winner on all of DATA and write it to this file.",
)
@click.option("--report", type=options.OUTPUT, default=None, help="Write an HTML page with the curve and the table.")
@options.data_format
@options.delimiter
@options.encoding
@options.columns
@options.label_column
@options.alignment
@options.label_names
@options.template
@options.features
@options.constraints
@options.structure
@options.max_length
@options.segment_features
@options.span_features
@options.root
@options.non_projective
@options.arc_features
@options.inference
@options.budget
@click.option(
    "--tol",
    type=options.POSITIVE,
    default=None,
    help="Stop fits when the duality gap is at most this fraction of the dual value.  [default: 1e-4; 1e-3 for hinge]",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    default=None,
    help="Number of threads; results do not depend on it.  [default: all cores]",
)
@options.seed
@options.as_json
@options.quiet
@click.pass_context
def tune(ctx: click.Context, /, **given: Any) -> None:
    """Choose C and other settings by held-out data.

    DATA are files of labelled sequences, graphs, or examples with several labels, as for `dualfield train`. Every
    candidate is trained and scored on --dev, or on folds of DATA, in paths from small C to large. The table of scores
    goes to standard output, the winner is marked.
    """
    from dualfield.cli.training.tuning import run

    if given["dev"] is not None and given["cv"] is not None:
        raise click.UsageError("--dev and --cv exclude each other: candidates are scored on one or the other.")
    chosen = {name for name in given if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    try:
        run(given, chosen, ctx.meta.get(COMMAND_LINE))
    except KeyboardInterrupt:
        tell("\nInterrupted. Nothing was written.")
        ctx.exit(INTERRUPTED)
