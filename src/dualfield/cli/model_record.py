"""What is in a model, as a record for JSON: everything, by name."""

from __future__ import annotations

import dataclasses
import inspect
import math
from pathlib import Path
from typing import Any

import numpy as np

from dualfield.cli.models import LoadedModel, is_crfsuite_model, is_tagger


def origin(path: Path) -> str:
    """Say who wrote a model file."""
    if is_crfsuite_model(path):
        return "CRFsuite"
    from dualfield.persistence import read_model_header

    header = read_model_header(path)
    return f"dualfield {header['dualfield_version']}, format {header['format_version']}"


def changed_parameters(model: Any) -> dict[str, Any]:
    """Return the constructor parameters that are not at their default."""
    defaults = inspect.signature(type(model)).parameters
    given = model.get_params(deep=False)
    hidden = ("template", "n_jobs")
    return {
        name: value
        for name, value in given.items()
        if name not in hidden and not _same(value, defaults[name].default) and value is not None
    }


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, int | float) and isinstance(default, int | float):
        return value == default
    return type(value) is type(default) and bool(np.all(value == default))


def calibration_of(model: Any) -> Any:
    """Return how the temperature of probabilities was chosen; None: margins have none yet; ...: none was needed."""
    found = getattr(model, "calibration_", None)
    needs_one = hasattr(model, "calibrate") and not hasattr(model, "predict_proba")
    return ... if found is None and not needs_one else found


def training_record(model: Any) -> dict[str, Any]:
    """Return how the fit ended; numbers that are not known are None."""
    from dualfield.solvers.trace import relative_gap

    trace: Any = getattr(model, "trace_", ())  # models of several parts have none of their own
    passes = float(trace.passes[-1]) if len(trace) else math.nan
    by_parts = "concave-convex procedure" if hasattr(model, "latent") else "clique by clique"
    # With latent variables the problem is not convex: no gap is proven.
    gap = math.nan if hasattr(model, "latent") else model.dual_gap_
    return {
        "solver": getattr(model, "solver_", getattr(model, "solver", by_parts)),
        "status": None if model.status_ is None else model.status_.value,
        "objective": _known(model.objective_),
        "gap": _known(gap),
        "relative_gap": _known(relative_gap(model.objective_, gap)),
        "passes": _known(passes),
    }


def posterior_record(model: Any) -> dict[str, Any]:
    """Return what a Bayesian model says of its posterior."""
    inference, evidence = model.model_.inference, _known(model.log_evidence_)
    return {"inference": inference, "converged": bool(model.converged_), "log_evidence": evidence}


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def model_record(loaded: LoadedModel) -> dict[str, Any]:
    """Return the whole model."""
    model = loaded.model
    found: dict[str, Any] = {
        "estimator": type(model).__name__,
        "written_by": origin(Path(loaded.path)),
        "parameters": {name: _plain(value) for name, value in changed_parameters(model).items()},
        "labels": [_plain(label) for label in getattr(model, "classes_", ())],
        "training": training_record(model),
    }
    if hasattr(model, "log_evidence_"):
        found["posterior"] = posterior_record(model)
    if loaded.columns is not None:
        found["file_columns"] = loaded.columns.record()
    calibration = calibration_of(model)
    if calibration is not ...:
        found["calibration"] = None if calibration is None else dataclasses.asdict(calibration)
    if hasattr(model, "dual_coef_"):
        return found | _kernel_machine(model)
    if not is_tagger(loaded):
        return found | _content(Path(loaded.path))
    if loaded.label_graph is not None:
        graph = loaded.label_graph
        found["label_graph"] = {"labels": graph.names, "features": graph.n_features, "edges": graph.edges}
    if loaded.kind == "svmlight":
        return found | {"features": int(model.n_features_in_), "coefficients": model.coef_.tolist()}
    return found | _sequence_model(loaded.tagger)


def _content(path: Path) -> dict[str, Any]:
    """Return all that a file says and holds, by the names that it has there."""
    from dualfield.persistence.file import open_model

    file = open_model(path)
    header = {name: value for name, value in file.metadata.items() if name not in ("tensors", "parameters", "training")}
    arrays = {name: array.values.tolist() for name, array in file.arrays.items()}
    return {"content": _without_special(header), "arrays": _without_special(arrays)}


def _without_special(value: Any) -> Any:
    """Return nested values with None for numbers that JSON does not have."""
    if isinstance(value, float):
        return _known(value)
    if isinstance(value, dict):
        return {name: _without_special(inner) for name, inner in value.items()}
    return [_without_special(inner) for inner in value] if isinstance(value, list) else value


def _sequence_model(model: Any) -> dict[str, Any]:
    structure = model.structure_
    found: dict[str, Any] = {"order": structure.order} if hasattr(structure, "order") else {"structure": structure.name}
    if structure.label_sets is not None:
        found["label_sets"] = {str(kind): labels for kind, labels in structure.label_sets.by_type.items()}
    if model.template_ is not None:
        found["template"] = template_text(model)
    found["attributes"] = _triples(model.state_features_)
    weights, names = model.score_map_.unpack(model.parameters_), [str(name) for name in model.classes_]
    windows = structure.edge_names(names)
    pair = model.score_map_.pair
    if pair is not None:
        strings = list(model.pair_vocabulary_) if model.pair_vocabulary_ is not None else None
        found["pair_attributes"] = [
            [strings[column] if strings else f"x[{column}]", *windows[output], weight]
            for column, output, weight in zip(pair.columns.tolist(), pair.outputs.tolist(), weights.pair, strict=True)
            if weight
        ]
    found["transitions"] = _triples(model.transition_features_)
    if model.score_map_.with_ends:
        for name, values in (("start", model.start_), ("stop", model.stop_))[: structure.n_ends]:
            found[name] = dict(zip(names, map(_known, values.tolist()), strict=True))
    return found


def _kernel_machine(model: Any) -> dict[str, Any]:
    points = model.points_.toarray() if hasattr(model.points_, "toarray") else model.points_
    return {
        "features": int(model.n_features_in_),
        "intercept": [_known(value) for value in model.intercept_.tolist()],
        "dual_coefficients": model.dual_coef_.tolist(),
        "points": None if points is None else points.tolist(),
    }


def template_text(model: Any) -> str:
    """Return the lines of a model's template."""
    return str(model.template_.text)


def _triples(features: dict[Any, float]) -> list[list[Any]]:
    return [[*map(str, names), weight] for names, weight in features.items()]


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)
