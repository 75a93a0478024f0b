"""Labels of sequences by linear scores: what predictions of a saved model need, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.checks import check_number
from dualfield.data.mapped_vocabulary import read_vocabulary
from dualfield.data.records import Record
from dualfield.features import Template
from dualfield.scores import LinearScores
from dualfield.scores.stored import Scored, StoredWeights
from dualfield.structures import Chain, Scores

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class SequenceTagger:
    """A chain with linear scores of attributes, read from the record of a conditional random field.

    It predicts as the estimator does that was saved. It knows neither solvers nor scikit-learn, whose import takes
    longer than to tag a few sentences.

    Parameters
    ----------
    labels : Labels
        Their names.
    structure : Chain
        Which labels may follow each other.
    vocabulary, pair_vocabulary : Vocabulary or None
        Attributes of nodes, and those that score pairs of labels.
    weights : StoredWeights
        Where the weights are.
    whole : tuple of (LinearScores, array), or None
        All weights; None: they are looked up in a mapped file, as a batch needs them.
    template : Template or None
        What makes attributes of columns; None: items come with attributes.
    temperature : float
        Scores are divided by it.
    n_threads : int
        Number of threads.
    """

    labels: Labels
    structure: Chain
    vocabulary: Vocabulary
    pair_vocabulary: Vocabulary | None
    weights: StoredWeights
    whole: tuple[LinearScores, Floats] | None
    template: Template | None
    temperature: float
    n_threads: int

    @classmethod
    def from_record(cls, record: Record, n_threads: int = 1) -> SequenceTagger | None:
        """Return the tagger in the record of a CRF; None if it is no chain, or not linear in attributes."""
        parameters, model = record.child("parameters"), record.child("model")
        is_sequence = model.child("structure").text("kind") == Chain.name
        if not is_sequence or model.has("expansion") or not model.has("vocabulary"):
            return None
        labels, structure = Labels.from_record(model.child("labels")), Chain.from_record(model.child("structure"))
        n_labels, found = len(labels), structure.n_labels
        model.check(found == n_labels, f"its structure must be a chain of {n_labels} labels. Got {found}.")
        weights = StoredWeights(model.child("weights"), structure)
        vocabulary = read_vocabulary(model.child("vocabulary"), weights.node.n_columns)
        kind, n_pairs = model.text("pair_attributes", ("none", "shared", "own")), None
        if weights.pair is not None:
            n_pairs = weights.pair.n_columns
        pair_vocabulary = vocabulary if kind == "shared" else None
        if kind == "own":
            own = model.child("pair_vocabulary")
            pair_vocabulary = read_vocabulary(own, own.shape("offsets")[0] - 1 if n_pairs is None else n_pairs)
        good = kind != "shared" or n_pairs in (weights.node.n_columns, None)
        model.check(good, f"it has {n_pairs} columns of pairs for {weights.node.n_columns} attributes.")
        template = _template(parameters)
        good = (kind == "own") == (template is not None and template.has_pairs)
        model.check(good, "its template does not make the attributes that it has weights for.")
        temperature = parameters.json("temperature")
        check_number("CRF", "temperature", temperature, 0.0, open_low=True)
        return cls(
            labels=labels,
            structure=structure,
            vocabulary=vocabulary,
            pair_vocabulary=pair_vocabulary,
            weights=weights,
            whole=None if record.source.is_mapped else weights.whole(),
            template=template,
            temperature=float(temperature),
            n_threads=n_threads,
        )

    @property
    def classes(self) -> NDArray[Any]:
        """The names of the labels."""
        return self.labels.classes

    def predict(self, X: Any) -> list[Any]:
        """Return the most probable labelling of each sequence."""
        score_map, parameters, nodes, pairs = self._scored(X)
        codes = _native.tag(score_map.bind(nodes, pairs), parameters, self.n_threads)
        return list(self.labels.decode(codes, nodes.offsets))

    def predict_proba(self, X: Any) -> list[Floats]:
        """Return the probability of each label at each node, an array of shape (T_i, n_labels) for each sequence."""
        scores = self._scores(X)
        answer = self.structure.marginals(scores, temperature=self.temperature, n_jobs=self.n_threads)
        return np.split(answer.node, scores.offsets[1:-1])

    def k_best(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        """Return up to k labellings of each sequence with their probabilities, best first."""
        scores = self._scores(X)
        best = self.structure.k_best(scores, k, n_jobs=self.n_threads)
        total = self.structure.log_partition(scores, temperature=self.temperature, n_jobs=self.n_threads)
        probability = np.exp((best.scores - total[:, None]) / self.temperature)
        ranked = [self.labels.decode(np.maximum(codes, 0), scores.offsets) for codes in best.labels]
        return [
            [(ranked[r][i], float(probability[i, r])) for r in np.flatnonzero(np.isfinite(best.scores[i]))]
            for i in range(scores.n_examples)
        ]

    def _scores(self, X: Any) -> Scores:
        read = self._scored(X)
        return read.score_map.scores(read.parameters, read.nodes, read.pairs, self.n_threads)

    def _scored(self, X: Any) -> Scored:
        """Read input, and find the weights that score it."""
        if self.whole is None:
            nodes, pairs = self._read(X, None, None)
            return self.weights.scored(nodes, pairs, self.vocabulary, self.pair_vocabulary)
        nodes, pairs = self._read(X, self.vocabulary, self.pair_vocabulary)
        score_map, parameters = self.whole
        return Scored(score_map, parameters, nodes, pairs if score_map.pair is not None else None)

    def _read(self, X: Any, vocabulary: Vocabulary | None, pairs: Vocabulary | None) -> tuple[Batch, Batch | None]:
        if self.template is not None:
            rows = self.template.read(X, vocabulary=vocabulary, pair_vocabulary=pairs)
            return rows.nodes, rows.pairs
        grow = vocabulary is None
        batch = Batch.build(X, vocabulary=Vocabulary() if vocabulary is None else vocabulary, grow=grow)
        return batch, batch


def _template(parameters: Record) -> Template | None:
    value = parameters.json("template")
    if value is None or isinstance(value, str):
        return None if value is None else Template.parse(value)
    return Template.from_record(parameters.child("template"))
