"""What has to be known of points in partitions before a fit: sizes, classes, spread, and a sample of every class."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualfield.data.arrays import Floats
from dualfield.data.point_parts import PointPart, Rows, read_rows, rows_of_values
from dualfield.engines import Engine, Handles, Serial

# A class has at least so many rows in a sample, or all that it has.
_LEAST_OF_A_CLASS = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class PartFacts:
    """The facts of one partition; of labels in their order.

    Parameters
    ----------
    name : str
        What errors call it.
    n_features, n_bytes : int
        Columns, and memory of the rows.
    is_sparse : bool
        Whether rows are compressed, which may lack columns at the end.
    labels : array
        Its labels, sorted.
    counts, masses, sums : arrays
        Of each label: rows, their weights, and the sum of all their entries times weights.
    """

    name: str
    n_features: int
    n_bytes: int
    is_sparse: bool
    labels: NDArray[Any]
    counts: NDArray[np.int64]
    masses: Floats
    sums: Floats


def part_facts(part: Any) -> PartFacts:
    """Return the facts of a partition."""
    rows = read_rows(part)
    labels, codes = np.unique(rows.y, return_inverse=True)
    each = np.asarray(rows.X.sum(axis=1, dtype=np.float64)).ravel() * rows.weights
    return PartFacts(
        name=rows.name,
        n_features=int(rows.X.shape[1]),
        n_bytes=rows.n_bytes,
        is_sparse=bool(sparse.issparse(rows.X)),
        labels=labels,
        counts=np.bincount(codes, minlength=len(labels)),
        masses=np.asarray(np.bincount(codes, rows.weights, minlength=len(labels)), dtype=np.float64),
        sums=np.asarray(np.bincount(codes, each, minlength=len(labels)), dtype=np.float64),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class PointFacts:
    """The facts of all partitions.

    Parameters
    ----------
    n_features, n_bytes : int
        Columns, and memory of all rows.
    is_sparse : bool
        Whether rows are compressed.
    classes : array of shape (n_classes,)
        All labels, sorted.
    counts : int array of shape (n_parts, n_classes)
        Rows.
    masses, sums : arrays of shape (n_classes,)
        Weights of the rows, and the sum of their entries times weights.
    factors : array of shape (n_classes,), default=ones
        What weights of rows are multiplied by: C times the weight of the class.
    """

    n_features: int
    n_bytes: int
    is_sparse: bool
    classes: NDArray[Any]
    counts: NDArray[np.int64]
    masses: Floats
    sums: Floats
    factors: Floats = field(default_factory=lambda: np.ones(1))

    @classmethod
    def of(cls, parts: list[PartFacts]) -> PointFacts:
        """Merge the facts of partitions; raise if they do not have the same columns."""
        widths = [one.n_features for one in parts]
        width, first = max(widths), parts[int(np.argmax(widths))]
        for one in parts:
            if not len(one.labels):  # without rows, and perhaps without columns
                continue
            if one.n_features != width and not one.is_sparse:
                raise ValueError(f"{one.name} has {one.n_features} columns; expected {width}, as in {first.name}.")
            if one.is_sparse != first.is_sparse:
                kinds = ("sparse", "dense") if one.is_sparse else ("dense", "sparse")
                raise ValueError(f"{one.name} is {kinds[0]}, {first.name} is {kinds[1]}. All must be of one kind.")
        some = [one.labels for one in parts if len(one.labels)]
        kinds_of_labels = {labels.dtype.kind if labels.dtype.kind not in "iub" else "i" for labels in some}
        if len(kinds_of_labels) > 1:
            raise ValueError("Labels must be of one type in all partitions. Got numbers and text.")
        classes = np.unique(np.concatenate(some)) if some else np.zeros(0)
        counts, masses, sums = (np.zeros((len(parts), len(classes))) for _ in range(3))
        for at, one in enumerate(parts):
            codes = np.searchsorted(classes, one.labels)
            counts[at, codes], masses[at, codes], sums[at, codes] = one.counts, one.masses, one.sums
        return cls(
            n_features=width,
            n_bytes=sum(one.n_bytes for one in parts),
            is_sparse=first.is_sparse,
            classes=classes,
            counts=counts.astype(np.int64),
            masses=masses.sum(axis=0),
            sums=sums.sum(axis=0),
        )

    @property
    def n_rows(self) -> int:
        """Number of rows with a weight above zero."""
        return int(self.counts.sum())

    @property
    def mass(self) -> Floats:
        """Weight of each class in the loss."""
        return self.factors * self.masses

    @property
    def mean(self) -> float:
        """The mean of all entries, rows counted by their weights."""
        return float((self.factors * self.sums).sum() / (self.mass.sum() * self.n_features))

    def weighted(self, factors: Floats) -> PointFacts:
        """Return the same with weights of classes."""
        return replace(self, factors=factors)

    def read(self, part: Any) -> tuple[Rows, NDArray[np.int32]]:
        """Read the rows of a partition that count, with their weights in the loss, and the codes of their labels."""
        rows = read_rows(part)
        codes = np.searchsorted(self.classes, rows.y).astype(np.int32)
        X, weights = rows.X, self.factors[codes] * rows.weights
        if self.is_sparse and X.shape[1] < self.n_features:
            X = sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], self.n_features))
        counted = np.flatnonzero(weights > 0.0)
        if len(counted) < len(weights):
            X, weights, codes = X[counted], weights[counted], codes[counted]
        return replace(rows, X=X, y=self.classes[codes], weights=weights), codes

    def plan(self, number: int, seed: int) -> list[NDArray[np.int64]]:
        """Choose rows of each class for a sample of about so many: ranks among all rows of the class, sorted."""
        random, counts = np.random.default_rng(seed), np.where(self.mass > 0.0, self.counts.sum(axis=0), 0)
        share = np.ceil(number * counts / max(counts.sum(), 1)).astype(np.int64)
        wanted = np.minimum(np.maximum(share, _LEAST_OF_A_CLASS), counts)
        return [np.sort(random.choice(n, size=k, replace=False)) for n, k in zip(counts, wanted, strict=True)]


@dataclass(frozen=True, eq=False)
class PointSample:
    """Rows that stand for all: of each class some, with the weight of the class.

    Parameters
    ----------
    X : array or sparse array of shape (n, n_features)
        Points.
    codes : int32 array of shape (n,)
        Their classes.
    weights : array of shape (n,)
        Weights in the loss; those of a class sum to its weight.
    variance : float
        Of all entries of all rows, not of the sample alone.
    largest : float
        The largest magnitude of an entry in the sample.
    """

    X: Any
    codes: NDArray[np.int32]
    weights: Floats
    variance: float
    largest: float


def part_sample(part: Any, facts: PointFacts, ranks: list[NDArray[np.int64]]) -> tuple[Any, Any, Floats, float]:
    """Return the chosen rows of a partition, their codes and weights, and the squares of all entries about the mean."""
    rows, codes = facts.read(part)
    before = facts.counts[: rows.index].sum(axis=0)
    chosen = []
    for code, wanted in enumerate(ranks):
        own = np.flatnonzero(codes == code)
        first, last = np.searchsorted(wanted, [before[code], before[code] + len(own)])
        chosen.append(own[wanted[first:last] - before[code]])
    at = np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.intp)
    return rows.X[at], codes[at], rows.weights[at], _squares(rows.X, rows.weights, facts.mean)


def draw_sample(engine: Engine, parts: Any, facts: PointFacts, number: int, seed: int) -> PointSample:
    """Draw a sample of every class, the same for the same partitions and seed, in one pass over the rows."""
    handles = engine.map(part_sample, parts, facts, facts.plan(number, seed))
    every = list(engine.in_order(handles))
    engine.release(handles)
    found = [one for one in every if len(one[1])]
    some = [one[0] for one in found]
    X: Any = sparse.csr_array(sparse.vstack(some)) if facts.is_sparse else np.concatenate(some)
    codes = np.concatenate([one[1] for one in found])
    weights = np.concatenate([one[2] for one in found])
    drawn = np.bincount(codes, weights, minlength=len(facts.classes))
    squares = math.fsum(one[3] for one in every)
    entries = X.data if facts.is_sparse else X
    return PointSample(
        X,
        codes,
        weights * (facts.mass / np.where(drawn > 0.0, drawn, 1.0))[codes],
        squares / (float(facts.mass.sum()) * facts.n_features),
        float(np.abs(entries).max(initial=0.0)),
    )


def placed_parts(engine: Engine, parts: list[PointPart]) -> list[PointPart] | Handles:
    """Return partitions as an engine takes them: futures are those of rows then, and arrays are sent once."""
    here = isinstance(engine, Serial)
    names = [part.name for part in parts]
    if any(part.is_future for part in parts):
        if here or not all(part.is_future for part in parts):
            raise ValueError("Futures need the client of their cluster, and all partitions must be futures then.")
        each = [engine.map(rows_of_values, Handles((one.source,), (one.name,)), one.index, one.name) for one in parts]
        return Handles(tuple(one.items[0] for one in each), tuple(names))
    if not here and all(part.is_here for part in parts):
        return engine.map(read_rows, parts, keep=True, names=names)
    return parts


def kept_parts(
    engine: Engine, parts: list[PointPart] | Handles, facts: PointFacts, budget: float
) -> list[PointPart] | Handles:
    """Return the partitions, or their rows where they fit the budget, or are slow to read again."""
    if isinstance(parts, Handles) or any(part.is_here for part in parts):
        return parts
    if facts.n_bytes <= budget or any(part.is_slow for part in parts):
        return engine.map(read_rows, parts, keep=True, names=[part.name for part in parts])
    return parts


def _squares(X: Any, weights: Floats, mean: float) -> float:
    if bool(sparse.issparse(X)):
        stored = np.repeat(weights, np.diff(X.indptr))
        empty = float(weights @ (X.shape[1] - np.diff(X.indptr)))
        return float(stored @ np.square(X.data - mean)) + empty * mean**2
    step, total = max(1, 2**20 // max(int(X.shape[1]), 1)), 0.0
    for first in range(0, len(weights), step):
        block = np.subtract(X[first : first + step], mean, dtype=np.float64)
        total += float(weights[first : first + step] @ np.square(block).sum(axis=1))
    return total
