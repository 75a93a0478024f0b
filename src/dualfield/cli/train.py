"""``dualfield train``: fit a model to labelled data and write it to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dualfield.cli import options
from dualfield.cli.help_pages import Command
from dualfield.cli.program import INTERRUPTED, tell
from dualfield.cli.solver_names import LISTED, begun, known_solver

__all__ = ["train"]

_KERNELS = ("rbf", "linear", "poly", "laplacian", "sigmoid")


def _gamma(ctx: click.Context, param: click.Parameter, value: str) -> str | float:
    """Take a number or one of the two rules."""
    if value in ("scale", "auto"):
        return value
    number: Any = value
    return options.POSITIVE.convert(number, param, ctx)


_SECTIONS = {
    "Data": ("kind", "delimiter", "encoding", "columns", "label", "alignment", "label_names", "dev"),
    "Model": (
        *("template", "loss", "C", "l1_ratio", "features", "min_freq", "constraints", "order", "calibrate"),
        *("structure", "max_length", "segment_features", "span_features", "root", "non_projective", "arc_features"),
        *("inference", "budget", "kernel", "gamma", "degree", "coef0"),
    ),
    "Training": (
        *("solver", "tol", "max_iter", "patience", "keep", "warm_start", "checkpoint", "checkpoint_every"),
        *("memory", "threads", "seed", "cluster"),
    ),
    "Output": ("target", "report", "strict", "quiet"),
}
_EXAMPLES = [
    "dualfield train train.txt --model chunks.model --dev test.txt",
    "dualfield train train.txt --model chunks.model --C auto --report report.html",
    "dualfield train graphs.jsonl --model graphs.model --dev dev.jsonl",
    "dualfield train treebank.mrg --model parser.model --structure spans",
    "dualfield train 'corpus/*.gz' --model names.model --cluster tcp://host:8786",
    "dualfield train train.conllu --model parser.model --structure dependency",
    "dualfield train out --model chunks.model --memory 4e9",
]


def _number_or_rule(ctx: click.Context, param: click.Parameter, value: str) -> str | float:
    """Take a number above 0, or what chooses one."""
    number: Any = value
    return value if value in ("auto", "evidence") else options.POSITIVE.convert(number, param, ctx)


def _checkpoint_file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Take a file, or a folder for one."""
    return value / "train.checkpoint" if value is not None and value.is_dir() else value


