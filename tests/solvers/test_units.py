"""Units of posteriors: a linear map and its transpose, curvature near 1, the same fit with and without all examples."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import CRF
from dualfield.objectives import Objective
from dualfield.solvers.bayes import units as module
from dualfield.solvers.bayes import variational
from dualfield.solvers.bayes.posterior import Posterior
from dualfield.solvers.bayes.units import Units
from dualfield.solvers.bayes.variational import fit_diagonal
from tests.estimators.tagging import sentences


@pytest.fixture(scope="module")
def problem():
    X, y = sentences(60, seed=1)
    model = CRF(C=3.0, tol=1e-8).fit(X, y)
    posterior = Posterior(model._objective(model._read(X, y, None, None)), 3.0)
    return posterior, model.parameters_[posterior.places]


@pytest.fixture
def many(problem, monkeypatch):
    """The same, as if it had too many weights for one matrix."""
    monkeypatch.setattr(Posterior, "is_small", False)
    monkeypatch.setattr(module, "_TOGETHER", 40)
    monkeypatch.setattr(module, "_EXAMPLES", 40)
    return problem


def condition(posterior, mode, units):
    whole = posterior.curvature(mode) + np.eye(posterior.size) / posterior.variance
    steps = np.array([units.step(x) for x in np.eye(posterior.size)])
    return np.linalg.cond(steps @ whole @ steps.T)


def test_few_weights_have_the_curvature_of_one(problem):
    posterior, mode = problem
    assert condition(posterior, mode, Units.at(posterior, mode, 0)) == pytest.approx(1.0, abs=1e-6)


def test_many_weights_are_better_conditioned(many):
    posterior, mode = many
    units = Units.at(posterior, mode, 0)
    assert units.root.shape == (40, 40)
    rng = np.random.default_rng(0)
    x, slope = rng.normal(size=(2, posterior.size))
    assert units.step(x) @ slope == pytest.approx(x @ units.gradient(slope), rel=1e-10)
    lengths = Units(units.scales, np.zeros(0, dtype=np.int64), np.zeros((0, 0)))
    assert condition(posterior, mode, units) < 0.8 * condition(posterior, mode, lengths)


def test_the_fit_does_not_depend_on_units(problem, many, monkeypatch):
    posterior, mode = problem
    monkeypatch.setattr(variational, "_FALL", 1e-5)
    fit = fit_diagonal(posterior, mode, 12, 0)
    monkeypatch.setattr(Posterior, "is_small", True)
    other = fit_diagonal(posterior, mode, 12, 0)
    assert fit.converged
    assert other.converged
    assert fit.elbo == pytest.approx(other.elbo, abs=1e-3)
    assert (np.abs(fit.gaussian.mean - other.gaussian.mean) / other.gaussian.std).max() < 0.01
    np.testing.assert_allclose(fit.gaussian.std, other.gaussian.std, rtol=0.01)


def test_an_odd_number_of_draws(problem):
    """The last one has no counterpart: the value is the mean over all of them."""
    posterior, mode = problem
    fits = [fit_diagonal(posterior, mode, n, 0) for n in (63, 64)]
    assert all(fit.converged for fit in fits)
    assert fits[0].elbo == pytest.approx(fits[1].elbo, abs=1.0)


def test_some_examples_have_their_losses(problem):
    posterior, mode = problem
    whole, w = posterior.objective, posterior.whole(mode).copy()
    chosen = np.array([3, 7, 40])
    some = Objective(whole.score_map, whole.examples.take(chosen), whole.loss)
    rest = np.setdiff1d(np.arange(whole.n_examples), chosen)
    others = Objective(whole.score_map, whole.examples.take(rest), whole.loss)
    losses = [one.loss_and_gradient(w) for one in (whole, some, others)]
    assert losses[0][0] == pytest.approx(losses[1][0] + losses[2][0], rel=1e-12)
    np.testing.assert_allclose(losses[0][1], losses[1][1] + losses[2][1], atol=1e-12)
    assert whole.examples.take(np.zeros(0, dtype=np.int64)).nodes.n_examples == 0
