"""From partitions to what the objective of a structured model is made of; the sentences stay where they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Labels, Partition, Vocabulary, merge_partitions
from dualfield.data.arrays import Codes, Floats
from dualfield.data.compiled.partition import ColumnMaps
from dualfield.data.shapes import Shape
from dualfield.data.weights import example_weights
from dualfield.engines import Engine, Handles
from dualfield.features import Template
from dualfield.losses import Loss
from dualfield.models.part_sources import LocalRows, PartSource
from dualfield.models.structured import StructuredModel
from dualfield.models.training_data import structured_cost
from dualfield.objectives import Examples, PartitionedObjective
from dualfield.objectives.part_problem import PartProblem, PartScores
from dualfield.regularisers import Regulariser
from dualfield.scores import FeatureTable, LinearScores
from dualfield.scores.stored import LinearWeights
from dualfield.structures import Chain, Structure
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_of


@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionedData:
    """Everything that a fit to partitions needs, checked; the counterpart of ``TrainingData``.

    Parameters
    ----------
    engine : Engine
        Where the partitions are.
    parts : Handles
        A :class:`~dualfield.objectives.part_problem.PartProblem` for each.
    labels, structure, score_map, vocabulary, pair_vocabulary, template
        As in a model.
    loss : Loss
        T and Δ.
    bytes_up : tuple of int
        Bytes that each partition sends in an exchange.
    n_examples, n_nodes : int
        Of all partitions.
    """

    engine: Engine
    parts: Handles
    labels: Labels
    structure: Structure
    score_map: LinearScores
    vocabulary: Vocabulary
    pair_vocabulary: Vocabulary | None
    template: Template | None
    loss: Loss
    bytes_up: tuple[int, ...]
    n_examples: int
    n_nodes: int

    def objective(self, regulariser: Regulariser | None) -> PartitionedObjective:
        """Return what is minimised."""
        return PartitionedObjective(
            self.engine, self.parts, self.score_map, regulariser, self.loss.temperature, sum(self.bytes_up)
        )

    def digests(self) -> list[str]:
        """Return a digest of the data of each partition."""
        return self.engine.gather(self.engine.map(_digest, self.parts))

    def model(self, parameters: Floats, temperature: float | None) -> StructuredModel:
        """Return the model with given parameters."""
        return StructuredModel(
            labels=self.labels,
            structure=self.structure,
            vocabulary=self.vocabulary,
            pair_vocabulary=self.pair_vocabulary,
            weights=LinearWeights(self.score_map, parameters),
            template=self.template,
            temperature=temperature,
        )

    def release(self) -> None:
        """Let workers forget the partitions."""
        self.engine.release(self.parts)


def read_partitions(settings: Any, source: PartSource, engine: Engine, temperature: float) -> PartitionedData:
    """Let partitions be read where they are, agree on columns, labels and features, and lay the problem out.

    `settings` has the parameters of the estimator. What comes here are vocabularies and counts, not sentences.
    """
    owner = type(settings).__name__
    prototype = _checked(settings, owner)
    read = engine.map(_read, source.items, source.read, each=source.names, keep=True, names=source.names)
    try:
        found = _agreed(source, engine, read)
        n_labels = len(found.labels)
        structure = prototype.for_labels(
            found.labels.classes.tolist(), np.zeros(0, np.int32), Shape.of([0]), settings.constraints, owner
        )
        score_map = _score_map(settings, structure, found, source.template, n_labels)
        loss = Loss(temperature, structured_cost(settings, found.labels, hinge=False))
        weighing = _Weighing(
            labels=found.labels,
            C=float(settings.C),
            factors=_factors(settings.class_weight, engine, read, found),
            prototype=prototype if settings.constraints is not None else None,
            constraints=settings.constraints,
            owner=owner,
        )
        problems = engine.map(
            _problem,
            read,
            score_map,
            loss,
            weighing,
            n_threads(settings.n_jobs),
            each=[_Own(name, maps) for name, maps in zip(source.names, found.maps, strict=True)],
            keep=True,
        )
        try:
            sizes = []
            for at, size in enumerate(engine.in_order(engine.map(_size, problems))):
                sizes.append(size)
                engine.release(Handles((read.items[at],), (read.names[at],)))
            if not any(is_weighted for *_, is_weighted in sizes):
                raise ValueError("class_weight must leave an example with a weight above zero.")
        except BaseException:
            engine.release(problems)
            raise
    except BaseException:
        engine.release(read)
        raise
    return PartitionedData(
        engine=engine,
        parts=problems,
        labels=found.labels,
        structure=structure,
        score_map=score_map,
        vocabulary=found.vocabulary,
        pair_vocabulary=found.pair_vocabulary if score_map.pair is not None else None,
        template=source.template,
        loss=loss,
        bytes_up=tuple(size[0] for size in sizes),
        n_examples=sum(size[1] for size in sizes),
        n_nodes=sum(size[2] for size in sizes),
    )


def _checked(settings: Any, owner: str) -> Chain:
    """Return the structure of a fit to partitions, or say what such a fit cannot have."""
    prototype = structure_of(owner, settings.structure)
    if not isinstance(prototype, Chain) or prototype.order != 1:
        raise ValueError(
            f"The 'structure' parameter of {owner} must be a chain of order 1 for partitions. "
            f"Got {settings.structure!r}."
        )
    for name, plain in (("kernel", None), ("pair_features", False), ("warm_start", False)):
        value = getattr(settings, name)
        if value is not plain and value != plain:
            raise ValueError(f"The {name!r} parameter of {owner} must be {plain!r} for partitions. Got {value!r}.")
    if isinstance(settings.C, str):
        raise ValueError(f"The 'C' parameter of {owner} must be a number for partitions. Got {settings.C!r}.")
    return prototype


@dataclass(frozen=True, eq=False, kw_only=True)
class _Agreed:
    """What all partitions have in common."""

    labels: Labels
    vocabulary: Vocabulary
    pair_vocabulary: Vocabulary | None
    counts: Any
    pair_counts: Any
    transitions: NDArray[np.int64]
    maps: tuple[ColumnMaps | None, ...]


def _agreed(source: PartSource, engine: Engine, read: Handles) -> _Agreed:
    corpus = source.corpus
    if corpus is not None:
        return _Agreed(
            labels=corpus.labels,
            vocabulary=corpus.vocabulary,
            pair_vocabulary=corpus.pair_vocabulary,
            counts=corpus.feature_counts(),
            pair_counts=corpus.pair_counts(),
            transitions=corpus.transitions()[0],
            maps=(None,) * len(source.items),
        )
    merged = merge_partitions(engine.gather(engine.map(_summary, read)))
    return _Agreed(
        labels=merged.labels,
        vocabulary=merged.vocabulary,
        pair_vocabulary=merged.pair_vocabulary,
        counts=merged.counts,
        pair_counts=merged.pair_counts,
        transitions=merged.transitions[0],
        maps=merged.maps,
    )


def _score_map(
    settings: Any, structure: Chain, found: _Agreed, template: Template | None, n_labels: int
) -> LinearScores:
    everything, least = settings.features == "all", int(settings.min_freq)
    node = _table(found.counts, len(found.vocabulary), n_labels, everything, least)
    pair = None
    if found.pair_vocabulary is not None:
        pair = _table(found.pair_counts, len(found.pair_vocabulary), structure.n_cliques, everything, least)
    mask = np.full(structure.n_cliques, everything)
    mask[found.transitions] = True
    if template is not None and not template.has_transitions:
        mask[:] = False
    return LinearScores(structure, node, pair, mask, bool(settings.start_stop))


def _table(counts: Any, n_columns: int, n_outputs: int, everything: bool, least: int) -> FeatureTable:
    if everything:
        return FeatureTable.all(n_columns, n_outputs)
    indptr, outputs = counts.at_least(least)
    return FeatureTable(np.array(indptr, dtype=np.int64), np.array(outputs, dtype=np.int32), n_outputs)


def _factors(class_weight: Any, engine: Engine, read: Handles, found: _Agreed) -> Any:
    """Return weights of labels; balanced ones need the counts of all partitions."""
    if not isinstance(class_weight, str) or class_weight != "balanced":
        return class_weight
    maps = [None if one is None else one.labels for one in found.maps]
    counts = engine.tree_sum(engine.map(_label_counts, read, len(found.labels), each=maps))
    factors = counts.sum() / (len(counts) * np.maximum(counts, 1))
    return dict(zip(found.labels.classes.tolist(), factors.tolist(), strict=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Weighing:
    """How much examples count, and which labellings may be."""

    labels: Labels
    C: float
    factors: Mapping[Any, float] | None
    prototype: Chain | None
    constraints: Any
    owner: str


@dataclass(frozen=True, eq=False)
class _Own:
    """What only one partition is told: its name, and what its columns and labels are called."""

    name: str
    maps: ColumnMaps | None


def _read(item: Any, name: str, read: Callable[[Any], Any]) -> Any:
    """Read a partition; what is wrong with it is said with its name."""
    try:
        return read(item)
    except (TypeError, ValueError) as error:
        if str(error).startswith(name) or type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(f"{name}: {error}") from error


def _summary(part: Partition) -> Any:
    return part.summary


def _label_counts(part: Any, names: Codes | None, n_labels: int) -> NDArray[np.int64]:
    codes = part.codes if names is None or not part.codes.size else names[part.codes]
    return np.bincount(codes, minlength=n_labels)


def _problem(
    part: Any, own: _Own, score_map: LinearScores, loss: Loss, weighing: _Weighing, threads: int
) -> PartProblem:
    """Return the losses of a partition."""
    if isinstance(part, LocalRows):
        nodes, pairs, codes, columns, pair_columns = part
    else:
        assert own.maps is not None
        codes = own.maps.labels[part.codes] if part.codes.size else part.codes
        # Names are not needed any more, and long.
        nodes = replace(part.nodes, vocabulary=None)
        pairs = None if part.pairs is None else replace(part.pairs, vocabulary=None)
        columns, pair_columns = own.maps.nodes, own.maps.pairs
    if weighing.prototype is not None:
        names = weighing.labels.classes.tolist()
        try:
            weighing.prototype.for_labels(names, codes, nodes.shape, weighing.constraints, weighing.owner)
        except ValueError as error:
            raise ValueError(f"{own.name}: {error}") from None
    weights = weighing.C * example_weights(nodes, weighing.labels, codes, None, weighing.factors, weighing.owner)
    scores, places = PartScores(score_map).of(columns, pair_columns)
    return PartProblem(
        examples=Examples(
            nodes=nodes, pairs=pairs if score_map.pair is not None else None, labels=codes, weights=weights
        ),
        score_map=scores,
        loss=loss,
        places=places,
        size=score_map.used_places.size,
        n_threads=threads,
    )


def _size(part: PartProblem) -> tuple[int, int, int, bool]:
    nodes = part.examples.nodes
    return part.bytes_up, nodes.n_examples, nodes.n_nodes, bool(part.examples.weights.any())


def _digest(part: PartProblem) -> str:
    digest = hashlib.blake2b(digest_size=12)
    given = part.examples
    for rows in (given.nodes, given.pairs):
        arrays = () if rows is None else (rows.offsets, rows.indptr, rows.indices, rows.values)
        for array in arrays:
            digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    for array in (given.labels, given.weights, part.places):
        digest.update(array.tobytes())
    return digest.hexdigest()
