"""A model with the arguments and manners of ``sklearn_crfsuite.CRF``, for scripts that were written for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError

import dualfield.estimators.crf as linear
from dualfield.data.checks import check_choice, check_integer, check_number
from dualfield.data.user_warnings import warn_user
from dualfield.estimators.base import Estimator, fitted, fitting
from dualfield.estimators.crfsuite_tagger import Tagger
from dualfield.estimators.prediction import StructuredPredictor
from dualfield.models.crfsuite_features import choose_features
from dualfield.models.structured import StructuredModel
from dualfield.models.training_data import read_training_data
from dualfield.models.training_log import TrainingLog
from dualfield.persistence.crfsuite_export import check_crfsuite, write_crfsuite
from dualfield.persistence.crfsuite_import import UNTRAINED, read_crfsuite
from dualfield.solvers import AROW, LBFGS, SGD, Auto, PassiveAggressive, Perceptron, Solver, Status
from dualfield.solvers.convergence import warn_of_convergence

__all__ = ["CRF"]

# The parameters that belong to an algorithm, besides those that choose features.
_PARAMETERS = {
    "lbfgs": (
        *("c1", "c2", "max_iterations", "num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch"),
    ),
    "l2sgd": (
        *("c2", "max_iterations", "period", "delta", "calibration_eta", "calibration_rate", "calibration_samples"),
        *("calibration_candidates", "calibration_max_trials"),
    ),
    "ap": ("max_iterations", "epsilon"),
    "pa": ("max_iterations", "epsilon", "pa_type", "c", "error_sensitive", "averaging"),
    "arow": ("max_iterations", "epsilon", "variance", "gamma"),
}
_ONLINE = ("ap", "pa", "arow")  # those that learn from mistakes


class CRF(StructuredPredictor, Estimator):
    r"""Linear-chain CRF that takes the arguments of ``sklearn_crfsuite.CRF``.

    Training minimises CRFsuite's objective, :math:`c_1 \|w\|_1 + c_2 \|w\|^2 - \sum_i \log p(y_i \mid x_i)`, over
    CRFsuite's features, with the solvers of :class:`dualfield.CRF`, which has C = 1 / (c1 + 2 c2) and
    l1_ratio = c1 C. All arguments are accepted; those that only steer CRFsuite's own search are not used.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default=None
        "lbfgs", also None: to the optimum, by the solver that suits, also if c1 > 0; "l2sgd": averaged stochastic
        gradients; "ap": the averaged perceptron; "pa": passive-aggressive learning; "arow": adaptive regularisation of
        weights. A parameter of another algorithm is refused.
    min_freq : float, default=None
        How often a label must follow another to get a weight, and how much the values of an attribute must add up to
        where it occurs with a label. None, 0: all that occur get one (CRFsuite drops sums below 0 even then).
    all_possible_states, all_possible_transitions : bool, default=None
        Whether pairs of attribute and label, and of labels, that do not occur get a weight too. None: no.
    c1, c2 : float, default=None
        Of the penalty; None: 0 and 1. One of them must be above zero: without a penalty there may be no optimum.
    max_iterations : int, default=None
        Most passes over the data; reaching it is not warned of. None: until the duality gap is small, for "l2sgd" 30
        epochs, for "ap", "pa" and "arow" 100.
    num_memories : int, default=None
        Pairs of vectors that L-BFGS keeps; if it is given, L-BFGS it is (OWL-QN if c1 > 0, which takes far longer).
    delta : float, default=None
        For "lbfgs", stop when duality gap / dual value is at most this; None: 1e-4. CRFsuite stops when its objective
        improves by less than its delta over `period` iterations, which says nothing of the distance from the minimum.
    epsilon : float, default=None
        For "pa" and "arow", stop when the mean loss of an epoch is below this; None: 0. Otherwise not used.
    period, linesearch, max_linesearch : default=None
        Not used.
    calibration_eta, calibration_rate, calibration_samples : default=None
        Not used: the first step of "l2sgd" is found by its own trials.
    calibration_candidates, calibration_max_trials : default=None
        Not used either.
    pa_type : {0, 1, 2}, default=None
        For "pa", how long moves are; see :class:`dualfield.solvers.PassiveAggressive`. None: 1.
    c : float, default=None
        For "pa", the larger, the longer moves may be. None: 1.
    error_sensitive, averaging : bool, default=None
        For "pa", whether the margin grows with the number of wrong labels, and whether the mean of all points is
        returned. None: yes.
    variance, gamma : float, default=None
        For "arow", see :class:`dualfield.solvers.AROW`. None: 1.
    verbose : bool, default=False
        Whether to show a live line.
    model_filename : str, default=None
        A model file of CRFsuite: training writes it, and a model that was not trained predicts with it. Labels must
        then be str.
    keep_tempfiles : bool, default=False
        Not used, and warned of: there are no temporary files.
    trainer_cls : None
        Refused if given.

    Attributes
    ----------
    classes_ : list of str
        The labels, sorted. None before there is a model, as all down to `training_log_` are.
    state_features_ : dict
        Weights by (attribute, label).
    transition_features_ : dict
        Weights by (label, next label).
    attributes_ : list of str
        The attributes that have a weight other than zero.
    num_attributes_ : int
        Their number.
    size_ : int
        Bytes of the model as a file of CRFsuite.
    tagger_ : Tagger
        Answers as ``pycrfsuite.Tagger`` does: ``labels``, ``set``, ``tag``, ``probability``, ``marginal``, ``info``.
    training_log_ : TrainingLog
        The course of the fit: ``iterations``, ``last_iteration``, ``featgen_num_features``, ``training_seconds``. None
        for a model that was read from a file of CRFsuite.
    modelfile
        Its ``name`` is `model_filename`.
    objective_, dual_gap_ : float
        CRFsuite's objective, and a proven bound on its distance from the minimum.
    dev_score_ : float
        Share of right labels on the development data, if there were any.
    n_features_, n_iter_, solver_, status_, trace_
        As in :class:`dualfield.CRF`.

    See Also
    --------
    dualfield.CRF : The same model with all that it can do.

    Examples
    --------
    >>> from dualfield.estimators.crfsuite import CRF
    >>> X = [[{"word": "Rex"}, {"word": "barks"}], [{"word": "Tom"}, {"word": "and"}, {"word": "Rex"}]]
    >>> crf = CRF(algorithm="lbfgs", c1=0.0, c2=0.1, max_iterations=100, all_possible_transitions=True)
    >>> crf = crf.fit(X, [["name", "other"], ["name", "other", "name"]])
    >>> crf.predict([[{"word": "Tom"}, {"word": "barks"}]])
    [['name', 'other']]
    >>> crf.classes_, len(crf.transition_features_)
    (['name', 'other'], 4)
    """

    _saved_as = "crfsuite.CRF"

    _model_type = StructuredModel
    _counted: ClassVar[dict[str, type]] = {"dev_score_": float}
    classes_: list[Any] | None = fitted("names", none_before_fit=True)  # type: ignore[assignment]
    dev_score_: float
    _tagger: Tagger | None = None
    n_jobs = None  # which scripts for sklearn-crfsuite do not give

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls

    @fitting
    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Train on labelled sequences.

        Parameters
        ----------
        X : list of lists of dicts
            Sequences, in this or any other form that :meth:`dualfield.data.Batch.build` takes.
        y : list of lists of str
            Their labels.
        X_dev, y_dev : default=None
            Sequences that are tagged after training; see `dev_score_`. They do not change the model.

        Returns
        -------
        CRF
            The fitted model.

        Examples
        --------
        >>> from dualfield.estimators.crfsuite import CRF
        >>> crf = CRF(c2=0.1).fit([[["a"], ["b"]]], [["x", "y"]], [[["b"]]], [["y"]])
        >>> crf.dev_score_
        1.0
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev must be given together.")
        if self.keep_tempfiles:
            warn_user("keep_tempfiles has no effect: this CRF has no temporary files.")
        c1, c2 = self._check_parameters()
        solver, strength = self._solver(), c1 + 2.0 * c2
        trainer = linear.CRF(
            C=1.0 / strength,
            l1_ratio=c1 / strength,
            tol=1e-4 if self.delta is None else self.delta,
            max_iter=100 if self.max_iterations is None and self.algorithm in _ONLINE else self.max_iterations,
            random_state=0,
            verbose=int(bool(self.verbose)),
        )
        data = choose_features(
            read_training_data(trainer, X, y, None, None, hinge=False),
            0.0 if self.min_freq is None else float(self.min_freq),
            bool(self.all_possible_states),
            bool(self.all_possible_transitions),
        )
        if self.model_filename is not None:  # before the time is spent
            check_crfsuite(data.model(np.zeros(data.score_map.n_parameters), 1.0))
        solution = trainer._solve(solver, data, None)
        self._keep(data.model(solution.parameters, 1.0), solution)
        self.objective_, self.dual_gap_ = strength * solution.objective, strength * solution.gap
        self.trace_ = solution.trace.scaled(strength)
        if solution.status not in (Status.CONVERGED, Status.FINISHED) and not (
            solution.status is Status.ITERATION_LIMIT and self.max_iterations is not None
        ):
            warn_of_convergence(
                f"{solution.status.sentence} Relative duality gap {solution.relative_gap:.3g}; "
                "raise delta if this is good enough."
            )
        self.__dict__.pop("dev_score_", None)
        if X_dev is not None:
            self.dev_score_ = self.score(X_dev, y_dev)
        if self.model_filename is not None:
            write_crfsuite(self._model, self.model_filename)
        return self

    @property
    def model_(self) -> Any:
        """What the fit has found, or what is in the file `model_filename`: a frozen value."""
        if not self.__sklearn_is_fitted__() and self.model_filename is not None:
            raise NotFittedError(f"This CRF is not fitted, and its model_filename {self.model_filename!r} is no file.")
        return super().model_

    @property
    def tagger_(self) -> Tagger | None:
        """The model, asked as a ``pycrfsuite.Tagger`` is."""
        if not self.__sklearn_is_fitted__():
            return None
        if self._tagger is None or self._tagger.model is not self.model_:
            self._tagger = Tagger(self.model_)
        return self._tagger

    @property
    def state_features_(self) -> dict[tuple[str, Any], float] | None:  # type: ignore[override]
        """Weights of attributes that are not zero, by (attribute, label)."""
        return super().state_features_ if self.__sklearn_is_fitted__() else None

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float] | None:  # type: ignore[override]
        """Weights of transitions that are not zero, by (label, next label)."""
        return super().transition_features_ if self.__sklearn_is_fitted__() else None

    @property
    def attributes_(self) -> list[str] | None:
        """The attributes that have a weight other than zero."""
        weights = self.state_features_
        return None if weights is None else list(dict.fromkeys(attribute for attribute, _ in weights))

    @property
    def num_attributes_(self) -> int | None:
        """The number of attributes that have a weight other than zero."""
        attributes = self.attributes_
        return None if attributes is None else len(attributes)

    @property
    def size_(self) -> int | None:
        """Bytes of the model as a file of CRFsuite."""
        tagger = self.tagger_
        return None if tagger is None else int(tagger.info().header["size"])

    @property
    def training_log_(self) -> TrainingLog | None:
        """The course of the fit, with the names that it has in sklearn-crfsuite."""
        if not self.__sklearn_is_fitted__() or not len(self.trace_):
            return None
        dev_score = getattr(self, "dev_score_", None)
        return TrainingLog.of(self.trace_, self.model_.parameters, int(self.n_features_), dev_score)

    @property
    def modelfile(self) -> SimpleNamespace:
        """Its ``name`` is `model_filename`; None: the model is in memory only."""
        return SimpleNamespace(name=self.model_filename)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_tagger"}

    def __sklearn_is_fitted__(self) -> bool:
        if "_model" not in vars(self) and self.model_filename is not None and Path(self.model_filename).exists():
            self._keep(read_crfsuite(self.model_filename), UNTRAINED)
        return "_model" in vars(self)

    def _check_restored(self) -> None:
        """Predictions do not depend on the parameters."""

    def _solver(self) -> Solver:
        if self.algorithm == "l2sgd":
            return SGD()
        if self.algorithm == "ap":
            return Perceptron()
        if self.algorithm == "pa":
            return PassiveAggressive(
                type=1 if self.pa_type is None else self.pa_type,
                c=1.0 if self.c is None else self.c,
                error_sensitive=self.error_sensitive is None or bool(self.error_sensitive),
                average=self.averaging is None or bool(self.averaging),
                epsilon=self.epsilon or 0.0,
            )
        if self.algorithm == "arow":
            return AROW(
                variance=1.0 if self.variance is None else self.variance,
                gamma=1.0 if self.gamma is None else self.gamma,
                epsilon=self.epsilon or 0.0,
            )
        return Auto() if self.num_memories is None else LBFGS(int(self.num_memories))

    def _check_parameters(self) -> tuple[float, float]:
        """Check the parameters that are used, and return c1 and c2."""
        if self.algorithm is not None:
            check_choice("CRF", "algorithm", self.algorithm, tuple(_PARAMETERS), "None")
        algorithm = self.algorithm or "lbfgs"
        known = _PARAMETERS[algorithm]
        for name in sorted({*sum(_PARAMETERS.values(), ())} - {*known}):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"The {name!r} parameter of CRF does not belong to algorithm={algorithm!r}. "
                    f"Got {getattr(self, name)!r} instead of None."
                )
        for name in ("c1", "c2", "min_freq", "epsilon"):
            if getattr(self, name) is not None:
                check_number("CRF", name, getattr(self, name), 0.0)
        for name in ("delta", "c", "variance", "gamma"):
            if getattr(self, name) is not None:
                check_number("CRF", name, getattr(self, name), 0.0, open_low=True)
        if self.pa_type not in (None, 0, 1, 2):
            raise ValueError(f"The 'pa_type' parameter of CRF must be None, 0, 1 or 2. Got {self.pa_type!r} instead.")
        check_integer("CRF", "max_iterations", self.max_iterations, 1, or_none=True)
        check_integer("CRF", "num_memories", self.num_memories, 1, or_none=True)
        if self.trainer_cls is not None:
            raise ValueError(f"The 'trainer_cls' parameter of CRF must be None. Got {self.trainer_cls!r} instead.")
        if self.model_filename is not None and not Path(self.model_filename).resolve().parent.is_dir():
            raise ValueError(
                "The 'model_filename' parameter of CRF must be a file in a folder that exists. "
                f"Got {self.model_filename!r} instead."
            )
        if "c2" not in known:
            return 0.0, 0.5  # C is 1: mistakes move the weights once
        c1, c2 = float(self.c1 or 0.0), 1.0 if self.c2 is None else float(self.c2)
        if c1 + c2 == 0.0:
            raise ValueError(
                "The 'c1' and 'c2' parameters of CRF must not both be 0: without a penalty there may be no optimum. "
                "Use c2=1e-3 or less to come close to one."
            )
        return c1, c2
