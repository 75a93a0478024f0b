"""What ``dualfield tune`` does: read, search, show the table, train the winner, write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from dualfield.cli.outputs import STANDARD_OUTPUT, check_drawing, check_outputs
from dualfield.cli.program import tell
from dualfield.cli.reading.data_files import FORMATS, LabelledData
from dualfield.cli.reading.sources import opened, shown
from dualfield.cli.reading.templates import BUILT_IN
from dualfield.cli.training import fit
from dualfield.cli.training.candidate_table import SCORE_NAMES, CandidateTable, TuningProgress
from dualfield.cli.training.choices import check_kind
from dualfield.cli.training.end import Options, cannot_write, without_clocks
from dualfield.data.span_labels import marks_spans

SCORING = {"f1": "span_f1", "accuracy": "accuracy", "log-loss": "neg_log_loss", "evidence": "evidence"}
_FOLDS = 5
_SCORES_OF_TREES = {"trees": "F1 of labelled brackets", "conllu": "UAS, or LAS where arcs have labels"}
_OF_TRAIN = {"l1_ratio": 0.0, "solver": "auto", "max_iter": None, "order": 1, "min_freq": 0}  # options of `train` alone
_FEW_CS, _FEW_FOLDS = [0.1, 1.0, 10.0, 100.0], 3  # of `train --C auto`


def run(given: Options, chosen: set[str], command: str | None) -> None:
    """Tune as the options say.

    Parameters
    ----------
    given : dict
        Options of the command, by name.
    chosen : set of str
        Those that the user has given.
    command : str or None
        The command line, for the report.
    """
    _check_files(given)
    say: Callable[[str], None] = (lambda text: None) if given["quiet"] else tell
    sources = [(shown(path), opened(path, given["encoding"])) for path in given["data"]]
    kind = fit.kind_of(given, sources)
    if kind == "svmlight":
        raise click.UsageError("tune is for sequences and graphs; the data are svmlight. Use GridSearchCV in Python.")
    check_kind(kind, given, chosen)
    data = fit.read_data(given, sources, kind)
    say(f"{data.name}: {FORMATS[data.form]}: {data}")
    dev = fit.read_dev(given, data)
    if dev is not None:
        say(f"{dev.name}: {dev}")
    data, dev = fit.with_edges(given, data, dev, say)
    losses = ["log", "hinge"] if given["loss"] == "both" else [given["loss"]]
    scoring = score_of(given["by"], data, dev)
    if scoring in ("neg_log_loss", "evidence") and "hinge" in losses:
        raise click.UsageError(f"--by {given['by']} needs probabilities, which --loss hinge does not have.")
    if data.format in _SCORES_OF_TREES and scoring not in ("accuracy", "evidence"):
        raise click.UsageError(
            f"--by {given['by']} compares labels of tokens; {FORMATS[data.form]} are scored by "
            f"{_SCORES_OF_TREES[data.format]}, --by accuracy."
        )
    if scoring == "evidence" and (dev is not None or given["cv"] is not None):
        raise click.UsageError("--by evidence holds nothing out: it takes neither --dev nor --cv.")
    n_folds = 1 if dev is not None or scoring == "evidence" else given["cv"] or _FOLDS
    table = CandidateTable(
        losses=losses,
        Cs=given["Cs"],
        orders=given["orders"],
        min_freqs=given["min_freqs"],
        n_folds=n_folds,
        scoring=scoring,
        name=score_name(scoring, data),
    )
    with TuningProgress(table, quiet=given["quiet"]) as progress:
        searches = {loss: searched(given, data, dev, loss, scoring, n_folds, progress.of(loss)) for loss in losses}
    loss = max(losses, key=lambda name: searches[name].best_score_)  # of equal ones the first
    best = searches[loss]
    remark = edge_remark(best)
    if given["as_json"]:
        click.echo(json.dumps(table.record(loss, best), indent=2, allow_nan=False))
    else:
        click.echo(table.text(loss, best))
    if remark:
        say(remark)
    if given["target"] is not None:
        _write_model(given, data, best, say)
    if given["report"] is not None:
        held_out = "none" if scoring == "evidence" else f"{n_folds} folds"
        facts = [("training data", f"{data.name}: {data}")]
        facts += [("held-out data", f"{dev.name}: {dev}" if dev is not None else held_out)]
        _write_report(given, table, scoring, [remark] if remark else [], facts, command)
        say(f"Report: {given['report']}")


def score_of(by: str | None, data: LabelledData, dev: LabelledData | None) -> str:
    """Return the name of the score: the one asked for, or that which suits the labels."""
    if by == "f1" and data.format == "trees":
        return "accuracy"  # which is the F1 of brackets
    if by is not None:
        return SCORING[by]
    if data.format not in ("conll", "crfsuite"):
        return "accuracy"
    return "span_f1" if marks_spans([*data.labels, *(dev.labels if dev is not None else [])]) else "accuracy"


def score_name(scoring: str, data: LabelledData) -> str:
    """Return what a score is called: for trees what `score` measures of them."""
    if scoring == "accuracy" and data.format in _SCORES_OF_TREES:
        return "F1" if data.format == "trees" else "LAS" if data.labels else "UAS"
    return SCORE_NAMES[scoring]


def searched(
    given: Options,
    data: LabelledData,
    dev: LabelledData | None,
    loss: str,
    scoring: str,
    n_folds: int,
    progress: Callable[[dict[str, Any], int, float], None] | None,
) -> Any:
    """Return a fitted search; options are those of ``tune``, or of ``train`` with values in lists."""
    from dualfield.estimators import CRFCV, StructuredSVM, StructuredSVMCV

    one = _OF_TRAIN | given | {"loss": loss, "warm_start": None}
    base: Any = StructuredSVM("single") if data.format == "svmlight" else fit.sequence_model(one, data)
    base.set_params(random_state=one["seed"], max_iter=one["max_iter"], solver=one["solver"])
    if given["tol"] is not None:
        base.tol = given["tol"]
    kind: Any = CRFCV if loss == "log" else StructuredSVMCV
    search = kind(
        base,
        Cs=given["Cs"],
        order=given["orders"] if given["structure"] is None and data.format in ("conll", "crfsuite") else None,
        min_freq=given["min_freqs"],
        cv=n_folds if dev is None and scoring != "evidence" else None,
        scoring=scoring,
        refit=False,
        n_jobs=-1 if given["threads"] is None else given["threads"],
    )
    held_out = {} if dev is None else {"X_dev": dev.X, "y_dev": dev.y}
    with fit.own_warnings(given | {"strict": False}):
        return search.fit(data.X, data.y, **held_out, progress=progress)


def choose_c(given: Options, data: LabelledData, dev: LabelledData | None, say: Callable[[str], None]) -> float:
    """Choose C for ``train --C auto``: by the development data, or else by a few folds."""
    scoring = score_of(None, data, dev)
    table = CandidateTable(
        losses=[given["loss"]],
        Cs=_FEW_CS,
        orders=[given["order"]],
        min_freqs=[given["min_freq"]],
        n_folds=_FEW_FOLDS if dev is None else 1,
        scoring=scoring,
        name=score_name(scoring, data),
    )
    lists = {"Cs": table.Cs, "orders": None, "min_freqs": None}
    with TuningProgress(table, quiet=True) as progress:
        found = searched(given | lists, data, dev, given["loss"], scoring, table.n_folds, progress.of(given["loss"]))
    scores = ", ".join(f"{table.shown(table.mean(key))} at {key[3]:g}" for key in table.keys())  # noqa: SIM118
    held_out = "dev" if dev is not None else f"{_FEW_FOLDS}-fold"
    say(f"Chose C = {found.C_:g} by {held_out} {table.name}: {scores}.")
    return float(found.C_)


def edge_remark(search: Any) -> str:
    """Say that the best C is at the edge of the grid, and what to do."""
    edge = search.results_.edge()
    if edge is None:
        return ""
    _, C, which = edge
    more, wanted = ([C / 10, C / 3], "smaller") if which == "smallest" else ([3 * C, 10 * C], "larger")
    listed = ",".join(f"{one:g}" for one in sorted({*(float(f"{value:.2g}") for value in more), C}))
    return f"The best C is the {which} that was tried: try {wanted} ones, such as --C {listed}."


def _check_files(given: Options) -> None:
    template = None if given["template"] in BUILT_IN else given["template"]
    inputs = [*(("DATA", path) for path in given["data"]), ("--dev", given["dev"]), ("--template", template)]
    outputs = [("--model", given["target"]), ("--report", given["report"])]
    check_outputs(inputs, [*outputs, STANDARD_OUTPUT])
    for _, path in outputs:
        fit.check_target(path)
    if given["report"] is not None:
        check_drawing("--report")


def _write_model(given: Options, data: LabelledData, search: Any, say: Callable[[str], None]) -> None:
    """Train the winner on all data, as ``dualfield train`` with its options does, and write it."""
    from sklearn.base import clone

    from dualfield.tuning.grid import with_setting

    say("Training the winner on all of the data.")
    model = with_setting(clone(search.estimator), search.best_params_)
    with fit.own_warnings(given | {"strict": False}):
        model.fit(data.X, data.y)
    target = given["target"]
    with cannot_write(target, ""):
        model.file_columns_, model.label_graph_ = data.columns, data.label_graph
        without_clocks(model).save(target)
    say(f"Model: {target}, {target.stat().st_size:,} bytes")


def _write_report(
    given: Options, table: CandidateTable, scoring: str, remarks: list[str], facts: list[Any], command: str | None
) -> None:
    from dualfield import __version__
    from dualfield.report import tuning_page, write_page

    title = "Choice of C" if given["target"] is None else f"Choice of C for {given['target'].name}"
    document = tuning_page(
        table.cv_results(),
        title=title,
        score_name=table.name if scoring == "accuracy" else scoring,
        remarks=remarks,
        facts=[*facts, ("dualfield", __version__)],
        command=command,
    )
    with cannot_write(given["report"], ""):
        write_page(given["report"], document)
