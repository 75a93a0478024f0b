"""Probabilistic context-free grammars: rules counted in trees, and the model that their probabilities make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from dualfield.data import Batch, Labels
from dualfield.data.arrays import Codes, Floats, Ints
from dualfield.data.weights import example_weights
from dualfield.features.reading import read_examples
from dualfield.models.possible import need_labellings
from dualfield.models.structured import StructuredModel
from dualfield.scores import FeatureTable, LinearScores
from dualfield.scores.stored import LinearWeights
from dualfield.structures import Grammar, Structure

# EM for trees that are not known as a whole: at most so many steps, until one gains less than this share.
EM_STEPS, EM_TOL = 100, 1e-6
_FIRST_SMOOTHING = 0.1  # at least, in the first step: what is impossible then stays so


@dataclass(frozen=True, eq=False)
class RuleLayout:
    """The probabilities of rules as parameters of a score map: one row for each parent, and one of roots."""

    structure: Grammar

    @classmethod
    def of(cls, structure: Structure) -> RuleLayout:
        """Return the layout for a structure that is a grammar."""
        assert isinstance(structure, Grammar)
        return cls(structure)

    @cached_property
    def score_map(self) -> LinearScores:
        """The score map: rules alone score."""
        return LinearScores(self.structure, FeatureTable.none(0, self.structure.n_labels))

    def pack(self, tables: Floats) -> Floats:
        """Return the parameters."""
        return self.score_map.pack(np.zeros(0), np.asarray(tables, dtype=np.float64))

    def unpack(self, parameters: Floats) -> Floats:
        """Return what rules have."""
        return self.score_map.unpack(parameters).cliques

    @cached_property
    def parents(self) -> Ints:
        """The row of each rule, numbered without gaps."""
        assert self.structure.rules is not None
        return np.unique(self.structure.rules.parents, return_inverse=True)[1].astype(np.int64)

    def rows(self) -> Ints:
        """Return the row of each parameter."""
        return self.pack(self.parents.astype(np.float64)).astype(np.int64)

    def normalised(self, counts: Floats) -> Floats:
        """Divide rows by their sums; a row of which nothing is known becomes uniform."""
        sums, sizes = np.bincount(self.parents, counts)[self.parents], np.bincount(self.parents)[self.parents]
        return np.where(sums > 0.0, counts / np.where(sums > 0.0, sums, 1.0), 1.0 / sizes)

    def tied(self, counts: Floats) -> Floats:
        """Return counts in which words depend on their tags alone, where tags are predicted: others would be too few.

        The count of a symbol with a label over a word is that of symbol and label, times the share of the word among
        those with the same tag.
        """
        rules = self.structure.rules
        if rules is None or self.structure.settings.tags == "given":
            return counts
        tag_names = [label.rpartition("+")[2] for label in rules.labels]
        tags = np.unique(tag_names, return_inverse=True)[1][rules.lexical[2]]
        lexical = slice(len(rules.binary[0]), len(rules.binary[0]) + len(rules.lexical[0]))
        mine = counts[lexical]
        sums = []
        for keys in (rules.lexical[1:].T, np.stack([rules.lexical[0], tags], axis=1), tags[:, None]):
            places = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
            sums.append(np.bincount(places, mine)[places])
        found = counts.copy()
        found[lexical] = np.where(sums[2] > 0.0, sums[0] * sums[1] / np.where(sums[2] > 0.0, sums[2], 1.0), 0.0)
        return found

    def missing_mass(self, probabilities: Floats) -> Floats:
        """Return what the row of each rule lacks to one."""
        return np.asarray(np.maximum(1.0 - np.bincount(self.parents, probabilities), 0.0)[self.parents])


@dataclass(frozen=True, eq=False, kw_only=True)
class PCFGData:
    """Everything that a fit needs, checked; labels are -1 where they are not known."""

    batch: Batch
    labels: Labels
    states: Codes
    allowed: NDArray[np.bool_] | None
    weights: Floats
    layout: RuleLayout
    fixed: NDArray[np.bool_] | None = None

    def counts(self, smoothing: float, n_threads: int) -> Floats:
        """Count the rules of trees; where trees are not known as a whole, those with which EM ends."""
        structure, shape = self.layout.structure, self.batch.shape
        if self.allowed is None:
            parts = structure.parts_of(self.states, shape)
            found = np.bincount(parts.shared, self.weights[parts.owner], minlength=structure.n_cliques)
            return self.layout.tied(found.astype(np.float64))
        known = np.add.reduceat(np.append(self.states < 0, False), shape.offsets[:-1])[: shape.n_examples] == 0
        known &= shape.lengths > 0
        whole = np.flatnonzero(known)
        parts = structure.parts_of(self.states[np.repeat(known, shape.lengths)], shape.take(whole))
        first = np.bincount(parts.shared, self.weights[whole][parts.owner], minlength=structure.n_cliques)
        tables = self.layout.normalised(first.astype(np.float64) + max(smoothing, _FIRST_SMOOTHING))
        before = -np.inf
        for _ in range(EM_STEPS):
            counts, value = self._expected(tables, n_threads)
            value += float(xlogy(smoothing, tables).sum())
            if value - before <= EM_TOL * abs(value):
                break
            before, tables = value, self.layout.normalised(counts + smoothing)
        return self.layout.tied(counts)

    def _expected(self, tables: Floats, n_threads: int) -> tuple[Floats, float]:
        """Return expected counts given what is known, and the log-likelihood."""
        assert self.allowed is not None
        with np.errstate(divide="ignore"):
            parameters = self.layout.pack(np.log(tables))
        scores = self.layout.score_map.scores(parameters, self.batch, n_threads=n_threads).only(self.allowed)
        answer = self.layout.structure.marginals(scores, cliques="sum", n_jobs=n_threads)
        assert answer.clique is not None
        return self.weights @ answer.clique, float(self.weights @ answer.log_partition)


def read_pcfg_data(owner: str, structure: Structure, X: Any, y: Any, sample_weight: ArrayLike | None) -> PCFGData:
    """Read and check sentences, trees and weights, and read rules off the trees."""
    if not isinstance(structure, Grammar):
        raise ValueError(f"The 'structure' parameter of {owner} must be 'grammar' or a Grammar. Got {structure!r}.")
    if not structure.settings.features.are_none:
        raise ValueError(f"The 'structure' parameter of {owner} must have no features: rules have probabilities.")
    batch, _ = read_examples(structure, X, None, None, None)
    if batch.n_columns:
        raise ValueError(f"X must be sentences without features of spans for {owner}: rules have probabilities.")
    if batch.n_nodes == 0:
        raise ValueError("X must have at least one word. Got none.")
    labels, codes, allowed, left_out = batch.shape.read_labels(y)
    grammar = structure.for_labels(labels.classes.tolist(), codes, batch.shape, None, owner)
    if allowed is not None:
        need_labellings(grammar, batch.shape, allowed, "y")
    weights = example_weights(batch, labels, codes, sample_weight, None, owner)
    weights = weights if left_out is None else np.where(left_out, 0.0, weights)
    if not weights.any():
        raise ValueError("sample_weight must leave a sentence with a weight above zero.")
    return PCFGData(
        batch=batch, labels=labels, states=codes, allowed=allowed, weights=weights, layout=RuleLayout(grammar)
    )


def reference_rules(owner: str, prior: str, layout: RuleLayout, counts: Floats, *, positive: bool) -> Floats:
    """Return c of the objective."""
    if prior == "uniform":
        return layout.normalised(np.zeros_like(counts))
    found = counts if prior == "count" else layout.normalised(counts)
    if positive and not (found > 0.0).all():
        at = int(np.argmin(found > 0.0))
        raise ValueError(
            f"With eta > 0 every rule must have a count, or {owner} a smoothing above 0: nothing else keeps margins "
            f"from driving a probability to 0. {layout.structure.rule_names[at]!r} has none."
        )
    return found


def pcfg_model(data: PCFGData, parameters: Floats) -> StructuredModel:
    """Return the model with given log-probabilities of rules."""
    return StructuredModel(
        labels=data.labels,
        structure=data.layout.structure,
        vocabulary=None,
        pair_vocabulary=None,
        weights=LinearWeights(data.layout.score_map, parameters),
    )
