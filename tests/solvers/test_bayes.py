"""Posteriors of weights: each inference against long chains of draws, on small problems; limits, seeds, power EP."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.linalg
from scipy.stats import multivariate_t

from dualfield import CRF, BaggedTagger, BayesianCRF
from dualfield.data import Batch
from dualfield.metrics import token_log_loss
from dualfield.solvers.bayes.ep_prediction import predictive_scores
from dualfield.solvers.bayes.gaussian import Gaussian
from dualfield.solvers.bayes.hamiltonian import draw_hamiltonian, potential_scale_reduction
from dualfield.solvers.bayes.lower_bound import lower_bound
from dualfield.solvers.bayes.posterior import Posterior
from dualfield.solvers.bayes.power_ep import fit_power_ep
from dualfield.solvers.bayes.variational import fit_diagonal, fit_full
from tests.models.test_evidence import drawn
from tests.reference import hmc


def problem(C, n=5, seed=0, length=5, scale=1.5):
    """The posterior of a chain of three labels with three columns, and its mode."""
    X, y = drawn(n, seed, scale, length) if length == 5 else _short(n, seed)
    model = CRF(C=C, features="all", tol=1e-12).fit(X, y)
    posterior = Posterior(model._objective(model._read(X, y, None, None)), C)
    return posterior, model.parameters_[posterior.places]


def _short(n, seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(1, 3)) for _ in range(n)], [[int(label)] for label in rng.integers(3, size=n)]


def new_sequences():
    """Forty sequences that no model has seen."""
    rng = np.random.default_rng(9)
    return Batch.build([rng.normal(size=(5, 3)) for _ in range(40)])


def marginals(posterior, points):
    """Mean probabilities of labels on new sequences."""
    return hmc.marginals(posterior, points, new_sequences())


def test_potential_is_minus_the_log_posterior():
    posterior, mode = problem(3.0)
    value, gradient = posterior.potential(mode)
    assert np.abs(gradient).max() < 1e-5  # T3.2: the mode is that of the CRF
    rng = np.random.default_rng(0)
    for _ in range(5):
        step = 1e-5 * rng.normal(size=posterior.size)
        ahead, behind = (posterior.potential(mode + sign * 100 * step)[0] for sign in (1, -1))
        slope = (posterior.potential(mode + 100 * step)[1] - posterior.potential(mode - 100 * step)[1]) @ step
        assert ahead + behind - 2 * value == pytest.approx(100 * slope / 2, rel=1e-3)
    curvature = posterior.curvature(mode)
    np.testing.assert_allclose(np.diag(curvature), posterior.curvature_diagonal(mode))


def test_draws_without_data_are_those_of_the_prior():
    """T3.3: with losses that weigh nothing."""
    X, y = drawn(3, 0)
    model = CRF(C=2.0, features="all").fit(X, y)
    data = model._read(X, y, None, None)
    from dataclasses import replace

    posterior = Posterior(model._objective(replace(data, weights=1e-9 * data.weights)), 2.0)
    found = draw_hamiltonian(posterior, np.zeros(posterior.size), 1200, seed=0)
    assert found.r_hat < 1.03
    assert 0.6 < found.acceptance < 0.95
    assert np.abs(found.draws.mean(axis=0)).max() < 0.15 * np.sqrt(2.0)
    np.testing.assert_allclose(found.draws.std(axis=0).mean(), np.sqrt(2.0), rtol=0.05)


class Reference:
    """What long chains found: means, standard deviations, probabilities of labels; see tests/reference/hmc.py."""

    def __init__(self, C):
        self.posterior, self.mode = problem(C)
        with np.load(hmc.FILE) as arrays:
            self.mean, self.std, self.marginals, self.r_hat = (
                arrays[f"small_{C:g}_{name}"] for name in ("mean", "std", "marginals", "r_hat")
            )

    def compare(self, gaussian):
        """Return how far a Gaussian is off: means in standard deviations, their ratios, and marginals."""
        found = marginals(self.posterior, list(gaussian.draws(400, 3)))
        return np.abs(gaussian.mean - self.mean) / self.std, gaussian.std / self.std, np.abs(found - self.marginals)


@pytest.fixture(scope="module")
def references():
    """A prior that is right, and one that is too broad."""
    return {C: Reference(C) for C in hmc.SMALL_CS}


def test_chains_of_today_agree_with_the_file(references):
    """T3.3."""
    reference = references[3.0]
    drawn_now = draw_hamiltonian(reference.posterior, reference.mode, 2400, seed=5)
    assert reference.r_hat < 1.02
    assert drawn_now.r_hat < 1.06
    assert 0.6 < drawn_now.acceptance < 0.95
    assert (np.abs(drawn_now.draws.mean(axis=0) - reference.mean) / reference.std).max() < 0.2
    few = draw_hamiltonian(reference.posterior, reference.mode, 8, seed=5)  # its moments are those of all steps
    assert few.draws.shape == (8, reference.mode.size)
    assert (np.abs(few.mean - reference.mean) / reference.std).max() < 0.3
    np.testing.assert_allclose(drawn_now.draws.std(axis=0), reference.std, rtol=0.15)


@pytest.mark.parametrize(
    ("C", "far", "low", "high", "near", "most"),
    [(3.0, 0.2, 0.85, 1.1, 0.015, 0.12), (30.0, 0.35, 0.8, 1.1, 0.025, 0.25)],
)
def test_full_covariances_are_close(references, C, far, low, high, near, most):
    """T3.4."""
    reference = references[C]
    means, ratios, off = reference.compare(fit_full(reference.posterior, reference.mode, 12, 0).gaussian)
    assert means.max() <= far
    assert ratios.min() >= low
    assert ratios.max() <= high
    assert off.mean() <= near
    assert off.max() <= most


@pytest.mark.parametrize(("C", "near"), [(3.0, 0.035), (30.0, 0.05)])
def test_independent_weights(references, C, near):
    reference = references[C]
    fit = fit_diagonal(reference.posterior, reference.mode, 64, 0)
    assert fit.converged
    _, ratios, off = reference.compare(fit.gaussian)
    assert ratios.max() <= 1.2  # too narrow, if anything
    assert off.mean() < near


with_text = pytest.mark.skipif(
    not os.environ.get("DUALFIELD_DATA"), reason="DUALFIELD_DATA does not name the folder of CoNLL-2000"
)


@with_text
def test_evidence_temperature_and_bagging_of_sentences():
    """B4, B7 and B8: C by evidence is right; what is done about a C that is ten times too large saves nats."""
    *_, data = hmc.text(10.0)

    def loss(model):
        known = set(model.classes_)
        kept = [at for at, labels in enumerate(data.y_test) if known.issuperset(labels)]
        X, y = [data.X_test[at] for at in kept], [data.y_test[at] for at in kept]
        return token_log_loss(y, model.predict_proba(X), model.classes_)

    assert CRF().evidence(data.X, data.y, Cs=[1.0, 10.0, 100.0, 1000.0]).best.C == 10.0
    for C, gain in ((10.0, -0.02), (100.0, 0.03)):
        model = CRF(C=C).fit(data.X, data.y)
        before = loss(model)
        assert loss(model.calibrate(data.X, data.y, cv=4)) <= before - gain
        assert loss(BaggedTagger(CRF(C=C), random_state=0).fit(data.X, data.y)) <= before - gain


@with_text
@pytest.mark.parametrize("C", hmc.TEXT_CS)
def test_posteriors_of_sentences(C):
    """B5 and B6: on twenty sentences of CoNLL-2000, beside the committed draws."""
    posterior, _, _, data = hmc.text(C)
    with np.load(hmc.FILE) as arrays:
        want = arrays[f"text_{C:g}_marginals"]

    def off(**options):
        model = BayesianCRF(C=C, random_state=0, **options).fit(data.X, data.y)
        rows = np.concatenate(model.predict_proba(data.X_test))
        assert np.isfinite(rows).all()
        return np.abs(rows - want).mean()

    assert posterior.size < 500
    assert off() <= 0.025
    if C <= 10.0:
        assert off(covariance="full") <= 0.02
    else:
        with pytest.raises(RuntimeError, match=r"did not converge in 50 steps.*Use covariance='diagonal'"):
            off(covariance="full")


@pytest.mark.parametrize("C", [0.5, 3.0])
def test_the_bounds_are_below_the_evidence(C):
    """Which is the mean of the likelihood times prior over density, by many draws from the Gaussian, as heavy tails."""
    posterior, mode = problem(C)
    full, diagonal = fit_full(posterior, mode, 64, 0), fit_diagonal(posterior, mode, 64, 0)
    evidence, error = importance_sampled(posterior, full.gaussian, 4000)
    assert error < 0.05
    for fit in (diagonal, full):
        assert 0.0 < fit.elbo_error < 0.5
        assert fit.elbo < evidence + 3.0 * (fit.elbo_error + error)
    assert full.elbo > evidence - 0.4 - 3.0 * full.elbo_error
    assert full.elbo > diagonal.elbo - 3.0 * (full.elbo_error + diagonal.elbo_error)


def importance_sampled(posterior, gaussian, n):
    """The log-evidence with its standard error, by draws of Student's t with four degrees of freedom."""
    rng, d, nu, v = np.random.default_rng(5), posterior.size, 4.0, posterior.variance
    draws = rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(nu, size=(n, 1)) / nu)
    density = multivariate_t(shape=np.eye(d), df=nu).logpdf(draws) - gaussian.log_determinant / 2.0
    points = [gaussian.at(z) for z in draws]
    joint = [-posterior.losses(w)[0] - w @ w / (2.0 * v) - d / 2.0 * np.log(2.0 * np.pi * v) for w in points]
    logs = np.array(joint) - density
    ratios = np.exp(logs - logs.max())
    return logs.max() + np.log(ratios.mean()), ratios.std() / np.sqrt(n) / ratios.mean()


