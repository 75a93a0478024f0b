"""Facts and parameters of a fitted model, and its certificate in words."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dualfield.plotting.labels import label_list
from dualfield.plotting.markup import Html, escape, shortened
from dualfield.plotting.tables import table

_MOST_LABELS = 60  # that are named
_LONGEST = 200  # characters of a value

Fact = tuple[object, object]


def rounded(value: float, digits: int) -> str:
    """Write a number with so many significant digits, in full where it is large: 3,080 and not 3.08e+03."""
    return f"{float(f'{value:.{digits}g}'):,.10g}"


def model_facts(model: Any) -> Iterator[Fact]:
    """Give out what can be read off a fitted model: its kind, labels, sizes, solver, objective and gap."""
    labels = label_list(model.classes_)
    # Labels such as B-NP are not broken at their hyphens.
    named = ", ".join(f'<span class="name">{escape(label)}</span>' for label in labels[:_MOST_LABELS])
    more = f" and {len(labels) - _MOST_LABELS:,} more" if len(labels) > _MOST_LABELS else ""
    yield "estimator", type(model).__name__
    yield "labels", Html(f"{len(labels):,}: {named}{more}")
    if hasattr(model, "n_features_"):
        yield "weights", f"{model.n_features_:,}"
        if model.vocabulary_ is not None:
            yield "attributes", f"{len(model.vocabulary_):,}"
    if hasattr(model, "n_features_in_"):
        yield "features", f"{model.n_features_in_:,}"
    if hasattr(model, "dual_coef_"):
        yield "points of the expansion", f"{model.dual_coef_.shape[1]:,}"
    if getattr(model, "relaxation_", None) is not None:
        yield "relaxation", model.relaxation_
    yield "solver", getattr(model, "solver_", "none")
    trace = getattr(model, "trace_", None)
    if trace is not None and len(trace):
        what = "data" if hasattr(model, "structure_") else "kernel matrix"
        yield f"passes over the {what}", rounded(trace.passes[-1], 6)
        if math.isfinite(trace.seconds[-1]):
            yield "seconds in the solver", rounded(trace.seconds[-1], 3)
    if math.isfinite(model.objective_):
        yield "objective", rounded(model.objective_, 6)
    if math.isfinite(getattr(model, "dual_gap_", math.nan)):
        yield "duality gap", rounded(model.dual_gap_, 3)
    if hasattr(model, "log_evidence_"):
        yield "log-evidence", rounded(model.log_evidence_, 6)
        yield "posterior", f"{model.model_.inference}, {'converged' if model.converged_ else 'did not converge'}"
    if hasattr(model, "calibration_"):
        found = model.calibration_
        yield (
            "temperature of probabilities",
            f"{rounded(found.temperature, 3)}, by calibrate: log-loss {rounded(found.log_loss, 3)} for each label, "
            f"{rounded(found.log_loss_at_one, 3)} at 1",
        )


def gap_sentences(model: Any) -> str:
    """State the certificate of the weights: a bound on the improvement by others."""
    objective, gap = float(model.objective_), float(getattr(model, "dual_gap_", math.nan))
    if math.isnan(objective):
        return (
            "The objective of these weights and its distance from the best are not known: "
            "the file that they come from has no training record."
        )
    if math.isnan(gap):
        return (
            f"The objective is {rounded(objective, 6)}. There is no bound on how much better other weights could be: "
            "with latent variables or partly labelled sequences the problem is not convex."
        )
    dual = objective - gap
    relative = f" (relative gap {rounded(max(gap, 0.0) / dual, 2)})" if dual > 0.0 else ""
    value, most = rounded(objective, 6), rounded(max(gap, 0.0), 3)
    if getattr(model, "relaxation_", None) is not None:
        return (
            f"The objective of the relaxed problem, an upper bound of the exact one, is {value}. No weights can be "
            f"better for it by more than {most}{relative}; how far it is from the exact minimum is not known."
        )
    return f"The objective is {value}. No weights can be better than this by more than {most}{relative}."


def changed_parameters(model: Any) -> list[Fact]:
    """Return the parameters of a model that differ from their defaults, with their values as text."""
    defaults = inspect.signature(type(model)).parameters
    return [
        (name, _text(value))
        for name, value in model.get_params(deep=False).items()
        if name not in defaults or not _same(value, defaults[name].default)
    ]


def facts_section(model: Any, facts: Iterable[Fact], command: str | None = None) -> Iterator[Html]:
    """Lay out the given facts, those of the model, and its parameters, folded; the command line comes last."""
    yield Html('<details class="facts"><summary>Facts and parameters</summary>')
    yield _facts_table("fact", [*facts, *model_facts(model)])
    changed = changed_parameters(model)
    if changed:
        yield _facts_table("parameter", changed, "Parameters that differ from their defaults")
    else:
        yield Html("<p>All parameters have their default values.</p>")
    if command is not None:
        yield Html(f"<p>The command line:</p><pre>{escape(command)}</pre>")
    yield Html("</details>")


def _facts_table(kind: str, rows: Sequence[Fact], caption: str = "") -> Html:
    cells = [(name, Html(f'<span class="fact">{escape(value)}</span>')) for name, value in rows]
    return table((kind, "value"), cells, caption=caption)


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    try:
        return type(value) is type(default) and bool(value == default)
    except (TypeError, ValueError):  # arrays have no one answer
        return False


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    return shortened(value if isinstance(value, str) else repr(value), _LONGEST)
