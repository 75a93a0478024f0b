"""One temperature for all probabilities: the least log-loss on held-out data, every question, files, all estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold

import dualfield
from dualfield import (
    CRF,
    CRFCV,
    DiscriminativeBayesNet,
    DiscriminativeHMM,
    KernelLogisticRegression,
    LatentCRF,
    LatentMulticlass,
    StructuredSVM,
)
from dualfield.estimators import crfsuite
from dualfield.models.bayes.ensemble import HeldOutDraws
from dualfield.models.temperature_scaling import HeldOut, choose_temperature
from dualfield.structures import Scores, Single
from tests.estimators.tagging import sentences

TRAIN, HELD_OUT, TEST = sentences(40, seed=1), sentences(60, seed=2), sentences(60, seed=3)


def words(X):
    """Sequences of symbols for hidden Markov models."""
    return [[item[0] if isinstance(item, list | tuple) else next(iter(item)) for item in xseq] for xseq in X]


def node_log_loss(model, X, y):
    return log_loss(
        [label for ys in y for label in ys], np.concatenate(model.predict_proba(X)), labels=list(model.classes_)
    )


@pytest.mark.parametrize("C", [0.01, 100.0])
def test_least_log_loss_of_all_temperatures(C):
    model = CRF(C=C).fit(*TRAIN)
    before, labels = node_log_loss(model, *HELD_OUT), model.predict(TEST[0])
    found = model.calibrate(*HELD_OUT).calibration_
    assert found.log_loss_at_one == pytest.approx(before, rel=1e-9)
    assert found.log_loss == pytest.approx(node_log_loss(model, *HELD_OUT), rel=1e-9)
    assert found.log_loss < before
    assert model.predict(TEST[0]) == labels
    scores = model.decision_scores(HELD_OUT[0])
    codes = model.labels_.encode(HELD_OUT[1], scores.offsets)
    for factor in (0.5, 0.99, 1.01, 2.0):
        rows = model.structure_.marginals(scores, temperature=factor * found.temperature).node
        assert -np.log(rows[np.arange(len(codes)), codes]).mean() >= found.log_loss


def test_every_question_has_the_temperature():
    """A CRF with T has the probabilities of one whose weights are divided by T."""
    model = CRF(C=100.0).fit(*TRAIN).calibrate(*HELD_OUT)
    T = model.calibration_.temperature
    assert abs(T - 1.0) > 0.05
    divided = CRF(C=100.0).fit(*TRAIN)
    divided._model = divided.model_.with_parameters(divided.parameters_ / T)
    X, y = TEST
    for mine, other in zip(model.predict_proba(X), divided.predict_proba(X), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-12)
    np.testing.assert_allclose(model.score_sequences(X, y), divided.score_sequences(X, y), atol=1e-9)
    (best, second), (first, other) = model.k_best(X[:1], 2)[0], divided.k_best(X[:1], 2)[0]
    assert best[1] == pytest.approx(first[1])
    assert second[1] == pytest.approx(other[1])
    assert model.sample(X[:3], 5, random_state=0) == divided.sample(X[:3], 5, random_state=0)
    np.testing.assert_allclose(model.rank_for_labelling(X).values, divided.rank_for_labelling(X).values, atol=1e-12)


def test_files_keep_it(tmp_path):
    for at, model in enumerate((CRF(C=100.0).fit(*TRAIN).calibrate(*HELD_OUT), hmm().calibrate(*symbols(HELD_OUT)))):
        model.save(tmp_path / f"{at}.model")
        loaded = dualfield.load(tmp_path / f"{at}.model")
        assert loaded.calibration_ == model.calibration_
        X = TEST[0] if at == 0 else words(TEST[0])
        np.testing.assert_array_equal(np.concatenate(loaded.predict_proba(X)), np.concatenate(model.predict_proba(X)))


def symbols(data):
    return words(data[0]), data[1]


def hmm():
    return DiscriminativeHMM(eta=0.0).fit(*symbols(TRAIN))


def test_a_new_fit_forgets_it():
    model = CRF(C=100.0).fit(*TRAIN).calibrate(*HELD_OUT)
    assert not hasattr(model.fit(*TRAIN), "calibration_")


def test_folds_choose_one_temperature():
    X, y = TRAIN
    model = CRF(C=100.0).fit(X, y).calibrate(X, y, cv=4)
    assert model.calibration_.temperature > 1.0  # on the training data themselves it would be below
    assert node_log_loss(model, *TEST) < node_log_loss(CRF(C=100.0).fit(X, y), *TEST)
    assert model.calibration_.n_nodes == sum(map(len, y))


def test_folds_are_fits_to_the_others():
    """Examples are read once for all folds; the models are those of a fit to the others alone, with their features."""
    X, y = TRAIN
    model = CRF(C=10.0, tol=1e-8, template="U:%x[0,0]\nU:%x[-1,0]", min_freq=2)
    tokens = [[str(sorted(item)) for item in xseq] for xseq in X]
    found, losses = model.fit(tokens, y).calibrate(tokens, y, cv=4).calibration_, []
    for fold in np.array_split(np.arange(len(y)), 4):
        rest = [at for at in range(len(y)) if at not in fold]
        other = clone(model).fit([tokens[at] for at in rest], [y[at] for at in rest])
        rows = np.concatenate(other.predict_proba([tokens[at] for at in fold]))
        codes = other.labels_.encode([y[at] for at in fold], np.cumsum([0, *(len(y[at]) for at in fold)]))
        losses.append(-np.log(rows[np.arange(len(codes)), codes]))
    assert found.log_loss_at_one == pytest.approx(np.concatenate(losses).mean(), rel=1e-5)


def test_labels_that_are_all_right_do_not_tell_a_temperature():
    node = np.array([[3.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
    found = choose_temperature([HeldOut(Single(2), Scores(node, np.arange(4)), np.array([0, 1, 0], dtype=np.int32))])
    assert found.log_loss < 1e-6
    assert found.doubt.startswith("All 3 labels that calibrate was given are predicted right")
    rows = 1000.0 * node  # every T of the search is as good as T = 1, to the last digit
    found = choose_temperature([HeldOut(Single(2), Scores(rows, np.arange(4)), np.array([0, 1, 0], dtype=np.int32))])
    assert (found.temperature, found.log_loss, found.doubt) == (1.0, 0.0, None)
    X, y = [[["a"], ["b"]]] * 4, [["x", "y"]] * 4
    with pytest.warns(
        UserWarning, match="All 8 labels .* Use more examples, on which the model was not trained"
    ) as all_:
        model = CRF().fit(X, y).calibrate(X, y)
    assert all_[0].filename == __file__
    assert model.calibration_.doubt == str(all_[0].message)


def test_labels_that_are_wrong_do_not_tell_a_temperature():
    node = np.array([[3.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
    for codes in ([1, 0, 1], [0, 0, 1]):  # all wrong, and as often as by chance
        found = choose_temperature([HeldOut(Single(2), Scores(node, np.arange(4)), np.array(codes, dtype=np.int32))])
        assert found.temperature > 1000.0
        assert found.log_loss == pytest.approx(np.log(2.0), abs=1e-3)
        assert found.doubt.startswith("The 3 labels that calibrate was given are no more probable under the model than")
    found = choose_temperature([HeldOut(Single(2), Scores(node, np.arange(4)), np.array([0, 1, 1], dtype=np.int32))])
    assert found.doubt is None
    X, y = [[["a"], ["b"]]] * 4, [["x", "y"]] * 4
    with pytest.warns(UserWarning, match="than by chance, and do not say how large T may be"):
        CRF().fit(X, y).calibrate(X, [labels[::-1] for labels in y])


def test_models_that_vote_do_not_tell_a_temperature():
    """The mean of three models, of which two are right about each label, is best where each is certain."""
    right, wrong = Scores(np.array([[1.0, 0.0]] * 3), np.arange(4)), Scores(np.array([[0.0, 1.0]] * 3), np.arange(4))
    codes = np.zeros(3, dtype=np.int32)
    found = choose_temperature([HeldOutDraws(Single(2), right, codes, others=(right, right, wrong))])
    assert found.log_loss > 0.1
    assert found.open_end == "small"
    assert found.doubt.startswith("The 3 labels that calibrate was given do not say how small T may be: at T = ")


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_search_finds_the_least_of_a_dense_scan(scale):
    rng = np.random.default_rng(0)
    node = scale * rng.normal(size=(200, 3)) * rng.choice([0.1, 1.0, 30.0], size=(200, 1))  # sure and unsure rows
    codes = np.where(rng.random(200) < 0.6, node.argmax(axis=1), rng.integers(3, size=200)).astype(np.int32)
    part = HeldOut(Single(3), Scores(node, np.arange(201)), codes)
    found = choose_temperature([part])
    scan = [part.losses(scale * np.exp(at), None).mean() for at in np.linspace(-12.0, 12.0, 500)]
    assert found.log_loss <= min(scan) + 1e-9
    assert found.log_loss == pytest.approx(part.losses(found.temperature, None).mean(), rel=1e-12)


def test_hidden_markov_models_and_searches():
    model = hmm()
    before = node_log_loss(model, *symbols(HELD_OUT))
    assert node_log_loss(model.calibrate(*symbols(HELD_OUT)), *symbols(HELD_OUT)) <= before + 1e-12
    tuned = CRFCV(Cs=[1.0, 100.0], cv=2).fit(*TRAIN)
    assert tuned.calibrate(*HELD_OUT) is tuned
    assert tuned.calibration_ == tuned.best_estimator_.calibration_
    assert crfsuite.CRF().fit(*TRAIN).calibrate(*HELD_OUT).calibration_.n_nodes == sum(map(len, HELD_OUT[1]))


def test_kernel_logistic_regression(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    for y in (X[:, 0] + rng.normal(size=300) > 0, np.digitize(X[:, 0] + rng.normal(size=300), [-0.7, 0.7])):
        model = KernelLogisticRegression(C=100.0, gamma=2.0).fit(X[:100], y[:100])
        before, labels = log_loss(y[100:200], model.predict_proba(X[100:200])), model.predict(X[200:])
        found = model.calibrate(X[100:200], y[100:200]).calibration_
        assert found.log_loss == pytest.approx(log_loss(y[100:200], model.predict_proba(X[100:200])), rel=1e-9)
        assert found.log_loss < found.log_loss_at_one == pytest.approx(before, rel=1e-9)
        np.testing.assert_array_equal(model.predict(X[200:]), labels)
        model.save(tmp_path / "klr.model")
        again = dualfield.load(tmp_path / "klr.model")
        np.testing.assert_array_equal(again.predict_proba(X[200:]), model.predict_proba(X[200:]))
        assert model.calibrate(X[:100], y[:100], cv=3).calibration_.n_nodes == 100
        with pytest.raises(ValueError, match="labels not seen in training"):
            model.calibrate(X[:2], [17, 18])


def test_folds_of_a_kernel_matrix():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60) > 0
    plain = KernelLogisticRegression(kernel="linear", C=10.0).fit(X, y).calibrate(X, y, cv=3).calibration_
    gram = X @ X.T
    given = KernelLogisticRegression(kernel="precomputed", C=10.0).fit(gram, y).calibrate(gram, y, cv=3).calibration_
    assert given.temperature == pytest.approx(plain.temperature, rel=1e-4)
    assert given.log_loss == pytest.approx(plain.log_loss, rel=1e-6)


def test_folds_of_sorted_classes():
    """Folds in the order of the rows would each hold out a class that the others do not have."""
    X, y = load_iris(return_X_y=True)
    for model in (KernelLogisticRegression(), CRF("single"), StructuredSVM("single")):
        found = model.fit(X, y).calibrate(X, y, cv=3).calibration_
        assert found.n_nodes == 150
        folds = list(StratifiedKFold(3).split(X, y))
        assert model.calibrate(X, y, cv=folds).calibration_ == found
        with pytest.raises(ValueError, match="must have examples whose labels the other folds have"):
            model.calibrate(X, y, cv=KFold(3))


def test_generators_are_read_once():
    X, y = TRAIN
    model = CRF(C=100.0).fit(X, y)
    want = model.calibrate(X, y, cv=3).calibration_
    assert model.calibrate((one for one in X), (labels for labels in y), cv=3).calibration_ == want


def test_bayesian_networks(tmp_path):
    """Naive Bayes takes copies of a column for as many witnesses."""
    rng = np.random.default_rng(0)
    y = rng.choice(["in", "out"], size=400)
    seen = np.where(rng.random(400) < 0.8, y, "out")
    X = np.column_stack([seen] * 4 + [rng.choice(["a", "b"], size=400)])
    model = DiscriminativeBayesNet(eta=0.0).fit(X[:100], y[:100])
    before, joint = log_loss(y[100:300], model.predict_proba(X[100:300])), model.predict_joint_log_proba(X)
    found = model.calibrate(X[100:300], y[100:300]).calibration_
    assert found.log_loss_at_one == pytest.approx(before, rel=1e-9)
    assert found.log_loss == pytest.approx(log_loss(y[100:300], model.predict_proba(X[100:300])), rel=1e-9)
    assert found.log_loss < before - 0.02
    T = found.temperature
    for factor in (0.5, 0.99, 1.01, 2.0):
        rows = np.exp(joint / (T * factor))
        rows /= rows.sum(axis=1, keepdims=True)
        assert log_loss(y[100:300], rows[100:300]) >= found.log_loss
    np.testing.assert_array_equal(model.predict_joint_log_proba(X), joint)
    np.testing.assert_array_equal(model.predict(X), model.classes_[joint.argmax(axis=1)])
    model.save(tmp_path / "net.model")
    loaded = dualfield.load(tmp_path / "net.model")
    assert loaded.calibration_ == found
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert model.calibrate(X[:100], y[:100], cv=4).calibration_.temperature == pytest.approx(T, rel=0.5)
    assert not hasattr(model.fit(X, y), "calibration_")
    with pytest.raises(ValueError, match="labels not seen in training"):
        model.calibrate(X[:1], ["around"])
    table = DiscriminativeBayesNet([(0, []), (1, [0]), (2, [0])], hidden=[0], eta=0.0).fit(X[:50, :3])
    assert not hasattr(table, "calibrate")


def test_sub_states(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.where(np.abs(X[:, 0]) + 0.5 * rng.normal(size=200) > 0.7, "far", "near")
    model = LatentCRF(CRF(C=100.0), LatentMulticlass(2), n_restarts=2, random_state=0).fit(X[:80], y[:80])
    before = log_loss(y[80:], model.predict_proba(X[80:]), labels=list(model.classes_))
    found = model.calibrate(X[80:], y[80:]).calibration_
    after = log_loss(y[80:], model.predict_proba(X[80:]), labels=list(model.classes_))
    assert found.log_loss == pytest.approx(after, rel=1e-9)
    assert after < before
    model.save(tmp_path / "latent.model")
    np.testing.assert_array_equal(
        dualfield.load(tmp_path / "latent.model").predict_proba(X[80:]), model.predict_proba(X[80:])
    )


@pytest.mark.parametrize("estimator", [CRF(), StructuredSVM()], ids=["CRF", "StructuredSVM"])
def test_refused(estimator):
    model = estimator.fit(*TRAIN)
    with pytest.raises(ValueError, match="at least one node"):
        model.calibrate([], [])
    with pytest.raises(ValueError, match="'cv' parameter of calibrate"):
        model.calibrate(*HELD_OUT, cv=2, lengths=[1])
    assert not hasattr(model, "calibration_")


def test_the_smallest_temperature_bounds_the_search_and_not_what_is_found_above_it():
    """Scores of many sure labels put points of the grid below the bound; the optimum is between it and the next."""
    node = np.array([[0.22, 0.0]] * 4 + [[3.0, 0.0]] * 16)
    codes = np.array([0, 0, 0, 1] + [0] * 16, dtype=np.int32)
    free, bounded, tight = (
        choose_temperature([HeldOut(Single(2), Scores(node, np.arange(21)), codes, least=least)])
        for least in (0.0, 0.1, 0.5)
    )
    assert 0.15 < bounded.temperature < 0.25
    assert bounded.temperature == pytest.approx(free.temperature, rel=1e-3)
    assert (bounded.open_end, tight.open_end) == ("", "small")
    assert tight.temperature == pytest.approx(0.5)