def test_the_bound_is_that_of_quadrature():
    """All parts of the formula, where the prior is not N(0, I)."""
    X, y = [[["a"]], [["b"]]] * 3, [["x"], ["y"], ["x"], ["y"], ["x"], ["x"]]
    model = CRF("single", C=2.5).fit([x[0] for x in X], [row[0] for row in y])
    posterior = Posterior(model._objective(model._read([x[0] for x in X], [row[0] for row in y], None, None)), 2.5)
    rng, d = np.random.default_rng(0), posterior.size
    gaussian = Gaussian(rng.normal(size=d), rng.uniform(0.3, 1.5, size=d))
    points, weights = np.polynomial.hermite_e.hermegauss(12)
    grid = np.stack(np.meshgrid(*[points] * d, indexing="ij")).reshape(d, -1).T
    shares = np.prod(np.stack(np.meshgrid(*[weights / np.sqrt(2 * np.pi)] * d, indexing="ij")).reshape(d, -1), axis=0)
    want = 0.0
    for z, share in zip(grid, shares, strict=True):
        w = gaussian.at(z)
        prior = -w @ w / (2 * posterior.variance) - d / 2 * np.log(2 * np.pi * posterior.variance)
        q = -z @ z / 2 - d / 2 * np.log(2 * np.pi) - np.log(gaussian.std).sum()
        want += share * (-posterior.losses(w)[0] + prior - q)
    found, error = lower_bound(posterior, gaussian, 4000, 1)
    assert abs(found - want) < 4.0 * error < 0.3
    root = np.diag(1.0 / gaussian.std)  # the same as a matrix
    assert lower_bound(posterior, Gaussian(gaussian.mean, gaussian.std, root), 4000, 1)[0] == pytest.approx(found)


