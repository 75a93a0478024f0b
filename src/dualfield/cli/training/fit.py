"""What ``dualfield train`` does, step by step: read, fit, write, say how it ended."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli.models import LoadedModel, load_model
from dualfield.cli.outputs import STANDARD_OUTPUT, check_drawing, check_outputs
from dualfield.cli.program import tell
from dualfield.cli.reading.arc_data import is_conllu_source, naming_sentences
from dualfield.cli.reading.columns import ColumnChoice
from dualfield.cli.reading.data_files import (
    FORMATS,
    MATRICES,
    LabelledData,
    begins_with_tree,
    check_same_columns,
    guess_format,
    read_labelled,
    read_sources,
)
from dualfield.cli.reading.graph_data import naming_examples
from dualfield.cli.reading.json_data import JsonChoice
from dualfield.cli.reading.sources import opened, shown
from dualfield.cli.reading.templates import BUILT_IN, read_template
from dualfield.cli.training.calibration import calibrate, check_calibrate
from dualfield.cli.training.choices import check_choice, is_kernel_machine
from dualfield.cli.training.corpus_data import CorpusData, is_corpus, like_corpus, open_corpus
from dualfield.cli.training.end import Options, complain, finish
from dualfield.cli.training.pass_table import PassTable
from dualfield.cli.training.tree_structures import tree_structure
from dualfield.data.span_labels import marks_spans

if TYPE_CHECKING:
    from dualfield.estimators import EarlyStopping
    from dualfield.io.text_lines import Source
    from dualfield.models.bayes.evidence import EvidenceTable


def run(given: Options, chosen: set[str]) -> str:
    """Train as the options say; return how the fit ended, the value of a Status.

    Parameters
    ----------
    given : dict
        Options of the command, by name.
    chosen : set of str
        Those that the user has given.
    """
    _check_files(given)
    calibration = check_calibrate(given)
    say: Callable[[str], None] = (lambda text: None) if given["quiet"] else tell
    data: Any
    if is_corpus(given):
        data = open_corpus(given, chosen)
        check_choice(data.format, given, chosen)
        given = like_corpus(given, data)
        say(f"{data.name}: a compiled corpus: {data}")
    else:
        sources = [(shown(path), opened(path, given["encoding"])) for path in given["data"]]
        kind = kind_of(given, sources)
        check_choice(kind, given, chosen)
        data = read_data(given, sources, kind)
        say(f"{data.name}: {FORMATS[data.form]}: {data}")
    dev = read_dev(given, data)
    if dev is not None:
        say(f"{dev.name}: {dev}")
        _check_labels(given, data, dev)
    data, dev = with_edges(given, data, dev, say)
    if given["C"] == "auto":
        from dualfield.cli.training.tuning import choose_c

        given = given | {"C": choose_c(given, data, dev, say)}
    history: list[Any] = []
    if is_kernel_machine(data.format, given["loss"]):
        model, stopping = _fit_kernel_machine(given, data, dev), None
    else:
        model, history, stopping = _fit_in_passes(given, data, dev, say)
    if given["calibrate"] is not None:
        held_out = dev if calibration is None else _read_like(data, calibration, given)
        calibrate(model, data, held_out if given["calibrate"] != "cv" else None, say)
    ended = finish(given, data, dev, model, history)
    if stopping is not None and not given["quiet"]:
        click.echo(_dev_line(stopping, _scorer(given, dev, data.labels)[0], given["keep"]))
        if not chosen & {"C", "warm_start"}:
            say("C is 1, the default: --C auto or `dualfield tune` may find a better one.")
    return ended


def kind_of(given: Options, sources: Sequence[tuple[str, Source]]) -> str:
    """Return the format of the data, as the options say or as it looks."""
    if given["kind"] != "auto":
        return str(given["kind"])
    name, source = sources[0]
    if given["structure"] == "dependency" and not begins_with_tree(source, name):
        return "conllu"
    return guess_format(source, name)


def read_data(given: Options, sources: Sequence[tuple[str, Source]], kind: str) -> LabelledData:
    """Read the training data."""
    from dualfield.io.json_graphs import JsonGraphReader

    name, source = sources[0]
    takes_last = given["kind"] == "auto" and kind in ("conll", "crfsuite") and given["label"] is None
    if takes_last and is_conllu_source(source):
        raise click.UsageError(
            f"{name} is CoNLL-U. Pass --structure dependency for its trees, or --label COLUMN for tags, which needs "
            "files without comments and ranges."
        )
    graphs = JsonGraphReader("tree" if given["structure"] == "tree" else "graph")
    return read_sources(sources, kind, given["delimiter"], column_choice(given), json=json_choice(given), graphs=graphs)


def with_edges(
    given: Options, data: LabelledData, dev: LabelledData | None, say: Callable[[str], None]
) -> tuple[LabelledData, LabelledData | None]:
    """Make graphs of rows with several labels, whose edges are learnt from the training data; leave other data."""
    if data.format != "multilabel":
        return data, dev
    from dualfield.structures import LabelGraph

    graph = LabelGraph.learn(data.y, data.X.shape[1], given["structure"] or "none")
    kind = "a tree of mutual information" if given["structure"] == "tree" else "all pairs"
    say(f"Edges between labels: {f'{len(graph.edges)}, {kind}' if graph.edges else 'none, labels are independent'}.")
    return data.as_graphs(graph), None if dev is None else dev.as_graphs(graph)


def column_choice(given: Options) -> ColumnChoice:
    """Return which columns to read, as the options say."""
    return ColumnChoice(given["columns"], given["label"])


def json_choice(given: Options) -> JsonChoice:
    """Return how JSON is read, as the options say."""
    return JsonChoice(given["alignment"], given["label_names"])


def _check_files(given: Options) -> None:
    """Refuse outputs that would replace an input or each other, or that cannot be written."""
    template = None if given["template"] in BUILT_IN else given["template"]
    inputs = [*(("DATA", path) for path in given["data"]), ("--dev", given["dev"]), ("--template", template)]
    calibration = None if given["calibrate"] in ("dev", "cv") else given["calibrate"]
    inputs += [("--warm-start", given["warm_start"]), ("--calibrate", calibration)]
    outputs = [("--model", given["target"]), ("--report", given["report"]), ("--checkpoint", given["checkpoint"])]
    check_outputs(inputs, [*outputs, STANDARD_OUTPUT])
    for _, path in outputs:
        check_target(path)
    if given["report"] is not None:
        check_drawing("--report")


def check_target(path: Path | None) -> None:
    """Find out before hours of work, and not after, that a file cannot be written."""
    from dualfield.report.page import check_target as check

    if path is not None:
        try:
            check(path.resolve())
        except OSError as error:
            raise click.ClickException(f"{path}: cannot be written: {error.strerror or error}.") from error


def read_dev(given: Options, data: LabelledData) -> LabelledData | None:
    """Read the development data, if there are any."""
    if given["dev"] is None:
        return None
    if given["dev"] == "-" and "-" in given["data"]:
        raise click.UsageError("Standard input cannot be both DATA and --dev.")
    return _read_like(data, given["dev"], given)


def _read_like(data: LabelledData, path: str, given: Options) -> LabelledData:
    """Read other data of the same kind."""
    width = data.X.shape[1] if data.format in MATRICES and data.label_graph is None else None
    if data.label_graph is not None:
        width = data.label_graph.n_features
    found = read_labelled(
        [path],
        data.format,
        given["delimiter"],
        column_choice(given),
        encoding=given["encoding"],
        n_features=width,
        json=json_choice(given),
        graphs=data.graphs,
    )
    check_same_columns(found, data)
    return found if data.label_graph is None else found.as_graphs(data.label_graph)


def _check_labels(given: Options, data: LabelledData, dev: LabelledData) -> None:
    """Say where development data have a label that no training example has: it can only be got wrong."""
    known = set(data.labels)
    for label in dev.labels:
        if label not in known:
            said = f"the label {label!r} has no training example; it will never be predicted."
            complain(given, f"{dev.place_of(label)}: {said}")


def sequence_model(given: Options, data: LabelledData) -> Any:
    """Return the model of sequences or graphs that the options ask for: a new one, or one to go on from."""
    from dualfield.estimators import CRF, StructuredSVM

    old = None if given["warm_start"] is None else load_model(given["warm_start"])
    kind: Any = CRF if given["loss"] == "log" else StructuredSVM
    model = kind() if old is None else _begun(old, data, kind)
    if isinstance(data, CorpusData):
        model.template = data.template
    elif given["constraints"] != "none":
        _check_scheme(given, data)
    if not isinstance(data, CorpusData) and data.format == "conll" and (old is None or given["template"] is not None):
        model.template = read_template(given["template"], data)
    if given["loss"] == "log":
        model.l1_ratio = given["l1_ratio"]
    return model.set_params(
        structure=_structure(given, data),
        features=given["features"],
        min_freq=given["min_freq"],
        constraints=None if given["constraints"] == "none" else given["constraints"],
        warm_start=old is not None,
    )


def _structure(given: Options, data: LabelledData) -> Any:
    """Return the structure that the options ask for."""
    from dualfield.structures import Chain, Dependency, Graph, SemiMarkov

    if data.format == "conllu":
        features = list(given["arc_features"]) or "default"
        try:
            return Dependency(root=given["root"], non_projective=given["non_projective"], arc_features=features)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if given["structure"] == "semi-markov":
        texts = list(given["segment_features"]) or None
        try:
            return SemiMarkov(max_length=given["max_length"], segment_features=texts)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if data.format == "trees":
        return tree_structure(given)
    if data.format not in ("graphs", "multilabel"):
        return "chain" if given["order"] == 1 else Chain(order=given["order"])
    if data.graphs is not None and data.graphs.structure == "tree":
        return "tree"
    graph = Graph(inference=given["inference"], budget=given["budget"])
    return "graph" if graph.record() == Graph().record() else graph


def _fit_in_passes(
    given: Options, data: LabelledData, dev: LabelledData | None, say: Callable[[str], None]
) -> tuple[Any, list[Any], EarlyStopping | None]:
    """Fit a model of sequences, or a linear one of single examples, and show each pass."""
    from dualfield.estimators import Checkpoint, EarlyStopping, StructuredSVM
    from dualfield.solvers import solver_classes

    model = StructuredSVM("single") if data.format == "svmlight" else sequence_model(given, data)
    model.set_params(
        C=given["C"],
        solver=given["solver"],
        max_iter=given["max_iter"],
        n_jobs=given["threads"],
        random_state=given["seed"],
    )
    if given["tol"] is not None:
        model.tol = given["tol"]
    name, score = _scorer(given, dev, data.labels)
    kept = None
    if given["checkpoint"] is not None:
        kept = Checkpoint(given["checkpoint"], every=given["checkpoint_every"], remove=False)
        if given["checkpoint"].exists():
            say(f"Resuming from {given['checkpoint']}.")
    certified = solver_classes()[given["solver"]].certifies
    stopping: EarlyStopping | None = None
    if score is not None:
        found = score
        stopping = EarlyStopping(None, None, scorer=lambda at, *_: found(at), patience=given["patience"])
        score = lambda at: stopping.scores_[-1][1]  # noqa: E731
    with PassTable(model.tol, score, name, certified=certified, quiet=given["quiet"]) as table, own_warnings(given):

        def look(moment: Any, at: Any) -> bool:
            ends = stopping is not None and stopping(moment, at)
            table(moment, at)
            return ends

        limits: Options = {"memory": given["memory"]} if isinstance(data, CorpusData) else {}
        # A look at the model after each pass takes another pass over the disk: only where somebody scores it.
        watched = look if score is not None or not limits else None
        if watched is None and not given["quiet"]:
            model.verbose = 1 if sys.stderr.isatty() else 2
        names = {"graphs": naming_examples, "conllu": naming_sentences}.get(data.format)
        naming = names(data.example_place) if names is not None else contextlib.nullcontext()
        with naming, contextlib.redirect_stdout(sys.stderr):
            model.fit(data.X, data.y, monitor=watched, checkpoint=kept, **limits)
        model.verbose = 0
    if given["C"] == "evidence":
        say(_by_evidence(model.evidence_))
    if stopping is not None and given["keep"] == "best":
        model = _of_best_pass(model, stopping)
    return model.set_params(warm_start=False), table.history, stopping


def _by_evidence(table: EvidenceTable) -> str:
    """Say which C the evidence has chosen, and from what."""
    found = ", ".join(f"{row.log_evidence:.2f} at {row.C:.4g}" for row in table.rows)
    return f"Chose C = {table.best.C:g} by log-evidence: {found}."


def _of_best_pass(model: Any, stopping: EarlyStopping) -> Any:
    """Return the model of the best pass, with the course of the whole fit."""
    best = stopping.best_model_
    best.trace_, best.n_iter_, best.solver_, best.status_ = model.trace_, model.n_iter_, model.solver_, model.status_
    return best


def _dev_line(stopping: EarlyStopping, name: str, keep: str) -> str:
    """Say how well the model that was written does on the development data, and which pass was the best."""
    last, best = stopping.scores_[-1][1], stopping.best_score_
    at = f"pass {stopping.best_passes_:.0f}"
    if keep == "best":
        return f"dev {name} {100 * best:.2f} ({at}, the best; last {100 * last:.2f})"
    return f"dev {name} {100 * last:.2f} (best {100 * best:.2f}, {at})"


def _check_scheme(given: Options, data: LabelledData) -> None:
    """Raise an error at the first label that a scheme does not have, or that may not stand where it is."""
    from dualfield.structures import span_constraints

    scheme, names = given["constraints"], data.labels
    for label in names:
        try:
            span_constraints([label], scheme)
        except ValueError:
            said = f"the label {label!r} does not fit --constraints {scheme}."
            raise click.ClickException(f"{data.place_of(label)}: {said}") from None
    rules, codes, seen = span_constraints(names, scheme), {name: code for code, name in enumerate(names)}, 0
    for labels in data.y:
        found = [codes[label] for label in labels]
        for at, code in enumerate(found):
            after = rules["allowed_start"][code] if at == 0 else rules["allowed"][found[at - 1], code]
            if not (after and (at < len(found) - 1 or rules["allowed_stop"][code])):
                where = f"after {labels[at - 1]!r}" if at else "at the beginning of a sentence"
                where = where if not after else "at the end of a sentence"
                said = f"the label {labels[at]!r} {where} does not fit --constraints {scheme}."
                said += f" `dualfield convert --scheme {scheme.lower()}` converts labels of other schemes."
                raise click.ClickException(f"{data.place(seen + at)}: {said}")
        seen += len(labels)


def _begun(old: LoadedModel, data: LabelledData, kind: type[Any]) -> Any:
    """Return the model to go on from, if it is for such data and of this kind."""
    if old.kind != data.format:
        raise click.ClickException(
            f"{old.path}: is a model for {FORMATS[old.kind]}; the data are {FORMATS[data.format]}."
        )
    if type(old.model) is not kind:
        raise click.ClickException(
            f"{old.path}: is a {type(old.model).__name__}; this training can only start from a {kind.__name__}. "
            "See --loss."
        )
    return old.model


def _scorer(given: Options, dev: LabelledData | None, labels: list[str]) -> tuple[str, Callable[[Any], float] | None]:
    if dev is None:
        return "", None
    if dev.format == "trees":
        return "F1", _tree_scorer(given, dev)
    if dev.format in ("conll", "crfsuite") and marks_spans([*dev.labels, *labels]):
        from dualfield.metrics import span_f1_scorer

        return "F1", lambda model: span_f1_scorer(model, dev.X, dev.y)
    name = "accuracy" if dev.format != "conllu" else "LAS" if labels and dev.labels else "UAS"
    return name, lambda model: float(model.score(dev.X, dev.y))


def _tree_scorer(given: Options, dev: LabelledData) -> Callable[[Any], float]:
    """Return what scores trees: those of sentences that a grammar cannot parse have no brackets, which is said once."""
    from dualfield.metrics import parse_f1_score

    told: list[str] = []

    def score(model: Any) -> float:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = model.predict(dev.X, impossible="none")
        for one in caught if not told else ():
            told.append(f"{dev.name}: {one.message}")
            complain(given, told[-1])
        return parse_f1_score(dev.y, found)

    return score


def _fit_kernel_machine(given: Options, data: LabelledData, dev: LabelledData | None) -> Any:
    from dualfield.estimators import KernelLogisticRegression

    model = KernelLogisticRegression(
        kernel=given["kernel"],
        gamma=given["gamma"],
        degree=given["degree"],
        coef0=given["coef0"],
        C=given["C"],
        solver=given["solver"],
        max_iter=given["max_iter"],
        n_jobs=given["threads"],
        random_state=given["seed"],
        verbose=0 if given["quiet"] else 1 if sys.stderr.isatty() else 2,
    )
    if given["tol"] is not None:
        model.tol = given["tol"]
    # The line of progress goes to standard output, where results belong.
    with contextlib.redirect_stdout(sys.stderr), own_warnings(given):
        model.fit(data.X, data.y)
    model.verbose = 0
    name, score = _scorer(given, dev, data.labels)
    if score is not None and not given["quiet"]:
        tell(f"dev {name}: {100 * score(model):.2f}")
    return model


@contextlib.contextmanager
def own_warnings(given: Options) -> Any:
    """Show warnings as the command line does; how the fit ended is said at the end, in one sentence."""
    from sklearn.exceptions import ConvergenceWarning

    from dualfield.data.impossible import ImpossibleWarning
    from dualfield.estimators import CheckpointWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("always", CheckpointWarning)
        warnings.simplefilter("always", ImpossibleWarning)
        warnings.showwarning = lambda message, *place, **more: complain(given, str(message))
        yield
