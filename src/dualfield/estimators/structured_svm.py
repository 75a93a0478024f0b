"""Structural support vector machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice, check_number
from dualfield.estimators.base import Estimator, fitting
from dualfield.estimators.checks import check_structured, check_structured_kernel, matrix_and_classes
from dualfield.estimators.partitioned import (
    PARTITION_ATTRIBUTES,
    fit_kernel_partitions,
    kernel_partitions,
    refuse_client,
    refuse_partitions,
    refuse_weights,
)
from dualfield.estimators.prediction import StructuredPredictor
from dualfield.estimators.running import check_memory, is_streamed, run, run_on_corpus, run_with_kernel
from dualfield.features import Template
from dualfield.losses import Loss
from dualfield.models.carry_over import carry_over
from dualfield.models.custom import CustomModel, common_input
from dualfield.models.structured import NOT_CALIBRATED, StructuredModel
from dualfield.models.training_data import TrainingData, read_training_data, template_of
from dualfield.objectives import CustomPlanes, Objective
from dualfield.objectives.planes_slack import SlackArgmax
from dualfield.persistence.checkpoint import Checkpoint
from dualfield.regularisers import SquaredNorm
from dualfield.scores.signs import check_signs, positive_weights
from dualfield.solvers import Moment, Solution, StopRule, prototypes
from dualfield.solvers.auto import works_on_planes
from dualfield.solvers.convergence import warn_unless_converged
from dualfield.solvers.hinge import solve_hinge
from dualfield.solvers.registry import pick_solver, suited
from dualfield.structures import CustomProblem, Structure, check_custom_problem
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_names, structure_of

__all__ = ["StructuredSVM"]


def _is_calibrated(model: Any) -> bool:
    if not hasattr(model, "calibration_"):
        raise AttributeError(NOT_CALIBRATED)
    return True


def _is_single(model: Any) -> bool:
    """Whether every node is an example: of the fitted model, or of the one to be fitted."""
    if "_model" in vars(model):
        return isinstance(model._model, StructuredModel) and model._model.structure.is_flat
    if isinstance(model.structure, str):
        return model.structure == "single"
    return isinstance(model.structure, Structure) and model.structure.is_flat


class StructuredSVM(StructuredPredictor, Estimator):
    r"""Structural support vector machine: the truth must beat every other output by what that output costs.

    .. math::
        \tfrac{1}{2} \|w\|^2 + C \sum_i v_i \max_y \,
        [ \Delta(y_i, y) + \mathrm{score}(x_i, y) - \mathrm{score}(x_i, y_i) ]

    where v_i is the weight of an example and Δ the cost of its wrong labels. With rescaled slacks the bracket is
    :math:`\Delta(y_i, y) [ 1 + \mathrm{score}(x_i, y) - \mathrm{score}(x_i, y_i) ]`. On sequences the score is that of
    :class:`dualfield.CRF`: this is the hidden Markov support vector machine, or max-margin Markov network. On single
    nodes it is the multiclass machine of Crammer and Singer. User-defined output spaces are objects. The fit ends
    with a certificate: a bound on the distance from the minimum.

    Margins are not probabilities: ``predict_proba`` and its kin appear after :meth:`calibrate`.

    Parameters
    ----------
    structure : str, Structure or CustomProblem, default="chain"
        Label sequences; one label for each row of a matrix; a chain of another order or with constraints; or an object
        with ``joint_feature``, ``loss`` and ``argmax``, see :class:`dualfield.structures.CustomProblem`.
    C : float, default=1.0
        Weight of the losses against the penalty: smaller values penalise more.
    cost : "hamming", array of shape (n_labels, n_labels) or callable, default="hamming"
        Δ is the sum over nodes of: 1 for a wrong label, or by true label (row) and label (column) with zeros on the
        diagonal, or ``cost(true_label, label)``. Custom problems have their ``loss``.
    rescaling : {"margin", "slack"}, default="margin"
        What the cost rescales. Slacks of sequences only by the number of wrong labels.
    kernel : {"linear", "poly", "rbf", "laplacian", "sigmoid"} or callable, default=None
        Node scores are expansions in a kernel on the rows of the nodes, as in
        :class:`dualfield.KernelLogisticRegression`, instead of weights of columns; transitions keep their weights.
    kernel_on, pair_gamma
        What the kernel scores, nodes, pairs of neighbours or both, and γ for pairs: as in :class:`dualfield.CRF`.
    gamma : {"scale", "auto"} or float, default="scale"
        γ of "poly", "rbf", "laplacian" and "sigmoid": given, 1 / n_columns, or that divided by the variance of X.
    degree, coef0 : float, default=3, 0.0
        Of "poly" and "sigmoid".
    kernel_approx : int, (int, str) or array of points, default=None
        Seek node scores in the span of so many landmarks only: fits and predictions then cost the same however many
        nodes there are, and ``dual_gap_`` says what that may have lost. The str says how they are chosen: "k-means++",
        "greedy", "leverage" or "random".
    transition_scale : float, default=1.0
        With a kernel: transitions, ends and the kernel on pairs score this times their weights, which are penalised as
        those of nodes are. Below 1 they count for less, as where sequences to come have other transitions than those in
        training.
    cache_size : float, default=4e9
        Bytes for kernel values; beyond that they are computed again.
    solver : str or solver object, default="auto"
        "flow_swap", "path_blocks", "local_blocks", "cutting_plane", "labelling_set", "frank_wolfe", "marginal",
        "simplicial", "sgd", "plane_sgd", an object of :mod:`dualfield.solvers`, or a user-defined one with ``name``,
        ``missing`` and ``solve``. "auto" is "flow_swap" where it can take the problem, with few features followed by
        "simplicial" if that takes too long; "local_blocks" on wide graphs; elsewhere "path_blocks", or with few
        features "cutting_plane". With a kernel: "auto" or "kernel_ascent".
    positive : bool, list or bool array, default=None
        Weights that must be at least 0; True: all. A list has columns, or (column, label); a column is a number, or a
        string with which attributes begin. An array is like ``coef_``, or like w for custom problems.
    features, min_freq, pair_features, start_stop, template, constraints
        As in :class:`dualfield.CRF`; for sequences. A single node has a weight for each column and class.
    class_weight : dict or "balanced", default=None
        Weights of labels; a sequence counts as the mean weight of its labels.
    tol : float, default=1e-3
        Stop when duality gap / dual value is at most this. "sgd" and "plane_sgd" make their epochs.
    max_iter : int, default=None
        Most passes over the data; None: 10,000, and for "sgd" and "plane_sgd" 30 epochs.
    n_jobs : int, default=None
        Threads; None is 1 unless a joblib context says otherwise, -1 is all cores. Results do not depend on it.
    warm_start : bool, default=False
        Begin at the weights of the last fit; attributes and labels are matched by name.
    random_state : int, RandomState or None, default=None
        Seed of the order of examples; None is 0, so that the same data give the same model.
    verbose : int, default=0
        1: a live line; 2: a line for every look at the gap.

    Attributes
    ----------
    classes_, labels_, structure_, vocabulary_, score_map_, parameters_
        See :class:`dualfield.estimators.prediction.StructuredPredictor`. Custom problems have ``parameters_`` only, and
        ``coef_`` is the same.
    coef_ : sparse matrix or array of shape (n_labels, n_columns)
        Weights of attributes, or of columns; dense for numeric input.
    transitions_, start_, stop_, n_features_
        As in :class:`dualfield.CRF`.
    expansion_ : Expansion or None
        Points, coefficients and kernel of the node scores, where there is a kernel.
    pair_expansion_ : Expansion or None
        The same for the scores of pairs of neighbours, see ``kernel_on``.
    objective_, dual_gap_ : float
        The minimised value, and a proven bound on its distance from the minimum; both of the relaxed problem, which is
        at least the exact one, where there is a relaxation.
    certified_problem_ : {"full", "inducing_points"}
        Which problem the gap is about: "inducing_points" after a fit with a kernel to partitions, where the distance of
        that problem from the one without landmarks is not known.
    n_partitions_, n_rounds_ : int
        After a fit to partitions: how many there were, and exchanges with all of them.
    relaxation_ : str or None
        "trw" if the graphs were too wide for exact answers: losses are maxima over the local polytope.
    n_iter_, solver_, status_, trace_
        Iterations and name of the solver that ran, how it ended, and its course.
    calibration_ : Calibration
        After :meth:`calibrate`: temperature and log-loss on held-out data.
    n_features_in_ : int
        Columns of X, where ``structure="single"``.

    See Also
    --------
    dualfield.CRF : The same scores, trained by log-loss.

    Examples
    --------
    >>> from dualfield import StructuredSVM
    >>> X = [[{"word": "Rex"}, {"word": "barks"}], [{"word": "Tom"}, {"word": "and"}, {"word": "Rex"}]]
    >>> y = [["name", "other"], ["name", "other", "name"]]
    >>> model = StructuredSVM(C=10.0).fit(X, y)
    >>> model.predict([[{"word": "Tom"}, {"word": "barks"}]])
    [['name', 'other']]
    >>> model.dual_gap_ <= 1e-3 * model.objective_
    True
    """

    _saved_as = "StructuredSVM"
    _asked_with = ("structure", "template")
    _model_type = StructuredModel
    _counted: ClassVar[dict[str, type]] = dict.fromkeys(PARTITION_ATTRIBUTES, int)

    def __init__(
        self,
        structure: str | Structure | CustomProblem = "chain",
        C: float = 1.0,
        *,
        cost: Literal["hamming"] | ArrayLike | Callable[[Any, Any], float] = "hamming",
        rescaling: Literal["margin", "slack"] = "margin",
        kernel: str | Callable[..., Any] | None = None,
        kernel_on: Literal["nodes", "pairs", "both"] = "nodes",
        gamma: float | Literal["scale", "auto"] = "scale",
        pair_gamma: float | Literal["scale", "auto"] | None = None,
        degree: float = 3,
        coef0: float = 0.0,
        kernel_approx: int | tuple[int, str] | ArrayLike | None = None,
        transition_scale: float = 1.0,
        cache_size: float = 4e9,
        solver: Any = "auto",
        positive: Literal[True] | Sequence[Any] | NDArray[np.bool_] | None = None,
        features: Literal["observed", "all"] = "observed",
        min_freq: int = 0,
        pair_features: bool | Sequence[str] | Sequence[int] = False,
        start_stop: bool = False,
        template: Template | str | None = None,
        constraints: str | ArrayLike | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.C = C
        self.cost = cost
        self.rescaling = rescaling
        self.kernel = kernel
        self.kernel_on = kernel_on
        self.gamma = gamma
        self.pair_gamma = pair_gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_approx = kernel_approx
        self.transition_scale = transition_scale
        self.cache_size = cache_size
        self.solver = solver
        self.positive = positive
        self.features = features
        self.min_freq = min_freq
        self.pair_features = pair_features
        self.start_stop = start_stop
        self.template = template
        self.constraints = constraints
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        monitor: Callable[[Moment, StructuredSVM], Any] | None = None,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        memory: float | None = None,
        client: Any = None,
    ) -> Self:
        """Train on labelled examples; with a kernel and `kernel_approx` also on partitions of them.

        Parameters
        ----------
        X : list, generator, array or sparse matrix
            Sequences, as for :meth:`dualfield.CRF.fit`. For ``structure="single"``, a matrix of shape (n, d), dense or
            sparse. For a custom problem, a sequence of whatever it takes. Or a
            :class:`dualfield.data.CompiledCorpus`, without `y`, `sample_weight` and `lengths`. With a kernel, also
            partitions without `y`, as for :meth:`dualfield.CRF.fit`: cutting planes have a slack for each of them.
        y : list of lists of labels, default=None
            A label for each node. For ``structure="single"``, of shape (n,). For a custom problem, its outputs.
        sample_weight : array of shape (n_examples,), default=None
            Weights v_i of at least 0.
        lengths : array of int, default=None
            How many rows of a flat `X` each sequence has.
        monitor : callable, default=None
            Called at the end of passes with a :class:`dualfield.solvers.Moment` and the model of that moment, which can
            predict. A true value that it returns ends the fit.
        checkpoint : Checkpoint or path, default=None
            Keeps the state of the fit in a file, now and then, and goes on from it; solvers in native code only.
        memory : float, default=None
            With a :class:`dualfield.data.CompiledCorpus`: bytes for weights, tables of features, sentences and dual
            points; None is 4e9. See :meth:`dualfield.CRF.fit`.
        client : distributed.Client or str, default=None
            For partitions: the Dask cluster that works on them, or the address of its scheduler; None: this process.

        Returns
        -------
        StructuredSVM
            The fitted model.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import StructuredSVM
        >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), np.array(["left", "right", "left"])
        >>> model = StructuredSVM("single", C=10.0, tol=1e-6).fit(X, y)
        >>> model.predict(X)
        array(['left', 'right', 'left'], dtype='<U5')
        >>> model.coef_.round(3)
        array([[ 0.5, -0.5],
               [-0.5,  0.5]])
        """
        self._check_parameters()
        old = self._previous() if self.warm_start else None
        for name in sorted(PARTITION_ATTRIBUTES):
            self.__dict__.pop(name, None)
        if is_streamed(X, self.solver, client):
            given = {"y": y, "sample_weight": sample_weight, "lengths": lengths, "monitor": monitor}
            solution, corpus = run_on_corpus(
                self, X, self._picked(), None, 0.0, old=old, checkpoint=checkpoint, memory=memory, **given
            )
            self._keep(corpus.model(solution.parameters, None), solution)
            warn_unless_converged(solution, float(self.tol))
            return self
        check_memory(memory)
        parts = None if self._is_custom else kernel_partitions(self, X, y)
        if parts is not None:
            check_structured_kernel(self, 0.0)
            refuse_weights(type(self).__name__, sample_weight=sample_weight, lengths=lengths)
            solution = fit_kernel_partitions(self, parts, client, 0.0, monitor=monitor, checkpoint=checkpoint)
            warn_unless_converged(solution, float(self.tol))
            return self
        if not self._is_custom:
            refuse_partitions(type(self).__name__, X, y, client)
        refuse_client(type(self).__name__, client)
        if self._is_custom:
            solution = self._fit_custom(X, y, sample_weight, old, monitor, checkpoint)
            warn_unless_converged(solution, float(self.tol))
            return self
        data = self._read(X, y, sample_weight, lengths)
        if self.kernel is not None:
            solver = check_structured_kernel(self, 0.0)
            solution, expansions = run_with_kernel(self, data, 0.0, solver, old, monitor=monitor, checkpoint=checkpoint)
            self._keep(data.model(solution.parameters, None, expansions), solution)
        else:
            start = carry_over(old, data) if isinstance(old, StructuredModel) else None
            solution = self._fit_data(data, start, monitor, Checkpoint.of(checkpoint))
        warn_unless_converged(solution, float(self.tol))
        return self

    @property
    def _is_custom(self) -> bool:
        names = ("joint_feature", "loss", "argmax")
        structure = self._of_fit("structure")
        return not isinstance(structure, (str, Structure)) and any(hasattr(structure, name) for name in names)

    @property
    def temperature(self) -> float:
        """Temperature of the probabilities, once the model is calibrated."""
        found: float = self.model_.probability_temperature
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if _is_single(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
            tags.input_tags.sparse = tags.target_tags.required = True
        return tags

    @available_if(_is_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(
        self, X: Any, *, pairwise: bool = False, lengths: ArrayLike | None = None, known: Any = None
    ) -> Any:
        """Return the probability of each label at each node, at the temperature of :meth:`calibrate`.

        Parameters
        ----------
        X, lengths
            As in ``predict``.
        pairwise : bool, default=False
            Also return the probability of each pair of neighbouring labels; chains of order 1 only.
        known : list of lists, default=None
            As in ``predict``: probabilities are those given what is known.

        Returns
        -------
        list of arrays of shape (T_i, n_labels), or array of shape (n, n_classes) for single nodes
            Rows sum to 1; columns follow ``classes_``. With `pairwise`, a second list of arrays of shape
            (T_i - 1, n_labels, n_labels), label on the left first.

        Examples
        --------
        >>> from dualfield import StructuredSVM
        >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]
        >>> model = StructuredSVM().fit(X, y).calibrate([[["a"], ["a"], ["b"]]], [["x", "y", "y"]])
        >>> model.predict_proba([[["a"]]])[0].sum()
        np.float64(1.0)
        """
        return super().predict_proba(X, pairwise=pairwise, lengths=lengths, known=known)

    @available_if(_is_single)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Return scores, where ``structure="single"``: of the second class over the first with two, else of each class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Examples.

        Returns
        -------
        array of shape (n,) with two classes, else (n, n_classes)
            Scores; columns follow ``classes_``.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import StructuredSVM
        >>> StructuredSVM("single").fit(np.eye(2), [3, 5]).decision_function([[2.0, 0.0]]).round(3)
        array([-2.])
        >>> StructuredSVM("single").fit(np.eye(3), [3, 5, 7]).decision_function([[2.0, 0.0, 0.0]]).shape
        (1, 3)
        """
        node = self.decision_scores(X).node
        return node[:, 1] - node[:, 0] if node.shape[1] == 2 else node

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None
    ) -> float:
        """Return the share of nodes whose label is right; for a custom problem, minus the mean loss.

        Parameters
        ----------
        X, lengths
            As in :meth:`predict`.
        y : list of lists of labels
            True labels; for single nodes of shape (n,), for a custom problem its outputs.
        sample_weight : array of shape (n,), default=None
            Weights of single nodes, or of examples of a custom problem.

        Returns
        -------
        float
            The higher the better.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import StructuredSVM
        >>> StructuredSVM("single").fit(np.eye(2), [3, 5]).score(np.eye(2), [3, 3])
        0.5
        """
        model = self._ask()
        if isinstance(model, CustomModel):
            return model.score(X, y, sample_weight)
        if model.structure.is_flat:
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        if sample_weight is not None:
            raise ValueError("sample_weight must be None in the score of sequences: nodes are counted.")
        return super().score(X, y, lengths=lengths)

    def _fit_custom(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        old: Any,
        monitor: Callable[[Moment, Any], Any] | None,
        checkpoint: Any,
    ) -> Solution[Floats]:
        owner, inputs, outputs = type(self).__name__, list(X), list(y)
        for name, value, default in (("cost", self.cost, "hamming"), ("class_weight", self.class_weight, None)):
            if not (value is default or (isinstance(value, str) and value == default)):
                raise ValueError(
                    f"The {name!r} parameter of {owner} cannot be combined with a custom problem; define it in the "
                    "problem's loss."
                )
        if self.rescaling != "margin":
            raise ValueError("rescaling='slack' cannot be combined with a custom problem, whose argmax adds the loss.")
        if checkpoint is not None:
            raise ValueError("checkpoint cannot be combined with a custom problem.")
        if len(inputs) != len(outputs) or not inputs:
            raise ValueError(f"X and y must have as many examples, at least one. Got {len(inputs)} and {len(outputs)}.")
        problem: Any = self.structure
        n, like = check_custom_problem(problem, inputs, outputs), common_input(inputs)
        weights = np.ones(len(inputs)) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
        if weights.shape != (len(inputs),) or not (np.isfinite(weights) & (weights >= 0.0)).all() or not weights.any():
            raise ValueError(f"sample_weight must be {len(inputs)} finite numbers of at least 0, not all 0.")
        positive = check_signs(owner, self.positive, n)
        planes = CustomPlanes(problem, inputs, outputs, float(self.C) * weights, SquaredNorm(n, positive))
        start = None if old is None or len(old.parameters) != n else old.parameters
        solver = pick_solver(owner, self.solver, prototypes.custom_planes())
        suited(solver, planes)
        rule = StopRule.of(solver, self.tol, self.max_iter)
        solution = run(
            self,
            partial(solve_hinge, solver, planes, rule, start),
            monitor=monitor,
            model_at=lambda w: CustomModel(problem, w, like),
        )
        self._keep(CustomModel(problem, solution.parameters, like), solution)
        return solution

    def _read(self, X: Any, y: Any, sample_weight: Any, lengths: Any) -> TrainingData:
        if structure_of(type(self).__name__, self.structure).is_flat:
            X, y = matrix_and_classes(self, X, y)
        data = read_training_data(self, X, y, sample_weight, lengths, hinge=True)
        owner = type(self).__name__
        if self.rescaling == "slack":
            data.need_exact(owner, "rescaling='slack' needs the best labelling for every number of wrong labels")
        if self.kernel is not None:
            data.need_exact(owner, "with a kernel the hinge is trained on the best labellings")
        return data

    @fitting
    def _fit_data(
        self,
        data: TrainingData,
        start: Floats | Solution[Floats] | None,
        monitor: Callable[[Moment, StructuredSVM], Any] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Solution[Floats]:
        """Fit to data that have been read, from weights, or from a solution with its dual point."""
        objective, solver = self._objective(data.as_chains())
        solution = self._solve(data, objective, solver, start, monitor, checkpoint)
        model = data.model(solution.parameters, None)
        self._keep(replace(model, relaxation=objective.relaxation_met), solution)
        return solution

    def _solve(
        self,
        data: TrainingData,
        objective: Objective,
        solver: Any,
        start: Floats | Solution[Floats] | None,
        monitor: Callable[[Moment, StructuredSVM], Any] | None,
        checkpoint: Checkpoint | None,
    ) -> Solution[Floats]:
        chains, n = data.as_chains(), data.score_map.n_parameters  # which swaps can take
        rest = np.zeros(chains.score_map.n_parameters - n)
        if isinstance(start, Solution):
            start = replace(start, parameters=np.concatenate([start.parameters, rest]))
        elif start is not None:
            start = np.concatenate([start, rest])
        if checkpoint is not None and works_on_planes(solver, objective):
            raise ValueError(
                f"checkpoint needs a solver in native code: {type(solver).__name__} does not keep its state. "
                "Use solver='path_blocks'."
            )
        solution = run(
            self,
            partial(solve_hinge, solver, objective, StopRule.of(solver, self.tol, self.max_iter), start),
            data=chains,
            start=None if isinstance(start, Solution) else start,
            monitor=monitor,
            checkpoint=checkpoint,
            model_at=lambda w: data.model(w[:n].copy(), None),
        )
        return replace(solution, parameters=solution.parameters[:n].copy())

    def _objective(self, data: TrainingData) -> tuple[Objective, Any]:
        """Return the objective, and the solver for it."""
        assert data.cost is not None
        owner, threads = type(self).__name__, n_threads(self.n_jobs)
        positive = positive_weights(owner, self.positive, data.score_map, data.nodes, data.labels)
        reason = SlackArgmax.missing(data.cost, int(data.nodes.lengths.max())) if self.rescaling == "slack" else None
        if reason is not None:
            raise ValueError(f"The 'cost' parameter of {owner} does not fit rescaling='slack'. {reason}")
        norm = SquaredNorm(data.score_map.n_parameters, positive)
        objective = Objective(data.score_map, data.examples, Loss(0.0, data.cost, self.rescaling), norm, threads)
        solver = self._picked()
        suited(solver, objective)
        return objective, solver

    def _picked(self) -> Any:
        """Return the solver, which must be one for the loss and the kind of outputs."""
        owner = type(self).__name__
        if self._is_custom:
            return pick_solver(owner, self.solver, prototypes.custom_planes())
        return pick_solver(owner, self.solver, prototypes.objective(0.0), prototypes.relaxed_hinge())

    def _check_restored(self) -> None:
        if self._is_custom:
            raise ValueError(
                f"The 'structure' parameter of {type(self).__name__} cannot be saved: a custom problem is code, "
                f"which a model file does not hold. Got {self.structure!r:.100} instead."
            )
        self._check_parameters()
        template_of(self.template)

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        if not self._is_custom and not isinstance(self.structure, Structure):
            otherwise = "a Structure, an object with joint_feature, loss and argmax,"
            check_choice(owner, "structure", self.structure, tuple(structure_names()), otherwise)
        check_number(owner, "C", self.C, 0.0, open_low=True)
        check_choice(owner, "rescaling", self.rescaling, ("margin", "slack"))
        if self.kernel is None:
            self._picked()
        elif self._is_custom:
            raise ValueError(f"The 'kernel' parameter of {owner} cannot be combined with a custom problem.")
        else:
            check_structured_kernel(self, 0.0)
        check_structured(self)
        is_single = not self._is_custom and structure_of(owner, self.structure).is_flat
        if self._is_custom or is_single:
            kind = "single nodes" if is_single else "custom problems"
            for name in ("pair_features", "start_stop", "template", "constraints"):
                value = getattr(self, name)
                if value is not None and not (isinstance(value, (bool, np.bool_)) and not value):
                    raise ValueError(f"The {name!r} parameter of {owner} is for sequences, not for {kind}.")
