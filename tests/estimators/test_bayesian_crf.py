"""The Bayesian CRF as an estimator: what it answers, files, seeds, threads, refusals, and what averages do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dualfield
from dualfield import CRF, BayesianCRF
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
    assert loaded.C_ == 1.0


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


def test_many_weights_have_no_matrix(monkeypatch):
    monkeypatch.setattr("dualfield.solvers.bayes.posterior.FEW_WEIGHTS", 10)
    for options in ({"covariance": "full"}, {"inference": "hmc"}, {"inference": "power_ep"}):
        with pytest.raises(ValueError, match="at most 2,000 of them"):
            BayesianCRF(C=1.0, **options).fit(*TRAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianCRF(C=1.0).fit(*TRAIN)  # the diagonal of the curvature by random signs
