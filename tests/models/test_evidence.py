"""Laplace evidence: against importance sampling, the log-determinant by probes, the choice of C."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from dualfield import CRF, CRFCV, BayesianCRF, LatentCRF
from dualfield.models.bayes.evidence import laplace_evidence
from dualfield.objectives.log_determinant import log_determinant
from dualfield.solvers import Perceptron
from dualfield.structures import Graph, Tree
from tests.estimators.tagging import sentences


def drawn(n, seed, scale=1.5, length=5):
    """Chains of three labels with three columns, drawn from a CRF with weights of this scale."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, 3)) for _ in range(n)]
    model = CRF(features="all", tol=1e-10).fit(X, [[0, 1, 2, 0, 1]] * n)
    model._model = model.model_.with_parameters(
        np.where(model.score_map_.used, scale * rng.normal(size=model.parameters_.size), 0.0)
    )
    return X, [labels[0] for labels in model.sample(X, 1, random_state=seed)]


def problem(C, seed=0, n=8):
    X, y = drawn(n, seed)
    model = CRF(C=C, features="all", tol=1e-12)
    model.fit(X, y)
    data = model._read(X, y, None, None)
    return model._objective(data), model.parameters_


def importance(objective, w, C, n_draws=4000, rounds=4, seed=0):
    """log p(y | X) by draws from a Gaussian whose mean and covariance follow those of the posterior, 1.4 times as wide.

    The mode is far from the mean where the prior is broad: a Gaussian around the mode would miss most of the mass.
    """
    used, rng = np.flatnonzero(objective.score_map.used), np.random.default_rng(seed)
    mean, covariance = w[used], C * np.linalg.inv(np.eye(used.size) + objective.hessian(w, used))
    for _ in range(rounds):
        root = np.linalg.cholesky(1.4 * covariance)
        z = rng.standard_normal((n_draws, used.size))
        points = mean + z @ root.T
        values = np.empty(n_draws)
        for at, point in enumerate(points):
            there = np.zeros_like(w)
            there[used] = point
            values[at] = -objective.value(there) / C - 0.5 * used.size * np.log(C)
        weights = values + 0.5 * (z**2).sum(axis=1) + np.log(np.diag(root)).sum()
        shares = np.exp(weights - logsumexp(weights))
        shares = np.minimum(shares, 0.01)
        shares /= shares.sum()
        mean = shares @ points
        covariance = ((points - mean).T * shares) @ (points - mean) + 1e-3 * covariance
    return logsumexp(weights) - np.log(n_draws), np.exp(2 * logsumexp(weights) - logsumexp(2 * weights))


@pytest.mark.parametrize(
    ("C", "n_seeds", "nats", "least_effective"), [(1.0, 2, 0.5, 1000), (3.0, 5, 1.0, 1000), (30.0, 2, 1.5, 500)]
)
def test_close_to_importance_sampling(C, n_seeds, nats, least_effective):
    """T3.6: within one nat at C = 3; a broader prior leaves a posterior that is less of a Gaussian."""
    errors = []
    for seed in range(n_seeds):
        objective, w = problem(C, seed)
        want, n_effective = importance(objective, w, C)
        assert n_effective > least_effective
        errors.append(laplace_evidence(objective, w, C).log_evidence - want)
    assert max(map(abs, errors)) < nats
    assert np.ptp(errors) < 0.6  # flat enough to choose by


def test_one_binary_weight_by_quadrature():
    """One weight: the integral on a grid."""
    X, y = [np.array([[1.0]])] * 6, [["x"]] * 5 + [["y"]]
    C = 2.0
    model = CRF("chain", C=C, features="all", tol=1e-12).fit(X, y)
    objective = model._objective(model._read(X, y, None, None))
    w = np.linspace(-12, 12, 20001)
    # Both labels have a weight; only their difference, of variance 2 C, matters.
    prior = np.exp(-(w**2) / (4 * C)) / np.sqrt(4 * np.pi * C)
    exact = np.log(np.trapezoid(prior * np.exp(-5 * np.logaddexp(0, -w) - np.logaddexp(0, w)), w))
    assert laplace_evidence(objective, model.parameters_, C).log_evidence == pytest.approx(exact, abs=0.15)


def test_temperature_is_a_scale():
    """T and C stand for the prior variance C T of weights whose scores are divided by T."""
    X, y = drawn(8, 1)
    models = [CRF(C=C, temperature=T, features="all", tol=1e-12).fit(X, y) for C, T in ((4.0, 1.0), (8.0, 2.0))]
    found = [
        laplace_evidence(one._objective(one._read(X, y, None, None)), one.parameters_, one.C).log_evidence
        for one in models
    ]
    # w / T has the variance C T / T^2 = C / T: 4 in both cases.
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_probes_agree_with_the_matrix():
    X, y = sentences(60, seed=1)
    model = CRF(C=10.0, tol=1e-8).fit(X, y)
    objective = model._objective(model._read(X, y, None, None))
    exact = log_determinant(objective, model.parameters_, exact=True)
    rough = log_determinant(objective, model.parameters_, exact=False)
    assert exact.standard_error == 0.0
    assert 0.0 < rough.standard_error < 0.2 * exact.value
    assert abs(rough.value - exact.value) < 4 * rough.standard_error
    assert rough == log_determinant(objective, model.parameters_, exact=False)  # by its seed
    assert rough.n_informed == pytest.approx(exact.n_informed, rel=0.2)