def test_the_bound_is_stationary():
    """The gradient of the bound, by differences of draws that were not used, is small at the fit."""
    posterior, mode = problem(3.0)
    fit = fit_diagonal(posterior, mode, 400, 0).gaussian
    gradient = fit.mean / posterior.variance
    for point in fit.draws(400, 77):
        gradient = gradient + posterior.losses(point)[1] / 400
    assert (np.abs(gradient) * fit.std).max() < 0.15


@pytest.mark.parametrize("schedule", ["parallel", "serial"])
def test_power_ep_converges_where_the_prior_is_right(references, schedule):
    """T3.5."""
    posterior, reference = references[3.0].posterior, references[3.0]
    fit = fit_power_ep(posterior, reference.mode, schedule=schedule)
    assert fit.converged
    means, ratios, off = reference.compare(fit.gaussian)
    assert means.max() <= 0.2
    assert ratios.min() >= 0.65
    assert ratios.max() <= 1.1
    assert off.mean() <= 0.02
    excess = fit.gaussian.root @ fit.gaussian.root.T - np.eye(posterior.size) / posterior.variance
    assert np.linalg.eigvalsh(excess).min() > -1e-8


def test_power_ep_of_single_nodes_by_dense_formulas():
    """With one node a site is the whole partition function: fixed points solved without rows."""
    posterior, mode = problem(2.0, n=6, length=1)
    fit = fit_power_ep(posterior, mode, damping=0.5, max_sweeps=2000)
    d, objective = posterior.size, posterior.objective
    batch = objective.examples.nodes
    phi = np.stack(
        [objective.score_map.scores(posterior.whole(np.eye(d)[j]).copy(), batch).node for j in range(d)], axis=2
    )
    truth = sum(phi[t, label] for t, label in enumerate(objective.examples.labels))
    P, b = np.zeros((6, d, d)), np.zeros((6, d))
    for _ in range(3000):
        precision, shift = np.eye(d) / posterior.variance - P.sum(axis=0), truth - b.sum(axis=0)
        for t in range(6):
            V = np.linalg.inv(precision - P[t])
            m = V @ (shift - b[t])
            logits = phi[t] @ m + 0.5 * np.einsum("ad,de,ae->a", phi[t], V, phi[t])
            r = np.exp(logits - logits.max())
            r /= r.sum()
            mean = r @ phi[t]
            S = (phi[t].T * r) @ phi[t] - np.outer(mean, mean)
            new_P = -S @ np.linalg.inv(np.eye(d) + V @ S)
            P[t] += 0.3 * (new_P - P[t])
            b[t] += 0.3 * (mean + new_P @ (m + V @ mean) - b[t])
    precision = np.eye(d) / posterior.variance - P.sum(axis=0)
    mean = np.linalg.solve(precision, truth - b.sum(axis=0))
    assert fit.converged
    np.testing.assert_allclose(fit.gaussian.mean, mean, atol=2e-3)
    np.testing.assert_allclose(fit.gaussian.std, np.sqrt(np.diag(np.linalg.inv(precision))), atol=2e-3)


