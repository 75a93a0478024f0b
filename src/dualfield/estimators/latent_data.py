"""From what users pass to a model with sub-states to its problem, and from states back to labels."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data import Batch, Labels
from dualfield.data.input_forms import unwrapped
from dualfield.data.records import Fields, Record
from dualfield.estimators.crf_data import TrainingData
from dualfield.estimators.tagger import SequenceTagger
from dualfield.features import Template
from dualfield.objectives.latent_chain import StateProblem
from dualfield.objectives.latent_states import LatentChain, LatentMulticlass, StateSpace
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import Scores
from dualfield.structures.checks import n_threads

Floats = NDArray[np.float64]


class StateTagger(SequenceTagger):
    """A tagger whose labels are states, written as label/sub-state: all that can be asked about its weights and paths.

    Parameters
    ----------
    n_jobs : int, default=None
        Threads.
    template : Template or str, default=None
        Makes attributes of raw columns.
    temperature : float, default=1.0
        T of probabilities.
    """

    def __init__(self, n_jobs: int | None = None, template: Any = None, temperature: float = 1.0) -> None:
        self.n_jobs = n_jobs
        self.template = template
        self.temperature = temperature

    def fit(self, X: Any, y: Any) -> StateTagger:
        """Refuse: nobody knows the states of training examples."""
        raise TypeError("A tagger of states is a part of LatentStructuredSVM or LatentCRF. Fit one of these.")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refuse: the states are saved with the labels that they belong to."""
        raise TypeError("A tagger of states is a part of LatentStructuredSVM or LatentCRF. Save one of these.")

    def name_states(self, labels: Labels, space: StateSpace) -> None:
        """Set the labels to those of states."""
        sizes = zip(labels.classes.tolist(), space.sizes.tolist(), strict=True)
        self.classes_ = np.array([f"{name}/{h}" for name, size in sizes for h in range(size)])
        self.labels_ = Labels(self.classes_, "str")

    def _check_restored(self) -> None:
        if not isinstance(self.template, (str, Template, type(None))):
            raise TypeError(f"The template must be None, a Template or its text. Got {self.template!r:.100}.")
        if self.template is not None:
            self._template()


def one_node_each(X: Any, lengths: ArrayLike | None) -> tuple[Any, ArrayLike | None]:
    """Return rows as examples of one node: matrices as they are, lists wrapped."""
    if lengths is not None:
        raise ValueError("lengths must be None: every row of X is an example of its own.")
    plain: Any = unwrapped(X)
    if isinstance(plain, np.ndarray) or bool(scipy.sparse.issparse(plain)):
        if plain.ndim != 2:
            raise ValueError(f"X must be a matrix with a row for each example. Got shape {plain.shape}.")
        return plain, np.ones(plain.shape[0], dtype=np.int64)
    return [[row] if not isinstance(row, np.ndarray) else row[None] for row in X], None


@dataclass(frozen=True, eq=False)
class StateData:
    """Training data of labels, and the states behind them."""

    data: TrainingData
    space: StateSpace
    score_map: LinearScores
    single: bool
    arrays: bool

    @classmethod
    def read(
        cls,
        base: Any,
        latent: LatentChain | LatentMulticlass,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        lengths: ArrayLike | None,
    ) -> StateData:
        """Read and check everything with the reader of the base model, and lay out the states."""
        single, arrays = isinstance(latent, LatentMulticlass), isinstance(y, np.ndarray)
        if single:
            X, lengths = one_node_each(X, lengths)
            flat = unwrapped(y)
            y = [[label] for label in (flat.tolist() if isinstance(flat, np.ndarray) else flat)]
        data: TrainingData = base._training_data(X, y, sample_weight, lengths)
        if single:  # all columns have weights for all classes, as in the model without components
            n = len(data.labels)
            table, none = FeatureTable.all(data.nodes.n_columns, n), np.zeros(n * n, dtype=bool)
            data = data._replace(score_map=LinearScores(data.structure, table, None, none))
        name = "n_components" if single else "n_substates"
        space = StateSpace.of(type(latent).__name__, name, getattr(latent, name), data.labels)
        return cls(data, space, space.score_map(data.score_map), single, arrays)

    def problem(self, temperature: float, threads: int, *, plain: bool = False) -> StateProblem:
        """Return the objective; plain: without sub-states."""
        data, label = self.data, self.space.label
        allowed = data.allowed
        if allowed is None:
            allowed = np.zeros((len(data.codes), len(data.labels)), dtype=bool)
            allowed[np.arange(len(data.codes)), data.codes] = True
        cost, score_map = data.cost, data.score_map
        if not plain:
            allowed, score_map = np.ascontiguousarray(allowed[:, label]), self.score_map
            cost = None if cost is None else np.ascontiguousarray(cost[np.ix_(label, label)])
        return StateProblem(data.nodes, data.pairs, score_map, allowed, data.weights, cost, temperature, threads)

    def tagger(self, parameters: Floats, base: Any, n_jobs: int | None) -> StateTagger:
        """Return a model over states with these weights."""
        data = self.data
        tagger = StateTagger(n_jobs, getattr(base, "template", None), getattr(base, "temperature", 1.0))
        tagger.name_states(data.labels, self.space)
        tagger.structure_, tagger.score_map_, tagger.parameters_ = self.score_map.structure, self.score_map, parameters
        tagger.n_features_ = self.score_map.n_features
        tagger.vocabulary_ = data.nodes.vocabulary
        tagger.pair_vocabulary_ = None if data.pairs is None else data.pairs.vocabulary
        return tagger


