"""The hidden-state CRF against enumeration of all states, finite differences and the CRF without sub-states."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from dualfield import CRF, LatentChain, LatentCRF, LatentMulticlass
from dualfield.models.latent.data import StateData
from tests.estimators.latent_problems import flattened
from tests.reference.latent import chain_features, completions, hidden_rhythm, labellings

SIZES = [2, 3]


def enumerated(seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, 2)) for n in (3, 2, 1, 3)]
    y = [[0, 1, 1], [1, 0], [0], [1, 1, 0]]
    return X, y


def objective(X, y, flat, C):
    value = 0.5 * flat @ flat
    for x, truth in zip(X, y, strict=True):
        everything, own = (
            [chain_features(x, path, SIZES, True) @ flat for path in paths]
            for paths in (labellings(len(truth), [0, 1], SIZES), completions(truth, SIZES))
        )
        value += C * (logsumexp(everything) - logsumexp(own))
    return value


@pytest.mark.parametrize("solver", ["lbfgs", "em"])
def test_objective_and_probabilities_agree_with_enumeration(solver):
    X, y = enumerated()
    base = CRF(C=2.0, features="all", start_stop=True)
    with pytest.warns(UserWarning, match="do not improve the objective"):  # noise has no hidden states
        model = LatentCRF(base, LatentChain(SIZES), n_restarts=2, random_state=0, solver=solver).fit(X, y)
    data = StateData.read(base, LatentChain(SIZES), X, y, None, None, hinge=False)
    flat = flattened(data, model.parameters_)
    assert model.objective_ == pytest.approx(objective(X, y, flat, 2.0), rel=1e-9)
    paths = labellings(3, [0, 1], SIZES)
    scores = np.array([chain_features(X[0], path, SIZES, True) @ flat for path in paths])
    share = np.exp(scores - logsumexp(scores))
    first = sum(p for p, path in zip(share, paths, strict=True) if path[0][0] == 1)
    found = model.predict_proba(X)
    assert found[0][0, 1] == pytest.approx(first, abs=1e-9)
    np.testing.assert_allclose(found[0].sum(axis=1), 1.0, atol=1e-12)
    assert model.predict(X) == [row.argmax(axis=1).tolist() for row in found]


def test_weights_are_stationary():
    X, y = enumerated()
    base = CRF(C=2.0, features="all", start_stop=True, tol=1e-7)
    with pytest.warns(UserWarning, match="do not improve the objective"):
        model = LatentCRF(base, LatentChain(SIZES), n_restarts=1, random_state=0).fit(X, y)
    flat = flattened(StateData.read(base, LatentChain(SIZES), X, y, None, None, hinge=False), model.parameters_)
    for step in np.random.default_rng(0).normal(size=(5, len(flat))):
        slope = (objective(X, y, flat + 1e-5 * step, 2.0) - objective(X, y, flat - 1e-5 * step, 2.0)) / 2e-5
        assert abs(slope) <= 1e-4


def test_em_never_rises_and_ends_where_lbfgs_does():
    X, y = hidden_rhythm(40, 0)
    base = CRF(C=1.0, features="all", start_stop=True)
    runs = [
        LatentCRF(base, n_restarts=2, random_state=0, solver=solver, init="em").fit(X, y) for solver in ("lbfgs", "em")
    ]
    assert runs[1].trace_.certified()
    assert (runs[1].trace_.temperature == 1.0).all()
    assert runs[1].objective_ == pytest.approx(runs[0].objective_, rel=1e-3)


def test_substates_find_a_rhythm_and_restarts_are_kept():
    (X, y), test = hidden_rhythm(80, 0), hidden_rhythm(200, 1)
    base = CRF(C=1.0, features="all", start_stop=True)
    model = LatentCRF(base, n_restarts=3, random_state=0).fit(X, y)
    assert 1.0 - model.score(*test) <= 0.33
    assert 1.0 - base.fit(X, y).score(*test) >= 0.42
    assert model.plain_objective_ == pytest.approx(base.objective_, rel=1e-3)
    assert model.objective_ == model.restarts_.min() < 0.95 * model.plain_objective_
    again = LatentCRF(CRF(C=1.0, features="all", start_stop=True), n_restarts=3, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(again.parameters_, model.parameters_)
    given = LatentCRF(CRF(C=1.0, features="all", start_stop=True), init=model.predict_latent(X, y)).fit(X, y)
    assert given.objective_ <= model.objective_ * 1.02


def test_one_state_each_is_the_crf():
    X, y = hidden_rhythm(30, 2)
    latent = LatentCRF(CRF(tol=1e-6), LatentChain(1), n_restarts=1, random_state=0).fit(X, y)
    plain = CRF(tol=1e-6).fit(X, y)
    assert latent.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    np.testing.assert_allclose(latent.predict_proba(X)[0], plain.predict_proba(X)[0], atol=1e-3)


def test_labels_known_in_part():
    X, y = hidden_rhythm(40, 3)
    partly = [[None if t % 4 == 3 else {label} for t, label in enumerate(row)] for row in y]
    model = LatentCRF(CRF(C=1.0, features="all"), n_restarts=2, random_state=0).fit(X, partly)
    assert np.isfinite(model.objective_)
    assert model.score(X, y) > 0.6


def test_components_of_classes():
    rng = np.random.default_rng(0)
    which = np.arange(60) % 4
    X = np.array([[3.0, 0.0], [0.0, 3.0], [-3.0, 0.0], [0.0, -3.0]])[which] + 0.5 * rng.normal(size=(60, 2))
    y = np.array(["flat", "steep"])[which % 2]
    model = LatentCRF(CRF(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (60, 2)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], y)