@pytest.mark.parametrize(("C", "near", "share"), [(3.0, 0.015, 0.2), (30.0, 0.04, 0.4)])
def test_prediction_by_ep_is_an_average(references, C, near, share):
    """Marginals of new sequences, beside the means over many draws of the same Gaussian, and those at its mean."""
    posterior, score_map = references[C].posterior, references[C].posterior.objective.score_map
    gaussian = fit_diagonal(posterior, references[C].mode, 64, 0).gaussian
    want = marginals(posterior, list(gaussian.draws(2000, 3)))
    found = score_map.structure.marginals(predictive_scores(score_map, new_sequences(), gaussian, 1.0)).node
    off = np.abs(found - want).mean()
    assert off < near
    assert off < share * np.abs(marginals(posterior, [gaussian.mean]) - want).mean()


def test_prediction_by_ep_of_certain_weights():
    """Without doubt about the weights it is the CRF with these; T divides its scores; portions change nothing."""
    posterior, mode = problem(3.0)
    score_map, batch = posterior.objective.score_map, new_sequences()
    sure = Gaussian(mode, np.full(mode.size, 1e-6))
    want = score_map.structure.marginals(score_map.scores(posterior.whole(mode).copy(), batch), temperature=2.0)
    scores = predictive_scores(score_map, batch, sure, 2.0)
    found = score_map.structure.marginals(scores, temperature=2.0, cliques="sum")
    np.testing.assert_allclose(found.node, want.node, atol=1e-6)
    one = predictive_scores(score_map, batch[[7]], Gaussian(mode, np.ones(mode.size)), 1.0)
    every = predictive_scores(score_map, batch, Gaussian(mode, np.ones(mode.size)), 1.0)
    np.testing.assert_allclose(one.node, every.node[35:40], atol=1e-3)


