"""What training a latent structural SVM needs of each kind of latent model: problem, solvers, starts, the model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Batch, Labels
from dualfield.data.arrays import Floats
from dualfield.data.input_forms import unwrapped
from dualfield.data.weights import example_weights
from dualfield.models.latent.data import StateData
from dualfield.models.latent.model import BagModel, CustomLatent, SubstateModel, read_bags
from dualfield.models.latent.start import given_states, hard_em
from dualfield.models.training_data import structured_cost
from dualfield.objectives.latent import Completion
from dualfield.objectives.latent_bags import BagProblem, BagScores, LatentPosition
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
        self.data = StateData.read(base, latent, X, y, sample_weight, lengths, hinge=True)
        self.problem = self.data.problem(0.0, 1)

    @property
    def classes(self) -> NDArray[Any]:
        """The labels."""
        return self.data.data.labels.classes

    def inner(self, problem: StateProblem | None = None) -> InnerSolver:
        """Return a solver for the convex problems of one run."""
        whose = self.problem if problem is None else problem
        cuts, wanted = InnerCuts(whose), self.base.solver
        if whose.is_open:
            if wanted == "flow_swap":
                raise ValueError(
                    "The 'solver' parameter of the base of LatentStructuredSVM must be 'auto' or 'cutting_plane' where "
                    "y is known only in part. Got 'flow_swap' instead."
                )
            return cuts
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
        values, offsets = self.data.as_hidden(states), self.data.data.nodes.offsets
        return values if self.data.single else [values[a:b] for a, b in itertools.pairwise(offsets.tolist())]

    def plain(self, rule: StopRule, seed: int) -> float | None:
        """Return the objective of the model without sub-states; None if this is it."""
        if self.problem.is_open or not self.data.space.is_split:
            return None  # where labels are hidden, that is not convex either
        problem = self.data.problem(0.0, 1, plain=True)
        completion = Completion(self.data.data.codes, problem.features(self.data.data.codes))
        return self.inner(problem).minimise(completion, None, rule, seed).objective

    def model(self, parameters: Floats) -> SubstateModel:
        """Return the trained model."""
        return self.data.model(parameters)

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
        cost = structured_cost(base, self.labels, hinge=True)
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

    def model(self, parameters: Floats) -> BagModel:
        """Return the trained model."""
        batch = self.problem.batch
        return BagModel(parameters, self.problem.scores, self.labels, self.arrays, batch.vocabulary)


class CustomTask:
    """Examples with a user-defined model."""

    parallel = False  # it may not be made for threads
    soft = False
    classes = None

    def __init__(
        self, base: Any, latent: LatentModel, X: Any, y: Any, sample_weight: ArrayLike | None, lengths: ArrayLike | None
    ) -> None:
        _only_cuts(base)
        if lengths is not None:
            raise ValueError("lengths must be None with a user-defined latent model: X has an item for each example.")
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
        """Return latent variables that the model draws."""
        draw = getattr(self.latent, "init_latent", None)
        if not callable(draw):
            raise ValueError(
                f"init='random' needs a method 'init_latent' of {type(self.latent).__name__}. Give init a list."
            )
        return self.given([draw(x, y, rng) for x, y in zip(self.problem.X, self.problem.y, strict=True)])

    def em(self, rng: RandomState) -> Completion:
        """Refuse: there is no generative model."""
        raise ValueError("init='em' needs LatentChain or LatentMulticlass. Use init='random' or give latent variables.")

    def given(self, hidden: Sequence[Any]) -> Completion:
        """Return latent variables that the user gave."""
        if len(hidden) != len(self.problem.y):
            raise ValueError(
                f"The 'init' parameter of LatentStructuredSVM must have latent variables for each of the "
                f"{len(self.problem.y)} examples. Got {len(hidden)}."
            )
        return self.problem.given(hidden)

    def hidden(self, states: NDArray[Any]) -> Any:
        """Return latent variables."""
        return self.problem.hidden(states)

    def plain(self, rule: StopRule, seed: int) -> float | None:
        """Return None: the model without latent variables is not known."""
        return None

    def model(self, parameters: Floats) -> CustomLatent:
        """Return the trained model."""
        return CustomLatent(self.latent, parameters)


def _only_cuts(base: Any) -> None:
    if base.solver not in ("auto", "cutting_plane"):
        raise ValueError(
            "The 'solver' parameter of the base of LatentStructuredSVM must be 'auto' or 'cutting_plane' with this "
            f"latent model. Got {base.solver!r} instead."
        )
