"""From a fitted CRF to a posterior distribution of its weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.models.bayes.evidence import laplace_evidence
from dualfield.models.bayes.model import BayesianModel
from dualfield.models.structured import StructuredModel
from dualfield.objectives import Objective
from dualfield.solvers.bayes.gaussian import Gaussian
from dualfield.solvers.bayes.hamiltonian import draw_hamiltonian
from dualfield.solvers.bayes.posterior import Posterior
from dualfield.solvers.bayes.power_ep import fit_power_ep
from dualfield.solvers.bayes.variational import fit_diagonal, fit_full

MANY = "{what} needs a matrix of weights by weights, for at most 2,000 of them. Got {n:,} weights: use {instead}."
_NOT_CONVERGED = {
    "power_ep": "Power EP did not converge in {n} sweeps: the last one moved a site by {change:.2g}. Its answers may "
    "be far from those of the posterior. Use inference='vb', or calibrate(X, y, cv=5) of a CRF; or try a smaller "
    "damping, schedule='serial', more sweeps (max_iter), or a smaller C.",
    "hmc": "The chains of inference='hmc' do not agree: R-hat is {r_hat:.2f}, not below 1.1. Draws may miss parts of "
    "the posterior. Use inference='vb', or calibrate(X, y, cv=5) of a CRF; or a smaller C, or longer chains: n_predict "
    "above 1,200.",
    "vb": "The variational fit did not converge in {n} steps of L-BFGS. Use a smaller C, calibrate(X, y, cv=5) of a "
    "CRF, or a BaggedTagger.",
}
_R_HAT = 1.1


def not_converged(model: BayesianModel, course: Floats, r_hat: float) -> str | None:
    """Return what to say of an inference that did not end at its tolerance; None: it did.

    Parameters
    ----------
    model, course, r_hat
        As :func:`infer` returns them.

    Returns
    -------
    str or None
        What happened, and what to use instead.
    """
    if model.converged:
        return None
    return _NOT_CONVERGED[model.inference].format(
        n=len(course), change=course[-1] if len(course) else np.nan, r_hat=r_hat
    )


@one_blas_thread()  # SciPy's L-BFGS makes many small steps, for which threads only wait
def infer(
    model: StructuredModel,
    objective: Objective,
    C: float,
    *,
    inference: str,
    prediction: str,
    covariance: str,
    n_draws: int,
    n_predict: int,
    damping: float,
    schedule: str,
    max_iter: int,
    seed: int,
) -> tuple[BayesianModel, Floats, float]:
    """Return the model of a posterior, the course of its inference, and R-hat of draws, NaN where there is none.

    Parameters
    ----------
    model : StructuredModel
        At the mode.
    objective : Objective
        That was minimised there.
    C : float
        The factor in the weights of its losses.
    inference, prediction, covariance, n_draws, n_predict, damping, schedule, max_iter
        As of :class:`dualfield.BayesianCRF`.
    seed : int
        Of all draws.

    Returns
    -------
    (BayesianModel, array, float)
        The model and how it was found.
    """
    posterior = Posterior(objective, C)
    mode = model.parameters[posterior.places]
    if not posterior.is_small:
        for what, is_wanted, instead in (
            (f"inference={inference!r}", inference in ("power_ep", "hmc"), "inference='vb' with covariance='diagonal'"),
            ("covariance='full'", covariance == "full", "covariance='diagonal'"),
            ("prediction='ep'", prediction == "ep", "prediction='draws'"),
        ):
            if is_wanted:
                raise ValueError(MANY.format(what=what, n=posterior.size, instead=instead))
    # Nothing is chosen by it here: fewer probes, whose error is a small part of it.
    log_evidence = laplace_evidence(objective, model.parameters, C, n_probes=3).log_evidence
    facts: dict[str, Any] = {
        "inference": inference,
        "prediction": prediction,
        "log_evidence": log_evidence,
        "elbo": float("nan"),
        "elbo_error": float("nan"),
    }
    if inference == "hmc":
        found = draw_hamiltonian(posterior, mode, n_predict, seed)
        ended = found.r_hat < _R_HAT
        whole = BayesianModel.of_draws(model, found.draws, found.mean, found.std, converged=ended, **facts)
        return whole, np.zeros(0), found.r_hat
    course, converged = np.zeros(0), True
    if inference == "laplace" and covariance == "full":
        curvature = posterior.curvature(mode)
        gaussian = Gaussian.of_precision(mode, curvature + np.eye(posterior.size) / posterior.variance)
    elif inference == "laplace":
        precision = posterior.curvature_diagonal(mode, seed) + 1.0 / posterior.variance
        gaussian = Gaussian(mode, precision**-0.5)
    elif inference == "power_ep":
        swept = fit_power_ep(posterior, mode, damping=damping, schedule=schedule, max_sweeps=max_iter)
        gaussian, course, converged = swept.gaussian, swept.course, swept.converged
    else:
        fit = (fit_full if covariance == "full" else fit_diagonal)(posterior, mode, n_draws, seed)
        gaussian, course, converged = fit.gaussian, fit.course, fit.converged
        facts |= {"elbo": fit.elbo, "elbo_error": fit.elbo_error}
    return BayesianModel.of_gaussian(model, gaussian, n_predict, seed, converged=converged, **facts), course, np.nan
