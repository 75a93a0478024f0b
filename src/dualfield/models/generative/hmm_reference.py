"""What an HMM is told beside its data: smoothing, the reference that it stays near, and what mistakes cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_number
from dualfield.scores.tables import TableLayout, Tables, normalised

TABLES = ("start", "transition", "emission")
SMOOTHING = 0.1


def check_smoothing(owner: str, smoothing: Any, layout: TableLayout) -> Tables:
    """Return what is added to every count."""
    n = layout.n_states
    parts = smoothing if isinstance(smoothing, Mapping) else dict.fromkeys(TABLES, smoothing)
    unknown = sorted(map(repr, parts.keys() - set(TABLES)))
    if unknown:
        raise ValueError(
            f"The 'smoothing' parameter of {owner} must have no keys but 'start', 'transition' and 'emission'. "
            f"Got {', '.join(unknown)} instead."
        )
    values = {**dict.fromkeys(TABLES, SMOOTHING), **parts}
    emission = values.pop("emission")
    streams = list(emission) if isinstance(emission, (list, tuple)) else [emission] * len(layout.sizes)
    if len(streams) != len(layout.sizes):
        raise ValueError(
            f"The 'smoothing' parameter of {owner} has {len(streams)} values for emissions; X has "
            f"{len(layout.sizes)} streams."
        )
    for value in (*values.values(), *streams):
        check_number(owner, "smoothing", value, 0.0)
    return Tables(
        np.full(n, float(values["start"])),
        np.full((n, n), float(values["transition"])),
        [np.full((n, size), float(value)) for value, size in zip(streams, layout.sizes, strict=True)],
    )


def reference_tables(owner: str, prior: Any, counts: Tables, smoothing: Tables) -> Tables:
    """Return c of the objective."""
    smooth = counts.map(np.add, smoothing)
    if isinstance(prior, str) and prior in ("count", "uniform"):
        return smooth if prior == "count" else normalised(smooth.map(np.ones_like))
    rows = normalised(smooth)
    if isinstance(prior, str) and prior == "prob":
        return rows
    if not isinstance(prior, Mapping) or not prior.keys() <= set(TABLES):
        raise ValueError(
            f"The 'prior' parameter of {owner} must be 'prob', 'count', 'uniform', or a dict of arrays with keys among "
            f"{list(TABLES)}. Got {prior!r:.100} instead."
        )
    return Tables(
        _given(owner, "start", prior, rows.start),
        _given(owner, "transition", prior, rows.transition),
        _given_emission(owner, prior, rows.emission),
    )


def _given(owner: str, name: str, prior: Mapping[str, Any], default: Floats, of: str = "") -> Floats:
    if name not in prior:
        return default
    try:
        table = np.array(prior[name], dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"The 'prior' parameter of {owner} must have numbers for {name!r}{of}.") from None
    if table.shape != default.shape:
        raise ValueError(
            f"The 'prior' parameter of {owner} must have shape {default.shape} for {name!r}{of}: the training data has "
            f"{default.shape[0]} states{'' if name != 'emission' else f' and {default.shape[1]} symbols'}. "
            f"Got shape {table.shape} instead."
        )
    if not (np.isfinite(table) & (table >= 0.0)).all():
        raise ValueError(f"The 'prior' parameter of {owner} must have finite numbers of at least 0 for {name!r}{of}.")
    return table


def _given_emission(owner: str, prior: Mapping[str, Any], default: list[Floats]) -> list[Floats]:
    if "emission" not in prior:
        return default
    if len(default) == 1:
        return [_given(owner, "emission", prior, default[0])]
    given = prior["emission"]
    if not isinstance(given, (list, tuple)) or len(given) != len(default):
        raise ValueError(
            f"The 'prior' parameter of {owner} must have a list of {len(default)} arrays for 'emission', one for each "
            f"stream. Got {given!r:.100} instead."
        )
    streams = enumerate(zip(given, default, strict=True))
    return [_given(owner, "emission", {"emission": table}, rows, f" of stream {k}") for k, (table, rows) in streams]


def check_positive(owner: str, reference: Tables) -> None:
    """Raise where the reference has zeros, which margins cannot do with."""
    names = (*TABLES[:2], *("emission" for _ in reference.emission))
    for name, table in zip(names, reference.every(), strict=True):
        if not (table > 0.0).all():
            zeros = int(np.count_nonzero(table <= 0.0))
            raise ValueError(
                f"With eta > 0 the prior of {owner} must have no zeros; its {name} table has {zeros}. An entry of 0 "
                "that a margin wants smaller would go to minus infinity. Use smoothing, or a prior without zeros."
            )
