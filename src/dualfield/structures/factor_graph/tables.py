"""The scores, evidence and labels that a graph is asked with: their checks, and their cuts into chunks of examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.arrays import Codes, Floats
from dualfield.structures.checks import as_floats
from dualfield.structures.factor_graph.elimination import Step
from dualfield.structures.factor_graph.passes import Parts


@dataclass(frozen=True, eq=False)
class GraphTables:
    """Checked scores of all cliques, and labels that are known.

    ``tables[c]`` has shape (n_examples, labels of each node of clique c), or 1 in place of n_examples if all examples
    share it; ``evidence`` has shape (n_examples, n_nodes), or is None.
    """

    n_labels: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    tables: list[Floats]
    evidence: Codes | None
    n_examples: int

    def parts(self, steps: Sequence[Step], rows: slice) -> Parts:
        """Return the scores of some examples by the node with which they are eliminated, examples last."""
        parts: Parts = {}
        for step in steps:
            for index in step.cliques:
                table = self.tables[index]
                cut = table[rows] if len(table) > 1 else table
                parts.setdefault(step.node, []).append((self.cliques[index], np.moveaxis(cut, 0, -1)))
        if self.evidence is not None:
            for node, known in enumerate(self.evidence[rows].T):
                if (known >= 0).any():
                    other = (known >= 0) & (known != np.arange(self.n_labels[node])[:, None])
                    parts.setdefault(node, []).append(((node,), np.where(other, -np.inf, 0.0)))
        return parts

    def chunks(self, size: int) -> Iterator[slice]:
        """Return slices of up to ``size`` examples."""
        for start in range(0, self.n_examples, size):
            yield slice(start, min(start + size, self.n_examples))


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
    arrays = [_check_shape(f"tables[{c}]", values, cliques[c], n_labels) for c, values in enumerate(tables)]
    known = None if evidence is None else check_label_rows("evidence", evidence, n_labels, lowest=-1)
    counts = {f"tables[{c}]": len(array) for c, array in enumerate(arrays) if array.ndim > len(cliques[c])}
    if known is not None:
        counts["evidence"] = len(known)
    if labels is not None:
        counts["labels"] = len(np.asarray(labels))
    first = next(iter(counts), None)
    for name, count in counts.items():
        if first is not None and count != counts[first]:
            raise ValueError(
                f"{name} has {count} examples; expected {counts[first]}, as in {first}. A table that all examples "
                f"share has no axis for them."
            )
    n_examples = 1 if first is None else counts[first]
    whole = [array if array.ndim > len(cliques[c]) else array[None] for c, array in enumerate(arrays)]
    for c, array in enumerate(whole):
        _check_values(f"tables[{c}]", array, cliques[c], shared=arrays[c].ndim == len(cliques[c]))
    _check_sums(whole)
    return GraphTables(n_labels, cliques, whole, known, n_examples)


def _check_shape(name: str, values: ArrayLike, clique: tuple[int, ...], n_labels: tuple[int, ...]) -> Floats:
    array = as_floats(name, values)
    shape = tuple(n_labels[node] for node in clique)
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
