"""Fits that go on from an earlier one: warm starts and streams of data."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import CRF
from dualfield.structures import Chain
from tests.estimators.tagging import sentences

X, Y = sentences(40)
NEW_X, NEW_Y = sentences(40, seed=7)
SETTINGS = [
    {},
    {"solver": "lbfgs"},
    {"solver": "lbfgs", "l1_ratio": 0.5},
    {"pair_features": True},
    {"start_stop": True},
]


@pytest.mark.parametrize("settings", [*SETTINGS, {"structure": Chain(order=2)}])
def test_warm_start_on_the_same_data_is_short(settings):
    model = CRF(warm_start=True, tol=1e-6, C=10.0, random_state=0, **settings).fit(X, Y)
    first, passes = model.objective_, model.trace_.passes[-1]
    model.fit(X, Y)
    assert model.objective_ == pytest.approx(first, rel=2e-6)
    assert model.trace_.passes[-1] <= max(5, 0.5 * passes)


@pytest.mark.parametrize("settings", SETTINGS)
def test_warm_start_with_another_penalty(settings):
    model = CRF(warm_start=True, tol=1e-7, C=1.0, **settings).fit(X, Y)
    model.set_params(C=1.3).fit(X, Y)
    cold = CRF(tol=1e-7, C=1.3, **settings).fit(X, Y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)
    assert model.n_features_ == cold.n_features_


@pytest.mark.parametrize("settings", SETTINGS)
def test_warm_start_with_new_data(settings):
    """Other attributes, in another order, and one more label: the result is that of a cold fit."""
    model = CRF(warm_start=True, tol=1e-7, **settings).fit(X, Y)
    more_X = [[["fresh", *item] for item in xs] for xs in NEW_X] + [[["w=zebra"], ["w=dog"]]]
    more_y = [*NEW_Y, ["A-new", "B-N"]]
    cold = CRF(tol=1e-7, **settings).fit(more_X, more_y)
    model.fit(more_X, more_y)
    assert model.classes_.tolist() == ["A-new", "B-N", "I-N", "O"]
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)
    assert model.n_features_ == cold.n_features_
    np.testing.assert_allclose(model.transitions_, cold.transitions_, atol=5e-3)
    assert list(model.vocabulary_) == list(cold.vocabulary_)


def test_warm_start_matches_attributes_by_name():
    """One pass from the old weights is nearly the old model, although columns and labels are renumbered."""
    model = CRF(warm_start=True, tol=1e-8, C=30.0, solver="lbfgs", features="all").fit(X, Y)
    before = model.predict_proba(X)
    turned = CRF(warm_start=True, tol=1e-8, C=30.0, solver="lbfgs", features="all").fit(X, Y)
    turned.fit(X[::-1], Y[::-1])
    assert list(turned.vocabulary_) != list(model.vocabulary_)
    assert turned.trace_.passes[-1] <= 5
    for one, other in zip(before, turned.predict_proba(X), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_warm_start_with_numbers():
    rng = np.random.default_rng(0)
    numbers = [rng.normal(size=(len(ys), 4)) for ys in Y]
    model = CRF(warm_start=True, tol=1e-8, solver="lbfgs").fit(numbers, Y)
    model.fit(numbers, Y)
    assert model.n_iter_ <= 2


def test_other_columns_are_refused():
    """Columns are matched by their place: others would get the weights of strangers."""
    rng = np.random.default_rng(0)
    by_width = {width: [rng.normal(size=(len(ys), width)) for ys in Y] for width in (2, 4, 5)}
    warm = CRF(warm_start=True).fit(by_width[4], Y)
    stream = CRF(random_state=0).partial_fit(by_width[4], Y)
    before = [model.parameters_.copy() for model in (warm, stream)]
    for width in (2, 5):
        want = rf"With warm_start=True X must have 4 columns, as in the fit before\. Got {width}\. Set warm_start=False"
        with pytest.raises(ValueError, match=want):
            warm.fit(by_width[width], Y)
        with pytest.raises(ValueError, match=rf"X\[0\] has {width} columns; expected 4, as in training"):
            stream.partial_fit(by_width[width], Y)
    with pytest.raises(
        ValueError, match=r"X must have numbers, as in the fit before\. Got attributes instead\. Set warm"
    ):
        warm.fit(X, Y)
    with pytest.raises(TypeError, match=r"X must be numbers in 4 columns\. Got attributes instead"):
        stream.partial_fit(X, Y)
    for model, parameters in zip((warm, stream), before, strict=True):
        np.testing.assert_array_equal(model.parameters_, parameters)
        assert model.predict(by_width[4])
    names = CRF(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match=r"X must have attributes, as in the fit before\. Got numbers instead"):
        names.fit(by_width[4], Y)
    with pytest.raises(TypeError, match=r"X must have attributes"):
        names.partial_fit(by_width[4], Y)


def test_a_kernel_leaves_no_weights_of_columns():
    rng = np.random.default_rng(0)
    numbers = [rng.normal(size=(len(ys), 3)) for ys in Y]
    model = CRF(kernel="rbf", warm_start=True).fit(numbers, Y).set_params(kernel=None)
    with pytest.raises(ValueError, match=r"this model was fitted with a kernel"):
        model.partial_fit(numbers, Y)
    np.testing.assert_allclose(
        model.fit(numbers, Y).parameters_, CRF(random_state=0).fit(numbers, Y).parameters_, atol=0.1
    )


def test_warm_start_across_orders():
    model = CRF(warm_start=True, tol=1e-7).fit(X, Y)
    model.set_params(structure=Chain(order=2)).fit(X, Y)
    cold = CRF(structure=Chain(order=2), tol=1e-7).fit(X, Y)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)


def test_a_cold_fit_forgets():
    model = CRF(tol=1e-9, random_state=0).fit(NEW_X, NEW_Y).fit(X, Y)
    again = CRF(tol=1e-9, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.parameters_, again.parameters_)
    assert model.n_iter_ == again.n_iter_


# Streams


def test_a_stream_comes_near_to_one_fit():
    best = CRF(tol=1e-8, features="all").fit(X, Y)
    model = CRF(features="all", random_state=0)
    start = None
    for _ in range(30):
        for at in range(0, 40, 10):
            model.partial_fit(X[at : at + 10], Y[at : at + 10])
            start = model.score(X, Y) if start is None else start
    assert model.n_seen_ == 1200
    assert model.score(X, Y) >= best.score(X, Y) - 0.02
    assert model.score(X, Y) >= start


def test_one_pass_is_good_and_more_are_better():
    big_X, big_y = sentences(400, seed=3)
    model = CRF(random_state=0)
    for at in range(0, 400, 50):
        model.partial_fit(big_X[at : at + 50], big_y[at : at + 50])
    whole = CRF().fit(big_X, big_y)
    test = sentences(100, seed=4)
    assert model.score(*test) >= whole.score(*test) - 0.03
    assert np.mean(model.score_sequences(*test)) >= np.mean(whole.score_sequences(*test)) - 0.3


@pytest.mark.parametrize(
    "settings", [{}, {"pair_features": True}, {"features": "all", "start_stop": True}, {"min_freq": 1}]
)
def test_new_attributes_get_weights(settings):
    model = CRF(random_state=0, **settings).partial_fit(X[:20], Y[:20])
    names, features = list(model.vocabulary_), model.n_features_
    old = dict(zip(names, model.coef_.toarray().T.tolist(), strict=True))
    fresh = [[["fresh", *item] for item in xs] for xs in X[20:]]
    model.partial_fit(fresh, Y[20:])
    assert list(model.vocabulary_)[: len(names)] == names
    assert "fresh" in model.vocabulary_
    assert model.n_features_ > features
    assert np.abs(model.coef_.toarray()[:, list(model.vocabulary_).index("fresh")]).max() > 0
    # What the new data does not mention only shrinks.
    absent = [n for n in names if n not in {name for xs in fresh for item in xs for name in item}]
    for name in absent:
        now = model.coef_.toarray()[:, names.index(name)]
        assert np.all(np.abs(now) <= np.abs(old[name]) + 1e-12)


def test_labels_are_fixed_by_the_first_call():
    model = CRF().partial_fit(X[:5], Y[:5])
    with pytest.raises(ValueError, match=r"y\[0\]\[0\] is 'Z', a label not seen in training"):
        model.partial_fit([[["a"]]], [["Z"]])
    wide = CRF().partial_fit(X[:5], Y[:5], classes=["Z", "B-N", "I-N", "O"])
    assert wide.classes_.tolist() == ["B-N", "I-N", "O", "Z"]
    wide.partial_fit([[["a"], ["b"]]] * 30, [["Z", "Z"]] * 30)
    assert wide.predict([[["a"], ["b"]]]) == [["Z", "Z"]]
    with pytest.raises(ValueError, match=r"'Q', a label not seen"):
        CRF().partial_fit([[["a"]]], [["Q"]], classes=["Z", "B-N"])


def test_streams_do_not_touch_the_vocabulary_that_others_hold():
    model = CRF().partial_fit(X[:5], Y[:5])
    words = model.vocabulary_
    size = len(words)
    model.partial_fit([[["never seen"]]], [["O"]])
    assert len(words) == size
    assert len(model.vocabulary_) == size + 1


def test_a_fit_may_follow_a_stream_and_the_other_way_round():
    model = CRF(tol=1e-8, random_state=0).partial_fit(NEW_X, NEW_Y)
    model.fit(X, Y)
    cold = CRF(tol=1e-8, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.parameters_, cold.parameters_)
    before = model.objective_
    model.partial_fit(X, Y)
    assert model.predict(X)
    assert model.objective_ <= 1.5 * before