@dataclass(frozen=True, eq=False)
class StateDecoder:
    """A trained model with sub-states: from inputs to states, to labels, to sub-states."""

    tagger: StateTagger
    labels: Labels
    space: StateSpace
    single: bool
    arrays: bool

    def record(self) -> Fields:
        """Return what the model consists of."""
        template: Any = self.tagger.template
        return {
            "kind": "states",
            "labels": self.labels.record(),
            "sizes": self.space.sizes.tolist(),
            "single": bool(self.single),
            "arrays": bool(self.arrays),
            "template": template.record() if isinstance(template, Template) else template,
            "temperature": float(self.tagger.temperature),
            **self.tagger._weights_record(),
        }

    @classmethod
    def from_record(cls, record: Record, n_jobs: int | None) -> StateDecoder:
        """Make a model of its record, all of which is read and checked."""
        labels = Labels.from_record(record.child("labels"))
        sizes = record.items("sizes", int, len(labels))
        record.check(all(size >= 1 for size in sizes), f"it must have sub-states for each of {len(labels)} labels.")
        template: Any = None
        if record.has("template"):
            is_text = isinstance(record.json("template"), str)
            template = record.text("template") if is_text else Template.from_record(record.child("template"))
        tagger = StateTagger(n_jobs, template, record.number("temperature", above=0.0))
        tagger._restore_weights(record, sum(sizes))  # no larger than the weights in the file
        record.check(tagger.structure_.no_pairs is None, "sub-states need a chain of order 1, or a tree.")
        tagger._check_restored()
        space = StateSpace(np.array(sizes, dtype=np.int64))
        tagger.name_states(labels, space)
        tagger._finish()
        return cls(tagger, labels, space, record.flag("single"), record.flag("arrays"))

    def read(self, X: Any, lengths: ArrayLike | None) -> tuple[Batch, Batch | None]:
        """Read inputs as in training."""
        if self.single:
            X, lengths = one_node_each(X, lengths)
        return self.tagger._read(X, lengths)

    def best(self, X: Any, lengths: ArrayLike | None) -> tuple[Any, Any]:
        """Return labels and sub-states of the best states."""
        batch, pairs = self.read(X, lengths)
        bound = self.tagger.score_map_.bind(batch, pairs)
        states = _native.tag(bound, self.tagger.parameters_, n_threads(self.tagger.n_jobs))
        return self.named(self.space.label[states], batch), self.cut(self.space.substates(states), batch)

    def completed(self, X: Any, y: Any, lengths: ArrayLike | None) -> Any:
        """Return the sub-states of the best states with given labels."""
        batch, pairs = self.read(X, lengths)
        offsets = None if self.single else batch.offsets
        codes = self.labels.encode(y, offsets)
        if len(codes) != batch.n_nodes:
            raise ValueError(f"y must have a label for each of the {batch.n_nodes} rows of X. Got {len(codes)}.")
        scores = self.scores(batch, pairs)
        node = np.where(self.space.label[None, :] == codes[:, None], scores.node, -np.inf)
        only = Scores(node, scores.offsets, scores.transition, scores.start, scores.stop)
        states = self.tagger.structure_.argmax(only, n_jobs=self.tagger.n_jobs)
        return self.cut(self.space.substates(states), batch)

    def marginals(self, X: Any, lengths: ArrayLike | None, temperature: float) -> tuple[Batch, Floats]:
        """Return the probability of each label at each node: the sum over its sub-states."""
        batch, pairs = self.read(X, lengths)
        answer = self.tagger.structure_.marginals(
            self.scores(batch, pairs), temperature=temperature, n_jobs=self.tagger.n_jobs
        )
        return batch, np.add.reduceat(answer.node, self.space.first, axis=1)

    def scores(self, batch: Batch, pairs: Batch | None) -> Scores:
        """Return the scores of states."""
        return self.tagger.score_map_.scores(self.tagger.parameters_, batch, pairs, n_threads(self.tagger.n_jobs))

    def named(self, codes: NDArray[Any], batch: Batch) -> Any:
        """Return labels in the form in which those of training came."""
        if not self.single:
            return self.labels.decode(codes, batch.offsets)
        names = self.labels.classes[codes]
        return names if self.arrays else names.tolist()

    def cut(self, values: NDArray[Any], batch: Batch) -> Any:
        """Return values of nodes as one array for each example, or in a row for single nodes."""
        if self.single:
            return values
        return [values[a:b] for a, b in itertools.pairwise(batch.offsets.tolist())]

    def accuracy(self, found: Any, y: Any) -> float:
        """Return the share of right labels."""
        if len(found) != len(y):
            raise ValueError(f"y must have an entry for each of the {len(found)} examples. Got {len(y)}.")
        pairs = list(zip(found, y, strict=True))
        if not self.single:
            for i, (one, two) in enumerate(pairs):
                if len(one) != len(two):
                    raise ValueError(f"y[{i}] has {len(two)} labels; X[{i}] has {len(one)} nodes.")
            pairs = [both for one, two in pairs for both in zip(one, two, strict=True)]
        return float(np.mean([a == b for a, b in pairs])) if pairs else 1.0
