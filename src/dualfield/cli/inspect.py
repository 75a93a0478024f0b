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
@click.argument("model", type=options.FILE)
@click.option("--top", type=click.IntRange(0, 100_000), default=5, show_default=True, help="Attributes for each label.")
@click.option("--label", default=None, help="Only the weights of this label.")
@options.as_json
def inspect(model: Path, top: int, label: str | None, as_json: bool) -> None:
    """Show what is in a model file.

    What it is, how it was trained and how far from the optimum it may be; for each label the attributes with the
    largest weights; and the transitions. Reads models of CRFsuite too. --json writes everything, all weights included.
    """
    from dualfield.cli.model_record import model_record
    from dualfield.cli.models import is_tagger, load_model

    check_outputs([("MODEL", model)], [STANDARD_OUTPUT])
    loaded = load_model(model, for_data=False)
    names = [str(name) for name in getattr(loaded.tagger, "classes_", ())]
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
    attributes = _attributes(tagger, names, top, label)
    transitions = [] if loaded.kind == "svmlight" else _transitions(tagger, names, top, label)
    for line in [*attributes, *transitions]:
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
        yield "labels", f"{len(model.classes_)}: {' '.join(map(str, model.classes_))}"
    if loaded.columns is not None:
        yield "trained on", str(loaded.columns)
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
    return f"margins / {found.temperature:.4g}, calibrated on {found.n_nodes:,} labels"


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
        if label is not None and name != label:
            continue
        found = model.top_features(top, value)
        yield f"\nAttributes of {name}"
        yield from (f"  {weight:+9.4f}  {attribute}" for (attribute, _), weight in found.positive)
        yield from (f"  {weight:+9.4f}  {attribute}" for (attribute, _), weight in reversed(found.negative))


def _values(model: Any) -> list[Any]:
    """Return the labels as Python values."""
    return model.classes_.tolist() if hasattr(model.classes_, "tolist") else list(model.classes_)


def _transitions(model: Any, names: list[str], top: int, label: str | None) -> Iterator[str]:
    if model.transitions_.ndim == 2 and len(names) <= _TABLE and label is None:
        width = max(8, *(len(name) for name in names))
        yield "\nTransitions: the label on the left, then the one above"
        yield " ".join([" " * width, *(f"{name:>{width}}" for name in names)])
        for name, row in zip(names, model.transitions_.tolist(), strict=True):
            yield " ".join([f"{name:<{width}}", *(f"{weight:>{width}.3f}" for weight in row)])
    elif top:
        found = model.top_features(2 * top, None if label is None else _values(model)[names.index(label)])
        for title, ranked in (("likely", found.likely), ("unlikely", found.unlikely)):
            if ranked:
                yield f"\nTransitions, {title}"
            yield from (f"  {weight:+9.4f}  {' > '.join(map(str, labels))}" for labels, weight in ranked)
