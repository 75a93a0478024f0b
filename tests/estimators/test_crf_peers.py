"""The CRF beside scikit-learn's logistic regression and CRFsuite, trained on the same data to the end."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pycrfsuite
import pytest
from sklearn.linear_model import LogisticRegression

from dualfield import CRF
from tests.estimators.tagging import sentences


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("solver", ["block_dual", "lbfgs"])
def test_chains_of_one_node_are_multinomial_logistic_regression(C, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    weights = rng.uniform(0.1, 2.0, 60)
    peer = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y, weights)
    model = CRF(C=C, solver=solver, features="all", tol=1e-11, max_iter=100_000)
    model.fit(X, y, weights, lengths=np.ones(60, dtype=int))
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    loss = -(weights * peer.predict_log_proba(X)[np.arange(60), y]).sum()
    assert model.objective_ == pytest.approx(0.5 * (peer.coef_**2).sum() + C * loss, rel=1e-9)
    np.testing.assert_allclose(
        np.concatenate(model.predict_proba(X, lengths=[1] * 60)), peer.predict_proba(X), atol=1e-5
    )
    np.testing.assert_array_equal(np.concatenate(model.predict(X, lengths=[1] * 60)), peer.predict(X))
    np.testing.assert_array_equal(model.transitions_, np.zeros((3, 3)))


def test_two_classes_of_one_node():
    """Two rows of weights that are each other's negative: half of what binary logistic regression pays for."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    peer = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    model = CRF(C=4.0, features="all", tol=1e-11).fit(X, y, lengths=[1] * 60)
    np.testing.assert_allclose(model.coef_[1] - model.coef_[0], 2 * model.coef_[1], atol=1e-9)
    assert model.coef_[1] @ peer.coef_[0] > 0
    half = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(2 * X, y)
    np.testing.assert_allclose(model.coef_[1], half.coef_[0], atol=1e-5)


def crfsuite(X, y, path, **settings):
    """Train CRFsuite to the end; returns its log and a tagger."""
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"epsilon": 1e-9, "delta": 1e-14, "period": 20, "max_iterations": 5000, **settings})
    for xs, ys in zip(X, y, strict=True):
        trainer.append(xs, ys)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return trainer.logparser, tagger


def state_weights(model) -> dict:
    """From (attribute, label) to weight."""
    names, coef = list(model.vocabulary_), model.coef_.tocoo()
    return {(names[c], str(model.classes_[r])): w for r, c, w in zip(*coef.coords, coef.data, strict=True)}


@pytest.mark.parametrize(("c1", "c2"), [(0.0, 0.05), (0.0, 1.0), (0.0, 10.0), (0.3, 0.1), (1.0, 0.5)])
@pytest.mark.parametrize("everything", [False, True])
def test_crfsuite(c1, c2, everything, tmp_path):
    X, y = sentences(60)
    flags = {"feature.possible_states": int(everything), "feature.possible_transitions": int(everything)}
    log, tagger = crfsuite(X, y, tmp_path / "model", c1=c1, c2=c2, **flags)
    C = 1 / (c1 + 2 * c2)
    model = CRF(C=C, l1_ratio=c1 * C, features="all" if everything else "observed", tol=1e-9).fit(X, y)
    assert model.n_features_ == log.featgen_num_features
    theirs, mine = tagger.info(), state_weights(model)
    norms = np.array([*theirs.state_features.values(), *theirs.transitions.values()])
    logs = sum(np.log(probability_of(tagger, xs, ys)) for xs, ys in zip(X, y, strict=True))
    objective = C * (c1 * np.abs(norms).sum() + c2 * (norms**2).sum() - logs)
    assert model.objective_ == pytest.approx(objective, rel=1e-5)
    assert model.objective_ <= objective * (1 + 1e-6)  # ours is the minimum; theirs is read from rounded weights
    assert set(theirs.state_features) <= set(mine)
    for feature, weight in mine.items():
        assert theirs.state_features.get(feature, 0.0) == pytest.approx(weight, abs=1e-2)
    for i, before in enumerate(model.classes_):
        for j, after in enumerate(model.classes_):
            assert theirs.transitions.get((before, after), 0.0) == pytest.approx(model.transitions_[i, j], abs=1e-2)
    test, _ = sentences(60, seed=5)
    for xs, ours, tags in zip(test, model.predict(test), [tagger.tag(xs) for xs in test], strict=True):
        if ours != tags:  # only where both are equally probable
            one, other = model.score_sequences([xs, xs], [ours, tags])
            assert one == pytest.approx(other, abs=1e-12)


def probability_of(tagger, xs, ys) -> float:
    tagger.set(xs)
    return tagger.probability(ys)


def test_marginals_of_crfsuite(tmp_path):
    X, y = sentences(60)
    _, tagger = crfsuite(X, y, tmp_path / "model", c1=0.0, c2=0.5)
    model = CRF(tol=1e-10).fit(X, y)
    test, labels = sentences(10, seed=5)
    for xs, probabilities in zip(test, model.predict_proba(test), strict=True):
        tagger.set(xs)
        want = [[tagger.marginal(str(label), t) for label in model.classes_] for t in range(len(xs))]
        np.testing.assert_allclose(probabilities, want, atol=1e-4)
    logs = [np.log(probability_of(tagger, xs, ys)) for xs, ys in zip(test, labels, strict=True)]
    np.testing.assert_allclose(model.score_sequences(test, labels), logs, atol=1e-3)


def test_weighted_attributes_as_in_crfsuite(tmp_path):
    """Dicts of numbers: weights of attributes mean the same."""
    X, y = sentences(40)
    rng = np.random.default_rng(0)
    weighted = [[{name: float(rng.uniform(0.1, 2.0)) for name in item} for item in xs] for xs in X]
    _, tagger = crfsuite(weighted, y, tmp_path / "model", c1=0.0, c2=0.5)
    model = CRF(tol=1e-10).fit(weighted, y)
    theirs = tagger.info().state_features
    for feature, weight in state_weights(model).items():
        assert theirs.get(feature, 0.0) == pytest.approx(weight, abs=1e-3)


@pytest.mark.parametrize("min_freq", [1, 2, 4])
def test_rare_features_as_in_crfsuite(min_freq, tmp_path):
    X, y = sentences(80)
    log, tagger = crfsuite(X, y, tmp_path / "model", c1=0.0, c2=0.5, **{"feature.minfreq": min_freq})
    model = CRF(min_freq=min_freq, tol=1e-6).fit(X, y)
    # CRFsuite's limit holds for transitions, too; here all of them are frequent.
    assert min(Counter(pair for ys in y for pair in itertools.pairwise(ys)).values()) >= 4
    assert model.n_features_ == log.featgen_num_features
    assert set(tagger.info().state_features) <= set(state_weights(model))
