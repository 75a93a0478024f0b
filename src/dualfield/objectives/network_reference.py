"""From counts to tables: the reference that the training of a network stays near."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.objectives.network_data import NetworkData
from dualfield.structures import Network

PRIORS = ("prob", "count", "uniform")


def reference_tables(owner: str, prior: Any, smoothing: float, data: NetworkData) -> Floats:
    """Return c of the objective: one number for each entry of the tables."""
    network = data.network
    lengths = np.bincount(network.rows)[network.rows]
    if isinstance(prior, str) and prior == "uniform":
        return 1.0 / lengths
    if not isinstance(prior, str):
        return _given_tables(owner, prior, network)
    counts = network.counts(data.codes, data.weights) + smoothing
    return counts if prior == "count" else normalised(counts, network)


def normalised(values: Floats, network: Network) -> Floats:
    """Return tables whose rows sum to one; a row of zeros is uniform."""
    sums = np.bincount(network.rows, values)[network.rows]
    lengths = np.bincount(network.rows)[network.rows]
    return np.divide(values, sums, out=1.0 / lengths, where=sums > 0.0)


def _given_tables(owner: str, prior: Any, network: Network) -> Floats:
    """Return the tables that a user has given, by child or in the order of the variables."""
    known = dict(prior) if isinstance(prior, Mapping) else dict(zip(network.names, prior, strict=False))
    values = np.full(network.n_parameters, np.nan)
    for v, name in enumerate(network.names):
        if name not in known:
            continue
        try:
            table = np.asarray(known.pop(name), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"The 'prior' parameter of {owner} must have numbers for {name!r}: {error}") from None
        if table.shape != network.shape(v):
            raise ValueError(
                f"The 'prior' parameter of {owner} must have a table of shape {network.shape(v)} for {name!r}: an axis "
                f"for each parent, then its own values. Got shape {table.shape} instead."
            )
        if not (np.isfinite(table).all() and (table >= 0.0).all()):
            raise ValueError(f"The 'prior' parameter of {owner} must have finite numbers of at least 0 for {name!r}.")
        network.table(values, v)[...] = table
    if known:
        raise ValueError(f"The 'prior' parameter of {owner} names {next(iter(known))!r}, which is no variable.")
    for v, name in enumerate(network.names):
        if np.isnan(network.table(values, v)).any():
            raise ValueError(
                f"The 'prior' parameter of {owner} must have a table for each variable. Got none for {name!r}."
            )
    return values


def refuse_zeros(owner: str, reference: Floats, network: Network) -> None:
    """Raise where an entry of the reference is zero: the objective would have no minimum there."""
    if (reference > 0.0).all():
        return
    for v, name in enumerate(network.names):
        table = network.table(reference, v)
        if not (table > 0.0).all():
            *given, value = (int(at) for at in np.unravel_index(int((table > 0.0).argmin()), table.shape))
            which: list[tuple[Hashable, int]] = [
                (network.names[one], code) for one, code in zip(network.parents[v], given, strict=True)
            ]
            raise ValueError(
                f"With eta > 0 every entry of the reference must be above 0: nothing else keeps the margins from "
                f"driving a probability to 0. The entry of value number {value} of {name!r}"
                + (f" given values {which!r:.200}" if which else "")
                + " is 0. Use smoothing > 0, or eta=0."
            )


def floored(tables: Floats, network: Network, floor: float) -> Floats:
    """Raise entries to the floor; the others of their row are scaled down, so that it still sums to one."""
    rows, low = network.rows, tables < floor
    while True:
        left = 1.0 - floor * np.bincount(rows, low)
        factor = np.where(left < 1.0, left / np.bincount(rows, np.where(low, 0.0, tables)), 1.0)
        scaled = np.where(low, floor, tables * factor[rows])
        if not (scaled < floor).any():
            return scaled
        low |= scaled < floor
