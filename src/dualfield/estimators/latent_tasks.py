"""What training a latent structural SVM needs of each kind of latent model: problem, solvers, starts, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.input_forms import unwrapped
from dualfield.data.mapped_vocabulary import read_vocabulary
from dualfield.data.records import Fields, Record
from dualfield.estimators.crf_data import example_weights
from dualfield.estimators.latent_data import StateData, StateDecoder
from dualfield.estimators.latent_start import given_states, hard_em
from dualfield.objectives.latent import Completion
from dualfield.objectives.latent_bags import BagProblem, BagScores, LatentPosition, best_in_bags
from dualfield.objectives.latent_chain import StateProblem
from dualfield.objectives.latent_custom import CustomLatentProblem, LatentModel, check_latent_model
from dualfield.objectives.latent_states import LatentChain, LatentMulticlass
from dualfield.solvers import StopRule
from dualfield.solvers.auto import FEW_FEATURES
from dualfield.solvers.dual.flow_swap import FlowSwap
from dualfield.solvers.dual.hinge_stages import PATIENCE
from dualfield.solvers.latent.cuts import InnerCuts
from dualfield.solvers.latent.records import InnerSolver
from dualfield.solvers.latent.states import StateSolver
from dualfield.solvers.registry import suited
from dualfield.structures.custom_answers import read_only

Floats = NDArray[np.float64]


class Decoder(Protocol):
    """A trained model: outputs and hidden parts of inputs."""

    def best(self, X: Any, lengths: ArrayLike | None) -> tuple[Any, Any]:
        """Return the best outputs and their hidden parts."""

    def completed(self, X: Any, y: Any, lengths: ArrayLike | None) -> Any:
        """Return the best hidden parts of given outputs."""


class StateTask:
    """Chains and single nodes with sub-states."""

    parallel = True  # oracles are native and hold no lock
    soft = True

    def __init__(
        self,
        base: Any,
        latent: LatentChain | LatentMulticlass,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        lengths: ArrayLike | None,
    ) -> None:
        self.base = base
        self.data = StateData.read(base, latent, X, y, sample_weight, lengths)
        if self.data.data.allowed is not None:
            raise ValueError(
                "y must have the label of every node: margins need the whole truth. Use LatentCRF instead."
            )
        self.problem = self.data.problem(0.0, 1)

    @property
    def classes(self) -> NDArray[Any]:
        """The labels."""
        return self.data.data.labels.classes

    def inner(self, problem: StateProblem | None = None) -> InnerSolver:
        """Return a solver for the convex problems of one run."""
        whose = self.problem if problem is None else problem
        cuts, wanted = InnerCuts(whose), self.base.solver
        if wanted in ("auto", "flow_swap"):
            objective = whose.objective(whose.start(RandomState(0)))
            if wanted == "flow_swap":
                suited(FlowSwap(), objective)
            if FlowSwap().missing(objective) is not None:
                return cuts
            few = wanted == "auto" and whose.score_map.n_features <= FEW_FEATURES
            return StateSolver(whose, cuts, PATIENCE if few else np.inf)
        if wanted == "cutting_plane":
            return cuts
        raise ValueError(
            "The 'solver' parameter of the base of LatentStructuredSVM must be one of ['auto', 'flow_swap', "
            f"'cutting_plane']. Got {wanted!r} instead."
        )

    def drawn(self, rng: RandomState) -> Completion:
        """Return random sub-states."""
        return self._of(self.problem.start(rng))

    def em(self, rng: RandomState) -> Completion:
        """Return the sub-states of a generative model."""
        return self._of(hard_em(self.problem, rng))

    def given(self, hidden: Any) -> Completion:
        """Return sub-states that the user gave, as :meth:`hidden` writes them."""
        return self._of(given_states("LatentStructuredSVM", self.data, hidden))

    def hidden(self, states: NDArray[Any]) -> Any:
        """Return sub-states as users see them."""
        return self.decoder(np.zeros(0), None).cut(self.data.space.substates(states), self.data.data.nodes)

    def plain(self, rule: StopRule, seed: int) -> float | None:
        """Return the objective of the model without sub-states; None if this is it."""
        if (self.data.space.sizes == 1).all():
            return None
        problem = self.data.problem(0.0, 1, plain=True)
        completion = Completion(self.data.data.codes, problem.features(self.data.data.codes))
        return self.inner(problem).minimise(completion, None, rule, seed).objective

    def decoder(self, parameters: Floats, n_jobs: int | None) -> StateDecoder:
        """Return the trained model."""
        data = self.data
        tagger = data.tagger(parameters, self.base, n_jobs)
        return StateDecoder(tagger, data.data.labels, data.space, data.single, data.arrays)

    def _of(self, states: NDArray[Any]) -> Completion:
        return Completion(states, self.problem.features(states))


class BagTask:
    """Bags of instances with a label."""

    parallel = True
    soft = True

    def __init__(
        self,
        base: Any,
        latent: LatentPosition,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        lengths: ArrayLike | None,
    ) -> None:
        _only_cuts(base)
        batch = read_bags(X, lengths, None, None)
        flat = unwrapped(y)
        if len(flat) != batch.n_examples:
            raise ValueError(f"y must have a label for each of the {batch.n_examples} bags. Got {len(flat)}.")
        self.labels, self.arrays = Labels.fit(flat), isinstance(y, np.ndarray)
        codes, n = self.labels.encode(flat), len(self.labels)
        if n < 2:
            raise ValueError(f"y must have at least two labels. Got {self.labels.classes.tolist()}.")
        own = Batch(np.arange(batch.n_examples + 1), 1, dense=np.zeros((batch.n_examples, 1)))
        weights = float(base.C) * example_weights(
            own, self.labels, codes, sample_weight, base.class_weight, type(base).__name__
        )
        cost = base._cost_table(self.labels)
        scores = BagScores(batch.n_columns, n, latent.background_code(self.labels), bool(latent.intercept))
        self.problem = BagProblem(scores, batch, codes, weights, 1.0 - np.eye(n) if cost is None else cost)

    @property
    def classes(self) -> NDArray[Any]:
        """The labels."""
        return self.labels.classes

    def inner(self) -> InnerSolver:
        """Return a solver for the convex problems of one run."""
        return InnerCuts(self.problem)

    def drawn(self, rng: RandomState) -> Floats:
        """Return weights that look for drawn instances."""
        return self.problem.templates(rng)

    def em(self, rng: RandomState) -> Completion:
        """Refuse: there is no generative model of bags."""
        raise ValueError("init='em' needs LatentChain or LatentMulticlass. Use init='random' for LatentPosition.")

    def given(self, hidden: Any) -> Completion:
        """Return instances that the user gave."""
        places, lengths = np.asarray(hidden), self.problem.batch.lengths
        if places.shape != lengths.shape or not np.issubdtype(places.dtype, np.integer):
            raise ValueError(
                f"The 'init' parameter of LatentStructuredSVM must have an int for each of the {len(lengths)} bags. "
                f"Got shape {places.shape} and dtype {places.dtype} instead."
            )
        outside = (places >= lengths) | ((places < 0) & (self.problem.codes != self.problem.scores.background))
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise ValueError(
                f"The 'init' parameter of LatentStructuredSVM must have places in bags. X[{at}] has {lengths[at]} "
                f"instances; got {places[at]}."
            )
        return self.problem.given(places)

    def hidden(self, states: NDArray[Any]) -> Any:
        """Return the instances."""
        return states

    def plain(self, rule: StopRule, seed: int) -> float | None:
        """Return None: without a hidden instance there is no model of bags."""
        return None

    def decoder(self, parameters: Floats, n_jobs: int | None) -> BagDecoder:
        """Return the trained model."""
        batch = self.problem.batch
        return BagDecoder(parameters, self.problem.scores, self.labels, self.arrays, batch.vocabulary)


@dataclass(frozen=True, eq=False)
class BagDecoder:
    """A trained model of bags."""

    parameters: Floats
    scores: BagScores
    labels: Labels
    arrays: bool
    vocabulary: Vocabulary | None

    def record(self) -> Fields:
        """Return what the model consists of."""
        if not np.isfinite(self.parameters).all():
            raise ValueError("The model cannot be saved: it has weights that are not finite.")
        return {
            "kind": "bags",
            "labels": self.labels.record(),
            "n_columns": int(self.scores.n_columns),
            "background": int(self.scores.background),
            "intercept": bool(self.scores.intercept),
            "arrays": bool(self.arrays),
            "vocabulary": None if self.vocabulary is None else self.vocabulary.record(),
            "weights": self.parameters,
        }

    @classmethod
    def from_record(cls, record: Record) -> BagDecoder:
        """Make a model of its record, which is checked."""
        labels = Labels.from_record(record.child("labels"))
        n_columns, background = record.integer("n_columns", 0), record.integer("background", -1, len(labels) - 1)
        record.check(len(labels) >= 2, "bags need two labels.")
        scores = BagScores(n_columns, len(labels), background, record.flag("intercept"))
        weights = np.array(record.array("weights", np.float64, (scores.n_parameters,), finite=True))
        vocabulary = read_vocabulary(record.child("vocabulary"), n_columns) if record.has("vocabulary") else None
        return cls(weights, scores, labels, record.flag("arrays"), vocabulary)

    def best(self, X: Any, lengths: ArrayLike | None) -> tuple[Any, Any]:
        """Return the best label of each bag, and the instance that speaks for it."""
        best, at = self._best(X, lengths)
        codes = best.argmax(axis=1)
        names = self.labels.classes[codes]
        return names if self.arrays else names.tolist(), self._heard(codes, at)

    def completed(self, X: Any, y: Any, lengths: ArrayLike | None) -> Any:
        """Return the instance that speaks most for a given label of each bag."""
        at = self._best(X, lengths)[1]
        codes = self.labels.encode(unwrapped(y))
        if len(codes) != len(at):
            raise ValueError(f"y must have a label for each of the {len(at)} bags. Got {len(codes)}.")
        return self._heard(codes, at)

    def decision(self, X: Any, lengths: ArrayLike | None) -> Floats:
        """Return the score of each label for each bag."""
        return self._best(X, lengths)[0]

    def _heard(self, codes: NDArray[Any], at: NDArray[Any]) -> NDArray[Any]:
        return np.where(codes == self.scores.background, -1, at[np.arange(len(codes)), codes])

    def _best(self, X: Any, lengths: ArrayLike | None) -> tuple[Floats, NDArray[np.int64]]:
        numeric = None if self.vocabulary is not None else self.scores.n_columns
        batch = read_bags(X, lengths, self.vocabulary, numeric)
        return best_in_bags(self.scores.instances(self.parameters, batch), batch.offsets)


class CustomTask:
    """Examples with a model of the user's own."""

    parallel = False  # it may not be made for threads
    soft = False
    classes = None

    def __init__(
        self, base: Any, latent: LatentModel, X: Any, y: Any, sample_weight: ArrayLike | None, lengths: ArrayLike | None
    ) -> None:
        _only_cuts(base)
        if lengths is not None:
            raise ValueError("lengths must be None with a latent model of your own: X has an item for each example.")
        inputs, outputs = list(X), list(y)
        if not inputs or len(inputs) != len(outputs):
            raise ValueError(f"X and y must have as many items, at least one. Got {len(inputs)} and {len(outputs)}.")
        weights = np.full(len(inputs), float(base.C))
        if sample_weight is not None:
            own = np.asarray(sample_weight, dtype=np.float64)
            if own.shape != weights.shape or not (np.isfinite(own) & (own >= 0)).all():
                raise ValueError(f"sample_weight must be {len(weights)} finite numbers of at least 0.")
            weights = weights * own
        self.latent = latent
        self.problem = CustomLatentProblem(
            latent, inputs, outputs, weights, check_latent_model(latent, inputs, outputs)
        )

    def inner(self) -> InnerSolver:
        """Return a solver for the convex problems of one run."""
        return InnerCuts(self.problem)

    def drawn(self, rng: RandomState) -> Completion:
        """Return hidden parts that the model draws."""
        draw = getattr(self.latent, "init_latent", None)
        if not callable(draw):
            raise ValueError(
                f"init='random' needs a method 'init_latent' of {type(self.latent).__name__}. Give init a list."
            )
        return self.given([draw(x, y, rng) for x, y in zip(self.problem.X, self.problem.y, strict=True)])

    def em(self, rng: RandomState) -> Completion:
        """Refuse: there is no generative model."""
        raise ValueError("init='em' needs LatentChain or LatentMulticlass. Use init='random' or give hidden parts.")

    def given(self, hidden: Sequence[Any]) -> Completion:
        """Return hidden parts that the user gave."""
        if len(hidden) != len(self.problem.y):
            raise ValueError(
                f"The 'init' parameter of LatentStructuredSVM must have hidden parts for each of the "
                f"{len(self.problem.y)} examples. Got {len(hidden)}."
            )
        return self.problem.given(hidden)

    def hidden(self, states: NDArray[Any]) -> Any:
        """Return hidden parts."""
        return self.problem.hidden(states)

    def plain(self, rule: StopRule, seed: int) -> float | None:
        """Return None: nobody knows the model without hidden parts."""
        return None

    def decoder(self, parameters: Floats, n_jobs: int | None) -> CustomDecoder:
        """Return the trained model."""
        return CustomDecoder(self.latent, parameters)