def test_prediction_by_ep_of_single_nodes_by_quadrature():
    """One node of two labels: a logistic function of a normal variable, integrated on a grid."""
    model = CRF(features="all", tol=1e-10).fit([np.array([[1.0]])] * 3, [["x"], ["y"], ["x"]])
    size = int(model.score_map_.used.sum())
    z = np.linspace(-10, 10, 4001)
    for mean, std in ((0.5, 1.0), (-1.0, 0.7), (2.0, 2.0)):
        # Weights of the two labels are independent: the variance of their difference is twice theirs.
        gaussian = Gaussian(np.where(np.arange(size) == 0, mean, 0.0), np.full(size, std))
        found = model.structure_.marginals(
            predictive_scores(model.score_map_, Batch.build([np.array([[1.0]])]), gaussian, 1.0)
        ).node[0, 0]
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        exact = np.trapezoid(density / (1 + np.exp(-(mean + np.sqrt(2.0) * std * z))), z)
        assert found == pytest.approx(exact, abs=0.02)


def test_prediction_by_ep_says_when_it_did_not_converge(monkeypatch):
    from sklearn.exceptions import ConvergenceWarning

    monkeypatch.setattr("dualfield.solvers.bayes.ep_prediction._MOST_SWEEPS", 2)
    posterior, mode = problem(3.0)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 sweeps.*Use prediction='draws'"):
        predictive_scores(posterior.objective.score_map, new_sequences(), Gaussian(mode, np.ones(mode.size)), 1.0)


def test_much_data_leave_little_doubt():
    """T3.7: the mean is at the mode."""
    posterior, mode = problem(3.0, n=200, scale=1.0)
    fit = fit_diagonal(posterior, mode, 100, 0).gaussian
    assert (np.abs(fit.mean - mode) / fit.std).max() < 0.3
    difference = marginals(posterior, list(fit.draws(100, 1))) - marginals(posterior, [mode])
    assert np.abs(difference).max() < 0.02


def test_a_narrow_prior_says_nothing():
    """T3.7: all labels are as probable."""
    posterior, mode = problem(1e-6)
    found = marginals(posterior, list(fit_diagonal(posterior, mode, 12, 0).gaussian.draws(20, 1)))
    np.testing.assert_allclose(found, 1 / 3, atol=1e-2)


def test_gaussians():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    precision = A @ A.T + np.eye(4)
    gaussian = Gaussian.of_precision(np.arange(4.0), precision)
    np.testing.assert_allclose(gaussian.std, np.sqrt(np.diag(scipy.linalg.inv(precision))))
    draws = np.array(list(gaussian.draws(20000, 0)))
    np.testing.assert_allclose(np.cov(draws.T), scipy.linalg.inv(precision), atol=0.02)
    np.testing.assert_allclose(draws.mean(axis=0), np.arange(4.0), atol=1e-12)


def test_chains_that_disagree_are_seen():
    chains = np.random.default_rng(0).normal(size=(4, 200, 2))
    assert potential_scale_reduction(chains) < 1.03
    chains[0] += 1.0
    assert potential_scale_reduction(chains) > 1.1
