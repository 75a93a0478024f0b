"""The CRF as a scikit-learn estimator: parameters, copies, searches, threads, seeds and odd data."""

from __future__ import annotations

import copy
import io
import itertools

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

from dualfield import CRF
from dualfield.features import Template
from dualfield.solvers import LBFGS, SGD, BlockDual, Perceptron, Status
from dualfield.structures import Chain
from tests.estimators.tagging import matrices, sentences, vocabulary

X, Y = sentences(40)
SETTINGS = {
    "plain": {},
    "order 2": {"structure": Chain(order=2)},
    "many": {"C": 3.0, "features": "all", "start_stop": True, "pair_features": ["w="], "l1_ratio": 0.2},
    "constrained": {"constraints": "BIO", "class_weight": "balanced", "cost": "hamming", "temperature": 0.7},
    "arrays": {"constraints": np.ones((3, 3), dtype=bool), "cost": 1 - np.eye(3), "class_weight": {"O": 2.0}},
    "objects": {"solver": LBFGS(memory=4)},
}


def test_parameters():
    model = CRF(C=3.0, solver=BlockDual(memory=1e6), structure=Chain(order=2))
    assert model.get_params()["C"] == 3.0
    assert set(model.get_params()) == set(CRF().get_params())
    assert model.set_params(C=5.0, tol=1e-2).C == 5.0
    with pytest.raises(ValueError, match="Invalid parameter 'c2'"):
        model.set_params(c2=1.0)
    with pytest.raises(TypeError):
        CRF("chain", 1.0, 0.5)  # only structure and C may come without a name
    assert CRF(C=[1]).C == [1]  # nothing is checked or changed before fit


@pytest.mark.parametrize("name", SETTINGS)
def test_clone(name):
    model = CRF(random_state=0, **SETTINGS[name]).fit(X, Y)
    twin = clone(model)
    assert not hasattr(twin, "parameters_")
    assert repr(twin) == repr(model)
    np.testing.assert_array_equal(twin.fit(X, Y).parameters_, model.parameters_)


@pytest.mark.parametrize("name", SETTINGS)
def test_fit_keeps_parameters_and_input(name):
    given = copy.deepcopy((X, Y))
    model = CRF(**SETTINGS[name])
    before = dict(model.get_params())
    assert model.fit(X, Y) is model
    assert all(value is before[key] for key, value in model.get_params().items())
    assert given == (X, Y)
    check_is_fitted(model)


def test_repr():
    assert repr(CRF()) == "CRF()"
    assert repr(CRF(C=2.0, features="all")) == "CRF(C=2.0, features='all')"
    assert "Chain(n_labels=0, order=2)" in repr(CRF(structure=Chain(order=2)))


def through_joblib(model):
    stream = io.BytesIO()
    joblib.dump(model, stream)
    stream.seek(0)
    return joblib.load(stream)


@pytest.mark.parametrize("copied", [through_joblib, copy.deepcopy])
@pytest.mark.parametrize("name", SETTINGS)
def test_copies_predict_the_same(copied, name):
    model = CRF(random_state=0, **SETTINGS[name]).fit(X, Y)
    model.predict(X)  # native twins exist now
    twin = copied(model)
    assert twin.predict(X) == model.predict(X)
    for one, other in zip(model.predict_proba(X), twin.predict_proba(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert twin.status_ == model.status_
    np.testing.assert_array_equal(twin.trace_.gap, model.trace_.gap)
    assert twin.fit(X, Y).predict(X) == model.predict(X)


def test_copies_with_a_template():
    words = [[item[0] for item in xs] for xs in X]
    model = CRF(template=Template("U0:%x[0,0]\nB1:%x[0,0]\nB")).fit(words, Y)
    assert through_joblib(model).predict(words) == model.predict(words)
    assert clone(model).fit(words, Y).n_features_ == model.n_features_


def test_grid_search_with_lists():
    search = GridSearchCV(CRF(), {"C": [1e-3, 1.0], "features": ["observed", "all"]}, cv=3).fit(X, Y)
    assert search.best_params_["C"] == 1.0
    assert search.best_estimator_.predict(X[:2]) == search.predict(X[:2])
    assert 0.6 < search.best_score_ <= 1.0
    assert len(cross_val_score(CRF(), X, Y, cv=4)) == 4
    dense = matrices(X, vocabulary(X))
    np.testing.assert_allclose(
        cross_val_score(CRF(tol=1e-8), dense, Y, cv=4), cross_val_score(CRF(tol=1e-8), X, Y, cv=4)
    )


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "sgd", "perceptron"])
def test_threads_give_the_same_bits(solver):
    data = sentences(200)
    one, two = (CRF(solver=solver, n_jobs=n, random_state=0, max_iter=50, tol=1e-2).fit(*data) for n in (1, 2))
    np.testing.assert_array_equal(one.parameters_, two.parameters_)
    assert (one.objective_, one.dual_gap_, one.n_iter_) == (two.objective_, two.dual_gap_, two.n_iter_)
    assert one.predict(data[0]) == two.predict(data[0])
    for a, b in zip(one.predict_proba(data[0]), two.predict_proba(data[0]), strict=True):
        np.testing.assert_array_equal(a, b)
    assert one.k_best(data[0], 3) == two.k_best(data[0], 3)
    with joblib.parallel_config(n_jobs=2):
        again = CRF(solver=solver, random_state=0, max_iter=50, tol=1e-2).fit(*data)
    np.testing.assert_array_equal(again.parameters_, one.parameters_)


