"""Structural support vector machines with latent variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice, check_flag, check_integer, check_number
from dualfield.data.records import Fields, Record
from dualfield.data.user_warnings import warn_user
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.engines.shared_tasks import call_all, runs_here
from dualfield.estimators.base import Estimator, fitting
from dualfield.estimators.latent_prediction import LatentPredictor, hidden_record, read_hidden
from dualfield.estimators.structured_svm import StructuredSVM
from dualfield.models.latent.model import BagModel, CustomLatent
from dualfield.models.latent.tasks import BagTask, CustomTask, StateTask
from dualfield.objectives.latent import Completion
from dualfield.objectives.latent_bags import LatentPosition
from dualfield.objectives.latent_custom import LatentModel
from dualfield.objectives.latent_states import LatentChain, LatentMulticlass
from dualfield.persistence.parameters import Parts
from dualfield.solvers import StopRule
from dualfield.solvers.convergence import warn_of_convergence
from dualfield.solvers.latent.cccp import CCCP
from dualfield.solvers.latent.records import LatentSolution, LatentStatus
from dualfield.solvers.progress import ProgressLine
from dualfield.solvers.trace import relative_gap
from dualfield.structures.checks import n_threads

__all__ = ["LatentStructuredSVM"]

Task = StateTask | BagTask | CustomTask
_MOST_PASSES = 1000
_NO_BETTER = 0.98  # of the objective without latent variables


class LatentStructuredSVM(LatentPredictor, Estimator):
    r"""Structural SVM whose outputs have latent variables, trained by the concave-convex procedure with a certificate.

    The score of an output y with latent variables h is ⟨w, Φ(x, y, h)⟩, and the best pair is predicted. Training knows
    y only, and lowers

    .. math::
        R(w) = \tfrac{1}{2} \|w\|^2 + C \sum_i v_i \bigl[ \max_{y, h} ( \langle w, \Phi(x_i, y, h) \rangle
        + \Delta(y_i, y, h) ) - \max_h \langle w, \Phi(x_i, y_i, h) \rangle \bigr]

    which bounds the cost of the predictions (Yu and Joachims 2009). R is not convex: a run ends in a point that depends
    on where it began, so there are several, and the one with the lowest R is kept. In each, R never rises. Where y_i is
    known only in part, h also runs over what agrees with it, and Δ is the least cost at each node.

    Parameters
    ----------
    base : StructuredSVM, default=None
        Has the parameters of the model without latent variables: C, cost, features, template, solver, tol, and so on.
        None: those of ``StructuredSVM()``. Its ``tol`` is that of the convex problem of each step, its ``max_iter``
        limits the passes of each; None: 1000.
    latent : LatentChain, LatentMulticlass, LatentPosition or LatentModel, default=None
        What is hidden: sub-states of labels (of brackets of parse trees, too), components of classes, the instance of a
        bag that matters, or a model of your own, see :class:`dualfield.objectives.latent_custom.LatentModel`. None:
        ``LatentChain()``.
    n_restarts : int, default=6
        Runs from different starts, where these are random.
    init : {"random", "em", "weights"} or array, default="random"
        Where to begin. "random": latent variables are drawn; "em": sub-states of a hidden Markov model that is trained
        by hard EM; "weights": the weights of the last fit. Latent variables as :meth:`predict_latent` returns them,
        integers, or weights of shape (n_parameters,), floats: one run from there. Weights of zero are a bad start: all
        latent variables tie.
    anneal : bool, default=False
        Whether the first five steps complete the truth softly, with a temperature that falls from 1.
    max_iter : int, default=50
        Most steps of a run.
    tol : float, default=1e-4
        A run ends when a step lowers R by at most this times R after the first step, or no latent variable changes.
    n_jobs : int, default=None
        Runs at the same time; None is 1 unless a joblib context says otherwise, -1 is all cores. Results do not depend
        on it. A user-defined model is not run in threads.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    verbose : int, default=0
        1: a live line; 2: a line for every step.

    Attributes
    ----------
    parameters_ : array of shape (n_parameters,)
        The weights w.
    classes_ : array or None
        The labels, sorted; None for a user-defined model.
    objective_ : float
        R of the weights.
    dual_gap_ : float
        Of the last convex problem: at most this is to be gained with the latent variables as they are.
    plain_objective_ : float or None
        The objective of the same model without latent variables, for sub-states and components.
    restarts_ : array of shape (n_runs,)
        R of all runs.
    hidden_ : list or array
        The latent variables of the training examples, completed by the weights: sub-states, or places in
        ``states_.classes_`` where labels are not all known.
    n_iter_ : int
        Steps of the run that was kept.
    status_ : LatentStatus
        How it ended.
    trace_ : LatentTrace
        Its certificate: the numbers of R(w') ≤ U(w') ≤ U(w) = R(w) for every step from w to w'.

    See Also
    --------
    dualfield.StructuredSVM : Without latent variables.
    dualfield.LatentCRF : Latent variables with probabilities.

    Examples
    --------
    A bag is "yes" if one of its numbers is large. Which one is not known:

    >>> import numpy as np
    >>> from dualfield import LatentPosition, LatentStructuredSVM, StructuredSVM
    >>> bags = [np.array([[0.1], [5.0]]), np.array([[0.2], [0.3]]), np.array([[4.0], [0.0], [0.1]]), np.array([[0.4]])]
    >>> model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentPosition("no"), random_state=0)
    >>> model = model.fit(bags, ["yes", "no", "yes", "no"])
    >>> model.predict([np.array([[0.0], [0.1], [6.0]])]), model.predict_latent([np.array([[0.0], [0.1], [6.0]])])
    (['yes'], array([2]))
    >>> model.trace_.certified()
    True
    """

    _saved_as = "LatentStructuredSVM"
    _saved_with: ClassVar[Parts] = {
        one.__name__: one for one in (StructuredSVM, LatentChain, LatentMulticlass, LatentPosition)
    }
    _has_gap = True

    def __init__(
        self,
        base: StructuredSVM | None = None,
        latent: LatentChain | LatentMulticlass | LatentPosition | LatentModel | None = None,
        *,
        n_restarts: int = 6,
        init: str | ArrayLike | Sequence[Any] = "random",
        anneal: bool = False,
        max_iter: int = 50,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.base = base
        self.latent = latent
        self.n_restarts = n_restarts
        self.init = init
        self.anneal = anneal
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> Self:
        """Train on examples whose latent variables are not observed.

        Parameters
        ----------
        X : list, generator, array or sparse matrix
            For sub-states sequences as :class:`dualfield.StructuredSVM` takes them; for components a matrix; for
            positions a list of matrices, the bags, or one matrix and `lengths`; for a user-defined model a list of
            inputs.
        y : list or array
            Labels of nodes, trees, one label for each row or bag, or a list of outputs. None, or a set of labels, at a
            node means that its label is not known, or only in part, and so do None or a
            :class:`dualfield.data.PartialTree` in the place of a tree: the rest is latent.
        sample_weight : array of shape (n_examples,), default=None
            Weights v_i of at least 0.
        lengths : array of int, default=None
            How many rows of a flat `X` each sequence or bag has.

        Returns
        -------
        LatentStructuredSVM
            The fitted model.

        Examples
        --------
        Each class consists of two groups, so that no line parts the classes:

        >>> import numpy as np
        >>> from dualfield import LatentMulticlass, LatentStructuredSVM, StructuredSVM
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = np.array(["up or down", "left or right"] * 10)
        >>> model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> model.score(X, y), bool(model.objective_ < 0.5 * model.plain_objective_)
        (1.0, True)
        """
        base = StructuredSVM() if self.base is None else self.base
        self._check_parameters(base)
        task = self._task(base, X, y, sample_weight, lengths)
        if self.anneal and not task.soft:
            raise ValueError("anneal=True needs LatentChain, LatentMulticlass or LatentPosition.")
        passes = float(_MOST_PASSES if base.max_iter is None else base.max_iter)
        procedure = CCCP(
            int(self.max_iter),
            float(self.tol),
            float(base.tol),
            max_passes=passes,
            temperature=0.0,
            anneal=bool(self.anneal),
        )
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self._n_runs()).tolist()
        with one_blas_thread(), ProgressLine(type(self).__name__, int(self.verbose)) as line:
            callbacks = line if self.verbose and (runs_here() or not task.parallel) else None
            work = (self, task, procedure, callbacks)
            each = [(seed,) for seed in seeds]
            if task.parallel:
                runs = call_all(_restart, work, each, self.n_jobs)
            else:
                runs = [_restart(work, *one) for one in each]
            best = min(runs, key=lambda one: one.objective)
            line.end(f"{best.status.value}, R {best.objective:.6g}, best of {len(runs)}.")
        plain = task.plain(StopRule(float(base.tol), passes), seeds[0])
        self._keep(task, best, runs, plain)
        self._warn(best, plain, float(base.tol))
        return self

    def decision_function(self, X: Any, *, lengths: ArrayLike | None = None) -> Floats:
        """Return the scores of the labels of bags or rows: of each label the maximum over what is hidden.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`, with LatentPosition or LatentMulticlass.

        Returns
        -------
        array of shape (n_examples, n_classes)
            Scores, no probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import LatentPosition, LatentStructuredSVM
        >>> model = LatentStructuredSVM(latent=LatentPosition(), random_state=0)
        >>> model = model.fit([np.array([[1.0]]), np.array([[-1.0]])], [1, 0])
        >>> model.decision_function([np.array([[2.0], [0.0]])]).shape
        (1, 2)
        """
        model = self.model_
        if isinstance(model, CustomLatent):
            raise AttributeError("decision_function needs LatentPosition or LatentMulticlass.")
        scores: Floats = model.decision(X, lengths, n_threads(self.n_jobs))
        return scores

    @property
    def intercept_(self) -> Floats:
        """Weights of the constant feature of instances, one for each row of ``coef_``."""
        model = self.model_
        if not isinstance(model, BagModel):
            raise AttributeError("intercept_ needs LatentPosition.")
        return model.intercept

    def _task(
        self, base: StructuredSVM, X: Any, y: Any, sample_weight: ArrayLike | None, lengths: ArrayLike | None
    ) -> Task:
        latent = LatentChain() if self.latent is None else self.latent
        if isinstance(latent, (LatentChain, LatentMulticlass)):
            return StateTask(base, latent, X, y, sample_weight, lengths)
        if isinstance(latent, LatentPosition):
            return BagTask(base, latent, X, y, sample_weight, lengths)
        return CustomTask(base, latent, X, y, sample_weight, lengths)

    def _n_runs(self) -> int:
        return int(self.n_restarts) if isinstance(self.init, str) and self.init != "weights" else 1

    def _start(self, task: Task, rng: np.random.RandomState) -> Completion | Floats:
        if isinstance(self.init, str):
            if self.init == "weights":
                old = self._previous()
                if old is None or len(old.parameters) != task.problem.n_parameters:
                    raise ValueError("init='weights' needs an earlier fit of a model with the same weights.")
                weights: Floats = old.parameters
                return weights
            return task.drawn(rng) if self.init == "random" else task.em(rng)
        given: Any = self.init
        if isinstance(given, np.ndarray) and given.dtype.kind == "f":
            if given.shape != (task.problem.n_parameters,) or not np.isfinite(given).all():
                raise ValueError(
                    f"The 'init' parameter of LatentStructuredSVM must be {task.problem.n_parameters} finite weights. "
                    f"Got shape {given.shape} instead."
                )
            return given
        return task.given(given)

    def _keep(self, task: Task, best: LatentSolution, runs: list[LatentSolution], plain: float | None) -> None:
        self._model = task.model(best.parameters)
        self.objective_, self.dual_gap_, self.plain_objective_ = best.objective, best.gap, plain
        self.restarts_ = np.array([one.objective for one in runs])
        self.hidden_ = task.hidden(best.states)
        self.n_iter_, self.status_, self.trace_ = best.n_iter, best.status, best.trace

    def _warn(self, best: LatentSolution, plain: float | None, tol: float) -> None:
        if best.status in (LatentStatus.ITERATION_LIMIT, LatentStatus.INTERRUPTED):
            warn_of_convergence(f"{best.status.sentence} {best.status.remedy}")
        if not best.reached:
            warn_of_convergence(
                f"The last convex problem was left at a relative duality gap of "
                f"{relative_gap(best.trace.after[-1], best.gap):.2g}, tolerance {tol:g}: R may end far above what it "
                "could be. Increase max_iter of the base model, or its tol, or lower C."
            )
        if not best.parameters.any():
            warn_user(
                "All weights are zero: no run found latent variables that are worth their weights. "
                "Give init a better start: latent variables, or weights."
            )
        if isinstance(self.init, np.ndarray) and self.init.dtype.kind == "f" and not self.init.any():
            warn_user(
                "init has weights of zero: all latent variables tie, and the run learns little about them. "
                "Use init='random' or 'em'."
            )
        if plain is not None and best.objective >= _NO_BETTER * plain:
            warn_user(
                f"The latent variables do not improve the objective ({best.objective:.4g} with, {plain:.4g} without). "
                "Use more restarts, init='em', anneal=True or a larger C, or the model without latent variables."
            )

    def _model_record(self) -> Fields:
        return {**super()._model_record(), "hidden": hidden_record(self.hidden_)}

    def _restore_model(self, record: Record) -> None:
        super()._restore_model(record)
        self.hidden_ = read_hidden(record.child("hidden"))

    def _check_restored(self) -> None:
        base = StructuredSVM() if self.base is None else self.base
        self._check_parameters(base)
        base._check_jobs()
        base._check_restored()
        if isinstance(self.latent, LatentPosition) and not isinstance(base.structure, str):
            raise ValueError(f"The base of {type(self).__name__} must have structure='chain' to be saved with bags.")

    def _check_parameters(self, base: Any) -> None:
        owner = type(self).__name__
        if not isinstance(base, StructuredSVM):
            raise ValueError(f"The 'base' parameter of {owner} must be a StructuredSVM or None. Got {base!r} instead.")
        base._check_parameters()
        if base.rescaling != "margin" or base.positive is not None or base.kernel is not None:
            raise ValueError(f"The base of {owner} must have rescaling='margin', positive=None and kernel=None.")
        check_integer(owner, "n_restarts", self.n_restarts, 1)
        if isinstance(self.init, str):
            check_choice(owner, "init", self.init, ("random", "em", "weights"), "an array")
        check_flag(owner, "anneal", self.anneal)
        check_integer(owner, "max_iter", self.max_iter, 1)
        check_number(owner, "tol", self.tol, 0.0, open_low=True)
        check_integer(owner, "verbose", self.verbose, 0)


def _restart(shared: tuple[Any, ...], seed: int) -> LatentSolution:
    """Run the procedure from the start of one seed."""
    model, task, procedure, callbacks = shared
    start = model._start(task, np.random.RandomState(seed))
    found: LatentSolution = procedure.solve(task.problem, task.inner(), start, callbacks, seed)
    return found
