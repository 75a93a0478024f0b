"""A hidden Markov model: tables of log-probabilities that answer about states, observations and both together."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.arrays import Floats
from dualfield.data.observations import Observations, read_streams
from dualfield.data.records import Fields, Record
from dualfield.data.symbols import SymbolTable
from dualfield.models.generative.state_filter import FilterStep, impossible
from dualfield.models.structured import StructuredModel
from dualfield.models.temperature_scaling import Calibration
from dualfield.scores.stored import LinearWeights, Scored
from dualfield.scores.tables import TableLayout, Tables, normalised
from dualfield.structures import Scores


@dataclass(frozen=True, eq=False, kw_only=True)
class HiddenMarkovModel(StructuredModel):
    """A structured model whose weights are tables of log-probabilities, and whose input is symbols.

    Rows that sum to less than one are used as they are: probabilities of states are those given that nothing was
    unknown. To normalise rows would change the predictions that they were trained for.

    Parameters
    ----------
    observations : Observations
        The symbols that have columns.
    layout : TableLayout
        Where the tables are among the parameters.
    unknown : {"skip", "mass", "error"}
        What becomes of symbols not seen in training.

    Examples
    --------
    >>> from dualfield import DiscriminativeHMM
    >>> model = DiscriminativeHMM(eta=0.0).fit([["a", "b"]], [["x", "y"]]).model_
    >>> model.predict([["b", "a"]])
    [['y', 'x']]
    """

    observations: Observations
    layout: TableLayout
    unknown: str

    @classmethod
    def of(
        cls,
        observations: Observations,
        labels: Labels,
        layout: TableLayout,
        parameters: Floats,
        floor: float,
        unknown: str,
    ) -> HiddenMarkovModel:
        """Return the model with given tables; unknown symbols score what rows lack to one, at least the floor."""
        lacks = [np.log(np.maximum(missing_mass(table), floor)) for table in layout.unpack(parameters).emission]
        return cls(
            labels=labels,
            structure=layout.score_map.structure,
            vocabulary=Vocabulary.from_attributes(observations.attributes()),
            pair_vocabulary=None,
            weights=LinearWeights(layout.score_map, layout.with_unknown(parameters, lacks)),
            observations=observations,
            layout=layout,
            unknown=unknown,
        )

    @property
    def tables(self) -> Tables:
        """The tables of log-probabilities."""
        return self.layout.unpack(self.parameters)

    @property
    def n_features(self) -> int:
        """Number of entries of the tables."""
        return sum(table.size for table in self.tables.every())

    @property
    def symbols(self) -> Any:
        """The symbols with columns of their own, sorted; a list for several streams."""
        return single([table.symbols for table in self.observations.tables])

    @property
    def rare_classes(self) -> Any:
        """The classes of rare symbols; a list for several streams."""
        return single([list(table.classes) for table in self.observations.tables])

    # From input to scores

    def read(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> tuple[Batch, Batch | None]:
        """Turn observations into rows of the columns of symbols."""
        return self.observations.batch(read_streams(X, lengths), self.unknown), None

    def scored(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Scored:
        """Read observations."""
        return Scored(self.score_map, self.parameters, self.read(X, lengths)[0], None)

    def plain_scores(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Scores:
        """Return scores, also of sequences that are impossible."""
        return super().scores(X, lengths, n_threads)

    def scores(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        n_threads: int = 1,
        *,
        known: Any = None,
        name: str = "known",
    ) -> Scores:
        """Return scores in which no other state competes with known ones; every sequence must be possible."""
        scores = self.plain_scores(X, lengths, n_threads)
        if known is not None:
            scores = scores.only(self.allowed_labels(known, scores.shape, name))
        if np.isfinite(self.parameters).all():
            return scores
        possible = self.structure.is_possible(scores, n_jobs=n_threads)
        if not possible.all():
            raise ValueError(impossible(f"X[{int(possible.argmin())}]"))
        return scores

    # Answers

    def predict(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None) -> Any:
        """Return the most probable states that agree with known ones."""
        if known is None and np.isfinite(self.parameters).all():
            return super().predict(X, lengths, n_threads)
        scores = self.scores(X, lengths, n_threads, known=known)
        return self.decoded(self.structure.argmax(scores, n_jobs=n_threads), scores.shape)

    def predict_proba(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        n_threads: int = 1,
        *,
        pairwise: bool = False,
        known: Any = None,
    ) -> Any:
        """Return the probability of each state at each node, given all observations and known states."""
        return self.marginals(self.scores(X, lengths, n_threads, known=known), n_threads, pairwise=pairwise)

    def filter(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> list[Floats]:
        """Return the probability of each state given the observations so far."""
        scores = self.plain_scores(X, lengths, n_threads)
        assert scores.transition is not None
        assert scores.start is not None
        T = self.probability_temperature
        step = FilterStep(scores.start / T, scores.transition.reshape(scores.n_labels, scores.n_labels) / T)
        order = np.argsort(-scores.lengths, kind="stable")  # the longest first: those still running are a range
        lengths_left = scores.lengths[order]
        out = np.empty_like(scores.node)
        logs: Floats | None = None
        for t in range(int(lengths_left[0])):
            running = int(np.searchsorted(-lengths_left, -t, side="left"))
            at = scores.offsets[order[:running]] + t
            logs, totals = step(None if logs is None else logs[:running], scores.node[at] / T)
            if not np.isfinite(totals).all():
                sequence = int(order[int(np.argmin(np.isfinite(totals)))])
                raise ValueError(impossible(f"X[{sequence}]", f" up to position {t}"))
            out[at] = np.exp(logs)
        return [out[a:b] for a, b in itertools.pairwise(scores.offsets.tolist())]

    def new_sequences(self, lengths: NDArray[np.int64], rng: np.random.RandomState) -> tuple[list[Any], list[Any]]:
        """Draw observations and states of new sequences; rows that sum to less than one are normalised first."""
        tables = normalised(self.tables.map(np.exp))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        states = _drawn_states(tables, lengths, offsets, rng)
        streams = [_drawn(table[states], rng) for table in tables.emission]
        return self.observations.decode(streams, offsets), self.labels.decode(states, offsets)

    # Records

    def record(self) -> Fields:
        """Return what the model consists of."""
        return {
            "labels": self.labels.record(),
            "streams": [table.record() for table in self.observations.tables],
            "tables": self.tables.record(),
            "calibration": None if self.calibration is None else self.calibration.record(),
        }

    @classmethod
    def from_record(
        cls, record: Record, rare: str | Callable[[Any], Any] | None = None, floor: float = 1e-11, unknown: str = "skip"
    ) -> HiddenMarkovModel:
        """Make a model of its record, which is checked."""
        labels, streams = Labels.from_record(record.child("labels")), record.children("streams")
        record.check(bool(streams), "it must have records of streams of symbols, at least one.")
        observations = Observations([SymbolTable.from_record(one, rare) for one in streams])
        layout = TableLayout(len(labels), observations.sizes)
        tables = Tables.from_record(record.child("tables"), len(labels), observations.sizes)
        found = Calibration.from_record(record.child("calibration")) if record.has("calibration") else None
        return replace(cls.of(observations, labels, layout, layout.pack(tables), floor, unknown), calibration=found)


def missing_mass(table: Floats) -> Floats:
    """Return what the rows of a table of log-probabilities lack to one."""
    return np.asarray(np.maximum(1.0 - np.exp(table).sum(axis=-1), 0.0))


def single(parts: list[Any]) -> Any:
    """Return the one part that there is, or all of them."""
    return parts[0] if len(parts) == 1 else parts


def _drawn(rows: Floats, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Draw one entry of each row of probabilities."""
    sums = np.cumsum(rows, axis=1)
    # Scaled by the last sum, which rounding may leave below 1; never an entry of probability 0.
    places = (sums <= rng.random_sample(len(rows))[:, None] * sums[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(places, rows.shape[1] - 1), dtype=np.int64)


def _drawn_states(
    tables: Tables, lengths: NDArray[np.int64], offsets: NDArray[np.int64], rng: np.random.RandomState
) -> NDArray[np.int32]:
    """Draw the states of all sequences, step by step."""
    states = np.empty(int(offsets[-1]), dtype=np.int32)
    order = np.argsort(-lengths, kind="stable")
    for t in range(int(lengths.max())):
        running = order[: int(np.searchsorted(-lengths[order], -t, side="left"))]
        at = offsets[running] + t
        rows = np.tile(tables.start, (len(at), 1)) if t == 0 else tables.transition[states[at - 1]]
        states[at] = _drawn(rows, rng)
    return states
