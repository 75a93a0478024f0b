"""The scores, evidence and labels that a graph is asked with, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.arrays import Codes, Floats
from dualfield.structures.checks import as_floats


@dataclass(frozen=True, eq=False)
class GraphTables:
    """Scores of all cliques, of the right shapes, and labels that are known.

    ``tables[c]`` has shape (n_examples, labels of each node of clique c), without the first axis where it is shared;
    ``evidence`` has shape (n_examples, n_nodes), or is None. Whether the numbers are good is asked where an answer says
    that they may not be: native code sees it in passing.
    """

    cliques: tuple[tuple[int, ...], ...]
    tables: list[Floats]
    is_shared: list[bool]
    evidence: Codes | None
    n_examples: int

    def check_values(self) -> None:
        """Raise an error that names a number that is no score, or say that scores cannot be added up."""
        for c, (array, shared) in enumerate(zip(self.tables, self.is_shared, strict=True)):
            _check_values(f"tables[{c}]", array[None] if shared else array, self.cliques[c], shared=shared)
        _check_sums(self.tables)


def check_tables(
    n_labels: tuple[int, ...],
    cliques: tuple[tuple[int, ...], ...],
    tables: Sequence[ArrayLike],
    evidence: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> GraphTables:
    """Return scores in the form of GraphTables, or raise an error that says what is wrong; labels are only counted."""
    if len(tables) != len(cliques):
        raise ValueError(f"tables must hold {len(cliques)} arrays, one for each clique. Got {len(tables)} instead.")
    arrays = [_check_shape(c, values, cliques[c], n_labels) for c, values in enumerate(tables)]
    is_shared = [array.ndim == len(clique) for array, clique in zip(arrays, cliques, strict=True)]
    known = None if evidence is None else check_label_rows("evidence", evidence, n_labels, lowest=-1)
    n_labelled = None if labels is None else len(np.asarray(labels))
    counts = {len(array) for array, shared in zip(arrays, is_shared, strict=True) if not shared}
    if known is not None:
        counts.add(len(known))
    if n_labelled is not None:
        counts.add(n_labelled)
    if len(counts) > 1:
        named = {f"tables[{c}]": len(array) for c, array in enumerate(arrays) if not is_shared[c]}
        if known is not None:
            named["evidence"] = len(known)
        if n_labelled is not None:
            named["labels"] = n_labelled
        first = next(iter(named))
        name = next(name for name, count in named.items() if count != named[first])
        raise ValueError(
            f"{name} has {named[name]} examples; expected {named[first]}, as in {first}. A table that all examples "
            f"share has no axis for them."
        )
    return GraphTables(cliques, arrays, is_shared, known, counts.pop() if counts else 1)


def _check_shape(c: int, values: ArrayLike, clique: tuple[int, ...], n_labels: tuple[int, ...]) -> Floats:
    shape = tuple([n_labels[node] for node in clique])
    # What needs no words is told apart first: small batches of many cliques spend their time here.
    if type(values) is np.ndarray and values.dtype == np.float64 and values.flags.c_contiguous:
        found = values.shape
        if found[1:] == shape or found == shape:
            return values
    name = f"tables[{c}]"
    array = as_floats(name, values)
    if array.shape != shape and (array.ndim != len(shape) + 1 or array.shape[1:] != shape):
        inner = ", ".join(map(str, shape))
        raise ValueError(
            f"{name} must have shape (n_examples, {inner}), or {shape} if all examples share it, as its clique is "
            f"{clique}. Got shape {array.shape} instead."
        )
    return array


def _check_values(name: str, array: Floats, clique: tuple[int, ...], *, shared: bool) -> None:
    good = array < np.inf  # false for NaN as well
    if good.all():
        return
    at = np.unravel_index(int(good.argmin()), array.shape)
    labels = tuple(int(code) for code in at[1:])
    where = "" if shared else f" of example {int(at[0])}"
    raise ValueError(
        f"{name}, the scores of clique {clique}, must be finite, or -inf for what is forbidden. "
        f"Got {array[at]} for the labels {labels}{where} instead."
    )


def _check_sums(arrays: Sequence[Floats]) -> None:
    """Raise where scores could add up to more than a number holds: inf - inf would make the answer NaN."""
    total = 0.0
    for array in arrays:
        low = array.min(initial=0.0)
        if low == -np.inf:  # forbidden, not large
            low = array.min(where=array > -np.inf, initial=0.0)
        total += max(float(array.max(initial=0.0)), -float(low))
    if total > np.finfo(np.float64).max / 2.0:  # differences of sums must be numbers as well
        raise ValueError(
            "tables must hold scores that can be added up, one from each table: the largest add up to more than "
            "8.9e307. Divide all scores by a constant."
        )


def check_label_rows(name: str, rows: ArrayLike, n_labels: tuple[int, ...], lowest: int = 0) -> Codes:
    """Return label codes of shape (n_examples, n_nodes), each in [lowest, labels of its node), or raise an error."""
    codes: NDArray[Any] = np.asarray(rows)
    if codes.ndim != 2 or codes.shape[1] != len(n_labels) or not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(
            f"{name} must be integer codes of shape (n_examples, {len(n_labels)}), one column for each node. "
            f"Got shape {codes.shape} and dtype {codes.dtype} instead."
        )
    outside = (codes < lowest) | (codes >= np.asarray(n_labels))
    if outside.any():
        i, node = (int(at) for at in np.unravel_index(int(outside.argmax()), codes.shape))
        unknown = ", or be -1 if unknown" if lowest < 0 else ""
        raise ValueError(
            f"{name} of node {node} must lie in [0, {n_labels[node]}){unknown}. "
            f"Got {name}[{i}, {node}] = {codes[i, node]} instead."
        )
    return codes.astype(np.int32)
