"""What models of label sequences share that are trained on a convex objective."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield._native import StateError
from dualfield.data import Labels
from dualfield.data.checks import (
    check_choice,
    check_column_names,
    check_flag,
    check_integer,
    check_number,
    fixed_random_state,
)
from dualfield.data.partial_labels import read_labels
from dualfield.estimators.checkpoint import Checkpoint, fingerprint
from dualfield.estimators.crf_data import (
    TrainingData,
    build_score_map,
    check_cost,
    example_weights,
    pair_columns,
)
from dualfield.estimators.kernel_chains import check_kernel_chains, fit_kernel_chains
from dualfield.estimators.tagger import SequenceTagger
from dualfield.features import Template
from dualfield.features.reading import read_examples
from dualfield.scores import Expansion
from dualfield.solvers import Moment, Solution, Status, Trace
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.kept_state import refuse_unused
from dualfield.solvers.progress import ProgressLine
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_of

__all__ = ["TrainedTagger"]

Floats = NDArray[np.float64]


class TrainedTagger(SequenceTagger):
    """A model of label sequences with the way from what users pass to a solved objective.

    Models such as :class:`dualfield.CRF` and :class:`dualfield.StructuredSVM` add the objective.

    Attributes
    ----------
    n_features_ : int
        Number of weights.
    objective_, dual_gap_ : float
        The minimised value, and a bound on its distance from the minimum.
    n_iter_, solver_, status_, trace_
        Iterations and name of the solver that ran, how it ended, and its course.

    Examples
    --------
    >>> from dualfield import CRF, StructuredSVM
    >>> from dualfield.estimators.trained import TrainedTagger
    >>> issubclass(CRF, TrainedTagger), issubclass(StructuredSVM, TrainedTagger)
    (True, True)
    """

    structure: Any
    C: float
    kernel: Any
    kernel_approx: Any
    transition_scale: float
    features: str
    min_freq: int
    pair_features: Any
    start_stop: bool
    constraints: Any
    class_weight: Mapping[Any, float] | str | None
    cost: Any
    tol: float
    max_iter: int | None
    warm_start: bool
    random_state: Any
    verbose: int

    def _training_data(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        lengths: ArrayLike | None,
        known: Any = None,
        grown_from: TrainedTagger | None = None,
    ) -> TrainingData:
        """Read and check everything, and lay out the features."""
        before = (None, None) if grown_from is None else (grown_from.vocabulary_, grown_from.pair_vocabulary_)
        vocabulary, pair_vocabulary = (None if one is None else one.copy() for one in before)
        grow = vocabulary is not None
        width = None if grown_from is None or grow else grown_from.score_map_.node.n_columns
        owner = type(self).__name__
        prototype = structure_of(owner, self.structure)
        template = None if self.template is None else self._template()
        nodes, pairs = read_examples(
            prototype, X, lengths, template, vocabulary, pair_vocabulary, grow=grow, n_columns=width
        )
        if grown_from is not None:
            check_column_names(grown_from, nodes, "as in the calls before")
        if nodes.n_nodes == 0:
            raise ValueError("X must have at least one node. Got none.")
        labels, codes, allowed = read_labels(y, nodes.offsets, known)
        names = labels.classes.tolist()
        structure = prototype.for_labels(names, codes, nodes.shape, self.constraints, owner)
        chosen = pair_columns(self.pair_features, nodes, owner)
        if pairs is None and chosen is not None:
            pairs = nodes
        score_map = build_score_map(
            structure,
            nodes,
            pairs,
            codes,
            everything=self.features == "all",
            min_freq=int(self.min_freq),
            chosen=chosen,
            with_ends=bool(self.start_stop),
            with_transitions=template is None or template.has_transitions,
            old=None if grown_from is None else grown_from.score_map_,
            has_kernel=self.kernel is not None,
        )
        weights = float(self.C) * example_weights(nodes, labels, codes, sample_weight, self.class_weight, owner)
        if not weights.any():
            raise ValueError("sample_weight and class_weight must leave a sequence with a weight above zero.")
        cost = self._cost_table(labels)
        if cost is not None and allowed is not None:
            raise ValueError("cost needs the true label of every node: it cannot be used with partly labelled y.")
        return TrainingData(nodes, pairs, labels, codes, allowed, structure, score_map, weights, cost)

    def _cost_table(self, labels: Labels) -> Floats | None:
        """Return the cost of each label by true label; None if wrong labels cost nothing."""
        return check_cost(self.cost, len(labels), type(self).__name__)

    def _fit_with_kernel(
        self,
        data: TrainingData,
        temperature: float,
        monitor: Callable[[Moment, Any], Any] | None,
        checkpoint: Any,
    ) -> Solution[Floats]:
        """Train with node scores from a kernel."""
        solver = check_kernel_chains(self, temperature)
        for name, value in (("monitor", monitor), ("checkpoint", checkpoint)):
            if value is not None:
                raise ValueError(f"{name} must be None with a kernel: the model is there at the end of the fit only.")
        found: list[Expansion] = []

        def solve(callbacks: FitCallbacks, seed: int) -> Solution[Floats]:
            solution, expansion = fit_kernel_chains(
                self, data, temperature, solver, n_threads(self.n_jobs), callbacks, seed
            )
            found.append(expansion)
            return solution

        solution = self._run(solve, data, None, None, None)
        self._keep(data, solution)
        self.expansion_ = found[0]
        self.n_features_ = self.score_map_.n_features + self.expansion_.coefficients.size
        return solution

    def _run(
        self,
        solve: Callable[[FitCallbacks, int], Solution[Floats]],
        data: TrainingData | None,
        start: Floats | None,
        monitor: Callable[[Moment, Any], Any] | None,
        checkpoint: Checkpoint | None,
    ) -> Solution[Floats]:
        """Call a solver with a course that shows progress, lets a monitor look, and keeps states."""
        seed = int(fixed_random_state(self.random_state).randint(2**31 - 1))
        states = None if checkpoint is None or data is None else checkpoint.open(fingerprint(self, data, start), seed)
        seed = seed if states is None else states.seed
        with ProgressLine(type(self).__name__, int(self.verbose)) as line:
            callbacks = FitCallbacks(
                line,
                None if monitor is None else lambda moment, w: monitor(moment, self._at(data, moment, w)),
                None if states is None else states.keep,
                None if states is None else states.is_due,
                None if states is None else states.resume,
            )
            try:
                if data is not None and callbacks.resume is not None:
                    refuse_unused(callbacks.resume, data.score_map.used)
                solution = solve(callbacks, seed)
            except StateError as error:
                raise error if states is None else states.refused(error) from None
            callbacks.last(solution.moment, solution.parameters)
            line.end(f"{solution.status.value}, relative gap {solution.relative_gap:.1e}.")
        if states is not None:
            states.close(solution.status)
        return solution

    def _at(self, data: TrainingData | None, moment: Moment, parameters: NDArray[np.float64]) -> Self:
        """Return the model of a moment."""
        model = copy.copy(self)
        trace = Trace.from_rows(np.array([dataclasses.astuple(moment)]))
        solution = Solution(
            parameters=parameters,
            objective=moment.objective,
            gap=moment.gap,
            status=Status.STOPPED,
            n_iter=1,
            trace=trace,
            solver="monitor",
        )
        if data is not None:
            model._keep(data, solution)
        else:
            model._keep_solution(solution)
        return model

    def _keep(self, data: TrainingData, solution: Solution[Floats]) -> None:
        self.labels_ = data.labels
        self.classes_ = data.labels.classes
        self.structure_ = data.structure
        self.vocabulary_ = data.nodes.vocabulary
        self.pair_vocabulary_ = None if data.pairs is None else data.pairs.vocabulary
        self.score_map_ = data.score_map
        if data.nodes.column_names is None:
            self.__dict__.pop("feature_names_in_", None)
        else:
            self.feature_names_in_ = np.array(data.nodes.column_names, dtype=object)
        self.expansion_ = None
        self.n_features_ = data.score_map.n_features
        self._keep_solution(solution)

    def _keep_solution(self, solution: Solution[Floats]) -> None:
        self.parameters_ = solution.parameters
        super()._keep_solution(solution)

    def _check_shared_parameters(self) -> None:
        owner = type(self).__name__
        if self.kernel is None and (self.kernel_approx is not None or self.transition_scale != 1.0):
            name = "kernel_approx" if self.kernel_approx is not None else "transition_scale"
            raise ValueError(f"The {name!r} parameter of {owner} needs a kernel.")
        check_choice(owner, "features", self.features, ("observed", "all"))
        check_integer(owner, "min_freq", self.min_freq, 0)
        if self.features == "all" and self.min_freq > 0:
            raise ValueError(
                f"The 'min_freq' parameter of {owner} must be 0 with features='all', which gives every attribute a "
                f"weight for every label, however rare. Got {self.min_freq!r}. Use features='observed', or min_freq=0."
            )
        check_flag(owner, "start_stop", self.start_stop)
        check_flag(owner, "warm_start", self.warm_start)
        check_number(owner, "tol", self.tol, 0.0, open_low=True)
        check_integer(owner, "max_iter", self.max_iter, 1, or_none=True)
        check_integer(owner, "verbose", self.verbose, 0)
        if self.template is not None and not isinstance(self.template, (str, Template)):
            raise ValueError(
                f"The 'template' parameter of {owner} must be None, a Template or its text. "
                f"Got {self.template!r} instead."
            )
