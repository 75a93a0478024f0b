"""Averages of taggers: means of probabilities, spread, files, threads, and probabilities where C is too large."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import dualfield
from dualfield import CRF, BaggedTagger, BayesianCRF
from dualfield.datasets import load_town_news
from dualfield.estimators import ImpossibleWarning
from dualfield.metrics import spans, token_log_loss
from dualfield.plotting.parse_trees.parsed import parsed
from dualfield.structures import Graph, Tree
from tests.estimators.tagging import sentences

TRAIN, HELD_OUT, TEST = sentences(40, seed=1), sentences(30, seed=2), sentences(30, seed=3)


@pytest.fixture(scope="module")
def model():
    return BaggedTagger(CRF(C=10.0, constraints="BIO"), n_estimators=5, random_state=3).fit(*TRAIN)


def members(model):
    """Each of the models, as a CRF."""
    base = CRF(C=10.0, constraints="BIO").fit(*TRAIN)
    for draw in model.model_.draws:
        base._model = base.model_.with_parameters(draw)
        yield base


def test_answers_are_means(model):
    X, y = TEST
    rows = np.mean([np.concatenate(one.predict_proba(X)) for one in members(model)], axis=0)
    np.testing.assert_allclose(np.concatenate(model.predict_proba(X)), rows, atol=1e-12)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    pairs = np.mean([np.concatenate(one.predict_proba(X, pairwise=True)[1]) for one in members(model)], axis=0)
    np.testing.assert_allclose(np.concatenate(model.predict_proba(X, pairwise=True)[1]), pairs, atol=1e-12)
    logs = [one.score_sequences(X, y) for one in members(model)]
    np.testing.assert_allclose(model.score_sequences(X, y), logsumexp(logs, axis=0) - np.log(5), atol=1e-9)


def test_each_model_is_a_fit_to_a_draw(model):
    """A fit to the sentences of a draw, as often as they were drawn, finds the same weights."""
    seed = int(np.random.RandomState(3).randint(2**31 - 1))
    counts = np.bincount(np.random.default_rng([seed, 0]).integers(40, size=40), minlength=40)
    tight = BaggedTagger(CRF(C=10.0, constraints="BIO", tol=1e-10), n_estimators=1, random_state=3).fit(*TRAIN)
    alone = CRF(C=10.0, constraints="BIO", tol=1e-10).fit(*TRAIN, sample_weight=counts)
    np.testing.assert_allclose(tight.model_.draws[0], alone.parameters_, atol=1e-3)
    assert np.abs(model.model_.draws[0] - model.model_.draws[1]).max() > 0.1


def test_predictions_keep_to_the_constraints(model):
    for labels in model.predict(TEST[0]):
        for before, label in zip(["O", *labels], labels, strict=False):
            assert label != "I-N" or before in ("B-N", "I-N")
        assert spans(labels) is not None


def test_spans_have_a_spread(model):
    X = TEST[0]
    plain, spread = model.predict_spans(X), model.predict_spans(X, return_std=True)
    n = 0
    for some, others in zip(plain, spread, strict=True):
        assert [tuple(one) for one in some] == [tuple(one)[:4] for one in others]
        assert all(0.0 <= one.std <= 0.6 for one in others)
        n += len(some)
    assert n > 10
    # The probability of a span of one of the models, by its own question.
    x = X[int(np.argmax([len(some) for some in spread]))]
    found = model.predict_spans([x], return_std=True)[0][0]
    each = []
    for one in members(model):
        draws = one.sample([x], 4000, random_state=0)[0]
        each.append(np.mean([(found.type, found.start, found.stop) in spans(labels) for labels in draws]))
    assert found.probability == pytest.approx(np.mean(each), abs=0.03)
    assert found.std == pytest.approx(np.std(each, ddof=1), abs=0.03)


def test_draws_are_those_of_the_mixture(model):
    X = TEST[0][:4]
    draws = model.sample(X, 4000, random_state=1)
    names, rows = list(model.classes_), model.predict_proba(X)
    for some, table in zip(draws, rows, strict=True):
        for t in range(len(table)):
            shares = [np.mean([labels[t] == name for labels in some]) for name in names]
            np.testing.assert_allclose(shares, table[t], atol=0.04)
    assert model.sample(X, 3, random_state=1) == model.sample(X, 3, random_state=1)


def test_files_seeds_and_threads(model, tmp_path):
    model.save(tmp_path / "bag.model")
    loaded = dualfield.load(tmp_path / "bag.model")
    X = TEST[0]
    np.testing.assert_array_equal(np.concatenate(loaded.predict_proba(X)), np.concatenate(model.predict_proba(X)))
    assert loaded.predict(X) == model.predict(X)
    again = BaggedTagger(CRF(C=10.0, constraints="BIO"), n_estimators=5, random_state=3, n_jobs=2).fit(*TRAIN)
    np.testing.assert_array_equal(again.model_.draws, model.model_.draws)
    model.calibrate(*HELD_OUT).save(tmp_path / "bag.model")
    assert dualfield.load(tmp_path / "bag.model").calibration_ == model.calibration_


def test_predictions_have_the_temperature():
    """Of the labels that are most probable on average at T, the expected number of right ones is largest."""
    model = BaggedTagger(CRF("single", C=300.0), n_estimators=4, random_state=0)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 2))
    labels = np.where(points[:, 0] + 2.0 * rng.normal(size=400) > 0, "right", "left")
    model.fit(points[:20], labels[:20]).calibrate(points[20:], labels[20:])
    assert abs(model.calibration_.temperature - 1.0) > 0.2
    best = model.predict_proba(points).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(points), model.classes_[best])


def test_temperature_of_an_average_is_not_that_of_votes():
    """Where some model is right about every held-out label, votes have the least log-loss there, and only there."""
    news = load_town_news()
    model = BayesianCRF(C=10.0, template="default", random_state=0).fit(news.X_train[:60], news.y_train[:60])
    model.calibrate(news.X_train[100:140], news.y_train[100:140])  # unbounded, T would be 0.004
    assert 0.1 <= model.calibration_.temperature < 1.0
    assert model.calibration_.log_loss < model.calibration_.log_loss_at_one
    found = token_log_loss(news.y_test, model.predict_proba(news.X_test), model.classes_)
    votes = dataclasses.replace(model.calibration_, temperature=0.01)
    rows = model.model_.calibrated(votes).predict_proba(news.X_test)
    assert found < 0.5 * token_log_loss(news.y_test, rows, model.classes_)


def test_c_of_all_models(tmp_path):
    X, y = TRAIN
    model = BaggedTagger(CRF(C="evidence"), n_estimators=2).fit(X, y)
    assert model.C_ == CRF(C="evidence").fit(X, y).C_
    model.save(tmp_path / "bag.model")
    loaded = dualfield.load(tmp_path / "bag.model")
    assert loaded.C_ == model.C_
    assert loaded.estimator.C == "evidence"


def test_temperature_without_sentences_that_have_no_tree():
    X = [[("the", "D"), ("dog", "N")], [("a", "N"), ("the", "D")]]
    y = ["(S (D the) (N dog))", "(S (N a) (D the))"]
    for model in (BaggedTagger(CRF("grammar"), n_estimators=2), BayesianCRF("grammar", C=1.0, n_predict=2)):
        with pytest.warns(ImpossibleWarning, match="1 of 2 examples has no allowed labelling"):
            found = model.fit(X[:1] * 3, y[:1] * 3).calibrate(X, y).calibration_
        assert found == model.calibrate(X[:1], y[:1]).calibration_


def test_temperature_of_the_mean():
    model = BaggedTagger(CRF(C=300.0), n_estimators=4, random_state=0).fit(*TRAIN)
    before = token_log_loss(HELD_OUT[1], model.predict_proba(HELD_OUT[0]), model.classes_)
    found = model.calibrate(*HELD_OUT).calibration_
    after = token_log_loss(HELD_OUT[1], model.predict_proba(HELD_OUT[0]), model.classes_)
    assert found.log_loss == pytest.approx(after, rel=1e-6)
    assert found.log_loss_at_one == pytest.approx(before, rel=1e-6)
    assert after <= before


def test_what_models_disagree_about(model):
    X, T = TEST[0], model.model_.probability_temperature
    each = [model.structure_.marginals(scores, temperature=T).node for scores in model.model_.each_scores(X)]

    def entropy(rows):
        return -(rows * np.log(np.maximum(rows, 1e-300))).sum(axis=1)

    bald = entropy(np.mean(each, axis=0)) - np.mean([entropy(rows) for rows in each], axis=0)
    offsets = np.cumsum([0, *map(len, X)])
    want = [bald[a:b].mean() for a, b in itertools.pairwise(offsets)]
    np.testing.assert_allclose(model.rank_for_labelling(X, by="bald").values, want, atol=1e-10)
    assert (np.array(want) >= -1e-12).all()
    least = model.rank_for_labelling(X, by="least_confidence", per="sentence").values
    np.testing.assert_allclose(least, -model.score_sequences(X, model.predict(X)), atol=1e-9)


def test_better_than_one_model_where_c_is_too_large():
    news = load_town_news()
    small = news.X_train[:40], news.y_train[:40]
    base = CRF("chain", template="U:%x[0,0]\nU:%x[-1,0]\nU:%x[1,0]", C=1000.0)
    one, ten = base.fit(*small), BaggedTagger(base, random_state=0).fit(*small)
    losses = [token_log_loss(news.y_test, each.predict_proba(news.X_test), each.classes_) for each in (one, ten)]
    assert losses[1] < losses[0] - 0.03


def test_other_structures_and_matrices():
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(3, 2)), [-1, 0, 0]) for _ in range(12)]
    y = [["a" if row[0] > 0 else "b" for row in nodes] for nodes, _ in X]
    model = BaggedTagger(CRF(Tree()), n_estimators=3).fit(X, y)
    assert model.score(X, y) > 0.8
    points = rng.normal(size=(60, 2))
    single = BaggedTagger(CRF("single"), n_estimators=3).fit(points, points[:, 0] > 0)
    assert single.predict_proba(points).shape == (60, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "CRF"}, "The 'estimator' parameter of BaggedTagger must be a CRF"),
        ({"estimator": CRF(kernel="rbf")}, "must have kernel=None"),
        ({"n_estimators": 0}, "The 'n_estimators' parameter of BaggedTagger"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BaggedTagger(**options).fit(*TRAIN)


def test_predictions_whatever_the_way_they_are_asked_for(model):
    """The weights of the base class are those of all data, not those of the average."""
    X = TEST[0]
    mode = CRF(C=10.0, constraints="BIO").fit(*TRAIN)
    found = model.predict(X)
    assert found != mode.predict(X)
    assert model.predict(X, impossible="none") == found
    assert model.predict(X, return_bound=True)[0] == found
    rows, edges = model.predict_proba(X, pairwise=True)
    beliefs, pairs = model.beliefs(X, pairwise=True)
    np.testing.assert_array_equal(np.concatenate(beliefs), np.concatenate(rows))
    np.testing.assert_array_equal(np.concatenate(pairs), np.concatenate(edges))


def test_beliefs_of_graphs_that_are_too_wide():
    rng = np.random.default_rng(0)
    circle = [(0, 1), (1, 2), (2, 0)]
    X = [(rng.normal(size=(3, 2)), circle) for _ in range(8)]
    y = [["a" if row[0] > 0 else "b" for row in nodes] for nodes, _ in X]
    model = BaggedTagger(CRF(Graph(inference="trw")), n_estimators=3).fit(X, y)
    rows = [model.structure_.marginals(scores).node for scores in model.model_.each_scores(X)]
    np.testing.assert_allclose(np.concatenate(model.beliefs(X)), np.mean(rows, axis=0), atol=1e-12)
    with pytest.raises(ValueError, match="predict_proba needs exact answers"):
        model.predict_proba(X)


def test_parsers_answer_for_all_models():
    """Where models disagree: trees of reports, and those of predict, are those of the average."""
    words = [(word, "N") for word in "abc"]
    left, right = "(S (X (N a) (N b)) (N c))", "(S (N a) (X (N b) (N c)))"
    y = [left] * 5 + [right] * 4
    model = BaggedTagger(CRF("grammar"), n_estimators=3, random_state=0).fit([words] * 9, y)
    # One model has all but no doubt; the two others lean to the other side.
    weights = np.where(np.isclose(model.parameters_, 0.0), 0.0, model.parameters_)
    model._model = dataclasses.replace(model.model_, draws=np.array([weights, -weights, -weights]))
    found = model.predict([words])
    assert found != CRF("grammar").fit([words] * 9, y).predict([words])
    assert model.predict([words], impossible="none") == found
    assert model.score([words], found) == 1.0
    (one,) = parsed(model, [words]).predicted
    (want,) = parsed(CRF("grammar").fit([words], found), [words]).predicted
    assert one == want


def test_no_list_of_the_best(model):
    with pytest.raises(ValueError, match="k_best of averaged probabilities has no exact answer"):
        model.k_best(TEST[0], 2)
    with pytest.raises(ValueError, match="a BaggedTagger or a BayesianCRF"):
        CRF().fit(*TRAIN).predict_spans(TEST[0], return_std=True)
