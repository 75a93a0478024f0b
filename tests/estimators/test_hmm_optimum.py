"""Discriminative HMMs against cvxpy with all paths listed, and what training must always hold."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualfield import DiscriminativeHMM
from dualfield.models.generative import margin_training
from dualfield.solvers import Simplicial, Status
from tests.estimators.hmm_reference import (
    drawn,
    features,
    hinges,
    least,
    minimum,
    objective,
    planes,
    reference,
    rows,
    simulated,
    theta_of,
)

S, V = 2, 3
TIGHT = {"tol": 1e-8, "smoothing": 0.5}


def check_optimum(model, c, found, eta, weights=None):
    best, _ = minimum(c, found, S, V, eta, weights)
    theta = theta_of(model)
    assert model.status_ is Status.CONVERGED
    assert model.objective_ == pytest.approx(objective(theta, c, found, eta, S, V, weights), rel=1e-9)
    assert abs(model.objective_ - best) <= 1e-6 * max(1.0, abs(best))
    assert model.objective_ - model.dual_gap_ <= best + 1e-7 * max(1.0, best + least(c, S, V))
    sums = np.bincount(rows(S, V), np.exp(theta))
    assert (sums <= 1.0 + 1e-9).all()


@pytest.mark.parametrize("eta", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("prior", ["prob", "count", "uniform"])
def test_optimum(prior, seed, eta):
    X, y = drawn(seed)
    model = DiscriminativeHMM(eta, prior=prior, **TIGHT).fit(X, y)
    counts, prob = reference(X, y, S, V, 0.5)
    uniform = 1.0 / np.bincount(rows(S, V))[rows(S, V)]
    check_optimum(model, {"prob": prob, "count": counts, "uniform": uniform}[prior], planes(X, y, S, V), eta)


def test_optimum_of_a_given_prior_cost_matrix_and_weights():
    X, y = drawn(3)
    start, transition, emission = np.array([0.3, 2.0]), np.array([[1.0, 0.2], [0.4, 0.4]]), np.full((S, V), 0.7)
    prior = {"start": start, "transition": transition, "emission": emission}
    cost, weights = np.array([[0.0, 2.0], [0.5, 0.0]]), np.array([1.0, 0.0, 2.0, 0.5])
    model = DiscriminativeHMM(0.4, prior=prior, loss=cost, tol=1e-8).fit(X, y, sample_weight=weights)
    c = np.concatenate([start, transition.ravel(), emission.ravel()])
    check_optimum(model, c, planes(X, y, S, V, cost), 0.4, weights)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_only_hidden_states_compete(seed):
    X, y = drawn(seed)
    rng = np.random.default_rng(seed)
    hidden = [rng.random(3) < 0.5 for _ in X]
    hidden[0][:] = False
    model = DiscriminativeHMM(0.8, **TIGHT).fit(X, y, hidden=hidden)
    c = reference(X, y, S, V, 0.5)[1]
    check_optimum(model, c, planes(X, y, S, V, hidden=hidden), 0.8)
    everything = minimum(c, planes(X, y, S, V), S, V, 0.8)[0]
    assert model.objective_ < everything - 1e-3  # the others would matter
    flat = DiscriminativeHMM(0.8, **TIGHT).fit(
        np.concatenate(X), np.concatenate(y), hidden=np.concatenate(hidden), lengths=[3] * 4
    )
    np.testing.assert_array_equal(flat.parameters_, model.parameters_)


def test_missing_mass_where_margins_cancel_the_reference():
    """With a large eta some row lacks much; there the margins cancel the reference."""
    lacking = 0
    for seed in range(6):
        X, y = drawn(seed)
        model = DiscriminativeHMM(5.0, **TIGHT).fit(X, y)
        mass = model.missing_mass_
        found = np.concatenate([[mass["start"]], mass["transition"], mass["emission"]])
        sums = np.bincount(rows(S, V), np.exp(theta_of(model)))
        np.testing.assert_allclose(found, 1.0 - sums, atol=1e-12)
        lacking += int((found > 1e-3).sum())
    assert lacking > 0


def test_missing_mass_is_not_told_before_convergence():
    X, y = simulated()
    with pytest.warns(ConvergenceWarning, match="Relative duality gap"):
        model = DiscriminativeHMM(1.0, tol=1e-9, max_iter=3).fit(X, y)
    mass = model.missing_mass_
    assert np.isnan(mass["start"])
    assert np.isnan(mass["transition"]).all()
    assert np.isnan(mass["emission"]).all()
    assert model.status_ is Status.ITERATION_LIMIT
    assert np.isfinite(model.transmat_).all()


def test_training_lowers_the_hinge_of_the_counted_model():
    X, y = simulated()
    counted = DiscriminativeHMM(0.0).fit(X, y)
    trained = DiscriminativeHMM(0.1, tol=1e-5).fit(X, y)
    found = planes(X[:6], y[:6], 3, 5)
    assert hinges(theta_of(trained), found).sum() < hinges(theta_of(counted), found).sum()
    assert trained.score(X, y) >= counted.score(X, y)


def test_the_solution_does_not_depend_on_threads():
    X, y = simulated()
    one, two = (DiscriminativeHMM(0.1, tol=1e-4, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.parameters_, two.parameters_)
    for a, b in zip(one.predict_proba(X), two.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_solver_settings():
    X, y = simulated()
    named = DiscriminativeHMM(0.05, tol=1e-6, n_blocks=3, max_columns=20).fit(X, y)
    given = DiscriminativeHMM(0.05, tol=1e-6, solver=Simplicial(3, 20)).fit(X, y)
    other = DiscriminativeHMM(0.05, tol=1e-6, n_blocks=1).fit(X, y)
    np.testing.assert_array_equal(named.parameters_, given.parameters_)
    assert named.solver_ == "simplicial"
    assert len(named.trace_) == len(given.trace_) != len(other.trace_)
    assert named.objective_ == pytest.approx(other.objective_, rel=2e-6)
    assert (np.diff(np.minimum.accumulate(named.trace_.objective)) <= 0.0).all()


def test_a_warm_start_begins_where_the_fit_before_ended():
    X, y = simulated()
    cold = DiscriminativeHMM(0.05, tol=1e-6).fit(X, y)
    warm = DiscriminativeHMM(0.05, tol=1e-6, warm_start=True).fit(X, y)
    first = len(warm.trace_)
    warm.fit(X, y)
    assert warm.trace_.objective[0] == pytest.approx(cold.objective_, rel=1e-6)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-6)
    assert first == len(cold.trace_)
    counted = DiscriminativeHMM(0.0, smoothing=0.0, warm_start=True).fit(X, y)  # zeros are no start
    counted.set_params(eta=0.05, smoothing=0.1, tol=1e-6).fit(X, y)
    assert counted.objective_ == pytest.approx(cold.objective_, rel=2e-6)
    others = [x[:1] for x in X if len(x)]  # other symbols, perhaps: begins anew
    warm.fit([np.append(x, 77) for x in others], [np.append(s[:1], 0) for s in y])
    assert 77 in warm.symbols_


def unlabelled(y, share, seed=5):
    rng = np.random.default_rng(seed)
    return [[None if rng.random() < share else int(label) for label in states] for states in y]


def test_completion_never_makes_the_objective_rise():
    """The trace goes on from one convex problem to the next, whose first look is at the tables of the one before."""
    completions = []
    for seed in range(4):
        X, y = simulated(30, seed)
        model = DiscriminativeHMM(0.3, tol=1e-6, smoothing=0.3, max_iter=60).fit(X, unlabelled(y, 0.6, seed))
        values = model.trace_.objective
        assert (np.diff(values) <= 1e-12 * values[0]).all()
        assert (np.diff(model.trace_.passes) > 0.0).all()
        assert model.objective_ == values[-1]
        assert model.status_ is Status.CONVERGED
        completions.append(model.n_completions_)
    assert max(completions) > 1


def test_the_number_of_completions_is_limited(monkeypatch):
    monkeypatch.setattr(margin_training, "MOST_COMPLETIONS", 1)
    X, y = simulated(30, 1)
    partly = unlabelled(y, 0.6, 1)
    with pytest.warns(ConvergenceWarning, match="limit"):
        model = DiscriminativeHMM(0.3, tol=1e-6, smoothing=0.3).fit(X, partly)
    assert model.n_completions_ == 1
    assert model.status_ is Status.ITERATION_LIMIT


def latent_objective(model, c, X, partly, eta, n_states, n_symbols):
    """The objective with hidden states, by enumeration: the truth is completed with its best states."""
    theta, total = theta_of(model), -c @ theta_of(model) - least(c, n_states, n_symbols)
    for symbols, states in zip(X, partly, strict=True):
        everything = list(itertools.product(range(n_states), repeat=len(states)))
        scores = np.array([features(path, symbols, n_states, n_symbols) @ theta for path in everything])
        known = [(t, k) for t, k in enumerate(states) if k is not None]
        cost = np.array([sum(path[t] != k for t, k in known) for path in everything])
        total += eta * ((scores + cost).max() - scores[cost == 0].max())
    return total


def test_partly_labelled_objective_and_stationarity():
    """At the end the tables solve the convex problem of the states that complete the truth best."""
    X, y = drawn(2, n_sequences=5, length=3)
    partly = [[None if (i + t) % 3 == 0 else int(k) for t, k in enumerate(s)] for i, s in enumerate(y)]
    prior = {"start": np.ones(S), "transition": np.full((S, S), 0.5), "emission": np.array([[0.5, 0.3, 0.2]] * S)}
    model = DiscriminativeHMM(0.7, prior=prior, tol=1e-8).fit(X, partly)
    c = np.concatenate([np.ravel(prior[name]) for name in ("start", "transition", "emission")])
    assert model.objective_ == pytest.approx(latent_objective(model, c, X, partly, 0.7, S, V), rel=1e-8)
    completed = [np.array(one) for one in model.predict(X, known=partly)]
    unscored = [[k is None for k in states] for states in partly]
    best = minimum(c, planes(X, completed, S, V, unscored=unscored), S, V, 0.7)[0]
    assert model.objective_ == pytest.approx(best, rel=1e-6)


def test_partly_labelled_with_hidden_sets():
    X, y = simulated(20)
    partly = unlabelled(y, 0.3)
    hidden = [np.array([label is None or t % 2 == 0 for t, label in enumerate(states)]) for states in partly]
    model = DiscriminativeHMM(0.3, tol=1e-5).fit(X, partly, hidden=hidden)
    assert model.status_ is Status.CONVERGED
    assert model.objective_ <= DiscriminativeHMM(0.3, tol=1e-5).fit(X, partly).objective_ * 1.001


def test_no_warning_and_no_solver_when_counting():
    X, y = simulated()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DiscriminativeHMM(0.0, max_iter=1, tol=1e-12).fit(X, y)
    assert (model.solver_, model.n_iter_, model.dual_gap_, model.status_) == ("counting", 1, 0.0, Status.CONVERGED)
    assert len(model.trace_) == 1
