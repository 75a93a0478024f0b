"""Conditional random fields with hidden sub-states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice, check_integer, check_number
from dualfield.data.user_warnings import warn_user
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.engines.shared_tasks import call_all, runs_here
from dualfield.estimators.base import Estimator, fitted, fitting
from dualfield.estimators.calibrating import chosen
from dualfield.estimators.crf import CRF
from dualfield.estimators.latent_prediction import LatentPredictor
from dualfield.models.labelling_order import LabellingOrder, labelling_order
from dualfield.models.latent.data import StateData
from dualfield.models.latent.start import given_states, hard_em
from dualfield.models.possible import ranked_where_possible
from dualfield.models.temperature_scaling import Calibration
from dualfield.objectives.latent import Completion
from dualfield.objectives.latent_chain import StateProblem
from dualfield.objectives.latent_states import LatentChain, LatentMulticlass
from dualfield.persistence.parameters import Parts
from dualfield.solvers import LBFGS, Solution, Status, StopRule
from dualfield.solvers.convergence import warn_of_convergence
from dualfield.solvers.latent.cccp import CCCP
from dualfield.solvers.latent.cuts import InnerDescent
from dualfield.solvers.latent.records import LatentSolution, LatentStatus
from dualfield.solvers.progress import ProgressLine
from dualfield.structures.checks import n_threads

__all__ = ["LatentCRF"]

_FIRST = StopRule(1e-2, 50.0)  # the convex fit to the latent variables of the start
_MOST_PASSES = 10_000.0
_MOST_STEPS, _PATIENCE = 1000, 1e-3
_NO_BETTER = 0.98


class LatentCRF(LatentPredictor, Estimator):
    r"""Conditional random field whose labels have hidden sub-states: the hidden-state CRF.

    With score(z) the score of a sequence of states z = (label, sub-state), p(y | x) sums exp(score(z)) over the states
    with labels y. Training lowers

    .. math::
        R(w) = \tfrac{1}{2} \|w\|^2 + C \sum_i v_i \Bigl[ \log \sum_z \exp \mathrm{score}(z)
        - \log \sum_{z : \mathrm{labels}(z) = y_i} \exp \mathrm{score}(z) \Bigr]

    It is :class:`dualfield.LatentStructuredSVM` with sums in the place of both maxima, and not convex either: several
    runs from different starts, and the one with the lowest R is kept. There is no duality gap.

    Parameters
    ----------
    base : CRF, default=None
        Has the parameters of the model without sub-states: C, features, template, constraints, and so on, with
        ``l1_ratio=0`` and ``temperature=1``. None: those of ``CRF()``. Its ``tol`` and ``max_iter`` end a run.
    latent : LatentChain or LatentMulticlass, default=None
        Sub-states of labels, or components of classes. None: ``LatentChain()``.
    n_restarts : int, default=6
        Runs from different starts.
    init : {"random", "em"} or array, default="random"
        Latent variables to begin with: drawn, those of a hidden Markov model trained by hard EM, or integers as
        :meth:`predict_latent` returns them. The weights of a run begin with a convex fit to them. A start from weights
        of zero, where all sub-states are alike, would stay there.
    solver : {"lbfgs", "em"}, default="lbfgs"
        L-BFGS on R, or the concave-convex procedure with expected latent variables, which is EM with a convex M-step:
        slower, and R never rises.
    n_jobs : int, default=None
        Runs at the same time. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    verbose : int, default=0
        1: a live line; 2: a line for every look.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels, sorted.
    parameters_ : array of shape (n_parameters,)
        The weights.
    objective_ : float
        R of the weights.
    plain_objective_ : float or None
        The minimum without sub-states; None if there are none.
    restarts_ : array of shape (n_runs,)
        R of all runs.
    states_ : StateTagger
        A tagger whose labels are the states, written label/sub-state.
    n_iter_, status_, trace_
        Of the run that was kept; the trace is a LatentTrace with solver="em".

    See Also
    --------
    dualfield.CRF : Without sub-states.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield import CRF, LatentCRF, LatentMulticlass
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
    >>> y = np.array(["up or down", "left or right"] * 10)
    >>> model = LatentCRF(CRF(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
    >>> model.predict_proba([[0.0, 2.0]]).round(2)
    array([[0., 1.]])
    """

    _saved_as = "LatentCRF"
    _saved_with: ClassVar[Parts] = {one.__name__: one for one in (CRF, LatentChain, LatentMulticlass)}
    _has_gap = False
    calibration_: Calibration = fitted("calibration", is_optional=True)

    def __init__(
        self,
        base: CRF | None = None,
        latent: LatentChain | LatentMulticlass | None = None,
        *,
        n_restarts: int = 6,
        init: str | ArrayLike | Sequence[Any] = "random",
        solver: str = "lbfgs",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.base = base
        self.latent = latent
        self.n_restarts = n_restarts
        self.init = init
        self.solver = solver
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> Self:
        """Train on labelled sequences, on parse trees, or on rows with LatentMulticlass.

        Parameters
        ----------
        X : list, generator, array or sparse matrix
            Sequences as :meth:`dualfield.CRF.fit` takes them; a matrix with LatentMulticlass.
        y : list of lists of labels, list of trees, or one label for each row
            None, or a set of labels, at a node of a sequence means that its label is not known, or only in part; so do
            None or a :class:`dualfield.data.PartialTree` in the place of a tree.
        sample_weight : array of shape (n_examples,), default=None
            Weights v_i of at least 0.
        lengths : array of int, default=None
            How many rows of a flat `X` each sequence has.

        Returns
        -------
        LatentCRF
            The fitted model.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import CRF, LatentCRF, LatentMulticlass
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentCRF(CRF(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> model.score(X, y)
        1.0
        """
        base, latent = self._check_parameters()
        data = StateData.read(base, latent, X, y, sample_weight, lengths, hinge=False)
        problem = data.problem(1.0, 1)
        runs_wanted = int(self.n_restarts) if isinstance(self.init, str) else 1
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=runs_wanted).tolist()
        most = _MOST_PASSES if base.max_iter is None else float(base.max_iter)
        rule = StopRule(float(base.tol), most)
        with one_blas_thread(), ProgressLine(type(self).__name__, int(self.verbose)) as line:
            callbacks = line if self.verbose and runs_here() else None
            runs = call_all(_restart, (self, data, problem, rule, callbacks), [(one,) for one in seeds], self.n_jobs)
            best = min(runs, key=lambda one: one.objective)
            line.end(f"{best.status.value}, R {best.objective:.6g}, best of {len(runs)}.")
        self.restarts_ = np.array([one.objective for one in runs])
        self.objective_, self.n_iter_ = best.objective, best.n_iter
        self.status_, self.trace_ = best.status, best.trace
        self._model = data.model(best.parameters)
        self.plain_objective_ = None
        if data.space.is_split:
            plain = data.problem(1.0, 1, plain=True)
            states = np.maximum(data.data.codes, 0)
            known = data.data.allowed is not None
            self.plain_objective_ = LBFGS().solve(plain.objective(states, allowed=known), rule).objective
        self._warn(best)
        return self

    def _run(
        self, problem: StateProblem, states: NDArray[Any], rule: StopRule, callbacks: Any
    ) -> Solution[Floats] | LatentSolution:
        if self.solver == "em":
            # Random sub-states are near a saddle, which EM leaves in many small steps: it must not stop there.
            steps = CCCP(
                _MOST_STEPS, _PATIENCE * rule.tol, _PATIENCE * rule.tol, max_passes=rule.max_passes, temperature=1.0
            )
            start = Completion(states, problem.features(states))
            return steps.solve(problem, InnerDescent(problem), start, callbacks)
        first = LBFGS().solve(problem.objective(states), _FIRST)
        return LBFGS().solve(problem.objective(states, allowed=True), rule, first.parameters, callbacks)

    def predict_proba(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the probability of each label: the sum over its sub-states.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.

        Returns
        -------
        list of arrays of shape (T_i, n_labels); with LatentMulticlass one array of shape (n_rows, n_labels)
            Columns follow ``classes_``.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import CRF, LatentCRF, LatentMulticlass
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentCRF(CRF(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> model.predict_proba([[0.0, 0.5], [0.0, 0.0]]).round(2)
        array([[0.27, 0.73],
               [0.5 , 0.5 ]])
        """
        shape, rows = self.model_.marginals(X, lengths, n_threads(self.n_jobs))
        return self.model_.cut(rows, shape)

    def calibrate(self, X: Any, y: Any, *, lengths: ArrayLike | None = None, cv: Any = None) -> Self:
        """Choose the temperature of all probabilities by data that the model was not trained on.

        As :meth:`dualfield.CRF.calibrate`: the log-loss of the labels, whose probabilities are sums over sub-states, is
        smallest there. Predictions may change: which sum is largest depends on T.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.
        y : list of lists of labels, or one label for each row
            True labels.
        cv : int, splitter or iterable, default=None
            Where there are no held-out data: folds as in scikit-learn, of the training data.

        Returns
        -------
        LatentCRF
            The model itself.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import CRF, LatentCRF, LatentMulticlass
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentCRF(CRF(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> held_out = ["left or right", *y[1:]]
        >>> model.calibrate(X, held_out).calibration_.temperature < 1.0           # it was too modest
        True
        """
        threads = n_threads(self.n_jobs)
        found = chosen(self, X, y, lengths, cv, lambda fold, *data: fold.model_.held_out(*data, threads))
        self._model = self.model_.calibrated(found)
        return self

    def rank_for_labelling(
        self, X: Any, by: str = "entropy", per: str = "token", *, lengths: ArrayLike | None = None
    ) -> LabellingOrder:
        """Say which examples to label next, as :meth:`dualfield.CRF.rank_for_labelling` does.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`: examples without labels.
        by : {"entropy", "least_confidence"}, default="entropy"
            The entropies of the labels of all tokens, or minus the logarithms of the largest probabilities.
        per : {"token", "sentence"}, default="token"
            Divided by the number of tokens, or not.

        Returns
        -------
        LabellingOrder
            ``order``, the places of the examples, and ``values``, how uncertain each is.
        """
        model, threads = self.model_, n_threads(self.n_jobs)

        def rank(some: Any) -> LabellingOrder:
            shape, rows = model.marginals(some, lengths, threads)
            cut = rows[:, None, :] if model.is_flat else np.split(rows, shape.offsets[1:-1])
            return labelling_order(type(self).__name__, by, per, cut, n_tokens=shape.n_tokens)

        return ranked_where_possible(model.states, X, lengths, threads, rank)

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the most probable label of each node, summed over sub-states, or the tree with most right labels.

        Labels are chosen node by node, so that a sequence of them may break constraints on neighbours. The most
        probable whole labelling would need a sum over sub-states inside a maximum over labels, for which there is no
        fast algorithm. A predicted parse tree is one of the grammar: that in which the expected number of spans with
        the right label is largest (Goodman 1996).

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.

        Returns
        -------
        list or array
            Labels, in the form of those of training.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import CRF, LatentCRF, LatentMulticlass
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentCRF(CRF(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> model.predict([[0.0, 3.0], [-2.0, 0.0]])
        ['up or down', 'left or right']
        """
        return self.model_.most_right(X, lengths, n_threads(self.n_jobs))

    def _warn(self, best: Solution[Floats] | LatentSolution) -> None:
        if best.status not in (Status.CONVERGED, Status.STOPPED, LatentStatus.SETTLED, LatentStatus.SMALL_STEP):
            warn_of_convergence(f"{best.status.sentence} {best.status.remedy}")
        plain = self.plain_objective_
        if plain is not None and best.objective >= _NO_BETTER * plain:
            warn_user(
                f"The latent variables do not improve the objective ({best.objective:.4g} with, {plain:.4g} without). "
                "Use more restarts, init='em' or a larger C, or the model without latent variables."
            )

    def _check_restored(self) -> None:
        base, _ = self._check_parameters()
        base._check_jobs()
        base._check_restored()

    def _check_parameters(self) -> tuple[CRF, LatentChain | LatentMulticlass]:
        owner = type(self).__name__
        base = CRF() if self.base is None else self.base
        latent = LatentChain() if self.latent is None else self.latent
        if not isinstance(base, CRF):
            raise ValueError(f"The 'base' parameter of {owner} must be a CRF or None. Got {base!r} instead.")
        base._check_parameters()
        check_number(f"the base of {owner}", "C", base.C, 0.0, open_low=True)
        if base.l1_ratio != 0.0 or base.temperature != 1.0 or base.cost is not None or base.kernel is not None:
            raise ValueError(f"The base of {owner} must have l1_ratio=0, temperature=1, cost=None and kernel=None.")
        if not isinstance(latent, (LatentChain, LatentMulticlass)):
            raise ValueError(
                f"The 'latent' parameter of {owner} must be a LatentChain or LatentMulticlass. Got {latent!r} instead."
            )
        check_integer(owner, "n_restarts", self.n_restarts, 1)
        if isinstance(self.init, str):
            check_choice(owner, "init", self.init, ("random", "em"), "an array")
        check_choice(owner, "solver", self.solver, ("lbfgs", "em"))
        check_integer(owner, "verbose", self.verbose, 0)
        check_number(owner, "tol", base.tol, 0.0, open_low=True)
        return base, latent


def _restart(shared: tuple[Any, ...], seed: int) -> Solution[Floats] | LatentSolution:
    """Train from the start of one seed."""
    model, data, problem, rule, callbacks = shared
    rng = np.random.RandomState(seed)
    if isinstance(model.init, str):
        states = problem.start(rng) if model.init == "random" else hard_em(problem, rng)
    else:
        states = given_states(type(model).__name__, data, model.init)
    found: Solution[Floats] | LatentSolution = model._run(problem, states, rule, callbacks)
    return found