@dataclass(frozen=True, eq=False)
class CustomDecoder:
    """A trained model of the user's own."""

    latent: LatentModel
    parameters: Floats

    def best(self, X: Any, lengths: ArrayLike | None) -> tuple[Any, Any]:
        """Return the best outputs and their hidden parts."""
        pairs = [self.latent.infer(read_only(self.parameters), x) for x in X]
        return [y for y, _ in pairs], [h for _, h in pairs]

    def completed(self, X: Any, y: Any, lengths: ArrayLike | None) -> Any:
        """Return the best hidden parts of given outputs."""
        w = read_only(self.parameters)
        return [self.latent.complete(w, x, each) for x, each in zip(X, y, strict=True)]


def read_bags(X: Any, lengths: ArrayLike | None, vocabulary: Vocabulary | None, n_columns: int | None) -> Batch:
    """Read bags, each with at least one instance."""
    batch = Batch.build(X, lengths=lengths, vocabulary=vocabulary, n_columns=n_columns)
    empty = np.flatnonzero(batch.lengths == 0)
    if empty.size or not batch.n_examples:
        what = f"X[{empty[0]}] has none" if empty.size else "there are no bags"
        raise ValueError(f"Every bag must have at least one instance; {what}.")
    return batch


def _only_cuts(base: Any) -> None:
    if base.solver not in ("auto", "cutting_plane"):
        raise ValueError(
            "The 'solver' parameter of the base of LatentStructuredSVM must be 'auto' or 'cutting_plane' with this "
            f"latent model. Got {base.solver!r} instead."
        )