def test_evidence_chooses_c():
    X, y = sentences(60, seed=1)
    model = CRF(C="evidence").fit(X, y)
    table = model.evidence_
    assert model.C_ == table.best.C
    assert model.objective_ == pytest.approx(CRF(C=model.C_).fit(X, y).objective_, rel=1e-3)
    assert table.log_evidences.max() == table.best.log_evidence
    assert 0.1 < model.C_ < 1000.0
    tuned = CRFCV(Cs=table.values.tolist(), scoring="evidence").fit(X, y)
    assert pytest.approx(model.C_) == tuned.C_
    np.testing.assert_allclose(tuned.cv_results_["mean_test_score"], table.log_evidences, atol=0.05)
    fixed = CRF().evidence(X, y, method="fixed_point")
    assert fixed.best.log_evidence >= table.best.log_evidence - 0.5


def test_files_know_the_c(tmp_path):
    import dualfield

    X, y = sentences(30, seed=1)
    model = CRF(C="evidence").fit(X, y)
    model.save(tmp_path / "crf.model")
    loaded = dualfield.load(tmp_path / "crf.model")
    assert loaded.C == "evidence"
    assert loaded.C_ == model.C_


@pytest.mark.parametrize("structure", [Tree(), Graph()], ids=["tree", "graph"])
def test_other_structures(structure):
    rng = np.random.default_rng(0)
    ways = [[-1, 0, 0, 1], [-1, 0, 1]] if isinstance(structure, Tree) else [[(0, 1), (1, 2), (2, 0)], [(0, 1)]]
    nodes = [4, 3] if isinstance(structure, Tree) else [3, 2]
    X = [(rng.normal(size=(n, 2)), way) for n, way in zip(nodes, ways, strict=True)] * 4
    y = [rng.integers(2, size=n).tolist() for n in nodes * 4]
    table = CRF(structure, features="all").evidence(X, y, Cs=[0.1, 1.0])
    assert np.isfinite(table.log_evidences).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l1_ratio": 0.5}, "needs l1_ratio=0.0"),
        ({"cost": "hamming"}, "needs cost=None"),
        ({"kernel": "rbf"}, "needs kernel=None"),
    ],
)
def test_refused(options, message):
    X, y = [np.eye(2)] * 3, [["x", "y"]] * 3
    with pytest.raises(ValueError, match=message):
        CRF(C="evidence", **options).fit(X, y)


def test_partly_known_labels_and_streams_are_refused():
    X, y = [np.eye(2)] * 3, [["x", "y"], ["x", None], ["y", "x"]]
    with pytest.raises(ValueError, match="labels that are all known"):
        CRF(C="evidence").fit(X, y)
    with pytest.raises(ValueError, match="a number as C"):
        CRF(C="evidence").partial_fit(X, [["x", "y"]] * 3)
    with pytest.raises(ValueError, match="The 'C' parameter of CRF"):
        CRF(C="best").fit(X, [["x", "y"]] * 3)
    with pytest.raises(ValueError, match="X_dev and y_dev must be None"):
        CRFCV(scoring="evidence").fit(X, [["x", "y"]] * 3, X_dev=X, y_dev=[["x", "y"]] * 3)
    with pytest.raises(ValueError, match="The 'cv' parameter of CRFCV must be None with scoring='evidence'"):
        CRFCV(scoring="evidence", cv=3).fit(X, [["x", "y"]] * 3)


def test_less_data_informs_fewer_weights():
    """Examples of weight 0 inform nothing."""
    X, y = sentences(20, seed=1)
    model = CRF(C=5.0, tol=1e-10).fit(X, y)
    data = model._read(X, y, None, None)
    objective = model._objective(data)
    half = model._objective(replace(data, weights=np.where(np.arange(20) < 10, data.weights, 0.0)))
    assert log_determinant(half, model.parameters_).value < log_determinant(objective, model.parameters_).value


@pytest.mark.parametrize("solver", ["perceptron", "arow", Perceptron()])
def test_weights_that_minimise_nothing_have_no_evidence(solver):
    with pytest.raises(ValueError, match=r"needs a solver that minimises the objective: the weights of solver="):
        CRF(C="evidence", solver=solver).fit(*sentences(10, seed=1))


def test_what_stands_in_the_place_of_a_number():
    for model in (CRF(C="best"), BayesianCRF(C="best")):
        with pytest.raises(ValueError, match=r"must be a float in \(0, inf\) or 'evidence'. Got 'best' instead"):
            model.fit(*sentences(10, seed=1))
    with pytest.raises(
        ValueError, match=r"The 'C' parameter of the base of LatentCRF must be a float .* Got 'evidence'"
    ):
        LatentCRF(CRF(C="evidence")).fit(*sentences(10, seed=1))
