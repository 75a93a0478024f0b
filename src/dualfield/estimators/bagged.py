"""Several taggers, each trained on sentences drawn with replacement: averaged probabilities, and how they differ."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.base import clone

from dualfield.data.checks import check_integer, fixed_random_state
from dualfield.estimators.base import Estimator, fitting
from dualfield.estimators.crf import CRF
from dualfield.estimators.prediction import StructuredPredictor
from dualfield.models.bayes.bootstrap import fit_bootstrap
from dualfield.models.bayes.ensemble import EnsembleModel
from dualfield.persistence.parameters import Parts
from dualfield.solvers.convergence import warn_unless_converged

__all__ = ["BaggedTagger"]

_OF_THE_FIT = ("objective_", "dual_gap_", "n_iter_", "solver_", "status_", "trace_", "C_")


class BaggedTagger(StructuredPredictor, Estimator):
    r"""Averages of taggers that are trained on draws of the training sentences.

    Each of the models sees as many sentences as there are, drawn with replacement, so that they differ as models of
    other training data would. Probabilities of labels, pairs and spans are means over the models, ``score_sequences``
    is the logarithm of a mean, and ``predict`` maximises the expected number of right labels. Of a labelling of many
    tokens the mean is dominated by the model that likes it best: it is too small where few models are averaged.

    With ten models probabilities are better than those of one CRF where C is too large, and not much worse where it is
    right; ``predict_spans(return_std=True)`` also tells by how much the models differ about a span.

    Parameters
    ----------
    estimator : CRF, default=None
        What is trained on each draw; None: ``CRF()``. Its scores must be linear, and its C a number or "evidence",
        which is then chosen once, on all data. Predictions need exact answers of its structure.
    n_estimators : int, default=10
        How many models.
    n_jobs : int, default=None
        Models at the same time, in threads; and threads of predictions. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the draws; None is 0.
    verbose : int, default=0
        Not used; progress is that of the models.

    Attributes
    ----------
    classes_, labels_, structure_, vocabulary_, score_map_
        See :class:`dualfield.estimators.prediction.StructuredPredictor`.
    parameters_, coef_, transitions_
        Of the model of all data, with each sentence once.
    C_ : float
        The C of all models: that of the estimator, or what ``C="evidence"`` has chosen.
    calibration_ : Calibration
        How :meth:`calibrate` chose the temperature, once it was called.
    objective_, dual_gap_, n_iter_, solver_, status_, trace_
        Of the fit to all data.

    See Also
    --------
    dualfield.BayesianCRF : Averages over a posterior distribution of the weights.

    Examples
    --------
    >>> from dualfield import BaggedTagger, CRF
    >>> from dualfield.datasets import load_town_news
    >>> news = load_town_news()
    >>> base = CRF(template="default", constraints="BIO", C=10.0)
    >>> model = BaggedTagger(base, n_estimators=5, random_state=0).fit(news.X_train[:60], news.y_train[:60])
    >>> words = "Tomas Hale left Harwick on 3 May .".split()
    >>> for span in model.predict_spans([words], return_std=True)[0]:
    ...     print(f"{span.probability:.2f} +- {span.std:.2f}", span.type, *words[span.start : span.stop])
    0.85 +- 0.11 PER Harwick
    0.88 +- 0.06 DATE 3 May
    """

    _saved_as = "BaggedTagger"
    _saved_with: ClassVar[Parts] = {"CRF": CRF}
    _model_type = EnsembleModel
    _counted: ClassVar[dict[str, type]] = {"C_": float}
    C_: float

    def __init__(
        self,
        estimator: CRF | None = None,
        n_estimators: int = 10,
        *,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
    ) -> Self:
        """Train all models.

        Parameters
        ----------
        X, y, sample_weight, lengths
            As in :meth:`CRF.fit`.

        Returns
        -------
        BaggedTagger
            The fitted models.

        Examples
        --------
        >>> from dualfield import BaggedTagger
        >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 5, [["x", "y"], ["y", "x"]] * 5
        >>> BaggedTagger(n_estimators=3).fit(X, y).predict([[["b"], ["b"], ["a"]]])
        [['y', 'y', 'x']]
        """
        self._check_parameters()
        base = CRF() if self.estimator is None else clone(self.estimator)
        solver = base._check_parameters()
        data = base._fit_read(base._read(X, y, sample_weight, lengths), solver)
        base.set_params(C=base.C_)
        seed = int(fixed_random_state(self.random_state).randint(2**31 - 1))
        solutions = fit_bootstrap(base, data, int(self.n_estimators), seed, self.n_jobs)
        self._model = EnsembleModel.of(base.model_, [solution.parameters for solution in solutions])
        for name in (*_OF_THE_FIT, "n_features_in_", "feature_names_in_"):
            if hasattr(base, name):
                setattr(self, name, getattr(base, name))
        warn_unless_converged(max(solutions, key=lambda one: one.relative_gap), float(base.tol))
        return self

    def _check_restored(self) -> None:
        self._check_parameters()

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        if self.estimator is not None and not isinstance(self.estimator, CRF):
            raise ValueError(
                f"The 'estimator' parameter of {owner} must be a CRF or None. Got {self.estimator!r} instead."
            )
        if self.estimator is not None and self.estimator.kernel is not None:
            raise ValueError(f"The 'estimator' parameter of {owner} must have kernel=None: models share their columns.")
        check_integer(owner, "n_estimators", self.n_estimators, 1)