@pytest.mark.parametrize("solver", ["block_dual", "sgd", "perceptron"])
def test_seeds(solver):
    def fit(seed):
        return CRF(solver=solver, random_state=seed, max_iter=6, tol=0.1).fit(X, Y).parameters_

    np.testing.assert_array_equal(fit(1), fit(1))
    assert not np.array_equal(fit(1), fit(2))
    np.testing.assert_array_equal(fit(np.random.RandomState(3)), fit(np.random.RandomState(3)))


def test_lbfgs_needs_no_seed():
    one, two = (CRF(solver="lbfgs", random_state=seed).fit(X, Y).parameters_ for seed in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_fitted_attributes():
    model = CRF(start_stop=True).fit(X, Y)
    assert model.classes_.tolist() == ["B-N", "I-N", "O"]
    assert model.coef_.shape == (3, len(vocabulary(X)))
    assert model.transitions_.shape == (3, 3)
    assert model.start_.shape == model.stop_.shape == (3,)
    assert list(model.vocabulary_) == vocabulary(X)
    assert model.structure_ == Chain(3)
    assert model.solver_ == "block_dual"
    assert model.status_ == Status.CONVERGED
    observed = {
        (a, label) for xs, ys in zip(X, Y, strict=True) for item, label in zip(xs, ys, strict=True) for a in item
    }
    transitions = {pair for ys in Y for pair in itertools.pairwise(ys)}
    assert model.n_features_ == len(observed) + len(transitions) + 6
    assert model.coef_.nnz == len(observed)
    assert model.transitions_[2, 1] == 0.0  # I-N never follows O
    everything = CRF(features="all").fit(X, Y)
    assert everything.n_features_ == 3 * len(vocabulary(X)) + 9
    assert everything.transitions_[2, 1] < 0
    np.testing.assert_array_equal(everything.start_, np.zeros(3))


def test_the_penalty_on_absolute_values_makes_zeros():
    sparse = CRF(l1_ratio=1.0, C=0.3, tol=1e-5).fit(X, Y)
    assert np.count_nonzero(sparse.coef_.data) < 0.5 * np.count_nonzero(CRF(C=0.3).fit(X, Y).coef_.data)


def test_softmax_margin_asks_for_more_than_likelihood():
    """With a cost for wrong labels the truth must win by more: the loss is larger, the scores are further apart."""
    plain, margin = CRF(C=1.0, tol=1e-6).fit(X, Y), CRF(C=1.0, tol=1e-6, cost="hamming").fit(X, Y)
    assert margin.objective_ > plain.objective_
    assert (margin.parameters_**2).sum() > (plain.parameters_**2).sum()


def test_sequences_that_occur_twice():
    twice = CRF(C=0.5, tol=1e-9).fit(X + X, Y + Y)
    once = CRF(C=1.0, tol=1e-9).fit(X, Y)
    assert twice.objective_ == pytest.approx(once.objective_, rel=1e-8)
    np.testing.assert_allclose(twice.transitions_, once.transitions_, atol=1e-4)


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "sgd", "perceptron"])
def test_long_and_short_sequences_together(solver):
    rng = np.random.default_rng(0)
    lengths = [1, 2000, 1, 3, 500, 2]
    numbers = [rng.normal(size=(n, 2)) for n in lengths]
    y = [(x[:, 0] > 0).astype(int).tolist() for x in numbers]
    model = CRF(C=0.1, solver=solver, tol=1e-3, random_state=0).fit(numbers, y)
    assert model.score(numbers, y) > 0.95
    assert all(np.isfinite(rows).all() for rows in model.predict_proba(numbers))


@pytest.mark.parametrize("scale", [1e-4, 1e3])
def test_features_of_any_scale(scale):
    """Features times s with C divided by s^2: the optimum is the same if all scores are, with weights divided by s."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    one = CRF(C=scale**2, tol=1e-8, features="all", solver="lbfgs").fit(x, y, lengths=[1] * 50)
    scaled = CRF(C=1.0, tol=1e-8, features="all", solver="lbfgs").fit(scale * x, y, lengths=[1] * 50)
    np.testing.assert_allclose(scale * scaled.coef_, one.coef_, rtol=1e-3, atol=1e-9 * scale)
    assert scale**2 * scaled.objective_ == pytest.approx(one.objective_, rel=1e-6)


def test_solver_objects():
    assert CRF(solver=SGD(average=False, rate=0.5, n_epochs=3)).fit(X, Y).n_iter_ == 3
    assert CRF(solver=SGD(), max_iter=7).fit(X, Y).n_iter_ == 7
    assert CRF(solver="sgd").fit(X, Y).n_iter_ == 30
    average, last = (CRF(solver=SGD(average=a), random_state=0).fit(X, Y).parameters_ for a in (True, False))
    assert not np.array_equal(average, last)
    assert CRF(solver="sgd").fit(X, Y).status_ == Status.FINISHED


def test_perceptron_learns_what_can_be_learnt():
    words = [[[item[0]] for item in xs] for xs in X]
    y = [["noun" if item[0] in ("w=dog", "w=cat") else "other" for item in xs] for xs in words]
    model = CRF(solver=Perceptron(average=False), max_iter=500, random_state=0).fit(words, y)
    assert model.n_iter_ < 500
    assert model.score(words, y) == 1.0
    for solver in ("perceptron", "passive_aggressive", "arow"):
        assert CRF(solver=solver, random_state=0).fit(words, y).score(words, y) > 0.95
