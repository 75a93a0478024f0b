"""``dualfield evaluate``: compare predicted labels with true ones, as conlleval does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli import options
from dualfield.cli.help_pages import Command
from dualfield.cli.outputs import STANDARD_OUTPUT, check_outputs
from dualfield.cli.reading.columns import ColumnChoice
from dualfield.cli.reading.data_files import DELIMITERS, FORMATS, LabelledData, read_labelled
from dualfield.cli.reading.graph_data import naming_examples
from dualfield.cli.reading.json_data import JsonChoice
from dualfield.cli.reading.sources import numbered, opened, placed, shown

if TYPE_CHECKING:
    from dualfield.cli.attachment_evaluation import AttachmentEvaluation
    from dualfield.cli.evaluation import Evaluation, Sentences
    from dualfield.cli.label_set_evaluation import LabelSetEvaluation
    from dualfield.cli.models import LoadedModel
    from dualfield.cli.tree_evaluation import TreeEvaluation
    from dualfield.io.text_lines import Source

__all__ = ["evaluate"]

_BOUNDARY = "-X-"  # what conlleval takes for the end of a sentence besides blank lines


_SECTIONS = {
    "Data": ("model", "predicted", "delimiter", "encoding", "columns", "label", "alignment", "label_names"),
    "Output": ("raw", "as_json", "threads", "cluster"),
}
_EXAMPLES = [
    "dualfield evaluate --model chunks.model test.txt",
    "dualfield tag --model chunks.model test.txt | dualfield evaluate",
    "dualfield evaluate --model parser.model test.mrg",
    "dualfield evaluate --model names.model 'corpus/*.gz' --cluster tcp://a:8786",
]


@click.command(cls=Command, sections=_SECTIONS, examples=_EXAMPLES)
@click.argument("file", type=options.INPUTS, default="-")
@click.option("--model", type=options.FILE, default=None, help="Tag FILE with this model first; its labels are true.")
@options.delimiter
@options.encoding
@options.columns
@options.label_column
@options.alignment
@options.label_names
@click.option(
    "--predicted",
    type=options.FILE,
    default=None,
    help="For trees in brackets, in place of --model: the file of predicted trees; those of FILE are true.",
)
@click.option("--raw", is_flag=True, help="Count each token by itself, as conlleval -r does: labels have no prefix.")
@options.as_json
@options.threads
@options.cluster
def evaluate(
    file: str,
    model: Path | None,
    predicted: Path | None,
    delimiter: str,
    encoding: str,
    columns: tuple[int, ...] | None,
    label: int | None,
    alignment: str,
    label_names: list[str] | None,
    raw: bool,
    as_json: bool,
    threads: int,
    cluster: str | None,
) -> None:
    """Compare predicted labels with true ones, as conlleval does.

    Without --model, FILE has columns of which the last is the predicted label and the one before it the true one, as
    `dualfield tag` writes them; without FILE they are read from standard input. With --model, FILE is labelled data of
    the kind that the model was trained on, with as many columns, or those that --columns and --label name; if it has
    probabilities, they are scored too. Graphs and label sets have scores of their own; dependency trees have attachment
    scores, UAS and LAS; trees in brackets have those of evalb, also where --predicted names a file of trees. A pattern
    such as 'corpus/*.gz' is evaluated file by file, and counts are summed; probabilities are not scored then.
    """
    from dualfield.cli.models import load_model
    from dualfield.data.span_labels import scheme_of

    if (files := options.files_of(file)) or cluster is not None:
        reading = {"delimiter": delimiter, "encoding": encoding, "columns": columns, "label": label}
        summed = _of_files(files or [file], cluster, model, reading, raw, threads)
        click.echo(json.dumps(summed.record(), indent=2, ensure_ascii=False) if as_json else str(summed))
        return
    check_outputs([("FILE", file), ("--model", model), ("--predicted", predicted)], [STANDARD_OUTPUT])
    if model is not None and predicted is not None:
        raise click.UsageError("--predicted is in place of --model.")
    if model is None:
        _refuse(columns, label, "needs --model: without it, the last column is compared with the one before it")
        if predicted is not None:
            found: Evaluation | LabelSetEvaluation | TreeEvaluation | AttachmentEvaluation = _of_tree_files(
                file, predicted, encoding
            )
        else:
            found = _of_columns(opened(file, encoding), shown(file), delimiter, raw)
    else:
        loaded = load_model(model, threads=threads)
        if loaded.kind not in ("conll", "trees"):
            _refuse(columns, label, f"is for files of columns; {model} is a model for {FORMATS[loaded.kind]}")
        data = read_labelled(
            [file],
            loaded.kind,
            delimiter,
            ColumnChoice(columns or loaded.tree_columns) if loaded.kind == "trees" else loaded.choice(columns, label),
            encoding=encoding,
            n_features=loaded.n_features,
            json=JsonChoice(alignment, label_names, scheme_of(loaded.names)),
            graphs=loaded.graph_reader(),
        )
        if loaded.kind == "trees":
            found = _of_trees(data.y, _parsed(loaded, data))
        elif loaded.kind == "multilabel":
            found = _of_label_sets(loaded, data)
        elif loaded.kind == "conllu":
            from dualfield.cli.attachment_evaluation import AttachmentEvaluation

            found = AttachmentEvaluation.of(data.y, loaded.model.predict(data.X))
        else:
            found = _of_graphs(loaded, data) if loaded.kind == "graphs" else _of_model(loaded, data, raw)
    click.echo(json.dumps(found.record(), indent=2, ensure_ascii=False) if as_json else str(found))


def _of_files(
    files: list[str], cluster: str | None, model: Path | None, reading: dict[str, Any], raw: bool, threads: int
) -> Evaluation:
    """Evaluate a model on several files, each for itself, with their counts summed."""
    from dualfield.cli.by_file import evaluate_files
    from dualfield.cli.models import load_tagger

    if model is None or files == ["-"]:
        raise click.UsageError("Patterns of files and --cluster need --model and files.")
    loaded = load_tagger(model, mmap=True, threads=1)
    if loaded.kind not in ("conll", "crfsuite"):
        raise click.UsageError(f"Patterns of files and --cluster are for sentences; {model} is for {loaded.kind}.")
    return evaluate_files(files, cluster, model, reading, raw or _is_raw([loaded.names]), threads)


def _refuse(columns: tuple[int, ...] | None, label: int | None, why: str) -> None:
    """Refuse options about columns."""
    for option, value in (("--columns", columns), ("--label", label)):
        if value is not None:
            raise click.UsageError(f"{option} {why}.")


def _of_columns(source: Source, name: str, delimiter: str, raw: bool) -> Evaluation:
    from dualfield.cli.evaluation import Evaluation

    with placed(name):
        y_true, y_pred = _read_pairs(source, name, delimiter)
    return Evaluation.of(y_true, y_pred, raw=raw or _is_raw([*y_true, *y_pred]))


def _of_model(loaded: LoadedModel, data: LabelledData, raw: bool) -> Evaluation:
    from dualfield.cli.evaluation import Evaluation, calibration_of

    predicted = loaded.model.predict(data.X)
    if loaded.kind == "svmlight":  # one example is a sentence of one token
        y_true, y_pred = ([[str(label)] for label in y.tolist()] for y in (data.y, predicted))
    else:
        y_true, y_pred = data.y, [[str(label) for label in labels] for labels in predicted]
    calibration = None
    if hasattr(loaded.model, "predict_proba"):  # margins are no probabilities
        marginals = loaded.model.predict_proba(data.X)
        rows = marginals if loaded.kind != "svmlight" else [row[None, :] for row in marginals]
        calibration = calibration_of(y_true, rows, loaded.model.classes_)
    raw = raw or loaded.kind == "svmlight" or _is_raw([*y_true, *y_pred])
    unit = "example" if loaded.kind == "svmlight" else "token"
    return Evaluation.of(y_true, y_pred, raw=raw, calibration=calibration, unit=unit)


def _of_graphs(loaded: LoadedModel, data: LabelledData) -> Evaluation:
    from dualfield.cli.evaluation import Evaluation, calibration_of
    from dualfield.cli.labelling.graphs import GraphTagger

    with naming_examples(data.example_place):
        wide = loaded.relaxed(data.X)
        predicted = [found["labels"] for found in GraphTagger(loaded).predictions(data.X)]
    y_true, y_pred = ([[str(label) for label in labels] for labels in y] for y in (data.y, predicted))
    calibration = None
    if wide.any():
        said = f"{int(wide.sum()):,} of {len(wide):,} graphs are too wide for probabilities: there is no log-loss."
        click.echo(said, err=True)
    elif hasattr(loaded.model, "predict_proba"):
        calibration = calibration_of(y_true, loaded.model.predict_proba(data.X), loaded.model.classes_)
    return Evaluation.of(y_true, y_pred, calibration=calibration, unit="node")


def _parsed(loaded: LoadedModel, data: LabelledData) -> list[Any]:
    """Return predicted trees, and say which sentences have none."""
    from dualfield.cli.reading.tree_data import clean_trees, tell_unparsed

    found, reasons = loaded.parse(data.X)
    if reasons:
        places = [f"{name}:{number}" for name, source in data.sources for number, _ in clean_trees(source)]
        tell_unparsed({places[i]: reason for i, reason in reasons.items()})
    return found


def _of_trees(y_true: list[Any], y_pred: list[Any]) -> TreeEvaluation:
    from dualfield.cli.tree_evaluation import TreeEvaluation
    from dualfield.metrics import parse_scores

    return TreeEvaluation(parse_scores(y_true, y_pred))


def _of_tree_files(file: str, predicted: Path, encoding: str) -> TreeEvaluation:
    """Compare trees as they are, without a clean-up: evalb's rules say what does not count."""
    from dualfield.io import read_trees

    found = []
    for path in (file, str(predicted)):
        with placed(shown(path)):
            found.append(read_trees(opened(path, encoding)))
    with placed(str(predicted)):
        if len(found[0]) != len(found[1]):
            raise ValueError(f"{predicted}: has {len(found[1]):,} trees; {shown(file)} has {len(found[0]):,}.")
        if None in found[0]:
            raise ValueError(f"{shown(file)}: tree {found[0].index(None) + 1} is (()); expected true trees.")
        return _of_trees(*found)


