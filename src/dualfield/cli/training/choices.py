"""Options that do not fit the data or each other: refused before anything is read."""

from __future__ import annotations

import click

from dualfield.cli.solver_names import suited_solvers
from dualfield.cli.training.end import Options
from dualfield.cli.training.tree_structures import STRUCTURES

# Options that belong to some kinds of data.
_OF_SEQUENCES = ("template", "constraints", "order", "orders")
_OF_ATTRIBUTES = (*_OF_SEQUENCES, "l1_ratio", "features", "min_freq", "checkpoint", "checkpoint_every", "warm_start")
_OF_COLUMNS = ("columns", "label")
_OF_GRAPHS = ("inference", "budget")
_OF_SEGMENTS = ("max_length", "segment_features")
_OF_SPANS = ("span_features",)
_OF_ARCS = ("root", "non_projective", "arc_features")
_OF_KERNELS = ("kernel", "gamma", "degree", "coef0")
_OF_LOG_LOSS = ("l1_ratio", *_OF_KERNELS)


def is_kernel_machine(kind: str, loss: str) -> bool:
    """Tell whether data are trained with kernel logistic regression."""
    return kind == "svmlight" and loss == "log"


def check_choice(kind: str, given: Options, chosen: set[str]) -> None:
    """Refuse options that belong to another kind of model."""
    loss = given["loss"]
    if given["dev"] is None and chosen & {"patience", "keep"}:
        raise click.UsageError(f"--{'patience' if 'patience' in chosen else 'keep'} needs --dev.")
    if is_kernel_machine(kind, loss) and (given["C"] == "auto" or chosen & {"patience", "keep"}):
        raise click.UsageError("--C auto, --patience and --keep are for sequences, graphs and --loss hinge.")
    if given["C"] == "evidence" and (loss == "hinge" or kind == "svmlight"):
        needs = "probabilities, which --loss hinge does not have" if loss == "hinge" else "sequences, graphs or trees"
        raise click.UsageError(f"--C evidence needs {needs}.")
    check_kind(kind, given, chosen)
    for name in _OF_LOG_LOSS:
        if loss == "hinge" and name in chosen:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --loss log.")
    solvers = suited_solvers("svmlight" if kind == "svmlight" else "sequences", loss)
    if given["solver"] not in solvers:
        model = f"--loss {loss} and {'svmlight' if kind == 'svmlight' else 'sequences'}"
        raise click.UsageError(f"--solver {given['solver']} is not for {model}, which take {', '.join(solvers)}.")


def check_kind(kind: str, given: Options, chosen: set[str]) -> None:
    """Refuse options that are not for such data."""
    in_graphs = kind in ("graphs", "multilabel")
    groups = (
        (_OF_ATTRIBUTES, "sequences and graphs", kind == "svmlight"),
        (_OF_SEQUENCES, "sequences", in_graphs or kind in ("trees", "conllu")),
        (_OF_KERNELS, "svmlight", kind != "svmlight"),
        (_OF_GRAPHS, "graphs and several labels", not in_graphs),
        (("warm_start",), "sequences and graphs", kind == "multilabel"),
        (_OF_COLUMNS, "files of columns", kind not in ("conll", "trees")),
        (("label",), "files of columns", kind == "trees"),
    )
    for names, data, is_wrong in groups:
        for name in names:
            if is_wrong and name in chosen:
                option = name.removesuffix("s") if name == "orders" else name.replace("_", "-")
                raise click.UsageError(f"--{option} is for {data}; the data are {kind}.")
    _check_structure(kind, in_graphs, given, chosen)
    has_graphs = kind == "graphs" if given["structure"] is None else given["structure"] == "graph"
    for name in ("inference", "budget"):
        if name in chosen and in_graphs and not has_graphs:
            raise click.UsageError(f"--{name} is for --structure graph: trees have exact answers.")
    if kind == "crfsuite" and "template" in chosen:
        raise click.UsageError(
            "--template is for columns; the data are CRFsuite's items, which have attributes already."
        )


def _check_structure(kind: str, in_graphs: bool, given: Options, chosen: set[str]) -> None:
    """Refuse a structure that is not for such data, and options of another one."""
    wanted = given["structure"]
    suited = "graphs and several labels" if in_graphs else "sequences"
    suited = {"conllu": "trees of heads"}.get(kind, kind if kind in ("svmlight", "trees") else suited)
    data = {"semi-markov": "sequences", "dependency": "trees of heads", **dict.fromkeys(STRUCTURES, "trees")}
    needed = data.get(wanted, "graphs and several labels")
    if wanted is not None and needed != suited:
        raise click.UsageError(f"--structure {wanted} is for {needed}; the data are {kind}.")
    for names, structure, is_right in (
        (_OF_SEGMENTS, "semi-markov", wanted == "semi-markov"),
        (_OF_SPANS, "spans", kind == "trees"),
        (_OF_ARCS, "dependency", kind == "conllu"),
    ):
        for name in names:
            if name in chosen and not is_right:
                option = name.removesuffix("s").replace("_", "-")
                raise click.UsageError(f"--{option} is for --structure {structure}.")
    if wanted == "semi-markov":
        if chosen & {"order", "orders"}:
            raise click.UsageError("--order is for chains; --structure is semi-markov.")
        if given["segment_features"] and (kind != "conll" or given["max_length"] is None):
            needs = "--max-length" if kind == "conll" else f"columns; the data are {kind}"
            raise click.UsageError(f"--segment-feature needs {needs}.")
