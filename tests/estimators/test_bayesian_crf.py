"""The Bayesian CRF as an estimator: what it answers, files, seeds, threads, refusals, and what averages do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import dualfield
from dualfield import CRF, BaggedTagger, BayesianCRF
from dualfield.metrics import token_log_loss
from dualfield.structures import Chain, Graph
from tests.estimators.tagging import sentences
from tests.models.test_evidence import drawn

TRAIN, TEST = sentences(12, seed=1), sentences(20, seed=3)


@pytest.mark.parametrize("inference", ["vb", "hmc", "power_ep"])
def test_answers(inference, tmp_path):
    model = BayesianCRF(C=1.0, inference=inference, n_predict=20, random_state=0).fit(*TRAIN)
    X, y = TEST
    mode = CRF(C=1.0).fit(*TRAIN)
    np.testing.assert_array_equal(model.parameters_, mode.parameters_)
    assert model.objective_ == mode.objective_
    assert model.converged_
    rows = np.concatenate(model.predict_proba(X))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    assert 0.0 < np.abs(rows - np.concatenate(mode.predict_proba(X))).mean() < 0.1
    assert model.score(X, y) > 0.6
    assert (model.score_sequences(X, y) < 0.0).all()
    assert all(span.std >= 0.0 for some in model.predict_spans(X, return_std=True) for span in some)
    used = model.score_map_.used
    assert (model.posterior_std_[used] > 0.0).all()
    assert not model.posterior_std_[~used].any()
    assert np.isfinite(model.log_evidence_)
    assert (model.elbo_ < model.log_evidence_ + 5.0) or inference != "vb"
    assert sorted(model.rank_for_labelling(X, by="bald").order.tolist()) == list(range(len(X)))
    model.save(tmp_path / "bayes.model")
    loaded = dualfield.load(tmp_path / "bayes.model")
    np.testing.assert_array_equal(np.concatenate(loaded.predict_proba(X)), rows)
    np.testing.assert_array_equal(loaded.posterior_std_, model.posterior_std_)
    assert loaded.log_evidence_ == model.log_evidence_
    assert inference != "vb" or (loaded.elbo_, loaded.elbo_error_) == (model.elbo_, model.elbo_error_)
    assert loaded.C_ == 1.0


@pytest.mark.parametrize("inference", ["vb", "power_ep"])
def test_prediction_by_ep(inference, tmp_path):
    """One distribution of labellings answers every question, close to averages over draws."""
    X, y = TEST
    options = {"C": 1.0, "inference": inference, "constraints": "BIO", "random_state": 0}
    model = BayesianCRF(prediction="ep", **options).fit(*TRAIN)
    draws = BayesianCRF(n_predict=200, **options).fit(*TRAIN)
    mode = CRF(C=1.0, constraints="BIO").fit(*TRAIN)
    rows, means, plain = (np.concatenate(one.predict_proba(X)) for one in (model, draws, mode))
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    assert np.abs(rows - means).mean() < 0.015
    assert np.abs(rows - means).mean() < 0.8 * np.abs(plain - means).mean()
    found = model.predict_spans(X)
    assert all(0.0 < span.probability <= 1.0 for some in found for span in some)
    sampled = model.sample(X[:1], 3000, random_state=0)[0]
    shares = np.mean([[name == "O" for name in labels] for labels in sampled], axis=0)
    np.testing.assert_allclose(shares, model.predict_proba(X[:1])[0][:, list(model.classes_).index("O")], atol=0.04)
    model.calibrate(X, y)
    assert model.calibration_.log_loss == pytest.approx(token_log_loss(y, model.predict_proba(X), model.classes_))
    model.save(tmp_path / "bayes.model")
    loaded = dualfield.load(tmp_path / "bayes.model")
    np.testing.assert_array_equal(np.concatenate(loaded.predict_proba(X)), np.concatenate(model.predict_proba(X)))
    with pytest.raises(ValueError, match="prediction='draws'"):
        model.predict_spans(X, return_std=True)
    with pytest.raises(ValueError, match="by='bald' compares several models"):
        model.rank_for_labelling(X, by="bald")


def test_prediction_by_ep_is_for_gaussians_of_chains():
    for inference in ("hmc", "laplace"):
        with pytest.raises(ValueError, match=r"The 'prediction' parameter of BayesianCRF must be 'draws' with"):
            BayesianCRF(inference=inference, prediction="ep").fit(*TRAIN)
    with pytest.raises(ValueError, match="prediction='ep' is for chains of order 1"):
        BayesianCRF(prediction="ep", start_stop=True).fit(*TRAIN)


def test_generators_are_read_once():
    X, y = TRAIN
    for model in (BayesianCRF(C=1.0), BaggedTagger(CRF(C=1.0), n_estimators=2)):
        given = clone(model).fit((one for one in X), (labels for labels in y))
        np.testing.assert_array_equal(given.predict_proba(X)[0], model.fit(X, y).predict_proba(X)[0])


def test_moments_of_draws_are_those_of_all_steps(tmp_path):
    few = BayesianCRF(C=1.0, inference="hmc", n_predict=1).fit(*TRAIN)
    assert np.abs(few.posterior_mean_ - few.model_.draws[0]).max() > 0.1
    few.save(tmp_path / "bayes.model")
    loaded = dualfield.load(tmp_path / "bayes.model")
    np.testing.assert_array_equal(loaded.posterior_mean_, few.posterior_mean_)
    np.testing.assert_array_equal(loaded.posterior_std_, few.posterior_std_)


def test_seeds_and_threads():
    """T3.9."""
    fits = [BayesianCRF(C=1.0, random_state=seed, n_jobs=n).fit(*TRAIN) for seed, n in ((0, 1), (0, 2), (1, 1))]
    rows = [np.concatenate(model.predict_proba(TEST[0])) for model in fits]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert np.abs(rows[0] - rows[2]).max() > 1e-6


def test_c_by_evidence():
    model = BayesianCRF(random_state=0).fit(*TRAIN)
    assert model.C_ == CRF(C="evidence").fit(*TRAIN).C_


def test_laplace_has_an_evidence_but_does_not_predict():
    """B12."""
    model = BayesianCRF(C=1.0, inference="laplace").fit(*TRAIN)
    assert model.log_evidence_ == pytest.approx(CRF().evidence(*TRAIN, Cs=[1.0]).best.log_evidence, abs=0.01)
    assert (model.posterior_std_[model.score_map_.used] <= 1.0 + 1e-12).all()
    for ask in (model.predict, model.predict_proba, model.predict_spans):
        with pytest.raises(ValueError, match=r"calibrate\(X, y, cv=5\) of a CRF, a BaggedTagger"):
            ask(TEST[0])


def test_averages_are_robust_against_a_broad_prior():
    """T3.8: C = 30 with five sequences, five draws of them."""
    gains = []
    for seed in range(5):
        X, y = drawn(5, seed)
        new, truth = drawn(60, seed)  # the same weights: those of the seed; other sequences after the first
        new, truth = new[5:], truth[5:]
        options = {"C": 30.0, "features": "all"}
        losses = []
        for model in (CRF(**options), BayesianCRF(**options, n_predict=100)):
            model.fit(X, y)
            known = set(model.classes_)
            kept = [at for at, labels in enumerate(truth) if known.issuperset(labels)]
            rows = model.predict_proba([new[at] for at in kept])
            losses.append(token_log_loss([truth[at] for at in kept], rows, model.classes_))
        gains.append(losses[0] - losses[1])
    assert np.mean(gains) > 0.03


def test_power_ep_says_when_it_did_not_converge():
    with pytest.warns(ConvergenceWarning, match="Power EP did not converge in 3 sweeps"):
        model = BayesianCRF(C=10.0, inference="power_ep", max_iter=3).fit(*TRAIN)
    assert not model.converged_
    assert len(model.course_) == 3


@pytest.mark.parametrize(
    ("options", "limit", "message"),
    [
        ({}, "dualfield.solvers.bayes.variational._MOST_ITERATIONS", "The variational fit did not converge in 1 steps"),
        ({"inference": "hmc"}, "dualfield.models.bayes.training._R_HAT", "do not agree: R-hat is 1.*inference='vb'"),
    ],
)
def test_other_inference_says_when_it_did_not_converge(monkeypatch, options, limit, message):
    monkeypatch.setattr(limit, 1)
    with pytest.warns(ConvergenceWarning, match=message):
        model = BayesianCRF(C=1.0, n_predict=5, **options).fit(*TRAIN)
    assert not model.converged_


def test_all_covariances_around_the_mode():
    """Standard deviations by Laplace: the inverse of the curvature, or of its diagonal."""
    X, y = drawn(6, 0)
    models = [
        BayesianCRF(C=3.0, features="all", inference="laplace", covariance=name).fit(X, y)
        for name in ("full", "diagonal")
    ]
    base = CRF(C=3.0, features="all").fit(X, y)
    used = np.flatnonzero(base.score_map_.used)
    precision = base._objective(base._read(X, y, None, None)).hessian(base.parameters_, used) / 3.0
    precision = precision + np.eye(len(precision)) / 3.0
    np.testing.assert_allclose(models[0].posterior_std_[used], np.sqrt(np.diag(np.linalg.inv(precision))), rtol=1e-6)
    np.testing.assert_allclose(models[1].posterior_std_[used], np.diag(precision) ** -0.5, rtol=1e-6)


def test_full_covariances():
    X, y = drawn(6, 0)
    full = BayesianCRF(C=3.0, features="all", covariance="full").fit(X, y)
    diagonal = BayesianCRF(C=3.0, features="all").fit(X, y)
    assert full.converged_
    used = full.score_map_.used
    assert full.posterior_std_[used].mean() > diagonal.posterior_std_[used].mean()  # independent ones are narrower


def test_other_structures():
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(3, 2)), [(0, 1), (1, 2), (2, 0)]) for _ in range(10)]
    y = [["a" if row[0] > 0 else "b" for row in nodes] for nodes, _ in X]
    assert BayesianCRF(Graph(), C=1.0, n_predict=10).fit(X, y).score(X, y) > 0.8
    BayesianCRF(Chain(order=2), C=1.0, n_predict=10).fit(*TRAIN)
    with pytest.raises(ValueError, match="inference='power_ep' is for chains of order 1"):
        BayesianCRF(Chain(order=2), C=1.0, inference="power_ep").fit(*TRAIN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inference": "ep"}, "The 'inference' parameter of BayesianCRF must be"),
        ({"covariance": "low_rank"}, "The 'covariance' parameter of BayesianCRF must be"),
        ({"schedule": "random"}, "The 'schedule' parameter of BayesianCRF must be"),
        ({"prediction": "mode"}, "The 'prediction' parameter of BayesianCRF must be"),
        ({"temperature": 0.0}, "The 'temperature' parameter of BayesianCRF"),
        ({"n_draws": 1}, "The 'n_draws' parameter of BayesianCRF"),
        ({"n_predict": 0}, "The 'n_predict' parameter of BayesianCRF"),
        ({"damping": 1.5}, "The 'damping' parameter of BayesianCRF"),
        ({"C": -1.0}, "The 'C' parameter of BayesianCRF"),
        ({"C": "best"}, "The 'C' parameter of BayesianCRF"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BayesianCRF(**options).fit(*TRAIN)


def test_labels_must_be_known():
    X, y = TRAIN
    with pytest.raises(ValueError, match=r"The posterior of BayesianCRF needs labels .* known.*Use a CRF"):
        BayesianCRF(C=1.0).fit(X, [[None, *labels[1:]] for labels in y])


def test_relaxations_have_no_posterior():
    """What is recommended in its place must not be another mean of probabilities: these need exact answers."""
    X, y = [([["a"], ["b"]], [(0, 1)])] * 3, [["x", "y"]] * 3
    with pytest.raises(ValueError, match=r"covariances of parts, which Graph.* does not have\. Use a CRF instead\.$"):
        BayesianCRF(Graph(inference="trw"), C=1.0).fit(X, y)
    with pytest.raises(ValueError, match="predict needs exact answers"):
        BaggedTagger(CRF(Graph(inference="trw")), 2).fit(X, y).predict(X)


def test_many_weights_have_no_matrix(monkeypatch):
    monkeypatch.setattr("dualfield.solvers.bayes.posterior.FEW_WEIGHTS", 10)
    for options in ({"covariance": "full"}, {"inference": "hmc"}, {"inference": "power_ep"}, {"prediction": "ep"}):
        with pytest.raises(ValueError, match="at most 2,000 of them"):
            BayesianCRF(C=1.0, **options).fit(*TRAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianCRF(C=1.0).fit(*TRAIN)  # the diagonal of the curvature by random signs