def _of_label_sets(loaded: LoadedModel, data: LabelledData) -> LabelSetEvaluation:
    import numpy as np

    from dualfield.cli.label_set_evaluation import LabelSetEvaluation
    from dualfield.cli.labelling.lines import present

    graph = loaded.label_graph
    assert graph is not None
    X = graph.graphs(data.X)
    has_chances = hasattr(loaded.model, "predict_proba") and not loaded.relaxed(X).any()
    return LabelSetEvaluation(
        loaded.names,
        graph.indicators(data.y).astype(bool),
        np.array([list(labels) for labels in loaded.model.predict(X)], dtype=bool),
        np.array(present(loaded, X)) if has_chances else None,
        sum(label not in graph.names for labels in data.y for label in labels),
    )


def _is_raw(sentences: Sentences) -> bool:
    """Tell whether labels are not of a scheme for spans, and say so."""
    from dualfield.cli.evaluation import OUTSIDE
    from dualfield.data.span_labels import marks_spans

    labels = sorted({label for sentence in sentences for label in sentence})
    if marks_spans(labels) or labels == [OUTSIDE]:
        return False
    click.echo(
        "The labels are not of the form B-TYPE, I-TYPE, O: each token counts by itself, as with --raw.", err=True
    )
    return True


def _read_pairs(source: Source, name: str, delimiter: str) -> tuple[Sentences, Sentences]:
    """Read the last two columns; lines that mark documents count as tokens, as for conlleval."""
    y_true: Sentences = []
    y_pred: Sentences = []
    begins, n_columns, first = True, 0, 0
    for number, line in numbered(source):
        columns = line.split(DELIMITERS[delimiter])
        if not line.strip() or columns[0] == _BOUNDARY:
            begins = True
            continue
        if not n_columns:
            n_columns, first = len(columns), number
        if len(columns) != n_columns or n_columns < 2:
            wanted = f"{n_columns}, as in line {first}" if n_columns > 1 else "2 or more, the last two being labels"
            plural = "s" * (len(columns) != 1)
            raise ValueError(f"{name}, line {number}: has {len(columns)} column{plural}; expected {wanted}.")
        if begins:
            y_true.append([])
            y_pred.append([])
            begins = False
        y_true[-1].append(columns[-2])
        y_pred[-1].append(columns[-1])
    if not y_true:
        raise ValueError(f"{name}: is empty; expected columns, the true label and the predicted one last.")
    return y_true, y_pred
