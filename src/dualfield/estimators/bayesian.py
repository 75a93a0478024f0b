"""Bayesian conditional random fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from numpy.typing import ArrayLike

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice, check_integer, check_number, fixed_random_state
from dualfield.estimators.base import Estimator, fitted, fitting
from dualfield.estimators.crf import CRF
from dualfield.estimators.prediction import StructuredPredictor
from dualfield.features import Template
from dualfield.models.bayes.model import BayesianModel
from dualfield.models.bayes.training import infer, not_converged
from dualfield.solvers.convergence import warn_of_convergence
from dualfield.structures import Structure
from dualfield.tuning.evidence import check_evidence

__all__ = ["BayesianCRF"]

_OF_CRF = (
    *("structure", "features", "min_freq", "pair_features", "start_stop", "template", "constraints", "class_weight"),
    *("temperature", "tol", "n_jobs", "random_state", "verbose"),
)
_OF_THE_FIT = ("objective_", "dual_gap_", "n_iter_", "solver_", "status_", "trace_", "C_")


class BayesianCRF(StructuredPredictor, Estimator):
    r"""A conditional random field whose predictions are averages over the posterior of its weights.

    The penalty of a :class:`CRF` says that weights are Gaussian with variance C T before labels are seen. With them,

    .. math::
        p(w \mid X, y) \propto N(w; 0, C T I) \prod_i p(y_i \mid x_i, w), \qquad
        p(y \mid x) = \int p(y \mid x, w) \, p(w \mid X, y) \, dw.

    The average over the posterior is robust against a C that is too large. Where C is right it was not better than a
    CRF at its mode in our measurements, and one temperature (:meth:`CRF.calibrate`) or ten models
    (:class:`BaggedTagger`) did as much for less: see the guide. Probabilities of labels are means over ``n_predict``
    draws; ``predict`` maximises the expected number of right labels; ``score_sequences`` is the logarithm of a mean,
    which for long sequences is dominated by the best draw: with few draws it is too small.

    Parameters
    ----------
    structure : str or Structure, default="chain"
        As in :class:`CRF`; a structure that knows the covariances of its parts.
    C : float or "evidence", default="evidence"
        As in :class:`CRF`: the variance of the weights in advance, divided by T; "evidence" chooses it.
    features, min_freq, pair_features, start_stop, template, constraints, class_weight, temperature
        As in :class:`CRF`.
    inference : {"vb", "power_ep", "hmc", "laplace"}, default="vb"
        "vb": the closest Gaussian. "hmc": draws from the posterior itself by Hamiltonian Monte Carlo, the reference.
        "power_ep": flattened power expectation propagation, the method of Qi, Szummer and Minka (2005), for chains of
        order 1; look at ``converged_``. "laplace": the Gaussian around the mode, for its evidence and standard
        deviations; it does not predict. "hmc" and "power_ep" take at most 2,000 weights.
    covariance : {"diagonal", "full"}, default="diagonal"
        Of "vb" and "laplace": independent weights, for any number of them; or all covariances, for at most 2,000.
        With "laplace" and "diagonal" ``posterior_std_`` is that of a weight where all others are known.
    prediction : {"draws", "ep"}, default="draws"
        "draws": exact answers for each of ``n_predict`` draws of the weights are averaged. "ep": one distribution of
        labellings by expectation propagation with messages of single labels, as in the paper, for "vb" and "power_ep",
        chains of order 1 and at most 2,000 weights. It answers all questions about probabilities, but has no spread.
    n_draws : int, default=12
        Draws, half of them negatives of the others, with which "vb" is fitted.
    n_predict : int, default=100
        Draws over which predictions are averaged.
    damping : float, default=0.25
        Of "power_ep": the share by which sites move.
    schedule : {"parallel", "serial"}, default="parallel"
        Of "power_ep": all sites at once, or one sequence after another.
    max_iter : int, default=200
        Most sweeps of "power_ep".
    tol : float, default=1e-4
        Of the fit of the mode.
    n_jobs : int, default=None
        Threads; results do not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of all draws; None is 0.
    verbose : int, default=0
        Of the fit of the mode.

    Attributes
    ----------
    classes_, labels_, structure_, vocabulary_, score_map_
        See :class:`dualfield.estimators.prediction.StructuredPredictor`.
    parameters_, coef_, transitions_, start_, stop_
        Of the mode of the posterior, which is that of a CRF. The mean is much longer, and worse to predict with.
    posterior_mean_, posterior_std_ : array of shape (n_parameters,)
        Of the weights, in the order of the score map.
    log_evidence_ : float
        Laplace's approximation of log p(y | X, C).
    elbo_, elbo_error_ : float
        A lower bound of the log-evidence, with "vb": a mean over draws that the fit has not seen, and its standard
        error; else NaN.
    C_ : float
        The C that was used.
    converged_ : bool
        Whether the inference ended at its tolerance; for "hmc", whether R-hat is below 1.1. Where not, the fit warns.
    r_hat_ : float
        Of "hmc": the largest potential scale reduction of a weight; else NaN. Not in files.
    course_ : array
        The objective of "vb", or the largest change of a site in each sweep of "power_ep". Not in files.
    objective_, dual_gap_, n_iter_, solver_, status_, trace_
        Of the fit of the mode.

    See Also
    --------
    CRF.calibrate : One temperature for all probabilities.
    BaggedTagger : Averages over draws of the training sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield import BayesianCRF
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 3, [["x", "y"], ["y", "x"]] * 3
    >>> model = BayesianCRF(C=3.0, random_state=0).fit(X, y)
    >>> model.predict([[["a"], ["b"], ["new"]]])
    [['x', 'y', 'x']]
    >>> model.converged_, bool((model.posterior_std_[model.score_map_.used] < np.sqrt(3.0)).all())
    (True, True)
    """

    _saved_as = "BayesianCRF"
    _asked_with = ("temperature", "template")
    _model_type = BayesianModel
    _counted: ClassVar[dict[str, type]] = {"C_": float}
    C_: float
    posterior_mean_: Floats = fitted("mean")
    posterior_std_: Floats = fitted("std")
    log_evidence_: float = fitted("log_evidence")
    elbo_: float = fitted("elbo")
    elbo_error_: float = fitted("elbo_error")
    converged_: bool = fitted("converged")

    def __init__(
        self,
        structure: str | Structure = "chain",
        C: float | Literal["evidence"] = "evidence",
        *,
        inference: Literal["vb", "power_ep", "hmc", "laplace"] = "vb",
        covariance: Literal["diagonal", "full"] = "diagonal",
        prediction: Literal["draws", "ep"] = "draws",
        n_draws: int = 12,
        n_predict: int = 100,
        damping: float = 0.25,
        schedule: Literal["parallel", "serial"] = "parallel",
        max_iter: int = 200,
        features: Literal["observed", "all"] = "observed",
        min_freq: int = 0,
        pair_features: bool | Sequence[str] | Sequence[int] = False,
        start_stop: bool = False,
        template: Template | str | None = None,
        constraints: str | ArrayLike | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        temperature: float = 1.0,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.C = C
        self.inference = inference
        self.covariance = covariance
        self.prediction = prediction
        self.n_draws = n_draws
        self.n_predict = n_predict
        self.damping = damping
        self.schedule = schedule
        self.max_iter = max_iter
        self.features = features
        self.min_freq = min_freq
        self.pair_features = pair_features
        self.start_stop = start_stop
        self.template = template
        self.constraints = constraints
        self.class_weight = class_weight
        self.temperature = temperature
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> Self:
        """Find the posterior of the weights.

        Parameters
        ----------
        X, y, sample_weight, lengths
            As in :meth:`CRF.fit`; all labels must be known.

        Returns
        -------
        BayesianCRF
            The fitted model.

        Examples
        --------
        >>> from dualfield import BayesianCRF
        >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 3, [["x", "y"], ["y", "x"]] * 3
        >>> BayesianCRF(C=3.0, inference="laplace").fit(X, y).predict(X)
        Traceback (most recent call last):
            ...
        ValueError: inference='laplace' has an evidence and covariances, but no predictions: ...
        """
        base = self._base()
        solver = base._check_parameters()
        data = base._read(X, y, sample_weight, lengths)
        check_evidence(base, data, "posterior of BayesianCRF", "Use a CRF")
        uses_ep = self.inference == "power_ep" or self.prediction == "ep"
        if uses_ep and (data.pairs is not None or self.start_stop or not _is_plain(data.structure)):
            what = "inference='power_ep'" if self.inference == "power_ep" else "prediction='ep'"
            raise ValueError(
                f"{what} is for chains of order 1 whose edges have transitions only: pair_features=False and "
                f"start_stop=False. Got {data.structure!r}."
            )
        data = base._fit_read(data, solver)
        model, self.course_, self.r_hat_ = infer(
            base.model_,
            base._objective(data),
            base.C_,
            inference=self.inference,
            prediction=self.prediction,
            covariance=self.covariance,
            n_draws=int(self.n_draws),
            n_predict=int(self.n_predict),
            damping=float(self.damping),
            schedule=self.schedule,
            max_iter=int(self.max_iter),
            seed=int(fixed_random_state(self.random_state).randint(2**31 - 1)),
        )
        self._model = replace(model, temperature=float(self.temperature))
        for name in (*_OF_THE_FIT, "n_features_in_", "feature_names_in_"):
            if hasattr(base, name):
                setattr(self, name, getattr(base, name))
        said = not_converged(model, self.course_, self.r_hat_)
        if said is not None:
            warn_of_convergence(said)
        return self

    def _base(self) -> CRF:
        """Return the CRF whose weights have the posterior, after a look at all parameters."""
        owner = type(self).__name__
        check_choice(owner, "inference", self.inference, ("vb", "power_ep", "hmc", "laplace"))
        check_choice(owner, "covariance", self.covariance, ("diagonal", "full"))
        check_choice(owner, "prediction", self.prediction, ("draws", "ep"))
        if self.prediction == "ep" and self.inference not in ("vb", "power_ep"):
            raise ValueError(
                f"The 'prediction' parameter of {owner} must be 'draws' with inference={self.inference!r}: EP averages "
                "over a Gaussian, of 'vb' or 'power_ep'. Got 'ep' instead."
            )
        check_choice(owner, "schedule", self.schedule, ("parallel", "serial"))
        check_integer(owner, "n_draws", self.n_draws, 2)
        check_integer(owner, "n_predict", self.n_predict, 1)
        check_integer(owner, "max_iter", self.max_iter, 1)
        check_number(owner, "temperature", self.temperature, 0.0, open_low=True)
        check_number(owner, "damping", self.damping, 0.0, open_low=True)
        if self.damping > 1.0:
            raise ValueError(f"The 'damping' parameter of {owner} must be in (0, 1]. Got {self.damping!r} instead.")
        check_number(owner, "C", self.C, 0.0, open_low=True, word="evidence")
        return CRF(C=self.C, **{name: getattr(self, name) for name in _OF_CRF})

    def _check_restored(self) -> None:
        self._base()._check_restored()


def _is_plain(structure: Structure) -> bool:
    """Whether an edge scores each pair of labels, and all neighbours have one."""
    return structure.name == "chain" and structure.n_cliques == structure.n_labels**2
