"""From a fitted CRF to a posterior distribution of its weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.models.bayesian import BayesianModel
from dualfield.models.evidence import laplace_evidence
from dualfield.models.structured import StructuredModel
from dualfield.objectives import Objective
from dualfield.solvers.bayes.gaussian import Gaussian
from dualfield.solvers.bayes.hamiltonian import draw_hamiltonian
from dualfield.solvers.bayes.posterior import Posterior
from dualfield.solvers.bayes.power_ep import fit_power_ep
from dualfield.solvers.bayes.variational import fit_diagonal, fit_full

MANY = "{what} needs a matrix of weights by weights, for at most 2,000 of them. Got {n:,} weights: use {instead}."
NOT_CONVERGED = (
    "Power EP did not converge in {n} sweeps: the last one moved a site by {change:.2g}. Its answers may be far from "
    "those of the posterior. Use inference='vb', or calibrate(X, y, cv=5) of a CRF; or try more damping, "
    "schedule='serial', more sweeps (max_iter), or a smaller C."
)


def infer(
    model: StructuredModel,
    objective: Objective,
    C: float,
    *,
    inference: str,
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
    inference, covariance, n_draws, n_predict, damping, schedule, max_iter
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
    needs_matrix = inference in ("power_ep", "hmc") or (inference == "vb" and covariance == "full")
    if needs_matrix and not posterior.is_small:
        what = "covariance='full'" if inference == "vb" else f"inference={inference!r}"
        instead = "covariance='diagonal'" if inference == "vb" else "inference='vb' with covariance='diagonal'"
        raise ValueError(MANY.format(what=what, n=posterior.size, instead=instead))
    log_evidence = laplace_evidence(objective, model.parameters, C).log_evidence
    facts: dict[str, Any] = {"inference": inference, "log_evidence": log_evidence, "elbo": float("nan")}
    if inference == "hmc":
        found = draw_hamiltonian(posterior, mode, max(n_predict, 2), seed)
        whole = BayesianModel.of_draws(model, found.draws, converged=found.r_hat < 1.1, **facts)
        return whole, np.zeros(0), found.r_hat
    course, converged = np.zeros(0), True
    if inference == "laplace":
        precision = posterior.curvature_diagonal(mode, seed) + 1.0 / posterior.variance
        gaussian = Gaussian(mode, precision**-0.5)
    elif inference == "power_ep":
        swept = fit_power_ep(posterior, mode, damping=damping, schedule=schedule, max_sweeps=max_iter)
        gaussian, course, converged = swept.gaussian, swept.course, swept.converged
    else:
        fit = (fit_full if covariance == "full" else fit_diagonal)(posterior, mode, n_draws, seed)
        gaussian, course, converged, facts["elbo"] = fit.gaussian, fit.course, fit.converged, fit.elbo
    return BayesianModel.of_gaussian(model, gaussian, n_predict, seed, converged=converged, **facts), course, np.nan
