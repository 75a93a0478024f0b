"""``dualfield inspect``: what is in a model file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli import options
from dualfield.cli.help_pages import Command
from dualfield.cli.outputs import STANDARD_OUTPUT, check_outputs

if TYPE_CHECKING:
    from dualfield.cli.models import LoadedModel

__all__ = ["inspect"]

_TABLE = 12  # up to so many labels transitions are a table


@click.command(cls=Command, examples=["dualfield inspect chunks.model --label B-NP --top 10"])
@click.argument("model", type=click.Path(exists=True, path_type=Path))
@click.option("--top", type=click.IntRange(0, 100_000), default=5, show_default=True, help="Attributes for each label.")
@click.option("--label", default=None, help="Only the weights of this label.")
@options.as_json
def inspect(model: Path, top: int, label: str | None, as_json: bool) -> None:
    """Show what is in a model file.

    What it is, how it was trained and how far from the optimum it may be; for each label the attributes with the
    largest weights; and the transitions, or the tables of edges. Reads models of CRFsuite too. --json writes
    everything, all weights included. MODEL may be the folder of a compiled corpus, of which sizes and origin are shown.
    """
    from dualfield.cli.model_record import model_record
    from dualfield.cli.models import is_tagger, load_model

    if model.is_dir():
        from dualfield.cli.corpus_record import show_corpus

        show_corpus(model, as_json)
        return
    check_outputs([("MODEL", model)], [STANDARD_OUTPUT])
    loaded = load_model(model, for_data=False)
    names = [str(name) for name in getattr(loaded.tagger, "classes_", ())]
    names = loaded.names if loaded.kind == "multilabel" else names
    if label is not None and label not in names:
        raise click.BadParameter(
            f"{label!r} is not a label of {model}. It has {', '.join(names)}.", param_hint="'--label'"
        )
    if as_json:
        click.echo(json.dumps(model_record(loaded), ensure_ascii=False, indent=1))
        return
    for name, value in _facts(loaded):
        click.echo(f"{name:<13}{value}")
    if not is_tagger(loaded):
        return
    tagger = loaded.tagger
    if loaded.kind == "multilabel":
        lines = [*_label_weights(loaded, top, label), *_label_edges(loaded, top, label)]
    else:
        transitions = [] if loaded.kind == "svmlight" else _transitions(tagger, names, top, label)
        lines = [*_attributes(tagger, names, top, label), *transitions]
    for line in lines:
        click.echo(line)


def _facts(loaded: LoadedModel) -> Iterator[tuple[str, str]]:
    from dualfield.cli.model_record import calibration_of, changed_parameters, origin
    from dualfield.cli.models import data_of, is_tagger

    model, path = loaded.model, Path(loaded.path)
    calibration = calibration_of(model)
    yield "file", f"{path}, {path.stat().st_size:,} bytes, written by {origin(path)}"
    parameters = ", ".join(f"{name}={value!r}" for name, value in changed_parameters(model).items())
    yield "model", f"{type(model).__name__}({parameters}), for {data_of(loaded)}"
    if hasattr(model, "classes_"):
        labels = [name for name in loaded.names if name]
        yield "labels", f"{len(labels)}: {' '.join(labels)}"
    if loaded.columns is not None:
        yield "trained on", str(loaded.columns)
    elif (read := loaded.graph_reader()) is not None:
        n_types = f", {read.n_types} types of edges" * (read.n_types != 1)
        yield "trained on", f"{read.structure}s: {read.nodes} at nodes, {read.edges} at edges{n_types}"
    elif loaded.label_graph is not None:
        yield "trained on", f"{loaded.n_features:,} features; {len(loaded.label_graph.edges):,} edges between labels"
    if getattr(model, "relaxation_", None) is not None:
        yield "relaxation", f"{model.relaxation_}: the gap is that of the relaxed problem"
    if hasattr(model, "dual_coef_"):
        yield "points", f"{model.dual_coef_.shape[1]:,} training points of {model.n_features_in_:,} features"
    elif not is_tagger(loaded):
        yield from _arrays(path)
    else:
        tagger, used = loaded.tagger, int((model.parameters_ != 0).sum())
        if tagger is not model:
            yield "states", f"{len(tagger.classes_)}: {' '.join(tagger.classes_)}"
        words = tagger.vocabulary_
        columns = f"{tagger.score_map_.node.n_columns:,} features" if words is None else f"{len(words):,} attributes"
        yield "weights", f"{tagger.n_features_:,} for {columns}; {used:,} are not zero"
        if tagger.template_ is not None:
            yield "template", _template(tagger)
    yield "training", _training(model)
    if hasattr(model, "log_evidence_"):
        yield "posterior", _posterior(model)
    if calibration is not ...:
        yield "probability", _calibration(calibration)


def _arrays(path: Path) -> Iterator[tuple[str, str]]:
    """Say which numbers a model consists of, where they have no names of their own."""
    from dualfield.persistence import read_model_header

    for name, entry in read_model_header(path)["tensors"].items():
        if name != "training.trace":
            yield "numbers", f"{name}, {' x '.join(f'{n:,}' for n in entry['shape'])}"


def _template(model: Any) -> str:
    from dualfield.cli.model_record import template_text
    from dualfield.features import Template

    template = Template(template_text(model))
    for name, known in (("default", Template.default(template.n_columns)), ("chunking", Template.chunking())):
        if template == known:
            return f"{name}: {repr(template)[1:-1]}"
    return repr(template)[1:-1]


def _calibration(found: Any) -> str:
    if found is None:
        return "none: the margins were not calibrated"
    return f"scores / {found.temperature:.4g}, calibrated on {found.n_nodes:,} labels"


def _posterior(model: Any) -> str:
    from dualfield.cli.model_record import posterior_record

    found = posterior_record(model)
    end = "converged" if found["converged"] else "did not converge"
    evidence = found["log_evidence"]
    return f"{found['inference']}, {end}; log-evidence {'unknown' if evidence is None else f'{evidence:.6g}'}"


def _training(model: Any) -> str:
    from dualfield.cli.model_record import training_record

    record = training_record(model)
    said = f"{record['solver']}, {(record['status'] or 'not iterative').replace('_', ' ')}"
    if record["objective"] is not None:
        said += f"; objective {record['objective']:.6g}"
    if record["relative_gap"] is not None:
        said += f", relative gap {record['relative_gap']:.1e}"
    if record["passes"] is not None:
        said += f", {record['passes']:.0f} passes"
    return said


def _attributes(model: Any, names: list[str], top: int, label: str | None) -> Iterator[str]:
    if not top or model.model_.has_kernel:
        return
    for name, value in zip(names, _values(model), strict=True):
        if (label is not None and name != label) or value == "":  # arcs that are not in a tree have no weights
            continue
        found = model.top_features(top, value)
        if model.score_map_.node.n_columns:  # a grammar may have rules alone
            yield f"\nAttributes of {name}"
        yield from (f"  {weight:+9.4f}  {attribute}" for (attribute, _), weight in found.positive)
        yield from (f"  {weight:+9.4f}  {attribute}" for (attribute, _), weight in reversed(found.negative))


def _values(model: Any) -> list[Any]:
    """Return the labels as Python values."""
    return model.classes_.tolist() if hasattr(model.classes_, "tolist") else list(model.classes_)


def _label_weights(loaded: LoadedModel, top: int, label: str | None) -> Iterator[str]:
    """List the features that speak most for and against each of several labels."""
    import numpy as np

    graph, weights = loaded.label_graph, _for_presence(loaded)
    assert graph is not None
    for name, column in zip(loaded.names, weights.T, strict=True):
        if not top or (label is not None and name != label):
            continue
        yield f"\nFeatures of {name}"
        order = np.argsort(-column, kind="stable")
        shown = dict.fromkeys([*order[:top].tolist(), *order[-top:].tolist()])
        for at in shown:
            if column[at]:
                yield f"  {column[at]:+9.4f}  {'constant' if at == graph.n_features else f'feature {at + 1}'}"


def _for_presence(loaded: LoadedModel) -> Any:
    """Return what each feature, and the constant, adds to the score of having each label."""
    import numpy as np

    model, graph = loaded.model, loaded.label_graph
    assert graph is not None
    sign = np.where(np.asarray(model.classes_) == 1, 1.0, -1.0)
    return (sign @ model.coef_).reshape(graph.n_features + 1, len(graph.names))


def _label_edges(loaded: LoadedModel, top: int, label: str | None) -> Iterator[str]:
    """List the pairs of labels whose edge matters most: what it adds if a row has both or none, and not one of them."""
    import numpy as np

    graph, model = loaded.label_graph, loaded.model
    assert graph is not None
    if not graph.edges or not top or len(model.classes_) < 2:
        return
    tables = np.reshape(model.transitions_, (len(graph.edges), 2, 2))
    together = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
    named = [tuple(loaded.names[at] for at in edge) for edge in graph.edges]
    wanted = [at for at, pair in enumerate(named) if label is None or label in pair]
    ranked = sorted(wanted, key=lambda at: -abs(together[at]))[: 2 * top]
    if ranked:
        yield "\nEdges: labels that come together, or exclude each other"
    yield from (f"  {together[at]:+9.4f}  {named[at][0]} - {named[at][1]}" for at in ranked)


def _transitions(model: Any, names: list[str], top: int, label: str | None) -> Iterator[str]:
    import numpy as np

    structure, n = model.structure_, len(names)
    n_types = structure.n_types if hasattr(structure, "n_types") else 1
    is_table = structure.has_same_parts and model.transitions_.size == n_types * n * n  # others have rules, or lengths
    if is_table and n * n_types <= _TABLE and label is None:
        width = max(8, *(len(name) for name in names))
        for kind, table in enumerate(np.reshape(model.transitions_, (n_types, n, n)).tolist()):
            if hasattr(structure, "n_types"):
                of = f" of type {kind}" * (n_types > 1)
                yield f"\nEdges{of}: the label that they come from, on the left, and the one that they lead to, above"
            else:
                yield "\nTransitions: the label on the left, then the one above"
            yield " ".join([" " * width, *(f"{name:>{width}}" for name in names)])
            for name, row in zip(names, table, strict=True):
                yield " ".join([f"{name:<{width}}", *(f"{weight:>{width}.3f}" for weight in row)])
    elif top:
        from dualfield.models.explanation import written_key

        found = model.top_features(2 * top, None if label is None else _values(model)[names.index(label)])
        for title, ranked in (("likely", found.likely), ("unlikely", found.unlikely)):
            if ranked:
                yield f"\n{'Rules' if structure.name == 'grammar' else 'Transitions'}, {title}"
            yield from (f"  {weight:+9.4f}  {written_key(labels, ' > ')}" for labels, weight in ranked)
