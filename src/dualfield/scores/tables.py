"""The tables of an HMM: their layout in the parameters of a linear chain, and their counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import xlogy

from dualfield.data import Batch
from dualfield.data.arrays import Codes, Floats, Ints
from dualfield.data.records import Fields, Record
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import Chain

# EM for sequences whose states are not all known: at most so many steps, until one gains less than this share.
EM_STEPS, EM_TOL = 100, 1e-6
_ROUNDING = 1e-9  # of sums of rows
_FIRST_SMOOTHING = 0.1  # at least, in the first step: what is impossible then stays so


class Tables(NamedTuple):
    """Anything that every entry of the tables has: counts, probabilities, logarithms, numbers of rows.

    Attributes
    ----------
    start : array of shape (n_states,)
        Of the first state.
    transition : array of shape (n_states, n_states)
        A row for each state: of the state that follows.
    emission : list of arrays of shape (n_states, n_symbols)
        One for each stream.
    """

    start: Floats
    transition: Floats
    emission: list[Floats]

    def map(self, function: Callable[..., Floats], *others: Tables) -> Tables:
        """Apply a function to each table, with those of others."""
        emission = [function(*tables) for tables in zip(self.emission, *(one.emission for one in others), strict=True)]
        start, transition = ([one[at] for one in (self, *others)] for at in (0, 1))
        return Tables(function(*start), function(*transition), emission)

    def every(self) -> list[Floats]:
        """Return the tables as a list."""
        return [self.start, self.transition, *self.emission]

    def record(self) -> Fields:
        """Return log-probabilities, whose rows must sum to one at most."""
        if not all(map(_is_table, self.every())):
            raise ValueError(
                "The model cannot be saved: its tables must have probabilities, whose rows sum to one at most."
            )
        emission = [{"table": table} for table in self.emission]
        return {"start": self.start, "transition": self.transition, "emission": emission}

    @classmethod
    def from_record(cls, record: Record, n_states: int, sizes: list[int]) -> Tables:
        """Build tables from their record, which is checked."""

        def table(one: Record, name: str, *shape: int) -> Floats:
            found = np.array(one.array(name, np.float64, shape))
            what = f"array {one.place(name)!r} must have logarithms of probabilities in rows that sum to one."
            record.check(_is_table(found), what)
            return found

        streams = record.children("emission")
        record.check(len(streams) == len(sizes), f"it must have emissions of {len(sizes)} streams.")
        emission = [table(one, "table", n_states, size) for one, size in zip(streams, sizes, strict=True)]
        return cls(table(record, "start", n_states), table(record, "transition", n_states, n_states), emission)


def _is_table(table: Floats) -> bool:
    """Whether rows are logarithms of probabilities that sum to one at most: what a file must have, and a model has."""
    # Rounding may leave the logarithm of a probability of one a little above 0.
    return bool(table.size and (table <= _ROUNDING).all() and (np.exp(table).sum(axis=-1) <= 1.0 + _ROUNDING).all())


class TableLayout:
    """Layout of the tables in the parameters of a linear chain with one column for each symbol.

    Behind the columns of each stream there is one for unknown symbols, which is no part of a table. Scores of the last
    state are 0.

    Parameters
    ----------
    n_states : int
        Number of states.
    sizes : list of int
        Symbols of each stream.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.scores.tables import TableLayout, Tables
    >>> layout = TableLayout(2, [3])
    >>> tables = Tables(np.ones(2), np.ones((2, 2)), [np.ones((2, 3))])
    >>> layout.unpack(layout.pack(tables)).emission[0].shape
    (2, 3)
    """

    def __init__(self, n_states: int, sizes: list[int]) -> None:
        self.n_states, self.sizes = n_states, sizes

    @cached_property
    def score_map(self) -> LinearScores:
        """The score map of the chain."""
        n_columns = sum(self.sizes) + len(self.sizes)
        return LinearScores(Chain(self.n_states), FeatureTable.all(n_columns, self.n_states), with_ends=True)

    def pack(self, tables: Tables) -> Floats:
        """Return the parameters; those of unknown symbols are 0."""
        nothing = np.zeros((1, self.n_states))
        columns = [part for table in tables.emission for part in (table.T, nothing)]
        return self.score_map.pack(np.vstack(columns).ravel(), tables.transition.ravel(), tables.start)

    def with_unknown(self, parameters: Floats, unknown: list[Floats]) -> Floats:
        """Return parameters with those of unknown symbols, which are given by stream."""
        changed = parameters.copy()
        for start, size, scores in zip(self.starts, self.sizes, unknown, strict=True):
            changed[self._places[start + size]] = scores
        return changed

    def unpack(self, parameters: Floats) -> Tables:
        """Return the tables in parameters."""
        weights, n = self.score_map.unpack(parameters), self.n_states
        columns, emission, at = weights.node.reshape(-1, n), [], 0
        for size in self.sizes:
            emission.append(np.ascontiguousarray(columns[at : at + size].T))
            at += size + 1
        return Tables(weights.start, weights.cliques.reshape(n, n), emission)

    def rows(self) -> Ints:
        """Return the row of each parameter: that of the start, of states, then of states by stream; -1: none."""
        n = self.n_states
        number = 2.0 + np.arange(n)[:, None]  # from 1, since what pack leaves open is 0
        emission = [np.tile(number + n * (1 + k), (1, size)) for k, size in enumerate(self.sizes)]
        return self.pack(Tables(np.ones(n), np.tile(number, (1, n)), emission)).astype(np.int64) - 1

    def counts(self, batch: Batch, states: NDArray[np.int32], weights: Floats) -> Tables:
        """Count starts, transitions and emissions, each sequence with its weight."""
        assert batch.indices is not None
        n, each = self.n_states, np.repeat(weights, batch.lengths)
        first = batch.offsets[:-1]
        later = np.ones(batch.n_nodes, dtype=bool)
        later[first] = False
        at = np.flatnonzero(later)
        pairs = n * states[at - 1].astype(np.int64) + states[at]
        symbols, emission = batch.indices.reshape(batch.n_nodes, -1), []
        for k, start in enumerate(self.starts):
            entries = self.sizes[k] * states.astype(np.int64) + (symbols[:, k] - start)
            found = _sums(entries, each, n * self.sizes[k])
            emission.append(found.reshape(n, self.sizes[k]))
        return Tables(_sums(states[first], weights, n), _sums(pairs, each[at], n * n).reshape(n, n), emission)

    def expected_counts(
        self, batch: Batch, parameters: Floats, allowed: NDArray[np.bool_], weights: Floats, n_threads: int
    ) -> tuple[Tables, float]:
        """Return the expected counts under a model given the states that are known, and the log-likelihood."""
        scores = self.score_map.scores(parameters, batch, n_threads=n_threads).only(allowed)
        answer = self.score_map.structure.marginals(scores, cliques="sum", n_jobs=n_threads)
        assert answer.clique is not None
        node = answer.node * np.repeat(weights, batch.lengths)[:, None]
        columns = np.asarray((batch.to_csr().T @ node).T)
        counted = Tables(
            weights @ answer.node[batch.offsets[:-1]],
            np.tensordot(weights, answer.clique, 1),
            [columns[:, start : start + size] for start, size in zip(self.starts, self.sizes, strict=True)],
        )
        return counted, float(weights @ answer.log_partition)

    def differences(self, batch: Batch, states: Codes, others: Codes) -> scipy.sparse.csr_array:
        """Return how much more often sequences use each parameter with states than with others, as one row."""
        assert batch.indices is not None
        differs, first = states != others, batch.offsets[:-1]
        turns = differs.copy()
        turns[1:] |= differs[:-1]
        turns[first] = False
        nodes, later, begun = np.flatnonzero(differs), np.flatnonzero(turns), first[differs[first]]
        symbols, n = batch.indices.reshape(batch.n_nodes, -1)[nodes], self.n_states
        cliques = self.score_map.shared_begin
        places = [
            part
            for codes in (states.astype(np.int64), others.astype(np.int64))
            for part in (
                self._places[symbols, codes[nodes, None]].ravel(),
                cliques + n * codes[later - 1] + codes[later],
                cliques + n * n + codes[begun],
            )
        ]
        every = np.concatenate(places)
        values = np.repeat([1.0, -1.0], len(every) // 2)
        shape = (1, self.score_map.n_parameters)
        row = scipy.sparse.coo_array((values, (np.zeros_like(every), every)), shape=shape).tocsr()
        row.eliminate_zeros()
        return row

    @cached_property
    def _places(self) -> Ints:
        """Where the parameter of each column of the batch with each state is."""
        return np.asarray(self.score_map.node_places.reshape(-1, self.n_states), dtype=np.int64)

    @property
    def starts(self) -> list[int]:
        """The first column of each stream."""
        return [sum(self.sizes[:k]) + k for k in range(len(self.sizes))]

    def em_counts(
        self,
        batch: Batch,
        states: NDArray[np.int32],
        allowed: NDArray[np.bool_],
        weights: Floats,
        smoothing: Tables,
        n_threads: int,
    ) -> Tables:
        """Return the counts with which EM ends, the known states fixed.

        Each step adds the smoothing to the expected counts: log-likelihood plus smoothing times the logarithms of the
        tables never falls. The first step takes the share of each state and of each symbol from what is known.
        """
        known = states >= 0
        first = self._known_counts(batch, np.maximum(states, 0), known, weights)
        tables = normalised(first.map(np.add, smoothing.map(lambda one: np.maximum(one, _FIRST_SMOOTHING))))
        before = -np.inf
        for _ in range(EM_STEPS):
            counts, value = self.expected_counts(batch, self.pack(logarithms(tables)), allowed, weights, n_threads)
            value += sum(float(xlogy(s, p).sum()) for s, p in zip(smoothing.every(), tables.every(), strict=True))
            if value - before <= EM_TOL * abs(value):
                break
            before, tables = value, normalised(counts.map(np.add, smoothing))
        return counts

    def _known_counts(
        self, batch: Batch, states: NDArray[np.int32], known: NDArray[np.bool_], weights: Floats
    ) -> Tables:
        """Count what is known: nodes, and pairs of neighbours both of which are."""
        assert batch.indices is not None
        # Every run of known nodes is a sequence of its own; starts are counted for those at the start of one.
        new = known & ~np.concatenate([[False], known[:-1]])
        new[batch.offsets[:-1]] |= known[batch.offsets[:-1]]
        kept, width = np.flatnonzero(known), len(self.sizes)
        begins = np.flatnonzero(new[kept])
        offsets = np.append(begins, len(kept)).astype(np.int64)
        owner = np.searchsorted(batch.offsets, kept[begins], side="right") - 1
        indices = batch.indices.reshape(-1, width)[kept].ravel()
        runs = Batch(offsets, batch.n_columns, indptr=width * np.arange(len(kept) + 1), indices=indices)
        counts = self.counts(runs, states[kept], weights[owner])
        first = batch.offsets[:-1][known[batch.offsets[:-1]]]
        begun = _sums(states[first], weights[known[batch.offsets[:-1]]], self.n_states)
        return counts._replace(start=begun)


def _sums(places: NDArray[Any], weights: Floats, size: int) -> Floats:
    return np.bincount(places, weights, minlength=size).astype(np.float64)


def normalised(tables: Tables) -> Tables:
    """Divide rows by their sums; a row of which nothing is known becomes uniform."""

    def divided(table: Floats) -> Floats:
        sums = table.sum(axis=-1, keepdims=True)
        return np.where(sums > 0.0, table / np.where(sums > 0.0, sums, 1.0), 1.0 / table.shape[-1])

    return tables.map(divided)


def logarithms(tables: Tables) -> Tables:
    """Return the logarithms of probabilities; -inf for 0."""
    with np.errstate(divide="ignore"):
        return tables.map(np.log)