@click.command(cls=Command, sections=_SECTIONS, examples=_EXAMPLES)
@click.argument("data", type=options.INPUTS_OR_FOLDER, nargs=-1, required=True, callback=options.expanded)
@click.option("--model", "target", type=options.OUTPUT, required=True, metavar="OUT", help="The model file to write.")
@options.data_format
@options.delimiter
@options.encoding
@options.columns
@options.label_column
@options.alignment
@options.label_names
@options.template
@click.option(
    "--loss",
    type=click.Choice(["log", "hinge"]),
    default="log",
    show_default=True,
    help="log: a conditional random field, or for svmlight kernel logistic regression. hinge: a structural SVM, for "
    "svmlight a linear one, which has margins and no probabilities.",
)
@click.option(
    "--C",
    "C",
    metavar="NUMBER|auto|evidence",
    callback=_number_or_rule,
    default="1.0",
    show_default=True,
    help="Weight of the loss; smaller values regularise more. auto: the best of 0.1, 1, 10 and 100, by --dev or else "
    "by three folds; see `dualfield tune`. evidence: for log, the one under which the labels of DATA are most "
    "probable.",
)
@click.option(
    "--l1-ratio",
    type=options.Finite(0.0, 1.0),
    default=0.0,
    show_default=True,
    help="Share of the L1 penalty, in [0, 1]. For log.",
)
@options.features
@click.option(
    "--min-freq",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Minimum number of times an attribute must occur with a label to get a weight.",
)
@options.constraints
@click.option(
    "--order",
    type=click.IntRange(1, 5),
    default=1,
    show_default=True,
    help="Number of previous labels that a label depends on.",
)
@click.option(
    "--solver",
    metavar="NAME",
    callback=known_solver,
    shell_complete=begun,
    default="auto",
    show_default=True,
    help=" ".join(["The algorithm.", *(f"For {kind}: {names}." for kind, names in LISTED.items())]),
)
@click.option(
    "--tol",
    type=options.POSITIVE,
    default=None,
    help="Stop when the duality gap is at most this fraction of the dual value.  [default: 1e-4; 1e-3 for hinge and "
    "svmlight]",
)
@click.option(
    "--max-iter", type=click.IntRange(1), default=None, help="Maximum number of passes over the data.  [default: 10000]"
)
@click.option(
    "--calibrate",
    metavar="FILE|dev|cv",
    default=None,
    help="Choose the temperature of the probabilities on the held-out data in this file, on those of --dev, or by "
    "5-fold cross-validation, which takes six fits. With --loss hinge there are none without it.",
)
@options.structure
@options.max_length
@options.segment_features
@options.span_features
@options.root
@options.non_projective
@options.arc_features
@options.inference
@options.budget
@click.option("--kernel", type=click.Choice(_KERNELS), default="rbf", show_default=True, help="For svmlight.")
@click.option(
    "--gamma", default="scale", show_default=True, callback=_gamma, help="For svmlight: a number, scale or auto."
)
@click.option("--degree", type=options.NUMBER, default=3.0, show_default=True, help="For svmlight, of the kernel poly.")
@click.option("--coef0", type=options.NUMBER, default=0.0, show_default=True, help="For svmlight, of poly and sigmoid.")
@click.option(
    "--dev",
    type=options.INPUT,
    default=None,
    help="Validation data, scored after each pass: F1 of spans for labels such as B-NP, else accuracy.",
)
@click.option(
    "--patience",
    type=click.IntRange(1),
    default=None,
    help="With --dev: stop after this many passes without a better score.",
)
@click.option(
    "--keep",
    type=click.Choice(["last", "best"]),
    default="last",
    show_default=True,
    help="With --dev: write the model of the last pass, or of the one with the best score.",
)
@options.threads
@options.seed
@click.option(
    "--memory",
    metavar="BYTES",
    type=options.POSITIVE,
    default=None,
    help="For a compiled corpus: memory for weights, features, sentences and dual points; what does not fit is in a "
    "file in the folder that TMPDIR names. The model does not depend on it.  [default: 4e9]",
)
@options.cluster
@click.option("--report", type=options.OUTPUT, default=None, help="Write an HTML report of the training.")
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    default=None,
    callback=_checkpoint_file,
    help="Save the state of the fit in this file, or in train.checkpoint of this folder, and resume from it if it "
    "exists. Removed at the end. For hinge only "
    "with flow_swap (auto for --order 1), path_blocks and sgd.",
)
@click.option(
    "--checkpoint-every",
    type=options.Finite(0.0),
    default=60.0,
    show_default=True,
    help="Seconds between two writes of the checkpoint.",
)
@click.option("--warm-start", type=options.FILE, default=None, help="Start from the weights of this model.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors: fail and write nothing.")
@options.quiet
@click.pass_context
def train(ctx: click.Context, /, **given: Any) -> None:
    """Train a model on labelled data and write it to a file.

    DATA are one or more files, also compressed with gzip, or - for standard input: columns with a token in each line,
    its label last and a blank line between sentences; CRFsuite's items; svmlight; JSON of Prodigy, Doccano, Label
    Studio and Hugging Face; graphs, one in each line: {"nodes": [["a"], ["b"]], "edges": [[0, 1]], "labels": ["x",
    "y"]}; or trees in brackets: (S (NP (DT a) (NN dog)) (VP (VBZ barks))). With --structure dependency they are trees
    of heads, in CoNLL-U or in columns. Sequences, graphs, trees and examples with several labels are trained with a
    conditional random field, svmlight with kernel logistic regression; with --loss hinge all with a structural SVM.
    With --cluster, files are partitions, which workers read and train on: columns, CRFsuite's items and Parquet. So
    are those of a compiled corpus, the folder that `dualfield compile` has made.
    """
    from dualfield.cli.training.fit import run
    from dualfield.cli.training.on_cluster import run_on_cluster

    chosen = {name for name in given if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT}
    try:
        status = run(given, chosen) if given["cluster"] is None else run_on_cluster(given, chosen)
    except KeyboardInterrupt:
        tell(f"\nInterrupted. {_kept(given['target'])}")
        ctx.exit(INTERRUPTED)
    if status == "interrupted":
        ctx.exit(INTERRUPTED)


def _kept(target: Path) -> str:
    return f"{target} is as it was before." if target.exists() else "No model was written."
