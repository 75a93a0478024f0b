"""Choose C and the width of the kernel by cross-validation: a coarse grid of logarithms, then a fine one around."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from dualfield.estimators import KernelLogisticRegression
from reproductions.fits import stop_if_interrupted, sum_of_losses
from reproductions.problems import Problem
from reproductions.records import Settings

# The paper gives the sizes of its grids (Section 6: 10 x 10, then 20 x 20) but not their ranges. These hold every
# width that it reports as best.
_LOG_C = (-2.0, 4.0)
_LOG_SIGMA = (-0.5, 1.5)
_FOLDS = 5

Score = Callable[[float, float], float]


@dataclass(frozen=True, slots=True)
class Choice:
    """The best pair of a search, with its cross-validated log-loss per example."""

    C: float
    sigma: float
    log_loss: float

    @property
    def gamma(self) -> float:
        """The kernel is exp(-gamma |x - x'|^2) = exp(-|x - x'|^2 / (2 sigma^2))."""
        return gamma_of(self.sigma**2)


def gamma_of(sigma2: float) -> float:
    """Translate the width of Keerthi et al., exp(-|x - x'|^2 / (2 sigma^2))."""
    return 1.0 / (2.0 * sigma2)


def search(score: Score, *, coarse: int, fine: int) -> Choice:
    """Minimise a score of (C, sigma) on two grids.

    Parameters
    ----------
    score : callable
        From C and sigma to a cross-validated log-loss.
    coarse : int
        Points per axis of the first grid, uniform in log C and log sigma.
    fine : int
        Points per axis of the second grid, uniform in C and sigma, between the neighbours of the best pair.

    Returns
    -------
    Choice
        The best pair of both grids; of equal ones the first.

    Examples
    --------
    >>> from reproductions.tuning import search
    >>> best = search(lambda C, sigma: (C - 2.0) ** 2 + (sigma - 1.5) ** 2, coarse=10, fine=20)
    >>> abs(best.C - 2.0) < 0.5, abs(best.sigma - 1.5) < 0.1
    (True, True)
    """
    log_C, log_sigma = (np.linspace(*limits, coarse) for limits in (_LOG_C, _LOG_SIGMA))
    first = _best(score, 10.0**log_C, 10.0**log_sigma)
    around = []
    for value, logs in ((first.C, log_C), (first.sigma, log_sigma)):
        step = float(logs[1] - logs[0])
        around.append(np.linspace(value / 10.0**step, value * 10.0**step, fine))
    second = _best(score, *around)
    return second if second.log_loss < first.log_loss else first


def _best(score: Score, Cs: NDArray[np.float64], sigmas: NDArray[np.float64]) -> Choice:
    choices = [Choice(float(C), float(s), score(float(C), float(s))) for s in sigmas for C in Cs]
    return min(choices, key=lambda choice: choice.log_loss)


def _folds(problem: Problem, settings: Settings) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=settings.seed)
    return list(folds.split(problem.X, problem.y))


def kernel_logistic_score(problem: Problem, settings: Settings) -> Score:
    """Return the cross-validated log-loss of kernel logistic regression, as a function of C and sigma."""
    folds = _folds(problem, settings)

    def score(C: float, sigma: float) -> float:
        total = 0.0
        for train, test in folds:
            model = KernelLogisticRegression(C=C, gamma=gamma_of(sigma**2), n_jobs=settings.threads)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(problem.X[train], problem.y[train])
            stop_if_interrupted(model)
            total += sum_of_losses(model.predict_log_proba(problem.X[test]), model.classes_, problem.y[test])
        return total / len(problem.y)

    return score


def support_vector_score(problem: Problem, settings: Settings) -> Score:
    """Return the cross-validated log-loss of a support vector machine, as a function of C and sigma.

    Platt's sigmoid is fitted to the decision values of all held-out folds together, and its log-loss on them is the
    score: two parameters, so the optimism is small, and no inner cross-validation is needed.
    """
    folds = _folds(problem, settings)
    positive = problem.y == np.unique(problem.y)[1]

    def score(C: float, sigma: float) -> float:
        values = np.empty(len(problem.y))
        for train, test in folds:
            machine = SVC(C=C, gamma=gamma_of(sigma**2)).fit(problem.X[train], problem.y[train])
            values[test] = machine.decision_function(problem.X[test])
        return platt_log_loss(values, positive)

    return score


def platt_log_loss(values: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Fit Platt's sigmoid and return its mean log-loss on the same points.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Decision values.
    positive : ndarray of shape (n,)
        Whether an example is of the positive class; there are both kinds.

    Returns
    -------
    float
        The sigmoid is fitted to targets a little inside 0 and 1, as Platt (1999) has it, so that it stays finite where
        the values separate the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.tuning import platt_log_loss
    >>> values = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> 0.0 < platt_log_loss(values, values > 0.0) < platt_log_loss(values, values > 1.5) < 0.69
    True
    """
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    twice, label = np.concatenate([values, values])[:, None], np.repeat([1, 0], len(values))
    weight = np.concatenate([target, 1.0 - target])
    sigmoid = LogisticRegression(C=1e6, max_iter=1000).fit(twice, label, sample_weight=weight)
    signed = np.where(positive, 1.0, -1.0) * sigmoid.decision_function(values[:, None])
    return float(-log_expit(signed).mean())
