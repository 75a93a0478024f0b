"""Structured models with a kernel on sequences in partitions, in the span of landmarks: how they are trained.

Partitions are opened, and their kernel values K(x, landmarks) computed, for each evaluation anew: none is held longer
than that. The model has linear scores of the features K(x, landmarks) K(landmarks, landmarks)^(-1/2), which are never
there: the root goes to the weights, and to the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch, Labels
from dualfield.data.arrays import Codes, Floats
from dualfield.data.point_parts import PointPart, computed
from dualfield.data.shapes import Shape
from dualfield.engines import Engine, Handles, Serial
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.kernels import Kernel
from dualfield.kernels.landmarks import choose_landmarks, landmark_root
from dualfield.kernels.mercer import check_mercer, refusals
from dualfield.losses import Loss
from dualfield.models.kernel.point_training import kernel_of, sample_size
from dualfield.models.structured import StructuredModel
from dualfield.models.training_data import structured_cost
from dualfield.objectives import Examples, PartitionedObjective
from dualfield.objectives.part_problem import PartProblem
from dualfield.objectives.partition_planes import PartitionPlanes
from dualfield.objectives.point_facts import PointFacts, draw_sample, part_facts
from dualfield.objectives.touched import TouchedValues
from dualfield.scores import Expansion, FeatureTable, LinearScores
from dualfield.scores.kernel import rows_of
from dualfield.scores.stored import LinearWeights
from dualfield.solvers import LBFGS, CuttingPlane, Solution, StopRule
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.structures import Chain
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_of

_MEMORY = 40  # of L-BFGS: a pass over the rows is dear


@dataclass(frozen=True, eq=False)
class Sequences:
    """The sequences of a partition: a source of their rows, and of the rows with their bounds."""

    name: str
    source: Any

    def __call__(self) -> tuple[Any, NDArray[Any]]:
        """Return all rows and their labels."""
        batch, classes, codes = self.read()
        return rows_of(batch), classes[codes]

    def read(self) -> tuple[Batch, NDArray[Any], Codes]:
        """Return the sequences, the labels that occur, sorted, and the codes of labels among them."""
        given = computed(self.source)
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ValueError(f"{self.name} must be a pair (X, y) of sequences and labels. Got {type(given).__name__}.")
        if not len(given[0]) and not len(given[1]):
            return Batch(np.zeros(1, np.int64), 0, np.zeros((0, 0))), np.zeros(0, np.int64), np.zeros(0, np.int32)
        batch = Batch.build(given[0])
        if batch.vocabulary is not None:
            raise ValueError(f"{self.name} must have sequences of numbers: a kernel on partitions takes no attributes.")
        labels = Labels.fit(given[1], batch.offsets)
        return batch, np.asarray(labels.classes), labels.encode(given[1], batch.offsets)


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelTask:
    """What every partition needs to become a problem with linear scores."""

    kernel: Kernel
    landmarks: Any
    root: Floats
    labels: Labels
    score_map: LinearScores
    loss: Loss
    weight: float
    n_threads: int

    def problem(self, part: PointPart) -> PartProblem:
        """Open a partition and compute its kernel values."""
        batch, codes = _coded(part, self.labels)
        values = np.zeros((0, len(self.root)))
        if batch.n_nodes:
            values = self.kernel.values(rows_of(batch), self.landmarks, self.n_threads)
        nodes = Batch(batch.offsets, len(self.root), np.ascontiguousarray(values))
        whole, table = self.score_map, FeatureTable.all(len(self.root), len(self.labels))
        return _SpannedProblem(
            examples=Examples(nodes=nodes, labels=codes, weights=np.full(nodes.n_examples, self.weight)),
            score_map=LinearScores(whole.structure, table, None, whole.clique_mask > 0, whole.with_ends),
            loss=self.loss,
            places=np.zeros(0, np.int32),  # all of them
            size=whole.used_places.size,
            n_threads=self.n_threads,
            root=self.root,
            whole=whole,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class _SpannedProblem(PartProblem):
    """A partition with kernel values K for features, where the model has K R.

    Weights V of the model are R V here, and a gradient G here is R' G in the model: R, of landmarks by its rank, meets
    as many columns as there are labels, and not the rows of the partition.
    """

    root: Floats
    whole: LinearScores

    def at_home(self, w: Floats) -> Floats:
        parameters = np.zeros(self.whole.n_parameters)
        parameters[self.whole.used_places] = w
        return self._through(self.root, self.whole, parameters, self.score_map)

    def at_model(self, here: Floats) -> TouchedValues:
        parameters = self._through(self.root.T, self.score_map, here, self.whole)
        return TouchedValues(None, parameters[self.whole.used_places], self.size)

    def _through(self, matrix: Floats, source: LinearScores, given: Floats, target: LinearScores) -> Floats:
        one, n_labels = source.unpack(given), self.whole.structure.n_labels
        with one_blas_thread():  # the last bits must not depend on the machine's threads
            node = matrix @ one.node.reshape(-1, n_labels)
        return target.pack(node.ravel(), one.cliques, one.start, one.stop)


class _Opening(Engine):
    """An engine whose functions get the problem of a partition, which is made for each call."""

    def __init__(self, engine: Engine, task: KernelTask) -> None:
        self._engine, self._task = engine, task

    def map(
        self,
        function: Callable[..., Any],
        parts: Sequence[Any] | Handles,
        *shared: Any,
        each: Sequence[Any] | None = None,
        keep: bool = False,
        names: Sequence[str] | None = None,
    ) -> Handles:
        assert each is None
        return self._engine.map(_asked, parts, function, self._task, *shared, keep=keep, names=names)

    def tree_sum(self, handles: Handles, add: Callable[..., Any] | None = None) -> Any:
        return self._engine.tree_sum(handles, add)

    def in_order(self, handles: Handles) -> Iterator[Any]:
        return self._engine.in_order(handles)

    def gather(self, handles: Handles) -> list[Any]:
        return self._engine.gather(handles)

    def release(self, handles: Handles) -> None:
        self._engine.release(handles)

    def close(self) -> None:
        self._engine.close()


def _asked(part: PointPart, function: Callable[..., Any], task: KernelTask, *shared: Any) -> Any:
    return function(task.problem(part), *shared)


@dataclass(frozen=True, eq=False)
class KernelPartsFit:
    """What a fit has found: the model, a solution with the gap of the inducing-point problem, and exchanges."""

    model: StructuredModel
    solution: Solution[Floats]
    n_rounds: int


def fit_kernel_parts(
    settings: Any,
    parts: list[PointPart],
    engine: Engine,
    *,
    temperature: float,
    rule: StopRule,
    callbacks: FitCallbacks,
    seed: int,
) -> KernelPartsFit:
    """Train a CRF, or at temperature 0 a StructuredSVM, by its parameters, on partitions of sequences."""
    prototype, owner, threads = _checked(settings), type(settings).__name__, n_threads(settings.n_jobs)
    placed = _placed(engine, parts)
    facts = PointFacts.of(engine.gather(engine.map(part_facts, placed, names=[part.name for part in parts])))
    facts = facts.weighted(np.ones(len(facts.classes)))
    if not facts.n_rows:
        raise ValueError(f"{owner} needs an example at least. Got none in all partitions.")
    sample = draw_sample(engine, placed, facts, sample_size(_wanted(settings.kernel_approx)), seed)
    kernel = kernel_of(settings, facts, sample)
    labels = Labels.fit([facts.classes.tolist()])
    names = facts.classes.tolist()
    structure = prototype.for_labels(names, np.zeros(0, np.int32), Shape.of([0]), settings.constraints, owner)
    seen = engine.tree_sum(engine.map(_transitions, placed, labels, prototype, settings.constraints, owner))
    mask = np.full(structure.n_cliques, settings.features == "all") | (seen > 0)
    with refusals(kernel), one_blas_thread():
        check_mercer(kernel, sample.X, threads)
        landmarks = choose_landmarks(kernel, sample.X, settings.kernel_approx, seed, threads)
        root = landmark_root(kernel, landmarks, threads)
        # Features divided by the scale, with losses that count scale² times: the same problem, scale² times as large.
        scale = float(settings.transition_scale)
        table = FeatureTable.all(root.shape[1], len(labels))
        task = KernelTask(
            kernel=kernel,
            landmarks=landmarks,
            root=np.ascontiguousarray(root / scale),
            labels=labels,
            score_map=LinearScores(structure, table, None, mask, bool(settings.start_stop)),
            loss=Loss(temperature, structured_cost(settings, labels, hinge=temperature == 0.0)),
            weight=scale**2 * float(settings.C),
            n_threads=threads,
        )
        objective = PartitionedObjective(
            _Opening(engine, task),
            placed,
            task.score_map,
            None,
            temperature,
            8 * task.score_map.n_features * len(parts),
        )
        solution = _solved(objective, rule, callbacks)
    trace = solution.trace.scaled(1.0 / scale**2)
    solution = replace(
        solution, objective=solution.objective / scale**2, gap=solution.gap / scale**2, trace=trace, dual=None
    )
    n_rounds = objective.n_rounds + 3
    return KernelPartsFit(_model(task, solution, None if temperature == 0.0 else temperature), solution, n_rounds)


def _solved(objective: PartitionedObjective, rule: StopRule, callbacks: FitCallbacks) -> Solution[Floats]:
    if objective.temperature > 0.0:
        return LBFGS(memory=_MEMORY).solve(objective, rule, None, callbacks)
    return CuttingPlane(slack="n").solve(PartitionPlanes(objective), rule, None, callbacks)


def _model(task: KernelTask, solution: Solution[Floats], temperature: float | None) -> StructuredModel:
    """Return the model, whose scores of nodes are those of the coefficients of the landmarks."""
    weights, n_labels = task.score_map.unpack(solution.parameters), len(task.labels)
    coefficients = np.ascontiguousarray(task.root @ weights.node.reshape(-1, n_labels))
    old = task.score_map
    of_scores = LinearScores(old.structure, Expansion.table(n_labels), None, old.clique_mask > 0, old.with_ends)
    parameters = of_scores.pack(np.ones(n_labels), weights.cliques, weights.start, weights.stop)
    return StructuredModel(
        labels=task.labels,
        structure=task.score_map.structure,
        vocabulary=None,
        pair_vocabulary=None,
        weights=LinearWeights(of_scores, parameters),
        expansion=Expansion(task.kernel, task.landmarks, coefficients),
        template=None,
        temperature=temperature,
    )


def _checked(settings: Any) -> Chain:
    """Return the structure of a fit to partitions, or say what such a fit cannot have."""
    owner, prototype = type(settings).__name__, structure_of(type(settings).__name__, settings.structure)
    if not isinstance(prototype, Chain) or prototype.order != 1:
        raise ValueError(
            f"The 'structure' parameter of {owner} must be a chain of order 1 for partitions. "
            f"Got {settings.structure!r}."
        )
    if settings.kernel_approx is None:
        raise ValueError(
            "Partitions need kernel_approx, a number of landmarks: without them the model has a coefficient for every "
            "node, and needs all kernel values between nodes."
        )
    if isinstance(settings.C, str):
        raise ValueError(f"The 'C' parameter of {owner} must be a number for partitions. Got {settings.C!r}.")
    for name, plain in (("class_weight", None), ("template", None), ("warm_start", False), ("solver", "auto")):
        value = getattr(settings, name)
        if value is not plain and value != plain:
            raise ValueError(
                f"The {name!r} parameter of {owner} must be {plain!r} for partitions with a kernel. Got {value!r}."
            )
    return prototype


def _placed(engine: Engine, parts: list[PointPart]) -> Handles:
    """Return partitions as an engine takes them: what is in memory here is sent to a cluster once."""
    names = tuple(part.name for part in parts)
    if not any(part.is_future for part in parts):
        named = [replace(part, source=Sequences(part.name, part.source)) for part in parts]
        return engine.map(_same, named, names=names)
    if isinstance(engine, Serial) or not all(part.is_future for part in parts):
        raise ValueError("Futures need the client of their cluster, and all partitions must be futures then.")
    futures = Handles(tuple(part.source for part in parts), names)
    return engine.map(_renamed, futures, each=[(part.index, part.name) for part in parts])


def _renamed(value: Any, place: tuple[int, str]) -> PointPart:
    index, name = place
    return PointPart(index, name, Sequences(name, value))


def _same(part: PointPart) -> PointPart:
    return part


def _coded(part: PointPart, labels: Labels) -> tuple[Batch, Codes]:
    batch, own, codes = part.source.read()
    places = np.searchsorted(np.asarray(labels.classes), own).astype(np.int32)
    return batch, np.ascontiguousarray(places[codes])


def _transitions(part: PointPart, labels: Labels, prototype: Chain, constraints: Any, owner: str) -> NDArray[np.int64]:
    """Count the transitions of a partition, whose labels must be as the constraints say."""
    batch, codes = _coded(part, labels)
    try:
        structure = prototype.for_labels(labels.classes.tolist(), codes, batch.shape, constraints, owner)
    except ValueError as error:
        raise ValueError(f"{part.name}: {error}") from None
    return np.bincount(structure.clique_indices(codes, batch.offsets), minlength=structure.n_cliques)


def _wanted(kernel_approx: Any) -> int:
    number = kernel_approx[0] if isinstance(kernel_approx, tuple) and len(kernel_approx) == 2 else kernel_approx
    return int(number) if isinstance(number, int | np.integer) else int(number.shape[0])
