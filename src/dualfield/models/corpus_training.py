"""From a compiled corpus to what the objective of a structured model is made of; sentences stay on disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch, CompiledCorpus, FeatureCounts
from dualfield.data.checks import check_number
from dualfield.data.shapes import Shape
from dualfield.data.weights import label_factors
from dualfield.features import Template
from dualfield.losses import Loss
from dualfield.models.training_data import TrainingData, corpus_template, structured_cost
from dualfield.objectives import CorpusWeights, StreamedObjective, StreamedStorage
from dualfield.regularisers import Regulariser
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import Chain
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_of

DEFAULT_MEMORY = 4e9
# Parameters that must be as they are by default, and why.
_REFUSED = {
    "kernel": (None, "kernels are trained on sentences in memory"),
    "pair_features": (False, "take a template with lines for pairs of labels when the corpus is compiled"),
    "rescaling": ("margin", "slacks are rescaled on sentences in memory"),
    "positive": (None, "signs are kept on sentences in memory"),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class CorpusData(TrainingData):
    """What a fit to a compiled corpus needs, checked; nodes and labels are those of no sentence.

    Parameters
    ----------
    corpus : CompiledCorpus
        The sentences.
    corpus_weights : CorpusWeights
        How much they count.
    """

    corpus: CompiledCorpus
    corpus_weights: CorpusWeights

    def objective(self, settings: Any, penalty: Regulariser | None, T: float, storage: Any) -> StreamedObjective:
        """Return the formula at a temperature."""
        loss, threads = Loss(T, self.cost), n_threads(settings.n_jobs)
        return StreamedObjective(self.score_map, self.corpus, loss, self.corpus_weights, penalty, threads, storage)

    @property
    def digest(self) -> str:
        """What tells corpora apart: their header has the digests of all files."""
        return hashlib.blake2b((self.corpus.path / "corpus.json").read_bytes(), digest_size=12).hexdigest()


def read_corpus(settings: Any, corpus: CompiledCorpus, *, hinge: bool, **others: Any) -> CorpusData:
    """Check parameters against a corpus, and lay out the features; `others` are arguments of fit that must be None."""
    owner = type(settings).__name__
    refuse_given(others, REASONS)
    for name, (default, reason) in _REFUSED.items():
        value = getattr(settings, name, default)
        if not (value is default or (isinstance(value, type(default)) and value == default)):
            raise ValueError(
                f"The {name!r} parameter of {owner} must be {default!r} with a CompiledCorpus: {reason}. "
                f"Got {value!r:.50} instead."
            )
    corpus.verify()
    structure = _structure(settings, corpus, owner)
    score_map = _score_map(settings, corpus, structure)
    factors = label_factors(corpus.labels, _label_counts(settings, corpus), settings.class_weight, owner)
    return CorpusData(
        nodes=_no_rows(corpus.n_columns, corpus.vocabulary),
        pairs=None if corpus.n_pair_columns is None else _no_rows(corpus.n_pair_columns, corpus.pair_vocabulary),
        labels=corpus.labels,
        codes=np.zeros(0, dtype=np.int32),
        allowed=None,
        structure=structure,
        score_map=score_map,
        weights=np.zeros(0),
        cost=structured_cost(settings, corpus.labels, hinge=hinge),
        template=corpus_template(corpus, settings.template),
        corpus=corpus,
        corpus_weights=CorpusWeights(float(settings.C), factors),
    )


REASONS = {
    "y": "which has the labels",
    "sample_weight": "whose sentences are shuffled: use class_weight, or compile sentences more than once",
    "lengths": "which knows where sentences end",
}


def refuse_given(others: dict[str, Any], reasons: dict[str, str]) -> None:
    """Refuse arguments of fit that a corpus leaves no place for."""
    for name, value in others.items():
        if value is not None:
            raise ValueError(f"{name} must be None with a CompiledCorpus, {reasons[name]}. Got {value!r:.50} instead.")


def storage_of(owner: str, memory: Any, path: str | None) -> StreamedStorage:
    """Return where a fit keeps its state, given the memory that it may take."""
    if memory is None:
        memory = DEFAULT_MEMORY
    check_number(owner, "memory", memory, 0.0, open_low=True)
    return StreamedStorage(float(memory), None, path)


def _structure(settings: Any, corpus: CompiledCorpus, owner: str) -> Chain:
    prototype = structure_of(owner, settings.structure)
    if not isinstance(prototype, Chain):
        raise ValueError(
            f"The 'structure' parameter of {owner} must be 'chain' or a Chain with a CompiledCorpus, which has "
            f"sequences. Got {settings.structure!r:.50} instead."
        )
    no_nodes = Shape(np.zeros(1, dtype=np.int64))
    codes = np.zeros(0, dtype=np.int32)
    found = prototype.for_labels(corpus.labels.classes.tolist(), codes, no_nodes, settings.constraints, owner)
    assert isinstance(found, Chain)
    if found.order > 1 and found.n_cliques == 0:
        raise ValueError(
            f"The 'structure' parameter of {owner} must be a chain of order 1 with a CompiledCorpus of so many "
            f"labels: {corpus.labels.n_classes} ** {found.order + 1} windows are too many."
        )
    if found.order > 1 and corpus.n_pair_columns is not None:
        raise ValueError(
            f"The 'structure' parameter of {owner} must be a chain of order 1: the template of the corpus makes "
            "attributes for pairs of labels."
        )
    return found


def _score_map(settings: Any, corpus: CompiledCorpus, structure: Chain) -> LinearScores:
    """Decide which features there are, by the counts of the corpus."""
    everything, least = settings.features == "all", int(settings.min_freq)
    pair = None
    if everything:
        node = FeatureTable.all(corpus.n_columns, structure.n_labels)
        if corpus.n_pair_columns is not None:
            pair = FeatureTable.all(corpus.n_pair_columns, structure.n_cliques)
    else:
        node = _table(corpus.feature_counts(), least)
        counts = corpus.pair_counts()
        pair = None if counts is None else _table(counts, least)
    template = corpus.template
    mask = np.ones(structure.n_cliques, dtype=bool)
    if template is not None and not Template(*template).has_transitions:
        mask[:] = False
    elif not everything:
        mask[:] = False
        mask[_observed_cliques(corpus, structure)] = True
    return LinearScores(structure, node, pair, mask, bool(settings.start_stop))


def _table(counts: FeatureCounts, least: int) -> FeatureTable:
    return FeatureTable(*counts.at_least(least), counts.n_outputs)


def _observed_cliques(corpus: CompiledCorpus, structure: Chain) -> NDArray[np.int64]:
    if structure.order == 1:
        return corpus.transitions()[0]
    seen = np.zeros(structure.n_cliques, dtype=bool)
    for block in range(corpus.n_blocks):
        rows = corpus.block(block)
        shared = structure.parts_of(np.array(rows.codes), rows.nodes.shape).shared
        seen[shared[(shared >= 0) & (shared < structure.n_cliques)]] = True
    return np.flatnonzero(seen)


def _label_counts(settings: Any, corpus: CompiledCorpus) -> NDArray[np.int64]:
    """Return how often each label occurs, where it is asked for."""
    n = corpus.labels.n_classes
    if not isinstance(settings.class_weight, str):
        return np.ones(n, dtype=np.int64)
    blocks = range(corpus.n_blocks)
    counts = [np.bincount(corpus.block(block).codes, minlength=n) for block in blocks]
    return np.asarray(np.sum(counts, axis=0), dtype=np.int64)


def _no_rows(n_columns: int, vocabulary: Any) -> Batch:
    """Return a batch of no sentence, with the columns of a corpus."""
    start = np.zeros(1, dtype=np.int64)
    indices = np.zeros(0, dtype=np.int32)
    return Batch(start, n_columns, indptr=start, indices=indices, vocabulary=vocabulary)
