"""What latent structural SVMs learn, where they begin, and what they accept."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from dualfield import LatentChain, LatentMulticlass, LatentPosition, LatentStructuredSVM, StructuredSVM
from tests.reference.latent import bags, hidden_rhythm

RHYTHM = StructuredSVM(C=0.1, features="all", start_stop=True)


@pytest.fixture(scope="module")
def rhythm():
    return hidden_rhythm(80, 0), hidden_rhythm(400, 1)


@pytest.fixture(scope="module")
def fitted(rhythm):
    return LatentStructuredSVM(RHYTHM, LatentChain(2), random_state=0).fit(*rhythm[0])


def circles(seed=0):
    """Each class consists of two groups on opposite sides."""
    rng = np.random.default_rng(seed)
    middles = np.array([[3.0, 0.0], [0.0, 3.0], [-3.0, 0.0], [0.0, -3.0]])
    which = np.arange(40) % 4
    return middles[which] + 0.5 * rng.normal(size=(40, 2)), np.array(["flat", "steep"])[which % 2], which // 2


def test_substates_find_a_rhythm_that_plain_labels_cannot(rhythm, fitted):
    X_test, y_test = rhythm[1]
    assert 1.0 - fitted.score(X_test, y_test) <= 0.36
    plain = StructuredSVM(C=0.1, features="all", start_stop=True).fit(*rhythm[0])
    assert 1.0 - plain.score(X_test, y_test) >= 0.45
    assert fitted.objective_ < 0.9 * fitted.plain_objective_
    assert fitted.plain_objective_ == pytest.approx(plain.objective_, rel=3e-3)


def test_the_restart_with_the_lowest_objective_is_kept_and_certified(fitted):
    assert fitted.restarts_.shape == (6,)
    assert fitted.objective_ == fitted.restarts_.min() == fitted.trace_.objective[-1]
    assert fitted.trace_.certified()
    assert fitted.n_iter_ == len(fitted.trace_)
    assert 0.0 <= fitted.dual_gap_ <= 1.1e-3 * fitted.objective_


def test_hidden_parts_of_training_are_those_of_completion(rhythm, fitted):
    X, y = rhythm[0]
    for mine, again in zip(fitted.hidden_, fitted.predict_latent(X, y), strict=True):
        np.testing.assert_array_equal(mine, again)
    states = fitted.states_.predict(X[:3])
    labels, substates = fitted.predict(X[:3]), fitted.predict_latent(X[:3])
    for path, names, numbers in zip(states, labels, substates, strict=True):
        assert list(path) == [f"{name}/{number}" for name, number in zip(names, numbers, strict=True)]


def test_seeds_decide_and_threads_do_not(rhythm):
    X, y = (part[:25] for part in rhythm[0])
    runs = [
        LatentStructuredSVM(StructuredSVM(C=1.0), n_restarts=3, random_state=seed, n_jobs=jobs).fit(X, y)
        for seed, jobs in ((1, 1), (1, 1), (1, 2), (2, 1))
    ]
    for other in runs[1:3]:
        np.testing.assert_array_equal(runs[0].parameters_, other.parameters_)
        np.testing.assert_array_equal(runs[0].restarts_, other.restarts_)
    assert not np.array_equal(runs[0].restarts_, runs[3].restarts_)


def test_em_and_given_starts(rhythm, fitted):
    X, y = rhythm[0]
    em = LatentStructuredSVM(RHYTHM, LatentChain(2), init="em", n_restarts=2, random_state=1).fit(X, y)
    assert em.trace_.certified()
    assert em.objective_ < 0.9 * em.plain_objective_
    given = LatentStructuredSVM(RHYTHM, LatentChain(2), init=fitted.hidden_, random_state=0).fit(X, y)
    assert given.restarts_.shape == (1,)
    assert given.objective_ <= fitted.objective_ * (1 + 2e-3)
    again = clone(fitted).set_params(init=fitted.parameters_).fit(X, y)
    assert again.objective_ <= fitted.objective_
    assert again.trace_.before[0] == pytest.approx(fitted.objective_, rel=1e-12)


def test_weights_of_the_last_fit_are_gone_on_from(rhythm):
    X, y = rhythm[0]
    model = LatentStructuredSVM(RHYTHM, LatentChain(2), random_state=3, n_restarts=1).fit(X, y)
    before = model.objective_
    model.set_params(init="weights").fit(X, y)
    assert model.objective_ <= before


def test_annealing(rhythm):
    X, y = rhythm[0]
    model = LatentStructuredSVM(RHYTHM, LatentChain(2), anneal=True, n_restarts=3, random_state=0).fit(X, y)
    assert model.trace_.temperature[0] == 1.0
    assert model.trace_.temperature[-1] == 0.0
    assert model.trace_.certified()
    assert model.objective_ < 0.9 * model.plain_objective_


def test_components_of_classes():
    X, y, groups = circles()
    model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert isinstance(model.predict(X), np.ndarray)
    for name in ("flat", "steep"):  # the components are the groups, in either order
        found, true = model.hidden_[y == name], groups[y == name]
        assert (found == true).all() or (found == 1 - true).all()
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], y)
    sparse = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass(2), random_state=0)
    np.testing.assert_allclose(sparse.fit(scipy.sparse.csr_array(X), y).coef_, model.coef_, atol=1e-9)


def test_components_by_class_and_string_labels_in_lists():
    X, y, _ = circles()
    model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass({"flat": 2}), random_state=0)
    model.fit(X, y.tolist())
    assert model.coef_.shape == (3, 2)
    assert isinstance(model.predict(X), list)
    assert model.score(X, y) >= 0.7  # three linear functions through 0 can have three of the four groups


def test_attributes_constraints_and_pairs_of_sequences():
    X = [[{"w": "a"}, {"w": "b", "cap": 1.0}, {"w": "c"}], [{"w": "b"}, {"w": "a"}]] * 6
    y = [["B-x", "I-x", "O"], ["O", "B-x"]] * 6
    base = StructuredSVM(C=3.0, constraints="BIO", pair_features=True, start_stop=True)
    with pytest.warns(UserWarning, match="do not improve the objective"):  # there is nothing hidden here
        model = LatentStructuredSVM(base, LatentChain({"O": 2}), random_state=0, n_restarts=2).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.predict([[{"w": "z"}, {"w": "b"}]])[0][0] != "I-x"
    assert model.states_.classes_.tolist() == ["B-x/0", "I-x/0", "O/0", "O/1"]
    assert model.trace_.certified()


def test_bags_are_classified_and_the_instance_is_found():
    X, y, _ = bags(100, 0)
    X_test, y_test, places_test = bags(300, 1)
    model = LatentStructuredSVM(StructuredSVM(C=1.0), LatentPosition("no"), random_state=0, n_restarts=3).fit(X, y)
    assert model.score(X_test, y_test) >= 0.97
    found = model.predict_latent(X_test, y_test)
    yes = np.array(y_test) == "yes"
    assert np.mean(found[yes] == np.array(places_test)[yes]) >= 0.97
    assert (found[~yes] == -1).all()
    assert (model.hidden_[np.array(y) == "no"] == -1).all()
    assert model.coef_.shape == (1, 4)
    flat = LatentStructuredSVM(StructuredSVM(C=1.0), LatentPosition("no"), random_state=0, n_restarts=3)
    flat.fit(np.concatenate(X), np.array(y), lengths=[len(bag) for bag in X])
    np.testing.assert_array_equal(flat.parameters_, model.parameters_)
    together = flat.predict(np.concatenate(X_test), lengths=[len(bag) for bag in X_test])
    assert isinstance(together, np.ndarray)
    assert together.tolist() == model.predict(X_test)


def test_bags_of_three_classes_with_weights_and_annealing():
    rng = np.random.default_rng(5)
    X, y = [], []
    for i in range(60):
        bag = rng.normal(size=(4, 3))
        bag[rng.integers(4), i % 3] += 5.0
        X.append(bag)
        y.append(i % 3)
    model = LatentStructuredSVM(
        StructuredSVM(C=1.0, class_weight="balanced"),
        LatentPosition(intercept=False),
        anneal=True,
        n_restarts=1,
        random_state=0,
    )
    model.fit(X, y, sample_weight=np.ones(60))
    assert model.score(X, y) >= 0.95
    assert model.coef_.shape == (3, 3)
    assert model.trace_.certified()
